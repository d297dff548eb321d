"""Training rows in Dask arrays or dataframes, chunked by rows: on one machine's disk, or on a cluster.

Every task is a function of its chunk of rows alone, and no result is kept anywhere but in Dask's own graph. So a worker
that dies costs the time to compute its chunks again, and changes nothing else.
"""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator

from conformal_gp.rows import BlockFunction, GatheredRows, RowTaker, slices
from conformal_gp.tables.cells import MISSING_MARKS
from conformal_gp.tables.dialect import Dialect
from conformal_gp.tables.folder import scan_folder
from conformal_gp.threads import one_blas_thread
from conformal_gp.types import Array
from conformal_gp.types import Rows as Numbers
from conformal_gp.validation import check_finite, check_inputs, check_labels, with_known_noise

try:
    from dask import array
    from dask.base import compute
    from dask.delayed import delayed
    from dask.diagnostics.progress import ProgressBar
except ImportError as error:
    raise ImportError("Rows in Dask collections need Dask: pip install 'conformal-gp[dask]'.") from error

__all__ = ["read_folder"]


FAN_IN = 8
"""How many partial sums a task adds up."""


def dask_rows(
    estimator: BaseEstimator, X: Any, y: Any, noise_variance: Any, block_rows: int, verbose: bool
) -> DaskRows:
    """Rows of Dask collections, checked as far as that can be done without reading them all.

    Parameters
    ----------
    estimator : BaseEstimator
        Learns the number and names of the inputs.
    X : Dask array of shape (l, d), or Dask dataframe
        Inputs, chunked by rows.
    y : Dask array of shape (l,), Dask series, or array-like
        Labels.
    noise_variance : Dask array of shape (l,), Dask series, array-like, or None
        Known noise variances, which are read as one more column of inputs.
    block_rows : int
        Most rows of a chunk that a task works on at a time.
    verbose : bool
        Whether to show progress.

    Returns
    -------
    rows : DaskRows
        The rows.
    """
    X, lengths, names = _chunks(X)
    n_rows = sum(lengths)
    if n_rows == 0:
        raise ValueError("X has no rows (n_samples=0).")
    parts = [part for part, length in zip(X, lengths, strict=True) if length]
    lengths = [length for length in lengths if length]
    check_inputs(estimator, delayed(_head)(parts[0]).compute(), reset=True, y=y)
    labels = _column("y", y, n_rows, lengths)
    noise = [None] * len(lengths)
    if noise_variance is not None:
        noise = _column("noise_variance", noise_variance, n_rows, lengths)
    return DaskRows(parts, labels, noise, lengths, names, block_rows, verbose)


def read_folder(
    path: str | Path,
    label: str,
    *,
    separator: str | None = None,
    decimal: str | None = None,
    missing_marks: Iterable[str] = (),
) -> tuple[Any, Any]:
    r"""Rows of a CSV or Parquet file, or of a folder of such files, without reading them into memory.

    Parameters
    ----------
    path : str or Path
        A file or a folder, as :func:`conformal_gp.tables.folder.scan_folder` takes it.
    label : str
        Column of the labels; all others are inputs.
    separator, decimal : str, default=None
        Of CSV files; None detects them.
    missing_marks : iterable of str
        Texts that mean a missing value in CSV files, besides the usual ones.

    Returns
    -------
    X : Dask dataframe
        Inputs.
    y : Dask series
        Labels.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from conformal_gp.dask_rows import read_folder
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     _ = (Path(folder) / "one.csv").write_text("size,price\n1,10\n2,21\n")
    ...     X, y = read_folder(folder, "price")
    ...     print(list(X.columns), y.compute().tolist())
    ['size'] [10.0, 21.0]
    """
    from dask import dataframe

    folder = scan_folder(path, separator=separator, decimal=decimal)
    if folder.dialect is None:
        rows = dataframe.read_parquet([str(file) for file in folder.files])
    else:
        marks = sorted(MISSING_MARKS | frozenset(missing_marks))
        packed = [str(file) for file in folder.files if file.suffix.lower() != ".csv"]
        plain = [str(file) for file in folder.files if file.suffix.lower() == ".csv"]
        # A compressed file cannot be cut into blocks.
        parts = [_read_csv([file], folder.dialect, marks, None) for file in packed]
        if plain:
            parts.insert(0, _read_csv(plain, folder.dialect, marks, "default"))
        rows = parts[0] if len(parts) == 1 else dataframe.concat(parts)
    if label not in rows.columns:
        raise ValueError(f"label must be a column of {path}, got {label!r}; columns are {', '.join(rows.columns)}.")
    return rows.drop(columns=label), rows[label]


