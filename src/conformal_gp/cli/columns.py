"""From the columns of a table to the data frame and the labels that a model takes, alike for training and new rows.

Columns are matched by name. Text becomes categories, which :mod:`conformal_gp.frames` encodes; dates become year, month
and day of the week, if so asked. What is wrong with a table is one sentence that names column, row and cell; what its
user should know is a warning.
"""

from __future__ import annotations

import math
import re
import warnings
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd

from conformal_gp.arrays import Array
from conformal_gp.cli.tables import Format, Table, did_you_mean, listed, number

DATE_FORMATS = ("ISO8601", "%d.%m.%Y", "%d/%m/%Y", "%m/%d/%Y", "%d-%m-%Y", "%m-%d-%Y")
FEWEST_NUMBERED = 10  # rows in which whole numbers that are all different look like row numbers
_LIKE_NUMBER = re.compile(r"[$€£]?\s*[+-]?\d[\d.,'\s]*([eE][+-]?\d+)?\s*[%$€£]?")
_LIKE_DATE = re.compile(r"(\d{4}([-/])\d{1,2}\2\d{1,2}|\d{1,2}([./-])\d{1,2}\3\d{2,4})([T ].*)?")
_LIKE_IDENTIFIER = re.compile(r"(?i:(^|[^a-z])(id|ids|index|no|nr|num|number|row|key|code))$|[a-z]I[dD]$")


