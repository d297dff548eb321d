r"""Nonconformity scores as lines in the candidate label.

Full conformal prediction compares, for a candidate label y of a test row, the score :math:`|a_i + b_i y|` of each
training row with the test row's own, :math:`|a + b y|`. With the candidate measured from the point where the test
row's score is zero, :math:`t = y + a / b`, and all scores divided by :math:`|b|`, the comparison is

.. math:: |p_i + q_i t| \ge |t| .

These *centred lines* are all that regions and p-values need, whichever method they come from.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from conformal_gp._compiled import compiled
from conformal_gp.conformal.ties import Rounding
from conformal_gp.types import Array, Rows

# Slope of all rows, their offsets zero, where nothing is known of a label: every row covers every candidate. It stands
# for infinity: larger than any slope.
COVERS_ALL = 1e100


class Lines(NamedTuple):
    """Centred lines of n ranked rows for each of m test rows."""

    centre: Array
    """(m,): label at which the test row's own score is zero."""
    offset: Array
    """(m, n): p, the score of each row there, with its sign."""
    slope: Array
    """(m, n): q, its slope, in units of the test row's."""
    rounding: Rounding | None = None
    """How far the arithmetic that they come from puts scores off; None where that is less than counts as a tie."""

    def take(self, rows: Rows) -> Lines:
        """Lines of some of the test rows."""
        centre, offset, slope, rounding = self
        if rounding is not None:
            rounding = Rounding(rounding.floor[rows], rounding.share[rows], rounding.most)
        return Lines(centre[rows], offset[rows], slope[rows], rounding)


def centred_lines(a: Array, b: Array, a_test: Array, b_test: Array) -> Lines:
    """Centred form of scores |a + b y| of ranked rows against |a_test + b_test y|.

    Parameters
    ----------
    a, b : ndarray of shape (m, n)
        Lines of the ranked rows, for each test row.
    a_test, b_test : ndarray of shape (m,)
        Line of each test row; ``b_test`` may not be zero.

    Returns
    -------
    lines : Lines
        The same comparison in centred form.
    """
    centre = -a_test / b_test
    return Lines(centre, (a + b * centre[:, None]) / b_test[:, None], b / b_test[:, None])


def normalised_residual_lines(
    alpha: Array, diagonal: Array, weights: Array, mean: Array, variance: Array, gamma: float
) -> Lines:
    r"""Lines of leave-one-out residuals over a root of their variance: the paper's equation 19.

    In the notation of docs/theory.md, the score of training row i with candidate label :math:`\mu + t` is
    :math:`|\alpha_i - v_i t / s| / M_{ii}^{1 - 1/\gamma}` with :math:`M_{ii} = P_{ii} + v_i^2 / s`, and the test
    row's is :math:`(|t| / s) / s^{-(1 - 1/\gamma)}`. Their ratio leaves

    .. math::
        p_i = s \alpha_i / d_i, \qquad q_i = -v_i / d_i, \qquad d_i = (s\, P_{ii} + v_i^2)^{1 - 1/\gamma} .

    A row whose variance is infinite (:math:`P_{ii} = 0`) and which has no weight in the prediction has score zero, the
    limit of ever vaguer priors. The centre is the mean :math:`\mu`; for :math:`\gamma = 2` every :math:`|q_i| < 1`.

    Parameters
    ----------
    alpha, diagonal : ndarray of shape (n,)
        Weighted residuals and inverse leave-one-out variances of the ranked rows.
    weights : ndarray of shape (m, n)
        Weight v of each ranked row's label in each test row's mean.
    mean, variance : ndarray of shape (m,)
        Mean and variance of each test row's label; where the variance is infinite the region is the whole line.
    gamma : float
        Root of the variance: 1 is the plain residual of a fit to all rows (the paper's equation 11), infinity the plain
        leave-one-out residual (equation 12).

    Returns
    -------
    lines : Lines
        The centred lines.
    """
    offset = np.empty(weights.shape)
    slope = np.empty(weights.shape)
    _fill(alpha, diagonal, weights, variance, 1.0 - 1.0 / gamma, offset, slope)
    return Lines(mean, offset, slope)


@compiled(error_model="numpy")
def _fill(
    alpha: Array,
    diagonal: Array,
    weights: Array,
    variance: Array,
    power: float,
    offset: Array,
    slope: Array,
) -> None:  # pragma: no cover
    n = alpha.size
    for j in range(variance.size):
        s = variance[j]
        v, p, q = weights[j], offset[j], slope[j]
        if s == np.inf:
            p[:] = 0.0
            q[:] = COVERS_ALL
        elif power == 0.5:
            for i in range(n):
                r = 1.0 / np.sqrt(s * diagonal[i] + v[i] * v[i])
                p[i] = s * alpha[i] * r
                q[i] = -v[i] * r
        elif power == 0.0:
            for i in range(n):
                p[i] = s * alpha[i]
                q[i] = -v[i]
        else:
            for i in range(n):
                r = (s * diagonal[i] + v[i] * v[i]) ** -power
                p[i] = s * alpha[i] * r
                q[i] = -v[i] * r
    for alone in np.flatnonzero(diagonal == 0.0):
        for j in range(variance.size):
            if abs(weights[j, alone]) < 1e-9 and variance[j] < np.inf:
                offset[j, alone] = slope[j, alone] = 0.0
