"""The marginal likelihood and its gradient against scikit-learn and finite differences, and shared length scales."""

import warnings

import numpy as np
import pytest
from scipy.optimize import approx_fprime, minimize
from scipy.stats import multivariate_normal
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF, ConstantKernel, DotProduct, Matern, WhiteKernel

from cases import make_basis, make_data, written_out
from conformal_gp import ConformalGPRegressor
from conformal_gp.gp import maximum_likelihood
from conformal_gp.gp.inputs import Inputs, Scaling
from conformal_gp.gp.kernels import kernel_from_name
from conformal_gp.gp.likelihood import NegativeLogLikelihood, entries, for_each_input, variables
from conformal_gp.gp.maximum_likelihood import LearningRows, Search, Space
from conformal_gp.gp.posterior import Posterior
from conformal_gp.rows import Rows

NAMES = ["se", "rq", "nn", "matern32", "matern52"]
KERNELS = {
    **{name: kernel_from_name(name, amplitude=1.4, length_scale=0.8) for name in NAMES},
    "ard": ConstantKernel(1.3) * RBF([0.6, 1.9]),
    "sum": ConstantKernel(0.4) * Matern([0.9, 0.5], nu=1.5) + DotProduct(0.7),
    "white": RBF(0.8) + WhiteKernel(0.2),
    "partly fixed": ConstantKernel(1.3, "fixed") * RBF(0.6) + ConstantKernel(0.4) * RBF(2.0, "fixed"),
}
NO_BASIS = np.empty((25, 0))


def basis(mean, X):
    return NO_BASIS if mean == "zero" else make_basis(mean, X)


@pytest.mark.parametrize("name", ["se", "rq", "matern32", "matern52"])
def test_value_and_gradient_agree_with_scikit_learn(name):
    X, y = make_data(1, 25)
    kernel = KERNELS[name]
    gp = GaussianProcessRegressor(kernel, alpha=0.3, optimizer=None).fit(X, y)
    for theta in (kernel.theta, kernel.theta + 0.7, kernel.theta - 0.4):
        expected, expected_gradient = gp.log_marginal_likelihood(theta, eval_gradient=True)
        value, gradient = NegativeLogLikelihood(kernel, X, y, NO_BASIS, 0.3)(theta)
        assert value == pytest.approx(-expected, rel=1e-12)
        np.testing.assert_allclose(gradient, -expected_gradient, rtol=1e-8, atol=1e-10)


@pytest.mark.parametrize("mean", ["constant", "linear"])
@pytest.mark.parametrize("name", NAMES)
def test_coefficients_of_the_mean_are_profiled_out(name, mean):
    X, y = make_data(4, 25)
    H = make_basis(mean, X)
    covariance = written_out(name, 1.4, 0.8)(X) + 0.3 * np.eye(25)

    def at(beta):
        return -multivariate_normal(mean=H @ beta, cov=covariance).logpdf(y)

    best = minimize(at, np.zeros(H.shape[1]), tol=1e-10)
    value, _ = NegativeLogLikelihood(KERNELS[name], X, y, H, 0.3)(KERNELS[name].theta)
    assert value == pytest.approx(best.fun, rel=1e-7)


@pytest.mark.parametrize("learn_noise", [False, True])
@pytest.mark.parametrize(
    ("restricted", "mean"), [(False, "zero"), (False, "linear"), (True, "constant"), (True, "linear")]
)
@pytest.mark.parametrize("name", KERNELS)
def test_gradient_agrees_with_finite_differences(name, mean, restricted, learn_noise):
    X, y = make_data(5, 25)
    kernel, known = KERNELS[name], np.linspace(0.0, 0.3, 25)
    noise = None if learn_noise else 0.2
    objective = NegativeLogLikelihood(kernel, X, y, basis(mean, X), noise, restricted, known)
    theta = np.append(kernel.theta, np.log(0.2)) if learn_noise else kernel.theta
    for point in (theta, theta + np.linspace(-0.5, 0.5, theta.size)):
        _, gradient = objective(point)
        above = approx_fprime(point, lambda t: objective(t)[0], 1e-6)
        below = -approx_fprime(-point, lambda t: objective(-t)[0], 1e-6)
        np.testing.assert_allclose(gradient, (above + below) / 2, rtol=1e-5, atol=1e-5)


