"""Tuning inside the bag: what is traced over all labels is what brute force finds at each."""

import pickle
import threading

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.gaussian_process.kernels import RBF, ConstantKernel, DotProduct, Matern, RationalQuadratic

import bag_oracle
import oracle
from cases import contains, make_data
from conformal_gp import ConformalGPRegressor
from conformal_gp.predictors import augmented, selectors

KERNELS = {
    "each": Matern([1.0, 1.0], nu=2.5),
    "one": RBF(1.0),
    "mixture": RationalQuadratic(1.0, 1.0),
    "sum": ConstantKernel() * RBF([1.0, 1.0]) + ConstantKernel() * Matern(1.0, nu=1.5),
}


def rows(seed, l, noise):
    rng = np.random.default_rng(seed)
    X = rng.uniform(-2, 2, (l + 3, 2))
    y = np.sin(2 * X[:, 0]) + 0.3 * X[:, 1] + noise * rng.standard_normal(l + 3)
    return X[:l], y[:l], X[l:], y[l:]


@pytest.mark.parametrize("options", [{}, {"mean": "linear"}, {"mean": "zero"}, {"scale_inputs": False}, {"gamma": 1.0}])
@pytest.mark.parametrize("name", KERNELS)
def test_p_values_equal_brute_force(name, options):
    for seed, noise in enumerate((0.05, 0.3)):  # less noise is more than brute force can resolve
        X, y, X_new, y_new = rows(seed, 15, noise)
        options = {"mean": "constant", **options}
        model = ConformalGPRegressor(clone(KERNELS[name]), **options).fit(X, y)
        assert model.tuning_ == "augmented"
        labels = np.concatenate([y_new[:1], model.predict(X_new[:1]) + y.std() * np.linspace(-3, 3, 9)])
        found = model.predict_p(np.repeat(X_new[:1], labels.size, axis=0), labels)
        expected = [bag_oracle.p_value(X, y, X_new[0], label, KERNELS[name], **options) for label in labels]
        np.testing.assert_allclose(found, expected, atol=1e-12)


@pytest.mark.parametrize("noise", [0.05, 0.3])
@pytest.mark.parametrize("gamma", [2.0, np.inf])
def test_regions_equal_brute_force_and_end_where_it_does(noise, gamma):
    X, y, X_new, _ = rows(7, 19, noise)
    kernel = KERNELS["each"]
    model = ConformalGPRegressor(clone(kernel), mean="constant", gamma=gamma).fit(X, y)
    for x in X_new:
        (region,) = model.predict_set(x[None], 0.8)
        for label in bag_oracle.labels_about(region):
            inside = bag_oracle.p_value(X, y, x, label, kernel, gamma=gamma, tie=1e-13) > 0.2 + 1e-9
            assert inside == contains(region, label), (label, region)


def test_regions_nest_and_hold_the_labels_whose_p_value_exceeds_delta():
    X, y, X_new, _ = rows(3, 29, 0.2)
    model = ConformalGPRegressor().fit(X, y)
    levels = [0.5, 0.8, 0.9]
    regions = [model.predict_set(X_new, level) for level in levels]
    for j in range(len(X_new)):
        for label in model.predict(X_new)[j] + y.std() * np.linspace(-2, 2, 41):
            p = model.predict_p(X_new[j : j + 1], [label])[0]
            inside = [contains(region[j], label) for region in regions]
            assert inside == sorted(inside)
            assert inside == [p > 1 - level + 1e-9 for level in levels]


def test_intervals_are_hulls_of_regions():
    X, y, X_new, _ = rows(5, 29, 0.2)
    model = ConformalGPRegressor().fit(X, y)
    intervals = model.predict_interval(X_new, [0.8, 0.9])
    for level, region in ((0, model.predict_set(X_new, 0.8)), (1, model.predict_set(X_new, 0.9))):
        for interval, pieces in zip(intervals[:, :, level], region, strict=True):
            np.testing.assert_allclose(interval, [pieces[0, 0], pieces[-1, 1]])


@pytest.mark.parametrize(
    "options", [{}, {"kernel": ["se", "matern32"]}, {"candidates": [(RBF(1.0), 0.1), (RBF(3.0), 0.1)]}]
)
def test_order_of_rows_is_irrelevant(options):
    X, y, X_new, _ = rows(4, 25, 0.1)
    order = np.random.default_rng(0).permutation(25)
    one, other = (ConformalGPRegressor(**options).fit(*data) for data in ((X, y), (X[order], y[order])))
    np.testing.assert_allclose(one.predict_interval(X_new, 0.8), other.predict_interval(X_new, 0.8), rtol=1e-9)


@pytest.mark.parametrize("tuning", ["augmented", "holdout", "train"])
@pytest.mark.parametrize(
    "kernel",
    ["matern52", ConstantKernel() * RBF([1.0, 1.0]), ConstantKernel() * RBF(1.0) + ConstantKernel() * DotProduct()],
)
def test_units_of_labels_do_not_matter(kernel, tuning):
    X, y = make_data(1, 40)
    X_new = X[:5] + 0.1
    before, after = (
        ConformalGPRegressor(clone(kernel) if not isinstance(kernel, str) else kernel, tuning=tuning, random_state=0)
        .fit(X, labels)
        .predict_interval(X_new, 0.8)
        for labels in (y, 1000.0 * y - 77.0)
    )
    np.testing.assert_allclose(after, 1000.0 * before - 77.0, rtol=1e-4, atol=1e-2)


@pytest.mark.parametrize("factors", [[2.0, 0.25], [1024.0, 8.0]])
def test_units_of_inputs_do_not_matter_to_powers_of_two(factors):
    X, y, X_new, _ = rows(6, 30, 0.1)
    one, other = (
        ConformalGPRegressor().fit(X * f + 1.0, y).predict_interval(X_new * f + 1.0, 0.9)
        for f in (np.ones(2), np.array(factors))
    )
    np.testing.assert_allclose(one, other, rtol=1e-8)


