"""Factorisation of a covariance matrix: Cholesky, inverse, determinant, condition."""

from __future__ import annotations

import numpy as np

from conformal_gp.gp import lapack
from conformal_gp.types import Array


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
        self.lower = A
        """L, lower triangular."""

    def log_determinant(self) -> float:
        """Logarithm of the determinant of A."""
        return 2.0 * float(np.log(np.diagonal(self.lower)).sum())

    def solve(self, B: Array) -> Array:
        """Solution of A x = B."""
        return lapack.solve_from_cholesky(self.lower, B)

    def solve_root(self, B: Array) -> Array:
        """Solution of L x = B, for B of shape (n,) or (n, k)."""
        columns = np.array(B.T, order="C", ndmin=2)
        lapack.solve_triangle(self.lower, columns, transposed=False)
        return columns[0] if B.ndim == 1 else columns.T

    def solve_root_transposed(self, b: Array) -> Array:
        """Solution of L' x = b, for b of shape (n,)."""
        column = np.array(b, ndmin=2)
        lapack.solve_triangle(self.lower, column, transposed=True)
        return column[0]

    def solve_root_in_place(self, rows: Array) -> None:
        """Overwrite each row b of a C-contiguous (m, n) array with L^-1 b."""
        lapack.solve_triangle(self.lower, rows, transposed=False)

    def reciprocal_condition(self, norm: float) -> float:
        """Estimate of 1 / (|A| |A^-1|) in the 1-norm, given |A|."""
        return lapack.reciprocal_condition(self.lower, norm)

    def lower_inverse(self) -> Array:
        """Lower triangle of A^-1, zeros above; the factor itself is used up."""
        lapack.inverse_from_cholesky(self.lower)
        return self.lower

    def inverse_root(self) -> Array:
        """L^-1, lower triangular, so that A^-1 = L^-T L^-1."""
        root = self.lower.copy()
        lapack.invert_triangle(root)
        return root
