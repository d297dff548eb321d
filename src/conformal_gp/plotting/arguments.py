"""Checks and conversions of arguments that several displays take."""

from __future__ import annotations

from collections.abc import Mapping
from textwrap import wrap
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils.validation import check_array

from conformal_gp.conformal.levels import read_levels
from conformal_gp.types import Array
from conformal_gp.validation import holds_categories, is_frame


def stacked(intervals: ArrayLike, confidence_level: float | ArrayLike) -> tuple[Array, list[float]]:
    """Intervals as (n, 2, levels), and their levels; raises if the numbers of levels differ."""
    levels = [float(level) for level in read_levels(confidence_level)[0]]
    ends = np.asarray(intervals, dtype=float)
    if ends.ndim == 2:
        ends = ends[:, :, None]
    if ends.ndim != 3 or ends.shape[1] != 2 or ends.shape[2] != len(levels):
        raise ValueError(
            f"intervals must have shape (n, 2, {len(levels)}) for confidence_level={confidence_level!r}, or (n, 2) for "
            f"one level; got {np.shape(intervals)}."
        )
    return ends, levels


def vector(name: str, values: ArrayLike, size: int) -> Array:
    """``values`` as a vector of ``size`` numbers."""
    array = np.asarray(values, dtype=float)
    if array.shape != (size,):
        raise ValueError(f"{name} must have shape ({size},), got {array.shape}.")
    return array


def named(values: Any, default: str) -> dict[str, Any]:
    """A mapping as a dict; any other value under the default name."""
    if not isinstance(values, Mapping):
        return {default: values}
    if not values:
        raise ValueError("estimator or intervals must not be an empty mapping.")
    return {str(name): value for name, value in values.items()}


def column(X: Any, feature: int | str, argument: str = "feature") -> int:
    """Number of a column that is given by its number or name."""
    names = [str(name) for name in getattr(X, "columns", ())]
    width = np.shape(X)[1]
    if isinstance(feature, str) and feature in names:
        return names.index(feature)
    if isinstance(feature, int | np.integer) and not isinstance(feature, bool) and 0 <= feature < width:
        return int(feature)
    known = f" or one of {', '.join(map(repr, names))}" if names else ""
    raise ValueError(f"{argument} must be a column number from 0 to {width - 1}{known}; got {feature!r}.")


# Inputs whose values are named below a picture.
MOST_HELD = 5
# Letters of a line there: two pictures side by side have room for it.
LINE = 48


def one_input_varied(
    X: Any, feature: int | str = 0, fixed: Mapping[int | str, float] | None = None, n_points: int = 200
) -> tuple[Any, Array, Array, str]:
    """Rows in which one input varies and the others are constant.

    Parameters
    ----------
    X : array-like or data frame of shape (n_samples, n_features)
        Rows that give the range of the input and the medians of the others.
    feature : int or str
        The input that varies.
    fixed : mapping of int or str to float, or None
        Values of other inputs, in place of their medians.
    n_points : int
        Number of rows along the input.

    Returns
    -------
    rows : of the kind of ``X``
        ``n_points`` rows.
    grid : ndarray of shape (n_points,)
        The values of the input.
    x : ndarray of shape (n_samples,)
        That input in ``X``.
    name : str
        What to call it, and on further lines at which values the others are held.
    """
    if is_frame(X) and any(holds_categories(dtype) for dtype in X.dtypes):
        raise ValueError(
            "X has columns of categories, which have no median to be held at; make rows along the input yourself, and "
            "give their predictions to from_predictions."
        )
    values = check_array(X, dtype=np.float64)
    if n_points < 2:
        raise ValueError(f"n_points must be at least 2, got {n_points}.")
    j = column(X, feature)
    at = np.median(values, axis=0)
    for key, value in (fixed or {}).items():
        at[column(X, key, "fixed")] = value
    rows = np.tile(at, (n_points, 1))
    grid = rows[:, j] = np.linspace(values[:, j].min(), values[:, j].max(), n_points)
    names = [str(name) for name in X.columns] if hasattr(X, "columns") else [f"input {i}" for i in range(at.size)]
    held = [f"{name} {value:.4g}" for i, (name, value) in enumerate(zip(names, at, strict=True)) if i != j]
    more = f" and {len(held) - MOST_HELD} more" if len(held) > MOST_HELD else ""
    how = "medians, or as given" if fixed else "medians"
    others = f"others held at {', '.join(held[:MOST_HELD])}{more} ({how})" if held else ""
    return like(X, rows), grid, values[:, j], "\n".join([names[j], *wrap(others, LINE)])


def like(X: Any, rows: Array) -> Any:
    """``rows`` as a data frame with the columns of ``X``, if ``X`` is one: a fitted model checks the names."""
    if hasattr(X, "iloc"):
        return type(X)(rows, columns=X.columns)
    if hasattr(X, "columns"):
        return type(X)(rows, schema=list(X.columns))
    return rows


def one_row(x: Any) -> Any:
    """One row of inputs, (1, n_features), of the kind of ``x``."""
    row = x if np.ndim(x) == 2 else np.reshape(np.asarray(x, dtype=float), (1, -1))
    if np.shape(row)[0] != 1:
        raise ValueError(f"x must be one row, got {np.shape(row)[0]}.")
    return row


def one_label(y: Any) -> float | None:
    """A label, which may come as an array or series of one; None stays None."""
    if y is None:
        return None
    label = np.ravel(np.asarray(y, dtype=float))
    if label.size != 1:
        raise ValueError(f"y must be one label, got {label.size}.")
    return float(label[0])
