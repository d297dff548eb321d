"""Coverage against level: the shares are the library's, the band is the binomial one."""

import numpy as np
import pytest
from scipy.stats import binom

from cases import fixed_model
from conformal_gp.metrics import coverage
from conformal_gp.plotting import CoverageDisplay

LEVELS = [0.5, 0.8, 0.9]


def test_shares_and_band(model, rows):
    X, y = rows[0][40:], rows[1][40:]
    display = CoverageDisplay.from_estimator(model, X, y, confidence_level=LEVELS)
    expected = coverage(y, model.predict_interval(X, LEVELS))
    np.testing.assert_allclose(display.coverage["conformal"], expected)
    line = display.lines_["conformal"]
    np.testing.assert_allclose(line.get_xdata(), [50, 80, 90])
    np.testing.assert_allclose(line.get_ydata(), 100 * expected)
    for level, (low, high) in zip(LEVELS, display.band_, strict=True):
        # each tail holds at most 2.5%, and no shorter tail would do
        assert binom.cdf(round(20 * low) - 1, 20, level) <= 0.025 <= binom.cdf(round(20 * low), 20, level)
        assert binom.sf(round(20 * high), 20, level) <= 0.025 <= binom.sf(round(20 * high) - 1, 20, level)


def test_default_levels_are_whole_percents(model, rows):
    with pytest.warns(UserWarning, match="needs at least"):
        display = CoverageDisplay.from_estimator(model, rows[0][40:], rows[1][40:])
    np.testing.assert_allclose(display.levels, np.arange(50, 100) / 100)


def test_methods_are_told_apart_without_colour(model, rows):
    X, y = rows
    other = fixed_model(noise_variance=1.0).fit(X[:40], y[:40])
    display = CoverageDisplay.from_estimator(
        {"one": model, "two": other}, X[40:], y[40:], confidence_level=LEVELS, band=0.8
    )
    one, two = display.lines_["one"], display.lines_["two"]
    assert one.get_linestyle() != two.get_linestyle()
    assert one.get_marker() != two.get_marker()
    legend = [text.get_text() for text in display.ax_.get_legend().get_texts()]
    assert legend == ["chance: 80% of samples of 20 rows", "as asked for", "one", "two"]


def test_levels_in_any_order():
    intervals = np.array([[[0, 0], [1, 3]]] * 4)
    display = CoverageDisplay.from_predictions([0.5, 2, 2, 5], intervals[:, :, ::-1], confidence_level=[0.9, 0.5])
    np.testing.assert_allclose(display.lines_["conformal"].get_xdata(), [50, 90])
    np.testing.assert_allclose(display.lines_["conformal"].get_ydata(), [25, 75])


def test_bad_arguments(model, rows):
    with pytest.raises(ValueError, match="band must lie strictly between 0 and 1, got 95"):
        CoverageDisplay.from_estimator(model, *rows, confidence_level=LEVELS, band=95)
    with pytest.raises(ValueError, match="empty mapping"):
        CoverageDisplay.from_estimator({}, *rows, confidence_level=LEVELS)
