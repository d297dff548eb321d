"""Arguments that cannot be right: an error that says what is wrong, word for word, and nothing is fitted."""

import re

import numpy as np
import pytest
from sklearn.exceptions import NotFittedError
from sklearn.gaussian_process.kernels import RBF, CompoundKernel, Kernel, WhiteKernel

from conformal_gp import ConformalGPRegressor, SparseConformalGPRegressor

rng = np.random.default_rng(0)
X = rng.normal(size=(30, 2))
Y = X[:, 0] + 0.1 * rng.normal(size=30)
HUGE = X.copy()
HUGE[3, 1] = 1e155
FAR = X.copy()
FAR[3, 1] = 1e153
MASKED = np.ma.masked_greater(X, 1.9)
MASKED_LABELS = np.ma.masked_less(Y, np.sort(Y)[2])
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
SHARE = "design must leave rows to rank: got 30 of n_samples=30 rows."
TOO_FAR = (
    "X reaches 1.0e+153 in column 1, too far from the other rows for distances to be computed; leave such rows out."
)
BOUNDS = "kernel RBF(length_scale=1): bounds of length_scale must be a pair of numbers, 0 <= low <= high, got "


def exactly(message):
    """An error that says this, and nothing else."""
    return pytest.raises(ValueError, match=f"^{re.escape(message)}$")


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


