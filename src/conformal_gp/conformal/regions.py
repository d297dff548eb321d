r"""From lines to prediction regions, exactly.

A calibration row covers a candidate t when :math:`|p + q t| \ge |t|` (see :mod:`conformal_gp.conformal.lines`); the region
is where rows of more weight do than its level needs (:mod:`conformal_gp.conformal.weights`): at least k rows, if all
weights are 1. Every row covers t = 0, so each side of 0 can be walked outwards on its own: on
the side t >= 0, with signs changed so that p >= 0, a row *leaves* after :math:`p / (1 - q)` (never, if q >= 1), and
*returns* at :math:`p / (-1 - q)` if q < -1. The side t <= 0 is the same with -q.

Where no row ever returns or stays for ever, that is, when all |q| < 1, the region is one interval whose ends are the
k-th largest leaving points: a selection, O(n) a test row. With weights, leaving points are sorted. Otherwise all points
are sorted and swept.

All ends are then put out a little, by less than half of what counts as a tie (:mod:`conformal_gp.conformal.lines`).
"""

from __future__ import annotations

import numpy as np

from conformal_gp.arrays import Array
from conformal_gp.conformal.lines import Lines, Slack
from conformal_gp.conformal.weights import Needed, weight_up_to

# Slopes that differ from the test row's by less than this are equal to it: a ray has no end in the far distance.
SLOPE_TIE = 1e-12


def hulls(lines: Lines, needed: Needed, widened: bool = True) -> Array:
    """Convex hulls of the regions of several levels.

    Parameters
    ----------
    lines : Lines
        Centred lines of n calibration rows for m test rows.
    needed : Needed
        For each level, what weight of rows must cover a label.
    widened : bool, default=True
        Whether ends are put out by what counts as a tie.

    Returns
    -------
    ends : ndarray of shape (m, 2, levels)
        Lower and upper end.
    """
    with np.errstate(divide="ignore", invalid="ignore"):
        left, right = lines.offset / (1.0 - lines.slope), -lines.offset / (1.0 + lines.slope)
    above = needed.largest(np.maximum(left, right))
    below = needed.largest(np.negative(np.minimum(left, right, out=left), out=left))
    slack = Slack.of(lines.centre, lines.rounding) if widened else Slack.none(lines.centre)
    below, above = slack.put_out(below), slack.put_out(above)
    general = np.abs(lines.slope).max(axis=1, initial=0.0) >= 1.0 - SLOPE_TIE
    least, weights = needed.by_row(lines.centre.size), needed.each(lines.slope.shape[1])
    for j in np.flatnonzero(general):
        for level in range(needed.n_levels):
            pieces = _pieces(lines.offset[j], lines.slope[j], slack.each()[j], weights, least[j, level])
            below[j, level], above[j, level] = -pieces[0, 0], pieces[-1, 1]
    centre = lines.centre[:, None]
    return np.stack([centre - below, centre + above], axis=1)


def widened(lines: Lines, ends: Array) -> Array:
    """Ends of intervals, (m, 2, levels), put out by what counts as a tie."""
    centre, slack = lines.centre[:, None], Slack.of(lines.centre, lines.rounding)
    return np.stack([centre - slack.put_out(centre - ends[:, 0]), centre + slack.put_out(ends[:, 1] - centre)], axis=1)


def regions(lines: Lines, needed: Needed, widened: bool = True) -> list[Array]:
    """Regions of one level, each a union of closed intervals.

    Parameters
    ----------
    lines : Lines
        Centred lines of n calibration rows for m test rows.
    needed : Needed
        What weight of rows must cover a label, at one level.
    widened : bool, default=True
        As in :func:`hulls`.

    Returns
    -------
    pieces : list of m ndarrays of shape (pieces, 2)
        Sorted, disjoint, closed intervals; the outermost ends may be infinite.
    """
    slack = (Slack.of(lines.centre, lines.rounding) if widened else Slack.none(lines.centre)).each()
    least, weights = needed.by_row(lines.centre.size)[:, 0], needed.each(lines.slope.shape[1])
    each = zip(lines.centre, lines.offset, lines.slope, slack, least, strict=True)
    return [centre + _pieces(offset, slope, own, weights, above) for centre, offset, slope, own, above in each]


def _pieces(offset: Array, slope: Array, slack: Array, weights: Array, least: float) -> Array:
    """Region of one test row, about its centre, by sweeping both sides."""
    if least < 0.0:
        return np.array([[-np.inf, np.inf]])
    above = _side(offset, slope, slack, weights, least)
    below = -_side(offset, -slope, slack, weights, least)[::-1, ::-1]
    # Both sides have a piece at 0: joined, they are one.
    return np.concatenate([below[:-1], [[below[-1, 0], above[0, 1]]], above[1:]])


def _put_out(t: Array, steepness: Array, slack: Array) -> Array:
    """How far ends are put out where a row's score and the test row's part with some steepness."""
    off = slack[0] + slack[1] * t + np.minimum(slack[2] + slack[3] * t, slack[4])
    return off * np.minimum(
        2.0 / steepness, 1.0
    )  # where it is steeper than 2, scores are then apart by less than a tie


def _side(offset: Array, slope: Array, slack: Array, weights: Array, least: float) -> Array:
    """Pieces of {t >= 0 : rows of more weight than ``least`` cover t}, the first of them at 0."""
    p, q = np.abs(offset), np.where(offset < 0.0, -slope, slope)
    q = np.where(np.abs(np.abs(q) - 1.0) < SLOPE_TIE, np.sign(q), q)
    leave, enter = np.full((2, p.size), np.inf)
    goes, returns = q < 1.0, q < -1.0
    leave[goes] = p[goes] / (1.0 - q[goes])
    leave[goes] += _put_out(leave[goes], 1.0 - q[goes], slack)
    enter[returns] = p[returns] / (-1.0 - q[returns])
    enter[returns] -= _put_out(enter[returns], -1.0 - q[returns], slack)
    throughout = (enter <= leave) & returns | (p == 0.0) & (np.abs(q) >= 1.0)  # rows that cover the whole side
    leave, enter, moving = leave[~throughout], enter[~throughout], weights[~throughout]
    t = np.unique(np.concatenate([leave, enter]))
    t, total = t[np.isfinite(t)], float(weights.sum())
    entered = total + weight_up_to(enter, moving, t, "right")
    at, after = (entered - weight_up_to(leave, moving, t, side) for side in ("left", "right"))
    before = np.append(total, after)[: t.size]
    starts = np.append(0.0, t[(before <= least) & (at > least)])
    ends = t[(at > least) & (after <= least)]
    return np.column_stack([starts, ends if ends.size == starts.size else np.append(ends, np.inf)])
