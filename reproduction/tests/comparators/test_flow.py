"""Recalibration by a monotone flow."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.optimize import approx_fprime
from scipy.stats import norm
from sklearn.utils.estimator_checks import parametrize_with_checks

from cases import fixed_model, make_data
from reproduction.comparators.flow import FlowRecalibration, _loss_and_gradient, flow, train_flow

LEVELS = [0.9, 0.95, 0.99]


def small(**settings):
    return FlowRecalibration(**{"units": 20, "max_steps": 3000, "random_state": 0, **settings})


def calibration(seed=0, rows=40, spread=1.3):
    rng = np.random.default_rng(seed)
    mean, std = rng.normal(size=rows), rng.uniform(0.5, 2.0, rows)
    return mean, std, mean + spread * std * rng.standard_t(4, rows)


@parametrize_with_checks(
    [
        FlowRecalibration(
            fixed_model(),
            units=3,
            max_steps=5,
            calibration_size=0.5,
            random_state=0,
        )
    ]
)
def test_estimator_checks(estimator, check):
    check(estimator)


def test_two_units_worked_out_by_hand():
    parameters = np.array([[0.3, -0.5], [0.1, 0.4], [0.2, -0.7]])
    level = np.array([0.35])
    value = flow(parameters, level)
    assert_allclose(value, 0.5839183114, atol=1e-10)
    # The gradient of (N - c)² is 2 (N - c) dN: with c = N - 1/2 it is that of N.
    gradient = np.empty((3, 2))
    loss = _loss_and_gradient(parameters, level, value - 0.5, gradient)
    assert_allclose(loss, 0.25)
    assert_allclose(
        gradient, [[0.33697378, 0.06085782], [0.71324662, 0.28667879], [-0.00816618, 0.00816618]], atol=1e-8
    )


def test_one_unit_is_a_line():
    levels = np.linspace(0.0, 1.0, 7)
    assert_allclose(flow(np.array([[0.0], [0.0], [5.0]]), levels), levels, atol=1e-14)
    assert_allclose(flow(np.array([[0.7], [-0.2], [0.0]]), levels), np.exp(0.7) * levels - 0.2)


def test_gradient_is_that_of_the_loss():
    rng = np.random.default_rng(1)
    parameters, levels, scores = rng.normal(size=(3, 6)), np.linspace(0, 1, 9), np.sort(rng.normal(size=9))

    def loss(flat):
        return np.mean((flow(flat.reshape(3, 6), levels) - scores) ** 2)

    gradient = np.empty((3, 6))
    assert_allclose(_loss_and_gradient(parameters, levels, scores, gradient), loss(parameters.ravel()), rtol=1e-12)
    assert_allclose(gradient.ravel(), approx_fprime(parameters.ravel(), loss, 1e-7), atol=1e-6)


def test_the_flow_increases_and_stays_finite_however_steep_its_units_are():
    rng = np.random.default_rng(2)
    parameters = rng.normal(size=(3, 50)) * np.array([[15.0], [5.0], [5.0]])
    values = flow(parameters, np.linspace(0.0, 1.0, 1001))
    assert np.isfinite(values).all()
    assert (np.diff(values) >= -1e-12).all()
    assert values[-1] > values[0]


def test_steps_are_those_of_adam():
    """Three steps of the published recursion, on a loss whose gradient is known."""
    rng = np.random.default_rng(3)
    start, levels, scores = rng.normal(size=(3, 4)), np.linspace(0, 1, 5), np.sort(rng.normal(size=5))
    expected, first, second, gradient = start.copy(), 0.0, 0.0, np.empty((3, 4))
    for step in (1, 2, 3):
        _loss_and_gradient(expected, levels, scores, gradient)
        first = 0.9 * first + 0.1 * gradient
        second = 0.999 * second + 0.001 * gradient**2
        expected = expected - 0.01 * (first / (1 - 0.9**step)) / (np.sqrt(second / (1 - 0.999**step)) + 1e-8)
    untouched = start.copy()
    parameters, n_steps, _ = train_flow(start, levels, scores, 0.01, 3)
    assert n_steps == 3
    assert_allclose(parameters, expected, rtol=1e-12)
    assert_array_equal(start, untouched)


def test_training_ends_when_the_scores_are_met_or_progress_stalls():
    levels = np.linspace(0.0, 1.0, 20)
    start = np.array([[0.5], [0.3], [0.0]])
    _, n_steps, loss = train_flow(start, levels, levels - 0.5, 1e-2, 50_000)
    assert loss < 1e-5
    assert n_steps % 100 == 0
    # One unit is a line, and cannot meet a step: the step size is halved seven times, after three looks or more each.
    _, n_steps, loss = train_flow(start, levels, np.where(levels < 0.5, -0.5, 0.5), 1e-3, 50_000)
    assert loss > 1e-3
    assert 2100 < n_steps < 50_000


def test_normal_scores_give_gaussian_intervals():
    residuals = norm.ppf(np.arange(1, 100) / 100)
    method = small(interval="central", units=50, max_steps=20_000)
    ends = method.calibrate(np.zeros(99), np.ones(99), residuals).intervals([0.0, 10.0], [1.0, 3.0], 0.9)
    assert_allclose(np.diff(ends), [[2 * 1.6449], [6 * 1.6449]], rtol=0.03)
    assert_allclose(ends.mean(axis=1), [0.0, 10.0], atol=0.2)


def test_errors_twice_as_large_give_intervals_twice_as_wide():
    residuals = norm.ppf(np.arange(1, 60) / 60)
    single, double = (
        small(interval="central", max_steps=20_000)
        .calibrate(np.zeros(59), np.ones(59), scale * residuals)
        .intervals([0.0], [1.0], 0.8)
        for scale in (1.0, 2.0)
    )
    assert_allclose(double, 2 * single, rtol=0.1)


def test_wider_at_higher_levels_and_finite():
    ends = small().calibrate(*calibration()).intervals([0.0, 1.0], [1.0, 2.0], LEVELS)
    assert ends.shape == (2, 2, 3)
    assert np.isfinite(ends).all()
    assert (np.diff(ends[:, 1] - ends[:, 0]) > 0).all()


def test_ends_stay_within_five_standard_deviations():
    mean, std, y = calibration(spread=30.0)
    ends = small(interval="central").calibrate(mean, std, y).intervals([0.0], [1.0], 0.99)
    assert np.abs(ends).max() <= norm.isf(1e-6) + 1e-12


def test_shortest_is_no_wider_than_central():
    calibrated = [small(interval=rule).calibrate(*calibration(4)) for rule in ("shortest", "central")]
    shortest, central = (np.diff(m.intervals([0.0], [1.0], LEVELS), axis=1).ravel() for m in calibrated)
    assert (shortest <= central * (1 + 1e-3)).all()


def test_coverage_of_new_rows_is_near_nominal():
    """200 calibration rows, 4,000 new ones, errors 1.5 times the stated size: 90% within five standard errors, 11%."""
    method = small(interval="central", units=50, max_steps=10_000)
    rng = np.random.default_rng(5)
    method.calibrate(np.zeros(200), np.ones(200), 1.5 * rng.normal(size=200))
    ends = method.intervals(np.zeros(4000), np.ones(4000), 0.9)
    y = 1.5 * rng.normal(size=4000)
    assert abs(np.mean((ends[:, 0] <= y) & (y <= ends[:, 1])) - 0.9) < 0.11


def test_same_seed_same_intervals():
    ends = [small(random_state=seed).calibrate(*calibration()).intervals([0.0], [1.0], LEVELS) for seed in (1, 1, 2)]
    assert_array_equal(ends[0], ends[1])
    assert not np.allclose(ends[0], ends[2], rtol=1e-6)


def test_affine_change_of_labels():
    mean, std, y = calibration()
    plain = small().calibrate(mean, std, y).intervals(mean, std, LEVELS)
    moved = small().calibrate(8 * mean - 3, 8 * std, 8 * y - 3).intervals(8 * mean - 3, 8 * std, LEVELS)
    assert_allclose(moved, 8 * plain - 3, rtol=1e-6)


def test_fit_holds_rows_out_and_predicts():
    X, y = make_data(6, 60)
    model = small(estimator=fixed_model()).fit(X, y)
    assert model.n_steps_ == 3000
    assert_allclose(model.predict(X), model.estimator_.predict(X))
    ends = model.predict_interval(X, 0.9)
    assert ends.shape == (60, 2)
    assert (ends[:, 0] < ends[:, 1]).all()


def test_one_calibration_row_is_too_few():
    with pytest.raises(ValueError, match="at least 2"):
        small().calibrate([0.0], [1.0], [0.5])


def test_equal_scores_give_an_interval_about_them():
    ends = small(units=50, max_steps=20_000).calibrate(np.zeros(30), np.ones(30), np.full(30, 0.5))
    assert_allclose(ends.intervals([0.0], [1.0], 0.9), [[0.5, 0.5]], atol=0.2)


@pytest.mark.parametrize(
    ("setting", "value"),
    [("interval", "widest"), ("units", 0), ("max_steps", 0), ("step_size", 0.0)],
)
def test_settings_are_checked(setting, value):
    X, y = make_data(6, 20)
    with pytest.raises(ValueError, match=setting):
        FlowRecalibration(**{setting: value}).fit(X, y)