WRONG = {
    "compound": ({"kernel": PAIR}, COMPOUND),
    "compound, holdout": ({"kernel": PAIR, "tuning": "holdout"}, COMPOUND),
    "compound, train": ({"kernel": PAIR, "tuning": "train"}, COMPOUND),
    "compound, fixed": ({"kernel": PAIR, "tuning": "fixed", "noise_variance": 0.1}, COMPOUND),
    "compound candidate": ({"candidates": [(RBF(1.0), 0.1), (PAIR, 0.1)]}, COMPOUND),
    "compound inside": (
        {"kernel": PAIR + WhiteKernel()},
        COMPOUND.replace("0.693)", "0.693) + WhiteKernel(noise_level=1)"),
    ),
    "dimensions": ({"kernel": THREE}, DIMENSIONS),
    "dimensions, holdout": ({"kernel": THREE, "tuning": "holdout"}, DIMENSIONS),
    "candidate of wrong dimension": ({"candidates": [(RBF(1.0), 0.1), (THREE, 0.1)]}, DIMENSIONS),
    "share": ({"design": 0.99, "tuning": "holdout"}, SHARE),
    "share, augmented": ({"design": 0.99, "gamma": [2.0, 8.0]}, SHARE),
    "length scale": (
        {"kernel": RBF(-1.0)},
        "kernel RBF(length_scale=-1): length_scale must be positive and finite, got -1.0.",
    ),
    "length scale, fixed": (
        {"kernel": RBF(0.0), "tuning": "fixed", "noise_variance": 0.1},
        "kernel RBF(length_scale=0): length_scale must be positive and finite, got 0.0.",
    ),
    "length scale, held": (
        {"kernel": RBF(0.0, "fixed"), "tuning": "fixed", "noise_variance": 0.1},
        "kernel RBF(length_scale=0) has values that are not finite.",
    ),
    "negative bound": ({"kernel": RBF(1.0, (-1.0, 1e5))}, BOUNDS + "[[-1.0, 100000.0]]."),
    "bounds exchanged": ({"kernel": RBF(1.0, (10.0, 1.0)), "tuning": "holdout"}, BOUNDS + "[[10.0, 1.0]]."),
    "three bounds": ({"kernel": RBF(1.0, (1.0, 2.0, 3.0))}, BOUNDS + "[[1.0, 2.0, 3.0]]."),
    "candidates, holdout": (
        {"candidates": [(RBF(1.0), 0.1)], "tuning": "holdout"},
        "candidates is used with tuning='augmented', not with tuning='holdout'; leave it at None.",
    ),
    "candidates, fixed": (
        {"candidates": [(RBF(1.0), 0.1)], "tuning": "fixed", "noise_variance": 0.1},
        "candidates is used with tuning='augmented', not with tuning='fixed'; leave it at None.",
    ),
    "design, fixed": (
        {"design": 9, "tuning": "fixed", "noise_variance": 0.1},
        "design is used with tuning='augmented' or 'holdout', not with tuning='fixed'; leave it at None.",
    ),
    "design, train": (
        {"design": [1, 2, 3], "tuning": "train"},
        "design is used with tuning='augmented' or 'holdout', not with tuning='train'; leave it at None.",
    ),
    "noise that is a truth value": (
        {"candidates": [(RBF(1.0), True)]},
        "candidates must have positive noise variances, got True.",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", WRONG)
def test_parameters(name):
    options, message = WRONG[name]
    model = ConformalGPRegressor(**options)
    with exactly(message):
        model.fit(X, Y)
    with pytest.raises(NotFittedError):
        model.predict(X)
    assert not hasattr(model, "n_features_in_")


ROWS = {
    "huge": (HUGE, Y, "X reaches 1.0e+155, whose square overflows; divide column 1 by a constant."),
    "far": (FAR, Y, TOO_FAR),
    "huge label": (X, np.append(1e200, Y[1:]), "y reaches 1.0e+200, whose square overflows; divide y by a constant."),
    "masked": (MASKED, Y, f"X has masked entries ({MASKED.mask.sum()}); fill them in or leave these rows out."),
    "masked label": (X, MASKED_LABELS, "y has masked entries (2); fill them in or leave these rows out."),
}  # fmt: skip


@pytest.mark.parametrize("name", ROWS)
@pytest.mark.parametrize("tuning", ["augmented", "fixed"])
def test_rows(name, tuning):
    inputs, labels, message = ROWS[name]
    options = {"tuning": tuning, "noise_variance": 0.1, "mean": "constant", "scale_inputs": False}
    with exactly(message):
        ConformalGPRegressor("se", **options).fit(inputs, labels)
    model = ConformalGPRegressor("se", **options).fit(X, Y)
    with exactly(message):
        model.predict_p(inputs, labels)


def test_indefinite_kernel_of_the_training_rows():
    options = {"tuning": "fixed", "noise_variance": 0.5, "scale_inputs": False}
    least = np.linalg.eigvalsh(Power()(X))[0]
    with exactly(
        "kernel Power(4) is no covariance function: it is not positive semi-definite on these inputs (its matrix over "
        f"the rows has an eigenvalue of {least:.1e})."
    ):
        ConformalGPRegressor(Power(), **options).fit(X, Y)


def test_indefinite_kernel_that_is_learnt_with():
    with pytest.raises(ValueError, match=r"Power\(4\) is no covariance function"):
        ConformalGPRegressor(Power(), tuning="holdout", noise_variance=0.5, scale_inputs=False, n_restarts=0).fit(X, Y)


def test_indefinite_kernel_of_a_candidate():
    with pytest.raises(ValueError, match=r"^kernel Power\(2\.1\) is no covariance function"):
        ConformalGPRegressor(candidates=[(RBF(1.0), 0.1), (Power(2.1), 0.1)]).fit(X, Y)


def test_indefinite_kernel_of_a_test_row():
    """Three rows on a line have no negative eigenvalue where the middle one is missing."""
    line = np.array([[0.0], [1.2], [0.6]])
    options = {"mean": "zero", "tuning": "fixed", "noise_variance": 1e-3, "scale_inputs": False}
    model = ConformalGPRegressor(Power(), **options).fit(line[:2], [0.0, 1.0])
    message = (
        "kernel Power(4) is no covariance function: it is not positive semi-definite on these inputs (a test row would "
        "have a variance of -"
    )
    with pytest.raises(ValueError, match=f"^{re.escape(message)}"):
        model.predict_p(line[2:], [0.5])
    assert np.linalg.eigvalsh(Power()(line))[0] < 0.0


@pytest.mark.parametrize("power", [4.0, 2.1, 1.9])
def test_a_bag_with_any_kernel_is_exact_or_refused(power):
    for seed in range(5):
        draw = np.random.default_rng(seed)
        inputs = draw.normal(size=(12, 2))
        labels = np.sin(inputs[:, 0]) + 0.3 * draw.normal(size=12)
        found = []
        for i in range(12):
            model = ConformalGPRegressor(candidates=[(Power(power), 0.1), (RBF(1.0), 0.1)])
            rest = np.arange(12) != i
            try:
                p = model.fit(inputs[rest], labels[rest]).predict_p(inputs[~rest], labels[~rest])[0]
            except ValueError:
                continue
            assert "Exact" in model.guarantee_
            found.append(round(12 * p))
        if len(found) == 12 or power < 2.0:
            assert sorted(found) == list(range(1, 13))


REFITS = {
    "NaN": (np.full((9, 3), np.nan), np.zeros(9)),
    "other width": (np.zeros((9, 3)), np.arange(8.0)),
    "labels": (np.ones((9, 3)), np.full(9, np.inf)),
    "too few": (np.ones((1, 3)), np.ones(1)),
    "inside": (np.vstack([np.ones((9, 3)), np.full((1, 3), 1e153)]), np.arange(10.0)),
}


@pytest.mark.parametrize("name", REFITS)
@pytest.mark.parametrize(
    "model",
    [
        ConformalGPRegressor("se", tuning="fixed", noise_variance=0.1, scale_inputs=False),
        ConformalGPRegressor(candidates=[(RBF(1.0), 0.1)], scale_inputs=False),
        SparseConformalGPRegressor("se", tuning="fixed", noise_variance=0.1, n_inducing=5, scale_inputs=False),
    ],
    ids=["fixed", "candidates", "sparse"],
)
def test_a_failed_refit_leaves_the_model_as_it_was(model, name):
    model.set_params(mean="constant").fit(X, Y)
    before, state = model.predict_interval(X[:3]), dict(vars(model))
    with pytest.raises(ValueError):  # noqa: PT011 (which one does not matter here)
        model.fit(*REFITS[name])
    assert vars(model) == state
    np.testing.assert_array_equal(model.predict_interval(X[:3]), before)


def test_an_interrupted_refit_leaves_the_model_as_it_was(monkeypatch):
    model = ConformalGPRegressor("se", tuning="fixed", noise_variance=0.1).fit(X, Y)
    before, state = model.predict_interval(X[:3]), dict(vars(model))

    def interrupted(*arguments):
        raise KeyboardInterrupt

    monkeypatch.setattr(ConformalGPRegressor, "_carry_out", interrupted)
    with pytest.raises(KeyboardInterrupt):
        model.fit(np.ones((9, 3)), np.arange(9.0))
    assert vars(model) == state
    np.testing.assert_array_equal(model.predict_interval(X[:3]), before)


@pytest.mark.parametrize(
    "model",
    [
        ConformalGPRegressor(1.0 * RBF(1.0), tuning="fixed", noise_variance=0.1),
        ConformalGPRegressor(1.0 * RBF(1.0), tuning="holdout", n_restarts=0, random_state=0),
        ConformalGPRegressor(candidates=[(1.0 * RBF(1.0), 0.1)]),
        SparseConformalGPRegressor(1.0 * RBF(1.0), n_inducing=5, n_restarts=0, random_state=0),
    ],
    ids=["fixed", "holdout", "candidates", "sparse"],
)
def test_what_a_fit_leaves_can_be_changed_without_harm(model):
    kernel = model.candidates[0][0] if getattr(model, "candidates", None) else model.kernel
    model.fit(X, Y)
    before = model.predict_interval(X[:3], 0.8)
    model.kernel_.k2.length_scale = kernel.k2.length_scale = 99.0
    model.mean_coef_[:] = 99.0
    model.design_[:] = 0
    if hasattr(model, "inducing_"):
        model.inducing_[:] = 99.0
    np.testing.assert_array_equal(model.predict_interval(X[:3], 0.8), before)
    kernel.k2.length_scale = 1.0


def test_masked_inducing_inputs():
    message = f"inducing has masked entries ({MASKED.mask.sum()}); fill them in or leave these rows out."
    with exactly(message):
        SparseConformalGPRegressor(inducing=MASKED).fit(X, Y)


def test_share_of_design_rows_of_a_sparse_model():
    with exactly(SHARE):
        SparseConformalGPRegressor(design=0.99).fit(X, Y)
