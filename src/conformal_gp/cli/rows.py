"""Rows of tables as a model takes them: training rows with what is known of each, and new rows."""

from __future__ import annotations

import math
from argparse import Namespace
from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction
from itertools import count
from typing import TYPE_CHECKING, Any, NamedTuple

import pandas as pd

from conformal_gp.arrays import Array
from conformal_gp.cli.columns import Columns, Inputs
from conformal_gp.cli.output import Output
from conformal_gp.cli.reading import read_table
from conformal_gp.cli.tables import Table, did_you_mean, listed
from conformal_gp.formatting import percent

if TYPE_CHECKING:
    from numpy.typing import NDArray

FEWEST_ROWS = 3


class Training(NamedTuple):
    """Training rows; their index has their numbers in the file."""

    X: pd.DataFrame
    rows: pd.DataFrame
    """The target "y" of each row, and its "label"; where there is one, its "name", "batch" and "moment" (the first
    column of dates), the known "y_variance", and the "censoring" of targets, -1 or 1 at a limit."""
    columns: Columns
    options: Namespace

    @property
    def y(self) -> Array:
        """The target."""
        return self.rows["y"].to_numpy()

    def known(self, name: str) -> NDArray[Any] | None:
        """What is known of the rows; None if it is not known of this table."""
        if name not in self.rows:
            return None
        return self.rows[name].to_numpy()

    def of_rows(self) -> dict[str, Any]:
        """Return noise variances, limits, batches and groups of the rows, as ``fit`` takes them."""
        known: dict[str, Any] = {name: self.known(name) for name in ("y_variance", "censoring")}
        if self.options.batch is not None:
            known["batches"] = self.known("batch")
        if self.options.groups is not None:
            known["groups"] = self.X[self.options.groups]
        return known

    def sorted_by_date(self, output: Output) -> Training:
        """Return the rows in order of their dates; as they are if no column has dates."""
        if "moment" not in self.rows or self.rows["moment"].is_monotonic_increasing:
            return self
        output.notice(f"rows are taken in order of '{next(iter(self.columns.since))}'")
        rows = self.rows.sort_values("moment", kind="stable")
        return self._replace(X=self.X.loc[rows.index], rows=rows)

    def regressor(self) -> Any:
        """Return the unfitted model that the options describe."""
        from conformal_gp import ConformalGPRegressor

        options = self.options
        low = options.lower_bound
        high = options.upper_bound
        least = self.y.min()
        most = self.y.max()
        if (low is not None and least < low) or (high is not None and most > high):
            raise ValueError(
                f"--lower-bound and --upper-bound must enclose the target, {least:g} to {most:g}; got {low} and {high}."
            )
        bounds: Any = (low, high)
        if low is None and high is None:
            bounds = "auto"
        none_as_none = {"none": None}
        return ConformalGPRegressor(
            options.kernel,
            tuning=options.tuning,
            target_transform=none_as_none.get(options.target_transform, options.target_transform),
            difficulty=none_as_none.get(options.difficulty, options.difficulty),
            y_bounds=bounds,
            random_state=options.seed,
            n_jobs=options.jobs,
        )

    def fit(self, output: Output) -> Any:
        """Fit the model, which keeps what is needed to read new rows."""
        known = self.of_rows() | {"groups": self.options.groups}  # by name, so that new rows need not give them
        with output.working(f"fitting to {self.y.size} rows", self.X.index):
            model = self.regressor().fit(self.X, self.y, **known)
        model._columns = self.columns
        return model


