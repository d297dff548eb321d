"""Intervals, unions and p-values of the regressor against the paper's definition by brute force."""

from fractions import Fraction

import numpy as np
import pytest
from sklearn.gaussian_process.kernels import (
    RBF,
    ConstantKernel,
    DotProduct,
    Matern,
    RationalQuadratic,
    WhiteKernel,
)

import odd_regions
import oracle
from cases import GAMMAS, INF, LEVELS, MEANS, fixed_model, latin_square, make_basis, make_data, written_out
from conformal_gp import ConformalGPRegressor

pytestmark = pytest.mark.filterwarnings("ignore:confidence_level=.* needs at least:UserWarning")

NAMES = ["se", "rq", "nn", "matern32", "matern52"]
KERNELS = {
    "sum": ConstantKernel(0.7) * RBF(0.8) + 0.2 * DotProduct(0.5),
    "product": RationalQuadratic(0.9, 0.6) * Matern(1.7, nu=1.5),
    "ard": ConstantKernel(2.0) * RBF([0.6, 2.5]),
    "ard matern": Matern([2.0, 0.7], nu=2.5),
    "power": RBF(1.3) ** 2,
    "white": RBF(0.9) + WhiteKernel(0.05),
}
# inside the data, at a training row, just outside, and far outside
INPUTS = np.array([[0.2, -0.4], [0.0, 0.0], [2.0, 1.0], [-9.0, 30.0]])


def assert_region(found, expected, label_scale):
    """Ends agree to 1e-8 of themselves, or of the labels where an end is near zero."""
    assert found.shape == expected.shape, (found, expected)
    np.testing.assert_allclose(found, expected, rtol=1e-7, atol=1e-9 * label_scale)


def check_fixed(kernel, reference, noise, gamma, mean, X, y, inputs, *, levels=LEVELS):
    """Compare regions, hulls and p-values for all rows of ``inputs``; return the number of pieces seen."""
    model = fixed_model(kernel, noise, gamma=gamma, mean=mean).fit(X, y)
    sets = {level: model.predict_set(inputs, level) for level in levels}
    hulls = model.predict_interval(inputs, levels)
    scale = np.abs(y).max()
    n_pieces = []
    for j, x_new in enumerate(inputs):
        H = make_basis(mean, np.vstack([X, x_new]))
        options = {} if H is None else {"basis": H[:-1], "basis_new": H[-1]}
        labels = list(scale * np.array([-30.0, -1.0, 0.1, 0.8, 30.0]))
        for i, level in enumerate(levels):
            pieces = oracle.region(reference, noise, X, y, x_new, 1 - level, gamma, **options)
            assert_region(sets[level][j], pieces, scale)
            assert_region(hulls[j, :, i], np.array(oracle.hull(pieces)), scale)
            n_pieces.append(len(pieces))
            labels += list(pieces[np.isfinite(pieces)])
        p = model.predict_p(np.repeat([x_new], len(labels), axis=0), labels)
        expected = [oracle.p_value(reference, noise, X, y, x_new, label, gamma, **options) for label in labels]
        np.testing.assert_array_equal(p, [float(value) for value in expected])
    return n_pieces


def some_of(kernels):
    """Each kernel with two gammas and two means; tests/slow/test_products.py has the product."""
    return [(k, GAMMAS[(i + j) % 5], MEANS[(i + j) % 3]) for i, k in enumerate(kernels) for j in (0, 2)]


@pytest.mark.parametrize(("name", "gamma", "mean"), some_of(NAMES))
def test_named_kernels(name, gamma, mean):
    X, y = make_data(1, 19)
    X[3] = INPUTS[1]
    check_fixed(name, written_out(name), 0.1, gamma, mean, X, y, INPUTS)


@pytest.mark.parametrize(("name", "gamma", "mean"), some_of(KERNELS))
def test_scikit_learn_kernels(name, gamma, mean):
    X, y = make_data(2, 19)
    check_fixed(KERNELS[name], KERNELS[name], 0.05, gamma, mean, X, y, INPUTS)


