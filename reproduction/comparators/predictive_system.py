"""Split conformal predictive system (Vovk, Petej, Nouretdinov, Manokhin and Gammerman, 2020)."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

import numpy as np

from conformal_gp.types import Array
from reproduction.comparators.order import lower_end, one_sided, scaled, upper_end
from reproduction.comparators.split import SplitRegressor


class SplitPredictiveSystem(SplitRegressor):
    r"""Predictive distribution from the signed errors on calibration rows (GPR-RC in the paper).

    With scores :math:`r_j = (y_j - \mu_j) / \sqrt{s_j}` of the q calibration rows, the labels
    :math:`z_{(j)} = \mu(x) + \sqrt{s(x)}\, r_{(j)}` divide the line into q + 1 parts, each of probability
    :math:`1 / (q + 1)`. The interval is

    .. math:: [z_{(k)}, z_{(q + 1 - k)}], \qquad k = \lfloor \delta (q + 1) / 2 \rfloor,

    infinite when k = 0. For exchangeable rows it misses with probability at most :math:`2 k / (q + 1) \le \delta`,
    equally on both sides. Finite ends need :math:`q + 1 \ge 2 / \delta`.

    Parameters
    ----------
    estimator, calibration_size, random_state
        See :class:`~reproduction.comparators.SplitConformal`.

    Attributes
    ----------
    estimator_, scores_
        As in :class:`~reproduction.comparators.SplitConformal`.

    References
    ----------
    V. Vovk, I. Petej, I. Nouretdinov, V. Manokhin, A. Gammerman, "Computationally efficient versions of conformal
    predictive distributions", Neurocomputing 397, 2020.

    Examples
    --------
    >>> import numpy as np
    >>> from reproduction.comparators import SplitPredictiveSystem
    >>> model = SplitPredictiveSystem().calibrate(np.zeros(39), np.ones(39), np.arange(-19, 20))
    >>> model.intervals([0.0], [1.0], confidence_level=[0.9, 0.95, 0.99])
    array([[[-18., -19., -inf],
            [ 18.,  19.,  inf]]])
    """

    def _calibrate(self, mean: Array, std: Array, y: Array) -> None:
        self.scores_ = (y - mean) / std

    def _ends(self, mean: Array, std: Array, levels: Sequence[Fraction]) -> Array:
        sides = one_sided(levels)
        ends = np.stack([lower_end(self.scores_, sides), upper_end(self.scores_, sides)])
        return mean[:, None, None] + scaled(ends, std[:, None, None])
