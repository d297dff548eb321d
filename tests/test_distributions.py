"""Predictive distributions: the guarantee by permutation of the bag, and values by brute force."""

import warnings
from fractions import Fraction

import numpy as np
import pytest
from sklearn.gaussian_process.kernels import ConstantKernel, Matern

import oracle
from cases import GAMMAS, INF, MEANS, fixed_model, make_basis, make_data
from conformal_gp import ConformalGPRegressor
from signed_oracle import check_against_lines

KERNEL = ConstantKernel(1.5) * Matern(0.9, nu=1.5)
TUNING = np.arange(12)
EXACT = {
    "holdout": ConformalGPRegressor(tuning="holdout", tuning_rows=TUNING, n_restarts=0),
    "fixed": ConformalGPRegressor(tuning="fixed", noise_variance=0.1, scale_inputs=False),
    "fixed, gamma inf": ConformalGPRegressor(tuning="fixed", noise_variance=0.1, scale_inputs=False, gamma=INF),
    "low rank": ConformalGPRegressor(tuning_rows=TUNING, low_rank=6, n_restarts=0, random_state=0),
}


def skewed(seed, n):
    rng = np.random.default_rng(seed)
    X = rng.uniform(-2, 2, (n, 2))
    return X, np.sin(2 * X[:, 0]) + 0.3 * X[:, 1] + 0.4 * rng.exponential(size=n)


def signed_ranks(model, X, y, test_rows):
    """Each of some rows in turn is the test row: how many rows score less, and the quarter of labels on either side."""
    found, inside = [], []
    for i in test_rows:
        rest = np.arange(y.size) != i
        model.fit(X[rest], y[rest])
        assert model.guarantee_.startswith("Valid:")
        found.append(model.predict_cdf(X[[i]], y[[i]])[0] * len(test_rows) - 0.5)
        low, high = model.predict_quantiles(X[[i]], [0.25, 0.75])[0]
        inside.append((low <= y[i], y[i] <= high))
    return np.sort(found), np.mean(inside, axis=0)


@pytest.mark.parametrize("name", EXACT)
@pytest.mark.parametrize("seed", [0])
def test_signed_ranks_of_a_bag_are_a_permutation(name, seed):
    has_tuning_rows = EXACT[name].tuning_rows is not None
    X, y = skewed(seed, 24 if has_tuning_rows else 12)
    found, inside = signed_ranks(EXACT[name], X, y, np.arange(12) + 12 * has_tuning_rows)
    if name == "integrated":  # scores may fall with the label, and steps are the outermost: nearer to the middle
        assert (np.abs(found - 5.5) <= np.abs(np.arange(12) - 5.5) + 1e-9).all()
        assert (np.abs(found - np.arange(12)) < 1e-9).sum() >= 11
    else:
        np.testing.assert_allclose(found, np.arange(12), atol=1e-9)
    assert (inside >= 0.75).all()


@pytest.mark.parametrize("gamma", GAMMAS)
@pytest.mark.parametrize("mean", MEANS)
def test_fixed_hyperparameters_equal_brute_force(mean, gamma):
    X, y = make_data(3, 19)
    model = fixed_model(KERNEL, mean=mean, gamma=gamma).fit(X, y)
    for x in np.array([[0.2, -0.4], [2.0, 1.0], [-4.0, 6.0]]):
        basis = make_basis(mean, np.vstack([X, x]))
        bases = (None, None) if basis is None else (basis[:-1], basis[-1])
        a, b = oracle.lines(KERNEL, 0.1, X, y, x, gamma, *bases)
        check_against_lines(model, x, a, b, np.arange(19), y)


def test_studentised_kernel_ridge_regression_prediction_machine():
    machines = pytest.importorskip("online_cp.CPS", reason="online-cp is a test extra")
    X, y = make_data(4, 39)
    machine = machines.KernelRidgePredictionMachine(lambda A, B=None: KERNEL(A, A if B is None else B), a=0.1)
    machine.learn_initial_training_set(X, y)
    model = fixed_model(KERNEL).fit(X, y)
    for x in np.array([[0.2, -0.4], [2.0, 1.0]]):
        quantiles = model.predict_quantiles([x], [Fraction(i, 40) for i in range(1, 40)])
        np.testing.assert_allclose(quantiles[0], machine.predict_cpd(x).C[1:-1], rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("name", EXACT)
def test_bounds_are_nested_and_do_not_cross(name):
    X, y = skewed(3, 50)
    X_new, _ = skewed(4, 8)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = EXACT[name].fit(X, y)
        quantiles = np.linspace(0.02, 0.98, 49)
        assert (np.diff(model.predict_quantiles(X_new, quantiles), axis=1) >= 0).all()
        levels = np.linspace(0.05, 0.95, 19)
        upper, lower = (model.predict_bound(X_new, levels, side=side) for side in ("upper", "lower"))
        assert (np.diff(upper, axis=1) >= 0).all()
        assert (np.diff(lower, axis=1) <= 0).all()
        intervals = model.predict_interval(X_new, levels, tails="equal")
        assert (intervals[:, 0] <= intervals[:, 1]).all()
        assert (np.diff(intervals[:, 1], axis=1) >= 0).all()


@pytest.mark.parametrize("name", EXACT)
@pytest.mark.parametrize("factor", [8.0, -0.5])
def test_units_of_labels_do_not_matter(name, factor):
    X, y = skewed(3, 50)
    X_new, y_new = skewed(4, 6)
    one = EXACT[name].fit(X, y)
    quantiles = np.array([0.1, 0.25, 0.5, 0.8])
    values, cdf = one.predict_quantiles(X_new, quantiles), one.predict_cdf(X_new, y_new)
    other = EXACT[name].fit(X, factor * y + 3.0)
    turned = other.predict_quantiles(X_new, quantiles if factor > 0 else 1 - quantiles)
    np.testing.assert_allclose(turned, factor * values + 3.0, rtol=1e-4, atol=1e-4)
    expected = cdf if factor > 0 else 1 - cdf
    np.testing.assert_allclose(other.predict_cdf(X_new, factor * y_new + 3.0), expected, atol=1e-9)


@pytest.mark.parametrize("name", EXACT)
def test_bounds_are_where_the_distribution_function_says(name):
    X, y = skewed(3, 50)
    model = EXACT[name].fit(X, y)
    n = model._answers.n_calibration
    X_new, _ = skewed(4, 5)
    k = int(np.floor(0.25 * (n + 1) + 1e-9))
    for side, sign in (("upper", 1.0), ("lower", -1.0)):
        bound = model.predict_bound(X_new, 0.75, side=side)
        beyond = model.predict_cdf(X_new, bound + sign * 1e-6) * (n + 1) - 0.5  # rows that score less
        at = model.predict_cdf(X_new, bound) * (n + 1) - 0.5  # the deciding row counts half
        covering = (n - beyond, n - at + 0.5) if sign > 0 else (beyond, at + 0.5)
        assert (covering[0] < k).all()
        assert (covering[1] >= k).all()
