"""Bands along an input, and widths over two, are what the model predicts there."""

import warnings

import numpy as np
import pandas as pd
import polars as pl
import pytest

from cases import fixed_model
from conformal_gp.plotting import (
    IntervalDisplay,
    PredictionBandDisplay,
    WidthContourDisplay,
)

LEVELS = [0.5, 0.9]


def corners(band):
    """Lower and upper ends of a drawn band, by place."""
    points = band.get_paths()[0].vertices
    return {x: (points[points[:, 0] == x, 1].min(), points[points[:, 0] == x, 1].max()) for x in set(points[:, 0])}


def legend(display):
    return [text.get_text() for text in display.ax_.get_legend().get_texts()]


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
