"""Infinite ends come with a warning that names row, level and reason, once a call."""

import warnings

import numpy as np
import pytest

from conformal_gp import ConformalGPRegressor
from conformal_gp.extrapolation import ExtrapolationWarning

MODELS = {
    "fixed": {"kernel": "se", "mean": "linear", "tuning": "fixed", "noise_variance": 0.1, "scale_inputs": False},
    "holdout": {"mean": "linear", "tuning": "holdout", "n_restarts": 0, "random_state": 0},
    "integrated": {"mean": "linear", "random_state": 0},
}


def fitted(name):
    rng = np.random.default_rng(0)
    X = np.column_stack([rng.uniform(size=(45, 2)), np.ones(45)])
    y = X[:, 0] + 0.1 * rng.normal(size=45) + 3.0
    return ConformalGPRegressor(**MODELS[name]).fit(X, y), X


@pytest.mark.parametrize("method", ["predict_interval", "predict_set", "predict_bound", "predict_quantiles"])
@pytest.mark.parametrize("name", MODELS)
def test_a_mean_that_the_training_rows_do_not_determine(name, method):
    model, X = fitted(name)
    new = X[:4].copy()
    new[2:, 2] = 2.0  # constant in the training rows
    call = getattr(model, method)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        warnings.simplefilter("ignore", ExtrapolationWarning)
        call(new, 0.8)
    (warning,) = caught
    assert "2 of 4 rows have infinite" in str(warning.message)
    assert "row 2" in str(warning.message)
    assert "=0.8" in str(warning.message)
    assert "do not determine the mean" in str(warning.message)
    assert warning.filename == __file__
    with warnings.catch_warnings(action="error"):
        call(X[:4], 0.8)


def test_a_measure_that_does_not_normalise():
    rng = np.random.default_rng(0)
    X = rng.uniform(size=(20, 1))
    options = {"kernel": "se", "mean": "linear", "tuning": "fixed", "noise_variance": 1e-6, "scale_inputs": False}
    model = ConformalGPRegressor(gamma=1.0, **options).fit(X, np.sin(9 * X[:, 0]) + 0.1 * rng.normal(size=20))
    with pytest.warns(UserWarning, match="calibration rows score as high"):
        found = model.predict_interval([[0.5], [1.3]], 0.9)
    assert np.isinf(found).any(axis=1).tolist() == [False, True]
