r"""Nonconformity scores as lines in the candidate value, and prediction sets, bounds and counts from them, exactly.

Full conformal prediction compares, for a candidate value y of a test row, the score :math:`|a_i + b_i y|` of each
training row with the test row's own, :math:`|a + b y|`. With the candidate measured from the point where the test
row's score is zero, :math:`t = y + a / b`, and all scores divided by :math:`|b|`, the comparison is

.. math:: |p_i + q_i t| \ge |t| .

These *centred lines* are all that regions and p-values need, whichever method they come from. A row *covers* a
candidate where this holds, and the region is where rows of more weight do than its level needs. Every row covers t = 0,
so each side of 0 is walked outwards: where all |q| < 1 ends are selected, otherwise the points at which rows leave and
return are sorted and swept (docs/theory.md, "From lines to regions"). One-sided bounds compare the *signed* score
:math:`p_i + q_i t` with the test row's own, t: the *upper region* of rank k holds the values that at least k rows score
at least as high as, and the upper bound is its supremum (docs/theory.md). Lower regions are upper regions
of the values with their signs changed.

Scores tie that differ by
no more than the rounding errors that they carry, which :func:`rounding` bounds (docs/theory.md, "What counts as a
tie"). A tie counts in full for p-values; ends of regions are widened by :data:`WIDENING` of what is for the value's own
rounding, so that an end that is handed back as a value is inside.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from conformal_gp.arrays import Array, Indices, Mask
from conformal_gp.conformal.levels import Needed, weight_up_to
from conformal_gp.targets.difficulty import Spread

# Slope of rows, their offsets zero, where nothing is known of a target: they cover every candidate. It stands for
# infinity: larger than any slope.
COVERS_ALL = 1e100

# Scores that differ by less than this share of their size are tied in any case.
TIE = 2e-11
# A value is known to rounding only, and so then is its distance from the mean, and the score of a row that it moves.
LABEL_ROUNDING = 8.0 * np.finfo(float).eps
# Ends of regions are where scores tie with this share of what p-values allow for the rounding of the value itself.
WIDENING = 0.5
# Slopes that differ from the test row's by less than this are equal to it: a ray has no end in the far distance.
SLOPE_TIE = 1e-12
# A row that ties by rounding alone, at distances from the centre of more than its score there over this, does not.
ROUNDED_SLOPE = 1e-9


class Rounding(NamedTuple):
    """Error of scores in units of the target: ``floor + share * t + beside`` at distance t from the mean."""

    floor: Array
    """(m,)"""
    share: Array
    """(m,)"""
    beside: Array
    """(m,): how much predictions differ with the rows that are predicted at once."""


class Lines(NamedTuple):
    """Centred lines of n calibration rows for each of m test rows."""

    centre: Array
    """(m,): value at which the test row's own score is zero."""
    offset: Array
    """(m, n): p, the score of each row there, with its sign."""
    slope: Array
    """(m, n): q, its slope, in units of the test row's."""
    rounding: Rounding | None = None
    """Error of the scores by the arithmetic that they come from; None where that is less than counts as a tie."""

    def normalised(self, calibration: Spread, test: Spread, variance: Array) -> Lines:
        r"""Lines of scores :math:`|e - c| / g` in the place of :math:`|e|`, where e is a standardised residual.

        The test row's score is zero at :math:`t = \sqrt{s}\, c`, the new centre, and row i's line becomes

        .. math::
            \frac{g}{g_i} \left( p_i + q_i \sqrt{s}\, c - \sqrt{s}\, c_i \right), \qquad \frac{g}{g_i} q_i .

        A test row of infinite variance has its lines unchanged: its region is the whole line.

        Parameters
        ----------
        calibration, test : Spread
            Of the calibration rows, (n,), and of the test rows, (m,). Locations other than 0 are for gamma = 2.
        variance : ndarray of shape (m,)
            s, the variance of each test row's target.
        """
        known = np.isfinite(variance)
        deviation = np.sqrt(np.where(known, variance, 0.0))
        ratio = np.where(known, test.scale, np.nan)[:, None] / calibration.scale
        ratio[~known] = 1.0
        # t = sqrt(s) c is the new centre
        moved = deviation * test.location
        # p + q sqrt(s) c - sqrt(s) c_i, then times g / g_i
        offset = self.offset + self.slope * moved[:, None] - deviation[:, None] * calibration.location
        offset[(self.offset == 0.0) & (self.slope == 0.0)] = 0.0  # a row that determines a coefficient by itself
        floor, share, beside = self.rounding or Rounding(*np.zeros((3, known.size)))
        floor = floor + LABEL_ROUNDING * deviation * (
            np.abs(test.location) + np.abs(calibration.location).max(initial=0.0)
        )
        off = np.maximum(ratio.max(axis=1, initial=0.0), 1.0)
        return Lines(
            self.centre + moved, offset * ratio, self.slope * ratio, Rounding(off * floor, off * share, off * beside)
        )


