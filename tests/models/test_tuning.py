"""The split against its brute-force definition, with background rows, and fits of functions without noise."""

import warnings
from fractions import Fraction

import numpy as np
import pytest
from sklearn.gaussian_process.kernels import RBF, ConstantKernel, DotProduct

import oracle
from cases import make_basis
from conformal_gp import ConformalGPRegressor
from noisy_rows import WithNoise

SUM = ConstantKernel() * RBF(1.0) + ConstantKernel() * DotProduct()


def problem(seed, l=30):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(l, 2)) * [1.0, 9.0]
    return X, X[:, 0] + np.sin(X[:, 1] / 5) + 0.5 * rng.normal(size=l), rng.normal(size=(3, 2)) * [1.0, 9.0]


@pytest.mark.parametrize(
    ("kernel", "mean", "gamma", "known"),
    [
        ("se", "zero", 1.0, False), ("matern52", "constant", 2.0, False), (SUM, "linear", np.inf, False),
        ("rq", "constant", np.inf, True), ("nn", "linear", 2.0, True), (["se", "matern32"], "zero", 3.0, False),
    ],
)  # fmt: skip
def test_regions_and_p_values_equal_the_definition_with_background_rows(kernel, mean, gamma, known):
    X, y, X_new = problem(0)
    v, v_new = (0.3 * np.exp(np.random.default_rng(n).standard_normal(n)) if known else None for n in (30, 3))
    model = ConformalGPRegressor(kernel, mean=mean, gamma=gamma, tuning="holdout", tuning_rows=15, random_state=3)
    model.fit(X, y, y_variance=v)
    tuning_rows = model.tuning_rows_
    assert tuning_rows.size == 15
    location, scale = X[tuning_rows].mean(axis=0), X[tuning_rows].std(axis=0)
    Z, Z_new = (X - location) / scale, (X_new - location) / scale
    H, H_new = make_basis(mean, Z), make_basis(mean, Z_new)
    learnt = model.kernel_
    if known:
        Z, Z_new, learnt = np.column_stack([Z, v]), np.column_stack([Z_new, v_new]), WithNoise(model.kernel_)
    for j, region in enumerate(model.predict_set(X_new, 0.8, y_variance=v_new)):
        given = {
            "basis": H,
            "basis_new": None if H is None else H_new[j],
            "calibration": np.setdiff1d(range(30), tuning_rows),
        }
        arguments = (learnt, model.noise_variance_, Z, y, Z_new[j])
        expected = oracle.region(*arguments, Fraction(1, 5), gamma, **given)
        np.testing.assert_allclose(region, expected, rtol=1e-8, atol=1e-9)
        p = oracle.p_value(*arguments, 1.3, gamma, **given)
        found = model.predict_p(X_new[[j]], [1.3], y_variance=v_new[[j]] if known else None)[0]
        assert found == pytest.approx(float(p))


@pytest.mark.parametrize(
    ("tuning_rows", "message"),
    [
        ([0, 0, 1], "distinct row numbers from 0 to 29"),
        ([0, 30], "distinct row numbers"),
        ([-1, 3], "distinct row numbers"),
        (np.arange(30), "must leave calibration rows: got all 30 rows"),
        ([0.5, 1.5], "list of row numbers"),
        ([], "list of row numbers"),
        (1.5, "'tuning_rows' parameter"),
        (0, "'tuning_rows' parameter"),
        (3, "tuning_rows must be at least 4 with mean='constant' and 2 inputs, got 3"),
        (30, "tuning_rows must leave calibration rows: got 30 of n_samples=30"),
    ],
)
def test_tuning_rows_that_make_no_sense_are_refused(tuning_rows, message):
    X, y, _ = problem(1)
    with pytest.raises(ValueError, match=message):
        ConformalGPRegressor("se", tuning="holdout", tuning_rows=tuning_rows).fit(X, y)


def test_too_few_rows_for_the_mean_function_are_refused():
    X, y, _ = problem(1, l=6)
    with pytest.raises(ValueError, match="leaves no calibration rows"):
        ConformalGPRegressor("se", mean="linear", tuning="holdout").fit(X, y)


def smooth(X):
    return np.sin(3.0 * X[:, 0]) * np.exp(X[:, 1]) + 0.1 * X[:, -1]


@pytest.mark.parametrize(("n_rows", "n_inputs"), [(200, 2), (600, 8)])
def test_a_low_rank_model_of_a_function_without_noise(n_rows, n_inputs):
    X = np.random.default_rng(n_rows + n_inputs).random((n_rows + 100, n_inputs))
    y = smooth(X)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model = ConformalGPRegressor(low_rank=100, n_restarts=0, random_state=0).fit(X[:n_rows], y[:n_rows])
    low, high = model.predict_interval(X[n_rows:], 0.9).T
    assert (high - low).mean() < 0.05 * y.std()


@pytest.mark.parametrize("n_rows", [10, 120])
def test_an_exact_model_of_a_function_without_noise(n_rows):
    X = np.random.default_rng(n_rows).random((n_rows + 20, 2))
    y = smooth(X)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model = ConformalGPRegressor(n_restarts=0, random_state=0).fit(X[:n_rows], y[:n_rows])
    low, high = model.predict_interval(X[n_rows:], 0.5).T
    assert np.isfinite(high - low).all()
    assert n_rows < 100 or (high - low).mean() < 0.01 * y.std()


@pytest.mark.slow
def test_more_rows_without_noise_do_not_widen_intervals():
    X = np.random.default_rng(5).random((1200, 2))
    y = smooth(X)
    widths = []
    for n_rows in (150, 600):
        model = ConformalGPRegressor(tuning="holdout", n_restarts=0, target_transform=None, random_state=0)
        low, high = model.fit(X[:n_rows], y[:n_rows]).predict_interval(X[1000:], 0.9).T
        widths.append((high - low).mean())
    assert widths[1] < widths[0]
