"""Cross-validation at every whole percent: each row is predicted by a model that has not seen it."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.stats import binom
from sklearn.base import clone
from sklearn.model_selection import KFold

from conformal_gp.gp.error_bars import error_bars
from conformal_gp.metrics import coverage

Array = NDArray[np.float64]
Progress = Callable[[int, int], None]

PERCENTS = tuple(range(50, 100))
LEVELS = tuple(Fraction(percent, 100) for percent in PERCENTS)


@dataclass(frozen=True)
class HeldOut:
    """What cross-validation found, row by row; the last axis of intervals goes over :data:`LEVELS`."""

    y: Array
    """Labels, (n,)."""
    prediction: Array
    """Predicted labels, (n,)."""
    intervals: Array
    """Conformal intervals, (n, 2, levels)."""
    plain: Array
    """Error bars of the same Gaussian process, (n, 2, levels)."""
    p_values: Array
    """p-values of the labels, (n,)."""

    def coverage(self) -> Array:
        """Share of labels inside the conformal intervals of each level."""
        return coverage(self.y, self.intervals)

    def plain_coverage(self) -> Array:
        """Share of labels inside the Gaussian process's own error bars."""
        return coverage(self.y, self.plain)

    def chance(self, band: float = 0.95) -> Array:
        """Binomial band of the share inside at each level, (levels, 2): what chance allows if the level is true."""
        return np.stack(binom.interval(band, self.y.size, [float(level) for level in LEVELS]), axis=1) / self.y.size

    def inside_from(self) -> NDArray[np.int64]:
        """For each row the least whole percent whose interval, and every wider one, holds the label; 100 if none."""
        labels = self.y[:, None]
        outside = (labels < self.intervals[:, 0]) | (labels > self.intervals[:, 1])
        last_outside = outside.shape[1] - np.argmax(outside[:, ::-1], axis=1)
        return PERCENTS[0] + np.where(outside.any(axis=1), last_outside, 0)


def folds(cv: Any, n_rows: int, random_state: int | None) -> Any:
    """``cv`` shuffled folds, or the splitter that was given."""
    if isinstance(cv, int | np.integer) and not isinstance(cv, bool):
        if not 2 <= cv <= n_rows:
            raise ValueError(f"cv must lie between 2 and the number of rows, {n_rows}; got {cv}.")
        return KFold(int(cv), shuffle=True, random_state=random_state)
    if hasattr(cv, "get_n_splits"):
        return cv
    raise ValueError(f"cv must be a number of folds or a scikit-learn splitter, got {cv!r}.")


def cross_validate(
    model: Any,
    X: Array,
    y: Array,
    *,
    cv: Any = 10,
    random_state: int | None = 0,
    progress: Progress | None = None,
) -> HeldOut:
    """Predict every row by a clone of ``model`` fitted to the other folds.

    Parameters
    ----------
    model : ConformalGPRegressor
        The model; it is cloned.
    X, y : ndarray of shape (n_samples, n_features) and (n_samples,)
        Rows.
    cv : int or splitter, default=10
        Number of shuffled folds, or a scikit-learn splitter that holds out every row once.
    random_state : int or None, default=0
        Seed of the folds.
    progress : callable or None, default=None
        Called with the number of folds done and of all folds after each.

    Returns
    -------
    held_out : HeldOut
        Predictions, intervals and p-values of all rows.
    """
    prediction, p_values = np.full(y.size, np.nan), np.empty(y.size)
    intervals, plain = np.empty((y.size, 2, len(LEVELS))), np.empty((y.size, 2, len(LEVELS)))
    splits = list(folds(cv, y.size, random_state).split(X, y))
    for number, (train, test) in enumerate(splits, start=1):
        fitted = clone(model).fit(X[train], y[train])
        prediction[test], std = fitted.predict(X[test], return_std=True)
        plain[test] = error_bars(prediction[test], std, LEVELS)
        with warnings.catch_warnings():  # the page says where intervals are infinite
            warnings.filterwarnings("ignore", message="confidence_level=", category=UserWarning)
            intervals[test] = fitted.predict_interval(X[test], LEVELS)
        p_values[test] = fitted.predict_p(X[test], y[test])
        if progress is not None:
            progress(number, len(splits))
    if np.isnan(prediction).any():
        raise ValueError(
            f"cv must hold out every row once; {int(np.isnan(prediction).sum())} rows were never held out."
        )
    return HeldOut(y, prediction, intervals, plain, p_values)
