"""What every comparator is: a scikit-learn regressor with ``predict_interval``."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from fractions import Fraction
from typing import Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, RegressorMixin, _fit_context
from sklearn.utils.validation import check_is_fitted

from conformal_gp.conformal.levels import read_levels
from conformal_gp.validation import check_inputs, check_labels

Array = NDArray[np.float64]


class IntervalRegressor(RegressorMixin, BaseEstimator, ABC):
    """A regressor with prediction intervals at any confidence levels.

    Subclasses say how to fit to checked rows and what the means and intervals of checked test rows are.
    """

    _parameter_constraints: dict = {}  # noqa: RUF012 (scikit-learn's convention)

    @_fit_context(prefer_skip_nested_validation=False)
    def fit(self, X: ArrayLike, y: ArrayLike) -> Self:
        """Fit to training rows.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Inputs.
        y : array-like of shape (n_samples,)
            Labels.

        Returns
        -------
        self : object
            The fitted regressor.
        """
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
        """
        check_is_fitted(self)
        return self._predict(check_inputs(self, X, reset=False))

    def predict_interval(self, X: ArrayLike, confidence_level: float | ArrayLike = 0.95) -> Array:
        """Prediction intervals.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Test inputs.
        confidence_level : float or sequence of floats, default=0.95
            Level or levels, each strictly between 0 and 1.

        Returns
        -------
        intervals : ndarray of shape (n_samples, 2) or (n_samples, 2, n_levels)
            Lower and upper ends, infinite where the rows cannot support the level; three-dimensional when a sequence
            of levels is given.
        """
        check_is_fitted(self)
        inputs = check_inputs(self, X, reset=False)
        levels, single = read_levels(confidence_level)
        intervals = self._intervals(inputs, levels)
        return intervals[:, :, 0] if single else intervals

    @abstractmethod
    def _fit(self, X: Array, y: Array) -> None:
        """Fit to checked rows."""

    @abstractmethod
    def _predict(self, X: Array) -> Array:
        """Predict checked test rows."""

    @abstractmethod
    def _intervals(self, X: Array, levels: Sequence[Fraction]) -> Array:
        """Intervals of checked test rows, (m, 2, levels)."""
