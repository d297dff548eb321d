"""GPR-RI: isotonic recalibration, and what it shares with GPR-RM: intervals between recalibrated quantiles."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Sequence
from fractions import Fraction

import numpy as np
from scipy.special import ndtr, ndtri

from conformal_gp.arrays import Array
from reproduction.comparators.split import SplitRegressor

# Levels of quantiles stay this far from 0 and 1: 4.75 standard deviations from the mean.
LEAST_PROBABILITY = 1e-6
# The search for the shortest interval: points of each of its two grids.
GRID_POINTS = 100


class QuantileRecalibration(SplitRegressor):
    r"""Intervals between two quantiles of a distribution that is recalibrated on the levels of calibration labels.

    The label of a calibration row lies at level :math:`p_j = \Phi((y_j - \mu_j) / \sqrt{s_j})` of its predictive
    distribution. Subclasses learn an increasing map S from the share of rows at or below a level to the level; the
    quantile at level u of a new label is :math:`\mu(x) + \sqrt{s(x)}\, \Phi^{-1}(S(u))`. There is no guarantee.
    """

    def _calibrate(self, mean: Array, std: Array, y: Array) -> None:
        self._learn(extended_scores(ndtr((y - mean) / std)))

    def _ends(self, mean: Array, std: Array, levels: Sequence[Fraction]) -> Array:
        ends = [self._quantile(np.array(shortest_levels(self._quantile, 1 - level))) for level in levels]
        return mean[:, None, None] + std[:, None, None] * np.transpose(ends)

    def _quantile(self, levels: Array) -> Array:
        """Quantiles of a new label whose predicted mean is 0 and standard deviation 1."""
        return ndtri(np.clip(self._predicted(levels), LEAST_PROBABILITY, 1.0 - LEAST_PROBABILITY))

    @abstractmethod
    def _learn(self, predicted: Array) -> None:
        """Learn the map from the extended levels of q calibration labels, (q + 2,), whose shares are j / (q + 1)."""

    @abstractmethod
    def _predicted(self, levels: Array) -> Array:
        """S at some levels."""


class IsotonicRecalibration(QuantileRecalibration):
    r"""Isotonic recalibration (Kuleshov, Fenner and Ermon, ICML 2018).

    Isotonic regression of shares on levels: since the shares increase with the levels, it is their empirical
    distribution function, interpolated. Beyond the smallest and the largest of the q levels it is not known. Following
    what comes closest to the paper's numbers, one point is added at either end, the mean gap away.

    Examples
    --------
    >>> errors = 2 * ndtri(np.arange(1, 40) / 40)  # twice as large as the model says
    >>> model = IsotonicRecalibration().calibrate(np.zeros(39), np.ones(39), errors)
    >>> float(np.diff(model.intervals([0.0], [1.0], confidence_level=0.9)).round(1)[0, 0])  # and not 2 * 1.64
    6.5
    """

    def _learn(self, predicted: Array) -> None:
        self.levels_ = predicted
        self.shares_ = np.arange(predicted.size) / (predicted.size - 1)

    def _predicted(self, levels: Array) -> Array:
        return np.interp(levels, self.shares_, self.levels_)


def extended_scores(scores: Array) -> Array:
    """Sorted scores of q calibration rows, with one more added at either end, at the distance of the mean gap.

    Entry j of the q + 2 has the level j / (q + 1), so that all levels from 0 to 1 have a score.

    >>> extended_scores(np.array([0.3, 0.1, 0.2])).round(3)
    array([0. , 0.1, 0.2, 0.3, 0.4])
    """
    if scores.size < 2:
        raise ValueError(f"the calibration rows must be at least 2, to have a gap between scores; got {scores.size}.")
    ordered = np.sort(scores)
    gap = (ordered[-1] - ordered[0]) / (scores.size - 1)
    return np.concatenate([[ordered[0] - gap], ordered, [ordered[-1] + gap]])


def shortest_levels(quantile: Callable[[Array], Array], delta: Fraction) -> tuple[float, float]:
    r"""Levels c and :math:`c + 1 - \delta` of the ends of the shortest interval of level 1 - ``delta``.

    One c for all rows is found on an even grid over :math:`[0, \delta]`, refined once between the neighbours of the
    best point. Because it is chosen on the calibration rows, the interval covers slightly less.

    >>> low, high = shortest_levels(np.sqrt, Fraction(1, 10))
    >>> round(low, 4), round(high, 4)
    (0.1, 1.0)
    """
    inside = float(1 - delta)
    low, high = 0.0, float(delta)
    for _ in range(2):
        starts = np.linspace(low, high, GRID_POINTS)
        best = int(np.argmin(quantile(np.minimum(starts + inside, 1.0)) - quantile(starts)))
        low, high = starts[max(best - 1, 0)], starts[min(best + 1, GRID_POINTS - 1)]
    start = float(low + high) / 2
    return start, min(start + inside, 1.0)
