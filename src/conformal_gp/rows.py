"""Rows: a few in memory, and all training rows, which may be read in blocks from a memory map or by Dask."""

from __future__ import annotations

import operator
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from copy import copy
from functools import partial, reduce
from typing import Any, NamedTuple, Protocol, Self, TypeVar

import numpy as np
from numpy.typing import NDArray

from conformal_gp.arrays import Array, Indices
from conformal_gp.encoding import learn_gaps, with_indicators
from conformal_gp.threads import map_threads, n_threads, slices
from conformal_gp.validation import check_finite

Result = TypeVar("Result")
# Rows that are read, and worked on by a thread, at a time: memory is in proportion.
BLOCK_ROWS = 8192


class Rows(NamedTuple):
    """Inputs of n rows as they were given, and the known variances of their targets' noise."""

    X: Array
    """(n, d): inputs, unscaled, NaN where a value is missing."""
    y_variance: Array | None = None
    """(n,): known noise variances; None where they were not given."""

    @property
    def content(self) -> Array:
        """What tells rows apart besides their targets, (n, d): inputs, and variances where they are known."""
        if self.y_variance is None:
            return self.X
        return np.column_stack([self.X, self.y_variance])

    def take(self, rows: Indices | slice) -> Rows:
        """Some of the rows."""
        if self.y_variance is None:
            return Rows(self.X[rows])
        return Rows(self.X[rows], self.y_variance[rows])

    def extended(self, later: Rows) -> Rows:
        """These rows and others after them."""
        X = np.vstack([self.X, later.X])
        if self.y_variance is None or later.y_variance is None:
            return Rows(X)
        return Rows(X, np.append(self.y_variance, later.y_variance))


def content_order(X: Array, y: Array) -> Indices:
    """Rows in an order that their values determine.

    >>> content_order(np.array([[2.0], [1.0], [1.0]]), np.array([0.0, 5.0, 4.0]))
    array([2, 1, 0])
    """
    return np.lexsort((y, *X.T[::-1]))


BlockFunction = Callable[[Rows, Array], Result]
RowTaker = Callable[[Indices], tuple[Rows, Array]]


@contextmanager
def stage(name: str, shown: bool) -> Iterator[None]:
    """Name a stage of a fit on the standard error stream when it begins, and its time when it ends."""
    start = time.monotonic()
    if shown:
        print(f"{name} ...", file=sys.stderr, flush=True)
    yield
    if shown:
        print(f"{name}: {time.monotonic() - start:.1f} s", file=sys.stderr, flush=True)


class RowSource(Protocol):
    """All training rows, wherever they are."""

    n_rows: int

    def take(self, numbers: Indices) -> tuple[Rows, Array]:
        """Inputs and targets of rows by their numbers."""

    def total(self, function: BlockFunction[Any], label: str) -> Any:
        """Sum of ``function(rows, y)`` over blocks of rows; results support addition."""

    def each(self, function: BlockFunction[Array], label: str) -> Array:
        """Arrays ``function(rows, y)`` of blocks of rows, joined in order along the last axis."""

    def gather(self, numbers: Indices) -> RowTaker:
        """Bring rows with these ascending numbers together: a function as ``take``, to be called many times."""

    def with_targets(self, function: Callable[[Array], Array]) -> Self:
        """The same rows, their targets transformed; the function can be pickled for a cluster."""


