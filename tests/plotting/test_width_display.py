"""Boxplots of widths: boxes at quartiles, whiskers at deciles."""

import numpy as np
import pytest

from conformal_gp.plotting import WidthDisplay


def intervals_of(*columns):
    widths = np.column_stack(columns)
    return np.stack([np.zeros_like(widths), widths], axis=1)


def test_boxes_are_quartiles_and_whiskers_deciles(model, rows):
    X = rows[0][40:]
    display = WidthDisplay.from_estimator(model, X, confidence_level=[0.8, 0.9], target_name="label")
    intervals = model.predict_interval(X, [0.8, 0.9])
    widths = intervals[:, 1] - intervals[:, 0]
    for k, box in enumerate(display.boxes_["conformal"]):
        heights = box.get_path().vertices[:, 1]
        np.testing.assert_allclose([heights.min(), heights.max()], np.quantile(widths[:, k], [0.25, 0.75]))
    drawn = {float(y) for line in display.ax_.lines for y in np.ravel(line.get_ydata())}
    for share in (0.1, 0.5, 0.9):
        for value in np.quantile(widths, share, axis=0):
            assert any(np.isclose(value, y) for y in drawn)
    assert [text.get_text() for text in display.ax_.get_xticklabels()] == ["80%", "90%"]
    assert display.ax_.get_ylabel() == "width of intervals for label"
    assert display.ax_.get_ylim()[0] == 0


def test_methods_have_one_legend_entry_and_their_own_hatch():
    ends = intervals_of(np.arange(11.0), np.arange(11.0))
    names = [f"gamma {gamma}" for gamma in (1, 2, 3, 4, 8, "∞")]
    display = WidthDisplay.from_predictions(dict.fromkeys(names, ends), confidence_level=[0.9, 0.95])
    assert [text.get_text() for text in display.ax_.get_legend().get_texts()] == names
    assert len({display.boxes_[name][0].get_hatch() for name in names}) == 6
    assert len({display.boxes_[name][0].get_facecolor() for name in names}) == 6


def test_infinite_widths():
    some = np.arange(1.0, 12.0)
    some[-2:] = np.inf  # the upper decile is infinite, the quartile is not
    display = WidthDisplay.from_predictions(intervals_of(some, np.full(11, np.inf)), confidence_level=[0.9, 0.99])
    np.testing.assert_array_equal(display.quantiles_["conformal"][:, 0], [2, 3.5, 6, 8.5, np.inf])
    assert np.isinf(display.quantiles_["conformal"][:, 1]).all()
    (arrows,) = [line for line in display.ax_.lines if line.get_marker() == "^"]
    assert list(arrows.get_xdata()) == [0, 2]
    assert set(arrows.get_ydata()) == {display.ax_.get_ylim()[1]}
    assert all(np.isfinite(line.get_ydata()).all() for line in display.ax_.lines)


def test_shape_is_checked():
    with pytest.raises(ValueError, match="intervals must have shape"):
        WidthDisplay.from_predictions(np.zeros((5, 2, 3)), confidence_level=[0.9, 0.95])
