"""Rows whose noise differs, and noise as a part of a kernel, for tests."""

import numpy as np
from sklearn.gaussian_process.kernels import RBF, ConstantKernel, Kernel

from conformal_gp import ConformalGPRegressor, SparseConformalGPRegressor

KERNEL = ConstantKernel(2.0) * RBF([0.7, 1.5])
FIXED = {"tuning": "fixed", "noise_variance": 0.05, "scale_inputs": False}
HOLDOUT = {"tuning": "holdout", "n_restarts": 0, "random_state": 0}
SPARSE = {"n_inducing": 6, "n_restarts": 0, "random_state": 0}
EXACT = {
    "fixed": (ConformalGPRegressor, {"kernel": KERNEL, **FIXED}),
    "fixed, linear mean": (ConformalGPRegressor, {"kernel": KERNEL, "mean": "linear", **FIXED}),
    "holdout": (ConformalGPRegressor, HOLDOUT),
    "holdout, gamma 1": (ConformalGPRegressor, {"gamma": 1.0, **HOLDOUT}),
    "holdout, gammas": (ConformalGPRegressor, {"gamma": [1.0, 2.0, np.inf], **HOLDOUT}),
    "low rank": (SparseConformalGPRegressor, SPARSE),
    "low rank, dtc": (SparseConformalGPRegressor, {"approximation": "dtc", **SPARSE}),
}
N_TUNING = 15


def rows(seed, n, spread=1.0):
    """Inputs, labels with noise of variances that are known, and these."""
    rng = np.random.default_rng(seed)
    X = rng.uniform(-2, 2, (n, 2))
    v = 0.1 * np.exp(spread * rng.standard_normal(n))
    return X, np.sin(2 * X[:, 0]) + 0.3 * X[:, 1] + np.sqrt(v) * rng.standard_normal(n), v


class WithNoise(Kernel):
    """A kernel of all columns but the last, which holds variances of noise: the definition, for the oracle."""

    def __init__(self, kernel):
        self.kernel = kernel

    def __call__(self, X, Z=None):
        if Z is None:
            return self.kernel(X[:, :-1]) + np.diag(X[:, -1])
        return self.kernel(X[:, :-1], Z[:, :-1])

    def diag(self, X):
        return self.kernel.diag(X[:, :-1]) + X[:, -1]

    def is_stationary(self):
        return False


def n_tuning(options):
    """Tuning rows that a model is given, which come first."""
    return 0 if options.get("tuning") in ("fixed", "integrated") else N_TUNING


def in_turn(regressor, options, X, y, v=None, first=None):
    """p-values times the number of calibration rows, each of these in turn the test row; tuning rows come first."""
    first = n_tuning(options) if first is None else first
    n = len(y) - first
    found = np.empty(n)
    for i in range(n):
        rest = np.arange(len(y)) != first + i
        model = regressor(**options | ({"tuning_rows": np.arange(first)} if first else {}))
        known, of_test = ({}, {}) if v is None else ({"noise_variance": v[rest]}, {"noise_variance": v[~rest]})
        model.fit(X[rest], y[rest], **known)
        assert model.guarantee_.startswith("Valid:")
        found[i] = model.predict_p(X[~rest], y[~rest], **of_test)[0] * n
    return found
