r"""From lines to prediction sets, one-sided bounds and counts for p-values, exactly.

A calibration row covers a candidate t when :math:`|p + q t| \ge |t|` (:mod:`conformal_gp.conformal.lines`); the region
is where rows of more weight do than its level needs. Every row covers t = 0, so each side of 0 is walked outwards:
where all |q| < 1 ends are selected, otherwise the points at which rows leave and return are sorted and swept
(docs/theory.md, "From lines to regions").

One-sided bounds compare the *signed* score :math:`p_i + q_i t` with the test row's own, t: the *upper region* of rank k
holds the values that at least k rows score at least as high as, and the upper bound is its supremum
(docs/theory_distributions.md). Lower regions are upper regions of the values with their signs changed.
"""

from __future__ import annotations

import numpy as np

from conformal_gp.arrays import Array, Indices, Mask
from conformal_gp.conformal.levels import Needed, weight_up_to
from conformal_gp.conformal.lines import COVERS_ALL, LABEL_ROUNDING, TIE, Lines, ties

# Slopes that differ from the test row's by less than this are equal to it: a ray has no end in the far distance.
SLOPE_TIE = 1e-12
# A row that ties by rounding alone, at distances from the centre of more than its score there over this, does not.
ROUNDED_SLOPE = 1e-9


def hulls(lines: Lines, needed: Needed) -> Array:
    """Convex hulls of the regions of several levels: lower and upper ends, (m, 2, levels)."""
    constant, share = ties(lines)
    # with the sign of p turned to be positive, a row covers t from -(p + e0) / (1 - e1 + q) to (p + e0) / (1 - e1 - q)
    reach = np.abs(lines.offset)
    reach *= 1.0 + TIE
    reach += constant[:, None]
    turned = np.copysign(1.0, lines.offset)
    turned *= lines.slope
    steepness = (1.0 - share)[:, None]
    with np.errstate(divide="ignore", invalid="ignore"):
        above = reach / (steepness - turned)
        below = reach / (steepness + turned)
        tied = constant[:, None] > np.abs(lines.offset)
        if tied.any():  # rows that tie at the centre, and so as far out as rounding lets them on either side
            other = np.where(tied, constant[:, None] - np.abs(lines.offset), -np.inf)
            above = np.maximum(above, other / (steepness + turned))
            below = np.maximum(below, other / (steepness - turned))
        above = needed.largest(above)
        below = needed.largest(below)
    general = np.abs(lines.slope).max(axis=1, initial=0.0) >= 1.0 - share - SLOPE_TIE
    least = needed.by_row(lines.centre.size)
    weights = needed.each(lines.slope.shape[1])
    for j in np.flatnonzero(general):
        for level in range(needed.n_levels):
            pieces = _pieces(lines.offset[j], lines.slope[j], constant[j], share[j], weights, least[j, level])
            below[j, level] = -pieces[0, 0]
            above[j, level] = pieces[-1, 1]
    centre = lines.centre[:, None]
    return np.stack([centre - below, centre + above], axis=1)


def regions(lines: Lines, needed: Needed) -> list[Array]:
    """Regions of one level, each (pieces, 2): sorted, disjoint, closed intervals, outermost ends maybe infinite."""
    constant, share = ties(lines)
    least = needed.by_row(lines.centre.size)[:, 0]
    weights = needed.each(lines.slope.shape[1])
    each = zip(lines.centre, lines.offset, lines.slope, constant, share, least, strict=True)
    return [centre + _pieces(p, q, e0, e1, weights, above) for centre, p, q, e0, e1, above in each]


def _pieces(offset: Array, slope: Array, constant: float, share: float, weights: Array, least: float) -> Array:
    """Region of one test row, about its centre, by sweeping both sides."""
    if least < 0.0:
        return np.array([[-np.inf, np.inf]])
    above = _side(offset, slope, constant, share, weights, least)
    below = -_side(offset, -slope, constant, share, weights, least)[::-1, ::-1]
    # Both sides have a piece at 0: joined, they are one.
    return np.concatenate([below[:-1], [[below[-1, 0], above[0, 1]]], above[1:]])


def _side(offset: Array, slope: Array, constant: float, share: float, weights: Array, least: float) -> Array:
    """Pieces of {t >= 0 : rows of more weight than ``least`` cover t}, the first of them at 0."""
    # the sign of the line does not matter: p >= 0
    p = np.abs(offset)
    q = np.where(offset < 0.0, -slope, slope)
    q = np.where(np.abs(np.abs(q) - 1.0) < SLOPE_TIE, np.sign(q), q)
    steepness = 1.0 - share
    leave = np.full(p.size, np.inf)
    enter = np.full(p.size, np.inf)
    goes = q < steepness
    # a row that is parallel to the test row's ties far out, by rounding alone: that counts if it ties at 0 as well, or
    # not too far out
    returns = (q < -1.0) | (q < -steepness - ROUNDED_SLOPE) | ((q < -steepness) & (p <= constant))
    # p + q t >= t until (p + e0) / (1 - e1 - q)
    leave[goes] = ((1.0 + TIE) * p[goes] + constant) / (steepness - q[goes])
    tied = goes & ~returns & (constant > p)
    # a row that ties at 0 does not leave before (e0 - p) / (1 - e1 + q)
    leave[tied] = np.maximum(leave[tied], (constant - p[tied]) / np.maximum(steepness + q[tied], SLOPE_TIE))
    # -(p + q t) >= t again from (p - e0) / (-1 + e1 - q) on
    enter[returns] = np.maximum((1.0 - TIE) * p[returns] - constant, 0.0) / (-steepness - q[returns])
    throughout = (enter <= leave) & returns | (p == 0.0) & (np.abs(q) >= 1.0)  # rows that cover the whole side
    leave = leave[~throughout]
    enter = enter[~throughout]
    moving = weights[~throughout]
    t = np.unique(np.concatenate([leave, enter]))
    t, total = t[np.isfinite(t)], float(weights.sum())
    entered = total + weight_up_to(enter, moving, t, "right")
    at, after = (entered - weight_up_to(leave, moving, t, side) for side in ("left", "right"))
    before = np.append(total, after)[: t.size]
    starts = np.append(0.0, t[(before <= least) & (at > least)])
    ends = t[(at > least) & (after <= least)]
    return np.column_stack([starts, ends if ends.size == starts.size else np.append(ends, np.inf)])


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


