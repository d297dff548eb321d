"""What "auto" stands for; parameters that make no sense: an error says what is accepted, and nothing is fitted."""

import re

import numpy as np
import pytest
from sklearn.exceptions import NotFittedError
from sklearn.gaussian_process.kernels import RBF, CompoundKernel, Kernel, WhiteKernel

from cases import INF, fixed_model, make_data
from conformal_gp import ConformalGPRegressor
from conformal_gp.models.settings import ROWS_FOR_EXACT, ROWS_FOR_INTEGRATED, Settings, automatic

X, Y = make_data(1, 30)
PAIR = CompoundKernel([RBF(1.0), RBF(2.0)])
THREE = RBF([1.0, 1.0, 1.0])
COMPOUND = (
    "kernel CompoundKernel(0, 0.693) holds a CompoundKernel, several kernels side by side, which is no covariance "
    "function; give a list of kernels to choose from, or their sum."
)
DIMENSIONS = (
    "kernel RBF(length_scale=[1, 1, 1]) does not take 2 inputs: Anisotropic kernel must have the same number of "
    "dimensions as data (3!=2)"
)
BOUNDS = "kernel RBF(length_scale=1): bounds of length_scale must be a pair of numbers, 0 <= low <= high, got "


# Automatic choices


def given(**options):
    return Settings(["se"], "auto", None, 2.0, True, 0, 1, n_inputs=2, **options)


def test_the_automatic_method():
    assert automatic(given(), ROWS_FOR_INTEGRATED).tuning == "integrated"
    assert automatic(given(), ROWS_FOR_INTEGRATED + 1).tuning == "holdout"
    for options in ({"tuning_rows": 5}, {"low_rank": True}, {"target_transform": "yeo-johnson"}, {"difficulty": RBF()}):
        assert automatic(given(**options), 20).tuning == "holdout"
    assert automatic(given(), 20, batches=True).tuning == "holdout"
    assert automatic(given(tuning="train"), 20).tuning == "train"


def test_what_depends_on_the_number_of_rows():
    assert [automatic(given(tuning="holdout"), n).mean for n in (59, 60)] == ["constant", "linear"]
    assert automatic(given(), 20).mean == "auto"
    assert [automatic(given(), n).low_rank for n in (ROWS_FOR_EXACT, ROWS_FOR_EXACT + 1)] == [False, True]
    assert not automatic(given(), ROWS_FOR_EXACT + 1, by_rows=False).low_rank


# Levels


@pytest.mark.parametrize("level", [95, None, [], [0.9, 95]])
def test_levels(level):
    model = fixed_model().fit(X, Y)
    for predict in (model.predict_interval, model.predict_set):
        with pytest.raises(ValueError, match="confidence_level"):
            predict(X[:1], level)
    with pytest.raises(ValueError, match=r"confidence_level must be one number.*\[0\.8, 0\.9\]"):
        model.predict_set(X[:1], [0.8, 0.9])


# Parameters that scikit-learn's table refuses


@pytest.mark.parametrize(
    ("parameter", "value", "accepted"),
    [
        ("gamma", 0.5, "in the range [1"),
        ("gamma", np.nan, "in the range [1"),
        ("gamma", "2", "in the range [1"),
        ("kernel", "linear", "matern52"),
        ("kernel", None, "matern52"),
        ("kernel", RBF, "matern52"),
        ("mean", "quadratic", "linear"),
        ("target_transform", "cube", "yeo-johnson"),
        ("low_rank", -1, "auto"),
        ("gamma", [1.0, 2.0], "in the range [1"),
        ("tuning", "bag", "integrated"),
        ("noise_variance", -1e-9, "[0"),
        ("noise_variance", INF, "[0"),
        ("n_restarts", -1, "[0"),
        ("n_restarts", 1.5, "int"),
        ("scale_inputs", "yes", "bool"),
        ("random_state", "seed", "int"),
        ("n_jobs", 0, "int"),
    ],
)
def test_values(parameter, value, accepted):
    with pytest.raises(ValueError, match=re.escape(f"'{parameter}' parameter")) as error:
        ConformalGPRegressor(**{"noise_variance": 0.1, parameter: value}).fit(X, Y)
    assert repr(value) in str(error.value)
    assert accepted in str(error.value)


