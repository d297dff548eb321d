"""Split conformal prediction, predictive systems, isotonic and flow recalibration: by hand, crepes, scikit-learn."""

from fractions import Fraction

import numpy as np
import pytest
from rows import calibration, fixed_model, make_data
from scipy.optimize import approx_fprime
from scipy.stats import beta, norm
from sklearn.isotonic import IsotonicRegression

from reproduction.comparators import FlowRecalibration, IsotonicRecalibration, SplitConformal, SplitPredictiveSystem
from reproduction.comparators.flow import flow, loss_and_gradient, train_flow
from reproduction.comparators.isotonic import extended_scores, shortest_levels
from reproduction.comparators.split import calibration_rows

INF = np.inf
LEVELS = [0.5, 0.8, 0.9]


def calibrated(method, scores):
    """A method calibrated on standardised errors."""
    scores = np.asarray(scores, dtype=float)
    return method.calibrate(np.zeros(scores.size), np.ones(scores.size), scores)


@pytest.mark.parametrize(
    ("rows", "share", "held_out"), [(150, 0.25, 38), (455, 0.25, 114), (3, 0.25, 1), (10, 0.99, 9)]
)
def test_rows_held_out(rows, share, held_out):
    assert calibration_rows(rows, share, 0).sum() == held_out


def test_fit_is_a_base_model_and_a_calibration():
    X, y = make_data(1, 40)
    new, _ = make_data(2, 6)
    base = fixed_model()
    model = SplitConformal(base, calibration_size=0.5, random_state=3).fit(X, y)
    held_out = calibration_rows(40, 0.5, 3)
    by_hand = SplitConformal()
    by_hand.calibrate(*base.fit(X[~held_out], y[~held_out]).predict(X[held_out], return_std=True), y[held_out])
    expected = by_hand.intervals(*base.predict(new, return_std=True), LEVELS)
    np.testing.assert_allclose(model.predict_interval(new, LEVELS), expected, rtol=1e-12)


def test_bad_calibration_rows_are_named():
    with pytest.raises(ValueError, match="std must be positive in every calibration row, got 0"):
        SplitConformal().calibrate([0.0, 1.0], [1.0, 0.0], [0.0, 1.0])
    with pytest.raises(ValueError, match="inconsistent numbers of samples"):
        SplitConformal().calibrate([0.0, 1.0], [1.0, 1.0], [0.0])
    with pytest.raises(ValueError, match="at least 2"):
        calibrated(IsotonicRecalibration(), [0.3])


@pytest.mark.parametrize(
    ("q", "level", "r"),
    [(9, 0.9, 9), (8, 0.9, None), (19, 0.9, 18), (99, 0.99, 99), (98, 0.99, None), (499, 0.9, 450)],
)
def test_ranks_of_split_conformal(q, level, r):
    y = np.random.default_rng(0).permutation(np.arange(1.0, q + 1)) * np.where(np.arange(q) % 2, 1, -1)
    half = INF if r is None else r
    found = calibrated(SplitConformal(), y).intervals([1.0], [1.0], level)
    np.testing.assert_array_equal(found, [[1 - half, 1 + half]])


@pytest.mark.parametrize("gamma", [1.0, 2.0, INF])
def test_scores_are_divided_by_a_root_of_the_variance(gamma):
    mean, std, y = calibration(1, 19)
    model = SplitConformal(gamma=gamma).calibrate(mean, std, y)
    half = np.sort(np.abs(y - mean) / (std**2) ** (1 / gamma))[17] * 9.0 ** (1 / gamma)
    np.testing.assert_allclose(model.intervals([2.0], [3.0], 0.9), [[2 - half, 2 + half]])


def test_an_infinite_interval_at_no_standard_deviation():
    found = calibrated(SplitConformal(), np.arange(5)).intervals([1.0], [0.0], [0.5, 0.9])
    np.testing.assert_array_equal(found, [[[1.0, -INF], [1.0, INF]]])


@pytest.mark.parametrize(
    ("q", "level", "k"), [(114, 0.9, 5), (114, 0.95, 2), (47, 0.95, 1), (38, 0.95, 0), (59, 0.9, 3), (199, 0.99, 1)]
)
def test_ranks_of_predictive_systems(q, level, k):
    found = calibrated(SplitPredictiveSystem(), np.arange(1, q + 1)).intervals([0.0], [1.0], level)[0]
    np.testing.assert_array_equal(found, [k, q + 1 - k] if k else [-INF, INF])


