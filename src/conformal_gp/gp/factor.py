"""Factorisation of a covariance matrix: Cholesky, inverse, determinant, condition."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from conformal_gp.gp import lapack

Array = NDArray[np.float64]


def norm_of_lower(A: Array) -> float:
    """1-norm of a symmetric matrix that is given by its lower triangle, zeros above."""
    size = np.abs(A)
    return float((size.sum(axis=0) + size.sum(axis=1) - np.diagonal(size)).max())


class Factor:
    """Cholesky factor of a symmetric positive definite matrix, ``A = L L'``.

    Parameters
    ----------
    A : C-contiguous ndarray of shape (n, n)
        The matrix, of which the lower triangle is read, with zeros above; it is overwritten.
    """

    def __init__(self, A: Array):
        lapack.cholesky(A)
        self._L = A

    def log_determinant(self) -> float:
        """Logarithm of the determinant of A."""
        return 2.0 * float(np.log(np.diagonal(self._L)).sum())

    def solve(self, B: Array) -> Array:
        """Solution of A x = B."""
        return lapack.solve_from_cholesky(self._L, B)

    def reciprocal_condition(self, norm: float) -> float:
        """Estimate of 1 / (|A| |A^-1|) in the 1-norm, given |A|."""
        return lapack.reciprocal_condition(self._L, norm)

    def lower_inverse(self) -> Array:
        """Lower triangle of A^-1, zeros above; the factor itself is used up."""
        lapack.inverse_from_cholesky(self._L)
        return self._L

    def inverse_root(self) -> Array:
        """L^-1, lower triangular, so that A^-1 = L^-T L^-1; the factor itself is used up."""
        lapack.invert_triangle(self._L)
        return self._L
