"""Jackknife, jackknife+ and cross-conformal prediction, against models fitted without each fold."""

import numpy as np
import pytest
from rows import fixed_model, make_data, standardised
from sklearn.base import clone
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF, ConstantKernel, WhiteKernel
from sklearn.model_selection import KFold, LeaveOneOut

from conformal_gp import ConformalGPRegressor
from conformal_gp.conformal.levels import read_level
from reproduction.comparators import CrossConformal, Jackknife, JackknifePlus
from reproduction.comparators.left_out import deep_hull

INF = np.inf
LEVELS = [0.5, 0.8, 0.9, 0.95, 0.99]
MEANS = ["zero", "constant", "linear"]
NEW, _ = make_data(99, 6)


def refits(base, X, y, X_new, folds):
    """Residuals, standard deviations, and predictions for new rows of models fitted without each fold."""
    residuals, stds, predicted = np.empty(y.size), np.empty(y.size), []
    for train, held_out in folds:
        model = clone(base).fit(X[train], y[train])
        mean, stds[held_out] = model.predict(X[held_out], return_std=True)
        residuals[held_out] = y[held_out] - mean
        predicted.append(model.predict(X_new, return_std=True))
    means, new_stds = (np.stack(part, axis=1) for part in zip(*predicted, strict=True))
    return residuals, stds, means, new_stds


