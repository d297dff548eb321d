"""Isotonic recalibration of Gaussian process regression (Kuleshov, Fenner and Ermon, 2018)."""

from __future__ import annotations

import numpy as np
from scipy.stats import norm

from conformal_gp.types import Array
from reproduction.comparators.recalibration import QuantileRecalibration, extended_scores

# Quantiles of the extended scores stay within 4.75 standard deviations of the mean.
FARTHEST = 1e-6


class IsotonicRecalibration(QuantileRecalibration):
    r"""Quantiles of a Gaussian process, corrected on calibration rows (GPR-RI in the paper).

    The label of a calibration row lies at level :math:`p_j = \Phi((y_j - \mu_j) / \sqrt{s_j})` of its predictive
    distribution. Isotonic regression learns an increasing map R from these levels to the share of rows at or below
    them. Since the shares increase with the levels, R is their empirical distribution function, interpolated. The
    quantile at level u of a new label is then

    .. math:: \mu(x) + \sqrt{s(x)}\, \Phi^{-1}(R^{-1}(u)) .

    Beyond the smallest and the largest of the q levels R is not known. Following what comes closest to the paper's
    numbers, one point is added at either end, the mean gap away: the j-th of these q + 2 points has share j / (q + 1).
    No quantile is further than 4.75 standard deviations from the mean.

    Parameters
    ----------
    estimator, calibration_size, random_state
        See :class:`~reproduction.comparators.SplitConformal`.
    interval : {"shortest", "central"}, default="shortest"
        Which of the intervals of the stated probability to take; see the notes.

    Attributes
    ----------
    estimator_ : regressor
        The Gaussian process, fitted to the rows that are not held out.
    shares_, levels_ : ndarray of shape (n_points,)
        The map R: predicted levels, increasing, and the share of rows at or below each.

    Notes
    -----
    "central" leaves out :math:`\delta/2` on either side. "shortest" takes the narrowest of the intervals between
    quantiles c and :math:`c + 1 - \delta`. Because it is chosen on the calibration rows, it covers slightly less.

    References
    ----------
    V. Kuleshov, N. Fenner, S. Ermon, "Accurate Uncertainties for Deep Learning Using Calibrated Regression", ICML 2018.

    Examples
    --------
    >>> import numpy as np
    >>> from scipy.stats import norm
    >>> from reproduction.comparators import IsotonicRecalibration
    >>> errors = 2 * norm.ppf(np.arange(1, 40) / 40)  # twice as large as the model says
    >>> model = IsotonicRecalibration(interval="central").calibrate(np.zeros(39), np.ones(39), errors)
    >>> model.intervals([0.0], [1.0], confidence_level=0.9).round(2)  # and not [-1.64, 1.64]
    array([[-3.29,  3.29]])
    """

    def _calibrate(self, mean: Array, std: Array, y: Array) -> None:
        self.levels_ = extended_scores(norm.cdf((y - mean) / std))
        self.shares_ = np.arange(y.size + 2) / (y.size + 1)

    def _quantile(self, levels: Array) -> Array:
        predicted = np.interp(levels, self.shares_, self.levels_)
        return norm.ppf(np.clip(predicted, FARTHEST, 1.0 - FARTHEST))