def _read_csv(files: list[str], dialect: Dialect, marks: list[str], blocksize: str | None) -> Any:
    from dask import dataframe

    options = {
        "sep": dialect.separator,
        "decimal": dialect.decimal,
        "encoding": dialect.encoding,
        "na_values": marks,
        "keep_default_na": False,
        "skipinitialspace": True,
        "blocksize": blocksize,
    }
    rows = dataframe.read_csv(files, **options)
    # Types are guessed from the first rows, and whole numbers may be followed by others.
    whole = {name: np.float64 for name, kind in rows.dtypes.items() if getattr(kind, "kind", "O") in "iu"}
    return dataframe.read_csv(files, dtype=whole, **options) if whole else rows


class DaskRows:
    """Rows in chunks that Dask computes.

    Parameters
    ----------
    X, y, noise : list of Delayed or arrays
        Chunks of inputs, of labels and of known noise variances; these may be None.
    lengths : list of int
        Rows of each chunk.
    names : ndarray of str, or None
        Names of the inputs, for messages.
    block_rows : int
        Most rows of a chunk that a task works on at a time.
    verbose : bool
        Whether to show progress.
    """

    def __init__(
        self,
        X: list[Any],
        y: list[Any],
        noise: list[Any],
        lengths: list[int],
        names: Any,
        block_rows: int,
        verbose: bool,
    ):
        self.n_rows = sum(lengths)
        self._first = np.concatenate([[0], np.cumsum(lengths)])
        self._names = names
        self._block_rows = block_rows
        self._verbose = verbose
        self._chunks = [
            delayed(_read)(*parts, int(first), names)
            for *parts, first in zip(X, y, noise, self._first[:-1], strict=True)
        ]

    def total(self, function: BlockFunction[Any], label: str) -> Any:
        """See Rows; partial sums are added up in a tree."""
        shared = delayed(function, pure=False, traverse=False)
        parts = [delayed(_total)(shared, chunk, self._block_rows) for chunk in self._chunks]
        while len(parts) > 1:
            parts = [delayed(_add)(*parts[i : i + FAN_IN]) for i in range(0, len(parts), FAN_IN)]
        return self._compute(parts)[0]

    def each(self, function: BlockFunction[Array], label: str) -> Array:
        """See Rows."""
        shared = delayed(function, pure=False, traverse=False)
        parts = [delayed(_each)(shared, chunk, self._block_rows) for chunk in self._chunks]
        return np.concatenate(self._compute(parts), axis=-1)

    def take(self, numbers: Numbers) -> tuple[Array, Array]:
        """See Rows; only the chunks that hold some of the rows are computed."""
        order = np.argsort(numbers, kind="stable")
        edges = np.searchsorted(numbers[order], self._first)
        parts = [
            delayed(_take)(chunk, numbers[order[start:stop]] - first)
            for chunk, first, start, stop in zip(self._chunks, self._first, edges, edges[1:], strict=False)
            if stop > start
        ]
        X, y = (np.concatenate(part) for part in zip(*self._compute(parts), strict=True))
        back = np.argsort(order, kind="stable")
        return X[back], y[back]

    def gather(self, numbers: Numbers) -> RowTaker:
        """See Rows."""
        return GatheredRows(numbers, *self.take(numbers))

    def _compute(self, tasks: list[Any]) -> list[Any]:
        """Results of tasks: by the cluster whose client is active, or else by Dask's own schedulers."""
        client = _client()
        if client is None:
            with ProgressBar() if self._verbose else nullcontext():
                return list(compute(*tasks))
        futures = client.compute(tasks)
        if self._verbose:
            from distributed import progress

            progress(futures, notebook=False)
        return client.gather(futures)