# Parameters that do not go with each other, or with the rows


WRONG = {
    "no noise": (
        {"tuning": "fixed"},
        "noise_variance must be a number with tuning='fixed', got None (0 if the kernel has its own noise).",
    ),
    "compound": ({"kernel": PAIR, "tuning": "holdout"}, COMPOUND),
    "compound, fixed": ({"kernel": PAIR, "tuning": "fixed", "noise_variance": 0.1}, COMPOUND),
    "compound, integrated": ({"kernel": PAIR, "tuning": "integrated"}, COMPOUND),
    "compound inside": (
        {"kernel": PAIR + WhiteKernel(), "tuning": "train"},
        COMPOUND.replace("0.693)", "0.693) + WhiteKernel(noise_level=1)"),
    ),
    "dimensions": ({"kernel": THREE, "tuning": "holdout"}, DIMENSIONS),
    "dimensions, integrated": ({"kernel": THREE, "tuning": "integrated"}, DIMENSIONS),
    "too many": (
        {"tuning_rows": 30, "tuning": "holdout"},
        "tuning_rows must leave calibration rows: got 30 of n_samples=30 rows.",
    ),
    "length scale": (
        {"kernel": RBF(-1.0), "tuning": "holdout"},
        "kernel RBF(length_scale=-1): length_scale must be positive and finite, got -1.0.",
    ),
    "length scale, held": (
        {"kernel": RBF(0.0, "fixed"), "tuning": "fixed", "noise_variance": 0.1},
        "kernel RBF(length_scale=0) has values that are not finite.",
    ),
    "negative bound": ({"kernel": RBF(1.0, (-1.0, 1e5)), "tuning": "train"}, BOUNDS + "[[-1.0, 100000.0]]."),
    "bounds exchanged": ({"kernel": RBF(1.0, (10.0, 1.0)), "tuning": "holdout"}, BOUNDS + "[[10.0, 1.0]]."),
    "three bounds": ({"kernel": RBF(1.0, (1.0, 2.0, 3.0)), "tuning": "train"}, BOUNDS + "[[1.0, 2.0, 3.0]]."),
}


@pytest.mark.parametrize("name", WRONG)
def test_combinations(name):
    options, message = WRONG[name]
    model = ConformalGPRegressor(**options)
    with pytest.raises(ValueError, match=f"^{re.escape(message)}$"):
        model.fit(X, Y)
    with pytest.raises(NotFittedError):
        model.predict(X)
    assert not hasattr(model, "n_features_in_")


# Kernels that are no covariance functions


class Power(Kernel):
    """exp(-r^power): no covariance function beyond a power of 2."""

    def __init__(self, power=4.0):
        self.power = power

    def __call__(self, X, Y=None, eval_gradient=False):
        r = np.sqrt(((X[:, None] - (X if Y is None else Y)) ** 2).sum(axis=2))
        K = np.exp(-(r**self.power))
        return (K, np.empty((*K.shape, 0))) if eval_gradient else K

    def diag(self, X):
        return np.ones(len(X))

    def is_stationary(self):
        return True

    def __repr__(self):
        return f"Power({self.power:g})"


@pytest.mark.parametrize(
    "options",
    [
        {"kernel": Power(), "tuning": "fixed", "noise_variance": 0.5},
        {"kernel": Power(), "tuning": "holdout", "noise_variance": 0.5, "n_restarts": 0},
    ],
)
def test_indefinite_kernels(options):
    with pytest.raises(ValueError, match=r"^kernel .*Power\(4\) is no covariance function"):
        ConformalGPRegressor(scale_inputs=False, random_state=0, **options).fit(3.0 * X, Y)


