"""Columns of frames as inputs, and indicators of missing values.

In data frames numbers and booleans are inputs as they are, and columns of categories become 0/1 inputs. Categories are
those that the dtype lists (``category`` of pandas, ``Enum`` of polars), whether rows have them or not, and where it
lists none (``Categorical`` of polars) those of the training rows. Each becomes an input that is 1 in its rows and 0 in
others; two categories make one input. Ordered categories of pandas become one input, their place in the order.

Each input that is missing in a training row gets a second input, an indicator that is 1 where it is missing. What is
filled in is a part of the scaling (:mod:`conformal_gp.gp.inputs`).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.sparse import issparse
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_array, validate_data

from conformal_gp.arrays import Array, Indices, Mask
from conformal_gp.validation import (
    check_inputs,
    check_numbers,
    converted,
    holds_categories,
    input_names,
    is_frame,
    need_labels,
)

NO_GAPS: Indices = np.empty(0, dtype=np.int64)
UNSEEN_GAP = (
    "and no training row lacks one there, so nothing was learnt of such rows; fill it in, or leave the row out."
)


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
            ordered.append(holds_categories(dtype) and getattr(dtype, "ordered", False) is True)
            listed.append(None)
            if holds_categories(dtype):
                column = _column(X, j)
                listed[j] = _categories(column)
                if missing and not ordered[j] and _is_missing(column).any():
                    listed[j] = (*_categories(column), None)
        if all(column is None for column in listed):
            return None
        return cls(tuple(listed), tuple(ordered), missing)

    @property
    def n_inputs(self) -> int:
        """Number of inputs."""
        return len(self.names(self.categories))

    def names(self, columns: Any) -> list[str]:
        """Names of the inputs, from those of the columns."""
        found: list[str] = []
        for name, categories, ordered in zip(columns, self.categories, self.ordered, strict=True):
            if categories is None or ordered:
                found.append(str(name))
                continue
            for value in _with_input(categories):
                found.append(f"{name} is missing" if value is None else f"{name} = {value}")
        return found

    def blocks(self, X: Array) -> list[Array]:
        """Split inputs into those of each column, without indicators."""
        widths = [
            1 if categories is None or ordered else len(_with_input(categories))
            for categories, ordered in zip(self.categories, self.ordered, strict=True)
        ]
        ends = np.cumsum(widths)
        return np.split(X[:, : ends[-1]], ends[:-1], axis=1)

    def encode(self, X: Any) -> Array:
        """Inputs of a frame's rows.

        Raises
        ------
        ValueError
            If a value is not a number, or is missing where that is not allowed, or a category is new.
        """
        numbers = [j for j, column in enumerate(self.categories) if column is None]
        inputs: list[Array] = [np.empty(0)] * len(self.categories)
        if numbers:
            chosen = X.iloc[:, numbers] if hasattr(X, "iloc") else X[:, numbers]
            values = converted(chosen, lambda: check_array(chosen, dtype=np.float64, ensure_all_finite=False))
            check_numbers(values, np.array([str(X.columns[j]) for j in numbers], dtype=object), self.missing)
            for j, column in zip(numbers, values.T, strict=True):
                inputs[j] = column[:, None]
        for j, categories in enumerate(self.categories):
            if categories is not None:
                codes = self._codes(_column(X, j), categories, str(X.columns[j]), self.ordered[j])
                if self.ordered[j]:
                    inputs[j] = np.where(codes < 0, np.nan, codes)[:, None]
                    continue
                first = len(categories) - len(_with_input(categories))
                inputs[j] = np.eye(len(categories))[codes, first:]
        return np.hstack(inputs)

    def _codes(self, column: Any, categories: tuple[Any, ...], name: str, ordered: bool) -> Indices:
        """Number of each row's category; -1 where the place in an order is missing."""
        missing = _is_missing(column)
        numbers = {value: number for number, value in enumerate(categories)}
        if ordered and self.missing:
            numbers[None] = -1
        if missing.any() and None not in numbers:
            advice = "; fill it in, say with a category of its own, or leave the row out."
            if self.missing:
                advice = f", {UNSEEN_GAP}"
            raise ValueError(f"X has no value in row {int(np.argmax(missing))}, column {name!r}{advice}")
        values = [None if gap else value for value, gap in zip(column.to_list(), missing, strict=True)]
        unseen = next((row for row, value in enumerate(values) if value not in numbers), None)
        if unseen is not None:
            known = ", ".join(map(repr, categories[:10])) + (", ..." if len(categories) > 10 else "")
            raise ValueError(
                f"X has a category that fit did not see, {values[unseen]!r} in row {unseen}, column {name!r}; it saw "
                f"{known}. List it in the dtype of the training frame, or give the row a category of these; if "
                f"{name!r} names batches, fit(..., batches={name!r}) is for rows of new ones."
            )
        return np.array([numbers[value] for value in values], dtype=np.int64)


def _with_input(categories: tuple[Any, ...]) -> tuple[Any, ...]:
    """Categories that have an input of their own: the first of two needs none."""
    return categories[1:] if len(categories) == 2 else categories


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


def encoded_inputs(estimator: BaseEstimator, X: Any, *, reset: bool, y: Any = "no_validation") -> Array:
    """``X`` as an (n, d) float64 array, NaN where a value is missing, with indicators of these; or encoded.

    With ``reset`` the estimator learns the encoding; without, names and order of the columns have to be those of
    ``fit``.
    """
    if issparse(X):
        raise ValueError(
            "X is a sparse matrix, and inputs must be dense: give X.toarray(), encode by "
            "OneHotEncoder(sparse_output=False), or give a data frame with columns of categories."
        )
    inputs = _encoded(estimator, X, reset=reset, y=y)

    def named(column: int) -> str:
        if not hasattr(estimator, "feature_names_in_"):
            return f"column {column}"
        return f"column {input_names(estimator)[column]!r}"

    if reset:
        estimator._gaps = learn_gaps(inputs, named)
    return with_indicators(inputs, estimator._gaps, named)


def _encoded(estimator: BaseEstimator, X: Any, *, reset: bool, y: Any) -> Array:
    """``X`` as an array, without indicators."""
    missing = estimator.missing == "auto"
    if reset:
        estimator._frame = type(X).__module__.partition(".")[0] if is_frame(X) else None
        estimator._encoding = Encoding.learn(X, missing) if is_frame(X) else None
    encoding = estimator._encoding
    if encoding is None:
        return check_inputs(estimator, X, reset=reset, y=y, missing=missing)
    if reset:
        need_labels(estimator, y)
    if not is_frame(X):
        raise ValueError(
            f"X must be a data frame with the columns of fit, some of which hold categories; got {type(X).__name__}."
        )
    validate_data(estimator, X, reset=reset, skip_check_array=True)
    return encoding.encode(X)


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


def interval_frame(intervals: Array, confidence_level: Any, X: Any) -> Any:
    """Intervals as a pandas frame with the index of ``X``: a column for each end, or for each level and end.

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
