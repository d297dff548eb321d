r"""Covariance matrices, with their vector-Jacobian products.

The gradient of a likelihood needs :math:`\sum_{ij} W_{ij}\, \partial K_{ij} / \partial \theta` for each hyperparameter,
never the l x l x p array of derivatives itself. So each kernel here gives its matrix K and a function from W to those
sums, the *vector-Jacobian product*. Kernels that are not known here take scikit-learn's own ``eval_gradient=True``.

Kernels are looked up by their exact type: a subclass may override the formula.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.linalg import LinAlgError
from scipy.linalg import blas
from scipy.spatial.distance import cdist
from sklearn.gaussian_process.kernels import (
    RBF,
    ConstantKernel,
    Exponentiation,
    Kernel,
    Matern,
    Product,
    RationalQuadratic,
    Sum,
    WhiteKernel,
)

from conformal_gp.arrays import Array
from conformal_gp.gp.kernels import PROFILES, NeuralNetwork, is_definite
from conformal_gp.gp.linalg import Cholesky

VectorJacobianProduct = Callable[[Array], Array]
Covariance = tuple[Array, VectorJacobianProduct]

# Negative eigenvalues and variances are rounding up to this share of the largest variance.
NEGLIGIBLE = 1e-10

_known: dict[type, Callable[[Kernel, Array, Array | None, float], Covariance]] = {}


def _register(*kernel_types: type) -> Callable[[Callable], Callable]:
    def add(function: Callable[..., Covariance]) -> Callable:
        _known.update(dict.fromkeys(kernel_types, function))
        return function

    return add


def covariance(kernel: Kernel, X: Array, Z: Array | None = None, scale: float = 1.0) -> Covariance:
    """Matrix of ``scale * kernel`` between rows of X and Z, and its vector-Jacobian product.

    Parameters
    ----------
    kernel : sklearn.gaussian_process.kernels.Kernel
        Any kernel on vectors.
    X : ndarray of shape (n, d)
        Rows.
    Z : ndarray of shape (m, d) or None, default=None
        Other rows; None is X itself, with white noise on the diagonal. The product is defined for None only.
    scale : float, default=1.0
        A factor that is not a hyperparameter: the value of an amplitude reaches its shape this way.

    Returns
    -------
    K : ndarray of shape (n, m)
        The covariances. The product needs them, so they are not to be written to before it is called.
    product : callable
        From W, (n, n), to the gradient of sum(W * K) in ``kernel.theta`` (logarithms, fixed ones left out).
    """
    return _known.get(type(kernel), _by_scikit_learn)(kernel, X, Z, scale)


def _by_scikit_learn(kernel: Kernel, X: Array, Z: Array | None, scale: float) -> Covariance:
    if Z is not None or kernel.n_dims == 0:
        return scale * kernel(X, Z), lambda W: np.empty(0)
    K, gradient = kernel(X, eval_gradient=True)
    return scale * K, lambda W: scale * np.einsum("ij,ijp->p", W, gradient)


@_register(ConstantKernel)
def _constant(kernel: ConstantKernel, X: Array, Z: Array | None, scale: float) -> Covariance:
    K = np.full((len(X), len(X if Z is None else Z)), scale * float(kernel.constant_value))
    return K, lambda W: np.full(kernel.n_dims, K[0, 0] * W.sum())


@_register(WhiteKernel)
def _white(kernel: WhiteKernel, X: Array, Z: Array | None, scale: float) -> Covariance:
    level = scale * float(kernel.noise_level)
    K = level * np.eye(len(X)) if Z is None else np.zeros((len(X), len(Z)))
    return K, lambda W: np.full(kernel.n_dims, level * np.trace(W))


@_register(Sum)
def _sum(kernel: Sum, X: Array, Z: Array | None, scale: float) -> Covariance:
    (K1, product1), (K2, product2) = (covariance(part, X, Z, scale) for part in (kernel.k1, kernel.k2))
    return K1 + K2, lambda W: np.concatenate([product1(W), product2(W)])


@_register(Product)
def _product(kernel: Product, X: Array, Z: Array | None, scale: float) -> Covariance:
    if type(kernel.k1) is ConstantKernel:  # an amplitude needs no matrix of its own
        K, product = covariance(kernel.k2, X, Z, scale * float(kernel.k1.constant_value))
        learnt = int(not kernel.k1.hyperparameter_constant_value.fixed)
        return K, lambda W: np.append(np.full(learnt, np.einsum("ij,ij->", W, K)), product(W))
    # d(k1 k2) = k2 dk1 + k1 dk2
    K1, product1 = covariance(kernel.k1, X, Z, scale)
    K2, product2 = covariance(kernel.k2, X, Z)
    return K1 * K2, lambda W: np.concatenate([product1(W * K2), product2(W * K1)])


@_register(Exponentiation)
def _power(kernel: Exponentiation, X: Array, Z: Array | None, scale: float) -> Covariance:
    exponent = kernel.exponent
    K, product = covariance(kernel.kernel, X, Z)
    # dk^e / dtheta = e k^(e - 1) dk / dtheta
    return scale * K**exponent, lambda W: product(W * (scale * exponent * K ** (exponent - 1)))


@_register(RBF, Matern)
def _stationary(kernel: RBF, X: Array, Z: Array | None, scale: float) -> Covariance:
    r"""A function of :math:`r^2 = \sum_d (x_d - z_d)^2 / \ell_d^2`, with one length scale or one for each input.

    With S the slope :math:`-2\, dk / dr^2`, :math:`\partial K_{ij} / \partial \log \ell_d = S_{ij} (x_{id} - x_{jd})^2
    / \ell_d^2`, and sums of these over pairs of rows are matrix products. Distances come from differences, so that
    rows which are equal are at distance zero exactly.
    """
    profile = PROFILES.get(getattr(kernel, "nu", np.inf))
    if profile is None:
        return _by_scikit_learn(kernel, X, Z, scale)
    x = X / kernel.length_scale
    shape, slope = profile(cdist(x, x if Z is None else Z / kernel.length_scale, "sqeuclidean"))
    K = shape if scale == 1.0 else scale * shape

    def product(W: Array) -> Array:
        if kernel.hyperparameter_length_scale.fixed:
            return np.empty(0)
        M = W * slope()
        centred = x - np.median(x, axis=0)
        both = blas.dgemm(1.0, M.T, centred, trans_a=True)  # M @ centred, see conformal_gp.gp.likelihood
        # sum_ij M_ij (x_i - x_j)^2 = sum_i (row and column sums)_i x_i^2 - 2 sum_ij x_i M_ij x_j
        each = (M.sum(axis=0) + M.sum(axis=1)) @ centred**2 - 2.0 * np.einsum("ij,ij->j", centred, both)
        return scale * (each if kernel.anisotropic else each.sum(keepdims=True))

    return K, product


@_register(RationalQuadratic)
def _rational_quadratic(kernel: RationalQuadratic, X: Array, Z: Array | None, scale: float) -> Covariance:
    alpha, length = float(kernel.alpha), float(kernel.length_scale)
    learnt = [not kernel.hyperparameter_alpha.fixed, not kernel.hyperparameter_length_scale.fixed]
    # k = u^-alpha with u = 1 + r^2 / (2 alpha l^2), equation 4.19 of Rasmussen and Williams (2006)
    u = 1.0 + cdist(X, X if Z is None else Z, "sqeuclidean") / (2.0 * alpha * length**2)
    K = scale * u**-alpha

    def product(W: Array) -> Array:
        M = W * K
        decline = alpha * np.einsum("ij,ij->", M, 1.0 - 1.0 / u)  # r² / (2 l² u) = alpha (1 - 1/u)
        return np.array([decline - alpha * np.einsum("ij,ij->", M, np.log(u)), 2.0 * decline])[learnt]

    return K, product


@_register(NeuralNetwork)
def _neural_network(kernel: NeuralNetwork, X: Array, Z: Array | None, scale: float) -> Covariance:
    other = X if Z is None else Z

    def product(W: Array) -> Array:
        by_length = scale * np.einsum("ij,ij->", W, kernel.derivative(X, other))
        return np.full(kernel.n_dims, by_length)

    return scale * kernel.value(X, other), product


def shared_variance(kernel: Kernel, X: Array) -> Array:
    """Variance at each row of ``X`` without white noise: the covariance of two targets at the same input.

    >>> shared_variance(RBF() + WhiteKernel(0.5), np.zeros((2, 1)))
    array([1., 1.])
    """
    if isinstance(kernel, WhiteKernel):
        return np.zeros(X.shape[0])
    if isinstance(kernel, Sum):
        return shared_variance(kernel.k1, X) + shared_variance(kernel.k2, X)
    if isinstance(kernel, Product):
        return shared_variance(kernel.k1, X) * shared_variance(kernel.k2, X)
    if isinstance(kernel, Exponentiation):
        return shared_variance(kernel.kernel, X) ** kernel.exponent
    return kernel.diag(X)


def check_matrix(kernel: Kernel, K: Array) -> None:
    r"""Raise a ValueError if the lower triangle of a kernel's matrix is that of an indefinite one.

    A Gaussian process has a positive semi-definite covariance matrix over any rows. With a kernel of the user's own,
    such as :math:`\exp(-|x - z|^4)`, that may fail. Clipping what is negative would treat training rows and test row
    differently, and coverage would not be valid. So the matrix over the training rows is checked here, and what each
    test row adds to it in :func:`check_variances`.
    """
    if is_definite(kernel):
        return
    A = K.copy(order="F")
    A.flat[:: A.shape[0] + 1] += NEGLIGIBLE * max(float(np.diagonal(K).max()), np.finfo(float).tiny)
    try:
        Cholesky(A)
    except LinAlgError:
        least = float(np.linalg.eigvalsh(K, UPLO="L")[0])
        raise ValueError(f"{_complaint(kernel)} (its matrix over the rows has an eigenvalue of {least:.1e}).") from None


def check_variances(kernel: Kernel, left: Array, total: Array) -> None:
    """Raise a ValueError if some variances given the training rows are negative: ``left`` of ``total``, no noise."""
    if is_definite(kernel):
        return
    wrong = int(np.argmin(left / total))
    if left[wrong] < -NEGLIGIBLE * total[wrong]:
        raise ValueError(f"{_complaint(kernel)} (a test row would have a variance of {left[wrong]:.1e}).")


def _complaint(kernel: Kernel) -> str:
    return f"kernel {kernel} is no covariance function: it is not positive semi-definite on these inputs"