def test_indefinite_kernel_of_a_test_row():
    """Three rows on a line have no negative eigenvalue where the middle one is missing."""
    line = np.array([[0.0], [1.2], [0.6]])
    model = fixed_model(Power(), 1e-3).fit(line[:2], [0.0, 1.0])
    with pytest.raises(ValueError, match=r"Power\(4\) is no covariance function.*test row would have a variance of -"):
        model.predict_p(line[2:], [0.5])


# Fits that fail


class Interrupting(RBF):
    """A kernel during whose evaluation the user stops the program."""

    def __call__(self, X, Y=None, eval_gradient=False):
        raise KeyboardInterrupt


FAILURES = {
    "NaN": (np.full((9, 3), np.nan), np.zeros(9)),
    "other width": (np.zeros((9, 3)), np.arange(8.0)),
    "labels": (np.ones((9, 3)), np.full(9, INF)),
    "inside": (np.vstack([np.ones((9, 3)), np.full((1, 3), 1e153)]), np.arange(10.0)),
}
MODELS = {
    "fixed": ConformalGPRegressor(1.0 * RBF(1.0), tuning="fixed", noise_variance=0.1, scale_inputs=False),
    "holdout": ConformalGPRegressor(1.0 * RBF(1.0), tuning="holdout", n_restarts=0, scale_inputs=False),
    "integrated": ConformalGPRegressor(1.0 * RBF(1.0), tuning="integrated", scale_inputs=False),
    "low rank": ConformalGPRegressor(1.0 * RBF(1.0), low_rank=5, n_restarts=0, scale_inputs=False),
}


@pytest.mark.parametrize("name", MODELS)
def test_a_failed_or_interrupted_refit_leaves_the_model_as_it_was(name):
    model = MODELS[name].set_params(mean="constant", random_state=0).fit(X, Y)
    before, state = model.predict_interval(X[:3], 0.8), dict(vars(model))
    for rows in FAILURES.values():
        with pytest.raises(ValueError):  # noqa: PT011 (which one does not matter here)
            model.fit(*rows)
        assert vars(model) == state
    if name == "fixed":
        model.kernel = state["kernel"] = Interrupting(1.0)
        with pytest.raises(KeyboardInterrupt):
            model.fit(X[:9], Y[:9])
        assert vars(model) == state
    np.testing.assert_array_equal(model.predict_interval(X[:3], 0.8), before)


@pytest.mark.parametrize("name", MODELS)
def test_what_a_fit_leaves_can_be_changed_without_harm(name):
    model = MODELS[name].set_params(mean="constant", random_state=0)
    kernel = 1.0 * RBF(1.0)
    model.set_params(kernel=kernel)
    model.fit(X, Y)
    before = model.predict_interval(X[:3], 0.8)
    model.kernel_.k2.length_scale = kernel.k2.length_scale = 99.0
    model.mean_coef_[:] = 99.0
    model.tuning_rows_[:] = 0
    np.testing.assert_array_equal(model.predict_interval(X[:3], 0.8), before)
    kernel.k2.length_scale = 1.0


def test_arguments_of_the_low_rank_model():
    with pytest.raises(ValueError, match=re.escape("low_rank does not hold inducing inputs: X has masked entries (1)")):
        ConformalGPRegressor(low_rank=np.ma.masked_equal(X, X[3, 1])).fit(X, Y)
    for wrong, message in (
        ([[1.0]], "low_rank does not hold inducing inputs: X has 1 features"),
        ([["a", "b"]], "low_rank does not hold inducing inputs: X holds 'a' in row 0, column 0; inputs must be"),
        ([[1.0, np.nan]], r"low_rank does not hold inducing inputs: X has no value \(NaN\) in row 0, column 1"),
    ):
        with pytest.raises(ValueError, match=message):
            ConformalGPRegressor(low_rank=wrong).fit(X, Y)
