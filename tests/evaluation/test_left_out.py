"""Leave-one-out predictions in closed form are those of a model of the other rows, made again."""

from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from sklearn.tree import DecisionTreeRegressor

from cases import fixed_model
from conformal_gp import ConformalGPRegressor
from conformal_gp.evaluation import leave_one_out
from conformal_gp.models.tuned import fitted
from conformal_gp.rows import ArrayRows

LEVEL = 0.8


def made_again(model, row, others):
    """Prediction, standard deviation and interval of a row by a model of the others, nothing learnt again."""
    tuned, rows, y = model._tuned, model._source.rows, model._source.y
    tuning_rows = tuned.tuning_rows - (tuned.tuning_rows > row)
    learning = tuned.learning - (tuned.learning > row)
    tuned = replace(tuned, tuning_rows=tuning_rows, learning=learning)
    known = None if rows.y_variance is None else rows.y_variance[others]
    answers = fitted(tuned, ArrayRows(rows.X[others], y[others], known, 1), 1).answers
    new = rows.take([row])
    ends = answers.about(new).intervals([Fraction(4, 5)])[0, :, 0]
    return [answers.predict(new)[0], answers.standard_deviation(new)[0], *ends]


CASES = {
    "draws from the prior": (8, {}, False),
    "a chain": (30, {}, True),
    "a chain without noise": (25, {"noise_variance": 0}, False),
    "tuned": (40, {"tuning": "holdout", "mean": "linear"}, True),
    "gamma": (20, {"tuning": "fixed", "noise_variance": 0.01, "gamma": 1.0}, False),
    "given coefficients": (20, {"tuning": "fixed", "noise_variance": 0.01, "mean": "zero"}, False),
}


@pytest.mark.parametrize("case", CASES)
def test_equal_to_models_of_the_other_rows(case):
    n_rows, options, positive = CASES[case]
    rng = np.random.default_rng(0)
    X = rng.uniform(size=(n_rows, 2))
    y = np.sin(5 * X[:, 0]) + X[:, 1] + 0.05 * rng.standard_normal(n_rows)
    if positive:
        y = np.exp(y)
    model = ConformalGPRegressor(random_state=0, n_restarts=0, **options).fit(X, y)
    found = leave_one_out(model, LEVEL)
    np.testing.assert_array_equal(found.rows, np.setdiff1d(np.arange(n_rows), model.tuning_rows_))
    np.testing.assert_array_equal(found.y, y[found.rows])
    got = np.column_stack([found.prediction, found.std, found.intervals])
    for row, values in list(zip(found.rows, got, strict=True))[::5]:
        expected = made_again(model, row, np.delete(np.arange(n_rows), row))
        np.testing.assert_allclose(values, expected, rtol=1e-5, atol=1e-6 * y.std())


def test_known_noise_and_difficulty():
    rng = np.random.default_rng(1)
    X = rng.uniform(size=(160, 1))
    y = X[:, 0] + (0.02 + X[:, 0]) * rng.standard_normal(160)
    options = {"tuning": "holdout", "difficulty": DecisionTreeRegressor(max_depth=2), "n_restarts": 0}
    model = ConformalGPRegressor(random_state=0, **options).fit(X[:80], y[:80])
    noisy = ConformalGPRegressor(random_state=0).fit(X[:20], y[:20], y_variance=0.1 + X[:20, 0])
    for each in (model, noisy):
        found = leave_one_out(each, LEVEL)
        for place in (0, 7):
            expected = made_again(each, found.rows[place], np.delete(np.arange(each._source.n_rows), found.rows[place]))
            got = [found.prediction[place], found.std[place], *found.intervals[place]]
            np.testing.assert_allclose(got, expected, rtol=1e-6, atol=1e-8)


def test_rows_that_alone_determine_a_coefficient():
    X = np.column_stack([np.linspace(0, 1, 12), np.arange(12) == 5])
    y = X[:, 0] ** 2
    options = {"mean": "linear", "noise_variance": 0.01, "scale_inputs": False}
    found = leave_one_out(ConformalGPRegressor("se", tuning="fixed", **options).fit(X, y), LEVEL)
    assert np.isinf(found.std[5])
    np.testing.assert_array_equal(found.intervals[5], [-np.inf, np.inf])
    assert found.residual[5] == 0.0
    assert np.isfinite(np.delete(found.intervals, 5, axis=0)).all()


def test_groups_are_compared_with_their_own_rows():
    rng = np.random.default_rng(2)
    X = rng.uniform(size=(40, 1))
    noisy = np.arange(40) % 2 == 1
    y = X[:, 0] + np.where(noisy, 1.0, 0.01) * rng.standard_normal(40)
    found = leave_one_out(fixed_model().fit(X, y, groups=noisy), LEVEL)
    width = found.intervals[:, 1] - found.intervals[:, 0]
    assert width[noisy].min() > 5 * width[~noisy].max()


@pytest.mark.parametrize("tuning", ["integrated", "fixed"])
def test_intervals_cover_the_share_that_their_ranks_say(tuning):
    rng = np.random.default_rng(3)
    X = rng.uniform(size=(24, 1))
    y = rng.standard_normal(24)
    options = {} if tuning == "integrated" else {"kernel": "se", "noise_variance": 0.5}
    found = leave_one_out(ConformalGPRegressor(tuning=tuning, random_state=0, **options).fit(X, y), LEVEL)
    inside = (found.intervals[:, 0] <= y) & (y <= found.intervals[:, 1])
    # four of 24 rows have a p-value of at most 0.2; the hull of a set may hold one more
    assert 20 <= inside.sum() <= 21


def test_a_low_rank_model_is_refused():
    rng = np.random.default_rng(4)
    X = rng.uniform(size=(80, 1))
    model = ConformalGPRegressor(tuning="holdout", low_rank=10, n_restarts=0, random_state=0).fit(X, X[:, 0] ** 2)
    with pytest.raises(ValueError, match=r"model must be an exact GP.* low-rank; use cross_validate_intervals"):
        leave_one_out(model)
