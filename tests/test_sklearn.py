"""A citizen of scikit-learn."""

import warnings

import joblib
import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn.base import clone
from sklearn.gaussian_process.kernels import RBF, ConstantKernel
from sklearn.utils import estimator_checks
from sklearn.utils.estimator_checks import parametrize_with_checks

from cases import fixed_model, make_data
from conformal_gp import ConformalGPRegressor, ExtrapolationWarning

INPUTS = np.array([[0.1, 0.2], [1.0, -1.0], [3.0, 3.0]])


# Few starts and few rows to average over: checks are about the interface.
CHEAP = [
    ConformalGPRegressor("se", tuning="fixed", noise_variance=0.1),
    ConformalGPRegressor(tuning="holdout", mean="constant", low_rank=10, n_restarts=0, random_state=0),
]


@parametrize_with_checks(CHEAP)
@pytest.mark.filterwarnings("ignore:.*ended on its:UserWarning", "ignore:y is reproduced exactly:UserWarning")
def test_estimator_checks(estimator, check):
    check(estimator)


@pytest.mark.parametrize(
    "name",
    [
        "check_fit2d_1sample",
        "check_fit2d_1feature",
        "check_fit_check_is_fitted",
        "check_dict_unchanged",
        "check_estimators_dtypes",
        "check_estimators_overwrite_params",
        "check_n_features_in",
    ],
)
@pytest.mark.filterwarnings("ignore:y is reproduced exactly:UserWarning")
def test_estimator_checks_of_the_default(name):
    getattr(estimator_checks, name)("ConformalGPRegressor", ConformalGPRegressor())


def test_parameters_are_those_of_the_contract_and_keywords_after_the_kernel():
    assert ConformalGPRegressor().get_params() == {
        "kernel": "matern52",
        "mean": "auto",
        "noise_variance": None,
        "gamma": 2.0,
        "tuning": "auto",
        "tuning_rows": None,
        "ard": True,
        "target_transform": "auto",
        "difficulty": "auto",
        "y_bounds": "auto",
        "missing": "auto",
        "scale_inputs": True,
        "low_rank": "auto",
        "n_restarts": 3,
        "random_state": None,
        "n_jobs": None,
        "verbose": False,
    }
    with pytest.raises(TypeError):
        ConformalGPRegressor("se", "linear")


@pytest.mark.parametrize("frame", [pd.DataFrame, pl.DataFrame])
def test_frames_with_feature_names(frame):
    X, y = make_data(6, 30)
    named = frame({"width": X[:, 0], "height": X[:, 1]})
    labels = {pd.DataFrame: pd.Series, pl.DataFrame: pl.Series}[frame](y)
    inputs = frame({"width": INPUTS[:, 0], "height": INPUTS[:, 1]})
    model = fixed_model(mean="linear").fit(named, labels)
    plain = fixed_model(mean="linear").fit(X, y)
    assert list(model.feature_names_in_) == ["width", "height"]
    assert model.n_features_in_ == 2
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.simplefilter("ignore", ExtrapolationWarning)
        for answer in ("predict", "predict_interval", "predict_set"):  # columns are in another order of memory
            for one, other in zip(getattr(model, answer)(inputs), getattr(plain, answer)(INPUTS), strict=True):
                np.testing.assert_allclose(one, other, rtol=1e-12)
        p = model.predict_p(inputs, labels[:3])
    np.testing.assert_array_equal(p, plain.predict_p(INPUTS, y[:3]))


@pytest.mark.parametrize("dtype", [np.float32, np.float16, np.int64, np.int32, np.uint8, bool])
def test_other_types_of_numbers_give_what_their_float64_values_give(dtype):
    rng = np.random.default_rng(7)
    X, y = rng.integers(0, 2 if dtype is bool else 9, (25, 3)).astype(dtype), rng.integers(0, 50, 25).astype(dtype)
    model = fixed_model(mean="linear").fit(X, y)
    plain = fixed_model(mean="linear").fit(X.astype(float), y.astype(float))
    found = model.predict_interval(X, 0.8)
    assert found.dtype == np.float64
    np.testing.assert_array_equal(found, plain.predict_interval(X.astype(float), 0.8))
    np.testing.assert_array_equal(model.predict_p(X, y), plain.predict_p(X.astype(float), y.astype(float)))


def test_lists_and_other_layouts_of_arrays():
    X, y = make_data(8, 20)
    expected = fixed_model(mean="linear").fit(X, y).predict_interval(INPUTS, 0.8)
    strided = np.repeat(X, 2, axis=1)[:, ::2], np.repeat(y, 3)[::3]
    for inputs, labels in ((X.tolist(), y.tolist()), (np.asfortranarray(X), y), strided):
        model = fixed_model(mean="linear").fit(inputs, labels)
        np.testing.assert_allclose(model.predict_interval(INPUTS.tolist(), 0.8), expected, rtol=1e-12)
        np.testing.assert_allclose(model.predict_interval(np.asfortranarray(INPUTS), 0.8), expected, rtol=1e-12)


@pytest.mark.parametrize("tuning", ["fixed", "train"])
def test_arguments_are_left_alone(tuning):
    X, y = make_data(9, 20)
    kernel = ConstantKernel(1.0) * RBF(1.0)
    inputs, labels = INPUTS.copy(), np.zeros(3)
    for array in (X, y, inputs, labels):
        array.flags.writeable = False
    model = ConformalGPRegressor(kernel, tuning=tuning, noise_variance=0.1, n_restarts=0, scale_inputs=False).fit(X, y)
    model.predict(inputs, return_std=True)
    model.predict_interval(inputs, [0.5, 0.8])
    model.predict_set(inputs, 0.8)
    model.predict_p(inputs, labels, smoothing=True)
    assert kernel == ConstantKernel(1.0) * RBF(1.0)
    assert model.get_params()["kernel"] is kernel


def test_parallel_fits_give_the_same_as_one_after_the_other():
    X, y = make_data(11, 30)
    models = [ConformalGPRegressor("se", tuning="train", random_state=seed, n_restarts=1) for seed in range(4)]

    def run(model):
        return clone(model).fit(X, y).predict_interval(INPUTS, 0.8)

    alone = [run(model) for model in models]
    together = joblib.Parallel(2, backend="threading")(joblib.delayed(run)(model) for model in models)
    np.testing.assert_allclose(together, alone, rtol=1e-9)
