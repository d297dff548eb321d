"""Rows: a few in memory, and all training rows, which may be read in blocks from a memory map or by Dask."""

from __future__ import annotations

import operator
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import reduce
from typing import Any, NamedTuple, Protocol, Self, TypeVar

import numpy as np
from numpy.typing import NDArray

from conformal_gp.arrays import Array, Indices
from conformal_gp.threads import map_threads, n_threads, slices
from conformal_gp.validation import NO_GAPS, check_numbers, learn_gaps, with_indicators

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

    @property
    def n_rows(self) -> int:
        """Their number."""

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


@dataclass(frozen=True, eq=False)
class ArrayRows:
    """Rows in memory, or in a memory map that is read a block at a time."""

    X: NDArray[Any]
    y: Array
    y_variance: Array | None = None
    n_jobs: int | None = None
    verbose: bool = False
    gaps: Indices = field(default_factory=lambda: NO_GAPS)
    """Inputs of a memory map that have an indicator of missing values."""
    in_memory: bool = True  # joblib may load the rows of a model as a memory map

    @property
    def n_rows(self) -> int:
        """See RowSource."""
        return self.y.size

    @property
    def rows(self) -> Rows:
        """Inputs and known noise of all rows."""
        return self.take(slice(None))[0]

    def take(self, numbers: Indices | slice) -> tuple[Rows, Array]:
        """See RowSource."""
        X = np.asarray(self.X[numbers], dtype=np.float64)
        if not self.in_memory:
            X = with_indicators(X, self.gaps)
        if self.y_variance is None:
            return Rows(X), self.y[numbers]
        return Rows(X, self.y_variance[numbers]), self.y[numbers]

    def gather(self, numbers: Indices) -> RowTaker:
        """See RowSource: they are in memory already, or the system keeps what was read."""
        return self.take

    def with_targets(self, function: Callable[[Array], Array]) -> ArrayRows:
        """See RowSource."""
        return replace(self, y=function(self.y))

    def some(self, numbers: Indices) -> ArrayRows:
        """Some of these rows, which are in memory."""
        rows, y = self.take(numbers)
        return replace(self, X=rows.X, y=y, y_variance=rows.y_variance)

    def extended(self, new: Rows, y: Array) -> ArrayRows:
        """These rows, which are in memory, and others after them."""
        y_variance = None
        if self.y_variance is not None and new.y_variance is not None:
            y_variance = np.append(self.y_variance, new.y_variance)
        return replace(self, X=np.vstack([self.X, new.X]), y=np.append(self.y, y), y_variance=y_variance)

    def total(self, function: BlockFunction[Any], label: str) -> Any:
        """See RowSource; blocks are added in order, so that the number of threads does not matter."""
        return reduce(operator.add, self._map(function, label))

    def each(self, function: BlockFunction[Array], label: str) -> Array:
        """See RowSource."""
        return np.concatenate(list(self._map(function, label)), axis=-1)

    def _map(self, function: BlockFunction[Result], label: str) -> Iterator[Result]:
        """Results of blocks in order, with a line on the standard error stream that counts them."""
        blocks = slices(self.n_rows, BLOCK_ROWS)
        start = time.monotonic()
        # four blocks a thread at a time: results of all blocks may not fit into memory
        for some in slices(len(blocks), 4 * n_threads(self.n_jobs)):
            yield from map_threads(lambda block: function(*self.take(block)), blocks[some], self.n_jobs)
            if self.verbose:
                line = f"\r{label}: {some.stop} of {len(blocks)} blocks of rows, {time.monotonic() - start:.0f} s"
                print(line, end="\n" if some.stop == len(blocks) else "", file=sys.stderr, flush=True)


def extremes(rows: Rows, y: Array) -> Array:
    """Least and greatest value of each input that is not missing, (2, d, 1)."""
    return np.stack([np.fmin.reduce(rows.X), np.fmax.reduce(rows.X)])[:, :, None]


def check_map(estimator: Any, X: NDArray[Any]) -> None:
    """Check values of a memory map a block at a time; the estimator learns where some are missing."""
    missing = estimator.missing == "auto"
    some = np.zeros(X.shape[1], dtype=bool)
    every = np.ones(X.shape[1], dtype=bool)
    for block in slices(len(X), BLOCK_ROWS):
        values = np.asarray(X[block], dtype=np.float64)
        check_numbers("X", values, None, missing, block.start)
        some |= np.isnan(values).any(axis=0)
        every &= np.isnan(values).all(axis=0)
    learn_gaps(estimator, some, every)