def ties(lines: Lines) -> tuple[Array, Array]:
    r"""What counts as a tie at the ends of regions: :math:`\epsilon_0` and :math:`\epsilon_1` of each test row, (m,).

    Scores tie that differ by :math:`\epsilon_0 + \epsilon_1 |t|` at distance t from the centre, and by :data:`TIE` of
    the row's own score there. A value's own rounding is a part of both.
    """
    constant = WIDENING * LABEL_ROUNDING * np.abs(lines.centre)
    share = np.full(lines.centre.size, WIDENING * (TIE + LABEL_ROUNDING))
    if lines.rounding is not None:
        constant = constant + lines.rounding.floor + WIDENING * lines.rounding.beside
        share = share + lines.rounding.share
    return constant, share


def normalised_residual_lines(
    alpha: Array, diagonal: Array, weights: Array, mean: Array, variance: Array, gamma: float
) -> Lines:
    r"""Lines of leave-one-out residuals over a root of their variance: the paper's equation 19.

    In the notation of docs/theory.md, the score of training row i with candidate value :math:`\mu + t` is
    :math:`|\alpha_i - v_i t / s| / M_{ii}^{1 - 1/\gamma}` with :math:`M_{ii} = P_{ii} + v_i^2 / s`, and the test
    row's is :math:`(|t| / s) / s^{-(1 - 1/\gamma)}`. Their ratio leaves

    .. math::
        p_i = s \alpha_i / d_i, \qquad q_i = -v_i / d_i, \qquad d_i = (s\, P_{ii} + v_i^2)^{1 - 1/\gamma} .

    A row whose variance is infinite (:math:`P_{ii} = 0`) and which has no weight in the prediction has score zero, the
    limit of ever vaguer priors. So has a test row whose variance is infinite: it ties with such rows, and all others
    score higher. The centre is the mean :math:`\mu`; for :math:`\gamma = 2` every :math:`|q_i| < 1`.

    Parameters
    ----------
    alpha, diagonal : ndarray of shape (n,)
        Weighted residuals and inverse leave-one-out variances of the calibration rows.
    weights : ndarray of shape (m, n)
        Weight v of each calibration row's target in each test row's mean.
    mean, variance : ndarray of shape (m,)
        Mean and variance of each test row's target; where the variance is infinite the region is the whole line.
    gamma : float
        Root of the variance: 1 is the plain residual of a fit to all rows (the paper's equation 11), infinity the plain
        leave-one-out residual (equation 12).

    """
    unknown = np.isinf(variance)
    s = np.where(unknown, 1.0, variance)[:, None]
    slope = weights * weights  # s P_ii + v_i^2
    slope += s * diagonal
    with np.errstate(divide="ignore", invalid="ignore"):
        if gamma == 2.0:  # 1 / d
            np.divide(1.0, np.sqrt(slope, out=slope), out=slope)
        else:
            np.power(slope, 1.0 / gamma - 1.0, out=slope)
        offset = slope * alpha  # p_i = s alpha_i / d_i
        offset *= s
        slope *= weights  # q_i = -v_i / d_i
        np.negative(slope, out=slope)
    alone = diagonal == 0.0
    if alone.any():
        zero = alone & (np.abs(weights) < 1e-9)  # no weight in a prediction, up to rounding
        offset[zero] = slope[zero] = 0.0
    if unknown.any():
        offset[unknown] = 0.0
        slope[unknown] = _undetermined_slope(alone)
    return Lines(mean, offset, slope)


def _undetermined_slope(alone: Mask) -> Array:
    """Slopes for a test row of infinite variance: it scores 0, as each row does that alone determines a coefficient."""
    return np.where(alone, 1.0, COVERS_ALL)


def whole_lines(n_new: int, alone: Mask) -> Lines:
    """Lines for test rows whose mean the training rows do not determine: every value is in their regions."""
    slope = np.tile(_undetermined_slope(alone), (n_new, 1))
    return Lines(np.zeros(n_new), np.zeros(slope.shape), slope)


def rounding(
    sizes: tuple[float, float, float, float],
    weight: Array,
    variance: Array,
    prior: Array,
    unequal: Array | float = 1.0,
) -> Rounding:
    r"""Error of the scores of some test rows and of the rows that they are compared with.

    Parameters
    ----------
    sizes : tuple of four floats
        r, c, :math:`|D \alpha|` and :math:`\max |y|` of the training rows (docs/theory.md, "What counts as a tie").
    weight : ndarray of shape (m,)
        Length :math:`|D v|` of the vector of weights of each test row.
    variance, prior : ndarray of shape (m,)
        Variance of each test row's target, nothing being off where it is infinite; and its prior variance.
    unequal : ndarray of shape (m,), default=1.0
        A factor for scores that are not in units of standard deviations.
    """
    relative, precision, residual, label = sizes
    known = np.isfinite(variance)
    s = np.where(known, variance, 1.0)
    # the test row's own inverse variance is 1/s; with its value D alpha becomes longer by t (sqrt(prior) + |D v|) / s
    unit = 14.0 * np.finfo(float).eps * unequal  # the formula above is multiplied by 14
    # sqrt(s) eps (sqrt(r) |D alpha| + sqrt(c) max |y|)
    by_matrix = unit * np.sqrt(np.maximum(s * relative, prior))
    floor = by_matrix * residual + unit * np.sqrt(np.maximum(s * precision, 1.0)) * label
    share = by_matrix * (np.sqrt(prior) + weight) / s
    beside = LABEL_ROUNDING * unequal * np.sqrt(prior) * residual
    return Rounding(np.where(known, floor, 0.0), np.where(known, share, 0.0), np.where(known, beside, 0.0))


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
