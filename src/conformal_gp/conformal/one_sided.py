r"""From lines to one-sided bounds: the comparison of signed scores.

Without the absolute values, the centred lines of :mod:`conformal_gp.conformal.lines` compare the *signed* score
:math:`p_i + q_i t` of a calibration row with the test row's own, t. The signed score is the leave-one-out residual,
label minus prediction, over a root of its variance; it is large where a label is higher than the other rows expect.

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
bounds count scores that tie up to rounding as equal (:func:`conformal_gp.conformal.lines.ties`).
"""

from __future__ import annotations

import numpy as np

from conformal_gp.arrays import Array
from conformal_gp.conformal.lines import TIE, Lines, ties
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


def upper_bounds(lines: Lines, needed: Needed, limit: Array | None = None) -> Array:
    """Suprema of the upper regions of several levels.

    Parameters
    ----------
    lines : Lines
        Centred lines of n calibration rows for m test rows.
    needed : Needed
        For each bound, what weight of rows must score at least as high as the test row.
    limit : ndarray of shape (m,), default=None
        Labels above which nothing counts; None counts all.

    Returns
    -------
    bounds : ndarray of shape (m, levels)
        Minus infinity where the region is empty, which takes ``gamma`` other than 2 and a level below 1/2.
    """
    centre = lines.centre[:, None]
    most = np.full_like(centre, np.inf) if limit is None else limit[:, None]
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
        furthest = float(most[j, 0] - lines.centre[j])
        found[j] = _outermost(own, reach[j], lines.slope[j], share[j], weights, least[j], furthest)
    return np.minimum(centre + found, most)


def _outermost(
    thresholds: Array, reach: Array, slope: Array, share: float, weights: Array, least: Array, limit: float
) -> Array:
    """The bounds of one test row some of whose rows score higher from their threshold on, or at every label."""
    # a row that is parallel to the test row's up to rounding scores higher at every label, or at none
    parallel = np.abs(slope - 1.0) <= share + SLOPE_TIE
    falls = ~parallel & (slope < 1.0)
    rises = ~parallel & (slope > 1.0)
    # The weight falls only after a threshold up to which a row counts: the supremum is one of these, or the limit.
    labels = np.append(thresholds[falls & (thresholds < limit)], limit)
    count = weights[falls].sum() + weights[parallel & (reach >= 0.0)].sum()
    count = count - weight_up_to(thresholds[falls], weights[falls], labels, "left")
    count += weight_up_to(thresholds[rises], weights[rises], labels, "right")
    return np.max(np.where(count > least[:, None], labels, -np.inf), axis=1)
