"""The design split against its brute-force definition, with background rows."""

import warnings
from fractions import Fraction

import numpy as np
import pytest
from sklearn.gaussian_process.kernels import RBF, ConstantKernel

import oracle
from conformal_gp import ConformalGPRegressor

BASES = {
    "zero": lambda X: None,
    "constant": lambda X: np.ones((len(X), 1)),
    "linear": lambda X: np.column_stack([np.ones(len(X)), X]),
}


def problem(seed, l=30):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(l, 2)) * [1.0, 9.0]
    return X, X[:, 0] + np.sin(X[:, 1] / 5) + 0.5 * rng.normal(size=l), rng.normal(size=(3, 2)) * [1.0, 9.0]


@pytest.mark.parametrize("gamma", [1.0, 2.0, np.inf])
@pytest.mark.parametrize("mean", ["zero", "constant", "linear"])
def test_regions_and_p_values_equal_the_definition_with_background_rows(mean, gamma):
    X, y, X_new = problem(0)
    model = ConformalGPRegressor("se", mean=mean, gamma=gamma, tuning="holdout", design=0.5, random_state=3).fit(X, y)
    design = model.design_
    assert design.size == 15
    ranked = np.setdiff1d(np.arange(y.size), design)
    location, scale = X[design].mean(axis=0), X[design].std(axis=0)
    Z, Z_new = (X - location) / scale, (X_new - location) / scale
    arguments = {"gamma": gamma, "basis": BASES[mean](Z), "ranked": ranked}
    for x, z, region in zip(X_new, Z_new, model.predict_set(X_new, 0.8), strict=True):
        z = z[None, :]
        expected = oracle.region(
            model.kernel_, model.noise_variance_, Z, y, z, Fraction(1, 5), basis_new=BASES[mean](z), **arguments
        )
        np.testing.assert_allclose(region, expected, rtol=1e-8, atol=1e-9)
        label = 1.3
        p = oracle.p_value(model.kernel_, model.noise_variance_, Z, y, z, label, basis_new=BASES[mean](z), **arguments)
        assert model.predict_p([x], [label])[0] == pytest.approx(float(p))


def test_rows_to_learn_from_may_be_given():
    X, y, _ = problem(1)
    model = ConformalGPRegressor("se", tuning="holdout", design=[5, 1, 2, 7, 11, 13, 17], random_state=0).fit(X, y)
    np.testing.assert_array_equal(model.design_, [1, 2, 5, 7, 11, 13, 17])


def test_what_is_learnt_depends_on_the_design_rows_alone():
    X, y, _ = problem(2)
    design = np.arange(9)
    changed_X, changed_y = X.copy(), y.copy()
    changed_X[9:] += 100.0
    changed_y[9:] *= -50.0
    first, second = (
        ConformalGPRegressor("matern52", tuning="holdout", design=design, random_state=0).fit(*rows)
        for rows in ((X, y), (changed_X, changed_y))
    )
    assert first.kernel_ == second.kernel_
    assert first.noise_variance_ == second.noise_variance_


def test_the_likelihood_of_the_design_rows_chooses_among_kernels():
    rng = np.random.default_rng(0)
    X = rng.uniform(-3, 3, size=(60, 1))
    y = np.sin(6 * X[:, 0])
    slow = ConstantKernel(1.0) * RBF(100.0, (90.0, 110.0))
    fast = ConstantKernel(1.0) * RBF(0.3, (0.1, 1.0))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # noise goes to its bound
        model = ConformalGPRegressor([slow, fast], tuning="holdout", random_state=0, scale_inputs=False).fit(X, y)
    assert model.kernel_.k2.length_scale < 1.5


def test_the_design_rows_choose_gamma():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(90, 2))
    y = X[:, 0] + 0.2 * rng.normal(size=90)
    model = ConformalGPRegressor("se", tuning="holdout", gamma=[1.0, 2.0, np.inf], random_state=0).fit(X, y)
    assert model.gamma_ in (1.0, 2.0, np.inf)
    alone = ConformalGPRegressor("se", tuning="holdout", gamma=model.gamma_, random_state=0).fit(X, y)
    np.testing.assert_allclose(model.predict_interval(X[:5], 0.9), alone.predict_interval(X[:5], 0.9))


@pytest.mark.parametrize(
    ("design", "message"),
    [
        ([0, 0, 1], "distinct row numbers from 0 to 29"),
        ([0, 30], "distinct row numbers"),
        ([-1, 3], "distinct row numbers"),
        (np.arange(30), "some must be left to rank"),
        ([0.5, 1.5], "list of row numbers"),
        ([], "list of row numbers"),
        (1.5, "'design' parameter"),
        (0.0, "'design' parameter"),
    ],
)
def test_design_rows_that_make_no_sense_are_refused(design, message):
    X, y, _ = problem(1)
    with pytest.raises(ValueError, match=message):
        ConformalGPRegressor("se", tuning="holdout", design=design).fit(X, y)


def test_too_few_rows_for_the_mean_function_are_refused():
    X, y, _ = problem(1, l=6)
    with pytest.raises(ValueError, match="leaves none to rank"):
        ConformalGPRegressor("se", mean="linear", tuning="holdout").fit(X, y)
