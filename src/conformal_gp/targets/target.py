"""Targets in their own units and as a model has them: transformation, origin, unit, bounds and limits of detection.

Predictions, ends of prediction sets and samples pass the same door, so that all of them agree. Bounds that tuning rows
suggest may be wrong (docs/theory.md, "What else may be learnt"). With limits of detection the model is fitted to
recorded values, and its answers are extended to true values (docs/theory.md, proposition 4).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from numbers import Real
from typing import Any, Self

import numpy as np

from conformal_gp.arrays import Array, Indices
from conformal_gp.targets.transformation import Logarithms, Transformation

# Fewest tuning rows that suggest bounds. Targets have one at their least or greatest value if so many tuning rows, and
# such a share, have it.
ROWS_FOR_BOUNDS = 40
OFTEN_ROWS = 5
OFTEN_SHARE = 0.01
# Targets of a size beyond this, or below one over it, are divided by a power of two first: their squares would
# overflow, or vanish.
EXTREME = 1e60


@dataclass(frozen=True)
class Bounds:
    """Bounds of targets, either of them infinite.

    >>> Bounds.of((0, None)).clip(np.array([-1.0, 2.0]))
    array([0., 2.])
    """

    low: float = -np.inf
    high: float = np.inf

    @classmethod
    def of(cls, y_bounds: Any) -> Bounds:
        """From a pair of numbers or None."""
        numbers = [isinstance(bound, Real) and not isinstance(bound, bool) for bound in y_bounds if bound is not None]
        if len(y_bounds) == 2 and all(numbers):
            low, high = -np.inf, np.inf
            if y_bounds[0] is not None:
                low = float(y_bounds[0])
            if y_bounds[1] is not None:
                high = float(y_bounds[1])
            if low < high:
                return cls(low, high)
        raise ValueError(
            f"y_bounds must be 'auto', None or a pair (low, high) of numbers or None, low below high, got {y_bounds!r}."
        )

    @classmethod
    def suggested(cls, y: Array) -> Self | None:
        """Bounds that targets of tuning rows respect: 0 if none is negative, and ends that a share of them have.

        More of them must equal an end than the value next to it: of rounded targets the tails have few, a bound many.

        >>> y = np.repeat([5.0, 6.0, 7.0], [20, 40, 10])
        >>> Bounds.suggested(y), Bounds.suggested(y[20:])
        (Bounds(low=0.0, high=inf), Bounds(low=6.0, high=inf))
        """
        if y.size < ROWS_FOR_BOUNDS:
            return None
        values, n_equal = np.unique(y, return_counts=True)
        least = float(values[0])
        most = float(values[-1])
        often = max(OFTEN_ROWS, OFTEN_SHARE * y.size)
        low = -np.inf
        if n_equal[0] >= often and n_equal[0] > n_equal[1:2].sum():
            low = least
        elif least >= 0.0:
            low = 0.0
        high = np.inf
        if n_equal[-1] >= often and n_equal[-1] > n_equal[-2:-1].sum():
            high = most
        elif most <= 0.0:
            high = 0.0
        if low < high and np.isfinite([low, high]).any():
            return cls(low, high)
        return None

    def clip(self, y: Array) -> Array:
        """Targets beyond a bound become the bound."""
        return np.clip(y, self.low, self.high)

    def cut(self, pieces: Array) -> Array:
        """Pieces of a region, (k, 2), cut at the bounds."""
        kept = pieces[(pieces[:, 0] <= self.high) & (pieces[:, 1] >= self.low)]
        return self.clip(kept)

    def rest(self, pieces: Array) -> Array:
        """Pieces of a region outside, up to the bounds."""
        below, above = Bounds(-np.inf, self.low), Bounds(self.high, np.inf)
        return np.concatenate([below.cut(pieces[pieces[:, 0] < self.low]), above.cut(pieces[pieces[:, 1] > self.high])])

    def side(self, y: Array) -> Array:
        """-1 for targets below the bounds, 0 within, 1 above."""
        return np.where(y < self.low, -1.0, np.where(y > self.high, 1.0, 0.0))


def union(pieces: Array) -> Array:
    """Pieces, sorted, those that touch made one.

    >>> union(np.array([[2.0, 3.0], [0.0, 1.0], [1.0, 1.5]]))
    array([[0. , 1.5],
           [2. , 3. ]])
    """
    pieces = pieces[np.argsort(pieces[:, 0])]
    reached = np.maximum.accumulate(pieces[:, 1])
    begins = np.append(True, pieces[1:, 0] > reached[:-1])[: len(pieces)]
    return np.column_stack([pieces[begins, 0], reached[np.append(begins[1:], True)[: len(pieces)]]])


def check_within(y_bounds: Any, y: Array) -> None:
    """Raise a ValueError that names the first target outside given bounds, or says what is wrong with them."""
    if not isinstance(y_bounds, tuple | list):
        return
    bounds = Bounds.of(y_bounds)
    outside = (y < bounds.low) | (y > bounds.high)
    if outside.any():
        row = int(np.argmax(outside))
        raise ValueError(f"y has {y[row]:g} in row {row}, outside y_bounds={y_bounds!r}.")


def check_censoring(censoring: Any, n_rows: int) -> Indices | None:
    """``censoring`` as -1, 0 or 1 for each row; None where no row is censored.

    >>> check_censoring([0, -1, 0], 3), check_censoring([0, 0], 2)
    (array([ 0, -1,  0]), None)
    """
    values = np.asarray(censoring)
    if values.shape != (n_rows,):
        got = f"an array of shape {values.shape}"
        raise ValueError(f"censoring must hold one number for each of the {n_rows} rows, got {got}.")
    wrong = np.flatnonzero(~np.isin(values, (-1, 0, 1)))
    if values.dtype.kind in "bc":  # True may be meant for a lower limit of detection or for an upper one
        wrong = np.arange(n_rows)
    if wrong.size:
        row = int(wrong[0])
        raise ValueError(
            f"censoring has {values.tolist()[row]!r} in row {row}; it must be -1 where the true value is at most y "
            "(limit of detection), 1 where it is at least y, and 0 where y was observed."
        )
    if not (values != 0).any():
        return None
    return values.astype(np.int64)


@dataclass(frozen=True)
class Limits:
    """Limits of detection, and what follows for answers about true values.

    Below the smallest lower limit nothing was observed, so a set that has values there reaches up to it.

    >>> Limits(low=0.5).extend(np.array([[0.2, 0.7], [0.6, 0.9]])).tolist()
    [[-inf, 0.7], [0.6, 0.9]]
    """

    low: float = -np.inf
    """Largest lower limit of the training rows; -inf if no row is censored there."""
    high: float = np.inf
    """Smallest upper limit."""
    least: float = -np.inf
    """Least true value that can be."""
    greatest: float = np.inf
    least_low: float = np.inf
    """Smallest lower limit; where it exceeds ``low``, there is none."""
    greatest_high: float = -np.inf
    """Largest upper limit."""

    def with_rows(self, y: Array, censoring: Indices) -> Self:
        """The limits of these rows too."""
        below = y[censoring < 0]
        above = y[censoring > 0]
        return replace(
            self,
            low=float(below.max(initial=self.low)),
            high=float(above.min(initial=self.high)),
            least_low=float(below.min(initial=self.least_low)),
            greatest_high=float(above.max(initial=self.greatest_high)),
        )

    @property
    def observed(self) -> tuple[float, float]:
        """Least and greatest value that may be observed: the smallest lower limit and the largest upper one."""
        return min(self.least_low, self.low), max(self.greatest_high, self.high)

    def extend(self, ends: Array) -> Array:
        """Lower and upper ends of intervals or pieces, (m, 2, ...): what reaches a limit contains all beyond it."""
        return np.stack([self.lower(ends[:, 0]), self.upper(ends[:, 1])], axis=1)

    def lower(self, ends: Array) -> Array:
        """Lower ends."""
        return np.where(ends <= self.low, self.least, np.minimum(ends, self.observed[1]))

    def upper(self, ends: Array) -> Array:
        """Upper ends."""
        return np.where(ends >= self.high, self.greatest, np.maximum(ends, self.observed[0]))

    def nearest_recorded(self, y: Array, centre: Array) -> Array:
        """What a value may be recorded as that is nearest to the prediction; what cannot be observed, as any beyond."""
        least, greatest = self.observed
        low = np.where(y <= least, -np.inf, np.minimum(y, self.high))
        high = np.where(y >= greatest, np.inf, np.maximum(y, self.low))
        return np.clip(centre, low, high)

    def sentence(self) -> str:
        """The condition on new rows, if there are limits."""
        conditions = []
        if np.isfinite(self.low):
            conditions.append(f"lower limits of detection of new rows are at most {self.low:.6g}")
        if np.isfinite(self.high):
            conditions.append(f"upper limits of new rows are at least {self.high:.6g}")
        if not conditions:
            return ""
        return f" True values beyond limits are covered if {' and '.join(conditions)}."


# Units in the last place by which a target is moved until it is transformed to an end that was transformed back.
OUTWARD_STEPS = 2.0 ** np.arange(10)


@dataclass(frozen=True)
class Target:
    """Targets y as a model has them: (T(y) - origin) / unit.

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
    limits: Limits = Limits()
    """Limits of detection; infinite if every target was observed."""

    @classmethod
    def of(cls, transformation: Transformation | None, y: Array, mean: str, **bounds: Any) -> Self:
        """Choose an origin for targets that are large compared with their differences, so that no digits are lost."""
        z = y
        if transformation is not None:
            z = transformation.forward(y)
        middle = float(np.sort(z)[z.size // 2])
        origin = 0.0
        # the mean function takes up any constant
        if mean != "zero" and np.abs(z - middle).max() < 1e-3 * abs(middle):
            origin = middle
        return cls(transformation, origin, **bounds)

    def with_limits(self, y: Array, censoring: Indices, suggested: bool) -> Self:
        """The same with the limits of detection of these rows; ``suggested`` is whether rows chose a transformation."""
        limits = self.limits
        if limits == Limits():
            given = self
            if suggested:
                given = replace(self, transformation=None)
            least, greatest = given.range
            limits = Limits(least=least, greatest=greatest)
        return replace(self, limits=limits.with_rows(y, censoring))

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
        """Values of the model in units of the target; those that are finite stay finite."""
        z = self._on_scale(values)  # y = T^-1(origin + unit z)
        if self.transformation is None:
            return z
        return self.transformation.nearest(z)

    def ends(self, low: Array, high: Array) -> tuple[Array, Array]:
        """Lower and upper ends of prediction sets in units of the target.

        Numbers are between them exactly if ``forward`` takes them into the set; where there is none, both are the
        nearest one. Transformed back they are rounded outwards.
        """
        first = self._rounded(low, np.inf)
        last = self._rounded(high, -np.inf)
        narrow = first > last
        first = np.where(narrow, self.origin + self.unit * low, first)
        last = np.where(narrow, self.origin + self.unit * high, last)
        if self.transformation is None:
            return first, last
        return self._outwards(first, -np.inf), self._outwards(last, np.inf)

    def pieces(self, pieces: Array) -> Array:
        """Pieces of a prediction set, (k, 2), in units of the target, without those outside a transformation's range.

        A piece that is narrower than the distance of floating-point numbers is one number.
        """
        found = np.stack(self.ends(pieces[:, 0], pieces[:, 1]), axis=1)
        if self.transformation is None:
            return found
        number = found[:, 0]
        at_end = np.isin(number, self.transformation.backward(np.array([-np.inf, np.inf])))
        transformed = self.extended(number)
        inside = np.isfinite(number) & (pieces[:, 0] <= transformed) & (transformed <= pieces[:, 1])
        return found[(number < found[:, 1]) | inside | ~at_end]

    def _outwards(self, z: Array, towards: float) -> Array:
        """Ends, transformed back: no target beyond them is transformed to a value up to ``z``."""
        if self.transformation is None:
            return z
        y = self.transformation.backward(z)
        sign = np.copysign(1.0, towards)
        # neighbouring targets may be transformed to the same value, so ends move on until theirs is another
        for step in OUTWARD_STEPS:
            short = np.isfinite(y) & (sign * self.transformation.extended(y) <= sign * z)
            if not short.any():
                break
            y = np.where(short, y + sign * step * np.spacing(np.abs(y)), y)
        y = np.where(np.isposinf(-sign * y), self.transformation.nearest(z), y)  # of an empty set
        return np.clip(y, *self.transformation.backward(np.array([-np.inf, np.inf])))

    def _rounded(self, ends: Array, towards: float) -> Array:
        z = self._on_scale(ends)
        with np.errstate(invalid="ignore"):
            again = (z - self.origin) / self.unit
        outside = again < ends if towards > 0.0 else again > ends
        return np.where(outside & np.isfinite(z), np.nextafter(z, towards), z)

    def _on_scale(self, values: Array) -> Array:
        z = self.origin + self.unit * values
        return np.where(values == -self.origin / self.unit, 0.0, z)  # 0 has many floating-point numbers near it

    def half_width(self, mean: Array, deviation: Array) -> Array:
        """Half the distance between one standard deviation below a mean and one above, in units of the target."""
        if self.transformation is None:
            return self.unit * deviation
        return 0.5 * (self.backward(mean + deviation) - self.backward(mean - deviation))


def extreme_unit(y: Array) -> float:
    """Unit of targets, a power of two: 1, unless they are extremely large or small.

    >>> extreme_unit(np.array([3.0])), extreme_unit(np.array([1.5 * 2.0**-700])) == 2.0**-700
    (1.0, True)
    """
    size = float(np.abs(y).max())
    if size == 0.0 or 1.0 / EXTREME < size < EXTREME:
        return 1.0
    return float(2.0 ** np.floor(np.log2(size)))
