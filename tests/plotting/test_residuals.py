"""The picture of residuals draws leave-one-out predictions, or those of new rows, with intervals in the same units."""

import numpy as np
import pytest

from conformal_gp.evaluation import leave_one_out
from conformal_gp.plotting import ResidualDisplay


def legend(display):
    return [text.get_text() for text in display.ax_.get_legend().get_texts()]


def lines(display):
    return {line.get_label(): line.get_xydata() for line in display.ax_.lines}


@pytest.mark.parametrize("names", [None, [f"run {i}" for i in range(40)]])
def test_left_out_rows(model, names):
    found = leave_one_out(model, 0.8)
    display = ResidualDisplay.from_estimator(model, confidence_level=0.8, target_name="load", names=names)
    covered = (found.intervals[:, 0] <= found.y) & (found.y <= found.intervals[:, 1])
    residual = (found.y - found.prediction) / found.std
    np.testing.assert_array_equal(display.covered, covered)
    np.testing.assert_allclose(display.residual, residual)
    drawn = lines(display)
    np.testing.assert_allclose(drawn["covered"], np.column_stack([found.prediction, residual])[covered])
    np.testing.assert_allclose(drawn["not covered"], np.column_stack([found.prediction, residual])[~covered])
    (bars,) = display.ax_.collections
    ends = (found.intervals - found.prediction[:, None]) / found.std[:, None]
    np.testing.assert_allclose([bar[:, 1] for bar in bars.get_segments()], ends)
    called = [str((names or range(40))[row]) for row in found.rows[~covered]]
    assert [text.get_text() for text in display.ax_.texts] == called
    assert display.ax_.get_xlabel() == "predicted load"
    assert legend(display)[0] == f"standard GP's 80%, covers {(abs(residual) <= 1.2816).sum()} of 40 rows"


def test_new_rows(model, rows):
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


def test_bad_arguments(model, rows):
    with pytest.raises(ValueError, match="X and y must be given together"):
        ResidualDisplay.from_estimator(model, rows[0])
    with pytest.raises(ValueError, match=r"std must have shape \(1,\), got \(2,\)"):
        ResidualDisplay([0.0], [0.0], [[0.0, 1.0]], std=[1.0, 1.0], confidence_level=0.9)