@pytest.mark.parametrize(("gamma", "mean"), [(1.0, "zero"), (2.0, "constant"), (3.0, "linear"), (INF, "zero")])
def test_any_number_of_rows(gamma, mean):
    smallest = {"zero": 1, "constant": 2, "linear": 4}[mean]
    for n_rows in range(smallest, smallest + 6):
        X, y = make_data(n_rows, n_rows)
        # halfway between multiples of 1/(l + 1), and on them
        levels = [1 - Fraction(k, 2 * (n_rows + 1)) for k in range(1, 2 * (n_rows + 1))]
        reference = written_out("matern32")
        check_fixed("matern32", reference, 0.2, gamma, mean, X, y, INPUTS[[0, 2]], levels=levels)


@pytest.mark.parametrize(("gamma", "mean"), latin_square(GAMMAS, MEANS))
def test_duplicate_rows(gamma, mean):
    X, y = make_data(3, 16)
    # the same row twice, the same input with another label, and a test input among them
    X, y = np.vstack([X, X[:2], X[:1]]), np.concatenate([y, y[:2], [y[0] + 0.7]])
    inputs = np.vstack([X[:2], [[0.3, 0.3]]])
    check_fixed("se", written_out("se"), 0.1, gamma, mean, X, y, inputs)


@pytest.mark.parametrize(("name", "gamma"), latin_square(NAMES, GAMMAS))
def test_integer_labels_that_tie(name, gamma):
    X = np.array([[-1.0], [1.0], [-2.0], [2.0], [-0.5], [0.5]])  # pairs that mirror each other
    y = np.array([1.0, 1.0, 0.0, 0.0, 2.0, 2.0])
    levels = [Fraction(k, 7) for k in range(1, 7)]
    check_fixed(name, written_out(name), 0.5, gamma, "zero", X, y, np.array([[0.0]]), levels=levels)


@pytest.mark.parametrize("problem", [odd_regions.with_hole, odd_regions.with_ray, odd_regions.with_single_ray])
@pytest.mark.parametrize("gamma", [1.0, 3.0, INF])
def test_regions_with_holes_or_rays(problem, gamma):
    if problem is odd_regions.with_single_ray and gamma == 3.0:
        return
    kernel, noise, X, y, x_new, _, delta = problem(gamma)
    if problem is odd_regions.with_single_ray:
        kernel.set_params(sigma_0_bounds="fixed")  # 0 has no logarithm
    n_pieces = check_fixed(kernel, kernel, noise, gamma, "zero", X, y, [x_new], levels=[1 - delta])
    assert (n_pieces[0] > 1) == (problem is not odd_regions.with_single_ray)


@pytest.mark.parametrize("gamma", [1.0, 3.0, 8.0, INF])
def test_random_problems_with_holes_and_rays(gamma):
    inputs = np.array([[-1.9], [-0.6], [0.1], [1.0]])
    shapes = set()
    for seed in range(30):
        rng = np.random.default_rng(seed)
        X, y = rng.uniform(-1.5, 1.5, (5, 1)), rng.normal(size=5)
        model = fixed_model("se", 0.01, gamma=gamma).fit(X, y)
        for level in [Fraction(3, 12), Fraction(5, 12), Fraction(7, 12), Fraction(9, 12)]:
            for x_new, found in zip(inputs, model.predict_set(inputs, level), strict=True):
                expected = oracle.region(RBF(1.0), 0.01, X, y, x_new, 1 - level, gamma)
                assert_region(found, expected, np.abs(y).max())
                shapes.add((len(found) > 1, bool(np.isinf(found).any())))
    assert shapes == {(False, False), (False, True), (True, False), (True, True)}


# A training row that alone determines a coefficient of the mean, as the only row of its category, has a leave-one-out
# variance that is infinite unless the test row is of the same category.
RARE = 3


def make_rare_category(seed):
    X, y = make_data(seed, 9)
    X[:, 1] = np.arange(9) == RARE
    return X, y


@pytest.mark.parametrize("gamma", GAMMAS)
def test_a_test_row_that_shares_a_rare_category(gamma):
    for seed in range(4):
        X, y = make_rare_category(seed)
        inputs = np.array([[0.2, 1.0], [0.3, 0.5], [4.0, -2.0]])
        check_fixed("se", written_out("se"), 0.1, gamma, "linear", X, y, inputs)


