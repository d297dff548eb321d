"""Training rows in a folder of CSV or Parquet files, read through Dask a part at a time."""

from __future__ import annotations

from pathlib import Path

from conformal_gp.cli.output import Output
from conformal_gp.cli.training import ModelChoice, Reading
from conformal_gp.sparse import SparseConformalGPRegressor
from conformal_gp.tables import Columns, TableError
from conformal_gp.tables.errors import did_you_mean, listed
from conformal_gp.tables.folder import scan_folder

EXTRA = "conformal-gp[dask]"


def is_folder(source: str) -> bool:
    """Whether a table is a folder of files."""
    return source != "-" and Path(source).is_dir()


def fit_to_folder(
    source: str, target: str, reading: Reading, choice: ModelChoice, output: Output, noise_column: str | None = None
) -> tuple[SparseConformalGPRegressor, Columns]:
    """A low-rank model fitted to all rows of a folder, which are never in memory together.

    All columns but the target must be numbers: categories would have to be known before the rows are read.
    """
    if reading.missing != "error" or reading.sample is not None:
        raise TableError(f"{source} is a folder: --missing and --sample are for single files.")
    try:
        from conformal_gp.dask_rows import read_folder
    except ModuleNotFoundError as error:
        raise TableError(f"{source} is a folder: reading it needs pip install '{EXTRA}' ({error}).") from error
    folder = scan_folder(source, separator=reading.separator, decimal=reading.decimal)
    if folder.others:
        output.notice(f"files in {source} that are not read: {listed(folder.others, most=5)}")
    try:
        X, y = read_folder(
            source, target, separator=reading.separator, decimal=reading.decimal, missing_marks=reading.na
        )
    except (ValueError, OSError) as error:
        raise TableError(f"{source}: {error}") from error
    names = [str(name) for name in X.columns]
    dropped = reading.dropped(names)
    noisy = [] if noise_column is None else [noise_column]
    unknown = [name for name in (*dropped, *noisy) if name not in names]
    if unknown:
        raise TableError(f"{source} has no column {listed(unknown)}.{did_you_mean(unknown[0], names)}")
    if noise_column in dropped:
        raise TableError(f"the column of noise variances '{noise_column}' cannot be dropped.")
    X = X.drop(columns=dropped)
    text = [str(name) for name, kind in X.dtypes.items() if getattr(kind, "kind", "O") not in "iufb"]
    if text:
        raise TableError(
            f"{source}: columns that are not numbers: {listed(text)}. A folder is read as numbers; turn them into "
            f"numbers, or leave them out with {' '.join(f'--drop {name}' for name in text)}."
        )
    noise = None if noise_column is None else X[noise_column]
    X = X.drop(columns=noisy)
    if len(X.columns) == 0:
        raise TableError(f"{source} has no column besides the target '{target}' to predict it from.")
    n_rows = len(y)
    output.notice(f"{n_rows:,} rows in {source}, read in parts: a low-rank Gaussian process is used")
    model = choice.low_rank(n_rows).fit(X, y, noise_variance=noise)
    return model, Columns.of_numbers(
        source,
        target,
        map(str, X.columns),
        missing_marks=tuple(reading.na),
        left_out=tuple(dropped),
        dialect=folder.dialect,
        noise=noise_column,
    )
