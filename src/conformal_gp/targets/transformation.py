r"""Monotone transformations of the target: the model is fitted to transformed targets, answers are transformed back.

They keep the order of values, and so the guarantee (docs/theory.md, "What else may be learnt"). An end beyond the range
of a transformation is set to the end of its domain. The *power functions* serve a model that averages over exponents
:math:`\lambda \ge 0` of :math:`T_\lambda(y) = (y^\lambda - 1) / \lambda`, :math:`\log y` at :math:`\lambda = 0`: for
many exponents at once, and for targets given by their logarithms.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import boxcox1p, inv_boxcox1p

from conformal_gp.arrays import Array, Mask
from conformal_gp.validation import check_squares

# Largest error of a target that is transformed and transformed back, relative to the largest target.
ROUND_TRIP = 1e-6


class Transformation(ABC):
    """An increasing transformation of the target."""

    name: str
    """Name in messages."""
    accepts: str
    """Its domain, in words."""
    _label: float = 1.0
    """A target in its domain."""

    def _inside(self, y: Array) -> Mask:
        """True for targets in its domain; all are."""
        return np.ones(y.shape, dtype=bool)

    @abstractmethod
    def _forward(self, y: Array) -> Array:
        """Targets in its domain, transformed."""

    @abstractmethod
    def backward(self, z: Array) -> Array:
        """Targets from any transformed values, infinite ones among them."""

    def log_slope(self, y: Array) -> Array:
        """Logarithm of the derivative at targets in its domain, of those transformations that are learnt."""
        raise NotImplementedError

    def nearest(self, z: Array) -> Array:
        """Targets from transformed values; those of finite values are finite."""
        y = self.backward(z)
        return np.where(np.isfinite(z), np.nan_to_num(y, nan=np.nan), y)

    def forward(self, y: Array) -> Array:
        """Targets, transformed; a ValueError names the first outside the domain."""
        inside = self._inside(y)
        if not inside.all():
            row = int(np.argmin(inside))
            raise ValueError(
                f"y has {y[row]:g} in row {row}, and target_transform={self.name} takes {self.accepts}; add a "
                "constant to all "
                "targets, leave such rows out, or give target_transform='yeo-johnson', which takes any target."
            )
        z = self._forward(y)
        check_squares(f"y after target_transform={self.name}", z)
        return z

    def extended(self, y: Array) -> Array:
        """Any targets, transformed: those beyond the domain to infinity, on their side."""
        inside = self._inside(y)
        return np.where(inside, self._forward(np.where(inside, y, self._label)), np.copysign(np.inf, y - self._label))


@dataclass(frozen=True)
class BoxCox(Transformation):
    r"""Box and Cox's powers of targets in a unit, :math:`y^\lambda / \lambda`, the logarithm at :math:`\lambda = 0`.

    Their constant :math:`-1 / \lambda` is left out: small targets would lose digits. Below a positive ``cut`` they
    are continued linearly, along their tangent: they then take any target. So they are above ``top``, from where an
    exponential would transform back to huge targets.

    >>> BoxCox(0.0).forward(np.array([1.0, np.e])), BoxCox(0.0).backward(np.array([-np.inf, 0.0]))
    (array([0., 1.]), array([0., 1.]))
    >>> BoxCox(0.5, cut=1.0).forward(np.array([-1.0, 4.0]))
    array([0., 4.])
    """

    exponent: float
    cut: float = 0.0
    unit: float = 1.0
    top: float = np.inf

    @property
    def name(self) -> str:  # type: ignore[override]
        """See Transformation."""
        return {0.0: "'log'", 0.5: "'sqrt'"}.get(self.exponent, "'box-cox'")

    @property
    def accepts(self) -> str:  # type: ignore[override]
        """See Transformation."""
        return "targets of at least 0" if self.exponent == 0.5 else "targets above 0"

    def _inside(self, y: Array) -> Mask:
        if self.cut > 0.0:
            return super()._inside(y)
        return y >= 0.0 if self.exponent == 0.5 else y > 0.0

    def _forward(self, y: Array) -> Array:
        x = y / self.unit
        z = self._power(np.clip(x, self.cut, self.top))
        # y^l / l, and beyond the cut or the top T(c) + (y - c) T'(c) with T'(c) = c^(l - 1)
        if self.cut > 0.0:
            z = z + np.minimum(x - self.cut, 0.0) * self.cut ** (self.exponent - 1.0)
        if self.top < np.inf:
            z = z + np.maximum(x - self.top, 0.0) * self.top ** (self.exponent - 1.0)
        return z

    def log_slope(self, y: Array) -> Array:
        """See Transformation."""
        return (self.exponent - 1.0) * np.log(np.clip(y / self.unit, self.cut, self.top))

    def _power(self, x: Array) -> Array:
        if self.exponent == 0.0:
            return np.log(x)
        return x**self.exponent / self.exponent

    def _root(self, z: Array) -> Array:
        if self.exponent == 0.0:
            return np.exp(z)
        return np.maximum(self.exponent * z, 0.0) ** (1.0 / self.exponent)

    def backward(self, z: Array) -> Array:
        """See Transformation."""
        with np.errstate(over="ignore", divide="ignore"):
            x = self._root(z)
            if self.cut > 0.0:
                below = z - self._power(np.array(self.cut))
                x = np.where(below < 0.0, self.cut + below * self.cut ** (1.0 - self.exponent), x)
            if self.top < np.inf:
                above = z - self._power(np.array(self.top))
                x = np.where(above > 0.0, self.top + above * self.top ** (1.0 - self.exponent), x)
            return self.unit * x


# Logarithms of targets that are distinguished, relative to the origin; beyond, targets are 0 and infinite.
SMALLEST_LOG = -60.0
LARGEST_LOG = 300.0


@dataclass(frozen=True)
class Logarithms(Transformation):
    """Logarithms less an origin: targets of a model that averages over exponents.

    >>> Logarithms(0.0).extended(np.array([1.0, -2.0])), Logarithms(0.0).backward(np.array([-80.0, 0.0, 400.0]))
    (array([  0., -inf]), array([ 0.,  1., inf]))
    """

    origin: float
    name = "'box-cox'"
    accepts = "targets above 0"

    def _inside(self, y: Array) -> Mask:
        return y > 0.0

    def _forward(self, y: Array) -> Array:
        return np.log(y) - self.origin

    def backward(self, z: Array) -> Array:
        """See Transformation."""
        with np.errstate(over="ignore"):
            y = np.exp(z + self.origin)
        return np.where(z <= SMALLEST_LOG, 0.0, np.where(z >= LARGEST_LOG, np.inf, y))


@dataclass(frozen=True)
class YeoJohnson(Transformation):
    r"""Yeo and Johnson's powers of targets in some unit, exponents from 0 to 2: they take any target.

    >>> YeoJohnson(0.0, unit=2.0).forward(np.array([-2.0, 0.0, 2.0 * (np.e - 1.0)]))
    array([-1.5,  0. ,  1. ])
    """

    exponent: float
    unit: float = 1.0
    name = "'yeo-johnson'"
    accepts = "any target"

    def _forward(self, y: Array) -> Array:
        x = y / self.unit
        # ((1 + x)^l - 1) / l for x >= 0, and -((1 - x)^(2 - l) - 1) / (2 - l) below
        return np.where(x >= 0.0, boxcox1p(np.abs(x), self.exponent), -boxcox1p(np.abs(x), 2.0 - self.exponent))

    def log_slope(self, y: Array) -> Array:
        """See Transformation."""
        return (self.exponent - 1.0) * np.sign(y) * np.log1p(np.abs(y) / self.unit)

    def backward(self, z: Array) -> Array:
        """See Transformation."""
        size = np.abs(z)
        with np.errstate(over="ignore"):
            x = np.where(z >= 0.0, inv_boxcox1p(size, self.exponent), -inv_boxcox1p(size, 2.0 - self.exponent))
        return self.unit * x


class Functions(Transformation):
    """A user's pair of functions: a monotone map, and its inverse, checked on targets ``y``.

    Where the second is not the inverse of the first, as squares are not of roots at negative numbers, bounds are
    infinite, and predictions are the last target before.

    >>> roots = Functions((np.sqrt, np.square), np.array([1.0, 4.0, 9.0]))
    >>> roots.backward(np.array([-1.0, 2.0]))
    array([-inf,   4.])
    """

    name = "(forward, backward)"
    accepts = "targets that forward maps to numbers"

    def __init__(self, functions: tuple[Callable[[Array], Any], Callable[[Array], Any]], y: Array):
        self._functions = functions
        self._sign = 1.0
        self.forward(y)  # raises an error that names a row out of the domain
        ordered = np.unique(y)
        z = self._forward(ordered)
        if z[-1] < z[0]:
            self._sign, z = -1.0, -z
        self._label, self._mapped = float(ordered[z.size // 2]), float(z[z.size // 2])
        if (np.diff(z) < 0.0).any():
            raise ValueError(
                "target_transform must be a pair of monotone functions; forward rises and falls on these targets."
            )
        off = np.abs(self._back(z) - ordered)
        if not (off <= ROUND_TRIP * np.abs(ordered).max()).all():
            worst = ordered[int(np.argmax(np.where(np.isnan(off), np.inf, off)))]
            raise ValueError(
                "target_transform must be a pair of functions that are each other's inverse; "
                f"backward(forward({worst:g})) is "
                f"{self._back(self._forward(np.array([worst])))[0]:g}."
            )

    def _inside(self, y: Array) -> Mask:
        return np.isfinite(self._forward(y))

    def _forward(self, y: Array) -> Array:
        return self._sign * self._called(self._functions[0], y)

    def _back(self, z: Array) -> Array:
        return self._called(self._functions[1], self._sign * z)

    def _called(self, function: Callable[[Array], Any], values: Array) -> Array:
        """Values of a function; a ValueError if it does not give one for each."""
        with np.errstate(all="ignore"):
            found = np.asarray(function(values), dtype=np.float64)
        if found.shape != values.shape:
            raise ValueError(
                "target_transform must be a pair of functions of arrays that give an array of the same shape; of "
                f"shape {values.shape} one gave {found.shape}."
            )
        return found

    def backward(self, z: Array) -> Array:
        """See Transformation."""
        y, inverse = self._inverted(z)
        return np.where(inverse, y, np.where(z < self._mapped, -np.inf, np.inf))

    def nearest(self, z: Array) -> Array:
        """See Transformation."""
        y = self.backward(z)
        beyond = np.isinf(y) & np.isfinite(z)
        if beyond.any():
            y[beyond] = self._last_before(z[beyond])
        return y

    def _inverted(self, z: Array) -> tuple[Array, Mask]:
        """Values transformed back, and whether that is the inverse of the first function."""
        y = self._back(z)
        again = self._forward(y)
        slack = ROUND_TRIP * abs(self._label)
        with np.errstate(invalid="ignore"):
            inverse = (again == z) | (np.abs(again - z) <= ROUND_TRIP * (1.0 + np.abs(z)))
            same_side = np.where(z < self._mapped, y <= self._label + slack, y >= self._label - slack)
        return y, inverse & same_side

    def _last_before(self, z: Array) -> Array:
        """Targets at which the functions cease to be inverse, on the way from one of the targets to ``z``."""
        good = np.full(z.shape, self._mapped)
        bad = z
        for _ in range(100):  # to rounding
            middle = 0.5 * (good + bad)
            inverse = self._inverted(middle)[1]
            good = np.where(inverse, middle, good)
            bad = np.where(inverse, bad, middle)
        return self._back(good)


def transformed(transformation: Transformation | None, y: Array) -> Array:
    """Targets under a transformation; None is the identity."""
    if transformation is None:
        return y
    return transformation.forward(y)


# Exponents below this are 0: the next term of the series is below rounding.
LEAST_EXPONENT = 1e-9


def power(logarithm: Array, exponent: Array | float) -> Array:
    """T of targets.

    >>> power(np.log([1.0, 4.0]), 0.5), power(np.array([2.0]), 0.0)
    (array([0., 2.]), array([2.]))
    """
    safe = np.maximum(exponent, LEAST_EXPONENT)
    with np.errstate(over="ignore"):
        return np.expm1(safe * logarithm) / safe  # (y^l - 1) / l


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
    with np.errstate(divide="ignore"):  # log y = log(1 + l z) / l
        return np.log1p(np.maximum(safe * z, -1.0)) / safe
