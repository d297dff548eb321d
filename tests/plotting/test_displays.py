"""Displays draw what the model predicts, with legends beside the data, in light and dark."""

import sys
import warnings

import numpy as np
import pandas as pd
import polars as pl
import pytest

from cases import fixed_model
from conformal_gp.evaluation import chance_range
from conformal_gp.metrics import coverage
from conformal_gp.plotting import (
    CoverageDisplay,
    IntervalDisplay,
    PredictionBandDisplay,
    ResidualDisplay,
    WidthContourDisplay,
)

LEVELS = [0.5, 0.9]


def corners(band):
    """Lower and upper ends of a drawn band, by place."""
    points = band.get_paths()[0].vertices
    return {x: (points[points[:, 0] == x, 1].min(), points[points[:, 0] == x, 1].max()) for x in set(points[:, 0])}


def legend(display):
    return [text.get_text() for text in display.ax_.get_legend().get_texts()]


DRAWN = {
    "intervals": lambda model, X, y, ax: IntervalDisplay.from_estimator(model, X[40:], y[40:], ax=ax),
    "band": lambda model, X, y, ax: PredictionBandDisplay.from_estimator(model, X, y, n_points=9, ax=ax),
    "residuals": lambda model, X, y, ax: ResidualDisplay.from_estimator(model, X[40:], y[40:], ax=ax),
    "width": lambda model, X, y, ax: WidthContourDisplay.from_estimator(model, X, n_points=5, ax=ax),
    "coverage": lambda model, X, y, ax: CoverageDisplay.from_estimator({"a": model, "b": model}, X[40:], y[40:], ax=ax),
}


@pytest.mark.parametrize(("style", "size"), [("default", (3.5, 3.5)), ("dark_background", (10, 4))])
@pytest.mark.parametrize("kind", DRAWN)
def test_legends_and_titles_are_above_the_data(model, rows, pyplot, kind, style, size):
    with pyplot.style.context(style):
        figure, ax = pyplot.subplots(figsize=size, layout="constrained")
        display = DRAWN[kind](model, *rows, ax)
        assert display.ax_ is ax
        assert display.figure_ is figure
        assert display.plot().ax_ is not ax
        ax.set_title("a title")
        figure.draw_without_rendering()
        box = ax.get_legend().get_window_extent()
        assert box.ymin >= ax.get_window_extent().ymax - 1
        assert box.width <= figure.bbox.width
        assert ax.title.get_window_extent().ymin >= box.ymax - 1
    assert (ax.get_facecolor()[0] < 0.5) == (style == "dark_background")


def test_without_matplotlib_an_error_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib.pyplot", None)
    with pytest.raises(ImportError, match="Pictures need Matplotlib: pip install"):
        CoverageDisplay([0.5], [[0, 1]], confidence_level=0.9).plot()


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


def test_large_numbers_have_commas():
    display = IntervalDisplay.from_predictions([12000], [11000], [[9000, 15000]], confidence_level=0.9)
    display.figure_.draw_without_rendering()
    assert any("," in tick.get_text() for tick in display.ax_.get_yticklabels())
    small = IntervalDisplay.from_predictions([1], [1], [[0, 2]], confidence_level=0.9)
    assert not any("," in tick.get_text() for tick in small.ax_.get_yticklabels())


def test_widths_over_two_inputs(model, rows):
    X = rows[0]
    display = WidthContourDisplay.from_estimator(model, X, features=[2, "x0"], row=7, confidence_level=0.8, n_points=5)
    first = np.linspace(X[:, 2].min(), X[:, 2].max(), 5)
    second = np.linspace(X[:, 0].min(), X[:, 0].max(), 5)
    for i, value in enumerate(second):
        along = np.column_stack([np.full(5, value), np.full(5, X[7, 1]), first])
        low, high = model.predict_interval(along, 0.8).T
        np.testing.assert_allclose(display.width[i], high - low)
    assert display.ax_.get_xlabel().replace("\n", " ") == f"x2 others held at x1 {X[7, 1]:.4g}"
    assert display.ax_.get_ylabel() == "x0"
    assert legend(display) == ["rows, at any values of the others"]


def test_infinite_widths_are_blank():
    display = WidthContourDisplay.from_predictions(
        [0, 1, 2], [0, 1], [[1, 2, np.inf], [1, 3, np.inf]], confidence_level=0.9
    )
    assert legend(display) == ["infinite (blank)"]
    nothing = WidthContourDisplay.from_predictions([0, 1], [0, 1], np.full((2, 2), np.inf), confidence_level=0.9)
    assert not hasattr(nothing, "bar_")


def test_bad_arguments_of_widths(model, rows):
    frame = pd.DataFrame({"a": [0.0, 1.0], "kind": pd.Categorical(["x", "y"])})
    for X, features in ((rows[0], [0, 0]), (frame, ["a", "kind"])):
        with pytest.raises(ValueError, match="inputs that vary must be different columns of numbers"):
            WidthContourDisplay.from_estimator(model, X, features=features)
    for X, features in ((rows[0], [0]), (rows[0], [0, 1, 2])):
        with pytest.raises(ValueError, match="features must be two columns"):
            WidthContourDisplay.from_estimator(model, X, features=features)
    with pytest.raises(ValueError, match=r"width must have shape \(n_second, n_first\)"):
        WidthContourDisplay([0], [0], [1.0], confidence_level=0.9)


