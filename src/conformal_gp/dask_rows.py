"""Training rows in Dask arrays or dataframes, chunked by rows: on one machine's disk, or on a cluster.

Every task is a function of its chunk of rows alone, and no result is kept anywhere but in Dask's own graph. So a worker
that dies costs the time to compute its chunks again, and changes nothing else.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from contextlib import nullcontext
from copy import copy
from functools import reduce
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator

from conformal_gp.arrays import Array, Indices
from conformal_gp.rows import BLOCK_ROWS, BlockFunction, Rows, RowTaker
from conformal_gp.threads import one_blas_thread, slices
from conformal_gp.validation import check_finite, check_inputs, check_known_noise, check_labels

try:
    from dask import array
    from dask.base import compute
    from dask.delayed import delayed
    from dask.diagnostics.progress import ProgressBar
except ImportError as error:
    raise ImportError("Dask collections need Dask: pip install '.[dask]' in a clone of conformal-gp.") from error

# How many partial sums a task adds up.
FAN_IN = 8


def dask_rows(estimator: BaseEstimator, X: Any, y: Any, y_variance: Any, verbose: bool) -> DaskRows:
    """Rows of Dask collections, checked as far as that can be done without reading them all.

    The estimator learns the number and names of the inputs. Labels and known noise variances may also be in
    memory.
    """
    if X.ndim != 2:
        raise ValueError(f"X must be two-dimensional, one row for each sample, got shape {X.shape}.")
    names = np.asarray(X.columns) if hasattr(X, "columns") else None
    if names is not None:
        check_inputs(estimator, X.head(2, npartitions=-1), reset=True, y=y)
    inputs = _sized(X)
    if inputs.shape[0] == 0:
        raise ValueError("X has no rows (n_samples=0).")
    if names is None:
        check_inputs(estimator, inputs[:2].compute(), reset=True, y=y)
    inputs = inputs.rechunk({0: tuple(length for length in inputs.chunks[0] if length), 1: -1})
    columns = [_column("y", y, inputs)]
    if y_variance is not None:
        columns.append(_column("y_variance", y_variance, inputs))
    chunks = [inputs.to_delayed().ravel(), *(column.to_delayed() for column in columns)]
    return DaskRows(chunks, inputs.chunks[0], names, verbose)


def _sized(collection: Any) -> Any:
    """A Dask array with chunks of known sizes."""
    if hasattr(collection, "to_dask_array"):  # a dataframe or series
        collection = collection.to_dask_array()
    return collection.compute_chunk_sizes() if np.isnan(collection.shape[0]) else collection


def _column(name: str, y: Any, X: Any) -> Any:
    """Labels, or another number for each row, in chunks that match those of the inputs."""
    n_rows = X.shape[0]
    if not hasattr(y, "__dask_graph__"):
        nothing = np.empty((n_rows, 0))
        checked = check_labels(y, nothing) if name == "y" else check_known_noise(y, nothing)
        return array.from_array(checked, chunks=(X.chunks[0],))
    y = _sized(y)
    if y.ndim == 2 and y.shape[1] == 1:
        y = y[:, 0]
    if y.ndim != 1:
        raise ValueError(f"{name} must be one-dimensional, got shape {y.shape}.")
    if y.shape[0] != n_rows:
        raise ValueError(f"X and {name} have inconsistent numbers of samples: {n_rows} and {y.shape[0]}.")
    return y.rechunk((X.chunks[0],))


class DaskRows:
    """Rows in chunks of inputs, labels and known noise variances, if any, that Dask computes."""

    def __init__(self, chunks: list[Any], lengths: tuple[int, ...], names: Any, verbose: bool):
        self.n_rows = sum(lengths)
        self._verbose = verbose
        self._first = np.concatenate([[0], np.cumsum(lengths)])
        first = self._first[:-1].tolist()
        self._chunks = [delayed(_read)(start, names, *parts) for start, *parts in zip(first, *chunks, strict=True)]

    def total(self, function: BlockFunction[Any], label: str) -> Any:
        """See RowSource; partial sums are added up in a tree."""
        parts = self._tasks(_total, function)
        while len(parts) > 1:
            parts = [delayed(_add)(*parts[i : i + FAN_IN]) for i in range(0, len(parts), FAN_IN)]
        return self._compute(parts)[0]

    def each(self, function: BlockFunction[Array], label: str) -> Array:
        """See RowSource."""
        return np.concatenate(self._compute(self._tasks(_each, function)), axis=-1)

    def take(self, numbers: Indices) -> tuple[Rows, Array]:
        """See RowSource; only the chunks that hold some of the rows are computed."""
        order = np.argsort(numbers, kind="stable")
        edges = np.searchsorted(numbers[order], self._first)
        parts = [
            delayed(_take)(chunk, numbers[order[start:stop]] - first)
            for chunk, first, start, stop in zip(self._chunks, self._first, edges, edges[1:], strict=False)
            if stop > start
        ]
        chunks = self._compute(parts)
        back = np.argsort(order, kind="stable")
        X = np.concatenate([rows.X for rows, _ in chunks])[back]
        y = np.concatenate([own for _, own in chunks])[back]
        if chunks[0][0].y_variance is None:
            return Rows(X), y
        return Rows(X, np.concatenate([rows.y_variance for rows, _ in chunks])[back]), y

    def gather(self, numbers: Indices) -> RowTaker:
        """See RowSource."""
        rows, y = self.take(numbers)

        def taken(some: Indices) -> tuple[Rows, Array]:
            places = np.searchsorted(numbers, some)
            return rows.take(places), y[places]

        return taken

    def with_targets(self, function: Callable[[Array], Array]) -> DaskRows:
        """See RowSource."""
        both = copy(self)
        both._chunks = self._tasks(_transformed, function)
        return both

    def _tasks(self, kind: Any, function: Callable[..., Any]) -> list[Any]:
        shared = delayed(function, pure=False, traverse=False)
        return [delayed(kind)(shared, chunk) for chunk in self._chunks]

    def _compute(self, tasks: list[Any]) -> list[Any]:
        """Results of tasks: by the cluster whose client is active, or else by Dask's own schedulers."""
        with ProgressBar() if self._verbose else nullcontext():
            return list(compute(*tasks))


def _read(first_row: int, names: Any, X: Any, y: Any, noise: Any = None) -> tuple[Rows, Array]:
    """A chunk as arrays, checked."""
    inputs, labels = np.asarray(X, dtype=np.float64), np.asarray(y, dtype=np.float64)
    check_finite("X", inputs, names, first_row)
    check_finite("y", labels, first_row=first_row)
    return Rows(inputs, None if noise is None else check_known_noise(noise, inputs, first_row)), labels


def _blocks(function: BlockFunction[Any], chunk: tuple[Rows, Array]) -> list[Any]:
    rows, y = chunk
    with one_blas_thread():
        return [function(rows.take(block), y[block]) for block in slices(y.size, BLOCK_ROWS)]


def _total(function: BlockFunction[Any], chunk: tuple[Rows, Array]) -> Any:
    return _add(*_blocks(function, chunk))


def _each(function: BlockFunction[Array], chunk: tuple[Rows, Array]) -> Array:
    return np.concatenate(_blocks(function, chunk), axis=-1)


def _add(*parts: Any) -> Any:
    return reduce(operator.add, parts)


def _transformed(function: Callable[[Array], Array], chunk: tuple[Rows, Array]) -> tuple[Rows, Array]:
    return chunk[0], function(chunk[1])


def _take(chunk: tuple[Rows, Array], places: Indices) -> tuple[Rows, Array]:
    return chunk[0].take(places), chunk[1][places]
