r"""Nonconformity scores as lines in the candidate value, and prediction sets, bounds and counts from them, exactly.

With the candidate measured from the point where the test row's score is zero, :math:`t = y + a / b`, and all scores
divided by the test row's :math:`|b|`, the paper's set of equation 15 is

.. math:: |p_i + q_i t| \ge |t| .

A row *covers* the candidates for which this holds up to rounding (docs/theory.md, "What counts as a tie"). Regions are
where rows of more weight do than a level needs, p-values count these rows, and both come from the same endpoints,
except for the rounding of a value that is handed back.
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
# Ends of regions allow this share of what p-values allow for the rounding of the value, so that an end that is handed
# back is inside.
WIDENING = 0.5
# Slopes that differ from the test row's by less than this are equal to it: a ray has no end in the far distance.
SLOPE_TIE = 1e-12
# A row that ties by rounding alone, at distances from the centre of more than its score there over this, does not.
ROUNDED_SLOPE = 1e-9


class Rounding(NamedTuple):
    """Error of scores in units of the target, ``floor + share * t + block`` at distance t from the mean, (m,) each."""

    floor: Array | float = 0.0
    share: Array | float = 0.0
    block: Array | float = 0.0
    """How much predictions differ with the rows that are predicted at once."""

    def take(self, rows: Indices) -> Rounding:
        """For some of the test rows."""
        return Rounding(*(np.asarray(each)[rows] for each in self))


class Lines(NamedTuple):
    """Centred lines of n calibration rows for each of m test rows."""

    centre: Array
    """(m,): value at which the test row's own score is zero."""
    offset: Array
    """(m, n): p, the score of each row there, with its sign."""
    slope: Array
    """(m, n): q, its slope, in units of the test row's."""
    rounding: Rounding = Rounding()
    """Error of the scores by the arithmetic that they come from."""

    def normalised(self, calibration: Spread, test: Spread, variance: Array) -> Lines:
        r"""Lines of scores :math:`|e - c| / g` in the place of :math:`|e|`, where e is a standardised residual.

        .. math::
            \frac{g}{g_i} \left( p_i + q_i \sqrt{s}\, c - \sqrt{s}\, c_i \right), \qquad \frac{g}{g_i} q_i .

        A test row of infinite variance has its lines unchanged. Locations other than 0 are for gamma = 2.
        """
        known = np.isfinite(variance)
        deviation = np.sqrt(np.where(known, variance, 0.0))
        ratio = np.where(known, test.scale, np.nan)[:, None] / calibration.scale
        ratio[~known] = 1.0
        # the test row's score is zero at t = sqrt(s) c, the new centre
        moved = deviation * test.location
        offset = self.offset + self.slope * moved[:, None] - deviation[:, None] * calibration.location
        offset[(self.offset == 0.0) & (self.slope == 0.0)] = 0.0  # a row that determines a coefficient by itself
        floor, share, block = self.rounding
        locations = np.abs(test.location) + np.abs(calibration.location).max(initial=0.0)
        floor = floor + LABEL_ROUNDING * deviation * locations
        off = np.maximum(ratio.max(axis=1, initial=0.0), 1.0)
        own = Rounding(off * floor, off * share, off * block)
        return Lines(self.centre + moved, offset * ratio, self.slope * ratio, own)


def mirrored(lines: Lines) -> Lines:
    """Lines of the same rows with the signs of all values changed."""
    return lines._replace(centre=-lines.centre, offset=-lines.offset)


