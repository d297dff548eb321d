r"""Box and Cox's powers of many exponents at once, of targets given by their logarithms.

:math:`T_\lambda(y) = (y^\lambda - 1) / \lambda`, and :math:`\log y` at :math:`\lambda = 0`. Exponents are at least 0.
"""

from __future__ import annotations

import numpy as np

from conformal_gp.arrays import Array

# Exponents below this are 0: the next term of the series is below rounding.
LEAST_EXPONENT = 1e-9


def power(logarithm: Array, exponent: Array | float) -> Array:
    """T of targets.

    >>> power(np.log([1.0, 4.0]), 0.5), power(np.array([2.0]), 0.0)
    (array([0., 2.]), array([2.]))
    """
    safe = np.maximum(exponent, LEAST_EXPONENT)
    with np.errstate(over="ignore"):
        return np.expm1(safe * logarithm) / safe


def power_slope(logarithm: Array, exponent: Array | float) -> Array:
    r"""Derivative of T in the exponent: :math:`(y^\lambda (\lambda \log y - 1) + 1) / \lambda^2`."""
    x = np.maximum(exponent, LEAST_EXPONENT) * logarithm
    small = np.abs(x) < 1e-4
    safe = np.where(small, 1.0, x)
    # (e^x (x - 1) + 1) / x^2, by its series near 0
    factor = np.where(small, 0.5 + x / 3.0, (np.expm1(safe) * (safe - 1.0) + safe) / safe**2)
    return factor * logarithm**2


def inverse_power(z: Array, exponent: Array | float) -> Array:
    """Logarithms of targets from T; minus infinity below its range.

    >>> inverse_power(np.array([2.0, -2.0]), 0.5).round(3)
    array([1.386,  -inf])
    """
    safe = np.maximum(exponent, LEAST_EXPONENT)
    with np.errstate(divide="ignore"):
        return np.log1p(np.maximum(safe * z, -1.0)) / safe
