"""Bars of which inputs matter."""

import numpy as np
import pandas as pd
import pytest

from cases import fixed_model
from conformal_gp.plotting import ImportanceDisplay


def test_an_input_that_matters_has_the_longest_bar_and_one_that_does_not_has_none():
    rng = np.random.default_rng(0)
    X = pd.DataFrame({"idle": rng.uniform(size=90), "main": rng.uniform(size=90), "side": rng.uniform(size=90)})
    y = 3.0 * X["main"] + X["side"] + 0.1 * rng.standard_normal(90)
    model = fixed_model(mean="linear").fit(X[:60], y[:60])
    display = ImportanceDisplay.from_estimator(model, X[60:], y[60:], target_name="label")
    assert list(display.growth) == ["main", "side", "idle"]
    assert [label.get_text() for label in display.ax_.get_yticklabels()] == list(display.growth)
    np.testing.assert_allclose([bar.get_width() for bar in display.bars_], np.maximum(list(display.growth.values()), 0))
    order = np.random.default_rng(0).permutation(30)
    mixed = X[60:].assign(main=X["main"].to_numpy()[60:][order])

    def error(rows):
        return np.sqrt(np.mean((y[60:] - model.predict(rows)) ** 2))

    assert display.growth["main"] == pytest.approx(error(mixed) / error(X[60:]) - 1)
    assert "of label when the input is shuffled" in display.ax_.get_xlabel()


def test_infinite_and_negative_growth_and_inputs_that_are_left_out():
    display = ImportanceDisplay.from_predictions({"a": -0.02, "b": np.inf, "c": 0.5, "d": -0.1}, max_inputs=3)
    assert list(display.growth) == ["b", "c", "a"]
    widths = [bar.get_width() for bar in display.bars_]
    assert widths[0] > widths[1] > widths[2] == 0
    assert [text.get_text() for text in display.ax_.texts] == ["∞", "+50%", "−2%"]  # noqa: RUF001 (a minus sign)
    assert "1 more inputs" in display.ax_.get_xlabel()
    with pytest.raises(ValueError, match="growth must hold an input"):
        ImportanceDisplay({})
