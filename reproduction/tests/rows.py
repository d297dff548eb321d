"""Data sets and models that several test modules share."""

import numpy as np

from conformal_gp import ConformalGPRegressor


def fixed_model(kernel="se", noise_variance=0.1, **options):
    """A model that takes its hyperparameters and inputs as they are."""
    settings = {"mean": "zero", "tuning": "fixed", "scale_inputs": False, **options}
    return ConformalGPRegressor(kernel, noise_variance=noise_variance, **settings)


def make_data(seed, n_rows, n_inputs=2):
    """Rows of a wavy function with noise."""
    rng = np.random.default_rng(seed)
    X = rng.uniform(-1.5, 1.5, (n_rows, n_inputs))
    return X, np.sin(2 * X[:, 0]) + X.sum(axis=1) + rng.normal(0, 0.5, n_rows)


def make_ties(seed, n_rows):
    """Inputs on a small grid, with many equal distances and many duplicates."""
    rng = np.random.default_rng(seed)
    X = rng.integers(0, 3, size=(n_rows, 2)).astype(float)
    return X, X[:, 0] + rng.normal(size=n_rows)


def standardised(X, *others):
    """Inputs with mean 0 and standard deviation 1 over the rows of X."""
    return [(Z - X.mean(axis=0)) / X.std(axis=0) for Z in (X, *others)]


def calibration(seed=0, rows=40, spread=1.3):
    """Predicted means and standard deviations, and labels with errors of heavier tails and another size."""
    rng = np.random.default_rng(seed)
    mean, std = rng.normal(size=rows), rng.uniform(0.5, 2.0, rows)
    return mean, std, mean + spread * std * rng.standard_t(4, rows)