@pytest.mark.parametrize("mean", MEANS)
@pytest.mark.parametrize(("kernel", "noise"), [("se", 0.2), (RBF(0.8) + WhiteKernel(0.3), 0.0)])
@pytest.mark.parametrize("n_folds", [2, 7, 30])
def test_the_closed_form_equals_refits_with_fixed_hyperparameters(kernel, noise, mean, n_folds):
    X, y = make_data(1, 30)
    base = fixed_model(kernel, noise, mean=mean)
    model = CrossConformal(base, n_folds=n_folds, random_state=0).fit(X, y)
    folds = KFold(n_folds, shuffle=True, random_state=0).split(X)
    found = model.residuals_, model.stds_, *model.predict_left_out(NEW)
    for one, other in zip(found, refits(base, X, y, NEW, folds), strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("mean", MEANS)
@pytest.mark.filterwarnings("ignore:.*numbers from 40 rows:UserWarning")
def test_training_row_tuning_holds_hyperparameters_scaling_and_mean(mean):
    X, y = make_data(2, 40)
    units, centre = np.array([1e3, 1e-2]), np.array([5.0, -3.0])
    X, new = centre + units * X, centre + units * NEW
    model = CrossConformal(ConformalGPRegressor("se", mean=mean, tuning="train", n_restarts=0), random_state=0)
    base = model.fit(X, y).estimator_
    scaled, scaled_new = standardised(X, new)
    coefficients = {"zero": np.zeros(3), "constant": np.append(base.mean_coef_, [0.0, 0.0])}.get(mean, base.mean_coef_)
    trend, trend_new = (coefficients[0] + Z @ coefficients[1:] for Z in (scaled, scaled_new))
    folds = KFold(10, shuffle=True, random_state=0).split(X)
    frozen = fixed_model(base.kernel_, base.noise_variance_)
    residuals, stds, means, new_stds = refits(frozen, scaled, y - trend, scaled_new, folds)
    np.testing.assert_allclose(model.residuals_, residuals, atol=1e-8)
    np.testing.assert_allclose(model.stds_, stds, rtol=1e-8)
    found_means, found_stds = model.predict_left_out(new)
    np.testing.assert_allclose(found_means, means + trend_new[:, None], atol=1e-8)
    np.testing.assert_allclose(found_stds, new_stds, rtol=1e-8)


def test_a_fold_that_alone_determines_a_coefficient_has_infinite_residuals():
    rng = np.random.default_rng(7)
    X = np.column_stack([rng.normal(size=20), np.repeat([0.0, 1.0], [19, 1])])  # a category of one row
    model = Jackknife(fixed_model(mean="linear")).fit(X, rng.normal(size=20))
    assert np.isinf(model.residuals_[19])
    assert np.isfinite(model.residuals_[:19]).all()
    assert all(np.isfinite(part).all() for part in model.predict_left_out(X))


@pytest.mark.parametrize("mean", MEANS)
def test_jackknife_and_jackknife_plus_by_definition(mean):
    X, y = make_data(1, 19)
    base = fixed_model("matern52", mean=mean)
    residuals, _, predictions, _ = refits(base, X, y, NEW, LeaveOneOut().split(X))
    residuals, full = np.abs(residuals), base.fit(X, y).predict(NEW)
    jackknife, plus = (method(base).fit(X, y).predict_interval(NEW, LEVELS) for method in (Jackknife, JackknifePlus))
    for j, k in enumerate([10, 4, 2, 1]):  # floor(delta * 20)
        half = np.sort(residuals)[19 - k]
        np.testing.assert_allclose(jackknife[:, :, j], np.stack([full - half, full + half], axis=1), rtol=1e-9)
        low, high = (np.sort(predictions + sign * residuals, axis=1) for sign in (-1, 1))
        np.testing.assert_allclose(plus[:, :, j], np.stack([low[:, k - 1], high[:, 19 - k]], axis=1), rtol=1e-9)
    for found in (jackknife, plus):
        np.testing.assert_array_equal(found[:, :, 4], np.tile([-INF, INF], (6, 1)))


def test_normalised_jackknife():
    X, y = make_data(2, 19)
    model = Jackknife(fixed_model(), gamma=2.0).fit(X, y)
    mean, std = model.estimator_.predict(NEW, return_std=True)
    half = np.sort(np.abs(model.residuals_) / model.stds_)[17] * std
    np.testing.assert_allclose(model.predict_interval(NEW, 0.9), np.stack([mean - half, mean + half], axis=1))


def test_jackknife_plus_equals_mapie():
    mapie = pytest.importorskip("mapie.regression", reason="mapie is not installed")
    X, y = make_data(3, 30)
    base = GaussianProcessRegressor(ConstantKernel(1.0) * RBF(1.0) + WhiteKernel(0.1), alpha=0.0, optimizer=None)
    theirs = mapie.CrossConformalRegressor(base, confidence_level=[0.8, 0.9], method="plus", cv=LeaveOneOut())
    _, expected = theirs.fit_conformalize(X, y).predict_interval(NEW)
    found = JackknifePlus(fixed_model("se", 0.1)).fit(X, y).predict_interval(NEW, [0.8, 0.9])
    np.testing.assert_allclose(found, expected, rtol=1e-8)


@pytest.mark.parametrize("gamma", [1.0, 2.0, INF])
def test_cross_conformal_intervals_hold_the_labels_of_large_p_value(gamma):
    X, y = make_data(1, 39)
    labels = np.linspace(-8, 8, 1601)
    folds = list(KFold(5, shuffle=True, random_state=0).split(X))
    residuals, stds, means, new_stds = refits(fixed_model(), X, y, NEW, folds)
    count = np.zeros((len(NEW), labels.size), dtype=int)
    for j, (_, held_out) in enumerate(folds):
        scores = np.abs(residuals[held_out]) / stds[held_out] ** (2 / gamma)
        new_scores = np.abs(labels - means[:, [j]]) / new_stds[:, [j]] ** (2 / gamma)
        count += (new_scores[:, :, None] <= scores).sum(axis=2)
    model = CrossConformal(fixed_model(), n_folds=5, gamma=gamma, random_state=0).fit(X, y)
    for j, (low, high) in enumerate(model.predict_interval(NEW, LEVELS).transpose(2, 1, 0)):
        for row in range(len(NEW)):
            inside = labels[(1 + count[row]) > (1 - read_level(LEVELS[j])) * 40]
            assert low[row] == pytest.approx(inside.min(), abs=0.0101) or low[row] < -8
            assert high[row] == pytest.approx(inside.max(), abs=0.0101) or high[row] > 8


def test_deep_hulls_of_closed_intervals_by_counting():
    lower, upper = np.array([[0.0, 1.0, 5.0, 1.0]]), np.array([[1.0, 3.0, 6.0, 1.0]])  # two touch in 1
    expected = {0: [-INF, INF], 1: [0, 6], 2: [1, 1], 3: [1, 1], 4: [1, 1]}  # 4: empty, so the deepest label
    for k, ends in expected.items():
        np.testing.assert_array_equal(deep_hull(lower, upper, k), [ends])
    lower, upper = np.array([[-INF, 0.0, -INF]]), np.array([[INF, 1.0, INF]])
    np.testing.assert_array_equal(deep_hull(lower, upper, 2), [[-INF, INF]])
    np.testing.assert_array_equal(deep_hull(lower, upper, 3), [[0, 1]])
