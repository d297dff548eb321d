r"""Nonconformity scores as lines in the candidate value.

Full conformal prediction compares, for a candidate value y of a test row, the score :math:`|a_i + b_i y|` of each
training row with the test row's own, :math:`|a + b y|`. With the candidate measured from the point where the test
row's score is zero, :math:`t = y + a / b`, and all scores divided by :math:`|b|`, the comparison is

.. math:: |p_i + q_i t| \ge |t| .

These *centred lines* are all that regions and p-values need, whichever method they come from. Scores tie that differ by
no more than the rounding errors that they carry, which :func:`rounding` bounds (docs/theory.md, "What counts as a
tie"). A tie counts in full for p-values; ends of regions are widened by :data:`WIDENING` of what is for the value's own
rounding, so that an end that is handed back as a value is inside.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from conformal_gp.arrays import Array, Mask
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
