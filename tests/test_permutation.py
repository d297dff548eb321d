"""The guarantee itself: each row of a bag in turn is the test row, and the p-values are 1/n, ..., 1 in some order."""

import warnings

import numpy as np
import pytest
from sklearn.gaussian_process.kernels import RBF, ConstantKernel, DotProduct, Matern, WhiteKernel

from conformal_gp import ConformalGPRegressor

CANDIDATES = [(RBF(length), noise) for length in (0.5, 2.0) for noise in (1e-3, 0.1)]
MODELS = {
    "default": {},
    "one length scale": {"length_scales": "one"},
    "linear mean": {"mean": "linear"},
    "zero mean": {"mean": "zero"},
    "se": {"kernel": "se"},
    "rq": {"kernel": "rq"},
    "nn": {"kernel": "nn"},
    "matern32": {"kernel": "matern32"},
    "unscaled": {"scale_inputs": False},
    "gamma 1": {"gamma": 1.0},
    "gamma inf": {"gamma": np.inf},
    "kernels": {"kernel": ["se", "matern32"]},
    "product": {"kernel": ConstantKernel() * Matern([1.0, 2.0], nu=1.5)},
    "sum": {"kernel": ConstantKernel() * RBF(1.0) + ConstantKernel() * DotProduct()},
    "own noise": {"kernel": ConstantKernel() * RBF(1.0) + WhiteKernel(0.1), "noise_variance": 0.0},
    "no prior": {"length_scale_prior": None},
    "candidates": {"candidates": CANDIDATES},
    "fixed": {"tuning": "fixed", "noise_variance": 0.1, "scale_inputs": False},
}


def smooth(rng, n):
    X = rng.uniform(-2, 2, (n, 2))
    return X, np.sin(2 * X[:, 0]) + 0.3 * X[:, 1]


def noisy(rng, n):
    X, y = smooth(rng, n)
    return X, y + 0.3 * rng.standard_normal(n)


def far_out_input(rng, n):
    X, y = noisy(rng, n)
    X[0, 0] = 1e9
    return X, y


def far_out_label(rng, n):
    X, y = smooth(rng, n)
    y[0] = 1e4
    return X, y


def offsets(rng, n):
    X, y = noisy(rng, n)
    return X + np.array([1e8, 0.0]), y + 1e6


def binary_and_constant(rng, n):
    X, y = noisy(rng, n)
    X[:, 1] = X[:, 1] > 0
    return np.column_stack([X, np.ones(n)])[:, [0, 1]], y


def near_duplicates(rng, n):
    X, y = smooth(rng, n)
    X[1] = X[0] + 1e-7
    return X, y + 1e-3 * rng.standard_normal(n)


BAGS = [smooth, noisy, far_out_input, far_out_label, offsets, binary_and_constant, near_duplicates]


def p_values_times_n(X, y, **options):
    """Each row in turn is the test row."""
    n = len(y)
    found = np.empty(n)
    for i in range(n):
        rest = np.arange(n) != i
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            model = ConformalGPRegressor(**options).fit(X[rest], y[rest])
        assert "Exact" in model.guarantee_
        found[i] = model.predict_p(X[i : i + 1], y[i : i + 1])[0] * n
    return np.sort(found)


@pytest.mark.parametrize("bag", BAGS)
@pytest.mark.parametrize("name", MODELS)
def test_p_values_of_a_bag_are_a_permutation(name, bag):
    rng = np.random.default_rng(sum(map(ord, name + bag.__name__)))
    X, y = bag(rng, 11)
    found = p_values_times_n(X, y, **MODELS[name])
    at_most = (found <= found[:, None] + 1e-9).sum(axis=1)
    np.testing.assert_allclose(found, at_most, atol=1e-9)  # what the theorem says
    if bag is not binary_and_constant:  # there, two rows of a kind tie: their residuals are opposite
        assert np.unique(found).size == found.size
