"""Labels without noise: a fit never fails, and its intervals are narrow."""

import warnings

import numpy as np
import pytest

from conformal_gp import ConformalGPRegressor


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