def test_candidates_are_chosen_by_the_likelihood_of_the_bag():
    X, y, X_new, _ = rows(2, 15, 0.1)
    candidates = [(RBF(length), noise) for length in (0.3, 1.0, 3.0) for noise in (1e-3, 0.1)]
    model = ConformalGPRegressor(candidates=candidates, mean="zero", scale_inputs=False).fit(X, y)
    for x in X_new:
        for label in model.predict(x[None])[0] + np.linspace(-2, 2, 15):
            bag, labels = np.vstack([X, x]), np.append(y, label)
            values = []
            for kernel, noise in candidates:
                P, log_determinant = bag_oracle.precision(kernel, np.full(16, noise), bag, bag[:, :0])
                values.append(16 * np.log(labels @ P @ labels) + log_determinant)
            kernel, noise = candidates[int(np.argmin(values))]
            expected = oracle.p_value(kernel, noise, X, y, x, label, 2.0)
            assert model.predict_p(x[None], [label])[0] == pytest.approx(expected)


def test_many_rows_are_as_exact_as_few(monkeypatch):
    monkeypatch.setattr(selectors, "COARSE_ROWS", 9)
    rng = np.random.default_rng(0)
    X = rng.uniform(-2, 2, (14, 2))
    y = np.sin(2 * X[:, 0]) + 0.1 * rng.standard_normal(14)
    found = []
    for i in range(14):
        rest = np.arange(14) != i
        model = ConformalGPRegressor().fit(X[rest], y[rest])
        found.append(model.predict_p(X[i : i + 1], y[i : i + 1])[0] * 14)
    np.testing.assert_allclose(np.sort(found), np.arange(1, 15))


def test_a_pickle_is_not_much_larger_than_the_rows_and_predicts_the_same():
    X, y, X_new, _ = rows(1, 200, 0.1)
    model = ConformalGPRegressor().fit(X, y)
    model.predict_interval(X_new, 0.9)
    saved = pickle.dumps(model)
    assert len(saved) < 6 * (X.nbytes + y.nbytes)
    np.testing.assert_array_equal(pickle.loads(saved).predict_interval(X_new, 0.9), model.predict_interval(X_new, 0.9))


def test_eight_threads_may_predict_from_one_model():
    X, y, X_new, _ = rows(1, 40, 0.1)
    model = ConformalGPRegressor().fit(X, y)
    expected = model.predict_interval(X_new, 0.9)
    found, errors = [], []

    def predict():
        try:
            found.append(model.predict_interval(X_new, 0.9))
        except Exception as error:
            errors.append(error)

    threads = [threading.Thread(target=predict) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not errors
    for each in found:
        np.testing.assert_array_equal(each, expected)


@pytest.mark.parametrize("name", ["branin", "waves"])
def test_functions_without_noise_have_narrow_intervals(name):
    """Where a length scale for each input and little noise are what the function needs, they are found."""
    rng = np.random.default_rng(0)
    X = rng.uniform(0, 1, (60, 2))
    function = {
        "branin": lambda u, v: (
            (15 * v - 0.1 * (15 * u - 5) ** 2 + 1.6 * (15 * u - 5) - 6) ** 2 + 10 * np.cos(15 * u - 5)
        ),
        "waves": lambda u, v: np.sin(6 * u) + 0.1 * np.cos(2 * v),
    }[name]
    X_new = rng.uniform(0, 1, (50, 2))
    model = ConformalGPRegressor().fit(X, function(*X.T))
    low, high = model.predict_interval(X_new, 0.9).T
    assert np.mean(high - low) < 0.05 * np.std(function(*X.T))
    assert np.mean((low <= function(*X_new.T)) & (function(*X_new.T) <= high)) > 0.6


def test_holes_are_wider_than_rounding():
    """Decisions that turn at the same label but for rounding leave a sliver between them, which is no hole."""
    X = np.array([[-1.9], [-1.2], [-0.3], [0.4], [1.1], [1.8]])
    narrowest = np.inf
    for seed in range(6):
        y = np.sin(X[:, 0]) + 0.1 * np.random.default_rng(seed).standard_normal(6)
        model = ConformalGPRegressor(gamma=3.0).fit(X, y)
        for region in model.predict_set(np.linspace(-9, 9, 15)[:, None], 0.7):
            narrowest = min(narrowest, np.min(region[1:, 0] - region[:-1, 1], initial=np.inf))
    assert narrowest > 1e-10
    touching = [np.array([[-np.inf, 0.8892479413911565]]), np.array([[0.8892479413911618, 1.0], [1.001, 2.0]])]
    np.testing.assert_array_equal(augmented._union(touching), [[-np.inf, 1.0], [1.001, 2.0]])


def test_what_the_last_rows_select_is_kept_and_changes_no_answer():
    """Intervals, then bounds of the same rows, as ``evaluate`` asks for them; and other rows in between."""
    X, y, X_new, _ = rows(11, 29, 0.05)
    fresh = {name: ConformalGPRegressor().fit(X, y) for name in ("interval", "bound")}
    expected = fresh["interval"].predict_interval(X_new, 0.8), fresh["bound"].predict_bound(X_new, 0.8)
    model = ConformalGPRegressor().fit(X, y)
    for _ in range(2):
        np.testing.assert_array_equal(model.predict_interval(X_new, 0.8), expected[0])
        np.testing.assert_array_equal(model.predict_bound(X_new, 0.8), expected[1])
        np.testing.assert_array_equal(model.predict_bound(X_new[::-1], 0.8), expected[1][::-1])
