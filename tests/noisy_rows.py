"""Rows whose noise differs, and noise as a part of a kernel, for tests."""

import numpy as np
from sklearn.gaussian_process.kernels import RBF, ConstantKernel, Kernel

KERNEL = ConstantKernel(2.0) * RBF([0.7, 1.5])
FIXED = {"tuning": "fixed", "noise_variance": 0.05, "scale_inputs": False}
HOLDOUT = {"tuning": "holdout", "n_restarts": 0, "random_state": 0}
EXACT = {
    "fixed": {"kernel": KERNEL, **FIXED},
    "fixed, linear mean": {"kernel": KERNEL, "mean": "linear", **FIXED},
    "holdout": HOLDOUT,
    "holdout, gamma 1": {"gamma": 1.0, **HOLDOUT},
    "low rank": {"low_rank": 6, **HOLDOUT},
}


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