@pytest.mark.parametrize("row", [None, 7])
def test_band_is_the_prediction_along_one_input(model, rows, row):
    X, y = rows
    display = PredictionBandDisplay.from_estimator(
        model, X, y, feature=1, row=row, confidence_level=LEVELS[::-1], n_points=11
    )
    others = X[:, [0, 2]] / X[:, [0, 2]].std(axis=0)
    middle = ((others - np.median(others, axis=0)) ** 2).sum(axis=1)
    held = np.argmin(middle) if row is None else row
    along = np.tile(X[held], (11, 1))
    along[:, 1] = np.linspace(X[:, 1].min(), X[:, 1].max(), 11)
    np.testing.assert_allclose(display.line_.get_xdata(), along[:, 1])
    np.testing.assert_allclose(display.line_.get_ydata(), model.predict(along))
    expected = model.predict_interval(along, LEVELS[::-1])
    for k, band in enumerate(display.bands_):
        drawn = corners(band)
        for x, ends in zip(along[:, 1], expected[:, :, k], strict=True):
            np.testing.assert_allclose(drawn[x], ends)
    assert legend(display) == ["90%", "50%", "prediction", "rows, at any values of the others"]
    assert display.ax_.get_xlabel().replace("\n", " ").startswith(f"x1 others held at x0 {X[held, 0]:.4g}")


@pytest.mark.parametrize("polars", [False, True])
def test_categories_are_held(rows, polars):
    X, y = rows
    kinds = np.array(["left", "middle", "right"])[np.searchsorted([-0.5, 0.5], X[:, 1])]
    table, categories = pd.DataFrame, pd.Categorical(kinds)
    if polars:
        table, categories = pl.DataFrame, pl.Series(kinds, dtype=pl.Categorical)
    frame = table({"a": X[:, 0], "kind": categories, "on": X[:, 2] > 0})
    model = fixed_model().fit(frame, y)
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # scikit-learn warns of missing feature names
        display = PredictionBandDisplay.from_estimator(
            model, frame, y, feature="a", row=3, confidence_level=0.8, n_points=3
        )
    expected = table({"a": display.grid, "kind": frame["kind"][[3] * 3], "on": X[[3] * 3, 2] > 0})
    np.testing.assert_allclose(display.intervals[:, :, 0], model.predict_interval(expected, 0.8))
    assert f"kind {kinds[3]}" in display.ax_.get_xlabel().replace("\n", " ")
    usual = max(set(kinds), key=list(kinds).count)
    assert f"kind {usual}" in PredictionBandDisplay.from_estimator(model, frame, n_points=3).held
    with pytest.raises(ValueError, match="must be different columns of numbers"):
        PredictionBandDisplay.from_estimator(model, frame, feature="kind")


def test_infinite_ends_go_to_the_edge_with_arrowheads():
    intervals = np.column_stack([-np.ones(24), np.ones(24)])
    intervals[12:, 1] = np.inf
    display = PredictionBandDisplay.from_predictions(np.arange(24.0), np.zeros(24), intervals, confidence_level=0.9)
    bottom, top = display.ax_.get_ylim()
    assert -1.2 < bottom < -1 < 1 < top < 1.2
    drawn = corners(display.bands_[0])
    assert drawn[3.0] == (-1, 1)
    assert drawn[20.0] == (-1, top)
    (arrows,) = [line for line in display.ax_.lines if line.get_marker() in "^v" and line.get_linestyle() == "None"]
    assert min(arrows.get_xdata()) >= 12
    assert set(arrows.get_ydata()) == {top}


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"feature": 3}, "feature must be a column: 0 to 2, or x0, x1, x2; got 3"),
        ({"feature": True}, "feature must be .* got True"),
        ({"row": 60}, "row must be a row of X: 0 to 59, or None; got 60"),
        ({"confidence_level": 95}, "confidence_level must lie strictly between 0 and 1"),
    ],
)
def test_bad_arguments_of_a_band(model, rows, options, message):
    with pytest.raises(ValueError, match=message):
        PredictionBandDisplay.from_estimator(model, rows[0], **options)


def test_shapes_must_agree():
    band, two = PredictionBandDisplay.from_predictions, [[0, 1], [0, 1]]
    with pytest.raises(ValueError, match=r"intervals must have shape \(n, 2, 2\)"):
        band([0, 1], [0, 1], two, confidence_level=[0.8, 0.9])
    with pytest.raises(ValueError, match=r"grid must have shape \(2,\), got \(3,\)"):
        band([0, 1, 2], [0, 1], two, confidence_level=0.9)
    with pytest.raises(ValueError, match="x and y must be given together"):
        band([0, 1], [0, 1], two, confidence_level=0.9, x=[1])
    with pytest.raises(ValueError, match=r"intervals must have shape \(n, 2\)"):
        IntervalDisplay.from_predictions(None, [0], [[0, 1, 2]], confidence_level=0.9)


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
