"""Models: from rows to scores of the calibration rows; and how their hyperparameters are tuned."""
