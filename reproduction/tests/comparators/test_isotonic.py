"""Isotonic recalibration: sanity values, ends, and scikit-learn's isotonic regression."""

import numpy as np
import pytest
from scipy.stats import norm
from sklearn.isotonic import IsotonicRegression

from reproduction.comparators import IsotonicRecalibration

LEVELS = [0.5, 0.8, 0.9]
FARTHEST = norm.ppf(1 - 1e-6)


def calibrated(errors, **options):
    """A method calibrated on standardised errors."""
    errors = np.asarray(errors, dtype=float)
    return IsotonicRecalibration(**options).calibrate(np.zeros(errors.size), np.ones(errors.size), errors)


def perfect(q):
    """Errors whose levels are j / (q + 1) exactly, up to rounding."""
    return norm.ppf(np.arange(1, q + 1) / (q + 1))


def test_calibrated_errors_leave_the_gaussian_interval_as_it_is():
    model = calibrated(perfect(99), interval="central")
    expected = 10 + 2 * norm.ppf(np.array([[0.25, 0.1, 0.05], [0.75, 0.9, 0.95]]))
    np.testing.assert_allclose(model.intervals([10.0], [2.0], LEVELS)[0], expected, rtol=1e-12)


def test_the_shortest_of_gaussian_intervals_is_the_central_one():
    central, shortest = (calibrated(perfect(499), interval=rule) for rule in ("central", "shortest"))
    expected = central.intervals([0.0], [1.0], LEVELS)
    np.testing.assert_allclose(shortest.intervals([0.0], [1.0], LEVELS), expected, atol=0.02)


@pytest.mark.parametrize("interval", ["central", "shortest"])
def test_doubled_errors_double_the_width(interval):
    errors = np.random.default_rng(0).normal(size=400)
    single, double = (calibrated(f * errors, interval=interval).intervals([0.0], [1.0], LEVELS) for f in (1, 2))
    np.testing.assert_allclose(np.ptp(double, axis=1) / np.ptp(single, axis=1), 2.0, rtol=0.02)


def test_extended_ends_by_hand():
    model = calibrated(norm.ppf([0.2, 0.3, 0.7, 0.6]), interval="central")
    gap = 0.5 / 3
    points = np.array([0.2 - gap, 0.2, 0.3, 0.6, 0.7, 0.7 + gap])
    index = np.array([0.05, 0.95]) * 5
    expected = norm.ppf(np.interp(index, np.arange(6), points))
    np.testing.assert_allclose(model.intervals([0.0], [1.0], 0.9)[0], expected, rtol=1e-12)


def test_extended_ends_are_finite_and_clipped_after_interpolation():
    levels = np.linspace(0.004, 0.996, 38)  # the mean gap is larger than what is left outside
    model = calibrated(norm.ppf(levels), interval="central")
    gap = (levels[-1] - levels[0]) / 37
    at = levels[0] - (1 - 0.005 * 39) * gap
    assert at < 0
    np.testing.assert_allclose(model.intervals([0.0], [1.0], 0.99)[0], [-FARTHEST, FARTHEST])
    inner = levels[0] - (1 - 0.025 * 39) * gap  # between the last row and the point added
    assert 0 < inner < levels[0]
    assert model.intervals([0.0], [1.0], 0.95)[0, 0] == pytest.approx(norm.ppf(inner), rel=1e-9)


@pytest.mark.parametrize("interval", ["central", "shortest"])
def test_errors_beyond_the_resolution_of_the_normal_distribution(interval):
    model = calibrated(np.concatenate([[-60.0, 60.0], perfect(40)]), interval=interval)
    found = model.intervals([0.0], [1.0], [0.5, 0.9])
    assert np.isfinite(found).all()
    assert (found[:, 0] < found[:, 1]).all()


def test_ties_are_no_trouble():
    model = calibrated(np.repeat([-1.0, 0.0, 2.0], 10), interval="central")
    found = model.intervals([0.0], [1.0], [0.2, 0.5, 0.8])[0]
    assert np.isfinite(found).all()
    assert (np.diff(found[0]) <= 0).all()
    assert (np.diff(found[1]) >= 0).all()


def test_the_map_is_scikit_learns_isotonic_regression():
    rng = np.random.default_rng(2)
    errors = rng.normal(size=60)
    model = calibrated(errors)
    levels = norm.cdf(errors)
    shares = (levels[:, None] >= levels).sum(axis=1) / 61
    theirs = IsotonicRegression().fit(levels, shares)
    u = rng.uniform(levels.min(), levels.max(), size=200)
    np.testing.assert_allclose(np.interp(u, model.levels_, model.shares_), theirs.predict(u), atol=1e-12)
    inside = np.linspace(1 / 61, 60 / 61, 77)  # and its inverse gives back the level
    np.testing.assert_allclose(theirs.predict(norm.cdf(model._quantile(inside))), inside, atol=1e-9)


def test_shortest_is_no_wider_than_central():
    rng = np.random.default_rng(3)
    for _ in range(20):
        errors = rng.gamma(2.0, size=50) - 1.5
        widths = [
            np.ptp(calibrated(errors, interval=rule).intervals([0.0], [1.0], 0.9)) for rule in ("shortest", "central")
        ]
        assert widths[0] <= widths[1] * (1 + 1e-3)


def test_at_least_two_calibration_rows():
    with pytest.raises(ValueError, match="at least 2"):
        calibrated([0.3])