def normalised_residual_lines(
    alpha: Array, diagonal: Array, weights: Array, mean: Array, variance: Array, gamma: float
) -> Lines:
    r"""Lines of leave-one-out residuals over a root of their variance: equation (1) of docs/theory.md.

    .. math::
        p_i = s \alpha_i / d_i, \qquad q_i = -v_i / d_i, \qquad d_i = (s\, P_{ii} + v_i^2)^{1 - 1/\gamma} .

    A row whose variance is infinite (:math:`P_{ii} = 0`) and which has no weight in the prediction has score zero, the
    limit of ever vaguer priors. So has a test row whose variance is infinite: it ties with such rows, and all others
    score higher. For :math:`\gamma = 2` every :math:`|q_i| < 1`.

    ``alpha`` and ``diagonal`` P_ii are of the n calibration rows, ``weights`` v are (m, n), and ``mean`` and
    ``variance`` s are of the m test rows. gamma = 2 is the paper's equation 19, 1 the residual of a fit to all rows
    (equation 11), infinity the plain leave-one-out residual (equation 12).
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

    ``sizes`` are r, c, :math:`|D \alpha|` and :math:`\max |y|` of the training rows (docs/theory.md, "What counts as a
    tie"), ``weight`` is the length :math:`|D v|` of each test row's weights, and ``prior`` its prior variance.
    ``unequal`` is a factor for scores that are not in units of standard deviations.
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
    block = LABEL_ROUNDING * unequal * np.sqrt(prior) * residual
    return Rounding(np.where(known, floor, 0.0), np.where(known, share, 0.0), np.where(known, block, 0.0))


class Ties(NamedTuple):
    """What counts as a tie at distance t, ``floor + share * t`` and :data:`TIE` of the row's own score, (m, 1) each."""

    floor: Array
    share: Array

    def take(self, rows: Indices | int) -> Ties:
        """For some of the test rows."""
        return Ties(self.floor[rows], self.share[rows])


def ties(lines: Lines, widening: float) -> Ties:
    """What counts as a tie, with a share of what the rounding of a value allows."""
    floor, share, block = lines.rounding
    floor = widening * LABEL_ROUNDING * np.abs(lines.centre) + floor + widening * block
    share = np.full(lines.centre.size, widening * (TIE + LABEL_ROUNDING)) + share
    return Ties(floor[:, None], share[:, None])


def _general(slope: Array, tie: Ties) -> Indices:
    """Test rows some of whose rows may cover a value far out, so that regions may have holes and rays."""
    return np.flatnonzero(np.abs(slope).max(axis=1, initial=0.0) >= 1.0 - tie.share[:, 0] - SLOPE_TIE)


def _reaches(lines: Lines, tie: Ties) -> tuple[Array, Array]:
    """How far below and above the centre rows cover, (m, n) each, where all slopes are less than the test row's."""
    # equation 16 of the paper: a row covers t from -(p + e0) / (1 - e1 + q) to (p + e0) / (1 - e1 - q), where the line
    # is turned so that p >= 0
    reach = np.abs(lines.offset)
    reach *= 1.0 + TIE
    reach += tie.floor
    turned = np.copysign(1.0, lines.offset)
    turned *= lines.slope
    steepness = 1.0 - tie.share
    with np.errstate(divide="ignore", invalid="ignore"):
        above = reach / (steepness - turned)
        below = reach / (steepness + turned)
        tied = tie.floor > np.abs(lines.offset)
        if tied.any():  # rows that tie at the centre, and so as far out as rounding lets them on either side
            other = np.where(tied, tie.floor - np.abs(lines.offset), -np.inf)
            above = np.maximum(above, other / (steepness + turned))
            below = np.maximum(below, other / (steepness - turned))
    return below, above


def _crossings(offset: Array, slope: Array, tie: Ties) -> tuple[Array, Array]:
    """Where rows leave the test row's score on the side t >= 0, and where they return; infinite where they do not."""
    # equation 16, and 17 for parallel rows; the sign of the line does not matter: p >= 0
    p = np.abs(offset)
    q = np.where(offset < 0.0, -slope, slope)
    q = np.where(np.abs(np.abs(q) - 1.0) < SLOPE_TIE, np.sign(q), q)
    steepness = 1.0 - tie.share
    goes = q < steepness
    # a row that is parallel to the test row's ties far out, by rounding alone: that counts if it ties at 0 as well, or
    # not too far out
    returns = (q < -1.0) | (q < -steepness - ROUNDED_SLOPE) | ((q < -steepness) & (p <= tie.floor))
    with np.errstate(divide="ignore", invalid="ignore"):
        # p + q t >= t until (p + e0) / (1 - e1 - q)
        leave = np.where(goes, ((1.0 + TIE) * p + tie.floor) / (steepness - q), np.inf)
        # a row that ties at 0 does not leave before (e0 - p) / (1 - e1 + q)
        tied = goes & ~returns & (tie.floor > p)
        later = np.where(tied, (tie.floor - p) / np.maximum(steepness + q, SLOPE_TIE), 0.0)
        # -(p + q t) >= t again from (p - e0) / (-1 + e1 - q) on
        enter = np.where(returns, np.maximum((1.0 - TIE) * p - tie.floor, 0.0) / (-steepness - q), np.inf)
    leave = np.maximum(leave, later)
    throughout = (enter <= leave) & returns | (p == 0.0) & (np.abs(q) >= 1.0)  # rows that cover the whole side
    return np.where(throughout, np.inf, leave), np.where(throughout, np.inf, enter)


