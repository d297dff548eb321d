"""Quantiles, one-sided bounds and distribution functions of a fitted model, from signed scores; and joint draws."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from numbers import Integral
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils import check_random_state

from conformal_gp.answers import TestRows
from conformal_gp.arrays import Array
from conformal_gp.calibration import GroupsLike, RatioLike
from conformal_gp.conformal.levels import read_levels
from conformal_gp.predictions import Predictions, tie_breaks
from conformal_gp.validation import check_labels

__all__ = ["PredictiveDistribution"]


@dataclass(frozen=True, eq=False, repr=False)
class PredictiveDistribution:
    """Predictive distributions of several rows; made by ``predict_distribution``.

    Parameters
    ----------
    steps : ndarray of shape (n_samples, n_steps)
        For each row the values at which its distribution function rises, sorted: the quantiles i / (n_steps + 1).

    Examples
    --------
    >>> import numpy as np
    >>> from conformal_gp.distributions import PredictiveDistribution
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
        """Value of each row's distribution function at its target, as of ``predict_cdf``, (n_samples,)."""
        labels = check_labels(y, self.steps)[:, None]
        less, at_most = (self.steps < labels).sum(axis=1), (self.steps <= labels).sum(axis=1)
        return 0.5 * (less + at_most + 1.0) / (self.steps.shape[1] + 1.0)

    def crps(self, y: ArrayLike) -> Array:
        r"""Continuous ranked probability score of each target, (n_samples,); lower is better.

        With n equal steps :math:`\int (F(x) - 1\{y \le x\})^2 dx` is
        :math:`\frac{2}{n} \sum_i \left( 1\{y < x_i\} - \frac{i - 1/2}{n} \right) (x_i - y)` (Laio and Tamea, 2007).
        """
        labels, n = check_labels(y, self.steps)[:, None], self.steps.shape[1]
        # (2 / n) sum (1{y < x_i} - (i - 1/2) / n) (x_i - y)
        return 2.0 * (((labels < self.steps) - (np.arange(n) + 0.5) / n) * (self.steps - labels)).mean(axis=1)

    def sample(self, n: int = 1, random_state: int | np.random.RandomState | None = None) -> Array:
        """Values drawn from each row's steps, (n_samples, n)."""
        _check_count("n", n)
        drawn = check_random_state(random_state).randint(self.steps.shape[1], size=(len(self), n))
        return np.take_along_axis(self.steps, drawn, axis=1)


def _places(quantile: Fraction, n_steps: int) -> tuple[int, int]:
    """Numbers of the steps, from 1, whose midpoint is a quantile: it errs away from the median."""
    below, above = math.floor(quantile * (n_steps + 1)), math.ceil(quantile * (n_steps + 1))
    if quantile == Fraction(1, 2):
        return below, above
    return (below, below) if quantile < Fraction(1, 2) else (above, above)


def _check_count(name: str, number: Any) -> None:
    if not isinstance(number, Integral) or isinstance(number, bool) or number < 1:
        raise ValueError(f"{name} must be a whole number of at least 1, got {number!r}.")


HALF = Fraction(1, 2)


