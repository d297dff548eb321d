"""Algorithm 1 of the GPR-CP paper by brute force: from scores that are lines in the candidate label to a region.

Numbers in parentheses are those of the paper's equations. Nothing is imported from the package under test.
"""

from collections.abc import Sequence
from fractions import Fraction
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

Level = Fraction | float | int

INF = float("inf")


def ranked_rows(calibration: Sequence[int] | NDArray[np.intp] | None, rows: int) -> list[int]:
    """Training rows that take part in the ranking, without repetition."""
    if calibration is None:
        return list(range(rows))
    chosen = [int(i) for i in calibration]
    if len(set(chosen)) < len(chosen) or not all(0 <= i < rows for i in chosen):
        raise ValueError("ranked must hold distinct indices of training rows")
    return chosen


def _members(a_i: Any, b_i: Any, a: Any, b: Any, tolerance: Any, largest: Any) -> list[tuple[Any, Any]]:
    """Set S_i = {t : |a_i + b_i t| >= |a + b t|} of (15), as a list of closed intervals.

    The cases are those below (15), after the signs have been turned so that b_i and b are not negative. The
    parameter `largest` is the size with which a difference between a_i and a is compared.
    """
    if b_i < 0:
        a_i, b_i = -a_i, -b_i
    if b < 0:
        a, b = -a, -b
    everything = [(-INF, INF)]
    if abs(b_i - b) > tolerance * max(b_i, b):
        first, second = sorted([-(a_i - a) / (b_i - b), -(a_i + a) / (b_i + b)])  # (16)
        return [(-INF, first), (second, INF)] if b_i > b else [(first, second)]
    if b == 0:
        return everything if abs(a_i) >= abs(a) - tolerance * largest else []
    if abs(a_i - a) <= tolerance * largest:
        return everything
    single = -(a_i + a) / (b_i + b)  # (17)
    return [(single, INF)] if a_i > a else [(-INF, single)]


def region_from_lines(
    a: Sequence[Any],
    b: Sequence[Any],
    delta: Level,
    calibration: Sequence[int] | None = None,
    tolerance: float = 1e-11,
    label_scale: Any = 0.0,
) -> list[tuple[Any, Any]]:
    """Algorithm 1 from the vectors a and b on, in the arithmetic of their elements.

    Parameters
    ----------
    a, b : sequences of l+1 numbers
        Floats or mpmath numbers; the new row is the last.
    delta : Fraction, float or int
        Significance level. A float stands for its exact binary value.
    ranked : sequence of int, optional
        Training rows whose sets S_i count; all by default. The share is then over ``len(ranked) + 1``.
    tolerance : float
        Slopes that differ by no more than this relatively count as equal, and so do points that differ by
        no more than this relative to themselves or to `label_scale`.
    label_scale : number
        Typical size of the labels.

    Returns
    -------
    list of (low, high)
        Disjoint closed intervals in ascending order, with infinite ends where the region is unbounded. An
        isolated point has ``low == high``. The list is empty only if no candidate label is conforming.
    """
    chosen = ranked_rows(calibration, len(a) - 1)
    rational_delta = Fraction(delta)
    largest = max(abs(value) for value in a)
    sets = [_members(a[i], b[i], a[-1], b[-1], tolerance, largest) for i in chosen]
    sets.append([(-INF, INF)])  # S_{l+1}

    # The points P in ascending order, where points that are equal up to rounding become one.
    raw = sorted(end for S in sets for interval in S for end in interval if abs(end) < INF)
    points: list[Any] = []
    same: dict[Any, Any] = {}
    previous = None
    for point in raw:
        if previous is None or point - previous > tolerance * max(abs(point), abs(previous), label_scale):
            points.append(point)
        same[point] = points[-1]
        previous = point
    sets = [[(same.get(low, low), same.get(high, high)) for low, high in S] for S in sets]

    def conforming(t: Any) -> bool:
        count = sum(any(low <= t <= high for low, high in S) for S in sets)
        return Fraction(count, len(sets)) > rational_delta

    if not points:
        return [(-INF, INF)] if conforming(0.0) else []
    inside = [points[0] - max(1, abs(points[0]))]
    inside += [(low + high) / 2 for low, high in pairwise(points)]
    inside += [points[-1] + max(1, abs(points[-1]))]

    # Open intervals with N(j)/(l+1) > delta, and points with M(j)/(l+1) > delta, from left to right.
    ends = [-INF, *points, INF]
    pieces: list[tuple[Any, Any]] = []
    for j, t in enumerate(inside):
        if j > 0 and conforming(ends[j]):
            pieces.append((ends[j], ends[j]))
        if conforming(t):
            pieces.append((ends[j], ends[j + 1]))
    merged: list[tuple[Any, Any]] = []
    for low, high in pieces:
        if merged and merged[-1][1] == low:
            merged[-1] = (merged[-1][0], high)
        else:
            merged.append((low, high))
    # The S_i are closed, so the ends of every open interval in the region are in the region too.
    assert all(conforming(end) for piece in merged for end in piece if abs(end) < INF)
    return merged


def hull(pieces: ArrayLike) -> tuple[float, float]:
    """Convex hull of a region, the smallest closed interval that contains it; two nans if it is empty."""
    ends = np.asarray(pieces, dtype=float).reshape(-1, 2)
    if len(ends) == 0:
        return float("nan"), float("nan")
    return float(ends.min()), float(ends.max())