@pytest.mark.parametrize("q", [37, 38, 88, 115])  # crepes takes floors of floats: not where δ (q + 1) is whole
@pytest.mark.filterwarnings("ignore:the no. of calibration examples:UserWarning")
def test_both_equal_crepes(q):
    crepes = pytest.importorskip("crepes", reason="crepes is not installed")
    mean, std, y = calibration(q, q)
    test_mean, test_std, _ = calibration(1, 7)
    theirs = crepes.ConformalRegressor(), crepes.ConformalPredictiveSystem()
    for ours, their in zip((SplitConformal(), SplitPredictiveSystem()), theirs, strict=True):
        ours.calibrate(mean, std, y)
        their.fit(y - mean, sigmas=std)
        for level in (0.8, 0.9, 0.95):
            found = their.predict_int(test_mean, sigmas=test_std, confidence=level)
            np.testing.assert_allclose(ours.intervals(test_mean, test_std, level), found, rtol=1e-12)


def test_calibrated_errors_leave_the_gaussian_interval_as_it_is():
    model = calibrated(IsotonicRecalibration(), norm.ppf(np.arange(1, 500) / 500))
    expected = 10 + 2 * norm.ppf(np.array([[0.25, 0.1, 0.05], [0.75, 0.9, 0.95]]))
    np.testing.assert_allclose(model.intervals([10.0], [2.0], LEVELS)[0], expected, atol=0.03)


def test_doubled_errors_double_the_width():
    errors = np.random.default_rng(0).normal(size=400)
    single, double = (calibrated(IsotonicRecalibration(), f * errors).intervals([0.0], [1.0], LEVELS) for f in (1, 2))
    np.testing.assert_allclose(np.ptp(double, axis=1) / np.ptp(single, axis=1), 2.0, rtol=0.02)


def test_errors_beyond_the_resolution_of_the_normal_distribution():
    model = calibrated(IsotonicRecalibration(), np.concatenate([[-60.0, 60.0], norm.ppf(np.arange(1, 41) / 41)]))
    found = model.intervals([0.0], [1.0], [0.5, 0.99])
    assert (found[:, 0] < found[:, 1]).all()
    assert np.abs(found).max() <= norm.isf(1e-6) + 1e-12


def test_the_map_is_scikit_learns_isotonic_regression():
    rng = np.random.default_rng(2)
    errors = rng.normal(size=60)
    model = calibrated(IsotonicRecalibration(), errors)
    levels = norm.cdf(errors)
    shares = (levels[:, None] >= levels).sum(axis=1) / 61
    theirs = IsotonicRegression().fit(levels, shares)
    u = rng.uniform(levels.min(), levels.max(), size=200)
    np.testing.assert_allclose(np.interp(u, model.levels_, model.shares_), theirs.predict(u), atol=1e-12)


def test_scores_are_extended_by_their_mean_gap():
    scores = np.array([3.0, -1.0, 0.0, 0.0])
    np.testing.assert_allclose(extended_scores(scores), [-1 - 4 / 3, -1, 0, 0, 3, 3 + 4 / 3])


@pytest.mark.parametrize("delta", [Fraction(1, 10), Fraction(1, 100)])
def test_the_shortest_interval_has_equal_densities_at_its_ends(delta):
    low, high = shortest_levels(beta(2, 5).ppf, delta)
    assert high - low == pytest.approx(float(1 - delta), abs=1e-15)
    densities = beta(2, 5).pdf(beta(2, 5).ppf([low, high]))
    assert densities[0] == pytest.approx(densities[1], rel=0.01)
    assert shortest_levels(np.sqrt, delta)[1] <= 1.0


def small_flow(**settings):
    return FlowRecalibration(**{"units": 20, "max_steps": 3000, "random_state": 0, **settings})


