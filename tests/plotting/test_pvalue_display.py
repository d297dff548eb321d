"""The p-value profile of one row: the curve is the library's, the bars are its regions."""

import numpy as np
import pandas as pd
import pytest

from cases import fixed_model
from conformal_gp.plotting import PValueDisplay

LEVELS = [0.5, 0.8, 0.9]


@pytest.mark.parametrize("gamma", [1.0, 2.0, np.inf])
def test_curve_and_regions_agree(rows, gamma):
    X, y = rows
    model = fixed_model(gamma=gamma).fit(X[:40], y[:40])
    display = PValueDisplay.from_estimator(model, X[41], y[41], confidence_level=LEVELS, n_points=101)
    candidates, p = display.line_.get_xdata(), display.line_.get_ydata()
    np.testing.assert_array_equal(p, model.predict_p(np.repeat(X[41:42], 101, axis=0), candidates))
    for level, region, bars in zip(LEVELS, display.regions, display.bars_, strict=True):
        np.testing.assert_array_equal(region, model.predict_set(X[41:42], level)[0])
        drawn = np.array(bars.get_segments())
        np.testing.assert_allclose(drawn[:, :, 0], region)
        np.testing.assert_allclose(drawn[:, :, 1], 1 - level)
        inside = ((candidates[:, None] >= region[:, 0]) & (candidates[:, None] <= region[:, 1])).any(axis=1)
        np.testing.assert_array_equal(inside, p > 1 - level + 1e-12)


def test_row_in_any_form_and_its_label(model, rows):
    X, y = rows
    shown = [
        PValueDisplay.from_estimator(model, row, y[41], n_points=9).p_values for row in (X[41], X[41:42], list(X[41]))
    ]
    np.testing.assert_array_equal(shown[0], shown[1])
    np.testing.assert_array_equal(shown[0], shown[2])
    table = pd.DataFrame(X, columns=list("abc"))
    named = fixed_model().fit(table[:40], y[:40])
    display = PValueDisplay.from_estimator(named, table.iloc[[41]], y[41], n_points=9, target_name="label")
    np.testing.assert_array_equal(display.p_values, shown[0])
    assert any(line.get_label().startswith("true label") and line.get_xdata()[0] == y[41] for line in display.ax_.lines)
    assert display.ax_.get_xlabel() == "label"


def test_whole_line_goes_to_both_edges(model, rows):
    display = PValueDisplay.from_estimator(model, rows[0][41], confidence_level=[0.999], n_points=9)
    left, right = display.ax_.get_xlim()
    np.testing.assert_array_equal(np.array(display.bars_[0].get_segments())[0, :, 0], [left, right])
    assert {line.get_marker() for line in display.ax_.lines} >= {"<", ">"}
    labels = [text.get_text() for text in display.ax_.get_legend().get_texts()]
    assert labels == ["99.9%: \N{MINUS SIGN}∞ to ∞", "no finite end"]


def test_given_candidates(model, rows):
    display = PValueDisplay.from_estimator(model, rows[0][41], candidates=[-1.0, 0.0, 1.0])
    np.testing.assert_array_equal(display.candidates, [-1, 0, 1])


def test_bad_arguments(model, rows):
    with pytest.raises(ValueError, match="x must be one row, got 2"):
        PValueDisplay.from_estimator(model, rows[0][:2])
    with pytest.raises(ValueError, match="regions must be one for each of 2 levels, got 1"):
        PValueDisplay.from_predictions([0, 1], [0.5, 0.5], [[[0, 1]]], confidence_level=[0.8, 0.9])
