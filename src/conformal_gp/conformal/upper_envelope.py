r"""Which row stands out most, at which labels.

In centred form (see :mod:`conformal_gp.conformal.lines`) the largest score of the ranked rows is the upper envelope of
:math:`|p_i + q_i t|`, a convex function with straight pieces, each of which belongs to one row. The test row stands out
more than that row where :math:`|t|` is larger still.
"""

from __future__ import annotations

import numpy as np

from conformal_gp._compiled import compiled
from conformal_gp.conformal.lines import LABEL_ROUNDING, TIE, BagRounding, Lines
from conformal_gp.types import Array, Rows

# What stands out most where it is not a ranked row: the test row, or several rows that tie.
TEST_ROW = -1
TIED = -2


def outstanding(
    lines: Lines, member: Rows, low: Array, high: Array, rounding: BagRounding | None = None
) -> tuple[Rows, Array, Array, Rows]:
    """Divide segments of labels by the row that stands out most.

    Whether rows tie must not depend on which of them is the test row. So what counts as a tie here is in proportion to
    the largest score of all, and to what rounding puts off the scores of the bag.

    Parameters
    ----------
    lines : Lines
        Centred lines of n ranked rows for m test rows.
    member : ndarray of shape (k,)
        The test row of each of k segments.
    low, high : ndarray of shape (k,)
        Labels at their ends, which may be equal.
    rounding : BagRounding or None, default=None
        How far rounding puts scores off; None where that is less than counts as a tie.

    Returns
    -------
    segment : ndarray of shape (parts,)
        The segment of each part.
    low, high : ndarray of shape (parts,)
        Its ends; parts of a segment come from left to right and make it up.
    row : ndarray of shape (parts,)
        The ranked row that stands out most on it, or ``TEST_ROW``, or ``TIED``.

    Examples
    --------
    >>> lines = Lines(np.zeros(1), np.array([[1.0, 2.0]]), np.array([[0.5, -0.5]]))
    >>> outstanding(lines, np.array([0]), np.array([-9.0]), np.array([9.0]))[1:]
    (array([-9., -4.,  1.,  2.]), array([-4.,  1.,  2.,  9.]), array([-1,  1,  0, -1]))
    """
    if rounding is None:
        rounding = BagRounding(np.zeros((lines.centre.size, 3)), np.zeros(lines.centre.size), 0.0)
    return divide(lines.centre, lines.offset, lines.slope, *rounding, member, low, high)


@compiled(error_model="numpy")
def divide(
    centre: Array,
    offset: Array,
    slope: Array,
    square: Array,
    share: Array,
    largest: float,
    member: Rows,
    low: Array,
    high: Array,
) -> tuple[Rows, Array, Array, Rows]:  # pragma: no cover
    """See :func:`outstanding`; lines and rounding come in their parts."""
    n = offset.shape[1]
    size = 4 * member.size + 4 * n + 8
    segment, row = np.empty(size, dtype=np.int64), np.empty(size, dtype=np.int64)
    starts, stops = np.empty(size), np.empty(size)
    breaks, owner = np.empty(2 * n + 1), np.empty(2 * n, dtype=np.int64)
    count = 0
    for k in range(member.size):
        p, q, c = offset[member[k]], slope[member[k]], centre[member[k]]
        e, f = square[member[k]], share[member[k]]
        if count + 4 * n + 4 > segment.size:  # room for the parts of one more segment
            size = 2 * segment.size + 4 * n
            segment, row = longer(segment, size), longer(row, size)
            starts, stops = longer(starts, size), longer(stops, size)
        if low[k] == high[k]:
            segment[count], starts[count], stops[count] = k, low[k], high[k]
            t = low[k] - c
            row[count] = _at(p, q, t, LABEL_ROUNDING * abs(low[k]) + _off(e, f, largest, c, t))
            count += 1
            continue
        pieces = _walk(p, q, low[k] - c, high[k] - c, breaks, owner)
        last = low[k]
        for piece in range(pieces):
            i = owner[piece] % n
            sign = 1.0 if owner[piece] < n else -1.0
            start, stop = _where_at_least(sign * p[i], sign * q[i], breaks[piece], breaks[piece + 1])
            if not start <= stop:
                continue
            t = _middle(start, stop)
            top = _tied(p, q, i, t, _off(e, f, largest, c, t))
            start, stop = min(max(c + start, last), high[k]), min(c + stop, high[k])
            if start > last:
                segment[count], starts[count], stops[count], row[count] = k, last, start, TEST_ROW
                count, last = count + 1, start
            if stop > start:
                segment[count], starts[count], stops[count], row[count] = k, start, stop, top
                count, last = count + 1, stop
        if last < high[k]:
            segment[count], starts[count], stops[count], row[count] = k, last, high[k], TEST_ROW
            count += 1
    return segment[:count], starts[:count], stops[:count], row[:count]


@compiled()
def longer(values, size):  # type: ignore[no-untyped-def]  # pragma: no cover
    """The same values with more room after them."""
    longer = np.empty(size, dtype=values.dtype)
    for i in range(values.size):
        longer[i] = values[i]
    return longer


@compiled(error_model="numpy")
def _at(p: Array, q: Array, t: float, rounding: float) -> int:  # pragma: no cover
    """The row that stands out most at one label."""
    scores = np.abs(p + q * t)
    highest = scores.max()
    slack = TIE * max(highest, abs(t)) + rounding
    if highest < abs(t) - slack:
        return TEST_ROW
    if highest <= abs(t) + slack or np.sum(scores >= highest - slack) > 1:
        return TIED
    return int(np.argmax(scores))


@compiled(error_model="numpy")
def _off(square: Array, share: float, largest: float, centre: float, t: float) -> float:  # pragma: no cover
    """How far rounding puts scores off at distance t from the centre."""
    under_root = max(square[0] + t * (square[1] + t * square[2]), 0.0)
    return float(np.sqrt(under_root) + share * max(largest, abs(centre + t)))


@compiled(error_model="numpy")
def _middle(low: float, high: float) -> float:  # pragma: no cover
    """A label between two, which may be infinite."""
    start, stop = (low if np.isfinite(low) else high - 1.0), (high if np.isfinite(high) else low + 1.0)
    return 0.5 * (start + stop) if np.isfinite(start + stop) else 0.0


@compiled(error_model="numpy")
def _tied(p: Array, q: Array, i: int, t: float, rounding: float) -> int:  # pragma: no cover
    """Row i, the largest on a piece of the envelope about t, or TIED if others are as large.

    Scores are convex and row i's is straight there: who reaches it inside is as large everywhere.
    """
    least = (1.0 - TIE) * abs(p[i] + q[i] * t) - rounding
    for j in range(p.size):
        if j != i and abs(p[j] + q[j] * t) >= least:
            return TIED
    return i


@compiled(error_model="numpy")
def _where_at_least(c: float, e: float, low: float, high: float) -> tuple[float, float]:  # pragma: no cover
    """Part of [low, high] on which c + e t is at least |t|; ends are the wrong way round if there is none."""
    for m in (e - 1.0, e + 1.0):  # c + m t >= 0 for both
        if m < 0.0:
            high = min(high, -c / m)
        elif m > 0.0:
            low = max(low, -c / m)
        elif c < 0.0:
            return np.inf, -np.inf
    return low, high


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
