"""The two bands side by side, on one scale."""

import numpy as np
import pytest
from scipy.stats import norm
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF, WhiteKernel

from conformal_gp.plotting import ComparisonDisplay


def test_bands_are_those_of_the_two_methods(model, rows):
    display = ComparisonDisplay.from_estimator(model, rows[0], feature=1, confidence_level=0.9, n_points=7)
    along = np.tile(np.median(rows[0], axis=0), (7, 1))
    along[:, 1] = display.plain.grid
    mean, std = model.predict(along, return_std=True)
    np.testing.assert_allclose(display.plain.intervals[:, 1, 0], mean + norm.ppf(0.95) * std)
    np.testing.assert_allclose(display.plain.intervals[:, 0, 0], mean - norm.ppf(0.95) * std)
    np.testing.assert_allclose(display.conformal.intervals[:, :, 0], model.predict_interval(along, 0.9))


def test_same_scale_and_told_apart_without_colour(model, rows):
    display = ComparisonDisplay.from_estimator(model, rows[0], confidence_level=[0.8, 0.95], n_points=7)
    assert display.ax_[0].get_ylim() == display.ax_[1].get_ylim()
    assert [axis.get_title(loc="left") for axis in display.ax_] == ["Gaussian process", "Conformal"]
    assert all(band.get_hatch() for band in display.plain.bands_)
    assert not any(band.get_hatch() for band in display.conformal.bands_)


def test_another_plain_model_and_axes(model, rows, pyplot):
    X, y = rows
    plain = GaussianProcessRegressor(RBF() + WhiteKernel(0.1), optimizer=None).fit(X[:40], y[:40])
    figure, axes = pyplot.subplots(1, 2)
    display = ComparisonDisplay.from_estimator(model, X, y, plain=plain, n_points=5, ax=axes)
    assert display.figure_ is figure
    along = np.tile(np.median(X, axis=0), (5, 1))
    along[:, 0] = display.plain.grid
    np.testing.assert_allclose(display.plain.prediction, plain.predict(along))
    np.testing.assert_allclose(display.conformal.prediction, model.predict(along))


def test_two_axes_are_needed(model, rows, pyplot):
    with pytest.raises(ValueError, match="ax must be two axes, got 1"):
        ComparisonDisplay.from_estimator(model, rows[0], ax=pyplot.gca())
