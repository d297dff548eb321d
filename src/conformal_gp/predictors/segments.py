"""Segments of the lines of candidate labels of several test rows."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from conformal_gp._compiled import compiled
from conformal_gp.conformal.upper_envelope import TEST_ROW, TIED
from conformal_gp.gp.hyperparameters import Point
from conformal_gp.types import Array, Mask, Rows

# Nothing is set aside while hyperparameters are chosen: no row, or several that tie.
NOTHING = TIED
# It is not known yet what is set aside.
UNKNOWN = -3


__all__ = ["NOTHING", "TEST_ROW", "UNKNOWN", "At", "Segments", "cut", "difference", "gathered", "together"]


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

    def take(self, which: Rows | Mask | slice) -> Segments:
        """Some of the segments."""
        return Segments(self.row[which], self.low[which], self.high[which], self.aside[which])

    def shifted(self, rows: int, n_rows: int | None = None) -> Segments:
        """Numbers of rows changed by so much; only those of the first rows then, if their number is given."""
        moved = self._replace(row=self.row + rows)
        return moved if n_rows is None else moved.take((moved.row >= 0) & (moved.row < n_rows))

    def mirrored(self) -> Segments:
        """The same segments with the signs of all labels changed."""
        return Segments(self.row, -self.high, -self.low, self.aside)

    def forget(self, aside: int = NOTHING) -> Segments:
        """The same segments with no row set aside, or with none known yet, neighbours joined."""
        return self._replace(aside=np.full(self.size, aside)).joined()

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

    def divided(self, which: Rows, low: Array, high: Array, outcome: Mask) -> tuple[Segments, Segments]:
        """Parts of segments with an outcome, and parts without.

        Parameters
        ----------
        which : ndarray of shape (parts,)
            Number of the segment of each part.
        low, high : ndarray of shape (parts,)
            Its ends.
        outcome : ndarray of shape (parts,)
            The outcome on it.

        Returns
        -------
        those, others : Segments
            Together they are the segments again.
        """
        parts = Segments(self.row[which], low, high, self.aside[which])
        if outcome.all():
            return parts, parts.take(slice(0))
        return (parts.take(outcome), parts.take(~outcome)) if outcome.any() else (parts.take(slice(0)), parts)


At = dict[Point, Segments]
"""Segments by the point that they have come to."""


def gathered(found: dict[Point, list[Segments]]) -> At:
    """Segments that have come to each point, with nothing set aside any more."""
    at = {point: Segments.concatenate(parts).forget() for point, parts in found.items() if parts}
    return {point: parts for point, parts in at.items() if parts.size}


def together(*several: At) -> At:
    """Segments of all of them by the points that they have come to."""
    found: dict[Point, list[Segments]] = {}
    for at in several:
        for point, parts in at.items():
            found.setdefault(point, []).append(parts)
    return gathered(found)


@compiled(error_model="numpy")
def difference(
    new: tuple[float, float, float, float],
    old: tuple[float, float, float, float],
    degrees: int,
    gain: float,
    rounding: float,
    largest_variance: float,
) -> tuple[float, float, float]:  # pragma: no cover
    """Quadratic in the label, less μ of an old point, that is negative where F is lower at a new one by some gain.

    Parameters
    ----------
    new, old : tuple of four floats
        Q, log D s, μ and s of F at both points.
    degrees : int
        Degrees of freedom of the rows that are kept, if the test row has a say.
    gain : float
        The gain.
    rounding : float
        Square of what is rounding in a label, where the mean function explains all of them.
    largest_variance : float
        Largest prior variance of a label at the old point.

    Returns
    -------
    a, b, c : float
        Of the square, of the label and constant.
    """
    (q, log_d, mu, s), (q_old, log_d_old, mu_old, s_old) = new, old
    silent = s_old == np.inf  # the test row takes a coefficient of its own, and has no say
    ratio = np.exp((log_d_old - log_d - gain) / (degrees - silent))
    shift = mu - mu_old
    a = 1.0 / s - ratio / s_old
    if q == 0.0 and q_old == 0.0:  # the mean function explains all rows that are kept: the rest is rounding
        spread = 1.0 if silent else max(s_old / largest_variance, 1.0)
        return a, 0.0, abs(a) * rounding * spread
    return a, -2.0 * shift / s, q + shift**2 / s - ratio * q_old


@compiled(error_model="numpy")
def cut(
    segment: int,
    low: float,
    high: float,
    a: float,
    b: float,
    c: float,
    centre: float,
    which: Rows,
    starts: Array,
    stops: Array,
    negative: Mask,
    count: int,
) -> int:  # pragma: no cover
    """Divide a segment by the sign of a t² + b t + c, t = label - centre, into at most three parts.

    They are written after the first ``count`` ones: number of the segment, ends, and whether the sign is negative. What
    is given back is the number of parts then.
    """
    if low == high:
        t = low - centre
        which[count], starts[count], stops[count] = segment, low, high
        negative[count] = t * (a * t + b) + c < 0.0
        return count + 1
    first, second, between = _roots(a, b, c)
    last = low
    for k in range(3):
        stop = high if k == 2 else min(high, centre + (first if k == 0 else second))
        if last < stop:
            which[count], starts[count], stops[count] = segment, last, stop
            negative[count] = between if k == 1 else not between
            count += 1
            last = stop
    return count


@compiled(error_model="numpy")
def _roots(a: float, b: float, c: float) -> tuple[float, float, bool]:  # pragma: no cover
    """Roots of a quadratic in order, and whether it is negative between them rather than outside.

    Infinite roots stand for those that are not there.
    """
    if a == 0.0:
        if b == 0.0:
            return np.inf, np.inf, not c < 0.0
        return (-np.inf, -c / b, True) if b > 0.0 else (-c / b, np.inf, True)
    root = np.sqrt(b * b - 4.0 * a * c)
    if not root > 0.0:  # none, or one in which the sign does not change
        return np.inf, np.inf, a > 0.0
    q = -0.5 * (b + (-root if b < 0.0 else root))
    one, two = q / a, c / q
    return min(one, two), max(one, two), a > 0.0