class ArrayRows:
    """Rows in memory, or in a memory map that is read, and checked, a block at a time."""

    def __init__(
        self,
        X: NDArray[Any],
        y: Array,
        y_variance: Array | None,
        n_jobs: int | None,
        verbose: bool = False,
        names: Any = None,
        gaps: Indices | None = None,
    ):
        self.n_rows = y.size
        self.in_memory = not isinstance(X, np.memmap)  # joblib may load the rows of a model as a memory map
        self.y = y
        self._X = X
        self._y_variance = y_variance
        self._n_jobs = n_jobs
        self._verbose = verbose
        self._names = names
        self._gaps = gaps

    def _map(self, function: BlockFunction[Result], label: str) -> Iterator[Result]:
        """Results of blocks in order, with a line on the standard error stream that counts them."""
        blocks = slices(self.n_rows, BLOCK_ROWS)
        start = time.monotonic()
        # four blocks a thread at a time: results of all blocks may not fit into memory
        for some in slices(len(blocks), 4 * n_threads(self._n_jobs)):
            yield from map_threads(partial(self._apply, function), blocks[some], self._n_jobs)
            if self._verbose:
                line = f"\r{label}: {some.stop} of {len(blocks)} blocks of rows, {time.monotonic() - start:.0f} s"
                print(line, end="\n" if some.stop == len(blocks) else "", file=sys.stderr, flush=True)

    def _apply(self, function: BlockFunction[Result], block: slice) -> Result:
        return function(self._taken(block, block.start), self.y[block])

    def _taken(self, rows: slice | Indices, first_row: int = 0) -> Rows:
        X = np.asarray(self._X[rows], dtype=np.float64)
        if not self.in_memory:
            X = self._checked(X, first_row)
        return Rows(X, None if self._y_variance is None else self._y_variance[rows])

    def _checked(self, X: Array, first_row: int) -> Array:
        """Rows of a memory map; ``gaps`` are None if no values may be missing."""
        if self._gaps is None:
            check_finite("X", X, self._names, first_row=first_row)
            return X
        check_finite("X", np.where(np.isnan(X), 0.0, X), self._names, first_row=first_row)
        return with_indicators(X, self._gaps, str)

    def total(self, function: BlockFunction[Any], label: str) -> Any:
        """See RowSource; blocks are added in order, so that the number of threads does not matter."""
        return reduce(operator.add, self._map(function, label))

    def each(self, function: BlockFunction[Array], label: str) -> Array:
        """See RowSource."""
        return np.concatenate(list(self._map(function, label)), axis=-1)

    def take(self, numbers: Indices) -> tuple[Rows, Array]:
        """See RowSource."""
        return self._taken(numbers), self.y[numbers]

    def some(self, numbers: Indices) -> ArrayRows:
        """Some of these rows, in memory."""
        fewer = copy(self)
        fewer._X, fewer._y_variance = self._taken(numbers)
        fewer.y = self.y[numbers]
        fewer.n_rows = numbers.size
        return fewer

    @property
    def rows(self) -> Rows:
        """Inputs and known noise of all rows."""
        return self._taken(slice(None))

    def extended(self, new: Rows, y: Array) -> ArrayRows:
        """These rows and others after them, in memory."""
        both = copy(self)
        both._X, both._y_variance = Rows(self._X, self._y_variance).extended(new)
        both.y = np.append(self.y, y)
        both.n_rows = both.y.size
        return both

    def gather(self, numbers: Indices) -> RowTaker:
        """See RowSource: they are in memory already."""
        return self.take

    def with_targets(self, function: Callable[[Array], Array]) -> ArrayRows:
        """See RowSource."""
        both = copy(self)
        both.y = function(self.y)
        return both


def mapped_gaps(X: NDArray[Any]) -> Indices:
    """Inputs that are missing in some rows of a memory map, which is read a block at a time."""
    some = np.zeros(X.shape[1], dtype=bool)
    every = np.ones(X.shape[1], dtype=bool)
    for block in slices(len(X), BLOCK_ROWS):
        missing = np.isnan(np.asarray(X[block], dtype=np.float64))
        some |= missing.any(axis=0)
        every &= missing.all(axis=0)
    # two rows that lack what some rows lack, and what all do
    return learn_gaps(np.where([some, every], np.nan, 0.0), "column {}".format)


def extremes(rows: Rows, y: Array) -> Array:
    """Least and greatest value of each input that is not missing, (2, d, 1)."""
    return np.stack([np.fmin.reduce(rows.X), np.fmax.reduce(rows.X)])[:, :, None]
