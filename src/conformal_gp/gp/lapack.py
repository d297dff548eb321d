"""BLAS and LAPACK routines that let other threads run.

SciPy's Python wrappers hold the interpreter's lock while they compute, so threads over restarts or test rows would wait
for each other. These are the same routines from the same library, called through their addresses, which release it.

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

Array = NDArray[np.float64]
Single = NDArray[np.float32]

_LOWER = b"U"


def _routine(library: str, name: str, n_arguments: int) -> Callable[..., None]:
    address = get_cython_function_address(f"scipy.linalg.cython_{library}", name)
    function = CFUNCTYPE(None, *[c_void_p] * n_arguments)(address)

    def call(*arguments: Any) -> None:
        """Call with bytes, ints, ctypes values and arrays, each by reference, as Fortran has it."""
        function(*[_address(argument) for argument in arguments])

    return call


def _address(argument: Any) -> Any:
    if isinstance(argument, np.ndarray):
        return argument.ctypes.data
    return _kept(argument) if isinstance(argument, bytes | int) else byref(argument)


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


def cholesky(A: Array) -> None:
    """Overwrite the lower triangle of A with its Cholesky factor L; what is above the diagonal is left as it is."""
    n = A.shape[0]
    info = c_int()
    _potrf(_LOWER, n, A, n, info)
    if info.value != 0:
        raise LinAlgError(f"leading minor of order {info.value} is not positive definite")


def inverse_from_cholesky(L: Array) -> None:
    """Overwrite the lower triangle L with that of (L L')^-1."""
    _potri(_LOWER, L.shape[0], L, L.shape[0], c_int())


def solve_from_cholesky(L: Array, B: Array) -> Array:
    """Solution X of L L' X = B, for B of shape (n,) or (n, k)."""
    columns = np.array(B.T, order="C", ndmin=2)  # one right-hand side a row: a column to Fortran
    n = L.shape[0]
    _potrs(_LOWER, n, columns.shape[0], L, n, columns, n, c_int())
    return columns[0] if B.ndim == 1 else columns.T


def invert_triangle(L: Array) -> None:
    """Overwrite the lower triangle L with its inverse."""
    _trtri(_LOWER, b"N", L.shape[0], L, L.shape[0], c_int())


def reciprocal_condition(L: Array, norm: float) -> float:
    """Estimate of 1 / (|A| |A^-1|) in the 1-norm, from A = L L' and |A|."""
    n = L.shape[0]
    estimate = c_double()
    _pocon(_LOWER, n, L, n, c_double(norm), estimate, np.empty(3 * n), np.empty(n, dtype=np.int32), c_int())
    return estimate.value


def multiply_triangle(L: Array | Single, B: Array | Single, *, transposed: bool) -> None:
    """Overwrite the rows b of B, (m, n), with L b or L' b; L may be in either order, both in single precision."""
    m, n = B.shape
    routine, one = (_trmm, c_double(1.0)) if B.dtype == np.float64 else (_trmm_single, c_float(1.0))
    # B is (n, m) to Fortran, a column for each row. Of L in C's order it sees the transpose.
    by_rows = L.flags.c_contiguous
    routine(b"L", _LOWER if by_rows else b"L", b"N" if transposed == by_rows else b"T", b"N", n, m, one, L, n, B, n)


def solve_triangle(L: Array, B: Array, *, transposed: bool) -> None:
    """Overwrite the rows b of B, (m, n), with the solutions x of L x = b, or of L' x = b; L in C's order."""
    m, n = B.shape
    _trsm(b"L", _LOWER, b"N" if transposed else b"T", b"N", n, m, c_double(1.0), L, n, B, n)
