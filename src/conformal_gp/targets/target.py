"""The one door between targets in their own units and the numbers that a model is fitted to.

On the way in, targets are transformed, less an origin and in a unit. On the way out, predictions, ends of prediction
sets and samples pass the same door, so that all of them agree.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from conformal_gp.arrays import Array
from conformal_gp.targets.bounds import Bounds
from conformal_gp.targets.transformation import Logarithms, Transformation

# Targets that differ by less than this share of their size are measured from one of them.
OFFSET = 1e-3


@dataclass(frozen=True)
class Target:
    """Targets y as a model has them: (T(y) - origin) / unit.

    Examples
    --------
    >>> target = Target(origin=10.0, unit=2.0)
    >>> target.forward(np.array([12.0])), target.backward(np.array([1.0, np.inf]))
    (array([1.]), array([12., inf]))
    """

    transformation: Transformation | None = None
    """T; None is the identity."""
    origin: float = 0.0
    unit: float = 1.0
    bounds: Bounds | None = None
    """Bounds of targets in their own units."""
    learnt_bounds: bool = False
    """Whether tuning rows suggested the bounds, which then may be wrong, or they were given."""

    @classmethod
    def of(cls, transformation: Transformation | None, y: Array, mean: str, **bounds: Any) -> Self:
        """Choose an origin for targets that are large compared with their differences, so that no digits are lost.

        The mean function takes up any constant, so it makes no other difference; a zero mean leaves targets as they
        are.
        """
        z = y
        if transformation is not None:
            z = transformation.forward(y)
        middle = float(np.sort(z)[z.size // 2])
        origin = 0.0
        if mean != "zero" and np.abs(z - middle).max() < OFFSET * abs(middle):
            origin = middle
        return cls(transformation, origin, **bounds)

    @property
    def range(self) -> tuple[float, float]:
        """Least and greatest target that can be, whatever rows suggest: by given bounds and transformations.

        >>> Target(bounds=Bounds(0.0, 9.0)).range, Target(bounds=Bounds(0.0, 9.0), learnt_bounds=True).range
        ((0.0, 9.0), (-inf, inf))
        """
        ends = np.array([-np.inf, np.inf])
        if self.transformation is not None and not isinstance(self.transformation, Logarithms):
            ends = self.transformation.backward(ends)
        if self.bounds is not None and not self.learnt_bounds:
            ends = self.bounds.clip(ends)
        return float(ends[0]), float(ends[1])

    def forward(self, y: Array) -> Array:
        """Targets as the model has them; a ValueError names the first that the transformation does not take."""
        if self.transformation is not None:
            y = self.transformation.forward(y)
        return (y - self.origin) / self.unit

    def extended(self, y: Array) -> Array:
        """Any values as the model has them: infinite, on their side, outside the domain of the transformation."""
        if self.transformation is not None:
            y = self.transformation.extended(y)
        return (y - self.origin) / self.unit

    def backward(self, values: Array) -> Array:
        """Values of the model in units of the target."""
        z = self.origin + self.unit * values
        if self.transformation is not None:
            z = self.transformation.backward(z)
        return z

    def ends(self, low: Array, high: Array) -> tuple[Array, Array]:
        """Lower and upper ends of prediction sets in units of the target.

        Where an origin was subtracted they are rounded inwards, so that the floating-point numbers between them are
        those in the set; where there is no number between them, to the nearest.
        """
        first = self._rounded(low, np.inf)
        last = self._rounded(high, -np.inf)
        narrow = first > last
        first = np.where(narrow, self.origin + self.unit * low, first)
        last = np.where(narrow, self.origin + self.unit * high, last)
        if self.transformation is None:
            return first, last
        return self.transformation.backward(first), self.transformation.backward(last)

    def _rounded(self, ends: Array, towards: float) -> Array:
        z = self.origin + self.unit * ends
        with np.errstate(invalid="ignore"):
            again = (z - self.origin) / self.unit
        outside = again < ends if towards > 0.0 else again > ends
        return np.where(outside & np.isfinite(z), np.nextafter(z, towards), z)

    def half_width(self, mean: Array, deviation: Array) -> Array:
        """Half the distance between one standard deviation below a mean and one above, in units of the target."""
        if self.transformation is None:
            return self.unit * deviation
        return 0.5 * (self.backward(mean + deviation) - self.backward(mean - deviation))
