r"""From lines to prediction regions, exactly.

A ranked row covers a candidate t when :math:`|p + q t| \ge |t|` (see :mod:`conformal_gp.conformal.lines`); the region
of rank k is where at least k rows do. Every row covers t = 0, so each side of 0 can be walked outwards on its own: on
the side t >= 0, with signs changed so that p >= 0, a row *leaves* after :math:`p / (1 - q)` (never, if q >= 1), and
*returns* at :math:`p / (-1 - q)` if q < -1. The side t <= 0 is the same with -q.

Where no row ever returns or stays for ever, that is, when all |q| < 1, the region is one interval whose ends are the
k-th largest leaving points: a selection, O(n) a test row. Otherwise the points are sorted and swept.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numba import njit
from numpy.typing import NDArray

from conformal_gp.conformal.lines import Lines

Array = NDArray[np.float64]
Ranks = NDArray[np.int64]


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
    ends = np.empty((lines.centre.size, 2, wanted.size))
    _fill_hulls(lines.centre, lines.offset, lines.slope, wanted, ends)
    return ends[:, :, np.argsort(order)]


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
    return [
        centre + _pieces(offset, slope, rank)
        for centre, offset, slope in zip(lines.centre, lines.offset, lines.slope, strict=True)
    ]


@njit(cache=True, nogil=True, error_model="numpy")
def _fill_hulls(centre: Array, offset: Array, slope: Array, ranks: Ranks, ends: Array) -> None:  # pragma: no cover
    """Hulls of all test rows; ``ranks`` descend, so that each selection starts from what the last one left."""
    n = offset.shape[1]
    below = np.empty(n)
    above = np.empty(n)
    for j in range(centre.size):
        p, q = offset[j], slope[j]
        unbounded = 0
        for i in range(n):
            left = p[i] / (1.0 - q[i])
            right = -p[i] / (1.0 + q[i])
            above[i] = max(left, right)
            below[i] = -min(left, right)
            unbounded += abs(q[i]) >= 1.0
        if unbounded == 0:
            _largest(above, ranks, ends[j, 1])
            _largest(below, ranks, ends[j, 0])
            for level in range(ranks.size):
                ends[j, 0, level] = centre[j] - ends[j, 0, level]
                ends[j, 1, level] = centre[j] + ends[j, 1, level]
            continue
        for level in range(ranks.size):
            if ranks[level] == 0:
                ends[j, 0, level], ends[j, 1, level] = -np.inf, np.inf
            else:
                pieces = _pieces(p, q, ranks[level])
                ends[j, 0, level] = centre[j] + pieces[0, 0]
                ends[j, 1, level] = centre[j] + pieces[-1, 1]


@njit(cache=True, nogil=True)
def _largest(values: Array, ranks: Ranks, out: Array) -> None:  # pragma: no cover
    """k-th largest value for each of the descending ``ranks``; infinite for k = 0. Reorders ``values``."""
    n = _keep_top(values, ranks[0])
    for level in range(ranks.size):
        k = ranks[level]
        if k == 0:
            out[level] = np.inf
            continue
        if k < n or level == 0:
            _partition_descending(values, n, k)
        out[level] = values[k - 1]
        n = k


@njit(cache=True, nogil=True)
def _keep_top(values: Array, k: int) -> int:  # pragma: no cover
    """Move values that may be among the k largest to the front, by a threshold read off a sample.

    Returns how many were kept: at least k. A poor sample only costs time.
    """
    n = values.size
    n_sample = 64
    if n < 8 * n_sample or 2 * k > n:
        return n
    sample = np.sort(values[: n - n % n_sample : n // n_sample])
    spare = 2.0 + 1.5 * np.sqrt(n_sample * k / n)
    threshold = sample[max(0, sample.size - 1 - int(sample.size * k / n + spare))]
    kept = 0
    for i in range(n):
        if values[i] >= threshold:
            values[kept], values[i] = values[i], values[kept]
            kept += 1
    return kept if kept >= k else n


@njit(cache=True, nogil=True)
def _partition_descending(values: Array, n: int, k: int) -> None:  # pragma: no cover
    """Reorder ``values[:n]`` so that the k largest come first, the smallest of them at place k - 1 (Hoare's select)."""
    low, high = 0, n - 1
    while low < high:
        pivot = values[(low + high) // 2]
        i, j = low, high
        while i <= j:
            while values[i] > pivot:
                i += 1
            while values[j] < pivot:
                j -= 1
            if i <= j:
                values[i], values[j] = values[j], values[i]
                i += 1
                j -= 1
        if k - 1 <= j:
            high = j
        elif k - 1 >= i:
            low = i
        else:
            return


@njit(cache=True, nogil=True, error_model="numpy")
def _pieces(offset: Array, slope: Array, rank: int) -> Array:  # pragma: no cover
    """Region of one test row, about its centre, by sweeping both sides."""
    above = _side(offset, slope, rank)
    below = _side(offset, -slope, rank)
    # Both sides start with a piece at 0: joined, they are one.
    pieces = np.empty((above.shape[0] + below.shape[0] - 1, 2))
    middle = below.shape[0] - 1
    for i in range(below.shape[0]):
        pieces[middle - i, 0] = -below[i, 1]
        pieces[middle - i, 1] = -below[i, 0]
    pieces[middle, 1] = above[0, 1]
    pieces[middle + 1 :] = above[1:]
    return pieces


@njit(cache=True, nogil=True, error_model="numpy")
def _side(offset: Array, slope: Array, rank: int) -> Array:  # pragma: no cover
    """Pieces of {t >= 0 : at least ``rank`` rows cover t}, the first of them at 0."""
    n = offset.size
    leave = np.empty(n)
    enter = np.empty(n)
    for i in range(n):
        p, q = offset[i], slope[i]
        if p < 0.0:
            p, q = -p, -q
        leave[i] = p / (1.0 - q) if q < 1.0 else np.inf
        enter[i] = p / (-1.0 - q) if q < -1.0 else np.inf
        if p == 0.0 and abs(q) >= 1.0:  # the row covers the whole side
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