def test_the_restricted_likelihood_is_that_of_the_posterior():
    """Up to the length of the basis: the posterior has an orthonormal one."""
    X, y = make_data(8, 25)
    known = np.linspace(0.0, 0.3, 25)
    kernel, inputs = KERNELS["ard"], Inputs(Rows(X, known), Scaling(), "linear")
    value, _ = NegativeLogLikelihood(kernel, X, y, inputs.H, 0.3, restricted=True, known=known)(kernel.theta)
    assert -value == pytest.approx(Posterior(kernel, 0.3, inputs, y).log_marginal_likelihood, rel=1e-12)


def test_a_matrix_that_is_not_positive_definite_is_an_error():
    X = np.zeros((3, 1))
    with pytest.raises(np.linalg.LinAlgError):
        NegativeLogLikelihood(RBF(1.0), X, np.arange(3.0), np.empty((3, 0)), 0.0)(np.zeros(1))


def one_hot(codes, n=None):
    return np.eye(codes.max() + 1 if n is None else n)[codes]


def table(n_rows=150, n_categories=(28, 20, 9), seed=0):
    """Two numbers and three variables of categories, of which the first matters."""
    rng = np.random.default_rng(seed)
    codes = [np.arange(n_rows) % k for k in n_categories]
    for column in codes:
        rng.shuffle(column)
    numbers = rng.standard_normal((n_rows, 2))
    y = np.sin(2.0 * numbers[:, 0]) + rng.standard_normal(n_categories[0])[codes[0]]
    X = np.hstack([numbers, *(one_hot(column, k) for column, k in zip(codes, n_categories, strict=True))])
    return X, y + 0.1 * rng.standard_normal(n_rows)


def n_in_each_variable(lengths):
    """Number of different length scales in each variable of the table."""
    return [np.unique(part).size for part in np.split(lengths, [1, 2, 30, 50])]


def test_categories_are_found_among_numbers_and_indicators():
    rng = np.random.default_rng(1)
    codes, others = rng.integers(0, 5, 80), rng.integers(0, 3, 80)
    indicator = (rng.random(80) < 0.5).astype(float)
    number = rng.standard_normal(80)
    X = np.column_stack([number, indicator, one_hot(codes, 5), one_hot(others, 3), indicator, number])
    expected = [0, 1, 2, 2, 2, 2, 2, 3, 3, 3, 4, 5]
    assert variables(X).tolist() == expected
    assert variables((X - X.mean(axis=0)) / X.std(axis=0)).tolist() == expected


def test_a_category_that_no_row_has_goes_with_the_others():
    codes = np.array([0, 1, 3, 0, 1, 3])
    assert variables(one_hot(codes, 5)).tolist() == [0] * 5


def test_categories_of_which_a_row_has_none_keep_a_length_scale_each():
    X = one_hot(np.array([0, 1, 2, 0, 1, 2]))
    X[3] = 0.0
    assert variables(X).tolist() == [0, 1, 2]


def test_a_shared_length_scale_has_the_gradient_of_all_its_inputs():
    X, y = table(60)
    number = variables(X)
    assert number[-1] == 4
    kernel = kernel_from_name("matern52", n_inputs=5, length_scale=3.0)
    rows = LearningRows(X, y, np.empty((60, 0)), np.zeros(60), number)
    search = Search(Space(kernel, 0.1, 1e-10), [rows])
    x = search.start + 0.3 * np.random.default_rng(2).standard_normal(search.start.size)
    steps = 1e-6 * np.eye(x.size)
    slopes = [(search.penalised(x + step)[0] - search.penalised(x - step)[0]) / 2e-6 for step in steps]
    np.testing.assert_allclose(search.penalised(x)[1], slopes, rtol=1e-5, atol=1e-5)


