"""Cholesky factor and inverse by LAPACK, without the interpreter lock.

SciPy's wrappers hold that lock, so threads over matrices would wait for each other. The routines that SciPy exports for
Cython are called by their addresses instead, as Numba does; the lock is released meanwhile.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable

import numpy as np
from scipy.linalg import cython_lapack

from conformal_gp.arrays import Array


def _routine(name: str, n_arguments: int) -> Callable[..., None]:
    """A routine of LAPACK, all of whose arguments are addresses."""
    capsule = cython_lapack.__pyx_capi__[name]
    signature = ctypes.pythonapi.PyCapsule_GetName
    signature.restype = ctypes.c_char_p
    signature.argtypes = [ctypes.py_object]
    address = ctypes.pythonapi.PyCapsule_GetPointer
    address.restype = ctypes.c_void_p
    address.argtypes = [ctypes.py_object, ctypes.c_char_p]
    prototype = ctypes.CFUNCTYPE(None, *[ctypes.c_void_p] * n_arguments)
    return prototype(address(capsule, signature(capsule)))


# subroutine (uplo, n, a, lda, info)
_potrf = _routine("dpotrf", 5)
_potri = _routine("dpotri", 5)


def _in_place(routine: Callable[..., None], A: Array) -> bool:
    if A.dtype != np.float64 or not A.flags.c_contiguous:
        raise ValueError("the matrix must be of float64, row by row.")
    upper = ctypes.c_char(b"U")  # the lower triangle of a matrix kept row by row is the upper one to LAPACK
    n = ctypes.c_int(len(A))
    info = ctypes.c_int(0)
    size = ctypes.addressof(n)
    routine(ctypes.addressof(upper), size, A.ctypes.data, size, ctypes.addressof(info))
    return info.value == 0


def factorise(A: Array) -> bool:
    """Replace the lower triangle of A by its Cholesky factor L; False if A is not positive definite.

    >>> A = np.array([[4.0, 0.0], [2.0, 5.0]])
    >>> factorise(A), A.tolist()
    (True, [[2.0, 0.0], [1.0, 2.0]])
    """
    return _in_place(_potrf, A)


def invert(L: Array) -> bool:
    """Replace the lower triangle of L by that of the inverse of L L'; False if L is singular.

    >>> L = np.array([[2.0, 0.0], [1.0, 1.0]])
    >>> invert(L), L.tolist()
    (True, [[0.5, 0.0], [-0.5, 1.0]])
    """
    return _in_place(_potri, L)
