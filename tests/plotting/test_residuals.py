"""The picture of residuals draws leave-one-out predictions, or those of new rows, with intervals in the same units."""

import numpy as np
import pytest

from conformal_gp.evaluation import leave_one_out
from conformal_gp.plotting import ResidualDisplay


def legend(display):
    return [text.get_text() for text in display.ax_.get_legend().get_texts()]


def lines(display):
    return {line.get_label(): line.get_xydata() for line in display.ax_.lines}


@pytest.mark.parametrize("kind", ["residuals", "actual"])
def test_left_out_rows(model, kind):
    found = leave_one_out(model, 0.8)
    display = ResidualDisplay.from_estimator(model, confidence_level=0.8, kind=kind, target_name="load")
    missed = (found.y < found.intervals[:, 0]) | (found.y > found.intervals[:, 1])
    np.testing.assert_array_equal(display.missed, missed)
    np.testing.assert_allclose(display.residual, (found.y - found.prediction) / found.std)
    actual, ends = found.y, found.intervals
    if kind == "residuals":
        actual = display.residual
        ends = (ends - found.prediction[:, None]) / found.std[:, None]
    drawn = lines(display)
    np.testing.assert_allclose(drawn["covered"], np.column_stack([found.prediction, actual])[~missed])
    np.testing.assert_allclose(drawn["missed"], np.column_stack([found.prediction, actual])[missed])
    (bars,) = display.ax_.collections
    np.testing.assert_allclose([bar[:, 1] for bar in bars.get_segments()], ends)
    assert [text.get_text().strip() for text in display.ax_.texts] == [str(row) for row in found.rows[missed]]
    assert display.ax_.get_xlabel() == "predicted load"
    first = {"residuals": f"standard GP's 80%: {(abs(display.residual) <= 1.2816).sum()} of 40 rows"}
    assert legend(display)[0] == first.get(kind, "actual = predicted")


def test_new_rows(model, rows):
    X, y = rows[0][40:], rows[1][40:]
    display = ResidualDisplay.from_estimator(model, X, y)
    prediction, std = model.predict(X, return_std=True)
    np.testing.assert_allclose(display.residual, (y - prediction) / std)
    np.testing.assert_allclose(display.intervals, model.predict_interval(X, 0.9))
    assert not display.ax_.texts


def test_infinite_intervals_end_in_arrowheads():
    ends = [[-np.inf, 1.0], [0.0, 2.0]]
    display = ResidualDisplay.from_predictions([0.5, 1.0], [0.5, 1.0], [1.0, 1.0], ends, confidence_level=0.9)
    assert "continues outside the picture" in legend(display)


def test_bad_arguments(model, rows):
    with pytest.raises(ValueError, match="X and y must be given together"):
        ResidualDisplay.from_estimator(model, rows[0])
    with pytest.raises(ValueError, match="kind must be 'residuals' or 'actual', got 'qq'"):
        ResidualDisplay([0.0], [0.0], [1.0], [[0.0, 1.0]], confidence_level=0.9, kind="qq")
    with pytest.raises(ValueError, match=r"intervals must have shape \(n, 2\)"):
        ResidualDisplay([0.0], [0.0], [1.0], [0.0], confidence_level=0.9)