def _single_pieces(lines: Lines, tie: Ties, needed: Needed) -> Array:
    """Ends of regions, (m, 2, levels), where all slopes are less than the test row's."""
    below, above = _reaches(lines, tie)
    centre = lines.centre[:, None]
    return np.stack([centre - needed.largest(below), centre + needed.largest(above)], axis=1)


def ends(lines: Lines, needed: Needed, sign: int) -> Array:
    """Ends of regions, (m, 2, levels): of hulls for sign 0, else of upper regions of values times the sign."""
    if sign == 0:
        return hulls(lines, needed)
    if sign < 0:
        return -ends(mirrored(lines), needed, 1)[:, ::-1]
    upper = upper_bounds(lines, needed)
    return np.stack([np.full_like(upper, -np.inf), upper], axis=1)


def hulls(lines: Lines, needed: Needed) -> Array:
    """Convex hulls of the regions of several levels: lower and upper ends, (m, 2, levels)."""
    tie = ties(lines, WIDENING)
    ends = _single_pieces(lines, tie, needed)
    for j in _general(lines.slope, tie):
        for level in range(needed.n_levels):
            pieces = _pieces(lines, tie, needed, j, level)
            ends[j, :, level] = pieces[0, 0], pieces[-1, 1]
    return ends


def regions(lines: Lines, needed: Needed) -> list[Array]:
    """Regions of one level, each (pieces, 2): sorted, disjoint, closed intervals, outermost ends maybe infinite."""
    tie = ties(lines, WIDENING)
    found = list(_single_pieces(lines, tie, needed).transpose(0, 2, 1))
    for j in _general(lines.slope, tie):
        found[j] = _pieces(lines, tie, needed, j, 0)
    return found


def _pieces(lines: Lines, tie: Ties, needed: Needed, j: int, level: int) -> Array:
    """Region of one test row at one level, by sweeping both sides of its centre: Algorithm 1 of the paper."""
    least = needed.by_row(lines.centre.size)[j, level]
    if least < 0.0:
        return np.array([[-np.inf, np.inf]])
    weights = needed.each(lines.slope.shape[1])
    own = tie.take(j)
    above = _side(*_crossings(lines.offset[j], lines.slope[j], own), weights, least)
    below = -_side(*_crossings(lines.offset[j], -lines.slope[j], own), weights, least)[::-1, ::-1]
    # Both sides have a piece at 0: joined, they are one.
    middle = [[below[-1, 0], above[0, 1]]]
    return lines.centre[j] + np.concatenate([below[:-1], middle, above[1:]])


def _side(leave: Array, enter: Array, weights: Array, least: float) -> Array:
    """Pieces of {t >= 0 : rows of more weight than ``least`` cover t}, the first of them at 0."""
    t = np.unique(np.concatenate([leave, enter]))
    t = t[np.isfinite(t)]
    total = float(weights.sum())
    entered = total + weight_up_to(enter, weights, t, "right")
    at, after = (entered - weight_up_to(leave, weights, t, side) for side in ("left", "right"))
    before = np.append(total, after)[: t.size]
    starts = np.append(0.0, t[(before <= least) & (at > least)])
    ends = t[(at > least) & (after <= least)]
    return np.column_stack([starts, ends if ends.size == starts.size else np.append(ends, np.inf)])


