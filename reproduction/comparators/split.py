"""Methods that fit a Gaussian process to one part of the rows and calibrate it on the other."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from fractions import Fraction
from numbers import Real
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import clone
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_consistent_length, check_is_fitted, column_or_1d

from conformal_gp.conformal.levels import read_levels
from conformal_gp.constraints import HasMethods, Interval
from conformal_gp.regressor import ConformalGPRegressor
from conformal_gp.types import Array
from conformal_gp.validation import check_finite
from reproduction.comparators.base import IntervalRegressor


def calibration_rows(n_rows: int, share: float, random_state: int | np.random.RandomState | None) -> NDArray[np.bool_]:
    """Mask of rows held out for calibration, drawn at random: ``round(share * n_rows)`` of them, at least one."""
    held_out = min(max(round(share * n_rows), 1), n_rows - 1)
    mask = np.zeros(n_rows, dtype=bool)
    mask[check_random_state(random_state).permutation(n_rows)[:held_out]] = True
    return mask


class SplitRegressor(IntervalRegressor):
    """A Gaussian process fitted to one part of the rows and calibrated on the other.

    Subclasses compute intervals from the means, standard deviations and labels of the calibration rows. If these are
    already known, :meth:`calibrate` and :meth:`intervals` need no fit.
    :class:`~reproduction.comparators.SplitConformal` describes the parameters.
    """

    _parameter_constraints: dict = {  # noqa: RUF012 (scikit-learn's convention)
        "estimator": [HasMethods(["fit", "predict"]), None],
        "calibration_size": [Interval(Real, 0, 1, closed="neither")],
        "random_state": ["random_state"],
    }

    def __init__(
        self,
        estimator: Any = None,
        *,
        calibration_size: float = 0.25,
        random_state: int | np.random.RandomState | None = None,
    ):
        self.estimator = estimator
        self.calibration_size = calibration_size
        self.random_state = random_state

    def _fit(self, X: Array, y: Array) -> None:
        if y.size < 2:
            raise ValueError(f"X must have at least 2 rows, one to fit and one to calibrate; got n_samples={y.size}.")
        held_out = calibration_rows(y.size, self.calibration_size, self.random_state)
        self.estimator_ = clone(
            ConformalGPRegressor(
                "se", mean="linear", tuning="train", length_scales="one", random_state=self.random_state
            )
            if self.estimator is None
            else self.estimator
        ).fit(X[~held_out], y[~held_out])
        mean, std = self.estimator_.predict(X[held_out], return_std=True)
        self.calibrate(mean, std, y[held_out])

    def _predict(self, X: Array) -> Array:
        return np.asarray(self.estimator_.predict(X))

    def _intervals(self, X: Array, levels: Sequence[Fraction]) -> Array:
        mean, std = self.estimator_.predict(X, return_std=True)
        return self._ends(mean, std, levels)

    def calibrate(self, mean: ArrayLike, std: ArrayLike, y: ArrayLike) -> Self:
        """Calibrate on rows whose predictions are known.

        Parameters
        ----------
        mean, std : array-like of shape (n_calibration,)
            Predicted means and standard deviations of the labels.
        y : array-like of shape (n_calibration,)
            The labels.

        Returns
        -------
        self : object
            The calibrated method, ready for :meth:`intervals`.

        Examples
        --------
        >>> from reproduction.comparators import SplitConformal
        >>> SplitConformal().calibrate([0.0, 0.0, 0.0], [1.0, 1.0, 1.0], [-1.0, 0.5, 2.0]).n_calibration_
        3
        """
        means, stds = _predictions(mean, std)
        labels = column_or_1d(y, dtype=np.float64)
        check_consistent_length(means, labels)
        for name, values in (("mean", means), ("std", stds), ("y", labels)):
            check_finite(name, values)
        if not stds.all():
            raise ValueError(f"std must be positive in every calibration row, got 0 in row {int(np.argmin(stds))}.")
        self._calibrate(means, stds, labels)
        self.n_calibration_ = labels.size
        return self

    def intervals(self, mean: ArrayLike, std: ArrayLike, confidence_level: float | ArrayLike = 0.95) -> Array:
        """Intervals of test rows whose predictions are known.

        Parameters
        ----------
        mean, std : array-like of shape (n_samples,)
            Predicted means and standard deviations of their labels.
        confidence_level : float or sequence of floats, default=0.95
            Level or levels, each strictly between 0 and 1.

        Returns
        -------
        intervals : ndarray of shape (n_samples, 2) or (n_samples, 2, n_levels)
            Lower and upper ends.

        Examples
        --------
        >>> from reproduction.comparators import SplitConformal
        >>> method = SplitConformal().calibrate([0.0, 0.0, 0.0], [1.0, 1.0, 1.0], [-1.0, 0.5, 2.0])
        >>> method.intervals([10.0], [3.0], confidence_level=0.5)
        array([[ 7., 13.]])
        """
        check_is_fitted(self, "n_calibration_")
        levels, single = read_levels(confidence_level)
        ends = self._ends(*_predictions(mean, std), levels)
        return ends[:, :, 0] if single else ends

    def __sklearn_is_fitted__(self) -> bool:
        """After :meth:`calibrate` alone there is no estimator to predict with."""
        return hasattr(self, "estimator_")

    @abstractmethod
    def _calibrate(self, mean: Array, std: Array, y: Array) -> None:
        """Learn from calibration rows."""

    @abstractmethod
    def _ends(self, mean: Array, std: Array, levels: Sequence[Fraction]) -> Array:
        """Intervals of test rows with these predictions, (m, 2, levels)."""


def _predictions(mean: ArrayLike, std: ArrayLike) -> tuple[Array, Array]:
    """Means and standard deviations as two vectors of one length."""
    means, stds = column_or_1d(mean, dtype=np.float64), column_or_1d(std, dtype=np.float64)
    check_consistent_length(means, stds)
    if (stds < 0.0).any():
        raise ValueError(f"std must not be negative, got {stds.min():g}.")
    return means, stds
