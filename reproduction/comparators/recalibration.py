"""Recalibration of a predictive distribution by its quantiles: extended scores, and rules for intervals."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import Any

import numpy as np

from conformal_gp.constraints import StrOptions
from conformal_gp.types import Array
from reproduction.comparators.split import SplitRegressor

INTERVAL_RULES = ("shortest", "central")
# The search for the shortest interval: points of each of its two grids.
GRID_POINTS = 100


class QuantileRecalibration(SplitRegressor):
    """Intervals between two quantiles of a recalibrated distribution.

    Subclasses learn the quantiles from the calibration rows.
    """

    _parameter_constraints: dict = {  # noqa: RUF012 (scikit-learn's convention)
        **SplitRegressor._parameter_constraints,
        "interval": [StrOptions(set(INTERVAL_RULES))],
    }

    def __init__(
        self,
        estimator: Any = None,
        *,
        calibration_size: float = 0.25,
        random_state: int | np.random.RandomState | None = None,
        interval: str = "shortest",
    ):
        super().__init__(estimator, calibration_size=calibration_size, random_state=random_state)
        self.interval = interval

    def _ends(self, mean: Array, std: Array, levels: Sequence[Fraction]) -> Array:
        ends = [self._quantile(np.array(interval_levels(self._quantile, 1 - level, self.interval))) for level in levels]
        return mean[:, None, None] + std[:, None, None] * np.transpose(ends)

    @abstractmethod
    def _quantile(self, levels: Array) -> Array:
        """Quantiles of a new label whose predicted mean is 0 and standard deviation 1."""


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


def interval_levels(quantile: Callable[[Array], Array], delta: Fraction, rule: str) -> tuple[float, float]:
    r"""Levels of the two ends of an interval of level 1 - ``delta``.

    "central" leaves out :math:`\delta/2` on either side. "shortest" is the narrowest interval from level c to
    :math:`c + 1 - \delta`, with one c for all rows. It is found on an even grid over :math:`[0, \delta]`, refined once
    between the neighbours of the best point. Because it is chosen on the calibration rows, it covers slightly less.

    Parameters
    ----------
    quantile : callable
        Quantiles at an array of levels, averaged over the rows; it is increasing.
    delta : Fraction
        Significance level.
    rule : {"shortest", "central"}
        The rule.

    Returns
    -------
    low, high : float
        Levels of the lower and of the upper end.

    Examples
    --------
    >>> interval_levels(np.sqrt, Fraction(1, 10), "central")
    (0.05, 0.95)
    >>> low, high = interval_levels(np.sqrt, Fraction(1, 10), "shortest")
    >>> round(low, 4), round(high, 4)
    (0.1, 1.0)
    """
    if rule == "central":
        return float(delta / 2), float(1 - delta / 2)
    inside = float(1 - delta)
    low, high = 0.0, float(delta)
    for _ in range(2):
        starts = np.linspace(low, high, GRID_POINTS)
        with np.errstate(invalid="ignore"):
            widths = quantile(np.minimum(starts + inside, 1.0)) - quantile(starts)
        widths[np.isnan(widths)] = np.inf  # both ends at the same infinity
        if np.isinf(widths).all():  # none is shorter than another
            return interval_levels(quantile, delta, "central")
        best = int(np.argmin(widths))
        low, high = starts[max(best - 1, 0)], starts[min(best + 1, GRID_POINTS - 1)]
    start = float(low + high) / 2
    return start, min(start + inside, 1.0)
