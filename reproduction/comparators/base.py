"""What the methods share: a regressor with ``predict_interval``, order statistics, and Gaussian quantiles."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from fractions import Fraction
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike
from scipy.stats import norm
from sklearn.base import BaseEstimator, RegressorMixin
from sklearn.utils.validation import check_is_fitted, validate_data

from conformal_gp.arrays import Array
from conformal_gp.conformal.levels import rank, read_levels


class IntervalRegressor(RegressorMixin, BaseEstimator, ABC):
    """A regressor with prediction intervals at any confidence levels; subclasses implement the method itself."""

    def fit(self, X: ArrayLike, y: ArrayLike) -> Self:
        """Fit to training rows."""
        X, y = validate_data(self, X, y, dtype=np.float64, y_numeric=True, ensure_min_samples=2)
        self._fit(X, y.astype(np.float64))
        return self

    def predict(self, X: ArrayLike) -> Array:
        """Point predictions, (m,)."""
        check_is_fitted(self)
        return self._predict(validate_data(self, X, reset=False, dtype=np.float64))

    def predict_interval(self, X: ArrayLike, confidence_level: float | ArrayLike = 0.95) -> Array:
        """Intervals of shape (m, 2), or (m, 2, levels) for a sequence; infinite where rows are too few for a level."""
        check_is_fitted(self)
        levels, single = read_levels(confidence_level)
        intervals = self._intervals(validate_data(self, X, reset=False, dtype=np.float64), levels)
        return intervals[:, :, 0] if single else intervals

    @abstractmethod
    def _fit(self, X: Array, y: Array) -> None: ...

    @abstractmethod
    def _predict(self, X: Array) -> Array: ...

    @abstractmethod
    def _intervals(self, X: Array, levels: Sequence[Fraction]) -> Array:
        """Intervals of test rows, (m, 2, levels)."""


def gaussian_intervals(mean: Array, std: Array, levels: Sequence[Any]) -> Array:
    r"""Central Gaussian intervals, :math:`\mu \pm \Phi^{-1}(1 - \delta/2)\, \sqrt s`, (m, 2, levels): the paper's GPR.

    >>> gaussian_intervals(np.array([1.0]), np.array([2.0]), [0.9, 0.95]).round(2)
    array([[[-2.29, -2.92],
            [ 4.29,  4.92]]])
    """
    z = norm.ppf([0.5 + float(level) / 2 for level in levels])
    return mean[:, None, None] + np.array([-1.0, 1.0])[:, None] * std[:, None, None] * z


def lower_end(values: Array, levels: Sequence[Fraction]) -> Array:
    """The floor(δ (n + 1))-th smallest of n values along the last axis, for each level; rank 0 is -inf.

    >>> lower_end(np.arange(1.0, 20.0), [Fraction(9, 10), Fraction(99, 100)])
    array([  2., -inf])
    """
    return -upper_end(-values, levels)


def upper_end(values: Array, levels: Sequence[Fraction]) -> Array:
    """The ceil((1 - δ) (n + 1))-th smallest of n values along the last axis, for each level; rank n + 1 is +inf.

    >>> upper_end(np.arange(1.0, 20.0), [Fraction(9, 10), Fraction(99, 100)])
    array([18., inf])
    """
    n = values.shape[-1]
    with_infinity = np.concatenate([np.sort(values, axis=-1), np.full((*values.shape[:-1], 1), np.inf)], axis=-1)
    return with_infinity[..., [n - rank(level, n) for level in levels]]


def scaled(ends: Array, scale: Array) -> Array:
    """Ends multiplied by the scale of each row; an infinite end stays infinite at scale 0.

    >>> scaled(np.array([1.0, np.inf]), np.array([[2.0], [0.0]]))
    array([[ 2., inf],
           [ 0., inf]])
    """
    with np.errstate(invalid="ignore"):
        return np.where(np.isinf(ends), ends, scale * ends)