class PredictiveDistributions(Predictions):
    """Predictive distributions of a fitted model: see ``docs/distributions.md``."""

    def sample_y(
        self,
        X: ArrayLike,
        n_samples: int = 1,
        random_state: int | np.random.RandomState | None = 0,
        y_variance: ArrayLike | None = None,
    ) -> Array:
        """Targets drawn jointly from the standard GP given the training rows, without the guarantee.

        Parameters
        ----------
        X, y_variance
            As in :meth:`predict_interval`.
        n_samples : int, default=1
            Number of draws.
        random_state : int, RandomState instance or None, default=0
            Seed of the draws.

        Returns
        -------
        samples : ndarray of shape (n_rows, n_samples)
            A draw in each column, noise included; with ``target_transform``, of transformed targets, transformed back.

        Examples
        --------
        >>> from conformal_gp import ConformalGPRegressor
        >>> model = ConformalGPRegressor("se", tuning="fixed", noise_variance=0.1, mean="zero", scale_inputs=False)
        >>> model.fit([[0.0], [1.0], [2.0]], [0.0, 1.0, 0.0]).sample_y([[1.0], [3.0]], 4).shape
        (2, 4)
        """
        rows = self._checked_test_rows(X, y_variance)
        _check_count("n_samples", n_samples)
        return self._answers.sample(rows, n_samples, check_random_state(random_state))

    def predict_quantiles(
        self,
        X: ArrayLike,
        quantiles: float | ArrayLike,
        y_variance: ArrayLike | None = None,
        *,
        groups: GroupsLike = None,
        likelihood_ratio: RatioLike = None,
    ) -> Array:
        """Quantiles of the predictive distribution: upper bounds above the median, lower bounds below it.

        The median is the midpoint of both bounds at 1/2.

        Parameters
        ----------
        X, y_variance, groups, likelihood_ratio
            As in :meth:`predict_interval`.
        quantiles : float or sequence of floats
            Quantile or quantiles, each strictly between 0 and 1, in any order.

        Returns
        -------
        values : ndarray of shape (n_samples,) or (n_samples, n_quantiles)
            In the order of ``quantiles``; two-dimensional when a sequence is given. Infinite where the training rows
            cannot support the quantile. The median is not a number where they do not determine the mean function.

        Examples
        --------
        >>> import numpy as np
        >>> from conformal_gp import ConformalGPRegressor
        >>> X = np.linspace(0, 3, 40)[:, None]
        >>> y = np.sin(2 * X[:, 0]) + 0.1 * np.cos(50 * X[:, 0])
        >>> model = ConformalGPRegressor("se", tuning="fixed", noise_variance=0.01, scale_inputs=False).fit(X, y)
        >>> model.predict_quantiles([[1.0], [2.0]], [0.1, 0.5, 0.9]).round(2)
        array([[ 0.8 ,  0.91,  1.01],
               [-0.86, -0.76, -0.66]])
        >>> model.predict_quantiles([[1.0], [2.0]], 0.5).round(2)
        array([ 0.91, -0.76])
        """
        rows = self._test_rows(X, y_variance, groups, likelihood_ratio)
        wanted, single = read_levels(quantiles, "quantiles")
        asked = [(q, max(q, 1 - q)) for q in wanted]
        values = self._quantiles(rows, wanted)
        self._warn_infinite(rows, "quantile", asked, "values", values[:, None])
        return values[:, 0] if single else values

    def _quantiles(self, rows: TestRows, wanted: list[Fraction]) -> Array:
        """Quantiles in the order asked for, (m, quantiles)."""
        below = [q for q in wanted if q <= HALF]
        above = [q for q in wanted if q >= HALF]
        lower, upper = rows.bounds([1 - q for q in below], above)
        column = dict(zip(below, lower.T, strict=True)) | dict(zip(above, upper.T, strict=True))
        if HALF in column:
            with np.errstate(invalid="ignore"):  # between both infinities there is no middle
                column[HALF] = 0.5 * (lower[:, below.index(HALF)] + upper[:, above.index(HALF)])
        return np.stack([column[q] for q in wanted], axis=1)

    def predict_bound(
        self,
        X: ArrayLike,
        confidence_level: float | ArrayLike = 0.95,
        side: str = "upper",
        y_variance: ArrayLike | None = None,
        *,
        groups: GroupsLike = None,
        likelihood_ratio: RatioLike = None,
    ) -> Array:
        """One-sided prediction bounds.

        Parameters
        ----------
        X, confidence_level, y_variance, groups, likelihood_ratio
            As in :meth:`predict_interval`.
        side : {"upper", "lower"}, default="upper"
            Whether targets are to be below their bounds, or above.

        Returns
        -------
        bounds : ndarray of shape (n_samples,) or (n_samples, n_levels)
            A target is at most its upper bound (at least its lower bound) with at least the probability of the level.
            Two-dimensional when a sequence of levels is given. Infinite where the training rows cannot support one.

        Examples
        --------
        >>> import numpy as np
        >>> from conformal_gp import ConformalGPRegressor
        >>> X = np.linspace(0, 3, 40)[:, None]
        >>> y = np.sin(2 * X[:, 0]) + 0.1 * np.cos(50 * X[:, 0])
        >>> model = ConformalGPRegressor("se", tuning="fixed", noise_variance=0.01, scale_inputs=False).fit(X, y)
        >>> model.predict_bound([[1.0], [2.0]], confidence_level=0.9).round(2)
        array([ 1.01, -0.66])
        >>> model.predict_bound([[1.0]], confidence_level=[0.8, 0.9], side="lower").round(2)
        array([[0.82, 0.8 ]])
        """
        rows = self._test_rows(X, y_variance, groups, likelihood_ratio)
        levels, single = read_levels(confidence_level)
        below_and_above: dict[str, tuple[list[Fraction], list[Fraction]]] = {
            "upper": ([], levels),
            "lower": (levels, []),
        }
        if side not in below_and_above:
            raise ValueError(f"side must be 'upper' or 'lower', got {side!r}.")
        found = np.hstack(rows.bounds(*below_and_above[side]))
        asked = [(level, level) for level in levels]
        self._warn_infinite(rows, "confidence_level", asked, "bounds", found[:, None])
        return found[:, 0] if single else found

    def predict_cdf(
        self,
        X: ArrayLike,
        y: ArrayLike,
        smoothing: bool = False,
        random_state: int | np.random.RandomState | None = None,
        y_variance: ArrayLike | None = None,
        *,
        groups: GroupsLike = None,
        likelihood_ratio: RatioLike = None,
    ) -> Array:
        """Values of the predictive distribution function at values of the target.

        Parameters
        ----------
        X, y, smoothing, random_state, y_variance, groups, likelihood_ratio
            As in :meth:`predict_p`; without ``smoothing`` ties count by half.

        Returns
        -------
        values : ndarray of shape (n_samples,)
            Share of the calibration rows and the test row whose signed score is less than the test row's, and half of
            those that tie with it, itself included.

        Examples
        --------
        >>> from conformal_gp import ConformalGPRegressor
        >>> model = ConformalGPRegressor("se", tuning="fixed", noise_variance=0.1, mean="zero", scale_inputs=False)
        >>> model = model.fit([[0.0], [1.0], [2.0]], [0.0, 1.0, 0.0])
        >>> model.predict_cdf([[1.0], [1.0], [1.0]], [-5.0, 0.8, 5.0])
        array([0.125, 0.625, 0.875])
        """
        rows = self._test_rows(X, y_variance, groups, likelihood_ratio)
        labels = check_labels(y, rows.new.X)
        return rows.shares(labels, tie_breaks(labels.size, 0.5, smoothing, random_state), signed=True)

    def predict_distribution(
        self,
        X: ArrayLike,
        max_steps: int = 999,
        y_variance: ArrayLike | None = None,
        *,
        groups: GroupsLike = None,
        likelihood_ratio: RatioLike = None,
    ) -> PredictiveDistribution:
        """Predictive distributions as step functions.

        Parameters
        ----------
        X, y_variance, groups, likelihood_ratio
            As in :meth:`predict_interval`.
        max_steps : int, default=999
            Most steps of a distribution. There is one for each calibration row (of the smallest group); where these are
            more, this many quantiles at equal distances stand for them.

        Returns
        -------
        distribution : PredictiveDistribution
            Of all rows, with ``cdf``, ``quantile``, ``interval``, ``mean``, ``std``, ``crps`` and ``sample``.

        Examples
        --------
        >>> import numpy as np
        >>> from conformal_gp import ConformalGPRegressor
        >>> X = np.linspace(0, 3, 40)[:, None]
        >>> y = np.sin(2 * X[:, 0]) + 0.1 * np.cos(50 * X[:, 0])
        >>> model = ConformalGPRegressor("se", tuning="fixed", noise_variance=0.01, scale_inputs=False).fit(X, y)
        >>> distribution = model.predict_distribution([[1.0], [2.0]])
        >>> distribution
        <PredictiveDistribution of 2 rows, 40 steps each>
        >>> distribution.mean.round(2), distribution.crps([0.9, -0.7]).round(3)
        (array([ 0.91, -0.76]), array([0.025, 0.036]))
        """
        rows = self._test_rows(X, y_variance, groups, likelihood_ratio)
        _check_count("max_steps", max_steps)
        fewest = min(part.answers.n_calibration for part in rows.parts)
        n_steps = max(1, min(int(max_steps), fewest))
        return PredictiveDistribution(self._quantiles(rows, [Fraction(i, n_steps + 1) for i in range(1, n_steps + 1)]))
