"""Checks of arrays, with errors that say where the trouble is."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_consistent_length, column_or_1d, validate_data

Array = NDArray[np.float64]


def check_finite(name: str, values: NDArray[Any], feature_names: NDArray[Any] | None = None) -> None:
    """Raise a ValueError that names the first NaN or infinite entry."""
    wrong = np.argwhere(~np.isfinite(values))
    if wrong.size == 0:
        return
    place = tuple(int(i) for i in wrong[0])
    kind = "NaN" if np.isnan(values[place]) else "infinity (inf)"
    where = f"row {place[0]}"
    if len(place) > 1:
        where += f", column {place[1]}" if feature_names is None else f", column {feature_names[place[1]]!r}"
    raise ValueError(f"{name} contains {kind} in {where}; all values must be finite.")


def check_inputs(estimator: BaseEstimator, X: Any, *, reset: bool, y: Any = "no_validation") -> Array:
    """``X`` as a finite (n, d) float64 array that fits what the estimator was fitted to.

    With ``reset``, ``y`` is only asked to be there; :func:`check_labels` looks at it.
    """
    if reset and y is None:
        raise ValueError(f"{type(estimator).__name__} requires y to be passed, but the target y is None.")
    X = validate_data(estimator, X, reset=reset, dtype=np.float64, ensure_all_finite=False)
    check_finite("X", X, getattr(estimator, "feature_names_in_", None))
    return X


def check_labels(y: Any, X: Array) -> Array:
    """``y`` as a finite float64 vector, one label for each row of ``X``."""
    y = column_or_1d(y, warn=True, dtype=np.float64)
    check_finite("y", y)
    check_consistent_length(X, y)
    return y
