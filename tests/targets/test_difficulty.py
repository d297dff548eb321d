"""Widths that follow the difficulty, transformations and bounds that tuning rows choose: exact all the same."""

import numpy as np
import pytest
from sklearn.base import BaseEstimator, RegressorMixin
from sklearn.neighbors import KNeighborsRegressor

from conformal_gp import ConformalGPRegressor
from conformal_gp.conformal.lines import normalised_residual_lines
from conformal_gp.rows import Rows
from conformal_gp.targets.difficulty import Spread
from conformal_gp.targets.target import Bounds

N_TUNING = 200


def skewed(seed, n):
    """Positive labels whose skewed noise grows with an input, many of them 0."""
    rng = np.random.default_rng(seed)
    X = rng.uniform(-1, 1, size=(n, 2))
    y = np.exp(X[:, 0]) + (1.2 + X[:, 1]) ** 4 * (rng.exponential(size=n) - 0.7)
    return X, np.maximum(y, 0.0)


def fitted(kind, X, y, **options):
    options = {"n_restarts": 0, "random_state": 0, "tuning_rows": np.arange(N_TUNING)} | options
    if kind == "exact":
        return ConformalGPRegressor(tuning="holdout", **options).fit(X, y)
    return ConformalGPRegressor(low_rank=20, **options).fit(X, y)


@pytest.mark.parametrize(("kind", "outside"), [("exact", 0), ("exact", 1), ("low rank", 1), ("exact", 2)])
def test_a_label_is_in_the_region_exactly_when_its_p_value_says_so(kind, outside):
    X, y = skewed(2, N_TUNING + 39)
    y[N_TUNING : N_TUNING + outside] = -3.0  # the bounds that tuning rows suggest are wrong
    # the likeliest transformation would leave next to nothing of regions below 0
    model = fitted(kind, X, y, target_transform="auto" if outside == 0 else None)
    rng = np.random.default_rng(3)
    new = rng.uniform(-1, 1, size=(5, 2))
    assert model.y_bounds_ == (0.0, np.inf)
    prediction = model.predict(new)[:, None]
    low, high = np.split(model.predict_interval(new, [0.02, 0.2, 0.5, 0.9]), 2, axis=1)
    assert ((low[:, 0] <= prediction) & (prediction <= high[:, 0])).all()
    for level in (0.5, 0.9):
        regions, hulls = model.predict_set(new, level), model.predict_interval(new, level)
        upper, lower = model.predict_bound(new, level), model.predict_bound(new, level, side="lower")
        np.testing.assert_array_equal(hulls, [[region[0, 0], region[-1, 1]] for region in regions])
        for y_new in (*rng.uniform(-6.0, 12.0, size=25), -1e-9, 0.0):
            labels = np.full(5, y_new)
            inside = np.array([((region[:, 0] <= y_new) & (y_new <= region[:, 1])).any() for region in regions])
            np.testing.assert_array_equal(model.predict_p(new, labels) > 1 - level + 1e-12, inside)
            cdf, one = model.predict_cdf(new, labels), 0.5 / 40
            np.testing.assert_array_equal((cdf < level - one + 1e-12) | (y_new <= upper), y_new <= upper)
            np.testing.assert_array_equal((cdf > 1 - level + one - 1e-12) | (y_new >= lower), y_new >= lower)
    assert all((region >= 0.0).all() for region in regions) == (outside == 0)


def test_lines_with_location_and_scale_are_the_scores_of_the_definition():
    rng = np.random.default_rng(5)
    A = rng.standard_normal((9, 9))
    A = A @ A.T + np.eye(9)
    y, c, g = rng.standard_normal(9), rng.standard_normal(9), rng.uniform(0.3, 3.0, 9)
    P = np.linalg.inv(A[:-1, :-1])
    v = P @ A[:-1, -1]
    s = np.array([A[-1, -1] - v @ A[:-1, -1]])
    lines = normalised_residual_lines(P @ y[:-1], np.diag(P), v[None], np.array([v @ y[:-1]]), s, 2.0)
    lines = lines.normalised(Spread(c[:-1], g[:-1]), Spread(c[-1:], g[-1:]), s)
    M = np.linalg.inv(A)
    for label in rng.standard_normal(20):
        e = M @ np.append(y[:-1], label) / np.sqrt(np.diag(M))
        scores = np.abs(e - c) / g
        t = label - lines.centre[0]
        unit = np.sqrt(s[0]) * g[-1]
        np.testing.assert_allclose(np.abs(lines.offset[0] + lines.slope[0] * t) / unit, scores[:-1], atol=1e-10)
        np.testing.assert_allclose(np.abs(t) / unit, scores[-1], atol=1e-10)


