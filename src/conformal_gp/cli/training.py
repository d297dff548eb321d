"""Training rows from a table in a file, and the unfitted model for them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from conformal_gp.cli import options
from conformal_gp.cli.output import Output
from conformal_gp.regressor import ConformalGPRegressor
from conformal_gp.sparse import SparseConformalGPRegressor
from conformal_gp.tables import Columns, Table, TableError, read_table
from conformal_gp.tables.dialect import Dialect
from conformal_gp.types import Array

Model = ConformalGPRegressor | SparseConformalGPRegressor

# Largest number of rows of an exact Gaussian process, whose n by n matrices then take 200 MB each. Beyond it the
# low-rank model is used.
MOST_EXACT_ROWS = 5000
FEWEST_ROWS = 3


@dataclass(frozen=True)
class Reading:
    """Options on how tables are read."""

    missing: options.Missing = "error"
    categories: options.Categories = "onehot"
    unseen: options.Unseen = "error"
    dates: options.Dates = "error"
    drop: options.Drop = field(default_factory=list)
    na: options.Na = field(default_factory=list)
    separator: options.Separator = None
    decimal: options.Decimal = None
    sample: options.Sample = None

    def dropped(self, names: Sequence[str]) -> list[str]:
        """Columns to leave out, of those that a table has; ``--drop a,b`` are two, unless a column is called so.

        >>> Reading(drop=["a,b", "c,d"]).dropped(["a", "b", "c,d", "y"])
        ['a', 'b', 'c,d']
        """
        given = [[name] if name in names else name.split(",") for name in self.drop]
        return [name for part in given for name in part]

    def table(self, source: str, output: Output, like: Dialect | None = None) -> Table:
        """Read a table, in doubt as one (``like``) that was read before; say what was guessed."""
        table = read_table(source, separator=self.separator, decimal=self.decimal, like=like)
        guessed = table.dialect.described()
        if table.note:
            output.notice(table.note)
        if not table.typed and guessed and table.dialect != like:
            output.notice(f"{table.name} is read with {guessed}; --separator and --decimal say otherwise")
        if like is not None and like.marked and table.dialect.marked and like.decimal != table.dialect.decimal:
            output.notice(
                f"the decimal mark is '{table.dialect.decimal}' in {table.name}, but '{like.decimal}' in the training "
                "rows; each is read with its own"
            )
        return table


@dataclass(frozen=True)
class ModelChoice:
    """Options of the model."""

    kernel: options.Kernel = "matern52"
    mean: options.Mean = "auto"
    tuning: options.Tuning = "auto"
    gamma: options.Gamma = 2.0
    log: options.Log = False
    warp: options.Warp = None
    noise: options.Noise = "constant"
    seed: options.Seed = 0
    jobs: options.Jobs = None

    @property
    def _warp(self) -> options.WarpName | None:
        """How labels are mapped."""
        if self.log and self.warp not in (None, "log"):
            raise TableError(f"--log is short for --warp log, and --warp {self.warp} is given too.")
        return "log" if self.log else self.warp

    def model(self, n_rows: int, tuning: str | None = None) -> Model:
        """The unfitted model. Its class depends only on the number of rows."""
        if n_rows > MOST_EXACT_ROWS:
            return self.low_rank(n_rows)
        return ConformalGPRegressor(
            self.kernel,
            mean=self.mean,
            gamma=self.gamma,
            warp=self._warp,
            noise=self.noise,
            tuning=self.tuning if tuning is None else tuning,
            random_state=self.seed,
            n_jobs=self.jobs,
        )

    def low_rank(self, n_rows: int) -> SparseConformalGPRegressor:
        """The unfitted model for many rows."""
        if self.tuning not in ("auto", "holdout"):
            raise TableError(
                f"--tuning {self.tuning} takes up to {MOST_EXACT_ROWS:,} rows of one file, got {n_rows:,}; leave it "
                f"out, or give --sample {MOST_EXACT_ROWS}."
            )
        return SparseConformalGPRegressor(
            self.kernel,
            mean=self.mean,
            gamma=self.gamma,
            warp=self._warp,
            noise=self.noise,
            random_state=self.seed,
            n_jobs=self.jobs,
        )


@dataclass(frozen=True)
class LabelRange:
    """Options that say what labels are possible.

    Regions are cut off at ends that are fixed beforehand. That takes no possible label away, so coverage stays what it
    is, as long as labels really are within.
    """

    positive: options.Positive = False
    lower_bound: options.LowerBound = None
    upper_bound: options.UpperBound = None

    @property
    def ends(self) -> tuple[float, float]:
        """Least and greatest possible label."""
        if self.positive and self.lower_bound is not None:
            raise TableError(
                f"--positive is short for --lower-bound 0, and --lower-bound {self.lower_bound:g} is given."
            )
        low = 0.0 if self.positive else -np.inf if self.lower_bound is None else self.lower_bound
        high = np.inf if self.upper_bound is None else self.upper_bound
        if not low < high:
            raise TableError(f"--lower-bound must be less than --upper-bound, got {low:g} and {high:g}.")
        return low, high

    def check(self, training: Training) -> tuple[float, float]:
        """The ends, or an error that names the first training row whose label is outside."""
        columns = training.columns
        return self._check(training.y, columns, lambda row: f"in row {training.rows[row] + 1}")

    def check_fitted(self, model: Model, columns: Columns) -> None:
        """An error if a model was fitted to labels that are outside: they are possible, and must not be cut off."""
        if self.ends == (-np.inf, np.inf):
            return
        rows = model._training_rows
        labels = rows[1] if isinstance(rows, tuple) else rows.each(lambda _, y: y, "labels")
        self._check(labels, columns, lambda _: "in a training row")

    def _check(self, labels: Array, columns: Columns, place: Callable[[int], str]) -> tuple[float, float]:
        low, high = self.ends
        outside = np.flatnonzero((labels < low) | (labels > high))
        if outside.size:
            first = int(outside[0])
            raise TableError(
                f"{columns.source}: {columns.target} is {labels[first]:g} {place(first)}, outside the possible labels "
                f"from {low:g} to {high:g} that --positive, --lower-bound and --upper-bound give ({outside.size} such "
                "rows)."
            )
        return low, high


def tuning_of(model: Model) -> str:
    """How the hyperparameters of a fitted model were chosen."""
    return str(getattr(model, "tuning_", model.tuning))


class Training(NamedTuple):
    """Training rows, and the columns and rows of the table that they come from."""

    X: Array
    y: Array
    columns: Columns
    rows: NDArray[np.int64]
    """Numbers of the rows in the table, from 0."""
    noise: Array | None = None
    """Known noise variances, where a column holds these."""

    def fit(self, choice: ModelChoice) -> Model:
        """Fit a model to the rows."""
        return choice.model(self.y.size).fit(self.columns.frame(self.X), self.y, noise_variance=self.noise)


def say_imputed(table: Table, imputed: int, output: Output) -> None:
    """Say that values were filled in, and what the guarantee is then worth."""
    if imputed:
        output.notice(
            f"{imputed} missing values of {table.name} are filled in from the training rows, so new rows are not "
            "treated quite alike: the guarantee is no longer exact"
        )


def read_training(
    source: str, target: str, reading: Reading, seed: int, output: Output, noise_column: str | None = None
) -> Training:
    """Read training rows from a table, and report what was left out."""
    table = reading.table(source, output)
    columns = Columns.learn(
        table,
        target,
        leave_out=reading.dropped(table.names),
        category_inputs=reading.categories,
        missing=reading.missing,
        missing_marks=reading.na,
        dates=reading.dates,
        noise=noise_column,
    )
    for notice in columns.notices():
        output.notice(notice)
    (X, numbers, _, imputed, noise), y = columns.training_rows(table)
    if reading.missing == "impute" and y.size < len(table):
        output.notice(f"{len(table) - y.size} of {len(table)} rows of {table.name} have no label and were left out")
    elif y.size < len(table):
        name, count = columns.emptiest(table)
        output.notice(
            f"{len(table) - y.size} of {len(table)} rows of {table.name} lack a value and were dropped; column "
            f"'{name}' alone lacks {count}"
        )
    say_imputed(table, imputed, output)
    if y.size < FEWEST_ROWS:
        raise TableError(f"{table.name} has {y.size} rows with labels; at least {FEWEST_ROWS} are needed.")
    if reading.sample is not None and reading.sample < y.size:
        rows = np.sort(np.random.RandomState(seed).permutation(y.size)[: reading.sample])
        output.notice(f"{rows.size} of {y.size} rows, drawn at random")
        X, y, numbers = X[rows], y[rows], numbers[rows]
        noise = None if noise is None else noise[rows]
    if y.size > MOST_EXACT_ROWS:
        output.notice(
            f"{y.size:,} rows are too many for the exact Gaussian process (up to {MOST_EXACT_ROWS:,}): a low-rank one "
            "is used, tuned on design rows; the guarantee stays exact. --sample N takes the exact one on N rows drawn "
            "at random"
        )
    return Training(X, y, columns, numbers, noise)
