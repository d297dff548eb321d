"""The public check of the guarantee: it passes what is valid, and finds what is not."""

import numpy as np
import pytest

import bags
from conformal_gp import ConformalGPRegressor
from conformal_gp.testing import check_validity

FIXED = {"kernel": "se", "tuning": "fixed", "noise_variance": 0.1, "scale_inputs": False}
MODELS = {
    "fixed": FIXED,
    "fixed, gamma": FIXED | {"gamma": np.inf},
    "fixed, linear mean": FIXED | {"mean": "linear"},
    "fixed, transformed": FIXED | {"target_transform": (np.arcsinh, np.sinh)},
    "fixed, bounds": FIXED | {"y_bounds": (-20.0, 20.0)},
    "holdout": {"tuning": "holdout", "tuning_rows": np.arange(30), "n_restarts": 0, "random_state": 0},
    "low rank": {"low_rank": 8, "tuning_rows": np.arange(30), "n_restarts": 0, "random_state": 0},
}


def rows(n, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.integers(0, 4, size=(n, 2)).astype(float)
    return X, np.round(X[:, 0] - X[:, 1] + rng.normal(size=n), 1)


@pytest.mark.parametrize("name", MODELS)
def test_valid_models_pass(name):
    X, y = rows(9 + (30 if "tuning_rows" in MODELS[name] else 0))
    check_validity(ConformalGPRegressor(**MODELS[name]), X, y)


def test_known_noise_and_groups():
    X, y = rows(10, seed=1)
    variance = np.r_[0.5, np.zeros(9)]  # given is not the same as zero
    check_validity(ConformalGPRegressor(**FIXED), X, y, y_variance=variance)
    check_validity(ConformalGPRegressor(**FIXED), X, y, groups=np.arange(10) % 2)


@pytest.mark.slow
@pytest.mark.parametrize("options", [{}, {"noise_variance": 0}, {"mean": "linear"}, {"y_bounds": (0.0, None)}])
@pytest.mark.parametrize("seed", range(4))
def test_averages_over_draws_from_the_prior(options, seed):
    X, y = rows(10, seed)
    check_validity(ConformalGPRegressor(**options), X, np.maximum(y, 0.0))


def test_replicates_without_noise_that_tie():
    """Sets contain what ties for p-values, also where next to no noise leaves few digits."""
    X, y = rows(56, seed=3)
    options = {"tuning": "holdout", "tuning_rows": np.arange(45), "noise_variance": 0, "n_restarts": 0}
    check_validity(ConformalGPRegressor(**options, random_state=0), X, np.maximum(y, 0.0))


def pure_noise(seed):
    rng = np.random.default_rng(seed)
    return rng.normal(size=(12, 6)), rng.normal(size=12)


class Shrunk(ConformalGPRegressor):
    """Intervals, sets and bounds are too narrow."""

    def predict_interval(self, X, confidence_level=0.95, **options):
        found = super().predict_interval(X, confidence_level, **options)
        middle = found.mean(axis=1, keepdims=True)
        return middle + 0.3 * (found - middle)


def test_what_is_not_valid_is_found():
    X, y = rows(9)
    with pytest.raises(AssertionError, match="does not contain the set"):
        check_validity(Shrunk(**FIXED), X, y, confidence_levels=[0.5])
    tuned_on_the_calibration_rows = ConformalGPRegressor("se", tuning="train", mean="zero")
    with pytest.raises(AssertionError, match="the theorem allows"):
        check_validity(tuned_on_the_calibration_rows, *pure_noise(0))


def test_tuning_rows_have_to_be_given():
    X, y = rows(20)
    with pytest.raises(ValueError, match="tuning_rows as row numbers"):
        check_validity(ConformalGPRegressor(tuning="holdout"), X, y)
    with pytest.raises(ValueError, match="tuning_rows must leave calibration rows: got all 20 rows of X"):
        check_validity(ConformalGPRegressor(tuning="holdout", tuning_rows=np.arange(20)), X, y)


def test_nothing_is_beyond_a_limit_that_is_a_bound():
    X, y = rows(10)
    y = np.maximum(y, 0.0)
    check_validity(ConformalGPRegressor(**FIXED, y_bounds=(0.0, None)), X, y, censoring=-(y == 0.0).astype(int))


def test_random_numbers_are_the_same_for_each_test_row():
    """Inducing inputs that differ from fit to fit would break the permutation."""
    X, y = rows(25)
    check_validity(ConformalGPRegressor(**FIXED, low_rank=5, tuning_rows=np.arange(11, 25)), X, y)


QUICK = [name for name in bags.MODELS if not bags.averages(name)]
SLOW = [name for name in bags.MODELS if bags.averages(name)]
VARIED = {
    "known noise": {},
    "groups": {},
    "transformation": {"target_transform": (np.arcsinh, np.sinh)},
    "bounds": {"y_bounds": (-30.0, 30.0)},
}


def check_model(name, how=None, seed=0):
    """Check a model of the permutation tests, as a user would."""
    first = bags.n_tuning(bags.MODELS[name])
    X, y = rows(first + 8, seed)
    if name == "box-cox":
        y = np.exp(y / 4.0)
    given = {}
    if how == "known noise":
        given["y_variance"] = np.random.default_rng(seed).uniform(0.0, 0.5, y.size)
    if how == "groups":
        given["groups"] = np.arange(y.size) % 2
    options = bags.MODELS[name] | VARIED.get(how, {})
    if first:
        options["tuning_rows"] = np.arange(first)
    with bags.few_draws():
        check_validity(ConformalGPRegressor(**options), X, y, **given)


@pytest.mark.parametrize("name", QUICK)
def test_every_model_that_is_quick(name):
    check_model(name)


@pytest.mark.parametrize("how", VARIED)
@pytest.mark.parametrize("name", ["fixed", "holdout", "holdout, difficulty", "low rank", "low rank, difficulty"])
def test_known_noise_groups_transformations_and_bounds(name, how):
    check_model(name, how)


@pytest.mark.slow
@pytest.mark.parametrize("name", SLOW)
def test_every_model_that_averages(name):
    check_model(name)


@pytest.mark.slow
@pytest.mark.parametrize("how", VARIED)
@pytest.mark.parametrize("name", ["default", "linear mean", "no noise"])
def test_averages_with_known_noise_groups_transformations_and_bounds(name, how):
    check_model(name, how)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(1, 6))
@pytest.mark.parametrize("name", QUICK)
def test_more_rows(name, seed):
    check_model(name, seed=seed)
