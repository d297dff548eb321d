r"""From lines to one-sided bounds: the comparison of signed scores.

Without the absolute values, the centred lines of :mod:`conformal_gp.conformal.lines` compare the *signed* score
:math:`p_i + q_i t` of a calibration row with the test row's own, t. The signed score is the leave-one-out residual, label
minus prediction, over a root of its variance; it is large where a label is higher than the other rows expect.

**Theorem.** *Where all* :math:`q_i < 1`, *as always for* :math:`\gamma = 2`, *row i scores at least as high as the test
row exactly for the labels up to its threshold*

.. math:: y_i^* = \mu + \frac{p_i}{1 - q_i} \quad \left( = \mu + \frac{s \alpha_i}{d_i + v_i} \right) ,

*so the share of rows that score less than the test row never falls as its label rises: it is a distribution function,
with steps at the thresholds.*

*Proof.* :math:`p_i + q_i t \ge t` is :math:`p_i \ge (1 - q_i) t`, and a positive factor may be divided by. For
:math:`\gamma = 2`, :math:`|q_i| = |v_i| / \sqrt{s P_{ii} + v_i^2} < 1` where :math:`P_{ii} > 0`. ∎ (A row that by
itself determines a coefficient of the mean has :math:`P_{ii} = 0, p_i = 0` and :math:`q_i = \pm 1`: it may tie with
the test row at every label, which leaves the function monotone.)

With the signed score in the place of the absolute one, the labels that at least k rows score at least as high as are
the *upper region* of rank k: a conformal region like the two-sided one, and with the same guarantee. Where thresholds
exist it is the ray up to the k-th largest. With another :math:`\gamma` a row may have :math:`q_i > 1`: it scores higher
than the test row from a label on, not up to one, and the region need not be a ray. The *bound* is its supremum, the
outermost label, so it keeps the guarantee. Lower regions are upper regions of the labels with their signs changed. All
bounds are put out a little, by less than half of what counts as a tie (:mod:`conformal_gp.conformal.lines`).
"""

from __future__ import annotations

import numpy as np

from conformal_gp.arrays import Array
from conformal_gp.conformal.lines import Lines, Slack
from conformal_gp.conformal.regions import SLOPE_TIE
from conformal_gp.conformal.weights import Needed, weight_up_to


def mirrored(lines: Lines) -> Lines:
    """Lines of the same rows with the signs of all labels changed."""
    return lines._replace(centre=-lines.centre, offset=-lines.offset)


def bounds(lines: Lines, below: Needed, above: Needed) -> Array:
    """Lower bounds of some levels, then upper bounds of others.

    Parameters
    ----------
    lines : Lines
        Centred lines of n calibration rows for m test rows.
    below, above : Needed
        For each bound, what weight of rows must score at most, or at least, as high as the test row.

    Returns
    -------
    bounds : ndarray of shape (m, levels below + levels above)
        The lower bounds, then the upper bounds.

    Examples
    --------
    >>> rows = Lines(np.array([10.0]), np.array([[-3.0, 1.0, 2.0]]), np.zeros((1, 3)))
    >>> bounds(rows, below=Needed.of_ranks([0, 1]), above=Needed.of_ranks([1, 2]))
    array([[-inf,   7.,  12.,  11.]])
    """
    return np.concatenate([-upper_bounds(mirrored(lines), below), upper_bounds(lines, above)], axis=1)


def upper_bounds(lines: Lines, needed: Needed, limit: Array | None = None, widened: bool = True) -> Array:
    """Suprema of the upper regions of several levels.

    Parameters
    ----------
    lines : Lines
        Centred lines of n calibration rows for m test rows.
    needed : Needed
        For each bound, what weight of rows must score at least as high as the test row.
    limit : ndarray of shape (m,), default=None
        Labels above which nothing counts; None counts all.
    widened : bool, default=True
        Whether bounds are put out by what counts as a tie.

    Returns
    -------
    bounds : ndarray of shape (m, levels)
        Minus infinity where the region is empty, which takes ``gamma`` other than 2 and a level below 1/2.
    """
    centre = lines.centre[:, None]
    most = np.full_like(centre, np.inf) if limit is None else limit[:, None]
    if needed.n_levels == 0:
        return np.empty((centre.size, 0))
    with np.errstate(divide="ignore", invalid="ignore"):
        thresholds = lines.offset / (1.0 - lines.slope)
    slack = Slack.of(lines.centre, lines.rounding) if widened else Slack.none(lines.centre)
    general = np.flatnonzero(((lines.slope > 1.0 - SLOPE_TIE) | (lines.slope < -1.0)).any(axis=1))
    unsorted = thresholds[general]
    reached = np.where(np.isfinite(unsorted), np.abs(unsorted), 0.0)
    off = slack.take(general).put_out(reached) - reached
    reach = slack.put_out(needed.largest(thresholds))
    least, weights = needed.by_row(centre.size), needed.each(lines.slope.shape[1])
    for j, own, more in zip(general, unsorted, off, strict=True):
        furthest = float(most[j, 0] - lines.centre[j])
        reach[j] = _outermost(own, more, lines.offset[j], lines.slope[j], weights, least[j], furthest)
    return np.minimum(centre + reach, most)


def _outermost(
    thresholds: Array, off: Array, offset: Array, slope: Array, weights: Array, least: Array, limit: float
) -> Array:
    """The bounds of one test row some of whose rows score higher from their threshold on, at every label, or steeply.

    Each threshold is put out by itself: where scores part steeply, by less than ``off``, so that they tie at the end.
    """
    parallel = np.abs(slope - 1.0) <= SLOPE_TIE
    with np.errstate(divide="ignore", invalid="ignore"):
        off = np.sign(1.0 - slope) * off * np.minimum(2.0 / np.abs(1.0 - slope), 1.0)
        thresholds = thresholds + off
    falls, rises = ~parallel & (slope < 1.0), ~parallel & (slope > 1.0)
    # The weight falls only after a threshold up to which a row counts: the supremum is one of these, or the limit.
    labels = np.append(thresholds[falls & (thresholds < limit)], limit)
    count = weights[falls].sum() + weights[parallel & (offset >= 0.0)].sum()
    count = count - weight_up_to(thresholds[falls], weights[falls], labels, "left")
    count += weight_up_to(thresholds[rises], weights[rises], labels, "right")
    return np.max(np.where(count > least[:, None], labels, -np.inf), axis=1)
