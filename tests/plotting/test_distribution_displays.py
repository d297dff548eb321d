"""Displays of whole distributions: what is drawn is what the model predicts."""

import numpy as np
import pandas as pd
import pytest

from conformal_gp.metrics import pit_histogram
from conformal_gp.plotting import DistributionDisplay, FanDisplay, PITDisplay


def height(display, label):
    """The drawn distribution function at a label."""
    values, edges, _ = display.line_.get_data()
    return values[np.searchsorted(edges, label, side="right") - 1]


def test_the_drawn_function_is_the_cdf(model, rows):
    X, y = rows
    display = DistributionDisplay.from_estimator(model, X[41], y[41], quantiles=[0.1, 0.5], target_name="label")
    for label in display.steps.mean() + np.array([-0.4, 0.0, 0.3]):
        assert height(display, label) == pytest.approx(model.predict_cdf(X[41:42], [label])[0])
    np.testing.assert_allclose(display.values, model.predict_quantiles(X[41:42], [0.1, 0.5])[0])
    texts = [text.get_text() for text in display.ax_.get_legend().get_texts()]
    assert [text.split(":")[0] for text in texts] == ["10% quantile", "50% quantile", "true label"]
    assert display.ax_.get_xlabel() == "label"


def test_the_object_draws_its_rows(model, rows, pyplot):
    X, _ = rows
    distribution = model.predict_distribution(X[41:44])
    _, ax = pyplot.subplots()
    display = distribution.plot(2, ax=ax, quantiles=0.5)
    assert display.ax_ is ax
    np.testing.assert_array_equal(display.steps, distribution.steps[2])


def test_infinite_steps_and_quantiles(rows):
    steps = np.array([-np.inf, -np.inf, 0.0, 1.0, np.inf])
    display = DistributionDisplay.from_predictions(steps, quantiles=[0.1, 0.5])
    assert height(display, -0.01) == pytest.approx(2.5 / 6)
    assert height(display, 1.01) == pytest.approx(4.5 / 6)
    text = display.ax_.get_legend().get_texts()[0].get_text()
    assert text == "10% quantile: \N{MINUS SIGN}∞ (no finite end)"


def test_fan_lines_are_the_quantiles(model, rows):
    X, y = rows
    asked = [0.1, 0.5, 0.9]
    display = FanDisplay.from_estimator(model, X, y, feature=1, fixed={2: 0.7}, quantiles=asked, n_points=9)
    along = np.tile([np.median(X[:, 0]), 0.0, 0.7], (9, 1))
    along[:, 1] = np.linspace(X[:, 1].min(), X[:, 1].max(), 9)
    expected = model.predict_quantiles(along, asked)
    for line, values, label in zip(display.lines_, expected.T, ["10%", "median", "90%"], strict=True):
        np.testing.assert_allclose(line.get_ydata(), values)
        assert line.get_label() == label
    assert len(display.bands_) == 2
    dots = display.ax_.lines[-1]
    np.testing.assert_array_equal(dots.get_xdata(), X[:, 1])


def test_fan_of_a_frame_with_quantiles_that_are_infinite(model, rows):
    X, y = rows
    table = pd.DataFrame(X, columns=list("abc"))
    named = model.__class__("se", tuning="fixed", noise_variance=0.1).fit(table, y)
    with pytest.warns(UserWarning, match="needs at least 999 rows"):
        display = FanDisplay.from_estimator(named, table, feature="b", quantiles=[0.5, 0.999], n_points=5)
    assert display.ax_.get_xlabel().splitlines()[0] == "b"
    assert "^" in {line.get_marker() for line in display.ax_.lines}
    assert set(display.lines_[1].get_ydata()) == {display.ax_.get_ylim()[1]}


def test_pit_bars_are_shares(model, rows):
    X, y = rows
    display = PITDisplay.from_estimator(model, X[40:], y[40:], n_bins=4, random_state=0)
    values = model.predict_cdf(X[40:], y[40:], smoothing=True, random_state=0)
    shares = pit_histogram(values, 4)[0]
    np.testing.assert_allclose([bar.get_height() for bar in display.bars_["conformal"]], shares)
    assert display.band_[0] < 0.25 < display.band_[1]
    two = PITDisplay.from_predictions({"a": values, "b": values**2}, n_bins=4)
    assert [text.get_text() for text in two.ax_.get_legend().get_texts()][-2:] == ["a", "b"]
    assert len(two.bars_["b"]) == 4


def test_bad_arguments(model, rows):
    with pytest.raises(ValueError, match="x must be one row, got 2"):
        DistributionDisplay.from_estimator(model, rows[0][:2])
    with pytest.raises(ValueError, match="quantiles must lie strictly"):
        DistributionDisplay.from_predictions([0.0, 1.0], quantiles=1.5)
    with pytest.raises(ValueError, match=r"steps must have shape"):
        DistributionDisplay.from_predictions([[0.0, 1.0]])
    with pytest.raises(ValueError, match="quantiles must ascend"):
        FanDisplay.from_predictions([0.0], [[0.0, 1.0]], quantiles=[0.9, 0.1])
    with pytest.raises(ValueError, match=r"values must have shape \(n, 2\)"):
        FanDisplay.from_predictions([0.0], [[0.0]], quantiles=[0.1, 0.9])
    with pytest.raises(ValueError, match="x and y must be given together"):
        FanDisplay.from_predictions([0.0], [[0.0]], quantiles=[0.5], x=[1.0])
    with pytest.raises(ValueError, match="values must be as many for each method"):
        PITDisplay.from_predictions({"a": [0.5], "b": [0.5, 0.6]})
    with pytest.raises(ValueError, match="values must be numbers between 0 and 1"):
        PITDisplay.from_predictions([1.5])