def _client() -> Any:
    """The active client of a cluster, or None."""
    try:
        from distributed import default_client

        return default_client()
    except (ImportError, ValueError):
        return None


def _chunks(X: Any) -> tuple[list[Any], list[int], Any]:
    """Chunks of rows, their lengths, and the names of the inputs."""
    if hasattr(X, "columns"):
        return *_partitions(X), np.asarray(X.columns)
    if X.ndim != 2:
        raise ValueError(f"X must be two-dimensional, one row for each sample, got shape {X.shape}.")
    if np.isnan(X.shape[0]):
        X = X.compute_chunk_sizes()
    X = X.rechunk({1: -1})
    return list(X.to_delayed().ravel()), list(X.chunks[0]), None


def _partitions(frame: Any) -> tuple[list[Any], list[int]]:
    """Partitions of a dataframe or series, and their lengths, which have to be computed."""
    parts = frame.to_delayed()
    return parts, list(compute(*map(delayed(len), parts)))


def _column(name: str, y: Any, n_rows: int, lengths: list[int]) -> list[Any]:
    """Chunks of labels, or of another number for each row, that match those of the inputs."""
    if not hasattr(y, "__dask_graph__"):
        nothing = np.empty((n_rows, 0))
        checked = check_labels(y, nothing) if name == "y" else with_known_noise(nothing, y)[:, 0]
        return np.split(checked, np.cumsum(lengths)[:-1])
    if hasattr(y, "npartitions") and not hasattr(y, "chunks"):
        parts = [
            array.from_delayed(part, (length, *y.shape[1:]), dtype=float)
            for part, length in zip(*_partitions(y), strict=True)
        ]
        y = array.concatenate(parts)
    if np.isnan(y.shape[0]):
        y = y.compute_chunk_sizes()
    if y.ndim == 2 and y.shape[1] == 1:
        y = y[:, 0]
    if y.ndim != 1:
        raise ValueError(f"{name} must be one-dimensional, got shape {y.shape}.")
    if y.shape[0] != n_rows:
        raise ValueError(f"X and {name} have inconsistent numbers of samples: {n_rows} and {y.shape[0]}.")
    return list(y.rechunk((tuple(lengths),)).to_delayed())


def _head(part: Any) -> Any:
    return part[:2]


def _read(X: Any, y: Any, noise: Any, first_row: int, names: Any) -> tuple[Array, Array]:
    """A chunk as arrays, checked; known noise variances are the last column of inputs."""
    inputs, labels = np.asarray(X, dtype=np.float64), np.asarray(y, dtype=np.float64)
    check_finite("X", inputs, names, first_row)
    check_finite("y", labels, first_row=first_row)
    return inputs if noise is None else with_known_noise(inputs, noise, first_row), labels


def _blocks(function: BlockFunction[Any], chunk: tuple[Array, Array], block_rows: int) -> list[Any]:
    X, y = chunk
    with one_blas_thread():
        return [function(X[block], y[block]) for block in slices(y.size, block_rows)]


def _total(function: BlockFunction[Any], chunk: tuple[Array, Array], block_rows: int) -> Any:
    return _add(*_blocks(function, chunk, block_rows))


def _each(function: BlockFunction[Array], chunk: tuple[Array, Array], block_rows: int) -> Array:
    return np.concatenate(_blocks(function, chunk, block_rows), axis=-1)


def _add(first: Any, *others: Any) -> Any:
    for other in others:
        first = first + other
    return first


def _take(chunk: tuple[Array, Array], places: Numbers) -> tuple[Array, Array]:
    return chunk[0][places], chunk[1][places]
