"""From a table in a file to training rows and an unfitted model."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from conformal_gp.cli.output import Output
from conformal_gp.regressor import ConformalGPRegressor
from conformal_gp.sparse import SparseConformalGPRegressor
from conformal_gp.tables import Columns, Table, TableError, read_table
from conformal_gp.tables.dialect import Dialect

Array = NDArray[np.float64]
Model = ConformalGPRegressor | SparseConformalGPRegressor

# An exact Gaussian process keeps matrices of rows times rows: 200 MB each at this many. More go to the low-rank one.
MOST_EXACT_ROWS = 5000
FEWEST_ROWS = 3
# With a linear mean, rows for each of its coefficients; half of them are enough to learn it from (tuning="holdout").
ROWS_PER_COEFFICIENT = 6


@dataclass(frozen=True)
class Reading:
    """How tables are read."""

    separator: str | None = None
    decimal: str | None = None
    missing: str = "error"
    category_inputs: str = "onehot"
    drop: Sequence[str] = field(default_factory=tuple)
    na: Sequence[str] = field(default_factory=tuple)
    sample: int | None = None

    def table(self, source: str, output: Output, like: Dialect | None = None) -> Table:
        """Read one, as another (``like``) is written; what was guessed is said."""
        table = read_table(source, separator=self.separator, decimal=self.decimal, like=like)
        guessed = table.dialect.described()
        if table.lines is not None and guessed and table.dialect != like:
            output.notice(f"{table.name} is read with {guessed}; --separator and --decimal say otherwise")
        if like is not None and like.marked and table.dialect.marked and like.decimal != table.dialect.decimal:
            output.notice(
                f"the decimal mark is '{table.dialect.decimal}' in {table.name}, but '{like.decimal}' in the training "
                "rows; each is read with its own"
            )
        return table


@dataclass(frozen=True)
class ModelChoice:
    """The model that was asked for."""

    kernel: str = "matern52"
    mean: str = "auto"
    tuning: str = "auto"
    gamma: float = 2.0
    seed: int = 0
    jobs: int | None = None

    def model(self, n_rows: int, n_inputs: int, tuning: str | None = None) -> Model:
        """The model, unfitted; its kind and mean function depend on the numbers of rows and inputs alone."""
        if n_rows > MOST_EXACT_ROWS:
            return self.low_rank(n_rows, n_inputs)
        return ConformalGPRegressor(
            self.kernel,
            mean=self.mean_for(n_rows, n_inputs),
            gamma=self.gamma,
            tuning=self.tuning if tuning is None else tuning,
            random_state=self.seed,
            n_jobs=self.jobs,
        )

    def low_rank(self, n_rows: int, n_inputs: int) -> SparseConformalGPRegressor:
        """The model for many rows, unfitted."""
        if self.tuning not in ("auto", "holdout"):
            raise TableError(
                f"--tuning {self.tuning} takes up to {MOST_EXACT_ROWS:,} rows of one file, got {n_rows:,}; leave it "
                f"out, or give --sample {MOST_EXACT_ROWS}."
            )
        return SparseConformalGPRegressor(
            self.kernel,
            mean=self.mean_for(n_rows, n_inputs),
            gamma=self.gamma,
            random_state=self.seed,
            n_jobs=self.jobs,
        )

    def mean_for(self, n_rows: int, n_inputs: int) -> str:
        """The mean function: linear, unless there are too few rows to learn it from."""
        if self.mean != "auto":
            return self.mean
        return "linear" if n_rows >= ROWS_PER_COEFFICIENT * (n_inputs + 1) else "constant"


def tuning_of(model: Model) -> str:
    """The way of tuning that a fitted model took."""
    return str(getattr(model, "tuning_", model.tuning))


class Training(NamedTuple):
    """Training rows, and how they came out of their table."""

    X: Array
    y: Array
    columns: Columns
    rows: NDArray[np.int64]
    """Which rows of the table these are, from 0."""


def read_training(source: str, target: str, reading: Reading, seed: int, output: Output) -> Training:
    """Read a table with labels."""
    table = reading.table(source, output)
    columns = Columns.learn(
        table,
        target,
        leave_out=reading.drop,
        category_inputs=reading.category_inputs,
        missing=reading.missing,
        missing_marks=reading.na,
    )
    for notice in columns.notices():
        output.notice(notice)
    (X, numbers), y = columns.training_rows(table)
    if reading.missing == "impute" and y.size < len(table):
        output.notice(f"{len(table) - y.size} of {len(table)} rows of {table.name} have no label and were left out")
    elif y.size < len(table):
        name, count = columns.emptiest(table)
        output.notice(
            f"{len(table) - y.size} of {len(table)} rows of {table.name} lack a value and were dropped; column "
            f"'{name}' alone lacks {count}"
        )
    if reading.missing == "impute":
        output.notice(
            "missing inputs are filled in from the training rows, so new rows are not treated quite alike: the "
            "guarantee is no longer exact"
        )
    if y.size < FEWEST_ROWS:
        raise TableError(f"{table.name} has {y.size} rows with labels; at least {FEWEST_ROWS} are needed.")
    if reading.sample is not None and reading.sample < y.size:
        rows = np.sort(np.random.RandomState(seed).permutation(y.size)[: reading.sample])
        output.notice(f"{rows.size} of {y.size} rows, drawn at random")
        X, y, numbers = X[rows], y[rows], numbers[rows]
    if y.size > MOST_EXACT_ROWS:
        output.notice(
            f"{y.size:,} rows are too many for the exact Gaussian process (up to {MOST_EXACT_ROWS:,}): a low-rank one "
            "is used, tuned on design rows; the guarantee stays exact. --sample N takes the exact one on N rows drawn "
            "at random"
        )
    return Training(X, y, columns, numbers)
