r"""Kernels that are no covariances: an indefinite matrix is refused, whichever row of the bag makes it so.

A Gaussian process has a positive semi-definite covariance matrix over any rows. With a kernel of the user's own, such
as :math:`\exp(-|x - z|^4)`, that may fail. Clipping what is negative would treat training rows and test row
differently, and coverage would not be exact. So the matrix over the training rows is checked, and so is what each test
row adds to it.
"""

from __future__ import annotations

import numpy as np
from numpy.linalg import LinAlgError
from sklearn.gaussian_process.kernels import (
    RBF,
    ConstantKernel,
    DotProduct,
    Exponentiation,
    Kernel,
    Matern,
    Product,
    RationalQuadratic,
    Sum,
    WhiteKernel,
)

from conformal_gp.gp.factor import Factor
from conformal_gp.kernels import NeuralNetwork
from conformal_gp.types import Array

# Negative eigenvalues and variances are rounding up to this share of the largest variance.
ROUNDING = 1e-10

_DEFINITE = (RBF, Matern, RationalQuadratic, ConstantKernel, WhiteKernel, DotProduct, NeuralNetwork)


def is_definite(kernel: Kernel) -> bool:
    """Whether a kernel is known to be positive semi-definite; a subclass may be anything.

    >>> is_definite(RBF(1.0) * Matern(2.0) + WhiteKernel()), is_definite(RBF(1.0) ** 0.5)
    (True, False)
    """
    if type(kernel) in (Sum, Product):
        return is_definite(kernel.k1) and is_definite(kernel.k2)
    if type(kernel) is Exponentiation:
        return float(kernel.exponent).is_integer() and kernel.exponent > 0 and is_definite(kernel.kernel)
    return type(kernel) in _DEFINITE


def check_matrix(kernel: Kernel, K: Array) -> None:
    """Raise a ValueError if the lower triangle of a kernel's matrix is that of an indefinite one."""
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