@pytest.mark.parametrize("gamma", GAMMAS)
def test_a_row_alone_in_its_category_has_score_zero_for_other_test_rows(gamma):
    # The limit of ever vaguer priors: its residual stays finite, the variance that divides it does not, if any does.
    for seed in range(8):
        X, y = make_rare_category(seed)
        x_new, rest = np.array([0.2, 0.0]), np.arange(9) != RARE
        H = make_basis("linear", np.vstack([X[rest], x_new])[:, :1])
        a, b = oracle.lines(RBF(1.0), 0.1, X[rest], y[rest], x_new, gamma, H[:-1], H[-1])
        model = fixed_model("se", gamma=gamma, mean="linear").fit(X, y)
        for level in LEVELS:
            (found,) = model.predict_set([x_new], level)
            assert not np.isnan([*found.ravel(), *model.predict_interval([x_new], level)[0]]).any()
            if gamma < INF:
                expected = oracle.region_from_lines([0.0, *a], [0.0, *b], 1 - level)
                assert_region(found, np.array(expected), np.abs(y).max())


@pytest.mark.parametrize("gamma", GAMMAS)
def test_a_test_row_alone_in_its_category_may_have_any_label(gamma):
    X, y = make_data(4, 9)
    X[:, 1] = 2.0
    model = fixed_model("se", gamma=gamma, mean="linear").fit(X, y)
    np.testing.assert_array_equal(model.predict_interval([[0.2, 1.0]], 0.5), [[-INF, INF]])
    np.testing.assert_array_equal(model.predict_set([[0.2, 1.0]], 0.5)[0], [[-INF, INF]])
    assert (model.predict_p([[0.2, 1.0]] * 3, [-1e6, 0.0, 3.0]) == 1).all()
    # while rows like those seen ignore the column
    options = {"basis": make_basis("linear", X[:, :1]), "basis_new": [1.0, 0.2]}
    expected = oracle.region(RBF(1.0), 0.1, X, y, [0.2, 2.0], Fraction(1, 4), gamma, **options)
    assert_region(model.predict_set([[0.2, 2.0]], 0.75)[0], expected, np.abs(y).max())


@pytest.mark.parametrize("gamma", GAMMAS)
def test_inputs_are_scaled_by_the_training_rows(gamma):
    X, y = make_data(6, 12)
    X, inputs = X * [20.0, 0.01] + [300.0, -1.0], INPUTS * [20.0, 0.01] + [300.0, -1.0]
    model = fixed_model("matern52", gamma=gamma, mean="linear", scale_inputs=True).fit(X, y)
    scaled, scaled_inputs = ((Z - X.mean(axis=0)) / X.std(axis=0) for Z in (X, inputs))
    plain = fixed_model("matern52", gamma=gamma, mean="linear").fit(scaled, y)
    for level in LEVELS[:2]:
        for one, other in zip(model.predict_set(inputs, level), plain.predict_set(scaled_inputs, level), strict=True):
            assert_region(one, other, np.abs(y).max())


@pytest.mark.parametrize(("name", "mean"), latin_square(NAMES, MEANS))
def test_learnt_hyperparameters(name, mean):
    """As the paper does: learnt from the training rows, then taken as given."""
    X, y = make_data(11, 30)
    X, inputs = 10 * X, 10 * INPUTS
    gamma = GAMMAS[(NAMES.index(name) + MEANS.index(mean)) % 5]
    model = ConformalGPRegressor(name, tuning="train", mean=mean, gamma=gamma, n_restarts=1, random_state=0).fit(X, y)
    amplitude, shape = model.kernel_.k1.constant_value, model.kernel_.k2
    reference = written_out(name, amplitude, shape.length_scale)
    if name == "rq":
        reference.k2.alpha = shape.alpha
    centre, spread = X.mean(axis=0), X.std(axis=0)
    scaled, scaled_inputs = (X - centre) / spread, (inputs - centre) / spread
    coefficients = model.mean_coef_
    labels, shifts = y, np.zeros(len(inputs))
    if mean != "zero":
        labels = y - make_basis(mean, scaled) @ coefficients
        shifts = make_basis(mean, scaled_inputs) @ coefficients
    for level in LEVELS:
        found = model.predict_set(inputs, level)
        for j, x_new in enumerate(scaled_inputs):
            args = (reference, model.noise_variance_, scaled, labels, x_new)
            pieces = oracle.region(*args, 1 - level, gamma)
            assert_region(found[j], pieces + shifts[j], np.abs(y).max())
            label = labels[j] + shifts[j]
            p = oracle.p_value(*args, labels[j], gamma)
            assert model.predict_p(inputs[[j]], [label])[0] == float(p)