def read_training(source: str, target: str, options: Namespace, output: Output, by: str | None = None) -> Training:
    """Read training rows from a table, and note what was done to them; ``by`` is a column of batches, and no input."""
    if by is not None and options.batch is not None:
        raise ValueError("give --by COL or --batch COL, not both: with --batch, whole batches are held out.")
    by = by or options.batch
    with output.working("reading"):
        table = read_table(source, options, expected=[target])
        columns = Columns.learn(table, target, options, by)
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
    if options.groups is not None and options.groups not in X:
        known = f"{listed(X)}; got '{options.groups}'.{did_you_mean(options.groups, list(X))}"
        raise ValueError(f"--groups must be an input of {table.name}, one of {known}")
    if by is not None:
        if (rows["batch"] == "").any():
            raise ValueError(f"{table.place(by, (rows['batch'] == '').idxmax())} has no value, and batches need one.")
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
    return Training(X, rows, columns, options)


def _rows(table: Table, columns: Columns, found: Inputs, by: str | None) -> pd.DataFrame:
    """What is known of the rows that have inputs."""
    rows = columns.targets(table)
    absent = rows["y"].isna()
    if absent.any() and columns.missing == "error":
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
        rows["batch"] = table.texts(by, columns.na)
    if columns.since:
        rows["moment"] = columns.moments(table, next(iter(columns.since)))
    return rows


def read_new(
    source: str, columns: Columns, options: Namespace, output: Output, unknown: str | None = None
) -> tuple[Table, Inputs]:
    """Read new rows the way the training rows were: the table, and its inputs; of an ``unknown`` one any value."""
    with output.working("reading"):
        expected = [name for name in columns.categories if name != unknown]
        table = read_table(source, options, columns.format, expected, new=True)
        filled = table
        if unknown is not None:
            filled = table._replace(frame=table.frame.assign(**{unknown: 0.0}))
        new = columns.inputs(filled)
    if new.X.empty:
        raise ValueError(f"{table.name} has no row that can be predicted: the notes above say what each lacks.")
    return table, new


def load_fitted(options: Namespace) -> Any:
    """Load a model that fit saved, to read rows as the options require.

    Options for fitting would have no effect, and are refused.
    """
    path = options.model
    if options.of_fit:
        raise ValueError(f"{options.of_fit[0]} is for fitting, and the model of --model is fitted; give it to fit.")
    from conformal_gp.saving import load

    fitted = load(path)
    if not hasattr(fitted, "_columns"):
        raise ValueError(f"{path} was not made by conformal-gp fit, but in Python; predict with it in Python.")
    columns = fitted._columns
    if options.target not in (None, columns.target):
        raise ValueError(f"{path} predicts '{columns.target}', not '{options.target}'.")
    missing = columns.missing
    if options.missing != "error":
        missing = options.missing
    fitted._columns = replace(columns, missing=missing, na=[*columns.na, *options.na])
    return fitted


def default_levels(model: Any, output: Output) -> list[Fraction]:
    """Return those of the usual levels that a fitted model supports; note what the others need."""
    from conformal_gp.evaluation import supported_levels

    levels = supported_levels(model._most_calibration)
    output.notice(more_rows(levels, model.tuning_ == "holdout", model._batches is not None))
    return levels


def more_rows(levels: Sequence[Fraction], split: bool, batches: bool, share: float = 1.0) -> str:
    """Say how many rows, or batches, the usual levels need that are not among these; empty if all are.

    ``split`` is whether tuning rows are set aside, ``share`` the share of the rows that train.
    """
    from conformal_gp.conformal.levels import rows_needed
    from conformal_gp.evaluation.findings import USUAL
    from conformal_gp.models.settings import ROWS_FOR_INTEGRATED
    from conformal_gp.models.tuning_rows import batches_needed, calibration_size

    needed: list[str] = []
    for level in USUAL:
        if level in levels:
            continue
        least = rows_needed(level)
        what = "rows"
        if batches:
            least = batches_needed(level)
            what = "batches"
        elif split or least > ROWS_FOR_INTEGRATED:
            least = next(n for n in count(least) if calibration_size(n) >= rows_needed(level))
        needed.append(f"{percent(level)} intervals need {math.ceil(least / share)} {what} here")
    return "; ".join(needed)
