"""Training rows in Dask arrays or dataframes, chunked by rows: on one machine's disk, or on a cluster.

Every task is a function of its chunk of rows alone, and no result is kept anywhere but in Dask's own graph. So a worker
that dies costs the time to compute its chunks again, and changes nothing else.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from contextlib import nullcontext
from functools import reduce
from typing import Any

import numpy as np

from conformal_gp.arrays import Array, Indices
from conformal_gp.rows import BLOCK_ROWS, BlockFunction, Rows, RowTaker
from conformal_gp.threads import one_blas_thread, slices
from conformal_gp.validation import check_finite, check_known_noise, check_labels, learn_inputs

try:
    from dask import array
    from dask.base import compute
    from dask.delayed import delayed
    from dask.diagnostics.progress import ProgressBar
except ImportError as error:
    raise ImportError("Dask collections need Dask: pip install '.[dask]' in a clone of conformal-gp.") from error

# How many partial sums a task adds up.
FAN_IN = 8


def dask_rows(estimator: Any, X: Any, y: Any, y_variance: Any, verbose: bool) -> DaskRows:
    """Rows of Dask collections, checked as far as that can be done without reading them all.

    The estimator learns the number and names of the inputs. Targets and known noise variances may also be in memory.
    """
    if X.ndim != 2:
        raise ValueError(f"X must be two-dimensional, one row for each sample, got shape {X.shape}.")
    names = np.asarray(X.columns) if hasattr(X, "columns") else None
    head = X.head(2, npartitions=-1) if hasattr(X, "head") else None
    inputs = _sized(X)
    if inputs.shape[0] == 0:
        raise ValueError("X has no rows (n_samples=0).")
    learn_inputs(estimator, inputs[:2].compute() if head is None else head, y)
    if estimator._encoding is not None:
        raise ValueError("X has columns of categories, which a Dask collection may not have: encode them first.")
    inputs = inputs.rechunk({0: tuple(length for length in inputs.chunks[0] if length), 1: -1})
    columns = [_checked("X", inputs, names), _checked("y", _column("y", y, inputs))]
    if y_variance is not None:
        columns.append(_checked("y_variance", _column("y_variance", y_variance, inputs)))
    return DaskRows(columns, verbose)


def _checked(name: str, collection: Any, names: Any = None) -> Any:
    """The same numbers in double precision, which are checked whenever they are computed."""
    nothing = np.empty((0,) * collection.ndim)
    return collection.map_blocks(_check, name, names, dtype=np.float64, meta=nothing)


def _check(values: Any, name: str, names: Any, block_info: Any = None) -> Array:
    first_row = block_info[0]["array-location"][0][0]
    if name == "y_variance":
        return check_known_noise(values, values, first_row)
    numbers = np.asarray(values, dtype=np.float64)
    check_finite(name, numbers, names, first_row)
    return numbers


def _sized(collection: Any) -> Any:
    """A Dask array with chunks of known sizes."""
    if hasattr(collection, "to_dask_array"):  # a dataframe or series
        collection = collection.to_dask_array()
    return collection.compute_chunk_sizes() if np.isnan(collection.shape[0]) else collection


def _column(name: str, y: Any, X: Any) -> Any:
    """Targets, or another number for each row, in chunks that match those of the inputs."""
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
    """Rows in Dask arrays of inputs, targets and known noise variances, if any, with the same chunks of rows."""

    def __init__(self, columns: list[Any], verbose: bool):
        self.n_rows = columns[0].shape[0]
        self._columns = columns
        self._verbose = verbose

    def total(self, function: BlockFunction[Any], label: str) -> Any:
        """See RowSource; partial sums are added up in a tree."""
        parts = self._tasks(function, _added)
        while len(parts) > 1:
            parts = [delayed(_added)(parts[i : i + FAN_IN]) for i in range(0, len(parts), FAN_IN)]
        return self._compute(parts)[0]

    def each(self, function: BlockFunction[Array], label: str) -> Array:
        """See RowSource."""
        return _joined(self._compute(self._tasks(function, _joined)))

    def take(self, numbers: Indices) -> tuple[Rows, Array]:
        """See RowSource; only the chunks that hold some of the rows are computed."""
        order = np.argsort(numbers, kind="stable")
        found = self._compute([column[numbers[order]] for column in self._columns])
        back = np.argsort(order, kind="stable")
        X, y, *y_variance = (values[back] for values in found)
        return Rows(X, *y_variance), y

    def gather(self, numbers: Indices) -> RowTaker:
        """See RowSource."""
        rows, y = self.take(numbers)

        def taken(some: Indices) -> tuple[Rows, Array]:
            places = np.searchsorted(numbers, some)
            return rows.take(places), y[places]

        return taken

    def with_targets(self, function: Callable[[Array], Array]) -> DaskRows:
        """See RowSource."""
        X, y, *y_variance = self._columns
        return DaskRows([X, y.map_blocks(function, dtype=np.float64, meta=np.empty(0)), *y_variance], self._verbose)

    def _tasks(self, function: BlockFunction[Any], join: Callable[[list[Any]], Any]) -> list[Any]:
        shared = delayed(function, pure=False, traverse=False)
        chunks = [column.to_delayed().ravel() for column in self._columns]
        return [delayed(_blocks)(shared, join, *parts) for parts in zip(*chunks, strict=True)]

    def _compute(self, tasks: list[Any]) -> list[Any]:
        """Results of tasks: by the cluster whose client is active, or else by Dask's own schedulers."""
        with ProgressBar() if self._verbose else nullcontext():
            return list(compute(*tasks))


def _blocks(
    function: BlockFunction[Any], join: Callable[[list[Any]], Any], X: Array, y: Array, y_variance: Array | None = None
) -> Any:
    """Results of the blocks of a chunk, joined."""
    rows = Rows(X, y_variance)
    with one_blas_thread():
        return join([function(rows.take(block), y[block]) for block in slices(y.size, BLOCK_ROWS)])


def _added(parts: list[Any]) -> Any:
    return reduce(operator.add, parts)


def _joined(parts: list[Array]) -> Array:
    return np.concatenate(parts, axis=-1)
