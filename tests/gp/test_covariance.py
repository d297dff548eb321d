"""Covariance matrices and their vector-Jacobian products against scikit-learn's matrices and gradient arrays."""

import numpy as np
import pytest
from sklearn.gaussian_process.kernels import (
    RBF,
    ConstantKernel,
    DotProduct,
    ExpSineSquared,
    Hyperparameter,
    Kernel,
    Matern,
    RationalQuadratic,
    WhiteKernel,
)

from cases import make_data
from conformal_gp import NeuralNetwork
from conformal_gp.gp.covariance import covariance


class CappedRBF(RBF):
    """A user's own subclass that overrides the formula."""

    def __call__(self, X, Y=None, eval_gradient=False):
        if eval_gradient:
            K, gradient = super().__call__(X, eval_gradient=True)
            return 3.0 * K + 1.0, 3.0 * gradient
        return 3.0 * super().__call__(X, Y) + 1.0

    def diag(self, X):
        return np.full(len(X), 4.0)


class Harmonic(Kernel):
    """A user's own kernel: w² cos(x₀ - z₀) on the first input."""

    def __init__(self, weight=1.0, weight_bounds=(1e-3, 1e3)):
        self.weight = weight
        self.weight_bounds = weight_bounds

    @property
    def hyperparameter_weight(self):
        return Hyperparameter("weight", "numeric", self.weight_bounds)

    def __call__(self, X, Y=None, eval_gradient=False):
        Y = X if Y is None else Y
        K = self.weight**2 * np.cos(X[:, :1] - Y[:, :1].T)
        return (K, 2 * K[:, :, None]) if eval_gradient else K

    def diag(self, X):
        return np.full(len(X), self.weight**2)

    def is_stationary(self):
        return True


class WithoutGradient(Harmonic):
    """A user's own kernel with nothing to learn, which knows no derivatives."""

    def __init__(self, weight=1.0):
        super().__init__(weight, "fixed")

    def __call__(self, X, Y=None):
        return super().__call__(X, Y)


KERNELS = {
    "constant": ConstantKernel(1.7),
    "white": WhiteKernel(0.3),
    "se": RBF(0.8),
    "se ard": RBF([0.8, 2.0, 0.3]),
    "se one-entry length scale": RBF([0.8]),
    "matern12": Matern(0.9, nu=0.5),
    "matern32": Matern(0.9, nu=1.5),
    "matern32 ard": Matern([0.9, 1.4, 3.0], nu=1.5),
    "matern52": Matern(0.9, nu=2.5),
    "matern52 ard": Matern([0.9, 1.4, 3.0], nu=2.5),
    "matern infinite": Matern(0.9, nu=np.inf),
    "matern other": Matern(0.9, nu=1.1),
    "rq": RationalQuadratic(0.7, 2.0),
    "nn": NeuralNetwork(0.6),
    "dot": DotProduct(0.4),
    "periodic": ExpSineSquared(1.1, 2.3),
    "amplitude": 2.0 * RBF(0.8),
    "amplitude last": RBF(0.8) * ConstantKernel(2.0),
    "amplitude twice": ConstantKernel(2.0) * (ConstantKernel(3.0) * Matern(0.9, nu=1.5)),
    "sum": 2.0 * RBF(0.8) + 0.5 * Matern([0.9, 1.4, 3.0], nu=2.5) + WhiteKernel(0.1),
    "product": RationalQuadratic(0.7, 2.0) * NeuralNetwork(0.6) * DotProduct(0.4),
    "amplitude of a sum": 2.0 * (RBF(0.8) + RationalQuadratic(1.7, 0.2)),
    "amplitude of a product": 2.0 * (RBF(0.8) * NeuralNetwork(0.6)),
    "product of sums": (RBF(0.8) + ConstantKernel(0.3)) * (Matern(2.0, nu=1.5) + WhiteKernel(0.2)),
    "power": RBF(0.8) ** 3,
    "amplitude of a power": 2.0 * (RationalQuadratic(0.7, 2.0) + WhiteKernel(0.1)) ** 1.5,
    "power of a product": (ConstantKernel(2.0) * RBF(0.8)) ** 2,
    "fixed length scale": ConstantKernel(2.0) * RBF(0.8, "fixed"),
    "fixed length scales": ConstantKernel(2.0) * RBF([0.8, 1.0, 2.0], "fixed"),
    "fixed amplitude": ConstantKernel(2.0, "fixed") * RBF(0.8) + WhiteKernel(0.1, "fixed"),
    "fixed alpha": RationalQuadratic(0.7, 2.0, alpha_bounds="fixed"),
    "fixed rq length scale": RationalQuadratic(0.7, 2.0, length_scale_bounds="fixed"),
    "fixed nn": 3.0 * NeuralNetwork(0.6, "fixed") + ConstantKernel(1.0, "fixed"),
    "all fixed": ConstantKernel(2.0, "fixed") * RationalQuadratic(0.7, 2.0, "fixed", "fixed"),
    "subclass": 2.0 * CappedRBF(0.8),
    "subclass ard": CappedRBF([0.8, 1.0, 2.0]) + RBF(3.0),
    "own": 2.0 * Harmonic(1.3) + RBF(0.8) * Harmonic(0.4),
}


@pytest.mark.parametrize("name", KERNELS)
def test_matrix_and_vector_jacobian_product_agree_with_scikit_learn(name):
    kernel = KERNELS[name]
    X, _ = make_data(1, 23, 3)
    Z, _ = make_data(6, 5, 3)
    Z[2] = X[1]  # noise is not shared, even at equal inputs
    expected, gradient = kernel(X, eval_gradient=True)
    K, product = covariance(kernel, X)
    np.testing.assert_allclose(K, expected, rtol=1e-12, atol=1e-14)
    np.testing.assert_allclose(covariance(kernel, X, Z)[0], kernel(X, Z), rtol=1e-12, atol=1e-14)
    W = np.random.default_rng(2).normal(size=(23, 23))
    for weights in (W, np.triu(W)):  # a likelihood gives a triangle
        found = product(weights)
        assert found.shape == kernel.theta.shape
        np.testing.assert_allclose(found, np.einsum("ij,ijp->p", weights, gradient), rtol=1e-10, atol=1e-10)
    scaled, scaled_product = covariance(kernel, X, scale=0.3)
    np.testing.assert_allclose(scaled, 0.3 * K, rtol=1e-13)
    np.testing.assert_allclose(scaled_product(W), 0.3 * product(W), rtol=1e-10, atol=1e-12)


def test_a_kernel_without_a_gradient_serves_when_nothing_is_learnt():
    X, _ = make_data(7, 6, 3)
    kernel = WithoutGradient(1.2)
    K, product = covariance(kernel, X)
    np.testing.assert_allclose(K, kernel(X))
    assert product(K).shape == (0,)


@pytest.mark.parametrize("kernel", [RBF(1e-3), RBF([1e-3, 1e-3]), Matern(1e-3, nu=2.5), RationalQuadratic(1e-3, 50.0)])
def test_equal_rows_far_from_the_origin_are_at_distance_zero(kernel):
    X = np.array([[1e6 + 0.1, 3.0], [1e6 + 0.1, 3.0], [1e6 + 0.7, 3.0]])
    K, _ = covariance(kernel, X)
    assert K[1, 0] == 1.0
    assert K[2, 0] < 1e-10
