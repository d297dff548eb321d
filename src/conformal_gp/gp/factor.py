"""Factorisation of a covariance matrix: Cholesky, inverse, and whether the result can be trusted."""

from __future__ import annotations

import numpy as np
from numpy.linalg import LinAlgError
from numpy.typing import NDArray
from scipy.linalg import lapack

Array = NDArray[np.float64]


class Factor:
    """Cholesky factor of a symmetric positive definite matrix, ``A = L L'``.

    Parameters
    ----------
    A : ndarray of shape (n, n)
        The matrix; its content is destroyed when it is C-contiguous.
    """

    def __init__(self, A: Array):
        # A is symmetric, so A.T is A in the order that LAPACK reads without a copy.
        self._L, info = lapack.dpotrf(A.T, lower=1, clean=1, overwrite_a=1)
        if info != 0:
            raise LinAlgError(f"leading minor of order {info} is not positive definite")

    def log_determinant(self) -> float:
        """Logarithm of the determinant of A."""
        return 2.0 * float(np.log(np.diagonal(self._L)).sum())

    def solve(self, B: Array) -> Array:
        """Solution of A x = B."""
        return lapack.dpotrs(self._L, B, lower=1)[0]

    def reciprocal_condition(self, norm: float) -> float:
        """Estimate of 1 / (|A| |A^-1|) in the 1-norm, given |A|."""
        return float(lapack.dpocon(self._L, norm, uplo="L")[0])

    def lower_inverse(self) -> Array:
        """Lower triangle of A^-1, zeros above; the factor itself is used up."""
        C, _ = lapack.dpotri(self._L, lower=1, overwrite_c=1)
        return C

    def inverse_root(self) -> Array:
        """L^-1, lower triangular, so that A^-1 = L^-T L^-1; the factor itself is used up."""
        root, _ = lapack.dtrtri(self._L, lower=1, overwrite_c=1)
        return root
