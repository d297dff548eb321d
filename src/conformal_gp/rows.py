"""Training rows that are read in blocks: the interface that a model of many rows needs, and rows held by NumPy."""

from __future__ import annotations

import operator
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from functools import partial, reduce
from itertools import pairwise
from typing import Any, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from conformal_gp.threads import map_threads
from conformal_gp.types import Array
from conformal_gp.types import Rows as Numbers
from conformal_gp.validation import check_finite

Result = TypeVar("Result")
BlockFunction = Callable[[Array, Array], Result]


class RowTaker(Protocol):
    """Rows (X, y) that can be taken by their numbers."""

    def take(self, numbers: Numbers) -> tuple[Array, Array]:
        """Rows by their numbers."""


class Rows(RowTaker, Protocol):
    """All training rows, wherever they are."""

    n_rows: int

    def total(self, function: BlockFunction[Any], label: str) -> Any:
        """Sum of ``function(X, y)`` over blocks of rows; results support addition."""

    def each(self, function: BlockFunction[Array], label: str) -> Array:
        """Arrays ``function(X, y)`` of blocks of rows, joined in order along the last axis."""

    def gather(self, numbers: Numbers) -> RowTaker:
        """Rows with these ascending numbers, to be taken from many times."""


def slices(n_rows: int, block_rows: int) -> list[slice]:
    """Blocks of nearly equal size, of at most ``block_rows``.

    >>> slices(5, 2)
    [slice(0, 2, None), slice(2, 3, None), slice(3, 5, None)]
    """
    edges = np.linspace(0, n_rows, -(-n_rows // block_rows) + 1).round().astype(int).tolist()
    return [slice(start, stop) for start, stop in pairwise(edges)]


def watched(items: Iterable[Result], n_items: int, label: str, verbose: bool) -> Iterator[Result]:
    """The items, with a line on the standard error stream that counts them."""
    start = time.monotonic()
    for done, item in enumerate(items, start=1):
        if verbose:
            end = "\n" if done == n_items else ""
            line = f"\r{label}: {done} of {n_items} blocks of rows, {time.monotonic() - start:.0f} s"
            print(line, end=end, file=sys.stderr, flush=True)
        yield item


class ArrayRows:
    """Rows in memory, or in a memory map that is read a block at a time.

    Parameters
    ----------
    X : ndarray of shape (l, d)
        Inputs. Blocks of a memory map are checked as they are read.
    y : ndarray of shape (l,)
        Labels.
    block_rows : int
        Most rows of a block.
    n_jobs : int or None
        Threads over blocks.
    verbose : bool
        Whether to show progress.
    names : ndarray of str, or None
        Names of the inputs, for messages.
    """

    def __init__(
        self, X: NDArray[Any], y: Array, block_rows: int, n_jobs: int | None, verbose: bool, names: Any = None
    ):
        self.n_rows = y.size
        self._X = X
        self.y = y
        self._block_rows = block_rows
        self._n_jobs = n_jobs
        self._verbose = verbose
        self._names = names

    def _map(self, function: BlockFunction[Result], label: str) -> Iterator[Result]:
        blocks = slices(self.n_rows, self._block_rows)
        results = map_threads(partial(self._apply, function), blocks, self._n_jobs)
        return watched(results, len(blocks), label, self._verbose)

    def _apply(self, function: BlockFunction[Result], block: slice) -> Result:
        X = np.asarray(self._X[block], dtype=np.float64)
        check_finite("X", X, self._names, first_row=block.start)
        return function(X, self.y[block])

    def total(self, function: BlockFunction[Any], label: str) -> Any:
        """See Rows; blocks are added in order, so that the number of threads does not matter."""
        return reduce(operator.add, self._map(function, label))

    def each(self, function: BlockFunction[Array], label: str) -> Array:
        """See Rows."""
        return np.concatenate(list(self._map(function, label)), axis=-1)

    def take(self, numbers: Numbers) -> tuple[Array, Array]:
        """See Rows."""
        X = np.asarray(self._X[numbers], dtype=np.float64)
        check_finite("X", X, self._names)
        return X, self.y[numbers]

    def gather(self, numbers: Numbers) -> RowTaker:
        """See Rows: they are in memory already."""
        return self


class GatheredRows:
    """Some rows of a larger set, held in memory under their numbers there."""

    def __init__(self, numbers: Numbers, X: Array, y: Array):
        self._numbers = numbers
        self._X = X
        self._y = y

    def take(self, numbers: Numbers) -> tuple[Array, Array]:
        """See Rows."""
        places = np.searchsorted(self._numbers, numbers)
        return self._X[places], self._y[places]


class MappedRows:
    """Rows whose labels are mapped as they are read.

    Parameters
    ----------
    rows : Rows
        The rows.
    function : callable
        From labels to labels; picklable where rows are on a cluster.
    """

    def __init__(self, rows: Any, function: Callable[[Array], Array]):
        self._rows = rows
        self._function = function
        self.n_rows: int = getattr(rows, "n_rows", 0)

    def total(self, function: BlockFunction[Any], label: str) -> Any:
        """See Rows."""
        return self._rows.total(partial(_of_mapped, function, self._function), label)

    def each(self, function: BlockFunction[Array], label: str) -> Array:
        """See Rows."""
        return self._rows.each(partial(_of_mapped, function, self._function), label)

    def take(self, numbers: Numbers) -> tuple[Array, Array]:
        """See Rows."""
        X, y = self._rows.take(numbers)
        return X, self._function(y)

    def gather(self, numbers: Numbers) -> RowTaker:
        """See Rows."""
        return MappedRows(self._rows.gather(numbers), self._function)


def _of_mapped(function: BlockFunction[Result], mapped: Callable[[Array], Array], X: Array, y: Array) -> Result:
    return function(X, mapped(y))
