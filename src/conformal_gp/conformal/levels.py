"""Confidence levels, read as the fractions meant by them, and the weight of rows that must cover a value at each."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from decimal import Decimal
from fractions import Fraction
from numbers import Rational, Real
from typing import Any, NamedTuple

import numpy as np

from conformal_gp.arrays import Array, Indices


def read_level(level: Any, name: str = "confidence_level") -> Fraction:
    """Read one confidence level strictly between 0 and 1; ``name`` is what errors call it.

    A float within a few units in the last place of a fraction with a denominator up to a million is that fraction: 0.9
    is 9/10, and so is 1 - 0.1.

    >>> read_level(0.95), read_level(1 - 0.7)
    (Fraction(19, 20), Fraction(3, 10))
    """
    if isinstance(level, bool | np.bool_) or not isinstance(level, Real | Decimal):
        raise ValueError(f"{name} must be a number strictly between 0 and 1, got {level!r}.")
    if isinstance(level, Rational):
        exact = Fraction(level)
    elif math.isfinite(level):
        # np.float32(0.9) means 0.9; its shortest decimal says so, its binary value does not.
        written = Fraction(str(level))
        simple = written.limit_denominator(10**6)
        exact = simple if abs(simple - written) < Fraction(1, 10**15) else written
    else:
        exact = Fraction(0)
    if not 0 < exact < 1:
        hint = f"; {level}% is {float(level) / 100:g}" if 1 < exact < 100 else ""
        raise ValueError(f"{name} must lie strictly between 0 and 1, got {level!r}{hint}.")
    return exact


def read_levels(given: Any, name: str = "confidence_level") -> tuple[list[Fraction], bool]:
    """Levels as a list, and whether a single one was given."""
    if isinstance(given, str) or not isinstance(given, Iterable):
        return [read_level(given, name)], True
    if isinstance(given, np.ndarray) and given.ndim == 0:
        return [read_level(given[()], name)], True
    levels = [read_level(level, name) for level in given]
    if not levels:
        raise ValueError(f"{name} must hold at least one level, got an empty sequence.")
    return levels, False


def read_one_level(given: Any, method: str) -> Fraction:
    """Read the level of a method that takes one."""
    levels, single = read_levels(given)
    if not single:
        raise ValueError(f"confidence_level must be one number for {method}, got {given!r}.")
    return levels[0]


def rank(level: Fraction, n_calibration: int) -> int:
    """k = floor(δ (n + 1)): a value is in the region when at least k of the n calibration rows conform no better.

    >>> rank(Fraction(9, 10), 499)
    50
    """
    # p = (count + 1) / (n + 1) > delta is count + 1 > delta (n + 1): for integers, count >= floor(delta (n + 1))
    return math.floor((1 - level) * (n_calibration + 1))


def rows_needed(level: Fraction) -> int:
    """Fewest calibration rows for which the region is not the whole line: the least n with δ (n + 1) >= 1."""
    return math.ceil(1 / (1 - level)) - 1


class Needed(NamedTuple):
    """Weight of covering rows that values of a region exceed, for several levels.

    >>> Needed.of_weights([Fraction(9, 10)], np.ones(19), np.ones(1)).least.round(6), Needed.of_ranks([2]).least
    (array([[1.]]), array([[1.5]]))
    """

    least: Array
    """(m, levels), or (1, levels) if all weights are 1; negative where the region is the whole line."""
    weights: Array | None = None
    """(n,): weights of the calibration rows; None if all are 1, those of the test rows too."""

    @classmethod
    def of_weights(cls, levels: Sequence[Fraction], weights: Array, own: Array) -> Needed:
        """For some levels, from weights of calibration rows (n,) and of test rows (m,)."""
        delta = np.array([float(1 - level) for level in levels])
        total = weights.sum() + own[:, None]
        # p = (c + w) / (W + w) > delta is c > delta (W + w) - w; weights that differ by less than 1e-12 of the total
        # are equal
        return cls((delta + 1e-12) * total - own[:, None], weights)

    @classmethod
    def of_ranks(cls, ranks: Sequence[int]) -> Needed:
        """From numbers of rows that must cover a value: 0 (then the region is the whole line) to n."""
        return cls(np.array([ranks], dtype=np.float64) - 0.5)

    @property
    def n_levels(self) -> int:
        """Number of levels."""
        return self.least.shape[1]

    def each(self, n_rows: int) -> Array:
        """Weights of so many calibration rows."""
        return np.ones(n_rows) if self.weights is None else self.weights

    def by_row(self, n_new: int) -> Array:
        """Requirement for each test row, (m, levels)."""
        return np.broadcast_to(self.least, (n_new, self.n_levels))

    def take(self, rows: Indices | slice) -> Needed:
        """For some of the test rows."""
        return self if self.weights is None else self._replace(least=self.least[rows])

    def among(self, rows: Indices, covering: float, levels: Indices | slice) -> Needed:
        """For some levels and calibration rows, where others of some weight cover all values in question."""
        weights = None if self.weights is None else self.weights[rows]
        return Needed(self.least[:, levels] - covering, weights)

    def largest(self, values: Array) -> Array:
        """For each test row and level, the largest number that values of more weight than needed are not below.

        The values, (m, n), of calibration rows are reordered. It is infinite where no weight is needed.
        """
        n = values.shape[1]
        found = np.full((values.shape[0], self.n_levels), np.inf)
        if self.weights is None:
            # the k-th largest: docs/theory.md, "From lines to regions"
            ranks = np.ceil(self.least[0]).astype(np.int64)
            finite = np.flatnonzero(ranks > 0)
            if finite.size == 1:
                values.partition(n - ranks[finite[0]], axis=1)
            elif finite.size:
                values.sort(axis=1)  # for five ranks, two to four times as fast as np.partition
            found[:, finite] = values[:, n - ranks[finite]]
        elif n:
            order = np.argsort(values, axis=1)[:, ::-1]
            weight = np.cumsum(self.weights[order], axis=1)
            place = np.stack([np.searchsorted(*row, side="right") for row in zip(weight, self.least, strict=True)])
            chosen = np.take_along_axis(order, np.minimum(place, n - 1), axis=1)
            found = np.where(self.least < 0.0, np.inf, np.take_along_axis(values, chosen, axis=1))
        return found


def weight_up_to(ends: Array, weights: Array, labels: Array, side: str) -> Array:
    """Weight of the ends that lie before each value (side "left"), or not after it ("right")."""
    order = np.argsort(ends)
    total = np.append(0.0, np.cumsum(weights[order]))
    return total[np.searchsorted(ends[order], labels, side)]  # type: ignore[call-overload]


def shares(at_least: Array, greater: Array, total: float, ties: Array | float = 1.0, own: Array | float = 1.0) -> Array:
    """p-values: the share of all rows whose score is at least the test row's, ties in full, by half or at random.

    ``total`` is the weight of the calibration rows and ``own`` that of each test row.
    """
    # p = (weight of rows that score higher, and of ties, the test row among them) / (weight of all rows)
    return np.minimum((greater + ties * (at_least - greater + own)) / (total + own), 1.0)
