"""The marginal likelihood and its gradient against scikit-learn, densities and finite differences."""

import numpy as np
import pytest
from scipy.optimize import approx_fprime, minimize
from scipy.stats import multivariate_normal
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF, ConstantKernel, DotProduct, Matern, WhiteKernel

from cases import make_basis, make_data, written_out
from conformal_gp.gp.inputs import Inputs, Scaling
from conformal_gp.gp.kernels import kernel_from_name
from conformal_gp.gp.likelihood import NegativeLogLikelihood
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
