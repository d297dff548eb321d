"""Segments of the lines of candidate labels of several test rows."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from conformal_gp.conformal.upper_envelope import TEST_ROW, TIED
from conformal_gp.types import Array, Mask, Rows

# Nothing is set aside while hyperparameters are chosen: no row, or several that tie.
NOTHING = TIED


__all__ = ["NOTHING", "TEST_ROW", "Segments"]


class Segments(NamedTuple):
    """n segments of labels, each of one test row; the ends of a segment may be equal."""

    row: Rows
    """(n,): the test row."""
    low: Array
    """(n,)"""
    high: Array
    """(n,)"""
    aside: Rows
    """(n,): the training row that is set aside while hyperparameters are chosen, or TEST_ROW, or NOTHING."""

    @classmethod
    def whole_lines(cls, n_rows: int) -> Segments:
        """All labels of each test row."""
        ends = np.full(n_rows, np.inf)
        return cls(np.arange(n_rows), -ends, ends, np.full(n_rows, NOTHING))

    @classmethod
    def labels(cls, y: Array) -> Segments:
        """One label of each test row."""
        return cls(np.arange(y.size), y, y, np.full(y.size, NOTHING))

    @classmethod
    def concatenate(cls, parts: list[Segments]) -> Segments:
        """All segments of several."""
        if len(parts) == 1:
            return parts[0]
        return cls(*(np.concatenate(columns) for columns in zip(*parts, strict=True)))

    @property
    def size(self) -> int:
        """Number of segments."""
        return self.row.size

    def take(self, which: Rows | Mask) -> Segments:
        """Some of the segments."""
        return Segments(self.row[which], self.low[which], self.high[which], self.aside[which])

    def forget(self) -> Segments:
        """The same segments with no row set aside, neighbours joined."""
        return self._replace(aside=np.full(self.size, NOTHING)).joined()

    def joined(self) -> Segments:
        """Sorted by row and label, neighbours with the same row set aside made one.

        >>> parts = Segments(np.zeros(3, int), np.array([1.0, 0.0, 5.0]), np.array([2.0, 1.0, 6.0]), np.zeros(3, int))
        >>> parts.joined().low, parts.joined().high
        (array([0., 5.]), array([2., 6.]))
        """
        if self.size < 2:
            return self
        s = self.take(np.lexsort((self.high, self.low, self.row)))
        goes_on = (s.row[1:] == s.row[:-1]) & (s.low[1:] == s.high[:-1]) & (s.aside[1:] == s.aside[:-1])
        if not goes_on.any():
            return s
        starts, stops = np.append(True, ~goes_on), np.append(~goes_on, True)
        return Segments(s.row[starts], s.low[starts], s.high[stops], s.aside[starts])

    def common(self, other: Segments) -> Segments:
        """Labels of the same rows that are in segments of both, set aside what this one does."""
        parts = []
        for row in np.intersect1d(self.row, other.row):
            mine, theirs = self.take(self.row == row), other.take(other.row == row)
            low = np.maximum(mine.low[:, None], theirs.low)
            high = np.minimum(mine.high[:, None], theirs.high)
            single = (mine.low == mine.high)[:, None] & (low == high)
            i, j = np.nonzero((low < high) | single)
            parts.append(Segments(mine.row[i], low[i, j], high[i, j], mine.aside[i]))
        return Segments.concatenate(parts) if parts else self.take(np.empty(0, dtype=np.int64))

    def where_negative(self, a: Array, b: Array, c: Array, centre: Array) -> tuple[Segments, Segments]:
        """Parts on which a t² + b t + c is negative, t = label - centre, and parts on which it is not.

        Parameters
        ----------
        a, b, c, centre : ndarray of shape (n,)
            A quadratic for each segment.

        Returns
        -------
        negative, others : Segments
            Together they are the segments again.
        """
        first, second, between = _roots(a, b, c)
        first, second = centre + first, centre + second
        cuts = [
            (self.low, np.minimum(self.high, first), ~between),
            (np.maximum(self.low, first), np.minimum(self.high, second), between),
            (np.maximum(self.low, second), self.high, ~between),
        ]
        single = self.low == self.high
        t = self.low - centre
        with np.errstate(invalid="ignore"):
            below = single & (t * (a * t + b) + c < 0.0)
        negative, others = [self.take(below)], [self.take(single & ~below)]
        for low, high, sign in cuts:
            part = Segments(self.row, low, high, self.aside)
            real = ~single & (low < high)
            negative.append(part.take(real & sign))
            others.append(part.take(real & ~sign))
        return Segments.concatenate(negative), Segments.concatenate(others)


def _roots(a: Array, b: Array, c: Array) -> tuple[Array, Array, Mask]:
    """Roots of quadratics in order, and whether they are negative between them rather than outside.

    Infinite roots stand for those that are not there: both infinite, and nothing is between them.
    """
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        root = np.sqrt(b * b - 4.0 * a * c)  # not a number: no roots
        q = -0.5 * (b + np.where(b < 0.0, -root, root))
        one, two = q / a, c / q
        # q is 0 only if b and the root are: a double root at 0
        one, two = np.where(q == 0.0, 0.0, one), np.where(q == 0.0, 0.0, two)
        linear = -c / b
    first, second = np.fmin(one, two), np.fmax(one, two)
    between = a > 0.0
    none = np.isnan(root) | (root == 0.0)
    first, second = np.where(none, np.inf, first), np.where(none, np.inf, second)
    straight = a == 0.0
    rising, falling = straight & (b > 0.0), straight & (b < 0.0)
    flat = straight & (b == 0.0)
    first = np.where(rising, -np.inf, np.where(falling, linear, np.where(flat, np.inf, first)))
    second = np.where(rising, linear, np.where(falling | flat, np.inf, second))
    between = np.where(straight, ~flat | ~(c < 0.0), between)
    return first, second, between
