"""Predictive distributions as objects, and their score."""

import warnings
from itertools import pairwise

import numpy as np
import pytest
from scipy.integrate import quad

from cases import fixed_model, make_data
from conformal_gp.distributions import PredictiveDistribution

X, Y = make_data(0, 40)
NEW, LABELS = make_data(1, 6)
LEVELS = [0.1, 0.25, 0.5, 0.8, 0.95]


@pytest.fixture(scope="module")
def model():
    return fixed_model().fit(X, Y)


def integrated(y, steps):
    """The score by its definition, piece by piece."""
    ends = np.sort(np.append(steps, y))
    pieces = pairwise(ends)
    return sum(quad(lambda x: (np.mean(steps <= x) - (y <= x)) ** 2, low, high)[0] for low, high in pieces)


def test_crps_is_the_integral():
    rng = np.random.default_rng(0)
    y, steps = rng.standard_normal(8), np.sort(rng.standard_normal((8, 7)), axis=1)
    expected = [integrated(*row) for row in zip(y, steps, strict=True)]
    np.testing.assert_allclose(PredictiveDistribution(steps).crps(y), expected, rtol=1e-6)
    assert PredictiveDistribution(np.array([[3.5]])).crps([1.0]) == 2.5  # one step: the absolute error
    assert PredictiveDistribution(np.array([[0.0, np.inf]])).crps([0.0]) == np.inf


def test_the_object_says_what_the_methods_say(model):
    distribution = model.predict_distribution(NEW)
    assert distribution.steps.shape == (6, 40)
    assert len(distribution) == 6
    assert "6 rows, 40 steps" in repr(distribution)
    np.testing.assert_allclose(distribution.quantile(LEVELS), model.predict_quantiles(NEW, LEVELS), rtol=1e-12)
    np.testing.assert_allclose(distribution.quantile(0.3), model.predict_quantiles(NEW, 0.3), rtol=1e-12)
    np.testing.assert_allclose(distribution.cdf(LABELS), model.predict_cdf(NEW, LABELS))
    for levels in (0.8, [0.5, 0.9]):
        expected = model.predict_interval(NEW, levels, tails="equal")
        np.testing.assert_allclose(distribution.interval(levels), expected, rtol=1e-12)


def test_a_level_beyond_the_steps_is_infinite(model):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        expected = model.predict_quantiles(NEW, [0.001, 0.999])
    np.testing.assert_array_equal(model.predict_distribution(NEW).quantile([0.001, 0.999]), expected)


def test_fewer_steps_than_rows(model):
    few = model.predict_distribution(NEW, max_steps=19)
    quantiles = np.arange(1, 20) / 20
    np.testing.assert_allclose(few.steps, model.predict_quantiles(NEW, quantiles), rtol=1e-12)
    np.testing.assert_allclose(few.mean, model.predict_distribution(NEW).mean, atol=0.1)


@pytest.mark.parametrize("bad", [0, -1, 2.5, None])
def test_steps_are_counted(model, bad):
    with pytest.raises(ValueError, match="max_steps must be a whole number of at least 1"):
        model.predict_distribution(NEW, max_steps=bad)


def test_samples_are_steps(model):
    distribution = model.predict_distribution(NEW)
    drawn = distribution.sample(4000, random_state=0)
    assert drawn.shape == (6, 4000)
    assert all(np.isin(row, steps).all() for row, steps in zip(drawn, distribution.steps, strict=True))
    np.testing.assert_allclose(drawn.mean(axis=1), distribution.mean, atol=0.1)
    np.testing.assert_allclose(drawn.std(axis=1), distribution.std, atol=0.1)
    np.testing.assert_array_equal(drawn, distribution.sample(4000, random_state=0))


def test_labels_that_are_not_finite_are_refused(model):
    with pytest.raises(ValueError, match="y contains NaN in row 0"):
        model.predict_distribution(NEW[:1]).crps([np.nan])
