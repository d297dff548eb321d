"""Rows of tables as a model takes them: training rows with what is known of each, and new rows."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple

from conformal_gp.cli.options import Model, Reading
from conformal_gp.cli.output import Output

if TYPE_CHECKING:
    import pandas as pd
    from numpy.typing import NDArray

    from conformal_gp.arrays import Array
    from conformal_gp.cli.columns import Columns, Inputs
    from conformal_gp.cli.tables import Table

FEWEST_ROWS = 3


class Training(NamedTuple):
    """Training rows; their index has their numbers in the file."""

    X: pd.DataFrame
    rows: pd.DataFrame
    """The target "y" of each row, and its "label"; where there is one, its "name", "batch" and "moment" (the first
    column of dates), the known "y_variance", and the "censoring" of targets, -1 or 1 at a limit."""
    columns: Columns

    @property
    def y(self) -> Array:
        """The target."""
        return self.rows["y"].to_numpy()

    @property
    def reading(self) -> Reading:
        """The options that the rows were read by."""
        return self.columns.reading

    def known(self, name: str) -> NDArray[Any] | None:
        """What is known of the rows; None if it is not known of this table."""
        if name not in self.rows:
            return None
        return self.rows[name].to_numpy()

    def of_rows(self) -> dict[str, Any]:
        """Return noise variances, limits, batches and groups of the rows, as ``fit`` takes them."""
        known: dict[str, Any] = {name: self.known(name) for name in ("y_variance", "censoring")}
        if self.reading.batch is not None:
            known["batches"] = self.known("batch")
        if self.reading.groups is not None:
            known["groups"] = self.X[self.reading.groups]
        return known

    def sorted_by_date(self, output: Output) -> Training:
        """Return the rows in order of their dates; as they are if no column has dates."""
        if "moment" not in self.rows or self.rows["moment"].is_monotonic_increasing:
            return self
        output.notice(f"rows are taken in order of '{next(iter(self.columns.dates))}'")
        rows = self.rows.sort_values("moment", kind="stable")
        return self._replace(X=self.X.loc[rows.index], rows=rows)

    def fit(self, choice: Model, output: Output) -> Any:
        """Fit a model, which keeps what is needed to read new rows."""
        known = self.of_rows() | {"groups": self.reading.groups}  # by name, so that new rows need not give them
        with output.working(f"fitting to {self.y.size} rows", self.X.index):
            model = choice.regressor(self.y).fit(self.X, self.y, **known)
        model._columns = self.columns
        return model


def read_training(source: str, target: str, reading: Reading, output: Output, by: str | None = None) -> Training:
    """Read training rows from a table, and note what was done to them; ``by`` is a column of batches, and no input."""
    from conformal_gp.cli.columns import Columns
    from conformal_gp.cli.reading import read_table

    if by is not None and reading.batch is not None:
        raise ValueError("give --by COL or --batch COL, not both: with --batch, whole batches are held out.")
    by = by or reading.batch
    with output.working("reading"):
        table = read_table(source, reading, expected=[target])
        if by is not None:
            reading = replace(reading, drop=[*reading.drop, by])
        columns = Columns.learn(table, target, reading)
        found = columns.inputs(table)
        rows = _rows(table, columns, found, by)
    present = rows["y"].notna()
    if not present.all():
        output.notice(f"{(~present).sum()} more rows of {table.name} have no {target} and are left out")
        rows = rows[present]
    if len(rows) < FEWEST_ROWS:
        raise ValueError(
            f"{table.name} has {len(rows)} rows without missing values; at least {FEWEST_ROWS} are needed."
        )
    X = found.X.loc[rows.index]
    _check_columns(table, X, rows, reading.groups, by)
    if by is not None:
        output.notice(f"'{by}' names batches and is no input: the model has not seen a new batch")
    n_limits = rows["censoring"].astype(bool).sum()
    if n_limits:
        output.notice(
            f"{n_limits} of {len(X)} values of {target} are limits of detection; intervals that reach a limit contain "
            "everything beyond it"
        )
    else:
        rows = rows.drop(columns="censoring")

    from conformal_gp.extrapolation import Grid, columns_of  # imports scikit-learn: after mistakes in the table

    X = X.assign(**{name: cells.cat.remove_unused_categories() for name, cells in X.select_dtypes("category").items()})
    used: dict[str, list[str] | None] = {
        name: [*cells.cat.categories] for name, cells in X.select_dtypes("category").items()
    }
    columns = replace(
        columns,
        categories=columns.categories | used,
        grid=Grid.find(columns_of(X)),
        rows=rows["label"].tolist(),
    )
    return Training(X, rows, columns)


def _rows(table: Table, columns: Columns, found: Inputs, by: str | None) -> pd.DataFrame:
    """What is known of the rows that have inputs."""
    rows = columns.targets(table)
    absent = rows["y"].isna()
    if absent.any() and columns.reading.missing == "error":
        where = table.place(columns.target, absent.idxmax())
        raise ValueError(f"{where} has no value; --missing drop leaves out such rows, targets are not imputed.")
    rows = rows.loc[found.X.index]
    rows["label"] = columns.labels(table, rows.index)
    names = columns.names_of(table, rows.index)
    if names is not None:
        rows["name"] = names
    if found.y_variance is not None:
        rows["y_variance"] = found.y_variance
    if by is not None:
        rows["batch"] = table.texts(by, columns.reading.na)
    if columns.dates:
        rows["moment"] = columns.moments(table, next(iter(columns.dates)))
    return rows


def _check_columns(table: Table, X: pd.DataFrame, rows: pd.DataFrame, groups: str | None, by: str | None) -> None:
    """Refuse a column of groups that is no input, and batches without a name."""
    from conformal_gp.cli.tables import did_you_mean, listed

    if groups is not None and groups not in X:
        known = f"{listed(X)}; got '{groups}'.{did_you_mean(groups, list(X))}"
        raise ValueError(f"--groups must be an input of {table.name}, one of {known}")
    if by is not None and (rows["batch"] == "").any():
        raise ValueError(f"{table.place(by, (rows['batch'] == '').idxmax())} has no value, and batches need one.")


def read_new(
    source: str,
    columns: Columns,
    reading: Reading,
    output: Output,
    unknown: str | None = None,
) -> tuple[Table, Inputs]:
    """Read new rows the way the training rows were: the table, and its inputs; of an ``unknown`` one any value."""
    from conformal_gp.cli.reading import read_table
    from conformal_gp.cli.tables import listed

    with output.working("reading"):
        expected = [name for name in columns.categories if name != unknown]
        table = read_table(source, reading, columns.format, expected, new=True)
        filled = table
        if unknown is not None:
            filled = table._replace(frame=table.frame.assign(**{unknown: 0.0}))
        new = columns.inputs(filled)
    extra = columns.extra(table)
    if extra:
        output.notice(f"ignoring columns of {table.name} that {columns.source} does not have: {listed(extra)}")
    if len(new.X) < len(table.frame):
        output.notice(f"predictions of {len(table.frame) - len(new.X)} rows of {table.name} are left empty")
    return table, new


def row_documents(found: pd.DataFrame, names: Iterable[str] | None) -> list[dict[str, Any]]:
    """Return results of rows as JSON has them: with their numbers in the file, and their names if a column has them."""
    described = found.copy()
    if names is not None:
        described.insert(0, "name", list(names))
    return described.rename_axis("row").reset_index().to_dict("records")