def test_two_units_of_a_flow_by_hand():
    parameters, level = np.array([[0.3, -0.5], [0.1, 0.4], [0.2, -0.7]]), np.array([0.35])
    value = flow(parameters, level)
    np.testing.assert_allclose(value, 0.5839183114, atol=1e-10)
    # The gradient of (N - c)² is 2 (N - c) dN: with c = N - 1/2 it is that of N.
    loss, gradient = loss_and_gradient(parameters, level, value - 0.5)
    assert loss == pytest.approx(0.25)
    expected = [[0.33697378, 0.06085782], [0.71324662, 0.28667879], [-0.00816618, 0.00816618]]
    np.testing.assert_allclose(gradient, expected, atol=1e-8)


def test_the_gradient_is_that_of_the_loss():
    rng = np.random.default_rng(1)
    parameters, levels, scores = rng.normal(size=(3, 6)), np.linspace(0, 1, 9), np.sort(rng.normal(size=9))

    def loss(flat):
        return np.mean((flow(flat.reshape(3, 6), levels) - scores) ** 2)

    value, gradient = loss_and_gradient(parameters, levels, scores)
    assert value == pytest.approx(loss(parameters.ravel()), rel=1e-12)
    np.testing.assert_allclose(gradient.ravel(), approx_fprime(parameters.ravel(), loss, 1e-7), atol=1e-6)


def test_a_flow_increases_and_stays_finite_however_steep_its_units_are():
    parameters = np.random.default_rng(2).normal(size=(3, 50)) * np.array([[15.0], [5.0], [5.0]])
    values = flow(parameters, np.linspace(0.0, 1.0, 1001))
    assert np.isfinite(values).all()
    assert (np.diff(values) >= -1e-12).all()


def test_steps_are_those_of_adam():
    """Three steps of the published recursion, on a loss whose gradient is known."""
    rng = np.random.default_rng(3)
    start, levels, scores = rng.normal(size=(3, 4)), np.linspace(0, 1, 5), np.sort(rng.normal(size=5))
    expected, first, second = start.copy(), 0.0, 0.0
    for step in (1, 2, 3):
        gradient = loss_and_gradient(expected, levels, scores)[1]
        first = 0.9 * first + 0.1 * gradient
        second = 0.999 * second + 0.001 * gradient**2
        expected = expected - 0.01 * (first / (1 - 0.9**step)) / (np.sqrt(second / (1 - 0.999**step)) + 1e-8)
    parameters, n_steps, _ = train_flow(start, levels, scores, 0.01, 3)
    assert n_steps == 3
    np.testing.assert_allclose(parameters, expected, rtol=1e-12)


def test_training_ends_when_the_scores_are_met_or_progress_stalls():
    levels, start = np.linspace(0.0, 1.0, 20), np.array([[0.5], [0.3], [0.0]])
    _, n_steps, loss = train_flow(start, levels, levels - 0.5, 1e-2, 50_000)
    assert loss < 1e-5
    assert n_steps % 100 == 0
    # One unit is a line, and cannot meet a step: the step size is halved seven times, after three looks or more each.
    _, n_steps, loss = train_flow(start, levels, np.where(levels < 0.5, -0.5, 0.5), 1e-3, 50_000)
    assert loss > 1e-3
    assert 2100 < n_steps < 50_000


def test_a_flow_learns_the_size_of_errors():
    residuals = norm.ppf(np.arange(1, 60) / 60)
    single, double = (
        np.diff(calibrated(small_flow(units=50, max_steps=10_000), f * residuals).intervals([0.0], [1.0], 0.8))
        for f in (1.0, 2.0)
    )
    assert single == pytest.approx(2 * 1.2816, rel=0.1)
    assert double == pytest.approx(2 * single, rel=0.15)


def test_a_flow_follows_its_seed_and_the_units_of_labels():
    mean, std, y = calibration()
    first, again, other = (
        small_flow(random_state=seed).calibrate(mean, std, y).intervals(mean, std, LEVELS) for seed in (1, 1, 2)
    )
    np.testing.assert_array_equal(first, again)
    assert not np.allclose(first, other, rtol=1e-6)
    method = small_flow(random_state=1).calibrate(8 * mean - 3, 8 * std, 8 * y - 3)
    np.testing.assert_allclose(method.intervals(8 * mean - 3, 8 * std, LEVELS), 8 * first - 3, rtol=1e-5)
