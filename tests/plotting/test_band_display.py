"""Bands over one input: what is drawn is what the model predicts."""

import warnings

import numpy as np
import pandas as pd
import polars as pl
import pytest

from cases import fixed_model
from conformal_gp import ConformalGPRegressor
from conformal_gp.plotting import PredictionBandDisplay

LEVELS = [0.5, 0.9]


def corners(band):
    """Lower and upper ends of a drawn band, by place."""
    points = band.get_paths()[0].vertices
    return {x: (points[points[:, 0] == x, 1].min(), points[points[:, 0] == x, 1].max()) for x in set(points[:, 0])}


def test_band_is_the_prediction_along_one_input(model, rows):
    X, _ = rows
    display = PredictionBandDisplay.from_estimator(
        model, X, feature=1, fixed={2: 0.7}, confidence_level=LEVELS, n_points=11
    )
    along = np.tile([np.median(X[:, 0]), 0.0, 0.7], (11, 1))
    along[:, 1] = np.linspace(X[:, 1].min(), X[:, 1].max(), 11)
    np.testing.assert_allclose(display.line_.get_xdata(), along[:, 1])
    np.testing.assert_allclose(display.line_.get_ydata(), model.predict(along))
    expected = model.predict_interval(along, LEVELS)
    for k, band in enumerate(display.bands_):
        drawn = corners(band)
        for x, ends in zip(along[:, 1], expected[:, :, k], strict=True):
            np.testing.assert_allclose(drawn[x], ends)
    assert display.ax_.get_xlabel().startswith("input 1\nothers held at input 0 ")
    assert display.figure_ is display.ax_.figure


def test_long_names_of_other_inputs_do_not_widen_the_picture(rows):
    X = pd.DataFrame(rows[0], columns=["a column with a long name", "another column that is held", "the input"])
    fitted = fixed_model().fit(X, rows[1])
    display = PredictionBandDisplay.from_estimator(fitted, X, feature="the input", n_points=5)
    first, *others = display.ax_.get_xlabel().splitlines()
    assert first == "the input"
    assert len(others) > 1
    assert max(map(len, others)) <= 48
    assert " ".join(others).endswith("(medians)")


def test_narrow_bands_lie_over_wide_ones_whatever_the_order(model, rows):
    for levels in (LEVELS, LEVELS[::-1]):
        display = PredictionBandDisplay.from_estimator(model, rows[0], confidence_level=levels, n_points=5)
        drawn = [band for band in display.ax_.collections if band in display.bands_]
        assert [band.get_label() for band in drawn] == ["90%", "50%"]
        assert [band.get_label() for band in display.bands_] == [f"{level:.0%}" for level in levels]


def test_one_level_and_rows_as_dots(model, rows, pyplot):
    X, y = rows
    _, ax = pyplot.subplots()
    display = PredictionBandDisplay.from_estimator(
        model, X, y, confidence_level=0.8, name="ours", target_name="label", n_points=5, ax=ax
    )
    assert display.ax_ is ax
    assert [text.get_text() for text in ax.get_legend().get_texts()] == ["ours 80%", "prediction", "rows"]
    dots = ax.lines[-1]
    np.testing.assert_array_equal(dots.get_xdata(), X[:, 0])
    np.testing.assert_array_equal(dots.get_ydata(), y)
    assert ax.get_ylabel() == "label"


@pytest.mark.parametrize("frame", [pd.DataFrame, lambda X, columns: pl.DataFrame(X, schema=columns)])
def test_frames_keep_their_names(rows, frame):
    X, y = rows
    table = frame(X, columns=["a", "b", "c"])
    model = ConformalGPRegressor("se", tuning="fixed", noise_variance=0.1).fit(table, y)
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # scikit-learn warns of missing feature names
        display = PredictionBandDisplay.from_estimator(model, table, feature="b", fixed={"a": 1.0}, n_points=4)
    assert display.ax_.get_xlabel().splitlines()[0] == "b"
    along = np.tile([1.0, 0.0, np.median(X[:, 2])], (4, 1))
    along[:, 1] = display.grid
    np.testing.assert_allclose(display.prediction, model.predict(frame(along, columns=["a", "b", "c"])))


def test_infinite_ends_go_to_the_edge_with_arrowheads():
    grid = np.arange(24.0)
    intervals = np.column_stack([-np.ones(24), np.ones(24)])
    intervals[12:, 1] = np.inf
    display = PredictionBandDisplay.from_predictions(grid, np.zeros(24), intervals, confidence_level=0.9)
    bottom, top = display.ax_.get_ylim()
    assert -1.2 < bottom < -1
    assert 1 < top < 1.2
    drawn = corners(display.bands_[0])
    assert drawn[3.0] == (-1, 1)
    assert drawn[20.0] == (-1, top)
    arrows = [line for line in display.ax_.lines if line.get_marker() in "^v" and line.get_linestyle() == "None"]
    assert [line.get_marker() for line in arrows] == ["^"]
    assert min(arrows[0].get_xdata()) >= 12
    assert set(arrows[0].get_ydata()) == {top}
    assert "no finite end" in [text.get_text() for text in display.ax_.get_legend().get_texts()]


def test_whole_line(model, rows):
    with pytest.warns(UserWarning, match="needs at least"):
        display = PredictionBandDisplay.from_estimator(model, rows[0], confidence_level=0.999, n_points=5)
    low, high = display.ax_.get_ylim()
    assert all(ends == (low, high) for ends in corners(display.bands_[0]).values())


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"feature": 3}, "feature must be a column number from 0 to 2; got 3"),
        ({"feature": "b"}, "feature must be .* got 'b'"),
        ({"feature": True}, "feature must be .* got True"),
        ({"fixed": {7: 0.0}}, "fixed must be a column number from 0 to 2; got 7"),
        ({"n_points": 1}, "n_points must be at least 2, got 1"),
        ({"confidence_level": 95}, "confidence_level must lie strictly between 0 and 1"),
    ],
)
def test_bad_arguments(model, rows, options, message):
    with pytest.raises(ValueError, match=message):
        PredictionBandDisplay.from_estimator(model, rows[0], **options)


def test_shapes_must_agree():
    with pytest.raises(ValueError, match=r"intervals must have shape \(n, 2, 2\)"):
        PredictionBandDisplay.from_predictions([0, 1], [0, 1], [[0, 1], [0, 1]], confidence_level=[0.8, 0.9])
    with pytest.raises(ValueError, match=r"grid must have shape \(2,\), got \(3,\)"):
        PredictionBandDisplay.from_predictions([0, 1, 2], [0, 1], [[0, 1], [0, 1]], confidence_level=0.9)
    with pytest.raises(ValueError, match="x and y must be given together"):
        PredictionBandDisplay.from_predictions([0, 1], [0, 1], [[0, 1], [0, 1]], confidence_level=0.9, x=[1])


def test_columns_of_categories_are_refused_in_words():
    frame = pd.DataFrame({"a": [0.0, 1.0, 2.0, 3.0], "ward": pd.Categorical(["u", "v", "u", "v"])})
    model = ConformalGPRegressor("se", tuning="fixed", noise_variance=0.1).fit(frame, [0.0, 1.0, 0.0, 1.0])
    with pytest.raises(ValueError, match="X has columns of categories"):
        PredictionBandDisplay.from_estimator(model, frame, feature="a")
