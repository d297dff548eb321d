r"""From lines to prediction regions, exactly.

A ranked row covers a candidate t when :math:`|p + q t| \ge |t|` (see :mod:`conformal_gp.conformal.lines`); the region
of rank k is where at least k rows do. Every row covers t = 0, so each side of 0 can be walked outwards on its own: on
the side t >= 0, with signs changed so that p >= 0, a row *leaves* after :math:`p / (1 - q)` (never, if q >= 1), and
*returns* at :math:`p / (-1 - q)` if q < -1. The side t <= 0 is the same with -q.

Where no row ever returns or stays for ever, that is, when all |q| < 1, the region is one interval whose ends are the
k-th largest leaving points: a selection, O(n) a test row. Otherwise the points are sorted and swept.

All ends are then put out a little, by less than half of what counts as a tie (:mod:`conformal_gp.conformal.lines`).
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from conformal_gp._compiled import compiled
from conformal_gp.conformal.lines import Lines, Slack
from conformal_gp.types import Array

# Slopes that differ from the test row's by less than this are equal to it: a ray has no end in the far distance.
SLOPE_TIE = 1e-12


def hulls(lines: Lines, ranks: Sequence[int]) -> Array:
    """Convex hulls of the regions of several ranks.

    Parameters
    ----------
    lines : Lines
        Centred lines of n ranked rows for m test rows.
    ranks : sequence of int
        For each level, how many rows must cover a label, from 0 (then the region is the whole line) to n.

    Returns
    -------
    ends : ndarray of shape (m, 2, len(ranks))
        Lower and upper end.
    """
    order = np.argsort(ranks)[::-1]
    wanted = np.asarray(ranks, dtype=np.int64)[order]
    reach = np.empty((2, *lines.offset.shape))
    general = np.empty(lines.centre.size, dtype=bool)
    _fill_reach(lines.offset, lines.slope, reach, general)
    below, above = select_largest(reach, wanted)
    slack = Slack.of(lines.centre, lines.rounding)
    below, above = slack.put_out(below), slack.put_out(above)
    for j in np.flatnonzero(general):
        for level, k in enumerate(wanted):
            if k > 0:
                pieces = _pieces(lines.offset[j], lines.slope[j], slack.each()[j], k)
                below[j, level], above[j, level] = -pieces[0, 0], pieces[-1, 1]
    centre = lines.centre[:, None]
    return np.stack([centre - below, centre + above], axis=1)[:, :, np.argsort(order)]


def regions(lines: Lines, rank: int) -> list[Array]:
    """Regions of one rank, each a union of closed intervals.

    Parameters
    ----------
    lines : Lines
        Centred lines of n ranked rows for m test rows.
    rank : int
        How many rows must cover a label.

    Returns
    -------
    pieces : list of m ndarrays of shape (pieces, 2)
        Sorted, disjoint, closed intervals; the outermost ends may be infinite.
    """
    if rank == 0:
        return [np.array([[-np.inf, np.inf]]) for _ in lines.centre]
    slack = Slack.of(lines.centre, lines.rounding).each()
    return [
        centre + _pieces(offset, slope, own, rank)
        for centre, offset, slope, own in zip(lines.centre, lines.offset, lines.slope, slack, strict=True)
    ]


@compiled(error_model="numpy")
def _fill_reach(offset: Array, slope: Array, reach: Array, general: NDArray[np.bool_]) -> None:  # pragma: no cover
    """How far below and above its centre each row covers, and whether any row of a test row needs the sweep."""
    for j in range(offset.shape[0]):
        p, q = offset[j], slope[j]
        below, above = reach[0, j], reach[1, j]
        n_general = 0
        for i in range(p.size):
            left = p[i] / (1.0 - q[i])
            right = -p[i] / (1.0 + q[i])
            above[i] = max(left, right)
            below[i] = -min(left, right)
            n_general += abs(q[i]) >= 1.0 - SLOPE_TIE
        general[j] = n_general > 0


def select_largest(reach: NDArray[np.floating], ranks: NDArray[np.int64]) -> Array:
    """k-th largest entry along the last axis for each of the ranks, which descend; infinite for k = 0.

    Each selection starts from what the last one left. ``reach`` is reordered.
    """
    found = np.full((*reach.shape[:-1], ranks.size), np.inf)
    for level, k in enumerate(ranks):
        if k == 0:
            break
        place = reach.shape[-1] - k
        reach.partition(place, axis=-1)
        found[..., level] = reach[..., place]
        reach = reach[..., place:]
    return found


@compiled(error_model="numpy")
def _pieces(offset: Array, slope: Array, slack: Array, rank: int) -> Array:  # pragma: no cover
    """Region of one test row, about its centre, by sweeping both sides."""
    above = _side(offset, slope, slack, rank)
    below = _side(offset, -slope, slack, rank)
    # Both sides start with a piece at 0: joined, they are one.
    pieces = np.empty((above.shape[0] + below.shape[0] - 1, 2))
    middle = below.shape[0] - 1
    for i in range(below.shape[0]):
        pieces[middle - i, 0] = -below[i, 1]
        pieces[middle - i, 1] = -below[i, 0]
    pieces[middle, 1] = above[0, 1]
    pieces[middle + 1 :] = above[1:]
    return pieces


@compiled(error_model="numpy")
def _put_out(t: float, steepness: float, slack: Array) -> float:  # pragma: no cover
    """How far an end is put out where a row's score and the test row's part with some steepness."""
    off = slack[0] + slack[1] * t + min(slack[2] + slack[3] * t, slack[4])
    return off if steepness <= 2.0 else off * 2.0 / steepness  # scores are then apart by less than a tie


@compiled(error_model="numpy")
def _side(offset: Array, slope: Array, slack: Array, rank: int) -> Array:  # pragma: no cover
    """Pieces of {t >= 0 : at least ``rank`` rows cover t}, the first of them at 0."""
    n = offset.size
    leave = np.empty(n)
    enter = np.empty(n)
    for i in range(n):
        p, q = offset[i], slope[i]
        if abs(abs(q) - 1.0) < SLOPE_TIE:
            q = np.sign(q)
        if p < 0.0:
            p, q = -p, -q
        leave[i] = enter[i] = np.inf
        if q < 1.0:
            leave[i] = p / (1.0 - q)
            leave[i] += _put_out(leave[i], 1.0 - q, slack)
        if q < -1.0:
            enter[i] = p / (-1.0 - q)
            enter[i] -= _put_out(enter[i], -1.0 - q, slack)
        if enter[i] <= leave[i] or (p == 0.0 and abs(q) >= 1.0):  # the row covers the whole side
            leave[i] = enter[i] = np.inf
    leave.sort()
    enter.sort()

    pieces = np.empty((n + 2, 2))
    n_pieces, count, inside = 0, n, True
    pieces[0, 0] = 0.0
    i = j = 0
    while True:
        t = min(leave[i] if i < n else np.inf, enter[j] if j < n else np.inf)
        if t == np.inf:
            break
        while j < n and enter[j] == t:
            count += 1
            j += 1
        if not inside and count >= rank:
            pieces[n_pieces, 0] = t
            inside = True
        while i < n and leave[i] == t:
            count -= 1
            i += 1
        if inside and count < rank:
            pieces[n_pieces, 1] = t
            n_pieces += 1
            inside = False
    if inside:
        pieces[n_pieces, 1] = np.inf
        n_pieces += 1
    return pieces[:n_pieces].copy()
