"""Rows held out for calibration, and calibration by hand."""

import numpy as np
import pytest
from sklearn.exceptions import NotFittedError
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF, WhiteKernel

from cases import fixed_model, make_data
from reproduction.comparators import SplitConformal
from reproduction.comparators.split import calibration_rows


@pytest.mark.parametrize(("rows", "held_out"), [(150, 38), (151, 38), (455, 114), (2, 1), (3, 1)])
def test_a_quarter_is_held_out(rows, held_out):
    mask = calibration_rows(rows, 0.25, 0)
    assert mask.sum() == held_out
    assert 0 < mask.sum() < rows


def test_some_row_is_always_left_to_fit_and_to_calibrate():
    assert calibration_rows(10, 0.99, 0).sum() == 9
    assert calibration_rows(10, 0.01, 0).sum() == 1


def test_rows_are_drawn_at_random():
    draws = np.mean([calibration_rows(20, 0.25, seed) for seed in range(800)], axis=0)
    np.testing.assert_allclose(draws, 0.25, atol=0.06)  # four standard errors


@pytest.mark.parametrize("base", [fixed_model(), GaussianProcessRegressor(RBF() + WhiteKernel(), optimizer=None)])
def test_fit_is_a_base_model_and_a_calibration(base):
    X, y = make_data(1, 40)
    new, _ = make_data(2, 6)
    model = SplitConformal(base, calibration_size=0.5, random_state=3).fit(X, y)
    held_out = calibration_rows(40, 0.5, 3)
    mean, std = base.fit(X[~held_out], y[~held_out]).predict(X[held_out], return_std=True)
    by_hand = SplitConformal().calibrate(mean, std, y[held_out])
    np.testing.assert_array_equal(model.scores_, by_hand.scores_)
    expected = by_hand.intervals(*base.predict(new, return_std=True), [0.5, 0.9])
    np.testing.assert_allclose(model.predict_interval(new, [0.5, 0.9]), expected, rtol=1e-12)
    assert model.n_calibration_ == by_hand.n_calibration_ == 20


def test_before_calibration_there_are_no_intervals():
    with pytest.raises(NotFittedError):
        SplitConformal().intervals([0.0], [1.0])
    with pytest.raises(NotFittedError):
        SplitConformal().calibrate([0.0, 1.0], [1.0, 1.0], [0.0, 1.0]).predict([[0.0]])


@pytest.mark.parametrize(
    ("mean", "std", "y", "words"),
    [
        ([0.0, 1.0], [1.0, 0.0], [0.0, 1.0], "std must be positive .* row 1"),
        ([0.0, 1.0], [1.0, -1.0], [0.0, 1.0], "std must not be negative, got -1"),
        ([0.0, np.nan], [1.0, 1.0], [0.0, 1.0], "mean contains NaN in row 1"),
        ([0.0, 1.0], [1.0, 1.0], [np.inf, 1.0], "y contains infinity .* row 0"),
        ([0.0, 1.0], [1.0], [0.0, 1.0], "inconsistent numbers of samples"),
        ([0.0, 1.0], [1.0, 1.0], [0.0], "inconsistent numbers of samples"),
        ([[0.0, 1.0]], [1.0, 1.0], [0.0, 1.0], "1d array"),
    ],
)
def test_bad_predictions_are_named(mean, std, y, words):
    with pytest.raises(ValueError, match=words):
        SplitConformal().calibrate(mean, std, y)


def test_one_row_is_not_enough():
    with pytest.raises(ValueError, match="at least 2 rows"):
        SplitConformal(fixed_model()).fit([[0.0]], [1.0])
