"""Block form of the inverse over l + 1 rows, flat priors, and restricted likelihoods."""

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.stats import multivariate_normal
from sklearn.gaussian_process.kernels import RBF, ConstantKernel, DotProduct, Matern, WhiteKernel

from cases import make_basis, make_data, new_inputs, training
from conformal_gp import NeuralNetwork
from conformal_gp.gp.posterior import Posterior

KERNELS = {
    "se": ConstantKernel(1.5) * RBF(0.9),
    "nn": 2.0 * NeuralNetwork(0.5),
    "ard sum": Matern([0.8, 2.0], nu=1.5) + DotProduct(0.3),
    "white": RBF(0.7) + WhiteKernel(0.2),
}
NOISE = 0.15


def bag_inverse(kernel, rows, H):
    """Dense C over all rows; with a basis, C less its part in the span of the basis."""
    C = np.linalg.inv(kernel(rows) + NOISE * np.eye(len(rows)))
    return C if H is None else C - C @ H @ np.linalg.inv(H.T @ C @ H) @ H.T @ C


@pytest.mark.parametrize("mean", ["zero", "constant", "linear"])
@pytest.mark.parametrize("name", KERNELS)
def test_block_form_equals_the_dense_inverse_of_the_bag(name, mean):
    X, y = make_data(1, 12)
    inputs = np.array([[0.3, -0.2], [5.0, 8.0]])
    kernel = KERNELS[name]
    no_columns = np.empty((len(X), 0)), np.empty((2, 0))
    H, H_new = (make_basis(mean, X), make_basis(mean, inputs)) if mean != "zero" else no_columns
    posterior = Posterior(kernel, NOISE, training(X, H), y, flat_prior=True)
    weights, means, variances, _ = posterior.predict(new_inputs(inputs, H_new))
    for j in range(2):
        rows = np.vstack([X, inputs[j]])
        M = bag_inverse(kernel, rows, make_basis(mean, rows))
        v, s = weights[j], variances[j]
        assert 1 / s == pytest.approx(M[-1, -1], rel=1e-9)
        np.testing.assert_allclose(-v / s, M[:-1, -1], rtol=1e-8, atol=1e-12)
        np.testing.assert_allclose(posterior.diagonal + v**2 / s, np.diag(M)[:-1], rtol=1e-9)
        # the mean is the label at which the new row's weighted residual is zero
        assert M[-1] @ np.append(y, means[j]) == pytest.approx(0.0, abs=1e-10)
        np.testing.assert_allclose(posterior.alpha, M[:-1] @ np.append(y, means[j]), rtol=1e-8, atol=1e-10)
    np.testing.assert_allclose(posterior.mean(new_inputs(inputs, H_new)), means, rtol=1e-12)


@pytest.mark.parametrize("name", KERNELS)
def test_given_coefficients_are_subtracted_and_added_again(name):
    X, y = make_data(2, 12)
    inputs = np.array([[0.3, -0.2], [5.0, 8.0]])
    kernel, H, H_new = KERNELS[name], make_basis("linear", X), make_basis("linear", inputs)
    given = Posterior(kernel, NOISE, training(X, H), y, flat_prior=False)
    residual = y - H @ given.coefficients
    plain = Posterior(kernel, NOISE, training(X, H[:, :0]), residual)
    np.testing.assert_allclose(given.alpha, plain.alpha, rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(given.diagonal, plain.diagonal)
    found, expected = given.predict(new_inputs(inputs, H_new)), plain.predict(new_inputs(inputs, H_new[:, :0]))
    np.testing.assert_allclose(found.weights, expected.weights)
    np.testing.assert_allclose(found.variance, expected.variance)
    np.testing.assert_allclose(found.mean, expected.mean + H_new @ given.coefficients)
    assert given.log_marginal_likelihood == pytest.approx(plain.log_marginal_likelihood)


def test_coefficients_are_generalised_least_squares():
    X, y = make_data(3, 12)
    H, kernel = make_basis("linear", X), KERNELS["se"]
    root = np.linalg.cholesky(kernel(X) + NOISE * np.eye(12))
    expected = np.linalg.lstsq(np.linalg.solve(root, H), np.linalg.solve(root, y), rcond=None)[0]
    for flat in (False, True):
        posterior = Posterior(kernel, NOISE, training(X, H), y, flat_prior=flat)
        np.testing.assert_allclose(posterior.coefficients, expected, rtol=1e-9)


def test_the_likelihood_with_a_flat_prior_integrates_the_coefficient_out():
    X, y = make_data(7, 8)
    column = np.full(8, 8**-0.5)
    posterior = Posterior(RBF(0.9), NOISE, training(X, column[:, None]), y, flat_prior=True)
    normal = multivariate_normal(cov=RBF(0.9)(X) + NOISE * np.eye(8))
    centre = posterior.coefficients[0]
    density, _ = quad(lambda beta: normal.pdf(y - beta * column), centre - 30, centre + 30, points=[centre])
    assert posterior.log_marginal_likelihood == pytest.approx(np.log(density), rel=1e-6)


@pytest.mark.parametrize("flat_prior", [False, True])
def test_labels_that_the_mean_explains_leave_residuals_of_exactly_zero(flat_prior):
    X, _ = make_data(8, 10)
    H = make_basis("linear", X)
    posterior = Posterior(RBF(0.9), NOISE, training(X, H), H @ [3.0, -2.0, 0.7], flat_prior=flat_prior)
    np.testing.assert_array_equal(posterior.alpha, 0.0)
    np.testing.assert_allclose(posterior.coefficients, [3.0, -2.0, 0.7], rtol=1e-9)
