r"""Covariance matrices, with their vector-Jacobian products, and their Cholesky factors.

The gradient of a likelihood needs :math:`\sum_{ij} W_{ij}\, \partial K_{ij} / \partial \theta` for each hyperparameter,
never the l x l x p array of derivatives itself. So each kernel here gives its matrix K and a function from W to those
sums, the *vector-Jacobian product*. Kernels that are not known here take scikit-learn's own ``eval_gradient=True``.
"""

from __future__ import annotations

from collections.abc import Callable
from copy import copy
from functools import cached_property

import numpy as np
from numpy.linalg import LinAlgError
from scipy.linalg import blas, lapack
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
from conformal_gp.gp.kernels import PROFILES, is_definite

VectorJacobianProduct = Callable[[Array], Array]
Covariance = tuple[Array, VectorJacobianProduct]

# Negative eigenvalues and variances are rounding up to this share of the largest variance.
NEGLIGIBLE = 1e-10


def covariance(kernel: Kernel, X: Array, Z: Array | None = None, scale: float = 1.0) -> Covariance:
    """Matrix of ``scale * kernel`` between rows of X and Z, and its vector-Jacobian product.

    Without Z it is of X itself, with white noise on the diagonal. Only then the product is defined: from W, (n, n), to
    the gradient of sum(W * K) in ``kernel.theta``. It needs K, which is not to be written to before.
    """
    return _KNOWN.get(type(kernel), _by_scikit_learn)(kernel, X, Z, scale)


def _by_scikit_learn(kernel: Kernel, X: Array, Z: Array | None, scale: float) -> Covariance:
    if Z is not None or kernel.n_dims == 0:
        return scale * kernel(X, Z), lambda W: np.empty(0)
    K, gradient = kernel(X, eval_gradient=True)
    return scale * K, lambda W: scale * np.einsum("ij,ijp->p", W, gradient)


def _sum(kernel: Sum, X: Array, Z: Array | None, scale: float) -> Covariance:
    (K1, product1), (K2, product2) = (covariance(part, X, Z, scale) for part in (kernel.k1, kernel.k2))
    return K1 + K2, lambda W: np.concatenate([product1(W), product2(W)])


def _product(kernel: Product, X: Array, Z: Array | None, scale: float) -> Covariance:
    if type(kernel.k1) is ConstantKernel:  # an amplitude needs no matrix of its own
        K, product = covariance(kernel.k2, X, Z, scale * float(kernel.k1.constant_value))
        learnt = int(not kernel.k1.hyperparameter_constant_value.fixed)
        return K, lambda W: np.append(np.full(learnt, np.einsum("ij,ij->", W, K)), product(W))
    # d(k1 k2) = k2 dk1 + k1 dk2
    K1, product1 = covariance(kernel.k1, X, Z, scale)
    K2, product2 = covariance(kernel.k2, X, Z)
    return K1 * K2, lambda W: np.concatenate([product1(W * K2), product2(W * K1)])


def _stationary(kernel: RBF, X: Array, Z: Array | None, scale: float) -> Covariance:
    profile = PROFILES.get(getattr(kernel, "nu", np.inf))
    if profile is None:
        return _by_scikit_learn(kernel, X, Z, scale)
    # r^2 = sum_d (x_d - z_d)^2 / l_d^2, from differences: equal rows are at distance zero exactly
    x = X / kernel.length_scale
    shape, slope = profile(cdist(x, x if Z is None else Z / kernel.length_scale, "sqeuclidean"))
    K = shape if scale == 1.0 else scale * shape

    def product(W: Array) -> Array:
        if kernel.hyperparameter_length_scale.fixed:
            return np.empty(0)
        # dK_ij / dlog l_d = S_ij (x_id - x_jd)^2 / l_d^2 with the slope S = -2 dk / dr^2
        M = W * slope()
        centred = x - np.median(x, axis=0)
        both = blas.dgemm(1.0, M.T, centred, trans_a=True)  # M @ centred, see conformal_gp.gp.likelihood
        # sum_ij M_ij (x_i - x_j)^2 = sum_i (row and column sums)_i x_i^2 - 2 sum_ij x_i M_ij x_j
        each = (M.sum(axis=0) + M.sum(axis=1)) @ centred**2 - 2.0 * np.einsum("ij,ij->j", centred, both)
        return scale * (each if kernel.anisotropic else each.sum(keepdims=True))

    return K, product


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


