"""Isotonic recalibration of Gaussian process regression (Kuleshov, Fenner and Ermon, 2018)."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.stats import norm
from sklearn.utils._param_validation import StrOptions

from conformal_gp.comparators.recalibration import INTERVAL_RULES, extended_scores, interval_levels
from conformal_gp.comparators.split import SplitRegressor

Array = NDArray[np.float64]

# Quantiles of the extended scores stay within 4.75 standard deviations of the mean.
FARTHEST = 1e-6


class IsotonicRecalibration(SplitRegressor):
    r"""Quantiles of a Gaussian process, moved to where the calibration rows say they are (GPR-RI in the paper).

    A calibration row's label lies at level :math:`p_j = \Phi((y_j - m_j) / s_j)` of its predictive distribution. The
    increasing map R from these levels to the share of rows at or below them is what isotonic regression learns, and
    since the shares increase with the levels it is their empirical distribution, interpolated. The quantile at level u
    of a new label is then

    .. math:: m(x) + s(x)\, \Phi^{-1}(R^{-1}(u)) .

    Parameters
    ----------
    estimator, calibration_size, random_state
        See :class:`~conformal_gp.comparators.SplitConformal`.
    ends : {"extend", "clip", "anchor", "inf"}, default="extend"
        What is known of R beyond the smallest and the largest of the q levels.

        - "extend": one more point at either end, the mean gap away; the j-th of the q + 2 has share j / (q + 1).
          Quantiles end at 4.75 standard deviations. This comes closest to the paper's numbers.
        - "clip": nothing; quantiles end at the outermost levels. The j-th has share j / q.
        - "anchor": R(0) = 0 and R(1) = 1. The j-th has share j / (q + 1).
        - "inf": nothing; quantiles beyond the outermost levels are infinite. The j-th has share j / (q + 1), for with
          j / q nothing would be left above the largest.
    interval : {"shortest", "central"}, default="shortest"
        Which of the intervals of the stated probability to take; see the notes.

    Attributes
    ----------
    estimator_ : regressor
        The Gaussian process, fitted to the rows that are not held out.
    shares_, levels_ : ndarray of shape (n_points,)
        The map R: predicted levels, increasing, and the share of rows that each belongs to.

    Notes
    -----
    "central" leaves out :math:`\delta/2` on either side. "shortest" takes, of all intervals between quantiles c and
    :math:`c + 1 - \delta`, the one of least width. It finds the tail that happens to be short among the calibration
    rows, and so covers a little less.

    References
    ----------
    V. Kuleshov, N. Fenner, S. Ermon, "Accurate Uncertainties for Deep Learning Using Calibrated Regression", ICML 2018.

    Examples
    --------
    >>> import numpy as np
    >>> from scipy.stats import norm
    >>> from conformal_gp.comparators import IsotonicRecalibration
    >>> errors = 2 * norm.ppf(np.arange(1, 40) / 40)  # twice as large as the model says
    >>> model = IsotonicRecalibration(interval="central").calibrate(np.zeros(39), np.ones(39), errors)
    >>> model.intervals([0.0], [1.0], confidence_level=0.9).round(2)  # and not [-1.64, 1.64]
    array([[-3.29,  3.29]])
    """

    _parameter_constraints: dict = {  # noqa: RUF012 (scikit-learn's convention)
        **SplitRegressor._parameter_constraints,
        "ends": [StrOptions({"extend", "clip", "anchor", "inf"})],
        "interval": [StrOptions(set(INTERVAL_RULES))],
    }

    def __init__(
        self,
        estimator: Any = None,
        *,
        calibration_size: float = 0.25,
        random_state: int | np.random.RandomState | None = None,
        ends: str = "extend",
        interval: str = "shortest",
    ):
        super().__init__(estimator, calibration_size=calibration_size, random_state=random_state)
        self.ends = ends
        self.interval = interval

    def _calibrate(self, mean: Array, std: Array, y: Array) -> None:
        levels = norm.cdf((y - mean) / std)
        if self.ends == "extend":
            self.levels_ = extended_scores(levels)
            self.shares_ = np.arange(y.size + 2) / (y.size + 1)
            return
        # a label far out rounds to level 0 or 1, whose quantile is infinite: take the number next to it
        levels = np.clip(levels, np.nextafter(0.0, 1.0), np.nextafter(1.0, 0.0))
        if self.ends == "clip":  # of equal levels the largest share counts
            self.levels_, counts = np.unique(levels, return_counts=True)
            self.shares_ = np.cumsum(counts) / y.size
            return
        self.levels_ = np.concatenate([[0.0], np.sort(levels), [1.0]])
        self.shares_ = np.arange(y.size + 2) / (y.size + 1)

    def _ends(self, mean: Array, std: Array, levels: Sequence[Fraction]) -> Array:
        shares = np.array([interval_levels(self._quantile, 1 - level, self.interval) for level in levels])
        return mean[:, None, None] + std[:, None, None] * self._quantile(shares.T)

    def _quantile(self, shares: Array) -> Array:
        """Quantiles of standardised labels."""
        levels = np.interp(shares, self.shares_, self.levels_)
        if self.ends == "extend":
            levels = np.clip(levels, FARTHEST, 1.0 - FARTHEST)
        elif self.ends == "inf":
            levels = np.where(shares < self.shares_[1], 0.0, np.where(shares > self.shares_[-2], 1.0, levels))
        return norm.ppf(levels)
