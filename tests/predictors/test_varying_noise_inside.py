"""Noise that varies with the inputs, tuned inside the bag: what is traced is what brute force finds at each label."""

import pickle

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.gaussian_process.kernels import RBF, ConstantKernel, Matern

import bag_oracle
from cases import contains
from conformal_gp import ConformalGPRegressor
from saved_models import loaded, saved

KERNELS = {
    "each": Matern([1.0, 1.0], nu=2.5),
    "one": RBF(1.0),
    "sum": ConstantKernel() * RBF([1.0, 1.0]) + ConstantKernel() * Matern(1.0, nu=1.5),  # not compiled
}
VARYING = {"noise": "varying", "tuning": "augmented"}


def rows(seed, l, steepness=1.0):
    """Noise whose logarithm rises with the first input."""
    rng = np.random.default_rng(seed)
    X = rng.uniform(-2, 2, (l + 3, 2))
    y = np.sin(X[:, 0]) + 0.3 * X[:, 1] + 0.1 * np.exp(steepness * X[:, 0]) * rng.standard_normal(l + 3)
    return X[:l], y[:l], X[l:], y[l:]


@pytest.mark.parametrize(
    ("name", "options"),
    [
        ("each", {}),
        ("each", {"mean": "linear"}),
        ("each", {"mean": "zero"}),
        ("each", {"scale_inputs": False}),
        ("each", {"gamma": 1.0}),
        ("one", {}),
        ("sum", {"mean": "linear", "scale_inputs": False}),
    ],
)
def test_p_values_equal_brute_force(name, options):
    varies = 0
    for seed in range(2):
        X, y, X_new, y_new = rows(seed, 40)
        options = {"mean": "constant", **options}
        model = ConformalGPRegressor(clone(KERNELS[name]), **VARYING, **options).fit(X, y)
        varies += model.noise_coef_.size
        labels = np.concatenate([y_new[:1], model.predict(X_new[:1]) + y.std() * np.linspace(-3, 3, 9)])
        found = model.predict_p(np.repeat(X_new[:1], labels.size, axis=0), labels)
        expected = [
            bag_oracle.p_value(X, y, X_new[0], label, KERNELS[name], varying=True, **options) for label in labels
        ]
        np.testing.assert_allclose(found, expected, atol=1e-12)
    assert varies


@pytest.mark.parametrize("gamma", [2.0, np.inf])
def test_regions_equal_brute_force_and_end_where_it_does(gamma):
    X, y, X_new, _ = rows(7, 40)
    kernel = KERNELS["each"]
    model = ConformalGPRegressor(clone(kernel), mean="constant", gamma=gamma, **VARYING).fit(X, y)
    assert model.noise_coef_[0] > 0.5
    for x in X_new:
        (region,) = model.predict_set(x[None], 0.8)
        for label in bag_oracle.labels_about(region):
            p = bag_oracle.p_value(X, y, x, label, kernel, gamma=gamma, tie=1e-13, varying=True)
            assert (p > 0.2 + 1e-9) == contains(region, label), (label, region)


def test_widths_follow_the_noise_and_constant_noise_is_left_constant():
    X, y, _, _ = rows(3, 120)
    model = ConformalGPRegressor(**VARYING).fit(X, y)
    assert "inside the bag" in model.guarantee_
    assert model.noise_coef_.shape == (4,)
    low, high = np.diff(model.predict_interval([[-1.5, 0.0], [1.5, 0.0]], 0.9))[:, 0]
    assert high > 4.0 * low
    std = model.predict([[-1.5, 0.0], [1.5, 0.0]], return_std=True)[1]
    assert std[1] > 4.0 * std[0]
    y = np.sin(X[:, 0]) + 0.3 * np.random.default_rng(0).standard_normal(120)
    constant, varying = (ConformalGPRegressor(**VARYING | {"noise": n}).fit(X, y) for n in ("constant", "varying"))
    assert varying.noise_coef_.size == 0
    np.testing.assert_allclose(varying.predict_interval(X[:20], 0.9), constant.predict_interval(X[:20], 0.9), rtol=1e-6)


def test_units_of_inputs_and_labels_do_not_matter():
    X, y, X_new, _ = rows(4, 40)
    before, after = (
        ConformalGPRegressor(**VARYING).fit(f * X, c * y).predict_interval(f * X_new, 0.8)
        for f, c in ((1.0, 1.0), (8.0, 1000.0))
    )
    np.testing.assert_allclose(after, 1000.0 * before, rtol=1e-6)


def test_order_of_rows_is_irrelevant():
    X, y, X_new, _ = rows(5, 30)
    order = np.random.default_rng(0).permutation(30)
    one, other = (ConformalGPRegressor(**VARYING).fit(*data) for data in ((X, y), (X[order], y[order])))
    np.testing.assert_allclose(one.predict_interval(X_new, 0.8), other.predict_interval(X_new, 0.8), rtol=1e-9)


def test_saved_and_pickled_models_answer_the_same():
    X, y, X_new, _ = rows(6, 60)
    model = ConformalGPRegressor(**VARYING).fit(X, y)
    assert model.noise_coef_.size
    ends = model.predict_interval(X_new, 0.8)
    for other in (loaded(saved(model)), pickle.loads(pickle.dumps(model))):
        np.testing.assert_array_equal(other.predict_interval(X_new, 0.8), ends)
        np.testing.assert_array_equal(other.noise_coef_, model.noise_coef_)
