"""Data frames: columns of categories as inputs, and intervals as a frame.

Numbers and booleans are inputs as they are, and columns of categories become 0/1 inputs. Categories are those that the
dtype lists (``category`` of pandas, ``Enum`` of polars), whether rows have them or not, and where it lists none
(``Categorical`` of polars) those of the training rows. Each becomes an input that is 1 in its rows and 0 in others; two
categories make one input. Ordered categories of pandas become one input, their place in the order.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_array

from conformal_gp.arrays import Array, Indices, Mask

UNSEEN_GAP = (
    "and no training row lacks one there, so nothing was learnt of such rows; fill it in, or leave the row out."
)
# Names of the types that columns of categories have in pandas and polars.
CATEGORIES = {"CategoricalDtype", "Categorical", "Enum"}


def holds_categories(dtype: Any) -> bool:
    """Whether a column of this type holds categories."""
    return type(dtype).__name__ in CATEGORIES


def holds_numbers(dtype: Any) -> bool:
    """Whether a column of this type holds numbers; booleans are none."""
    if hasattr(dtype, "is_numeric"):  # of polars
        return bool(dtype.is_numeric())
    return getattr(dtype, "kind", "") in "iuf" and not holds_categories(dtype)


@dataclass(frozen=True)
class Encoding:
    """Encoding of a frame's columns as inputs."""

    categories: tuple[tuple[Any, ...] | None, ...]
    """Of each column, the last None if values are missing there; None where the column holds numbers."""
    ordered: tuple[bool, ...]
    """Whether each column holds ordered categories, which are one input."""
    missing: bool
    """Whether values may be missing."""

    @classmethod
    def learn(cls, X: Any, missing: bool) -> Encoding | None:
        """From a frame of training rows; None if there is nothing to encode."""
        listed: list[tuple[Any, ...] | None] = []
        ordered: list[bool] = []
        for j, dtype in enumerate(X.dtypes):
            ordered.append(getattr(dtype, "ordered", False) is True)
            listed.append(None)
            if holds_categories(dtype):
                column = _column(X, j)
                listed[j] = _categories(column)
                if missing and not ordered[j] and _is_missing(column).any():
                    listed[j] = (*_categories(column), None)
        if all(column is None for column in listed):
            return None
        return cls(tuple(listed), tuple(ordered), missing)

    def _with_input(self, j: int) -> tuple[Any, ...] | None:
        """Categories with an input each; None if the column is one input. The first of two categories needs none."""
        categories = self.categories[j]
        if categories is None or self.ordered[j]:
            return None
        if len(categories) == 2:
            return categories[1:]
        return categories

    def names(self, columns: Any) -> list[str]:
        """Names of the inputs, from those of the columns."""
        found: list[str] = []
        for j, name in enumerate(columns):
            categories = self._with_input(j)
            if categories is None:
                found.append(str(name))
                continue
            for value in categories:
                found.append(f"{name} is missing" if value is None else f"{name} = {value}")
        return found

    def encode(self, X: Any) -> Array:
        """Inputs of a frame's rows; a ValueError names a category that is new or missing."""
        numbers = [j for j, column in enumerate(self.categories) if column is None]
        inputs: list[Array] = [np.empty(0)] * len(self.categories)
        if numbers:
            chosen = X.iloc[:, numbers] if hasattr(X, "iloc") else X[:, numbers]
            values = check_array(chosen, dtype=np.float64, ensure_all_finite=False)
            for j, column in zip(numbers, values.T, strict=True):
                inputs[j] = column[:, None]
        for j, categories in enumerate(self.categories):
            if categories is None:
                continue
            codes = self._codes(_column(X, j), j, str(X.columns[j]))
            with_input = self._with_input(j)
            if with_input is None:
                inputs[j] = np.where(codes < 0, np.nan, codes)[:, None]
            else:
                inputs[j] = np.eye(len(categories))[codes, len(categories) - len(with_input) :]
        return np.hstack(inputs)

    def _codes(self, column: Any, j: int, name: str) -> Indices:
        """Number of each row's category; -1 where the place in an order is missing."""
        categories = self.categories[j] or ()
        numbers = {value: number for number, value in enumerate(categories)}
        if self.ordered[j] and self.missing:
            numbers[None] = -1
        codes = []
        for row, (value, missing) in enumerate(zip(column.to_list(), _is_missing(column), strict=True)):
            category = None if missing else value
            if category not in numbers:
                raise ValueError(self._refusal(category, f"row {row}, column {name!r}", categories, name))
            codes.append(numbers[category])
        return np.array(codes, dtype=np.int64)

    def _refusal(self, category: Any, where: str, categories: tuple[Any, ...], name: str) -> str:
        if category is None and self.missing:
            return f"X has no value in {where}, {UNSEEN_GAP}"
        if category is None:
            return f"X has no value in {where}; fill it in, say with a category of its own, or leave the row out."
        known = ", ".join(map(repr, categories[:10])) + (", ..." if len(categories) > 10 else "")
        return (
            f"X has a category that fit did not see, {category!r} in {where}; it saw {known}. List it in the dtype of "
            f"the training frame, or give the row a category of these; if {name!r} names batches, "
            f"fit(..., batches={name!r}) is for rows of new ones."
        )

    def columns(self, X: Array, names: Any) -> dict[str, NDArray[Any]]:
        """Inputs as the columns that they come from: numbers as floats, categories as text.

        Indicators of missing values, which stand last, are left out.
        """
        found: dict[str, NDArray[Any]] = {}
        start = 0
        for j, name in enumerate(names):
            categories = self._with_input(j)
            found[str(name)] = X[:, start]
            width = 1
            if categories is not None:
                width = len(categories)
                codes = X[:, start : start + width] @ np.arange(1.0, width + 1.0)
                found[str(name)] = codes.astype(str)
            start += width
        return found


def _column(X: Any, j: int) -> Any:
    return X.iloc[:, j] if hasattr(X, "iloc") else X.to_series(j)


def _is_missing(column: Any) -> Mask:
    return np.asarray(column.isna() if hasattr(column, "isna") else column.is_null(), dtype=bool)


def _categories(column: Any) -> tuple[Any, ...]:
    """Categories that a column's dtype lists, or that its rows have."""
    listed: Any = getattr(column.dtype, "categories", None)
    if not hasattr(listed, "to_list"):
        listed = column.drop_nulls().unique().sort()
    return tuple(listed.to_list())


def interval_frame(intervals: Array, confidence_level: Any, X: Any) -> Any:
    """Intervals as a pandas frame with the index of ``X``: a column for each bound, or for each level and bound.

    Those of several outputs have a second axis, the output, and columns for each output.
    """
    import pandas as pd

    if intervals.ndim > 2 + np.ndim(confidence_level):
        frames = [interval_frame(each, confidence_level, X) for each in intervals.swapaxes(0, 1)]
        return pd.concat(frames, axis=1, keys=range(len(frames)), names=["output", *frames[0].columns.names])
    index = X.index if isinstance(X, pd.DataFrame) else None
    ends = ["lower", "upper"]
    if intervals.ndim == 2:
        return pd.DataFrame(intervals, index, ends)
    columns = pd.MultiIndex.from_product([confidence_level, ends], names=["confidence_level", "end"])
    return pd.DataFrame(intervals.transpose(0, 2, 1).reshape(len(intervals), -1), index, columns)
