"""Folds of a cross-validation: which rows are held out together.

Rows that are left out one by one are predicted from their replicates and from the rest of their batch. New rows may
have neither. So rows with equal inputs are held out together, and so are whole batches, if they are given.
"""

from __future__ import annotations

from collections.abc import Mapping
from numbers import Integral
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.model_selection import KFold, check_cv

from conformal_gp.arrays import Array, Indices


class Folds(NamedTuple):
    """Training rows and test rows of each fold, and a sentence on what was held out together; empty if nothing was."""

    splits: list[tuple[Indices, Indices]]
    together: str = ""


def make_folds(
    cv: Any, columns: Mapping[str, NDArray[Any]], n_rows: int, random_state: int | None, groups_out: ArrayLike | None
) -> Folds:
    """Split rows by a number of folds or by a splitter of scikit-learn; each row is tested at most once.

    With a number, rows with equal inputs are held out together. With ``groups_out`` whole groups are split, in order of
    their first rows.

    Examples
    --------
    >>> doses = np.repeat([1.0, 2.0, 3.0], 2)
    >>> folds = make_folds(3, {"dose": doses}, 6, 0, None)
    >>> [test.tolist() for _, test in folds.splits], folds.together
    ([[4, 5], [2, 3], [0, 1]], 'Rows with equal inputs are held out together: 3 distinct inputs in 6 rows.')
    >>> [test.tolist() for _, test in make_folds(2, {"dose": doses}, 6, 0, ["a", "b", "b", "c", "c", "c"]).splits]
    [[1, 2, 3, 4, 5], [0]]
    """
    is_number = isinstance(cv, Integral)
    splitter = check_cv(cv)
    together = ""
    if groups_out is not None:
        units = _numbered(_checked(groups_out, n_rows))
        n_units = int(units.max()) + 1
        together = f"Whole batches are held out together: {n_units} batches in {n_rows} rows."
    else:
        units = distinct_inputs(columns, n_rows)
        n_units = int(units.max()) + 1
        if not is_number:
            units = np.arange(n_rows)
            n_units = n_rows
        elif n_units < n_rows:
            together = f"Rows with equal inputs are held out together: {n_units} distinct inputs in {n_rows} rows."
    if is_number:
        n_folds = int(cv)
        if n_units < n_rows:
            n_folds = min(n_folds, n_units)
        splitter = KFold(n_folds, shuffle=True, random_state=random_state)
    splits = [
        (np.flatnonzero(np.isin(units, train)), np.flatnonzero(np.isin(units, test)))
        for train, test in splitter.split(np.zeros(n_units))
    ]
    rows = np.concatenate([test for _, test in splits])
    if np.unique(rows).size < rows.size:
        raise ValueError(f"cv must hold out every row at most once, and holds out some repeatedly: {cv!r}.")
    return Folds(splits, together)


def distinct_inputs(columns: Mapping[str, NDArray[Any]], n_rows: int) -> Indices:
    """Number of each row's inputs among the distinct ones, in order of their first rows.

    >>> distinct_inputs({"dose": np.array([5.0, 1.0, 5.0]), "kind": np.array(["a", "a", "a"])}, 3)
    array([0, 1, 0])
    """
    codes = [np.unique(values, return_inverse=True)[1] for values in columns.values()]
    return _numbered(np.column_stack([np.zeros(n_rows, dtype=np.int64), *codes]))


def pure_error(columns: Mapping[str, NDArray[Any]], y: Array) -> tuple[float, int]:
    """Standard deviation of replicates about their means, and its degrees of freedom; 0 and 0 without replicates.

    >>> pure_error({"dose": np.array([5.0, 1.0, 5.0])}, np.array([2.0, 9.0, 4.0]))
    (1.4142135623730951, 1)
    """
    numbers = distinct_inputs(columns, y.size)
    degrees = y.size - int(numbers.max()) - 1
    if degrees == 0:
        return 0.0, 0
    means = np.bincount(numbers, y) / np.bincount(numbers)
    return float(np.sqrt(((y - means[numbers]) ** 2).sum() / degrees)), degrees


def _numbered(values: NDArray[Any]) -> Indices:
    """Number rows of values, (n,) or (n, k), in order of their first appearance."""
    _, first, inverse = np.unique(values, axis=0, return_index=True, return_inverse=True)
    return np.argsort(np.argsort(first))[inverse.ravel()]


def _checked(groups_out: Any, n_rows: int) -> NDArray[Any]:
    """Labels of groups, one for each row, of at least two groups."""
    labels = np.asarray(groups_out)
    if labels.dtype.kind == "O":
        labels = labels.astype(str)
    if labels.shape != (n_rows,):
        raise ValueError(f"groups_out must hold one label for each of the {n_rows} rows, got {labels.shape}.")
    if (labels == labels[0]).all():
        raise ValueError(f"groups_out must have at least two groups, got '{labels[0]}' alone.")
    return labels
