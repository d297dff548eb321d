"""The lower envelope of parabolas: which of several candidates has the least criterion at each label."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from conformal_gp.types import Array, Rows

# Criteria that differ by less than this share may be equal.
ROUNDING = 1e-13


class Parabolas(NamedTuple):
    """Criteria of G candidates for each of m test rows, as functions of the label: ``steepness (y - vertex)² + level``.

    A candidate that cannot be chosen has infinite steepness and level.
    """

    vertex: Array
    """(m, G)"""
    steepness: Array
    """(m, G), positive."""
    level: Array
    """(m, G)"""

    def at(self, y: Array) -> Array:
        """Criteria at one label for each test row, (m, G)."""
        with np.errstate(invalid="ignore"):
            return self.steepness * (y[:, None] - self.vertex) ** 2 + self.level

    def least_at(self, y: Array) -> Rows:
        """The candidate of least criterion at one label for each test row, (m,)."""
        return np.argmin(self.at(y), axis=1)


class Segments(NamedTuple):
    """Intervals of labels on each of which one candidate has the least criterion: k in all, from left to right."""

    row: Rows
    """(k,): the test row."""
    candidate: Rows
    """(k,)"""
    low: Array
    """(k,): where it begins; the first of a test row at minus infinity."""
    high: Array
    """(k,): where the next one begins."""

    def take(self, which: Rows) -> Segments:
        """Some of the segments."""
        row, candidate, low, high = self
        return Segments(row[which], candidate[which], low[which], high[which])


def lower_envelope(parabolas: Parabolas) -> Segments:
    """Divide the line of labels of each test row by the candidate of least criterion.

    The line is walked from the left. Of two parabolas the second comes below the first at one label at most, so the
    next segment begins at the nearest such label.

    Examples
    --------
    >>> found = lower_envelope(Parabolas(np.array([[0.0, 4.0]]), np.ones((1, 2)), np.zeros((1, 2))))
    >>> found.candidate, found.low, found.high
    (array([0, 1]), array([-inf,   2.]), array([ 2., inf]))
    """
    # labels are measured from a vertex, for less rounding
    finite = np.where(np.isfinite(parabolas.steepness), parabolas.vertex, np.nan)
    origin = np.nanmedian(finite, axis=1)
    vertex, steepness, level = parabolas._replace(vertex=parabolas.vertex - origin[:, None])
    rows = np.arange(origin.size)
    flattest = steepness == steepness.min(axis=1, keepdims=True)
    current = np.argmin(np.where(flattest, vertex, np.inf), axis=1)
    here = np.full(rows.size, -np.inf)
    found: list[tuple[Rows, Rows, Array, Array]] = []
    while rows.size:
        own = rows, current
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            crossing = _comes_below(
                steepness[rows] - steepness[own][:, None],
                -2.0 * (steepness[rows] * vertex[rows] - (steepness[own] * vertex[own])[:, None]),
                steepness[rows] * vertex[rows] ** 2
                + level[rows]
                - (steepness[own] * vertex[own] ** 2 + level[own])[:, None],
            )
            # rounding may put a crossing before the one passed last: the other is then as low, and falls faster
            off = np.where(np.isfinite(here), here, np.nan)[:, None] - vertex[rows]
            slope, value = steepness[rows] * off, steepness[rows] * off**2 + level[rows]
            least = value[np.arange(rows.size), current][:, None]
            passed = (value <= least + ROUNDING * least) & (slope < slope[np.arange(rows.size), current][:, None])
        crossing = np.where(crossing > here[:, None], crossing, np.where(passed, here[:, None], np.inf))
        crossing[np.arange(rows.size), current] = np.inf
        following = np.argmin(crossing, axis=1)
        there = crossing[np.arange(rows.size), following]
        found.append((rows, current, here + origin[rows], there + origin[rows]))
        goes_on = np.isfinite(there)
        rows, current, here = rows[goes_on], following[goes_on], there[goes_on]
    row, candidate, low, high = (np.concatenate(part) for part in zip(*found, strict=True))
    order = np.lexsort((np.arange(row.size), row))
    segments = Segments(row, candidate, low, high).take(order)
    return segments.take(np.flatnonzero(segments.low < segments.high))


def _comes_below(a: Array, b: Array, c: Array) -> Array:
    """Where a y² + b y + c falls through zero as y rises, (-b - root) / 2a in the form that does not cancel; or nan."""
    root = np.sqrt(b * b - 4.0 * a * c)
    return np.where(b >= 0.0, -(b + root) / (2.0 * a), 2.0 * c / (root - b))
