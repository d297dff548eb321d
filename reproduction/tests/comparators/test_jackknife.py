"""Jackknife and jackknife+: by hand, by refitting, MAPIE."""

import numpy as np
import pytest
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF, ConstantKernel, WhiteKernel
from sklearn.model_selection import LeaveOneOut

from cases import INF, MEANS, fixed_model, make_data
from conformal_gp import ConformalGPRegressor
from reproduction.comparators import Jackknife, JackknifePlus

LEVELS = [0.5, 0.8, 0.9, 0.95, 0.99]
NEW, _ = make_data(99, 6)


def leave_one_out(base, X, y, X_new):
    """Residuals, and predictions for new rows, of models fitted without each row."""
    residuals, predictions = [], []
    for i in range(y.size):
        model = base.fit(np.delete(X, i, axis=0), np.delete(y, i))
        residuals.append(y[i] - model.predict(X[i : i + 1])[0])
        predictions.append(model.predict(X_new))
    return np.abs(residuals), np.array(predictions)


@pytest.mark.parametrize("mean", MEANS)
@pytest.mark.parametrize("refit", [False, True])
def test_by_definition_with_honest_refits(mean, refit):
    X, y = make_data(1, 19)
    base = fixed_model("matern52", mean=mean)
    residuals, predictions = leave_one_out(base, X, y, NEW)
    full = base.fit(X, y).predict(NEW)
    jackknife, plus = (
        method(base, refit=refit).fit(X, y).predict_interval(NEW, LEVELS) for method in (Jackknife, JackknifePlus)
    )
    for j, k in enumerate([10, 4, 2, 1]):  # floor(delta * 20)
        half = np.sort(residuals)[19 - k]
        np.testing.assert_allclose(jackknife[:, :, j], np.stack([full - half, full + half], axis=1), rtol=1e-10)
        low = np.sort(predictions - residuals[:, None], axis=0)[k - 1]
        high = np.sort(predictions + residuals[:, None], axis=0)[19 - k]
        np.testing.assert_allclose(plus[:, :, j], np.stack([low, high], axis=1), rtol=1e-10)
    for found in (jackknife, plus):
        np.testing.assert_array_equal(found[:, :, 4], np.tile([-INF, INF], (6, 1)))


def test_normalised_jackknife():
    X, y = make_data(2, 19)
    model = Jackknife(fixed_model(), gamma=2.0).fit(X, y)
    left_out = model.left_out_
    np.testing.assert_allclose(model.scores_, np.abs(left_out.residual) / left_out.std)
    mean, std = model.estimator_.predict(NEW, return_std=True)
    half = np.sort(model.scores_)[17] * std
    np.testing.assert_allclose(model.predict_interval(NEW, 0.9), np.stack([mean - half, mean + half], axis=1))


def test_jackknife_plus_equals_mapie():
    mapie = pytest.importorskip("mapie.regression", reason="mapie is not installed")
    X, y = make_data(3, 30)
    base = GaussianProcessRegressor(ConstantKernel(1.0) * RBF(1.0) + WhiteKernel(0.1), alpha=0.0, optimizer=None)
    theirs = mapie.CrossConformalRegressor(base, confidence_level=[0.8, 0.9], method="plus", cv=LeaveOneOut())
    _, expected = theirs.fit_conformalize(X, y).predict_interval(NEW)
    found = JackknifePlus(fixed_model("se", 0.1)).fit(X, y).predict_interval(NEW, [0.8, 0.9])
    np.testing.assert_allclose(found, expected, rtol=1e-8)


def test_any_regressor_with_refits():
    X, y = make_data(4, 19)
    theirs = GaussianProcessRegressor(RBF(1.0) + WhiteKernel(0.1), alpha=0.0, optimizer=None)
    for method in (Jackknife, JackknifePlus):
        found = method(theirs, refit=True).fit(X, y).predict_interval(NEW, LEVELS)
        ours = method(fixed_model("se", 0.1)).fit(X, y).predict_interval(NEW, LEVELS)
        np.testing.assert_allclose(found, ours, rtol=1e-8)


@pytest.mark.parametrize("base", [GaussianProcessRegressor(optimizer=None), ConformalGPRegressor(tuning="auto")])
def test_closed_form_needs_one_posterior(base):
    X, y = make_data(5, 20)
    with pytest.raises(ValueError, match=r"estimator must be .* unless refit=True; got"):
        Jackknife(base).fit(X, y)


class Certain(GaussianProcessRegressor):
    """A regressor that is always sure."""

    def predict(self, X, return_std=False):
        return (np.zeros(len(X)), np.zeros(len(X))) if return_std else np.zeros(len(X))


def test_no_standard_deviation_to_divide_by():
    X, y = make_data(6, 10)
    with pytest.raises(ValueError, match="positive standard deviations"):
        Jackknife(Certain(), refit=True).fit(X, y)
