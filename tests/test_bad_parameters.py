"""Levels and parameters that make no sense meet errors that name them and what is accepted."""

import re

import numpy as np
import pytest
from sklearn.gaussian_process.kernels import RBF

from cases import INF, fixed_model, make_data
from conformal_gp import ConformalGPRegressor

NAN = np.nan


@pytest.fixture(scope="module")
def model():
    return fixed_model(mean="linear").fit(*make_data(1, 20))


# Levels


@pytest.mark.parametrize("level", [0, 1, 0.0, 1.0, 95, 1.5, -0.5, NAN, INF, None, "0.9", True])
@pytest.mark.parametrize("method", ["predict_interval", "predict_set"])
def test_levels_that_are_none(model, method, level):
    with pytest.raises(ValueError, match=r"confidence_level.*strictly between 0 and 1") as error:
        getattr(model, method)(np.zeros((1, 2)), level)
    assert repr(level) in str(error.value)


@pytest.mark.parametrize("levels", [[], (), np.array([])])
def test_an_empty_sequence_of_levels(model, levels):
    with pytest.raises(ValueError, match=r"confidence_level.*at least one.*empty"):
        model.predict_interval(np.zeros((1, 2)), levels)


@pytest.mark.parametrize("levels", [[0.9, 0.0], [0.9, 95], [NAN]])
def test_one_bad_level_among_good_ones(model, levels):
    with pytest.raises(ValueError, match="confidence_level"):
        model.predict_interval(np.zeros((1, 2)), levels)


def test_regions_take_one_level(model):
    with pytest.raises(ValueError, match=r"confidence_level must be one number.*\[0\.8, 0\.9\]"):
        model.predict_set(np.zeros((1, 2)), [0.8, 0.9])


# Parameters


def assert_refused(parameter, value, accepted):
    X, y = make_data(8, 12)
    with pytest.raises(ValueError, match=re.escape(f"'{parameter}' parameter")) as error:
        ConformalGPRegressor(**{"noise_variance": 0.1, parameter: value}).fit(X, y)
    message = str(error.value)
    assert repr(value) in message
    assert accepted in message


@pytest.mark.parametrize("gamma", [0, 0.5, -1, 0.999999, NAN, -INF, "2", None])
def test_gamma_below_one(gamma):
    assert_refused("gamma", gamma, "in the range [1")


@pytest.mark.parametrize("gamma", [1, 2, np.float32(3.0), 1e300, INF])
def test_gamma_from_one_to_infinity(gamma):
    X, y = make_data(8, 12)
    assert np.isfinite(fixed_model(gamma=gamma).fit(X, y).predict_interval(X, 0.5)).any()


@pytest.mark.parametrize("gamma", [1e9, 1e300])
def test_a_huge_gamma_is_nearly_infinite(gamma):
    X, y = make_data(8, 12)
    found, expected = (fixed_model(gamma=g).fit(X, y).predict_interval(X, 0.8) for g in (gamma, INF))
    np.testing.assert_allclose(found, expected, rtol=1e-6)


@pytest.mark.parametrize("kernel", ["rbf", "SE", "", 5, None, RBF])
def test_unknown_kernels(kernel):
    assert_refused("kernel", kernel, "matern52")


@pytest.mark.parametrize("value", ["quadratic", None, 1])
def test_unknown_means(value):
    assert_refused("mean", value, "linear")


@pytest.mark.parametrize("value", ["bag", None])
def test_unknown_ways_of_tuning(value):
    assert_refused("tuning", value, "augmented")


@pytest.mark.parametrize("value", [-1e-9, NAN, INF, "small"])
def test_noise_variances_that_are_none(value):
    assert_refused("noise_variance", value, "[0")


@pytest.mark.parametrize(
    ("parameter", "value", "accepted"),
    [
        ("n_restarts", -1, "[0"),
        ("n_restarts", 1.5, "int"),
        ("scale_inputs", "yes", "bool"),
        ("random_state", "seed", "int"),
        ("n_jobs", 1.5, "int"),
    ],
)
def test_other_parameters(parameter, value, accepted):
    assert_refused(parameter, value, accepted)


def test_no_jobs_at_all():
    X, y = make_data(8, 12)
    with pytest.raises(ValueError, match="n_jobs"):
        ConformalGPRegressor(n_jobs=0).fit(X, y)


def test_fixed_tuning_needs_a_noise_variance():
    X, y = make_data(8, 12)
    with pytest.raises(ValueError, match=r"noise_variance must be a number with tuning='fixed', got None"):
        ConformalGPRegressor("se", tuning="fixed").fit(X, y)


def test_a_kernel_with_another_number_of_length_scales():
    X, y = make_data(8, 12)
    with pytest.raises(ValueError, match=r"kernel RBF.*does not take 2 inputs"):
        fixed_model(RBF([1.0, 2.0, 3.0])).fit(X, y)