@dataclass(frozen=True)
class Columns:
    """How the columns of a table become inputs and labels, learnt from training rows and kept with a saved model.

    Parameters are what the columns hold: a list of categories, or None for numbers, what fills in missing values, how
    dates are written, and what becomes of rows that lack a value ("error", "drop" or "impute").

    Examples
    --------
    >>> import pandas as pd
    >>> from conformal_gp.cli.columns import Columns
    >>> from conformal_gp.cli.tables import Table
    >>> cars = Table("cars", pd.DataFrame({"weight": [1.5, 2.5, 2.0], "origin": ["u", "j", "u"], "mpg": [20, 30, 25]}))
    >>> columns = Columns.learn(cars, "mpg")
    >>> columns.inputs(cars)[0].dtypes["origin"].categories.tolist(), columns.labels(cars).tolist()
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
    format: Format | None = None

    @classmethod
    def learn(
        cls,
        table: Table,
        target: str,
        *,
        drop: Sequence[str] = (),
        missing: str = "error",
        marks: Sequence[str] = (),
        dates: str = "error",
        noise: str | None = None,
    ) -> Columns:
        """Learn what each column holds; ``dates`` are an "error", or become "parts": year, month, day of the week."""
        names = [name for name in table.frame if name]
        for name in (target, *drop, *filter(None, [noise])):
            if name not in table.frame:
                hint = did_you_mean(name, names)
                raise ValueError(f"{table.name} has no column '{name}'.{hint} Its columns are {listed(names)}.")
        used = [name for name in names if name != target and name not in drop]
        if target in (*drop, noise) or noise in drop or used in ([], [noise]):
            raise ValueError(f"{table.name} must have the target '{target}', and other columns to predict it from.")
        learnt = cls(table.name, target, {}, {}, {}, (*drop, ""), missing, tuple(marks), noise, table.format)
        dated = [name for name in used if _most(table.texts(name, marks), _LIKE_DATE)]
        if dated and dates == "error":
            raise ValueError(
                f"{table.name}: {listed(dated)} holds dates ({table.texts(dated[0])[0]}); --dates parts makes inputs "
                f"of year, month and day of the week, --drop '{dated[0]}' leaves it out."
            )
        learnt = replace(learnt, dates={name: _date_format(table, name, table.texts(name, marks)) for name in dated})
        expanded = learnt._with_dates(table)
        # parts that are 0 in every row, as hours may be, are no inputs
        parts = [name for name in expanded.frame if name not in table.frame and expanded.frame[name].any()]
        named = [name for name in used if name not in dated and _names_rows(table, name, marks)]
        for name in [name for name in used if name not in (*dated, *named)] + parts:
            learnt._learn(expanded, name)
        if not set(learnt.categories) - {noise}:
            raise ValueError(f"{table.name}: besides '{target}' there are only names of rows: {listed(named)}.")
        learnt._warn(expanded, named)
        return replace(learnt, left_out=(*learnt.left_out, *named))

    def _learn(self, table: Table, name: str) -> None:
        """What a column of training rows holds."""
        present = table.texts(name, self.marks).loc[lambda cells: cells != ""]
        if present.empty:
            raise ValueError(f"{table.name}: column '{name}' is empty; leave it out with --drop '{name}'.")
        if pd.api.types.is_numeric_dtype(table.frame[name].dtype) or _most(present, _LIKE_NUMBER):
            self.categories[name], self.fill[name] = None, float(np.nanmedian(self._numbers(table, name)))
            return
        counts = present.value_counts(sort=False)
        # more than 50 categories, or than half the rows, are names rather, unless each has some 50 rows
        if len(counts) > max(2, min(50, len(present) // 2), min(200, len(present) // 50)):
            raise ValueError(
                f"{table.name}: column '{name}' holds text with {len(counts)} different values in {len(present)} rows; "
                f"it looks like names rather than categories. Leave it out with --drop '{name}'."
            )
        self.categories[name], self.fill[name] = sorted(counts.index), counts.sort_index().idxmax()

    def _warn(self, table: Table, named: list[str]) -> None:
        """Say what was done to the columns."""
        text = [name for name, categories in self.categories.items() if categories]
        identifiers = [name for name in self.categories if name != self.noise and _numbers_rows(table, name)]
        constant = [name for name in self.categories if table.frame[name].nunique() == 1]
        for names, what in (
            (text, "columns of text are categories"),
            (named, "text that differs in nearly every row names the rows, and is not used"),
            (self.dates, "dates are year, month and day of the week; rows in order of time are rarely exchangeable"),
            (constant, "columns with the same value in every row"),
            (identifiers, "whole numbers that are all different: row numbers and identifiers mislead as inputs, and "
             f"--drop {','.join(identifiers)} leaves them out"),
            ([""] if "" in table.frame else [], "columns without a name are not used"),
        ):  # fmt: skip
            if names:
                warnings.warn(f"{what}: {listed(names, 8)}", stacklevel=3)

    def _numbers(self, table: Table, name: str) -> Array:
        """A column of numbers, NaN where a cell holds nothing."""
        decimal = table.format.decimal if table.format else "."
        empty = [number(mark, decimal) for mark in self.marks]
        if pd.api.types.is_numeric_dtype(table.frame[name].dtype):
            found = table.frame[name].to_numpy(dtype=np.float64, na_value=np.nan).tolist()
        else:
            found = [number(cell, decimal) if cell else math.nan for cell in table.texts(name, self.marks)]
        if None in found:
            row = found.index(None)
            cell = table.texts(name)[row]
            hint = f"--na '{cell}' takes it for a missing value"
            if table.format and _LIKE_NUMBER.fullmatch(cell):
                hint = f"the decimal mark is '{decimal or '.'}', --decimal says otherwise; thousands have no mark"
            raise ValueError(f"{table.place(name, row)}: '{cell}' is not a number ({hint}).")
        return np.array([math.nan if value in empty else value for value in found], dtype=np.float64)

    def _with_dates(self, table: Table) -> Table:
        """The table with parts of its dates as more columns."""
        parts: dict[str, Any] = {}
        for name, form in self.dates.items():
            cells = table.texts(name, self.marks)
            moments = pd.to_datetime(cells, format=form, errors="coerce", utc=True)
            wrong = np.flatnonzero(moments.isna() & (cells != ""))
            if wrong.size:
                where = table.place(name, int(wrong[0]))
                raise ValueError(f"{where}: '{cells[wrong[0]]}' is not a date as others of {self.source} are.")
            hours = moments.dt.hour + moments.dt.minute / 60.0
            whole = {"year": moments.dt.year, "month": moments.dt.month, "day of week": moments.dt.day_of_week}
            parts |= {f"{name} ({part})": values for part, values in (whole | {"hour": hours}).items()}
        return table._replace(frame=table.frame.assign(**parts)) if parts else table

    def inputs(self, table: Table, unseen: str = "error") -> tuple[pd.DataFrame, Array | None]:
        """Inputs of a table's rows, numbered as there, and their known noise variances, if a column holds these.

        With ``unseen="blank"`` a category that no training row has is no error, but such rows are left out.
        """
        lacking = [name for name in self.dates if name not in table.frame]
        if not lacking:
            expanded = self._with_dates(table)
            lacking = [name for name in self.categories if name not in expanded.frame]
        if lacking:
            hint = did_you_mean(lacking[0], self.extra(table))
            raise ValueError(f"{table.name} lacks {listed(lacking)}, which {self.source} has.{hint}")
        table = expanded
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
        if gaps.any(axis=None):
            X = self._without_gaps(table, X, gaps)
        if new.any():
            warnings.warn(f"rows of {table.name} with a category that no training row has: {new.sum()}", stacklevel=2)
        X = X[~new].dropna()
        return X, X.pop(self.noise).to_numpy() if self.noise else None

    def _without_gaps(self, table: Table, X: pd.DataFrame, gaps: pd.DataFrame) -> pd.DataFrame:
        """Inputs with missing values filled in, if so asked; else a word on them."""
        name = gaps.sum().idxmax()
        count = int(gaps[name].sum())
        if self.missing == "error":
            others = f", nor have {count - 1} other rows" if count > 1 else ""
            raise ValueError(
                f"{table.place(name, int(gaps[name].argmax()))} has no value{others}; --missing drop leaves out such "
                f"rows, --missing impute fills in the usual value, --drop '{name}' leaves out the column."
            )
        if self.missing == "drop":
            what = f"{gaps.any(axis=1).sum()} of {len(X)} rows of {table.name} lack a value and are left out"
            warnings.warn(f"{what}; column '{name}' alone lacks {count}", stacklevel=3)
            return X
        what = f"{gaps.to_numpy().sum()} missing values of {table.name} are filled in from the training rows"
        warnings.warn(f"{what}, so the guarantee is no longer exact", stacklevel=3)
        return X.fillna(self.fill)

    def labels(self, table: Table) -> Array:
        """Labels of a table's rows, NaN where one is missing; labels are not imputed."""
        labels = self._numbers(table, self.target)
        if np.isnan(labels).any() and self.missing == "error":
            where = table.place(self.target, int(np.argmax(np.isnan(labels))))
            raise ValueError(f"{where} has no value; --missing drop leaves out such rows, labels are not imputed.")
        return labels

    def extra(self, table: Table) -> list[str]:
        """Columns of another table that are not used, and were not left out before."""
        known = {*self.categories, *self.dates, *self.left_out, self.target}
        return [name for name in table.frame if name not in known]


