"""Inputs and target from the columns of a table, the same way for training and new rows.

Columns are matched by name. Text becomes categories, which :mod:`conformal_gp.validation` encodes; dates become year,
month and day of the week, if so asked. A fault in a table is an error that names column, row and cell; what was done to
the columns is a warning.
"""

from __future__ import annotations

import math
import re
import warnings
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pandas as pd

from conformal_gp.arrays import Array, Indices
from conformal_gp.cli.options import Reading
from conformal_gp.cli.tables import LIKE_NUMBER, THOUSANDS, Format, Table, did_you_mean, listed, number, without_limit

if TYPE_CHECKING:
    from conformal_gp.design import Grid

DATE_FORMATS = ("ISO8601", "%d.%m.%Y", "%d/%m/%Y", "%m/%d/%Y", "%d-%m-%Y", "%m-%d-%Y")
FEWEST_GAPS = 5  # with so many rows that lack a value, hardly any fold of a cross-validation has them all
FEWEST_NUMBERED = 10  # rows in which whole numbers that are all different look like row numbers
_LIKE_DATE = re.compile(r"(\d{4}([-/])\d{1,2}\2\d{1,2}|\d{1,2}([./-])\d{1,2}\3\d{2,4})([T ].*)?")
_LIKE_IDENTIFIER = re.compile(r"(?i:(^|[^a-z])(id|ids|index|no|nr|num|number|row|key|code))$|[a-z]I[dD]$")


class Inputs(NamedTuple):
    """Inputs of a table's rows; the index of ``X`` has their numbers in the table, from 0."""

    X: pd.DataFrame
    y_variance: Array | None
    imputed: Indices
    """Numbers of the rows with values that are imputed here, and not by the model."""


