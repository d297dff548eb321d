"""Linear algebra: Cholesky factors, with their condition."""

from __future__ import annotations

from collections.abc import Callable
from copy import copy
from functools import cached_property

import numpy as np
from numpy.linalg import LinAlgError
from scipy.linalg import blas, lapack

from conformal_gp.arrays import Array


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

    @cached_property
    def inverse_root(self) -> Array:
        """L^-1, lower triangular, so that A^-1 = L^-T L^-1."""
        return lapack.dtrtri(self.lower, lower=1)[0]

    def extended(self, B: Array, C: Array) -> Cholesky:
        r"""Factor of a matrix of n + k rows of which A is the first block, in :math:`O(k n^2)`.

        With :math:`L_{21} = B L^{-\top}` and the factor :math:`L_{22}` of the Schur complement
        :math:`C - L_{21} L_{21}'`, the second block row of the inverse root is
        :math:`(-L_{22}^{-1} L_{21} L^{-1}, L_{22}^{-1})`; it is made where the first is known.

        B, (k, n), is the block below A, and C, (k, k), the one in the corner.
        """
        across = self.half_solve(np.array(B.T, order="F")).T
        corner = Cholesky(np.asfortranarray(C - across @ across.T))
        both = copy(self)
        both.lower = _joined(self.lower, across, corner.lower)
        if "inverse_root" in vars(self):
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
