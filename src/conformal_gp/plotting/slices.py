"""Slices of the space of inputs: some inputs vary, the others are held at those of a row."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import _safe_indexing

from conformal_gp.arrays import Array, Mask
from conformal_gp.design import columns_of
from conformal_gp.validation import is_frame

NEAR = 0.2  # share of the rows that is drawn in full: those nearest in the other inputs
MOST_HELD = 5  # inputs whose values are named below the picture


class Slice(NamedTuple):
    """Inputs that vary, and the row of X that has the values of the others."""

    X: Any
    varied: dict[str, NDArray[Any]]
    """Values of the inputs that vary, in all rows."""
    row: int
    near: Mask
    """Rows whose other inputs are near the held ones, (n,)."""
    held: str
    """The held values in words; empty if every input varies."""

    @classmethod
    def of(cls, X: Any, features: Sequence[int | str], row: int | None) -> Slice:
        """Find inputs by number or name; None holds the row nearest to medians and most frequent categories."""
        if not is_frame(X):
            X = np.asarray(X, dtype=float)
        columns = columns_of(X)
        varied = {}
        for feature in features:
            name = _named(feature, list(columns))
            varied[name] = columns[name]
        columns = {name: values for name, values in columns.items() if name not in varied}
        n_rows = len(next(iter(varied.values())))
        if row is None:
            row = int(np.argmin(_distances(columns, [_middle(column) for column in columns.values()], n_rows)))
        if not 0 <= row < n_rows:
            raise ValueError(f"row must be a row of X: 0 to {n_rows - 1}, or None; got {row!r}.")
        held = {name: column[row] for name, column in columns.items()}
        distance = _distances(columns, list(held.values()), n_rows)
        return cls(X, varied, row, distance <= np.quantile(distance, NEAR), _in_words(held))

    def named(self, feature: str) -> str:
        """Name of an axis: an input, and the values of those that are held."""
        return "\n".join(filter(None, [feature, self.held]))

    def at(self, values: Mapping[str, Any]) -> Any:
        """Rows of the kind of X where the inputs that vary have given values, (m,) each."""
        size = len(next(iter(values.values())))
        rows = _safe_indexing(self.X, [self.row] * size)
        names = list(columns_of(self.X))
        if is_frame(self.X):
            parts = {name: values[name] if name in values else rows[name] for name in names}
            return type(self.X)({name: getattr(part, "array", part) for name, part in parts.items()})  # no pandas index
        for name, value in values.items():
            rows[:, names.index(name)] = value
        return rows


def is_text(column: NDArray[Any]) -> bool:
    """Whether a column has categories."""
    return column.dtype.kind == "U"


def _named(feature: int | str, names: list[str]) -> str:
    """Name of an input given by number or name."""
    if feature in names:
        return str(feature)
    if isinstance(feature, int | np.integer) and not isinstance(feature, bool) and 0 <= feature < len(names):
        return names[feature]
    raise ValueError(f"feature must be a column: 0 to {len(names) - 1}, or {', '.join(names)}; got {feature!r}.")


def _in_words(held: Mapping[str, Any]) -> str:
    """Name the first of the held values."""
    if not held:
        return ""
    said = [f"{name} {value}" if isinstance(value, str) else f"{name} {value:.4g}" for name, value in held.items()]
    shown = ", ".join(said[:MOST_HELD])
    if len(said) > MOST_HELD:
        shown += f" and {len(said) - MOST_HELD} more"
    return f"others held at {shown}"


def _distances(columns: Mapping[str, NDArray[Any]], at: Sequence[Any], n_rows: int) -> Array:
    """Squared distance of each row from given values, in standard deviations; 1 for another category."""
    distance = np.zeros(n_rows)
    for column, value in zip(columns.values(), at, strict=True):
        if is_text(column):
            distance += column != value
        else:
            distance += ((column - value) / (column.std() or 1.0)) ** 2
    return distance


def _middle(column: NDArray[Any]) -> Any:
    """The median, or the most frequent category."""
    if not is_text(column):
        return np.median(column)
    values, counts = np.unique(column, return_counts=True)
    return values[np.argmax(counts)]
