r"""From lines to prediction regions, exactly.

A calibration row covers a candidate t when :math:`|p + q t| \ge |t|` (see :mod:`conformal_gp.conformal.lines`); the
region is where rows of more weight do than its level needs (:mod:`conformal_gp.conformal.weights`): at least k rows, if
all weights are 1. Every row covers t = 0, so each side of 0 can be walked outwards on its own: on the side t >= 0, with
signs changed so that p >= 0, a row *leaves* after :math:`p / (1 - q)` (never, if q >= 1), and *returns* at :math:`p /
(-1 - q)` if q < -1. The side t <= 0 is the same with -q.

Where no row ever returns or stays for ever, that is, when all |q| < 1, the region is one interval whose ends are the
k-th largest leaving points: a selection, O(n) a test row. With weights, leaving points are sorted. Otherwise all points
are sorted and swept.

Scores that tie up to rounding count as equal (:func:`conformal_gp.conformal.lines.ties`): with :math:`\epsilon_0` and
:math:`\epsilon_1`, rows leave after :math:`(p + \epsilon_0) / (1 - \epsilon_1 - q)` and return at
:math:`(p - \epsilon_0) / (-1 + \epsilon_1 - q)`.
"""

from __future__ import annotations

import numpy as np

from conformal_gp.arrays import Array
from conformal_gp.conformal.lines import TIE, Lines, ties
from conformal_gp.conformal.weights import Needed, weight_up_to

# Slopes that differ from the test row's by less than this are equal to it: a ray has no end in the far distance.
SLOPE_TIE = 1e-12


def hulls(lines: Lines, needed: Needed) -> Array:
    """Convex hulls of the regions of several levels.

    Parameters
    ----------
    lines : Lines
        Centred lines of n calibration rows for m test rows.
    needed : Needed
        For each level, what weight of rows must cover a label.

    Returns
    -------
    ends : ndarray of shape (m, 2, levels)
        Lower and upper end.
    """
    constant, share = ties(lines)
    # with the sign of p turned to be positive, a row covers t from -(p + e0) / (1 - e1 + q) to (p + e0) / (1 - e1 - q)
    reach = np.abs(lines.offset)
    reach *= 1.0 + TIE
    reach += constant[:, None]
    turned = np.copysign(1.0, lines.offset)
    turned *= lines.slope
    steepness = (1.0 - share)[:, None]
    with np.errstate(divide="ignore", invalid="ignore"):
        above = needed.largest(reach / (steepness - turned))
        below = needed.largest(reach / (steepness + turned))
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
    """Regions of one level, each a union of closed intervals.

    Parameters
    ----------
    lines : Lines
        Centred lines of n calibration rows for m test rows.
    needed : Needed
        What weight of rows must cover a label, at one level.

    Returns
    -------
    pieces : list of m ndarrays of shape (pieces, 2)
        Sorted, disjoint, closed intervals; the outermost ends may be infinite.
    """
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
    p = np.abs(offset)
    q = np.where(offset < 0.0, -slope, slope)
    q = np.where(np.abs(np.abs(q) - 1.0) < SLOPE_TIE, np.sign(q), q)
    steepness = 1.0 - share
    leave = np.full(p.size, np.inf)
    enter = np.full(p.size, np.inf)
    goes = q < steepness
    returns = q < -1.0  # a row that is parallel to the test row's ties far out, by rounding alone, and does not return
    leave[goes] = ((1.0 + TIE) * p[goes] + constant) / (steepness - q[goes])
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
