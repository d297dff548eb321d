"""Choice of the root gamma of the nonconformity measure, on rows that are not ranked."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

import numpy as np

from conformal_gp.conformal.levels import rank
from conformal_gp.types import Array


def narrowest_gamma(alpha: Array, diagonal: Array, gammas: Sequence[float], level: Fraction) -> float:
    r"""The gamma that would give the narrowest intervals, on average, among these rows.

    The leave-one-out residual of row i is :math:`r_i = \alpha_i / P_{ii}`, its variance
    :math:`\sigma_i^2 = 1 / P_{ii}`. Intervals :math:`\pm q\, \sigma_i^{2/\gamma}` hold the stated share of the rows
    when q is the fitting order statistic of :math:`|r_i| / \sigma_i^{2/\gamma}`; the criterion is their mean width.

    Parameters
    ----------
    alpha, diagonal : ndarray of shape (n,)
        Weighted residuals and inverse leave-one-out variances.
    gammas : sequence of float
        Values to choose from; the first of equals wins.
    level : Fraction
        Confidence level at which widths are compared.

    Returns
    -------
    gamma : float
        One of ``gammas``.
    """
    residual, variance = np.abs(alpha / diagonal), 1.0 / diagonal
    k = max(1, rank(level, alpha.size))

    def mean_width(gamma: float) -> float:
        scale = variance ** (1.0 / gamma)
        return float(np.sort(residual / scale)[-k] * scale.mean())

    return min(gammas, key=mean_width)
