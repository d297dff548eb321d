"""Checks of arrays, with errors that say where the trouble is."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_consistent_length, column_or_1d, validate_data

Array = NDArray[np.float64]

# Share of an input's range in the training rows by which a test row may exceed that range before it is pointed out.
ROOM = 0.1


class ExtrapolationWarning(UserWarning):
    """Some test rows lie beyond the training rows, where the guarantee says nothing.

    Examples
    --------
    >>> import warnings
    >>> from conformal_gp import ConformalGPRegressor, ExtrapolationWarning
    >>> model = ConformalGPRegressor("se", tuning="fixed", noise_variance=0.1).fit([[0.0], [1.0], [2.0]], [0, 1, 0])
    >>> with warnings.catch_warnings(action="error", category=ExtrapolationWarning):
    ...     _ = model.predict([[3.0]])
    Traceback (most recent call last):
    ...
    conformal_gp.validation.ExtrapolationWarning: 1 of 1 rows lie beyond the training rows, in column 0: ...
    """


def check_finite(
    name: str, values: NDArray[Any], feature_names: NDArray[Any] | None = None, first_row: int = 0
) -> None:
    """Raise a ValueError that names the first NaN or infinite entry; ``first_row`` is the number of the first row."""
    wrong = np.argwhere(~np.isfinite(values))
    if wrong.size == 0:
        return
    place = tuple(int(i) for i in wrong[0])
    kind = "NaN" if np.isnan(values[place]) else "infinity (inf)"
    where = f"row {first_row + place[0]}"
    if len(place) > 1:
        where += f", column {place[1]}" if feature_names is None else f", column {feature_names[place[1]]!r}"
    raise ValueError(f"{name} contains {kind} in {where}; all values must be finite.")


def check_squares(name: str, values: Array, feature_names: NDArray[Any] | None = None) -> None:
    """Raise a ValueError if squares of the values, of which distances and likelihoods are made, overflow."""
    with np.errstate(over="ignore"):
        if values.size == 0 or np.isfinite(np.sum(values**2)):
            return
    largest = np.unravel_index(int(np.argmax(np.abs(values))), values.shape)
    what = name
    if len(largest) > 1:
        what = f"column {largest[1]}" if feature_names is None else f"column {feature_names[largest[1]]!r}"
    raise ValueError(
        f"{name} reaches {np.abs(values[largest]):.1e}, whose square overflows; divide {what} by a constant."
    )


def check_unmasked(name: str, values: Any) -> None:
    """Raise a ValueError if entries of a masked array are masked: what is under a mask is no data."""
    if isinstance(values, np.ma.MaskedArray) and np.ma.is_masked(values):
        raise ValueError(
            f"{name} has masked entries ({np.ma.count_masked(values)}); fill them in or leave these rows out."
        )


def check_inputs(estimator: BaseEstimator, X: Any, *, reset: bool, y: Any = "no_validation") -> Array:
    """``X`` as a finite (n, d) float64 array that fits what the estimator was fitted to.

    With ``reset``, ``y`` is only asked to be there; :func:`check_labels` looks at it.
    """
    if reset and y is None:
        raise ValueError(f"{type(estimator).__name__} requires y to be passed, but the target y is None.")
    check_unmasked("X", X)
    try:
        checked = validate_data(estimator, X, reset=reset, dtype=np.float64, ensure_all_finite=False)
    except ValueError as error:
        text = _columns_of_text(X)
        if not text or "could not convert" not in str(error):
            raise
        raise ValueError(
            f"X has columns of text: {', '.join(map(repr, text))}; inputs must be numbers. Encode them first, say with "
            "scikit-learn's OneHotEncoder in a pipeline."
        ) from error
    names = getattr(estimator, "feature_names_in_", None)
    check_finite("X", checked, names)
    check_squares("X", checked, names)
    return checked


def _columns_of_text(X: Any) -> list[str]:
    """Names of those columns of a frame that hold words."""
    if not hasattr(X, "columns"):
        return []
    return [str(name) for name in X.columns if any(isinstance(value, str) for value in X[name])]


def beyond(X: Array, ends: Array) -> NDArray[np.bool_]:
    """Which inputs lie outside the training rows' range, (2, d), by more than a tenth of it.

    >>> beyond(np.array([[1.1, 5.0], [1.2, 6.0]]), np.array([[0.0, 5.0], [1.0, 5.0]])).tolist()
    [[False, False], [True, True]]
    """
    low, high = ends
    room = ROOM * (high - low)
    slack = 1e-12 * np.maximum(np.abs(low), np.abs(high))  # rounding is no extrapolation
    return np.asarray((low - room - slack > X) | (high + room + slack < X))


def warn_beyond(X: Array, ends: Array, feature_names: NDArray[Any] | None, stacklevel: int) -> None:
    """Warn of test rows that lie beyond the training rows."""
    outside = beyond(X, ends)
    n_rows = int(outside.any(axis=1).sum())
    if not n_rows:
        return
    columns = np.flatnonzero(outside.any(axis=0))
    named = [f"column {j}" if feature_names is None else f"{feature_names[j]!r}" for j in columns[:5]]
    more = f" and {columns.size - 5} more" if columns.size > 5 else ""
    warnings.warn(
        f"{n_rows} of {len(X)} rows lie beyond the training rows, in {', '.join(named)}{more}: outside their range by "
        "more than a tenth of it. Intervals there rest on the model alone; the guarantee is for rows like the training "
        "rows. beyond_training(X) says which rows.",
        ExtrapolationWarning,
        stacklevel=stacklevel + 1,
    )


def check_labels(y: Any, X: Array) -> Array:
    """``y`` as a finite float64 vector, one label for each row of ``X``."""
    check_unmasked("y", y)
    y = column_or_1d(y, warn=True, dtype=np.float64)
    check_finite("y", y)
    check_consistent_length(X, y)
    check_squares("y", y)
    return y
