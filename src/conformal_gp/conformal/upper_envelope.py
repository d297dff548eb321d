r"""Which ranked row stands out most, at which labels.

In centred form (see :mod:`conformal_gp.conformal.lines`) the largest score of the ranked rows is the upper envelope of
:math:`|p_i + q_i t|`, a convex function with straight pieces, each of which belongs to one row. The test row stands out
more than that row where :math:`|t|` is larger still.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from conformal_gp._compiled import compiled
from conformal_gp.conformal.lines import Lines
from conformal_gp.conformal.pvalues import LABEL_ROUNDING, TIE

Array = NDArray[np.float64]
Rows = NDArray[np.int64]


def outstanding(offset: Array, slope: Array, low: float, high: float) -> list[tuple[float, float, tuple[int, ...]]]:
    """Parts of the line on which ranked rows stand out at least as much as the test row, and those that do most.

    Parameters
    ----------
    offset, slope : ndarray of shape (n,)
        Centred lines of the ranked rows.
    low, high : float
        Ends of the part of the line to look at, centred too.

    Returns
    -------
    parts : list of (low, high, rows)
        From left to right; ``rows`` are several only where they tie.

    Examples
    --------
    >>> outstanding(np.array([1.0, 2.0]), np.array([0.5, -0.5]), -np.inf, np.inf)
    [(-4.0, 1.0, (1,)), (1.0, 2.0, (0,))]
    """
    breaks = np.empty(2 * offset.size + 1)
    owner = np.empty(2 * offset.size, dtype=np.int64)
    n = _walk(offset, slope, low, high, breaks, owner)
    parts = []
    for start, stop, line in zip(breaks[:n].tolist(), breaks[1 : n + 1].tolist(), owner[:n].tolist(), strict=True):
        sign, i = (1.0, line) if line < offset.size else (-1.0, line - offset.size)
        start, stop = _where_at_least(sign * float(offset[i]), sign * float(slope[i]), start, stop)
        if start <= stop:
            parts.append((start, stop, _tied(offset, slope, i, start, stop)))
    return parts


def _where_at_least(c: float, e: float, low: float, high: float) -> tuple[float, float]:
    """Part of [low, high] on which c + e t is at least |t|; ends are the wrong way round if there is none."""
    for m in (e - 1.0, e + 1.0):  # c + m t >= 0 for both
        if m < 0.0:
            high = min(high, -c / m)
        elif m > 0.0:
            low = max(low, -c / m)
        elif c < 0.0:
            return np.inf, -np.inf
    return low, high


def _tied(offset: Array, slope: Array, i: int, low: float, high: float) -> tuple[int, ...]:
    """Rows whose scores are those of row i, the largest, between two labels.

    Scores are convex and row i's is straight there: who reaches it inside is as large everywhere.
    """
    start, stop = (low if np.isfinite(low) else high - 1.0), (high if np.isfinite(high) else low + 1.0)
    t = 0.5 * (start + stop) if np.isfinite(start + stop) else 0.0
    slack = TIE * (np.abs(offset[i]) + np.abs(slope[i] * t))
    tied = np.abs(offset + slope * t) >= np.abs(offset[i] + slope[i] * t) - slack
    return tuple(np.flatnonzero(tied).tolist())


def outstanding_at(lines: Lines, y: Array) -> list[tuple[int, ...]]:
    """Ranked rows that stand out most at the label ``y[j]`` of test row j; none where that row itself does."""
    t = (y - lines.centre)[:, None]
    scores = np.abs(lines.offset + lines.slope * t)
    highest = scores.max(axis=1, keepdims=True)
    slack = TIE * (np.abs(lines.offset).max(axis=1, keepdims=True) + np.abs(t)) + LABEL_ROUNDING * np.abs(y)[:, None]
    top = (scores >= highest - slack) & (highest >= np.abs(t) - slack)
    return [tuple(np.flatnonzero(row).tolist()) for row in top]


@compiled(error_model="numpy")
def _walk(offset: Array, slope: Array, low: float, high: float, breaks: Array, owner: Rows) -> int:  # pragma: no cover
    """Upper envelope of the lines p + q t and, numbered after them, -p - q t."""
    n = offset.size
    current = 0
    best, steepness = -np.inf, 0.0
    for line in range(2 * n):
        c, e = (offset[line], slope[line]) if line < n else (-offset[line - n], -slope[line - n])
        if low == -np.inf:  # least slope, then highest
            better = line == 0 or e < steepness or (e == steepness and c > best)
            value = c
        else:  # highest, then steepest
            value = c + e * low
            better = line == 0 or value > best or (value == best and e > steepness)
        if better:
            current, best, steepness = line, value, e
    breaks[0] = low
    owner[0] = current
    count = 1
    while count < owner.size:
        c, e = (offset[current], slope[current]) if current < n else (-offset[current - n], -slope[current - n])
        here, following, steepness = high, -1, 0.0
        for line in range(2 * n):
            d, f = (offset[line], slope[line]) if line < n else (-offset[line - n], -slope[line - n])
            if f <= e:
                continue
            crossing = max((c - d) / (f - e), breaks[count - 1])
            if crossing < here or (crossing == here and following >= 0 and f > steepness):
                here, following, steepness = crossing, line, f
        if following < 0:
            break
        breaks[count] = here
        owner[count] = following
        current = following
        count += 1
    breaks[count] = high
    return count