@dataclass(frozen=True)
class Columns:
    """The way from the columns of a table to inputs and target, learnt from training rows and kept with a saved model.

    ``categories`` has the categories of each input, or None for numbers; ``fill`` what missing values are imputed by in
    columns that too few training rows lack for the model to learn from; ``dates`` the format of each column of dates;
    ``missing`` what becomes of rows that lack a value ("error", "drop" or "impute"); ``noise`` the column of noise
    variances, or of standard deviations if ``squared``.

    Examples
    --------
    >>> import pandas as pd
    >>> from conformal_gp.cli.columns import Columns
    >>> from conformal_gp.cli.tables import Table
    >>> cars = Table("cars", pd.DataFrame({"weight": [1.5, 2.5, 2.0], "origin": ["u", "j", "u"], "mpg": [20, 30, 25]}))
    >>> columns = Columns.learn(cars, "mpg")
    >>> columns.inputs(cars).X.dtypes["origin"].categories.tolist(), columns.targets(cars).tolist()
    (['j', 'u'], [20.0, 30.0, 25.0])
    """

    source: str
    target: str
    categories: dict[str, list[str] | None]
    fill: dict[str, Any]
    dates: dict[str, str]
    left_out: tuple[str, ...] = ()
    missing: str = "error"
    marks: tuple[str, ...] = ()
    noise: str | None = None
    squared: bool = False
    format: Format | None = None
    grid: Grid | None = None
    """The designed grid that the training rows are, if they are one."""

    @classmethod
    def learn(cls, table: Table, target: str, reading: Reading | None = None) -> Columns:
        """Learn what each column contains."""
        reading = reading or Reading()
        if reading.noise_column and reading.sd_column:
            raise ValueError("give --noise-column or --sd-column, not both.")
        noise = reading.noise_column or reading.sd_column
        drop = _split_names(reading.drop, table)
        used = _used(table, target, drop, noise)
        learnt = cls(
            source=table.name,
            target=target,
            categories={},
            fill={},
            dates=_date_formats(table, used, reading),
            left_out=(*drop, ""),
            missing=reading.missing,
            marks=tuple(reading.na),
            noise=noise,
            squared=reading.sd_column is not None,
            format=table.format,
        )
        expanded = learnt._with_dates(table)
        # parts that are 0 in every row, as hours may be, are no inputs
        parts = [name for name in expanded.frame if name not in table.frame and expanded.frame[name].any()]
        used = [name for name in used if name not in learnt.dates]
        names_of_rows = [name for name in used if _names_rows(table, name, learnt.marks)]
        for name in [name for name in used if name not in names_of_rows] + parts:
            learnt._learn(expanded, name)
        if not set(learnt.categories) - {noise}:
            raise ValueError(
                f"{table.name}: apart from '{target}' there are only names of rows: {listed(names_of_rows)}."
            )
        learnt._warn(expanded, names_of_rows)
        return replace(learnt, left_out=(*learnt.left_out, *names_of_rows))

    def _learn(self, table: Table, name: str) -> None:
        """Learn what a column of training rows contains: numbers or categories."""
        present = table.texts(name, self.marks).loc[lambda cells: cells != ""]
        if present.empty:
            raise ValueError(f"{table.name}: column '{name}' is empty; leave it out with --drop '{name}'.")
        if table.is_numeric(name) or _most(present, LIKE_NUMBER):
            self.categories[name] = None
            numbers = self._numbers(table, name)
            if np.isnan(numbers).sum() < FEWEST_GAPS or name == self.noise:
                self.fill[name] = float(np.nanmedian(numbers))
            return
        counts = present.value_counts(sort=False)
        # more than 50 categories, or than half the rows, are names rather, unless each has some 50 rows
        if len(counts) > max(2, min(50, len(present) // 2), min(200, len(present) // 50)):
            raise ValueError(
                f"{table.name}: column '{name}' has text with {len(counts)} different values in {len(present)} rows; "
                f"it looks like names rather than categories. Leave it out with --drop '{name}'."
            )
        self.categories[name] = sorted(counts.index)
        if len(table.frame) - len(present) < FEWEST_GAPS:
            self.fill[name] = counts.sort_index().idxmax()

    def _warn(self, table: Table, named: list[str]) -> None:
        """Warn of what was done to the columns."""
        text = [name for name, categories in self.categories.items() if categories]
        identifiers = [name for name in self.categories if name != self.noise and _numbers_rows(table, name)]
        constant = [name for name in self.categories if table.frame[name].nunique() == 1]
        unnamed = [name for name in table.frame if not name]
        for names, what in (
            (text, "columns of text are categories"),
            (named, "text that differs in nearly every row names the rows, and is not used"),
            (self.dates, "dates are year, month and day of the week; rows in order of time are rarely exchangeable"),
            (constant, "columns with the same value in every row"),
            (identifiers, "whole numbers that are all different: row numbers and identifiers mislead as inputs, and "
             f"--drop {','.join(identifiers)} leaves them out"),
            (unnamed, "columns without a name are not used"),
        ):  # fmt: skip
            if names:
                warnings.warn(f"{what}: {listed(names, 8)}", stacklevel=3)

    def _numbers(self, table: Table, name: str, texts: Sequence[str] | None = None) -> Array:
        """Read a column of numbers, NaN where a value is missing; ``texts`` are its cells, if not as they stand."""
        decimal: str | None = "."
        if table.format:
            decimal = table.format.decimal
        empty = [number(mark, decimal) for mark in self.marks]
        if table.is_numeric(name):
            found = table.frame[name].to_numpy(dtype=np.float64, na_value=np.nan).tolist()
        else:
            if texts is None:
                texts = table.texts(name, self.marks).tolist()
            found = [number(cell, decimal) if cell else math.nan for cell in texts]
        if None in found:
            row = found.index(None)
            cell = table.texts(name)[row]
            hint = f"--na '{cell}' treats it as missing"
            if table.format and LIKE_NUMBER.fullmatch(cell):
                hint = f"the decimal mark is '{decimal or '.'}', --decimal sets another; thousands must have no mark"
            elif without_limit(cell)[1] and name != self.target:
                hint = f"limits are read in the target alone; enter a number, or leave the column out: --drop '{name}'"
            raise ValueError(f"{table.place(name, row)}: '{cell}' is not a number ({hint}).")
        return np.array([math.nan if value in empty else value for value in found], dtype=np.float64)

    def _with_dates(self, table: Table) -> Table:
        """Add the parts of dates to a table, as more columns."""
        parts: dict[str, Any] = {}
        for name, form in self.dates.items():
            cells = table.texts(name, self.marks)
            moments = pd.to_datetime(cells, format=form, errors="coerce", utc=True)
            wrong = np.flatnonzero(moments.isna() & (cells != ""))
            if wrong.size:
                where = table.place(name, int(wrong[0]))
                raise ValueError(f"{where}: '{cells[wrong[0]]}' is not a date in the format of {self.source}.")
            hours = moments.dt.hour + moments.dt.minute / 60.0
            whole = {"year": moments.dt.year, "month": moments.dt.month, "day of week": moments.dt.day_of_week}
            parts |= {f"{name} ({part})": values for part, values in (whole | {"hour": hours}).items()}
        return table._replace(frame=table.frame.assign(**parts))

    def inputs(self, table: Table, unseen: str = "error") -> Inputs:
        """Return the inputs of a table's rows, and their noise variances if a column has these.

        A category that no training row has is an error; with ``unseen="blank"`` its rows are left out.
        """
        self._need(self.dates, table)
        table = self._with_dates(table)
        self._need(self.categories, table)
        X = pd.DataFrame(index=table.frame.index)
        new = np.zeros(len(X), dtype=bool)
        for name, categories in self.categories.items():
            if categories is None:
                X[name] = self._numbers(table, name)
                continue
            cells = table.texts(name, self.marks)
            odd = (~cells.isin([*categories, ""])).to_numpy()
            if odd.any() and unseen == "error":
                row = int(np.argmax(odd))
                raise ValueError(
                    f"{table.place(name, row)}: '{cells[row]}' is not among the categories of {self.source} "
                    f"({listed(categories, 5)}).{did_you_mean(cells[row], categories)} --unseen blank leaves the "
                    "predictions of such rows empty."
                )
            new |= odd
            X[name] = pd.Categorical(cells.where(cells.isin(categories)), categories=categories)
        gaps = X.isna() & ~new[:, None]
        imputed = np.zeros(0, dtype=np.int64)
        if gaps.any(axis=None):
            self._check_gaps(table, X, gaps)
            if self.missing == "impute":
                imputed = X.index[gaps[[*self.fill]].any(axis=1)].to_numpy()
                X = X.fillna(self.fill)
        if new.any():
            warnings.warn(f"rows of {table.name} with a category that no training row has: {new.sum()}", stacklevel=2)
        X = X[~new]
        if self.missing != "impute":
            X = X.dropna()
        if self.noise is None:
            return Inputs(X, None, imputed)
        noise = X.pop(self.noise).to_numpy()
        if self.squared:
            noise = noise**2
        return Inputs(X, noise, imputed)

    def _need(self, names: Iterable[str], table: Table) -> None:
        """Refuse a table that lacks columns of the training rows."""
        lacking = [name for name in names if name not in table.frame]
        if lacking:
            hint = did_you_mean(lacking[0], self.extra(table))
            raise ValueError(f"{table.name} lacks {listed(lacking)}, which {self.source} has.{hint}")

    def _check_gaps(self, table: Table, X: pd.DataFrame, gaps: pd.DataFrame) -> None:
        """Refuse missing values, or warn of the rows that lack one, as ``missing`` requires."""
        name = gaps.sum().idxmax()
        count = int(gaps[name].sum())
        if self.missing == "error":
            others = f", nor have {count - 1} other rows" * (count > 1)
            raise ValueError(
                f"{table.place(name, int(gaps[name].argmax()))} has no value{others}; --missing drop leaves out such "
                f"rows, --missing impute fills in the usual value, --drop '{name}' leaves out the column."
            )
        if self.missing == "drop":
            what = f"{gaps.any(axis=1).sum()} of {len(X)} rows of {table.name} lack a value and are left out"
            warnings.warn(f"{what}; column '{name}' alone lacks {count}", stacklevel=3)

    def targets(self, table: Table) -> Array:
        """Return the target of a table's rows, NaN where it is missing; targets are not imputed."""
        return self.observations(table)[0]

    def observations(self, table: Table) -> tuple[Array, Indices]:
        """Return the target of a table's rows, and -1 or 1 where it is a limit of detection, as in "<0.02", ">500"."""
        self._need([self.target], table)
        censoring = np.zeros(len(table.frame), dtype=np.int64)
        texts = None
        if not table.is_numeric(self.target):
            split = [without_limit(cell) for cell in table.texts(self.target, self.marks)]
            texts = [text for text, _ in split]
            if table.format is None:  # cells of text in a workbook may have either decimal mark
                texts = [_with_point(text) for text in texts]
            censoring = np.array([side for _, side in split], dtype=np.int64)
        y = self._numbers(table, self.target, texts)
        if np.isnan(y).any() and self.missing == "error":
            where = table.place(self.target, int(np.argmax(np.isnan(y))))
            raise ValueError(f"{where} has no value; --missing drop leaves out such rows, targets are not imputed.")
        return y, censoring

    def extra(self, table: Table) -> list[str]:
        """Columns of another table that are not used, and were not left out before."""
        known = {*self.categories, *self.dates, *self.left_out, self.target}
        return [name for name in table.frame if name not in known]


def _with_point(text: str) -> str:
    """Write a number with a decimal point, unless its comma may be a mark of thousands.

    >>> _with_point("0,02"), _with_point("1,234")
    ('0.02', '1,234')
    """
    if THOUSANDS.fullmatch(text):
        return text
    return text.replace(",", ".")


def _split_names(given: Sequence[str], table: Table) -> list[str]:
    """Split names at commas, unless a column has such a name."""
    names: list[str] = []
    for name in given:
        if name in table.frame:
            names.append(name)
        else:
            names += name.split(",")
    return names


def _used(table: Table, target: str, drop: Sequence[str], noise: str | None) -> list[str]:
    """Return the columns that may be inputs, the noise included; raise if there is none, or a name is wrong."""
    names = [name for name in table.frame if name]
    for name in (target, *drop, *filter(None, [noise])):
        if name not in table.frame:
            hint = did_you_mean(name, names)
            raise ValueError(f"{table.name} has no column '{name}'.{hint} Its columns are {listed(names)}.")
    used = [name for name in names if name != target and name not in drop]
    if target in (*drop, noise) or noise in drop or not set(used) - {noise}:
        raise ValueError(f"{table.name} must have the target '{target}', and other columns to predict it from.")
    return used


def _date_formats(table: Table, names: Sequence[str], reading: Reading) -> dict[str, str]:
    """Return the format of each column of dates; dates are an error unless ``--dates parts`` was given."""
    dated = [name for name in names if _most(table.texts(name, reading.na), _LIKE_DATE)]
    if dated and reading.dates == "error":
        raise ValueError(
            f"{table.name}: {listed(dated)} has dates ({table.texts(dated[0])[0]}); --dates parts makes inputs "
            f"of year, month and day of the week, --drop '{dated[0]}' leaves it out."
        )
    return {name: _date_format(table, name, table.texts(name, reading.na)) for name in dated}


def _most(cells: pd.Series, pattern: re.Pattern[str]) -> bool:
    """Return whether more than half of the cells that are not empty match."""
    return 2 * sum(pattern.fullmatch(cell) is not None for cell in cells) > (cells != "").sum()


def _names_rows(table: Table, name: str, marks: Sequence[str]) -> bool:
    """Return whether a column is text that differs in more than four rows of five, as names do."""
    present = table.texts(name, marks).loc[lambda cells: cells != ""]
    if table.is_numeric(name) or _most(present, LIKE_NUMBER):
        return False
    return present.nunique() > max(2, 0.8 * len(present))


def _date_format(table: Table, name: str, cells: pd.Series) -> str:
    """Return the format that most dates of a column have; raise if day and month could be either."""
    read = {form: pd.to_datetime(cells, format=form, errors="coerce", utc=True) for form in DATE_FORMATS}
    best, second = sorted(DATE_FORMATS, key=lambda form: -int(read[form].notna().sum()))[:2]
    if read[best].notna().sum() == read[second].notna().sum() and not read[best].equals(read[second]):
        raise ValueError(f"{table.place(name, 0)}: '{cells[0]}' may have day or month first; write 2024-12-31.")
    return best


def _numbers_rows(table: Table, name: str) -> bool:
    """Return whether a column looks like row numbers or identifiers: whole numbers, all different.

    They must also be in order, follow each other without a gap, or have a name such as "id".
    """
    whole = [value for cell in table.texts(name) if (value := number(cell)) is not None and value == round(value)]
    if len(whole) < max(len(table.frame), FEWEST_NUMBERED) or len(set(whole)) < len(whole):
        return False
    in_order = whole in (sorted(whole), sorted(whole, reverse=True))
    return in_order or np.ptp(whole) == len(whole) - 1 or _LIKE_IDENTIFIER.search(name) is not None