def test_a_test_row_of_unknown_mean_has_the_whole_line_with_a_difficulty_too():
    X, y = skewed(6, N_TUNING + 39)
    X = np.column_stack([X, np.zeros(len(X))])
    model = fitted("exact", X, y, mean="linear", difficulty=KNeighborsRegressor(5), y_bounds=None)
    assert np.isinf(model.predict_interval([[0.0, 0.0, 1.0]], 0.9)).all()
    assert model.predict_cdf([[0.0, 0.0, 1.0]], [100.0]) == 0.5


def test_widths_follow_noise_and_sides_follow_skewness():
    X, y = skewed(7, 700)
    model = ConformalGPRegressor(random_state=0, target_transform=None, y_bounds=None).fit(X, y)
    quiet, noisy = np.diff(model.predict_interval([[0.0, -0.9], [0.0, 0.9]], 0.9))[:, 0]
    assert noisy > 2.0 * quiet
    (low, high), centre = model.predict_interval([[0.0, 0.9]], 0.9)[0], model.predict([[0.0, 0.9]])[0]
    mean = model._answers.model.moments(Rows(np.array([[0.0, 0.9]])))[0][0]
    assert high - mean > 1.1 * (mean - low)
    assert mean < centre < high
    assert model.difficulty_ is not None
    gamma = ConformalGPRegressor(random_state=0, target_transform=None, y_bounds=None, gamma=np.inf).fit(X, y)
    assert np.diff(gamma.predict_interval([[0.0, -0.9]], 0.9))[0] < noisy  # by scale only


def test_even_noise_has_no_difficulty_and_own_regressors_are_used_without_asking():
    rng = np.random.default_rng(8)
    X = rng.uniform(-1, 1, size=(400, 2))
    y = np.sin(3 * X[:, 0]) + 0.2 * rng.standard_normal(400)
    even = ConformalGPRegressor(tuning="holdout", n_restarts=0, random_state=0)
    assert even.fit(X, y).difficulty_ is None
    model = even.set_params(difficulty=KNeighborsRegressor(50)).fit(X, y)
    assert isinstance(model.difficulty_, KNeighborsRegressor)


@pytest.mark.parametrize(
    ("y", "bounds"),
    [
        (np.arange(1.0, 60.0), Bounds(0.0, np.inf)),
        (-np.arange(1.0, 60.0), Bounds(-np.inf, 0.0)),
        (np.arange(60.0) - 30.0, None),
        (np.clip(np.arange(60.0), 20.0, 50.0), Bounds(20.0, 50.0)),
        (np.repeat([-2.0, -1.0, 0.0, 1.0], [6, 20, 20, 6]), None),  # tails of rounded values
        (np.repeat([18.0, 19.0, 20.0], [6, 20, 20]), Bounds(0.0, np.inf)),
        (np.arange(20.0), None),  # too few to tell
        (np.zeros(60), None),
    ],
)
def test_bounds_that_labels_suggest(y, bounds):
    assert Bounds.suggested(y) == bounds


def test_scales_differ_no_more_than_bounded_sets_allow():
    """With next to no noise residuals of neighbours are nearly equal far out: a ratio of scales would leave rays."""

    def stress(X):
        height, length, width = (X * [4.875, 9.9, 9.9, 4.875] + [0.125, 0.1, 0.1, 0.125])[:, :3].T
        moment = 6000.0 * (14.0 + length / 2.0)
        radius = np.sqrt(length**2 / 4.0 + ((height + width) / 2.0) ** 2)
        inertia = 2.0 * np.sqrt(2.0) * height * length * (length**2 / 12.0 + ((height + width) / 2.0) ** 2)
        primary = 6000.0 / (np.sqrt(2.0) * height * length)
        secondary = moment * radius / inertia
        return np.sqrt(primary**2 + primary * secondary * length / radius + secondary**2)

    for seed in (0, 3):
        rng = np.random.default_rng(seed)
        X = rng.uniform(size=(1160, 4))
        y = stress(X)
        model = ConformalGPRegressor(tuning="holdout", noise_variance=(None, 0)[seed % 2], tuning_rows=121)
        model.set_params(random_state=seed).fit(X[:160], y[:160])
        assert np.isfinite(model.predict_interval(X[160:], [0.9, 0.95, 0.974])).all()


class Constant(RegressorMixin, BaseEstimator):
    """A regressor that predicts the same array, whatever it was fitted to."""

    def __init__(self, predict_one):
        self.predict_one = predict_one

    def fit(self, X, y):
        return self

    def predict(self, X):
        return self.predict_one(len(X))


@pytest.mark.parametrize(
    "predict_one",
    [lambda n: np.full(n, np.nan), lambda n: np.full(n, np.inf), lambda n: np.ones(n + 1), lambda n: None],
)
def test_a_difficulty_that_predicts_no_numbers(predict_one):
    X, y = skewed(0, N_TUNING + 19)
    with pytest.raises(ValueError, match=r"^difficulty must predict one finite number for each of \d+ rows"):
        fitted("exact", X, y, difficulty=Constant(predict_one)).predict_interval(X[:2], 0.8)
