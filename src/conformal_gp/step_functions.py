"""Predictive distributions of rows as step functions."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils import check_random_state

from conformal_gp.arrays import Array
from conformal_gp.conformal.levels import read_levels
from conformal_gp.validation import check_labels

__all__ = ["PredictiveDistribution"]


@dataclass(frozen=True, eq=False, repr=False)
class PredictiveDistribution:
    """Predictive distributions of several rows; made by ``predict_distribution``.

    Each has as many steps of equal height, and they are the quantiles i / (number of steps + 1).

    Parameters
    ----------
    steps : ndarray of shape (n_samples, n_steps)
        For each row the labels at which its distribution function rises, sorted.

    Examples
    --------
    >>> import numpy as np
    >>> from conformal_gp.step_functions import PredictiveDistribution
    >>> distribution = PredictiveDistribution(np.array([[1.0, 2.0, 3.0], [10.0, 20.0, 60.0]]))
    >>> distribution.mean, distribution.quantile(0.75)
    (array([ 2., 30.]), array([ 3., 60.]))
    >>> distribution.interval(0.5)
    array([[ 1.,  3.],
           [10., 60.]])
    >>> distribution.cdf([2.5, 0.0]), distribution.crps([2.0, 20.0]).round(2)
    (array([0.625, 0.125]), array([0.22, 5.56]))
    >>> distribution.sample(4, random_state=0)
    array([[ 1.,  2.,  1.,  2.],
           [20., 60., 10., 60.]])
    """

    steps: Array

    def __repr__(self) -> str:
        n_rows, n_steps = self.steps.shape
        return f"<PredictiveDistribution of {n_rows} rows, {n_steps} steps each>"

    def __len__(self) -> int:
        return self.steps.shape[0]

    @property
    def mean(self) -> Array:
        """Mean of each row's steps, (n_samples,)."""
        return self.steps.mean(axis=1)

    @property
    def std(self) -> Array:
        """Standard deviation of each row's steps, (n_samples,)."""
        return self.steps.std(axis=1)

    def quantile(self, quantiles: float | ArrayLike) -> Array:
        """Quantiles as of ``predict_quantiles``: (n_samples,) for one, (n_samples, n_quantiles) for several."""
        wanted, single = read_levels(quantiles, "quantiles")
        values = self._quantiles(wanted)
        return values[:, 0] if single else values

    def _quantiles(self, wanted: list[Fraction]) -> Array:
        ends = np.full((len(self), 1), np.inf)
        padded = np.hstack([-ends, self.steps, ends])
        places = np.array([_places(q, self.steps.shape[1]) for q in wanted])
        return 0.5 * (padded[:, places[:, 0]] + padded[:, places[:, 1]])

    def interval(self, confidence_level: float | ArrayLike = 0.95) -> Array:
        """Intervals with equal tails: (n_samples, 2), or (n_samples, 2, n_levels) for several levels."""
        levels, single = read_levels(confidence_level)
        tails = [(1 - level) / 2 for level in levels]
        intervals = self._quantiles([*tails, *(1 - tail for tail in tails)]).reshape(len(self), 2, len(levels))
        return intervals[:, :, 0] if single else intervals

    def cdf(self, y: ArrayLike) -> Array:
        """Value of each row's distribution function at its label, as of ``predict_cdf``, (n_samples,)."""
        labels = check_labels(y, self.steps)[:, None]
        less, at_most = (self.steps < labels).sum(axis=1), (self.steps <= labels).sum(axis=1)
        return 0.5 * (less + at_most + 1.0) / (self.steps.shape[1] + 1.0)

    def crps(self, y: ArrayLike) -> Array:
        r"""Continuous ranked probability score of each label, (n_samples,); lower is better.

        With n equal steps :math:`\int (F(x) - 1\{y \le x\})^2 dx` is
        :math:`\frac{2}{n} \sum_i \left( 1\{y < x_i\} - \frac{i - 1/2}{n} \right) (x_i - y)` (Laio and Tamea, 2007).
        """
        labels, n = check_labels(y, self.steps)[:, None], self.steps.shape[1]
        return 2.0 * (((labels < self.steps) - (np.arange(n) + 0.5) / n) * (self.steps - labels)).mean(axis=1)

    def sample(self, n: int = 1, random_state: int | np.random.RandomState | None = None) -> Array:
        """Labels drawn from each row's steps, (n_samples, n)."""
        drawn = check_random_state(random_state).randint(self.steps.shape[1], size=(len(self), n))
        return np.take_along_axis(self.steps, drawn, axis=1)


def _places(quantile: Fraction, n_steps: int) -> tuple[int, int]:
    """Numbers of the steps, from 1, whose midpoint is a quantile: it errs away from the median."""
    below, above = math.floor(quantile * (n_steps + 1)), math.ceil(quantile * (n_steps + 1))
    if quantile == Fraction(1, 2):
        return below, above
    return (below, below) if quantile < Fraction(1, 2) else (above, above)