def mirrored(lines: Lines) -> Lines:
    """Lines of the same rows with the signs of all values changed."""
    return lines._replace(centre=-lines.centre, offset=-lines.offset)


def upper_bounds(lines: Lines, needed: Needed) -> Array:
    """Suprema of the upper regions of several levels, (m, levels).

    They are minus infinity where the region is empty, which takes ``gamma`` other than 2 and a level below 1/2.
    """
    centre = lines.centre[:, None]
    if needed.n_levels == 0:
        return np.empty((centre.size, 0))
    constant, share = ties(lines)
    # p + q t >= t - e0 - e1 |t| up to the threshold t = (p + e0) / (1 - q -+ e1), or from it on where q > 1
    reach = lines.offset + TIE * np.abs(lines.offset) + constant[:, None]
    side = np.copysign(1.0, reach) * np.where(lines.slope > 1.0, -1.0, 1.0)
    with np.errstate(divide="ignore", invalid="ignore"):
        thresholds = reach / (1.0 - side * share[:, None] - lines.slope)
    general = np.flatnonzero((lines.slope >= (1.0 - share - SLOPE_TIE)[:, None]).any(axis=1))
    unsorted = thresholds[general]
    found = needed.largest(thresholds)
    least = needed.by_row(centre.size)
    weights = needed.each(lines.slope.shape[1])
    for j, own in zip(general, unsorted, strict=True):
        found[j] = _outermost(own, reach[j], lines.slope[j], share[j], weights, least[j])
    return centre + found


def _outermost(thresholds: Array, reach: Array, slope: Array, share: float, weights: Array, least: Array) -> Array:
    """The bounds of one test row some of whose rows score higher from their threshold on, or at every value."""
    # a row that is parallel to the test row's up to rounding scores higher at every value, or at none
    parallel = np.abs(slope - 1.0) <= share + SLOPE_TIE
    falls = ~parallel & (slope < 1.0)
    rises = ~parallel & (slope > 1.0)
    # the weight falls only after a threshold up to which a row counts: the supremum is one of these, or infinite
    labels = np.append(thresholds[falls & (thresholds < np.inf)], np.inf)
    count = weights[falls].sum() + weights[parallel & (reach >= 0.0)].sum()
    count = count - weight_up_to(thresholds[falls], weights[falls], labels, "left")
    count += weight_up_to(thresholds[rises], weights[rises], labels, "right")
    return np.max(np.where(count > least[:, None], labels, -np.inf), axis=1)


def counts(lines: Lines, y: Array, signed: bool = False, weights: Array | None = None) -> tuple[Array, Array]:
    """Weight of the rows that score at least as high as each test row, and higher by more than a tie.

    With ``signed``, scores keep their signs. Where nothing is known of the target, signs mean nothing: all rows tie.
    """
    at_least, greater, _ = _compared(lines, y, signed)
    each = np.ones(lines.offset.shape[1]) if weights is None else weights
    return at_least @ each, greater @ each


def _compared(lines: Lines, y: Array, signed: bool) -> tuple[Mask, Mask, Array]:
    """Whether rows score at least as high as each test row, and higher, and by how much they differ, (m, n) each."""
    t = (y - lines.centre)[:, None]
    slack = TIE * (np.abs(lines.offset) + np.abs(t))
    slack += LABEL_ROUNDING * np.abs(y)[:, None] * np.maximum(np.abs(lines.slope), 1.0)
    if lines.rounding is not None:
        floor, share, beside = lines.rounding
        slack += (floor + beside)[:, None] + share[:, None] * np.abs(t)
    scores, own = lines.offset + lines.slope * t, t
    if signed:
        slack[(lines.slope == COVERS_ALL).any(axis=1)] = np.inf
    else:
        scores, own = np.abs(scores), np.abs(own)
    return scores >= own - slack, scores > own + slack, np.abs(scores - own)


def tied_rows(lines: Lines, y: Array) -> tuple[Indices, Indices]:
    """Number of rows that tie with each test row at its value, and the nearest of them, (m,) each."""
    at_least, greater, gap = _compared(lines, y, signed=False)
    tied = at_least & ~greater
    return tied.sum(axis=1), np.where(tied, gap, np.inf).argmin(axis=1)