def _thresholds(lines: Lines, tie: Ties) -> tuple[Array, Mask, Mask, Mask]:
    """Values where rows score as high as the test row; and which score at least as high below, above, everywhere."""
    # p + q t >= t - e0 - e1 |t| up to the threshold t = (p + e0) / (1 - q -+ e1), or from it on where q > 1
    reach = lines.offset + TIE * np.abs(lines.offset) + tie.floor
    steep = lines.slope >= 1.0 - tie.share - SLOPE_TIE
    rises = lines.slope > 1.0 + tie.share + SLOPE_TIE
    share = np.copysign(tie.share, reach)
    share[rises] *= -1.0
    with np.errstate(divide="ignore", invalid="ignore"):
        thresholds = reach / (1.0 - share - lines.slope)
    # a row that is parallel to the test row's up to rounding scores higher at every value, or at none
    always = steep & ~rises & (reach >= 0.0)
    return lines.centre[:, None] + thresholds, ~steep, rises, always


def upper_bounds(lines: Lines, needed: Needed) -> Array:
    """Suprema of the upper regions of several levels, (m, levels).

    They are minus infinity where the region is empty, which takes ``gamma`` other than 2 and a level below 1/2.
    """
    if needed.n_levels == 0:
        return np.empty((lines.centre.size, 0))
    thresholds, falls, rises, always = _thresholds(lines, ties(lines, WIDENING))
    general = np.flatnonzero(~falls.all(axis=1))
    unsorted = thresholds[general]
    found = needed.largest(thresholds)
    least = needed.by_row(lines.centre.size)
    weights = needed.each(lines.slope.shape[1])
    for j, own in zip(general, unsorted, strict=True):
        # the weight falls only after a threshold up to which a row counts: the supremum is one of these, or infinite
        values = np.append(own[falls[j]], np.inf)
        count = weights[falls[j] | always[j]].sum() - weight_up_to(own[falls[j]], weights[falls[j]], values, "left")
        count += weight_up_to(own[rises[j]], weights[rises[j]], values, "right")
        found[j] = np.max(np.where(count > least[j][:, None], values, -np.inf), axis=1)
    return found


def counts(lines: Lines, y: Array, signed: bool = False, weights: Array | None = None) -> tuple[Array, Array]:
    """Weight of the rows that score at least as high as each test row, and higher by more than a tie.

    With ``signed``, scores keep their signs. Where nothing is known of the target, signs mean nothing: all rows tie.
    """
    if signed:
        at_least = _score_above(lines, y)
        greater = ~_score_above(mirrored(lines), -y)
    else:
        at_least, tied, _ = _compared(lines, y)
        greater = at_least & ~tied
    each = np.ones(lines.offset.shape[1]) if weights is None else weights
    return at_least @ each, greater @ each


def _compared(lines: Lines, y: Array) -> tuple[Mask, Mask, Array]:
    """Whether rows cover values, by the inequality of regions; whether they tie there; and by how much they differ."""
    tie = ties(lines, 1.0)
    t = (y - lines.centre)[:, None]
    slack = np.abs(lines.offset)
    slack *= TIE
    slack += tie.floor + tie.share * np.abs(t)
    gap = lines.slope * t
    gap += lines.offset
    gap = np.abs(gap, out=gap)
    gap -= np.abs(t)
    covers = gap >= -slack
    some = _general(lines.slope, tie)
    if some.size:
        own = tie.take(some)
        t = t[some]
        leave, enter = _crossings(lines.offset[some], np.copysign(1.0, t) * lines.slope[some], own)
        covers[some] = (np.abs(t) <= leave) | (np.abs(t) >= enter)
    return covers, covers & (gap <= slack), np.abs(gap, out=gap)


def _score_above(lines: Lines, y: Array) -> Mask:
    """Whether rows score at least as high as each test row, with signs, (m, n)."""
    thresholds, falls, rises, always = _thresholds(lines, ties(lines, 1.0))
    value = y[:, None]
    unknown = (lines.slope == COVERS_ALL).any(axis=1, keepdims=True)
    return unknown | always | (falls & (value <= thresholds)) | (rises & (value >= thresholds))


def tied_rows(lines: Lines, y: Array) -> tuple[Indices, Indices]:
    """Number of rows that tie with each test row at its value, and the nearest of them, (m,) each."""
    _, tied, gap = _compared(lines, y)
    return tied.sum(axis=1), np.where(tied, gap, np.inf).argmin(axis=1)
