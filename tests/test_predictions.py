"""Predictions beside scikit-learn's (covariances, draws, no noise), and infinite ends with their warnings."""

import warnings

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import ConstantKernel, Matern, WhiteKernel

from conformal_gp import ConformalGPRegressor
from conformal_gp.extrapolation import ExtrapolationWarning

RNG = np.random.default_rng(0)
X = RNG.uniform(size=(60, 2))
Y = np.sin(6 * X[:, 0]) * X[:, 1] + 0.1 * RNG.standard_normal(60)
NEW = np.vstack([RNG.uniform(size=(8, 2)), X[:1]])
KERNEL = ConstantKernel(2.0) * Matern([0.5, 0.8], nu=2.5)
PLAIN = {"mean": "zero", "scale_inputs": False, "noise_variance": 0.01, "tuning": "fixed"}


def scikit_learn():
    return GaussianProcessRegressor(KERNEL + WhiteKernel(0.01), optimizer=None).fit(X, Y)


MODELS = {
    "exact": ConformalGPRegressor(KERNEL, **PLAIN),
    "low rank": ConformalGPRegressor(KERNEL, low_rank=np.vstack([X, NEW[:8]]), **PLAIN),
}


@pytest.mark.parametrize("model", MODELS.values(), ids=MODELS)
def test_covariances_are_those_of_scikit_learn(model):
    mean, cov = model.fit(X, Y).predict(NEW, return_cov=True)
    expected = scikit_learn().predict(NEW, return_cov=True)
    np.testing.assert_allclose(mean, expected[0], atol=1e-8)
    np.testing.assert_allclose(cov, expected[1], atol=1e-8)


@pytest.mark.parametrize("mean", ["constant", "linear"])
@pytest.mark.parametrize("low_rank", [False, 30])
def test_covariances_belong_to_a_prior_on_the_mean_that_is_vague(low_rank, mean):
    model = ConformalGPRegressor(KERNEL, low_rank=low_rank, **PLAIN | {"mean": mean}).fit(X, Y)
    cov = model.predict(NEW, return_cov=True)[1]
    np.testing.assert_allclose(np.sqrt(np.diagonal(cov)), model.predict(NEW, return_std=True)[1], rtol=1e-8)
    # against conditioning row by row: a label at one row tells of another as much as the covariance says
    if not low_rank:
        more = clone(model).fit(np.vstack([X, NEW[0]]), np.append(Y, 5.0))
        shift = more.predict(NEW[1:8]) - model.predict(NEW[1:8])
        gap = 5.0 - model.predict(NEW[:1])[0]
        np.testing.assert_allclose(shift, cov[0, 1:8] / cov[0, 0] * gap, atol=1e-8)


def test_draws_are_those_of_scikit_learn():
    model = ConformalGPRegressor(KERNEL, **PLAIN).fit(X, Y)
    np.testing.assert_allclose(model.sample_y(NEW[:8], 5, 3), scikit_learn().sample_y(NEW[:8], 5, 3), atol=1e-6)


def test_draws_of_mapped_labels_are_mapped_back():
    model = ConformalGPRegressor(KERNEL, target_transform="log", **PLAIN).fit(X, np.exp(Y))
    plain = ConformalGPRegressor(KERNEL, **PLAIN).fit(X, Y)
    np.testing.assert_allclose(np.log(model.sample_y(NEW, 3)), plain.sample_y(NEW, 3), atol=1e-8)
    with pytest.raises(ValueError, match="return_cov=True cannot be combined with"):
        model.predict(NEW, return_cov=True)


def test_standard_deviations_and_covariances_are_not_given_together():
    with pytest.raises(ValueError, match="return_std=True"):
        ConformalGPRegressor(KERNEL, **PLAIN).fit(X, Y).predict(NEW, return_std=True, return_cov=True)


SMOOTH = np.sin(6 * X[:, 0]) * X[:, 1]


@pytest.mark.parametrize("tuning", ["integrated", "holdout", "train"])
def test_no_noise_interpolates(tuning):
    model = ConformalGPRegressor(tuning=tuning, noise_variance=0, n_restarts=0, random_state=0).fit(X, SMOOTH)
    assert 0.0 < model.noise_variance_ <= 1e-7 * model.kernel_.k1.constant_value
    assert np.abs(model.predict(X) - SMOOTH).max() < 1e-3 * np.std(SMOOTH)
    assert not any("bound" in message for message in model._tuned.warnings)


# Infinite ends come with a warning that names row, level and reason, once a call.
UNDETERMINED = {
    "fixed": {"kernel": "se", "mean": "linear", "tuning": "fixed", "noise_variance": 0.1, "scale_inputs": False},
    "holdout": {"mean": "linear", "tuning": "holdout", "n_restarts": 0, "random_state": 0},
    "integrated": {"mean": "linear", "random_state": 0},
}


def fitted(name):
    rng = np.random.default_rng(0)
    X = np.column_stack([rng.uniform(size=(45, 2)), np.ones(45)])
    y = X[:, 0] + 0.1 * rng.normal(size=45) + 3.0
    return ConformalGPRegressor(**UNDETERMINED[name]).fit(X, y), X


@pytest.mark.parametrize("method", ["predict_interval", "predict_set", "predict_bound", "predict_quantiles"])
@pytest.mark.parametrize("name", UNDETERMINED)
def test_a_mean_that_the_training_rows_do_not_determine(name, method):
    model, X = fitted(name)
    new = X[:4].copy()
    new[2:, 2] = 2.0  # constant in the training rows
    call = getattr(model, method)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        warnings.simplefilter("ignore", ExtrapolationWarning)
        call(new, 0.8)
    (warning,) = caught
    assert "2 of 4 rows have infinite" in str(warning.message)
    assert "row 2" in str(warning.message)
    assert "=0.8" in str(warning.message)
    assert "do not determine the mean" in str(warning.message)
    assert warning.filename == __file__
    with warnings.catch_warnings(action="error"):
        call(X[:4], 0.8)


def test_a_measure_that_does_not_normalise():
    rng = np.random.default_rng(0)
    X = rng.uniform(size=(20, 1))
    options = {"kernel": "se", "mean": "linear", "tuning": "fixed", "noise_variance": 1e-6, "scale_inputs": False}
    model = ConformalGPRegressor(gamma=1.0, **options).fit(X, np.sin(9 * X[:, 0]) + 0.1 * rng.normal(size=20))
    with pytest.warns(UserWarning, match="calibration rows score as high"):
        found = model.predict_interval([[0.5], [1.3]], 0.9)
    assert np.isinf(found).any(axis=1).tolist() == [False, True]
