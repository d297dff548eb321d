"""Data frames as inputs: numbers and booleans as they are, categories as 0/1 inputs, by dtype.

Categories are those that the dtype lists (``category`` of pandas, ``Enum`` of polars), whether rows have them or not,
and where it lists none (``Categorical`` of polars) those of the training rows. Each becomes an input that is 1 in its
rows and 0 in others; two categories make one input.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_array, validate_data

from conformal_gp.arrays import Array, Indices
from conformal_gp.validation import check_inputs, check_numbers, converted, holds_categories, is_frame, need_labels


@dataclass(frozen=True)
class Encoding:
    """How the columns of a frame become inputs."""

    categories: tuple[tuple[Any, ...] | None, ...]
    """Of each column; None where it holds numbers."""

    @classmethod
    def learn(cls, X: Any) -> Encoding | None:
        """From a frame of training rows; None if there is nothing to encode."""
        listed = [_categories(_column(X, j)) if holds_categories(dtype) else None for j, dtype in enumerate(X.dtypes)]
        return None if all(column is None for column in listed) else cls(tuple(listed))

    @property
    def n_inputs(self) -> int:
        """Number of inputs."""
        return len(self.names(self.categories))

    def names(self, columns: Any) -> list[str]:
        """Names of the inputs, from those of the columns."""
        return [
            str(name) if value is None else f"{name} = {value}"
            for name, categories in zip(columns, self.categories, strict=True)
            for value in ([None] if categories is None else _with_input(categories))
        ]

    def encode(self, X: Any) -> Array:
        """Inputs of a frame's rows.

        Raises
        ------
        ValueError
            If a value is missing or not a number, or a category is new.
        """
        numbers = [j for j, column in enumerate(self.categories) if column is None]
        inputs: list[Array] = [np.empty(0)] * len(self.categories)
        if numbers:
            chosen = X.iloc[:, numbers] if hasattr(X, "iloc") else X[:, numbers]
            values = converted(chosen, lambda: check_array(chosen, dtype=np.float64, ensure_all_finite=False))
            check_numbers("X", values, np.array([str(X.columns[j]) for j in numbers], dtype=object))
            for j, column in zip(numbers, values.T, strict=True):
                inputs[j] = column[:, None]
        for j, categories in enumerate(self.categories):
            if categories is not None:
                codes = self._codes(_column(X, j), categories, str(X.columns[j]))
                first = len(categories) - len(_with_input(categories))
                inputs[j] = np.eye(len(categories))[codes, first:]
        return np.hstack(inputs)

    def _codes(self, column: Any, categories: tuple[Any, ...], name: str) -> Indices:
        """Number of each row's category."""
        missing = np.asarray(column.isna() if hasattr(column, "isna") else column.is_null(), dtype=bool)
        if missing.any():
            raise ValueError(
                f"X has no value in row {int(np.argmax(missing))}, column {name!r}; fill it in, say with a category of "
                "its own, or leave the row out."
            )
        numbers = {value: number for number, value in enumerate(categories)}
        values = column.to_list()
        unseen = next((row for row, value in enumerate(values) if value not in numbers), None)
        if unseen is not None:
            known = ", ".join(map(repr, categories[:10])) + (", ..." if len(categories) > 10 else "")
            raise ValueError(
                f"X has a category that fit did not see, {values[unseen]!r} in row {unseen}, column {name!r}; it saw "
                f"{known}. List it in the dtype of the training frame, or give the row a category of these."
            )
        return np.array([numbers[value] for value in values], dtype=np.int64)


def _with_input(categories: tuple[Any, ...]) -> tuple[Any, ...]:
    """Categories that have an input of their own: the first of two needs none."""
    return categories[1:] if len(categories) == 2 else categories


def _column(X: Any, j: int) -> Any:
    return X.iloc[:, j] if hasattr(X, "iloc") else X.to_series(j)


def _categories(column: Any) -> tuple[Any, ...]:
    """Categories that a column's dtype lists, or that its rows have."""
    listed: Any = getattr(column.dtype, "categories", None)
    if not hasattr(listed, "to_list"):
        listed = column.drop_nulls().unique().sort()
    return tuple(listed.to_list())


def encoded_inputs(estimator: BaseEstimator, X: Any, *, reset: bool, y: Any = "no_validation") -> Array:
    """``X`` as a finite (n, d) float64 array, as :func:`conformal_gp.validation.check_inputs` has it, or encoded.

    With ``reset`` the estimator learns the encoding; without, names and order of the columns have to be those of
    ``fit``.
    """
    if reset:
        estimator._frame = type(X).__module__.partition(".")[0] if is_frame(X) else None
        estimator._encoding = Encoding.learn(X) if is_frame(X) else None
    encoding = estimator._encoding
    if encoding is None:
        return check_inputs(estimator, X, reset=reset, y=y)
    if reset:
        need_labels(estimator, y)
    if not is_frame(X):
        raise ValueError(
            f"X must be a data frame with the columns of fit, some of which hold categories; got {type(X).__name__}."
        )
    validate_data(estimator, X, reset=reset, skip_check_array=True)
    return encoding.encode(X)


def input_names(model: Any) -> NDArray[Any]:
    """Names of a fitted model's inputs: of its columns, or of columns and categories."""
    names = getattr(model, "feature_names_in_", np.array([f"x{j}" for j in range(model.n_features_in_)], dtype=object))
    return names if model._encoding is None else np.array(model._encoding.names(names), dtype=object)
