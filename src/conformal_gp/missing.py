"""Missing values of inputs: which inputs lack some, and what stands in their place.

Each input that is missing in a training row gets a second input, an indicator that is 1 where it is missing. In place
of the value stands the median of observed values: of tuning rows, where there are any, or of training rows and test row
together. Both treat calibration rows and test row alike.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from conformal_gp.arrays import Array, Indices, Mask

NO_GAPS: Indices = np.empty(0, dtype=np.int64)
# Symmetric fills are multiples of the range of the middle half of the observed values, rounded to a power of 2, over
# this. Finer, and more test rows have fills of their own; coarser, and fills are farther from the median.
STEPS = 4.0
UNSEEN_GAP = (
    "and no training row lacks one there, so nothing was learnt of such rows; fill it in, or leave the row out."
)


def learn_gaps(X: Array, named: Callable[[int], str]) -> Indices:
    """Inputs that are missing in some training rows; a ValueError names one that is missing in all.

    >>> learn_gaps(np.array([[1.0, np.nan], [2.0, 3.0]]), str).tolist()
    [1]
    """
    missing = np.isnan(X)
    empty = np.flatnonzero(missing.all(axis=0))
    if empty.size:
        raise ValueError(f"X has no value (NaN) in any row of {named(int(empty[0]))}; leave the column out.")
    return np.flatnonzero(missing.any(axis=0))


def with_indicators(X: Array, gaps: Indices, named: Callable[[int], str]) -> Array:
    """Inputs and an indicator for each of ``gaps``; a value that is missing elsewhere is a ValueError."""
    missing = np.isnan(X)
    unseen = missing.copy()
    unseen[:, gaps] = False
    if unseen.any():
        row, column = np.argwhere(unseen)[0].tolist()
        raise ValueError(f"X has no value (NaN) in row {row}, {named(column)}, {UNSEEN_GAP}")
    if gaps.size == 0:
        return X
    return np.hstack([X, missing[:, gaps]])


def medians(X: Array) -> Array:
    """Medians of the observed values of each input; 0 if there are none.

    >>> medians(np.array([[1.0, np.nan], [3.0, np.nan]])).tolist()
    [2.0, 0.0]
    """
    found = np.median(X, axis=0)
    for column in np.flatnonzero(np.isnan(found)):
        observed = X[~np.isnan(X[:, column]), column]
        found[column] = 0.0
        if observed.size:
            found[column] = np.median(observed)
    return found


def filled(X: Array, fill: Array) -> Array:
    """Inputs with a value for each column, (d,) or (n, d), in place of missing ones."""
    missing = np.isnan(X)
    if not missing.any():
        return X
    return np.where(missing, fill, X)


class SymmetricFill:
    """Fill by training rows *and* test row, so that no row is treated differently.

    The fill of an input is the lower median of the observed values of the l + 1 rows, rounded to a quarter of their
    middle half's range, which itself is rounded to a power of 2. So one fill serves nearly all test rows. If the middle
    half has one value, the median is not rounded.

    Parameters
    ----------
    X : ndarray of shape (l, d)
        Training inputs, NaN where a value is missing.

    Examples
    --------
    >>> fill = SymmetricFill(np.array([[1.0], [2.0], [3.0], [4.0], [np.nan]]))
    >>> fill.training().tolist(), fill.rows(np.array([[np.nan], [9.0]])).tolist()
    ([2.0], [[2.0], [3.0]])
    """

    def __init__(self, X: Array):
        missing = np.isnan(X)
        self._n_inputs = X.shape[1]
        self._gaps = np.flatnonzero(missing.any(axis=0))
        self._observed = [np.sort(X[~missing[:, column], column]) for column in self._gaps]

    def training(self) -> Array:
        """Fill of the training rows by themselves, (d,); 0 for inputs without missing values."""
        return self.rows(np.full((1, self._n_inputs), np.nan))[0]

    def rows(self, X: Array) -> Array:
        """Fill of the training rows with each test row, (m, d)."""
        found = np.zeros(X.shape)
        for column, observed in zip(self._gaps, self._observed, strict=True):
            values = X[:, column]
            missing = np.isnan(values)
            found[missing, column] = _rounded_median(observed, None, int(missing.sum()))
            found[~missing, column] = _rounded_median(observed, values[~missing], int((~missing).sum()))
        return found


def _rounded_median(observed: Array, own: Array | None, n_rows: int) -> Array:
    """Rounded medians of ascending values together with each of ``own``, (n_rows,)."""
    n = observed.size
    if own is not None:
        n += 1

    def order_statistic(k: int) -> Array:
        """The k-th value from 0; a test row's lies among its neighbours."""
        if own is None:
            return np.full(n_rows, observed[k])
        low = observed[k - 1] if k > 0 else -np.inf
        high = observed[k] if k < observed.size else np.inf
        return np.clip(own, low, high)

    median = order_statistic((n - 1) // 2)
    width = order_statistic(n - 1 - n // 4) - order_statistic(n // 4)
    wide: Mask = width > 1e-14 * np.abs(median)  # not within rounding
    step = np.ones(n_rows)
    step[wide] = 2.0 ** np.round(np.log2(width[wide])) / STEPS
    return np.where(wide, step * np.round(median / step), median)
