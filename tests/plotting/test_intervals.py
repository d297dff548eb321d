"""Intervals, residuals and coverage are drawn as the model predicts them."""

import numpy as np
import pytest

from conformal_gp.evaluation import chance_range, leave_one_out
from conformal_gp.metrics import coverage
from conformal_gp.plotting import (
    CoverageDisplay,
    IntervalDisplay,
    ResidualDisplay,
)

LEVELS = [0.5, 0.9]


def legend(display):
    return [text.get_text() for text in display.ax_.get_legend().get_texts()]


def drawn_lines(display):
    return {line.get_label(): line.get_xydata() for line in display.ax_.lines}


def test_intervals_are_at_their_predictions_and_need_no_true_values(model, rows):
    X, _ = rows
    display = IntervalDisplay.from_estimator(model, X[40:], confidence_level=0.8, target_name="weight")
    np.testing.assert_array_equal(display.intervals, model.predict_interval(X[40:], 0.8))
    bars = [bar for part in display.ax_.collections for bar in part.get_segments()]
    order = np.argsort([bar[0, 0] for bar in bars])
    by_prediction = np.argsort(model.predict(X[40:]))
    np.testing.assert_allclose(np.array(bars)[order, 0, 0], model.predict(X[40:])[by_prediction])
    np.testing.assert_allclose(np.array(bars)[order, :, 1], display.intervals[by_prediction])
    assert display.ax_.get_xlabel() == "predicted weight"
    assert display.ax_.get_ylabel() == "weight"
    assert display.ax_.get_title(loc="left") == ""
    assert legend(display)[0] == "80% interval"


def test_rows_outside_the_training_range_are_marked(model, rows):
    X = rows[0][40:45].copy()
    X[2, 0] = 9.0
    display = IntervalDisplay.from_estimator(model, X)
    outside = model.beyond_training(X).any(axis=1)
    assert outside[2]
    np.testing.assert_array_equal(display.extrapolated, outside)
    inside, marked = display.ax_.collections
    assert len(marked.get_segments()) == outside.sum()
    assert len(inside.get_segments()) == 5 - outside.sum()
    assert "row outside the training range" in legend(display)
    assert inside.get_linestyle() != marked.get_linestyle()


def test_few_rows_are_drawn_by_name():
    intervals = [[0, 2], [1, 3], [2, 4]]
    names = ["S-1", "S-2", "S-3"]
    display = IntervalDisplay.from_predictions([1, np.nan, 7], [1, 3, 2], intervals, confidence_level=0.9, names=names)
    assert [tick.get_text() for tick in display.ax_.get_xticklabels()] == ["S-1", "S-3", "S-2"]
    np.testing.assert_array_equal(drawn_lines(display)["not covered"], [[1, 7]])
    assert display.ax_.get_title(loc="left") == "90% intervals covered 1 of 2 rows (50.0%)"
    assert display.ax_.get_ylabel() == "actual target"
    y = np.zeros(60)
    y[[3, 5]] = 9.0
    ends = np.tile([-1.0, 1.0], (60, 1))
    many = IntervalDisplay.from_predictions(y, np.arange(60), ends, confidence_level=0.9, names=range(60))
    assert [text.get_text() for text in many.ax_.texts] == ["3", "5"]
    with pytest.raises(ValueError, match="names must be one for each of 3 rows, got 2"):
        IntervalDisplay([1, 2, 3], [1, 2, 3], intervals, confidence_level=0.9, names=["a", "b"])


def test_rows_that_are_not_covered_are_marked():
    intervals = [[0, 2], [1, 3], [2, np.inf]]
    display = IntervalDisplay.from_predictions([1, 9, 7], [1, 3, 2], intervals, confidence_level=0.9)
    np.testing.assert_array_equal(display.covered, [True, False, True])
    assert display.ax_.get_title(loc="left") == "90% intervals covered 2 of 3 rows (66.7%)"
    drawn = drawn_lines(display)
    np.testing.assert_array_equal(drawn["not covered"], [[3, 9]])
    np.testing.assert_array_equal(drawn["covered"], [[1, 1], [2, 7]])
    (arrow,) = [line for line in display.ax_.lines if line.get_label() == "continues outside the picture"]
    assert (arrow.get_marker(), arrow.get_xdata()) == ("^", [2])


