"""Long studies of the package, beyond the paper; their results are in ``reproduction/results/``."""
