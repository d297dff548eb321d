r"""Bounds that targets cannot pass, given or learnt from tuning rows.

Given bounds hold for every target: a value outside is in no prediction set.

Bounds that tuning rows suggest may be wrong, so they follow a rule that treats all rows of the augmented set (training
rows and test row) symmetrically. *If at most one row lies outside, its score is infinite; if more do, there are no
bounds.* The rule is a function of the augmented set, so calibration rows and test row stay exchangeable and coverage
stays valid. With no calibration row outside, prediction sets are cut at the bounds. With one, that row covers every
value inside, and values outside are compared without bounds. With signed scores, the score of a row below the lower
bound is minus infinity.
"""

from __future__ import annotations

from dataclasses import dataclass
from numbers import Real
from typing import Any

import numpy as np

from conformal_gp.arrays import Array


@dataclass(frozen=True)
class Bounds:
    """Bounds of labels, either of them infinite.

    >>> Bounds.of((0, None)).clip(np.array([-1.0, 2.0]))
    array([0., 2.])
    """

    low: float
    high: float

    @classmethod
    def of(cls, y_bounds: Any) -> Bounds:
        """From a pair of numbers or None."""
        numbers = [isinstance(bound, Real) and not isinstance(bound, bool) for bound in y_bounds if bound is not None]
        if len(y_bounds) == 2 and all(numbers):
            low, high = (
                (-np.inf if y_bounds[0] is None else float(y_bounds[0])),
                (np.inf if y_bounds[1] is None else float(y_bounds[1])),
            )
            if low < high:
                return cls(low, high)
        raise ValueError(
            f"y_bounds must be 'auto', None or a pair (low, high) of numbers or None, low below high, got {y_bounds!r}."
        )

    def clip(self, y: Array) -> Array:
        """Labels beyond a bound become the bound."""
        return np.clip(y, self.low, self.high)

    def cut(self, pieces: Array) -> Array:
        """What of the pieces of a region, (k, 2), lies within."""
        kept = pieces[(pieces[:, 0] <= self.high) & (pieces[:, 1] >= self.low)]
        return self.clip(kept)

    def rest(self, pieces: Array) -> Array:
        """What of the pieces of a region lies outside, up to the bounds."""
        below, above = Bounds(-np.inf, self.low), Bounds(self.high, np.inf)
        return np.concatenate([below.cut(pieces[pieces[:, 0] < self.low]), above.cut(pieces[pieces[:, 1] > self.high])])

    def side(self, y: Array) -> Array:
        """-1 for labels below the bounds, 0 within, 1 above."""
        return np.where(y < self.low, -1.0, np.where(y > self.high, 1.0, 0.0))


def check_within(y_bounds: Any, y: Array) -> None:
    """Raise a ValueError that names the first target outside given bounds, or says what is wrong with them."""
    if not isinstance(y_bounds, tuple | list):
        return
    bounds = Bounds.of(y_bounds)
    outside = (y < bounds.low) | (y > bounds.high)
    if outside.any():
        row = int(np.argmax(outside))
        raise ValueError(f"y has {y[row]:g} in row {row}, outside y_bounds={y_bounds!r}.")