# By exact type: a subclass may override the formula.
_KNOWN: dict[type, Callable[..., Covariance]] = {
    Sum: _sum,
    Product: _product,
    RBF: _stationary,
    Matern: _stationary,
    RationalQuadratic: _rational_quadratic,
}


class Cholesky:
    """Cholesky factor of a symmetric positive definite matrix, ``A = L L'``, from its lower triangle.

    LAPACK's routines are called directly: they work in place, on matrices in Fortran order, and release the
    interpreter's lock.
    """

    def __init__(self, A: Array):
        self.lower, info = lapack.dpotrf(A, lower=1, clean=1, overwrite_a=1)
        if info != 0:
            raise LinAlgError(f"leading minor of order {info} is not positive definite")

    def log_determinant(self) -> float:
        """Logarithm of the determinant of A."""
        return 2.0 * float(np.log(np.diagonal(self.lower)).sum())

    def solve(self, B: Array) -> Array:
        """Solution of A x = B, for B of shape (n,) or (n, k)."""
        return lapack.dpotrs(self.lower, B, lower=1)[0]

    def half_solve(self, B: Array, *, transposed: bool = False) -> Array:
        """L^-1 B, or L^-T B, for B of shape (n,) or (n, k); B is overwritten if it is in Fortran order."""
        columns = B if B.ndim == 2 else B[:, None]
        solved = blas.dtrsm(1.0, self.lower, columns, lower=1, trans_a=transposed, overwrite_b=B.ndim == 2)
        return solved if B.ndim == 2 else solved[:, 0]

    def reciprocal_condition(self, norm: float) -> float:
        """Estimate of 1 / (|A| |A^-1|) in the 1-norm, given |A|."""
        return float(lapack.dpocon(self.lower, norm, uplo="L")[0])

    def lower_inverse(self) -> Array:
        """Lower triangle of A^-1, zeros above; the factor itself is used up."""
        return lapack.dpotri(self.lower, lower=1, overwrite_c=1)[0]

    @cached_property
    def inverse_root(self) -> Array:
        """L^-1, lower triangular, so that A^-1 = L^-T L^-1."""
        return lapack.dtrtri(self.lower, lower=1)[0]

    def extended(self, B: Array, C: Array) -> Cholesky:
        """Factor of a matrix of n + k rows in O(k n^2): A, below it B, (k, n), and in the corner C, (k, k)."""
        across = self.half_solve(np.array(B.T, order="F")).T  # L21 = B L^-T
        corner = Cholesky(np.asfortranarray(C - across @ across.T))  # L22 L22' = C - L21 L21'
        both = copy(self)
        both.lower = _joined(self.lower, across, corner.lower)
        if "inverse_root" in vars(self):  # its second block row is (-L22^-1 L21 L^-1, L22^-1)
            across = -corner.half_solve(np.asfortranarray(across @ self.inverse_root))
            both.inverse_root = _joined(self.inverse_root, across, corner.inverse_root)
        return both


def _joined(first: Array, across: Array, corner: Array) -> Array:
    """A lower triangular matrix from its blocks, in Fortran's order."""
    return np.block([[first.T, across.T], [np.zeros(across.shape), corner.T]]).T


def one_norm(A: Array) -> float:
    """1-norm of a symmetric matrix that is given by its lower triangle, zeros above."""
    size = np.abs(A)
    return float((size.sum(axis=0) + size.sum(axis=1) - np.diagonal(size)).max())


def well_conditioned(A: Array, smallest: float, complaint: Callable[[float, float], str]) -> Cholesky:
    """Factorise a lower triangle, zeros above, of at least this reciprocal condition number, or raise a LinAlgError.

    ``complaint`` makes its message of the reciprocal condition number and the 1-norm.
    """
    norm = one_norm(A)
    try:
        factor = Cholesky(A)
        condition = factor.reciprocal_condition(norm)
    except LinAlgError:
        condition = 0.0
    if condition < smallest:
        raise LinAlgError(complaint(condition, norm))
    return factor


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

    A kernel of the user's own, such as :math:`\exp(-|x - z|^4)`, may have one. Clipping what is negative would treat
    training rows and test row differently, and coverage would not be valid.
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