def test_what_is_found_is_the_likelihood_of_the_kernel_of_inputs():
    X, y = table(60)
    number = variables(X)
    rows = LearningRows(X, y, np.empty((60, 0)), np.zeros(60), number)
    search = Search(Space(kernel_from_name("se", n_inputs=5, length_scale=3.0), 0.1, 1e-10, restricted=False), [rows])
    end = search.from_starts(1, np.random.RandomState(0))
    kernel = search.kernel(end.x)
    noise_variance = search.split(end.x)[1]
    full = for_each_input(kernel, number)
    assert full.k2.length_scale.shape == (59,)
    np.testing.assert_array_equal(full.theta, kernel.theta[entries(kernel, number)])
    objective = NegativeLogLikelihood(full, X, y, np.empty((60, 0)))
    value = objective(np.append(full.theta, np.log(noise_variance)))[0]
    assert end.fun == pytest.approx(value)


@pytest.mark.parametrize(
    "options", [{"tuning": "holdout"}, {"tuning": "train"}, {"tuning": "holdout", "noise_variance": 0}]
)
def test_a_model_of_many_inputs_has_a_length_scale_for_each_variable(options):
    X, y = table()
    with warnings.catch_warnings(action="ignore", category=UserWarning):  # of "train": with few rows it is not valid
        model = ConformalGPRegressor(random_state=0, n_restarts=0, **options).fit(X, y)
    lengths = model.kernel_.k2.length_scale
    assert lengths.shape == (59,)
    assert n_in_each_variable(lengths) == [1] * 5
    assert np.unique(lengths).size > 1
    assert np.isfinite(model.predict_interval(X[:5], 0.8)).all()


def test_up_to_fifty_inputs_each_has_its_own():
    X, y = table(n_categories=(19, 20, 9))
    model = ConformalGPRegressor(tuning="holdout", random_state=0, n_restarts=0).fit(X, y)
    assert np.unique(model.kernel_.k2.length_scale).size > 5


def test_kernel_objects_keep_the_length_scales_that_they_have():
    X, y = table()
    kernel = kernel_from_name("se", n_inputs=59)
    lengths = ConformalGPRegressor(kernel, tuning="holdout", n_restarts=0).fit(X, y).kernel_.k2.length_scale
    assert np.unique(lengths).size > 5


def test_low_rank_models_share_length_scales_too():
    X, y = table(600)
    model = ConformalGPRegressor(low_rank=50, n_restarts=0, random_state=0).fit(X, y)
    assert n_in_each_variable(model.kernel_.k2.length_scale) == [1] * 5


def test_nothing_of_calibration_rows_decides_about_length_scales():
    X, y = table()
    first = int(0.7 * y.size)
    options = {"tuning": "holdout", "tuning_rows": np.arange(first), "random_state": 0, "n_restarts": 1}
    model = ConformalGPRegressor(**options).fit(X, y)
    X[first:, 2:] = 1.0  # no longer categories of one variable
    y[first:] *= -3.0
    again = ConformalGPRegressor(**options).fit(X, y)
    np.testing.assert_array_equal(again.kernel_.theta, model.kernel_.theta)
    assert again.noise_variance_ == model.noise_variance_


def test_searches_with_many_inputs_end_after_some_steps_without_a_warning(monkeypatch):
    steps, climb = [], Search.climb

    def spy(search, start, *most):
        end = climb(search, start, *most)
        steps.append(end.nit)
        return end

    monkeypatch.setattr(Search, "climb", spy)
    monkeypatch.setattr(maximum_likelihood, "AFFORDED", 0.0)
    monkeypatch.setattr(maximum_likelihood, "LEAST_STEPS", 3)
    X, y = table()
    with warnings.catch_warnings(action="error"):
        ConformalGPRegressor(tuning="holdout", random_state=0, n_restarts=1, difficulty=None).fit(X, y)
        assert max(steps) == 3
        steps.clear()
        ConformalGPRegressor(tuning="holdout", random_state=0, n_restarts=0, difficulty=None).fit(X[:, :50], y)
    assert max(steps) > 3
