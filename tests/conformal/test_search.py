"""Regions by search, against p-values on a dense grid."""

import numpy as np
import pytest

from conformal_gp import ConformalGPRegressor
from conformal_gp.conformal.search import TOLERANCE, enclose


@pytest.fixture(scope="module", params=[4.0, 0.0])
def model_and_rows(request):
    rng = np.random.default_rng(3)
    X = rng.uniform(-2, 2, size=(30, 2))
    y = request.param + np.sin(2.0 * X[:, 0]) + 0.2 * X[:, 1] + 0.2 * rng.normal(size=30)
    return ConformalGPRegressor(tuning="integrated").fit(X, y), rng.uniform(-2, 2, size=(3, 2))


@pytest.mark.parametrize("level", [0.3, 0.8, 0.95])
def test_dense_grid(model_and_rows, level):
    model, X_new = model_and_rows
    _, deviation = model.predict(X_new, return_std=True)
    intervals = model.predict_interval(X_new, level)
    sets = model.predict_set(X_new, level)
    for row, (ends, pieces) in enumerate(zip(intervals, sets, strict=True)):
        labels = np.linspace(ends[0] - 2.0 * deviation[row], ends[1] + 2.0 * deviation[row], 241)
        inside = model.predict_p(np.tile(X_new[row], (labels.size, 1)), labels) > 1.0 - level + 1e-12
        near = TOLERANCE * 3.0 * deviation[row]
        in_pieces = ((labels[:, None] >= pieces[:, 0]) & (labels[:, None] <= pieces[:, 1])).any(axis=1)
        at_end = (np.abs(labels[:, None] - pieces.ravel()) < near).any(axis=1)
        assert (inside == in_pieces)[~at_end].all()
        assert (in_pieces >= inside).all()  # ends are put outwards
        assert np.isclose(pieces.min(), ends[0], atol=near)
        assert np.isclose(pieces.max(), ends[1], atol=near)


def test_nested_and_around_the_prediction(model_and_rows):
    model, X_new = model_and_rows
    levels = [0.1, 0.5, 0.8, 0.9, 0.96]
    intervals = model.predict_interval(X_new, levels)
    prediction = model.predict(X_new)[:, None]
    assert (np.diff(intervals[:, 0], axis=1) <= 0.0).all()
    assert (np.diff(intervals[:, 1], axis=1) >= 0.0).all()
    assert ((intervals[:, 0] <= prediction) & (prediction <= intervals[:, 1])).all()
    assert (model.predict_p(X_new, prediction[:, 0]) == 1.0).all()


def test_distribution_functions_never_fall(model_and_rows):
    model, X_new = model_and_rows
    labels = np.linspace(-4.0, 8.0, 60)
    for row in X_new:
        values = model.predict_cdf(np.tile(row, (labels.size, 1)), labels)
        assert (np.diff(values) >= 0.0).all()
    quantiles = model.predict_quantiles(X_new, [0.1, 0.3, 0.5, 0.7, 0.9])
    assert (np.diff(quantiles, axis=1) >= 0.0).all()


def test_likelihood_ratios_of_one_change_nothing(model_and_rows):
    model, X_new = model_and_rows
    weighted = model.predict_interval(X_new, 0.8, likelihood_ratio=(np.ones(30), np.ones(3)))
    assert np.allclose(weighted, model.predict_interval(X_new, 0.8), rtol=1e-3)


def test_unbounded_only_without_enough_rows(model_and_rows):
    model, X_new = model_and_rows
    with pytest.warns(UserWarning, match="infinite"):
        intervals = model.predict_interval(X_new, 0.99)
    assert np.isinf(intervals[:, 1]).all()


def test_enclose_finds_sign_changes():
    slopes = np.array([[1.0], [10.0], [1e-3]])
    near = (np.zeros((3, 1)), np.ones((3, 1)))
    far = (np.full((3, 1), 2e3), 1.0 - 2e3 * slopes)
    inner, outer = enclose(lambda rows: lambda x: 1.0 - slopes[rows] * x, near, far, 1e-6)
    assert np.allclose(outer, 1.0 / slopes, atol=2e-6)
    assert (inner <= 1.0 / slopes).all()
    assert (outer >= 1.0 / slopes).all()
    near = (np.zeros((1, 1)), np.full((1, 1), np.inf))
    far = (np.ones((1, 1)), np.full((1, 1), -np.inf))
    inner, outer = enclose(lambda rows: lambda x: np.where(x < 0.3, np.inf, -np.inf), near, far, 1e-6)
    assert np.isclose(outer[0, 0], 0.3, atol=1e-6)
