"""Rows of tables in files, as a model takes them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from conformal_gp.cli.options import Model, Reading
from conformal_gp.cli.output import Output

if TYPE_CHECKING:
    import pandas as pd

    from conformal_gp.arrays import Array
    from conformal_gp.cli.columns import Columns
    from conformal_gp.cli.tables import Table

FEWEST_ROWS = 3


class Training(NamedTuple):
    """Training rows; the index of ``X`` has their numbers in the table, from 0."""

    X: pd.DataFrame
    y: Array
    columns: Columns
    noise: Array | None
    groups: str | None = None

    def of_rows(self) -> dict[str, Any]:
        """What is known of the rows besides inputs and labels."""
        return {"y_variance": self.noise, "groups": None if self.groups is None else self.X[self.groups]}

    def fit(self, choice: Model, output: Output) -> Any:
        """Fit a model, which keeps what is needed to read new rows."""
        with output.working(f"fitting to {self.y.size} rows"):
            model = choice.regressor(self.y).fit(self.X, self.y, y_variance=self.noise, groups=self.groups)
        model._columns = self.columns
        return model


def read_training(source: str, target: str, reading: Reading, output: Output) -> Training:
    """Read training rows from a table, and say what was done to them."""
    import numpy as np

    from conformal_gp.cli.columns import Columns
    from conformal_gp.cli.tables import did_you_mean, listed

    with output.working("reading"):
        table = reading.table(source)
        columns = Columns.learn(
            table,
            target,
            drop=[name for given in reading.drop for name in ([given] if given in table.frame else given.split(","))],
            missing=reading.missing,
            marks=reading.na,
            dates=reading.dates,
            noise=reading.noise_column,
        )
        (X, noise), y = columns.inputs(table), columns.labels(table)
    labelled = np.isfinite(y[X.index])
    if not labelled.all():
        output.notice(f"{(~labelled).sum()} more rows of {table.name} have no {target} and are left out")
    X, noise = X[labelled], None if noise is None else noise[labelled]
    if len(X) < FEWEST_ROWS:
        raise ValueError(f"{table.name} has {len(X)} rows without missing values; at least {FEWEST_ROWS} are needed.")
    if reading.groups is not None and reading.groups not in X:
        known = f"{listed(X)}; got '{reading.groups}'.{did_you_mean(reading.groups, list(X))}"
        raise ValueError(f"--groups must be an input of {table.name}, one of {known}")
    return Training(X, y[X.index], columns, noise, reading.groups)


def read_new(
    source: str, columns: Columns, reading: Reading, output: Output, unseen: str = "error"
) -> tuple[Table, pd.DataFrame, Array | None]:
    """A table of new rows, read the way the training rows were, with its inputs and known noise variances."""
    from conformal_gp.cli.tables import listed

    with output.working("reading"):
        table = reading.table(source, like=columns.format)
        X, noise = columns.inputs(table, unseen)
    extra = columns.extra(table)
    if extra:
        output.notice(f"columns of {table.name} that {columns.source} has not are not used: {listed(extra)}")
    if len(X) < len(table.frame):
        output.notice(f"predictions of {len(table.frame) - len(X)} rows of {table.name} are left empty")
    return table, X, noise