def _most(cells: pd.Series, pattern: re.Pattern[str]) -> bool:
    """Whether more than half of the cells that are not empty match."""
    return 2 * sum(pattern.fullmatch(cell) is not None for cell in cells) > (cells != "").sum()


def _names_rows(table: Table, name: str, marks: Sequence[str]) -> bool:
    """Whether a column is text that differs in more than four rows of five, as names do."""
    present = table.texts(name, marks).loc[lambda cells: cells != ""]
    numeric = pd.api.types.is_numeric_dtype(table.frame[name].dtype) or _most(present, _LIKE_NUMBER)
    return not numeric and present.nunique() > max(2, 0.8 * len(present))


def _date_format(table: Table, name: str, cells: pd.Series) -> str:
    """The format that most dates of a column have; an error where day and month could be either."""
    read = {form: pd.to_datetime(cells, format=form, errors="coerce", utc=True) for form in DATE_FORMATS}
    best, second = sorted(DATE_FORMATS, key=lambda form: -int(read[form].notna().sum()))[:2]
    if read[best].notna().sum() == read[second].notna().sum() and not read[best].equals(read[second]):
        raise ValueError(f"{table.place(name, 0)}: '{cells[0]}' may have day or month first; write 2024-12-31.")
    return best


def _numbers_rows(table: Table, name: str) -> bool:
    """Whether a column looks like row numbers or identifiers: whole numbers, all different.

    They must also be in order, follow each other without a gap, or have a name such as "id".
    """
    whole = [value for cell in table.texts(name) if (value := number(cell)) is not None and value == round(value)]
    if len(whole) < max(len(table.frame), FEWEST_NUMBERED) or len(set(whole)) < len(whole):
        return False
    in_order = whole in (sorted(whole), sorted(whole, reverse=True))
    return in_order or np.ptp(whole) == len(whole) - 1 or _LIKE_IDENTIFIER.search(name) is not None