def test_each_method_has_one_colour():
    from matplotlib.colors import to_rgba

    shown = {}
    for method in ("conformal", "standard GP"):
        display = IntervalDisplay.from_predictions([1], [1], [[0, 2]], confidence_level=0.9, method=method)
        shown[method] = to_rgba(display.ax_.collections[0].get_color()[0])[:3]
    both = {"standard GP": [[0, 2]], "conformal": [[0, 1]], "another": [[0, 1]]}
    lines = CoverageDisplay.from_predictions([1.0], both, confidence_level=0.9).lines_
    assert to_rgba(lines["standard GP"].get_color())[:3] == shown["standard GP"]
    assert len({line.get_color() for line in lines.values()}) == 3


def test_coverage_and_what_chance_allows(model, rows):
    X, y = rows[0][40:], rows[1][40:]
    display = CoverageDisplay.from_estimator({"one": model, "two": model}, X, y, confidence_level=LEVELS[::-1])
    expected = coverage(y, model.predict_interval(X, LEVELS))
    one, two = display.lines_["one"], display.lines_["two"]
    np.testing.assert_allclose(one.get_xdata(), [50, 90])
    np.testing.assert_allclose(one.get_ydata(), 100 * expected)
    assert one.get_linestyle() != two.get_linestyle()  # told apart without colour
    assert one.get_marker() != two.get_marker()
    np.testing.assert_array_equal(display.band, chance_range(LEVELS[::-1], 20))
    assert legend(display) == ["expected range, 20 rows", "nominal", "one", "two"]


@pytest.mark.parametrize("names", [None, [f"run {i}" for i in range(40)]])
def test_left_out_rows(model, names):
    found = leave_one_out(model, 0.8)
    display = ResidualDisplay.from_estimator(model, confidence_level=0.8, target_name="load", names=names)
    covered = (found.intervals[:, 0] <= found.y) & (found.y <= found.intervals[:, 1])
    residual = (found.y - found.prediction) / found.std
    np.testing.assert_array_equal(display.covered, covered)
    np.testing.assert_allclose(display.residual, residual)
    drawn = drawn_lines(display)
    np.testing.assert_allclose(drawn["covered"], np.column_stack([found.prediction, residual])[covered])
    np.testing.assert_allclose(drawn["not covered"], np.column_stack([found.prediction, residual])[~covered])
    (bars,) = display.ax_.collections
    ends = (found.intervals - found.prediction[:, None]) / found.std[:, None]
    np.testing.assert_allclose([bar[:, 1] for bar in bars.get_segments()], ends)
    called = [str((names or range(40))[row]) for row in found.rows[~covered]]
    assert [text.get_text() for text in display.ax_.texts] == called
    assert display.ax_.get_xlabel() == "predicted load"
    assert legend(display)[0] == f"standard GP's 80%, covers {(abs(residual) <= 1.2816).sum()} of 40 rows"


def test_residuals_of_new_rows(model, rows):
    X, y = rows[0][40:], rows[1][40:]
    display = ResidualDisplay.from_estimator(model, X, y)
    prediction, std = model.predict(X, return_std=True)
    np.testing.assert_allclose(display.residual, (y - prediction) / std)
    np.testing.assert_allclose(display.intervals, model.predict_interval(X, 0.9))
    assert not display.ax_.texts


def test_infinite_intervals_end_in_arrowheads():
    ends = [[-np.inf, 1.0], [0.0, 2.0]]
    display = ResidualDisplay.from_predictions([0.5, 1.0], [0.5, 1.0], ends, std=[1.0, 1.0], confidence_level=0.9)
    assert "continues outside the picture" in legend(display)


def test_bad_arguments_of_residuals(model, rows):
    with pytest.raises(ValueError, match="X and y must be given together"):
        ResidualDisplay.from_estimator(model, rows[0])
    with pytest.raises(ValueError, match=r"std must have shape \(1,\), got \(2,\)"):
        ResidualDisplay([0.0], [0.0], [[0.0, 1.0]], std=[1.0, 1.0], confidence_level=0.9)
