r"""Which of very many ranked rows can decide a region, and which need not be looked at.

In the notation of :func:`conformal_gp.conformal.lines.normalised_residual_lines`, row i covers the candidates up to its
*reach* :math:`s |\alpha_i| / (d_i \mp v_i)` on either side of the mean, :math:`d_i = (s C_{ii} + v_i^2)^e`,
:math:`e = 1 - 1/\gamma`. Weights are small when rows are many: let :math:`|v_i| \le c_i \omega`, with :math:`c_i`
known for each row and :math:`\omega` for each test row. With the *base score* :math:`r_i = |\alpha_i| / C_{ii}^e`, and

.. math::
    \eta = \omega s^{-e} \max_i c_i C_{ii}^{-e}, \qquad \kappa = \omega s^{-1/2} \max_i c_i C_{ii}^{-1/2}, \qquad
    A = \frac{1}{(1 + \kappa^2)^e + \eta}, \quad B = \frac{1}{1 - \eta},

every reach lies between :math:`A` and :math:`B` times :math:`s^{1/\gamma} r_i`. Rows of large :math:`c_i` are few; call
them *loud*, leave them out of the maxima and always look at them. Let :math:`r_1 \ge r_2 \ge \dots` be the base scores
of the others, the *quiet* rows, and L the number of loud ones.

**Lemma.** *Let U be the quiet rows with* :math:`A r_i > B r_{k-L}` *(none, if* :math:`k \le L` *) and N those with*
:math:`B r_i < A r_k`. *The region of rank k is the region of rank* :math:`k - |U|` *among the rows outside U and N.*

*Proof.* Measure t in units of :math:`s^{1/\gamma}`. For :math:`|t| \le A r_k` at least k quiet rows cover t, none of
them in N: t is in both regions. For :math:`|t| > B r_{k-L}` fewer than k - L quiet rows reach t, U counted whether it
does or not; with all loud rows that is fewer than k: t is in neither. In between, all of U covers t and none of N does.
∎ Nothing was assumed of the loud rows, so the lemma holds for unions and rays as well as for intervals.

With m features and l rows, :math:`c_i \omega` is the square root of two leverages, of size m / l each, so the rows that
remain number some m, whatever l: the selection among a million rows costs what it costs among thousands.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from conformal_gp.conformal.pvalues import LABEL_ROUNDING

Array = NDArray[np.float64]
Rows = NDArray[np.int64]

# Bounds beyond this are not used: all rows are looked at.
LARGEST_SLOPE = 0.5
# Bounds are widened by this share of themselves, and by this share of the largest score, to be safe from rounding (and,
# for p-values, from what counts as a tie).
MARGIN = 1e-6
ABSOLUTE_MARGIN = 1e-12
TINY = np.finfo(float).tiny


class Windows(NamedTuple):
    """For each test row, a stretch of the quiet rows in order of descending base score."""

    start: Rows
    """(k, ...): rows before it cover every candidate in question."""
    stop: Rows
    """(k, ...): rows from it on cover none."""


class Ranking:
    """Ranked rows in order of their base scores.

    Parameters
    ----------
    alpha, diagonal : ndarray of shape (n,)
        Weighted residuals and inverse leave-one-out variances.
    bound : ndarray of shape (n,)
        c, such that a row's weight in a prediction of size ω is at most c ω.
    gamma : float
        Root of the variance in the nonconformity measure.

    Attributes
    ----------
    loud : ndarray of int
        Rows that are always looked at.
    quiet : ndarray of int
        The others, in order of descending base score.
    """

    def __init__(self, alpha: Array, diagonal: Array, bound: Array, gamma: float):
        self._power = 1.0 - 1.0 / gamma
        spread = diagonal**self._power
        base, slope = np.abs(alpha) / spread, bound / spread
        self.loud = _loud(slope, typical=float(np.sqrt(np.mean((bound * spread / diagonal) ** 2))))
        quiet = np.delete(np.arange(alpha.size), self.loud)
        self.quiet = quiet[np.argsort(-base[quiet], kind="stable")]
        self._minus_base = -base[self.quiet]  # ascending, for searching
        self._slope = float(slope[quiet].max(initial=0.0))
        self._root_slope = float((bound[quiet] / np.sqrt(diagonal[quiet])).max(initial=0.0))
        self._slack = ABSOLUTE_MARGIN * float(base.max(initial=0.0))

    def _factors(self, variance: Array, size: Array) -> tuple[Array, Array]:
        """A and B of each test row; 0 and infinity where they would be of no use."""
        eta = self._slope * size / variance**self._power
        kappa = self._root_slope * size / np.sqrt(variance)
        useful = eta <= LARGEST_SLOPE
        lower = np.where(useful, (1.0 - MARGIN) / ((1.0 + kappa**2) ** self._power + eta), 0.0)
        upper = np.where(useful, (1.0 + MARGIN) / (1.0 - np.minimum(eta, LARGEST_SLOPE)), np.inf)
        return lower, upper

    def _between(self, low: Array, high: Array) -> Windows:
        """Quiet rows with base scores from ``low`` to ``high``."""
        start = np.searchsorted(self._minus_base, -(high + self._slack), side="left")
        stop = np.searchsorted(self._minus_base, -(low - self._slack), side="right")
        return Windows(start, np.maximum(start, stop))

    def for_rank(self, rank: int, variance: Array, size: Array) -> Windows:
        """Rows that can decide the region of a rank of at least 1.

        Parameters
        ----------
        rank : int
            How many rows must cover a label.
        variance, size : ndarray of shape (k,)
            s and ω of each test row.

        Returns
        -------
        windows : Windows
            With the loud rows, all that must be looked at; ``start`` is to be taken off the rank.
        """
        lower, upper = self._factors(variance, size)
        with np.errstate(divide="ignore"):
            ratio = upper / lower
        return self._between(self._base(rank) / ratio, max(self._base(rank - self.loud.size), TINY) * ratio)

    def _base(self, place: int) -> float:
        """Base score at a place among the quiet, counted from 1; infinite before the first, 0 after the last."""
        if place < 1:
            return np.inf
        return -float(self._minus_base[place - 1]) if place <= self._minus_base.size else 0.0

    def for_label(self, y: Array, mean: Array, variance: Array, size: Array) -> Windows:
        """Rows whose score may or may not reach that of the test row with label ``y``.

        Parameters
        ----------
        y, mean, variance, size : ndarray of shape (k,)
            Label, mean, s and ω of each test row.

        Returns
        -------
        windows : Windows
            With the loud rows, all that must be looked at; the rows before score higher, by more than a tie.
        """
        lower, upper = self._factors(variance, size)
        unit = variance ** (1.0 - self._power)
        distance, rounding = np.abs(y - mean), 2.0 * LABEL_ROUNDING * np.abs(y)
        with np.errstate(divide="ignore"):
            high = np.maximum((distance + rounding) / unit, TINY) / lower
        return self._between((distance - rounding) / unit / upper, high)


def _loud(slope: Array, typical: float) -> Rows:
    """Rows to set apart, so that those and the ones left undecided by the others' largest slope are fewest.

    Undecided is about every row whose base score is within ``slope * typical`` of the deciding one, as a share of it.
    """
    order = np.argsort(-slope, kind="stable")
    cost = np.arange(slope.size) + slope.size * typical * slope[order]
    return order[: int(np.argmin(cost))] if slope.size else order
