"""The ways to choose hyperparameters, one a file: checked settings and rows become a plan."""
