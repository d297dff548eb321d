"""Cholesky factorisation of a covariance matrix, and what is refused: matrices that are singular or indefinite.

SciPy's Python wrappers of BLAS and LAPACK hold the interpreter's lock while they compute, so threads over restarts or
test rows would wait for each other. Here the same routines of the same library are called through their addresses,
which releases it.

All matrices are C-contiguous, unless it is said otherwise, and their *lower* triangle is used: to Fortran, the upper
triangle of the transpose.
"""

from __future__ import annotations

from collections.abc import Callable
from ctypes import CFUNCTYPE, byref, c_char, c_double, c_float, c_int, c_void_p
from functools import cache
from typing import Any

import numpy as np
from numba.extending import get_cython_function_address
from numpy.linalg import LinAlgError
from numpy.typing import NDArray
from sklearn.gaussian_process.kernels import Kernel

from conformal_gp._compiled import compiled
from conformal_gp.kernels import is_definite
from conformal_gp.types import Array

Single = NDArray[np.float32]

# Negative eigenvalues and variances are rounding up to this share of the largest variance.
ROUNDING = 1e-10

_LOWER = b"U"


def _routine(library: str, name: str, n_arguments: int) -> Callable[..., None]:
    address = get_cython_function_address(f"scipy.linalg.cython_{library}", name)
    function = CFUNCTYPE(None, *[c_void_p] * n_arguments)(address)

    def call(*arguments: Any) -> None:
        """Call with bytes, ints, ctypes values and arrays, each by reference, as Fortran has it."""
        function(*[_address(argument) for argument in arguments])

    return call


def _address(argument: Any) -> Any:
    kind = type(argument)
    if kind is int or kind is bytes:
        return _kept(argument)
    return argument.ctypes.data if isinstance(argument, np.ndarray) else byref(argument)


@cache
def _kept(argument: bytes | int) -> Any:
    """An argument that is only read, as Fortran takes it."""
    return byref(c_char(argument) if isinstance(argument, bytes) else c_int(argument))


_potrf = _routine("lapack", "dpotrf", 5)
_potri = _routine("lapack", "dpotri", 5)
_potrs = _routine("lapack", "dpotrs", 8)
_trtri = _routine("lapack", "dtrtri", 6)
_pocon = _routine("lapack", "dpocon", 9)
_trmm = _routine("blas", "dtrmm", 11)
_trsm = _routine("blas", "dtrsm", 11)
_trmm_single = _routine("blas", "strmm", 11)


def multiply_triangle(L: Array | Single, B: Array | Single, *, transposed: bool) -> None:
    """Overwrite the rows b of B, (m, n), with L b or L' b; L may be in either order, both in single precision."""
    m, n = B.shape
    routine, one = (_trmm, c_double(1.0)) if B.dtype == np.float64 else (_trmm_single, c_float(1.0))
    # B is (n, m) to Fortran, a column for each row. Of L in C's order it sees the transpose.
    by_rows = L.flags.c_contiguous
    routine(b"L", _LOWER if by_rows else b"L", b"N" if transposed == by_rows else b"T", b"N", n, m, one, L, n, B, n)


def norm_of_lower(A: Array) -> float:
    """1-norm of a symmetric matrix that is given by its lower triangle, zeros above."""
    size = np.abs(A)
    return float((size.sum(axis=0) + size.sum(axis=1) - np.diagonal(size)).max())


@compiled()
def log_determinant(root: Array) -> float:  # pragma: no cover
    """Logarithm of the determinant of a matrix that has a triangular root.

    >>> log_determinant(np.eye(2)) == 0.0
    True
    """
    total = 0.0
    for i in range(root.shape[0]):
        total += np.log(abs(root[i, i]))
    return 2.0 * total


class Factor:
    """Cholesky factor of a symmetric positive definite matrix, ``A = L L'``.

    Parameters
    ----------
    A : C-contiguous ndarray of shape (n, n)
        The matrix, of which the lower triangle is read, with zeros above; it is overwritten.
    """

    def __init__(self, A: Array):
        info = c_int()
        _potrf(_LOWER, A.shape[0], A, A.shape[0], info)
        if info.value != 0:
            raise LinAlgError(f"leading minor of order {info.value} is not positive definite")
        self.lower = A
        """L, lower triangular."""

    def log_determinant(self) -> float:
        """Logarithm of the determinant of A."""
        return log_determinant(self.lower)

    def solve(self, B: Array) -> Array:
        """Solution of A x = B, for B of shape (n,) or (n, k)."""
        columns = np.array(B.T, order="C", ndmin=2)  # one right-hand side a row: a column to Fortran
        n = self.lower.shape[0]
        _potrs(_LOWER, n, columns.shape[0], self.lower, n, columns, n, c_int())
        return columns[0] if B.ndim == 1 else columns.T

    def solve_root_in_place(self, rows: Array) -> None:
        """Overwrite each row b of a C-contiguous (m, n) array with L^-1 b."""
        m, n = rows.shape
        _trsm(b"L", _LOWER, b"T", b"N", n, m, c_double(1.0), self.lower, n, rows, n)

    def reciprocal_condition(self, norm: float) -> float:
        """Estimate of 1 / (|A| |A^-1|) in the 1-norm, given |A|."""
        n, estimate = self.lower.shape[0], c_double()
        workspace = np.empty(3 * n), np.empty(n, dtype=np.int32)
        _pocon(_LOWER, n, self.lower, n, c_double(norm), estimate, *workspace, c_int())
        return estimate.value

    def lower_inverse(self) -> Array:
        """Lower triangle of A^-1, zeros above; the factor itself is used up."""
        _potri(_LOWER, self.lower.shape[0], self.lower, self.lower.shape[0], c_int())
        return self.lower

    def inverse_root(self) -> Array:
        """L^-1, lower triangular, so that A^-1 = L^-T L^-1."""
        root = self.lower.copy()
        _trtri(_LOWER, b"N", root.shape[0], root, root.shape[0], c_int())
        return root


def trustworthy(A: Array, smallest: float, complaint: Callable[[float, float], str]) -> Factor:
    """Factorise, or say why not: noise that is lost in rounding gives wrong intervals, so it gives an error.

    ``smallest`` is the smallest reciprocal condition number that is trusted. ``complaint`` makes a message of the
    reciprocal condition number and the 1-norm of a matrix that is not.
    """
    norm = norm_of_lower(A)
    try:
        factor = Factor(A)
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
    A = K.copy()
    A.flat[:: A.shape[0] + 1] += ROUNDING * max(float(np.diagonal(K).max()), np.finfo(float).tiny)
    try:
        Factor(A)
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
