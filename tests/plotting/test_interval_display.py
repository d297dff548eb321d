"""Intervals of rows: sorted, drawn where they are, misses marked."""

import numpy as np
import pytest

from conformal_gp.plotting import IntervalDisplay


def line(display, label):
    (found,) = [drawn for drawn in display.ax_.lines if drawn.get_label() == label]
    return found


def test_rows_are_sorted_and_misses_marked(model, rows):
    X, y = rows[0][40:], rows[1][40:]
    display = IntervalDisplay.from_estimator(model, X, y, confidence_level=0.6, target_name="label")
    order = np.argsort(model.predict(X))
    intervals = model.predict_interval(X, 0.6)
    missed = (y < intervals[:, 0]) | (y > intervals[:, 1])
    assert 0 < missed.sum() < missed.size
    np.testing.assert_array_equal(display.missed_, missed)
    (bars,) = display.ax_.collections
    drawn = np.array(bars.get_segments())
    np.testing.assert_array_equal(drawn[:, 0, 0], np.arange(20))
    np.testing.assert_allclose(drawn[:, :, 1], intervals[order])
    places = np.flatnonzero(missed[order])
    np.testing.assert_array_equal(line(display, "label outside").get_xdata(), places)
    np.testing.assert_array_equal(line(display, "label outside").get_ydata(), y[order][places])
    assert line(display, "label inside").get_xdata().size == 20 - places.size
    assert line(display, "label outside").get_marker() != line(display, "label inside").get_marker()
    inside = 20 - int(missed.sum())
    assert display.ax_.get_title(loc="left") == f"60% intervals: {inside} of 20 labels inside ({inside / 20:.1%})"


def test_a_label_on_the_end_is_inside():
    display = IntervalDisplay.from_predictions([1.0, 2.0], [1.0, 2.0], [[1.0, 2.0], [1.0, 2.0]])
    assert not display.missed_.any()


def test_rows_without_labels(model, rows):
    display = IntervalDisplay.from_estimator(model, rows[0][40:], name="ours")
    assert display.ax_.get_title(loc="left") == "ours 95% intervals"
    assert {drawn.get_label() for drawn in display.ax_.lines} == {"prediction"}


def test_infinite_ends():
    intervals = [[0.0, 1.0], [-np.inf, 1.0], [0.0, np.inf], [-np.inf, np.inf]]
    display = IntervalDisplay.from_predictions([0.5] * 4, [1, 2, 3, 4], intervals, confidence_level=0.9)
    low, high = display.ax_.get_ylim()
    drawn = np.array(display.ax_.collections[0].get_segments())[:, :, 1]
    np.testing.assert_array_equal(drawn, [[0, 1], [low, 1], [0, high], [low, high]])
    up, down = (next(drawn for drawn in display.ax_.lines if drawn.get_marker() == sign) for sign in "^v")
    np.testing.assert_array_equal(up.get_xdata(), [2, 3])
    np.testing.assert_array_equal(down.get_xdata(), [1, 3])
    assert not display.missed_.any()


def test_bad_arguments(model, rows):
    with pytest.raises(ValueError, match=r"intervals must have shape \(n, 2\), got \(2, 2, 1\)"):
        IntervalDisplay.from_predictions(None, [1, 2], np.zeros((2, 2, 1)))
    with pytest.raises(ValueError, match=r"y_true must have shape \(2,\), got \(3,\)"):
        IntervalDisplay.from_predictions([1, 2, 3], [1, 2], np.zeros((2, 2)))
    with pytest.raises(ValueError, match="confidence_level must be a number"):
        IntervalDisplay.from_estimator(model, rows[0], confidence_level=[0.9, 0.95])
