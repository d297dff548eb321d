"""Cholesky factorisation of a covariance matrix, and what is refused: matrices that are singular or indefinite."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.linalg import LinAlgError
from scipy.linalg import blas, lapack
from sklearn.gaussian_process.kernels import Kernel

from conformal_gp.kernels import is_definite
from conformal_gp.types import Array

# Negative eigenvalues and variances are rounding up to this share of the largest variance.
ROUNDING = 1e-10


class Cholesky:
    """Cholesky factor of a symmetric positive definite matrix, ``A = L L'``.

    LAPACK's routines are called directly: they work in place and release the interpreter's lock.

    Parameters
    ----------
    A : ndarray of shape (n, n)
        The matrix, of which the lower triangle is read. It is overwritten if it is in Fortran order.
    """

    def __init__(self, A: Array):
        self.lower, info = lapack.dpotrf(A, lower=1, clean=1, overwrite_a=1)
        """L, zeros above the diagonal, in Fortran order."""
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

    def inverse_root(self) -> Array:
        """L^-1, lower triangular, so that A^-1 = L^-T L^-1."""
        return lapack.dtrtri(self.lower, lower=1)[0]


def one_norm(A: Array) -> float:
    """1-norm of a symmetric matrix that is given by its lower triangle, zeros above."""
    size = np.abs(A)
    return float((size.sum(axis=0) + size.sum(axis=1) - np.diagonal(size)).max())


def well_conditioned(A: Array, smallest: float, complaint: Callable[[float, float], str]) -> Cholesky:
    """Factorise, or raise a LinAlgError: noise that is lost in rounding would give wrong intervals.

    ``A`` is a lower triangle, zeros above. ``smallest`` is the smallest reciprocal condition number that is accepted.
    ``complaint`` makes a message of the reciprocal condition number and the 1-norm of a matrix that is not.
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


def check_matrix(kernel: Kernel, K: Array) -> None:
    r"""Raise a ValueError if the lower triangle of a kernel's matrix is that of an indefinite one.

    A Gaussian process has a positive semi-definite covariance matrix over any rows. With a kernel of the user's own,
    such as :math:`\exp(-|x - z|^4)`, that may fail. Clipping what is negative would treat training rows and test row
    differently, and coverage would not be exact. So the matrix over the training rows is checked here, and what each
    test row adds to it in :func:`check_variances`.
    """
    if is_definite(kernel):
        return
    A = K.copy(order="F")
    A.flat[:: A.shape[0] + 1] += ROUNDING * max(float(np.diagonal(K).max()), np.finfo(float).tiny)
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
    if left[wrong] < -ROUNDING * total[wrong]:
        raise ValueError(f"{_complaint(kernel)} (a test row would have a variance of {left[wrong]:.1e}).")


def _complaint(kernel: Kernel) -> str:
    return f"kernel {kernel} is no covariance function: it is not positive semi-definite on these inputs"
