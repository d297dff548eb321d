"""Models without a fold from one fit, against models fitted without the fold."""

import numpy as np
import pytest
from sklearn.gaussian_process.kernels import RBF, ConstantKernel, WhiteKernel
from sklearn.model_selection import KFold

from cases import MEANS, fixed_model, make_basis, make_data
from conformal_gp import ConformalGPRegressor
from reproduction.comparators.leave_out import ClosedForm, Refits, fold_of_rows

KERNELS = {
    "se": ("se", 0.2),
    "ard": (ConstantKernel(2.0) * RBF([0.5, 1.5]), 0.05),
    "white": (RBF(0.8) + WhiteKernel(0.3), 0.0),
}
NEW = np.array([[0.2, 0.1], [-1.0, 1.2], [4.0, 4.0]])


def random_folds(n_rows, n_folds, seed=0):
    return [held for _, held in KFold(n_folds, shuffle=True, random_state=seed).split(np.zeros(n_rows))]


def assert_same(found, expected, X_new, tolerance=1e-10):
    np.testing.assert_array_equal(found.fold, expected.fold)
    np.testing.assert_allclose(found.residual, expected.residual, rtol=tolerance, atol=tolerance)
    np.testing.assert_allclose(found.std, expected.std, rtol=tolerance)
    for one, other in zip(found.predict(X_new), expected.predict(X_new), strict=True):
        np.testing.assert_allclose(one, other, rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize("mean", MEANS)
@pytest.mark.parametrize("name", KERNELS)
@pytest.mark.parametrize("n_folds", [2, 7, 30])
def test_equals_refits_when_hyperparameters_are_fixed(name, mean, n_folds):
    X, y = make_data(1, 30)
    kernel, noise = KERNELS[name]
    base = fixed_model(kernel, noise, mean=mean)
    folds = random_folds(30, n_folds)
    assert_same(ClosedForm(base.fit(X, y)._predictor, folds), Refits(base, X, y, folds), NEW)


@pytest.mark.parametrize("mean", MEANS)
@pytest.mark.filterwarnings("ignore:.*numbers from 40 rows:UserWarning")
def test_training_row_tuning_holds_hyperparameters_scaling_and_mean(mean):
    X, y = make_data(2, 40)
    units, centre = np.array([1e3, 1e-2]), np.array([5.0, -3.0])
    X, new = centre + units * X, centre + units * NEW
    base = ConformalGPRegressor("se", mean=mean, tuning="train", n_restarts=0).fit(X, y)
    folds = random_folds(40, 6)
    scaled, scaled_new = ((Z - X.mean(axis=0)) / X.std(axis=0) for Z in (X, new))
    trend, trend_new = (0.0 if mean == "zero" else make_basis(mean, Z) @ base.mean_coef_ for Z in (scaled, scaled_new))
    frozen = fixed_model(base.kernel_, base.noise_variance_)
    found = ClosedForm(base._predictor, folds)
    expected = Refits(frozen, scaled, y - trend, folds)
    np.testing.assert_allclose(found.residual, expected.residual, atol=1e-9)
    np.testing.assert_allclose(found.std, expected.std, rtol=1e-9)
    means, stds = found.predict(new)
    theirs, their_stds = expected.predict(scaled_new)
    np.testing.assert_allclose(means, theirs + np.reshape(trend_new, (-1, 1)), atol=1e-9)
    np.testing.assert_allclose(stds, their_stds, rtol=1e-9)


def test_holdout_tuning_estimates_the_mean_without_the_fold():
    X, y = make_data(3, 60)
    base = ConformalGPRegressor("se", mean="linear", tuning="holdout", n_restarts=0, scale_inputs=False, random_state=0)
    base.fit(X, y)
    folds = random_folds(60, 5)
    frozen = fixed_model(base.kernel_, base.noise_variance_, mean="linear")
    assert_same(ClosedForm(base._predictor, folds), Refits(frozen, X, y, folds), NEW, tolerance=1e-8)


def test_single_rows_are_the_textbook_formulas():
    X, y = make_data(4, 25)
    G = np.linalg.inv(ConstantKernel(1.0)(X) * RBF(1.0)(X) + 0.1 * np.eye(25))
    found = ClosedForm(fixed_model().fit(X, y)._predictor, list(np.arange(25)[:, None]))
    np.testing.assert_allclose(found.residual, G @ y / np.diag(G), rtol=1e-9)
    np.testing.assert_allclose(found.std, np.diag(G) ** -0.5, rtol=1e-9)


def test_many_test_rows_come_in_blocks_and_in_order():
    X, y = make_data(5, 20)
    new, _ = make_data(6, 14_000)
    found = ClosedForm(fixed_model(n_jobs=1).fit(X, y)._predictor, random_folds(20, 4))
    means, stds = found.predict(new)
    few = slice(13_990, None)
    np.testing.assert_allclose(means[few], found.predict(new[few])[0], atol=1e-12)
    np.testing.assert_allclose(stds[few], found.predict(new[few])[1], atol=1e-12)


def test_a_fold_that_alone_determines_a_coefficient_has_infinite_residuals():
    rng = np.random.default_rng(7)
    X = np.column_stack([rng.normal(size=20), np.repeat([0.0, 1.0], [17, 3])])  # a category of three rows
    y = rng.normal(size=20)
    predictor = fixed_model(mean="linear").fit(X, y)._predictor
    together = ClosedForm(predictor, [np.arange(17), np.arange(17, 20)])
    assert np.isinf(together.residual[17:]).all()
    apart = ClosedForm(predictor, list(np.arange(20)[:, None]))
    assert np.isfinite(apart.residual).all()
    alone = ClosedForm(fixed_model(mean="linear").fit(X[:18], y[:18])._predictor, list(np.arange(18)[:, None]))
    assert np.isinf(alone.residual[17])
    assert np.isfinite(alone.residual[:17]).all()
    assert all(np.isfinite(part).all() for part in alone.predict(X))


def test_fold_of_rows():
    np.testing.assert_array_equal(fold_of_rows([np.array([3, 1]), np.array([0, 2])]), [1, 0, 1, 0])
