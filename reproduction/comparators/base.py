"""Base class of the comparators: a scikit-learn regressor with ``predict_interval``."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from fractions import Fraction
from typing import Self

from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator, RegressorMixin, _fit_context
from sklearn.utils.validation import check_is_fitted

from conformal_gp.base import all_or_nothing
from conformal_gp.conformal.levels import read_levels
from conformal_gp.types import Array
from conformal_gp.validation import check_inputs, check_labels


class IntervalRegressor(RegressorMixin, BaseEstimator, ABC):
    """A regressor with prediction intervals at any confidence levels.

    It checks inputs, labels and levels; subclasses implement the method itself.
    """

    _parameter_constraints: dict = {}  # noqa: RUF012 (scikit-learn's convention)

    @_fit_context(prefer_skip_nested_validation=False)
    def fit(self, X: ArrayLike, y: ArrayLike) -> Self:
        """Fit to training rows, as :meth:`conformal_gp.ConformalGPRegressor.fit` does.

        Examples
        --------
        >>> from reproduction.comparators import ConformalRidge
        >>> model = ConformalRidge().fit([[0.0], [1.0], [2.0], [3.0]], [0.0, 1.0, 2.0, 4.0])
        >>> model.n_features_in_
        1
        """
        with all_or_nothing(self):
            inputs = check_inputs(self, X, reset=True, y=y)
            self._fit(inputs, check_labels(y, inputs))
        return self

    def predict(self, X: ArrayLike) -> Array:
        """Point predictions.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Test inputs.

        Returns
        -------
        y : ndarray of shape (n_samples,)
            Predicted labels.

        Examples
        --------
        >>> from reproduction.comparators import ConformalRidge
        >>> model = ConformalRidge().fit([[0.0], [1.0], [2.0], [3.0]], [0.0, 1.0, 2.0, 4.0])
        >>> model.predict([[4.0]]).round(1)
        array([4.8])
        """
        check_is_fitted(self)
        return self._predict(check_inputs(self, X, reset=False))

    def predict_interval(self, X: ArrayLike, confidence_level: float | ArrayLike = 0.95) -> Array:
        """Prediction intervals.

        Parameters
        ----------
        X, confidence_level
            As in :meth:`conformal_gp.ConformalGPRegressor.predict_interval`.

        Returns
        -------
        intervals : ndarray of shape (n_samples, 2) or (n_samples, 2, n_levels)
            Lower and upper ends, infinite where there are too few rows for the level. The array is three-dimensional
            when a sequence of levels is given.

        Examples
        --------
        >>> from reproduction.comparators import ConformalRidge
        >>> model = ConformalRidge().fit([[0.0], [1.0], [2.0], [3.0]], [0.0, 1.0, 2.0, 4.0])
        >>> model.predict_interval([[1.5]], confidence_level=[0.5, 0.6]).round(2)
        array([[[1.34, 1.34],
                [2.08, 2.08]]])
        """
        check_is_fitted(self)
        inputs = check_inputs(self, X, reset=False)
        levels, single = read_levels(confidence_level)
        intervals = self._intervals(inputs, levels)
        return intervals[:, :, 0] if single else intervals

    @abstractmethod
    def _fit(self, X: Array, y: Array) -> None:
        """Fit to training rows."""

    @abstractmethod
    def _predict(self, X: Array) -> Array:
        """Point predictions of test rows, (m,)."""

    @abstractmethod
    def _intervals(self, X: Array, levels: Sequence[Fraction]) -> Array:
        """Intervals of test rows, (m, 2, levels)."""


class RegionRegressor(IntervalRegressor):
    """A regressor whose prediction regions may have gaps."""

    def predict_set(self, X: ArrayLike, confidence_level: float = 0.95) -> list[Array]:
        """Exact prediction regions, gaps included.

        Parameters
        ----------
        X, confidence_level
            As in :meth:`conformal_gp.ConformalGPRegressor.predict_set`.

        Returns
        -------
        regions : list of ndarrays of shape (n_pieces, 2)
            The region of each row as sorted, disjoint, closed intervals; without any where it is empty.

        Examples
        --------
        >>> from reproduction.comparators import ConformalRidge
        >>> model = ConformalRidge().fit([[0.0], [1.0], [2.0], [3.0]], [0.0, 1.0, 2.0, 4.0])
        >>> [region.round(2) for region in model.predict_set([[1.5]], confidence_level=0.5)]
        [array([[1.34, 2.08]])]
        """
        check_is_fitted(self)
        inputs = check_inputs(self, X, reset=False)
        levels, single = read_levels(confidence_level)
        if not single:
            raise ValueError(f"confidence_level must be one number for predict_set, got {confidence_level!r}.")
        return self._regions(inputs, levels[0])

    @abstractmethod
    def _regions(self, X: Array, level: Fraction) -> list[Array]:
        """Regions of test rows, each (pieces, 2)."""
