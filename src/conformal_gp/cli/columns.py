"""Inputs and target from the columns of a table, the same way for training and new rows.

Columns are matched by name. Text becomes categories, which :mod:`conformal_gp.validation` encodes, and so do numbers
that are declared as codes; dates become days since the first. A column of text that names the rows is no input: rows
are called by it. A fault in a table is an error that names column, row and cell; what was done to the columns is a
warning.
"""

from __future__ import annotations

import math
import re
import warnings
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import pandas as pd

from conformal_gp.arrays import Array
from conformal_gp.cli import hints
from conformal_gp.cli.options import Reading
from conformal_gp.cli.tables import (
    LIKE_DATE,
    LIKE_NUMBER,
    Format,
    Table,
    date_format,
    did_you_mean,
    listed,
    read_dates,
    without_limit,
)

if TYPE_CHECKING:
    from conformal_gp.extrapolation import Grid

# "12.5 mg/L", "12.5 ± 0.3" or "12.5*"
_NUMBER_AND_MORE = re.compile(r"([+-]?\d+([.,]\d+)?)\s*[^\d\s.,:/_-].*")
FEWEST_GAPS = 5  # with so many rows that lack a value, hardly any fold of a cross-validation has them all


class Inputs(NamedTuple):
    """Inputs of a table's rows, whose index is that of the table."""

    X: pd.DataFrame
    y_variance: Array | None


@dataclass(frozen=True)
class Columns:
    """The way from the columns of a table to inputs and target, learnt from training rows and kept with a saved model.

    ``reading`` are the options that the training rows were read by; ``categories`` has the categories of each input, or
    None for numbers; ``filled`` are the inputs that enough training rows lack for the model to fill them; ``dates`` the
    format of each column of dates, and ``since`` the first date of each whose days are counted; ``names`` the column
    that names the rows.

    Examples
    --------
    >>> import pandas as pd
    >>> from conformal_gp.cli.columns import Columns
    >>> from conformal_gp.cli.tables import Table
    >>> cars = Table("cars", pd.DataFrame({"weight": [1.5, 2.5, 2.0], "origin": ["u", "j", "u"], "mpg": [20, 30, 25]}))
    >>> columns = Columns.learn(cars, "mpg")
    >>> columns.inputs(cars).X.dtypes["origin"].categories.tolist(), columns.targets(cars)["y"].tolist()
    (['j', 'u'], [20.0, 30.0, 25.0])
    """

    source: str
    target: str
    reading: Reading
    dates: dict[str, str]
    left_out: tuple[str, ...]
    categories: dict[str, list[str] | None] = field(default_factory=dict)
    filled: list[str] = field(default_factory=list)
    since: dict[str, str] = field(default_factory=dict)
    names: str | None = None
    format: Format | None = None
    grid: Grid | None = None
    """The designed grid that the training rows are, if they are one."""
    rows: Sequence[str] = ()
    """What the training rows are called, by their numbers in the file and their names."""

    @classmethod
    def learn(cls, table: Table, target: str, reading: Reading | None = None) -> Columns:
        """Learn what each column contains."""
        reading = reading or Reading()
        if reading.noise_column and reading.sd_column:
            raise ValueError("give --noise-column or --sd-column, not both.")
        drop = _split_names(reading.drop, table)
        codes = _split_names(reading.categories, table)
        used = _used(table, target, drop, reading)
        _check_codes(table, codes, used)
        dates = _date_formats(table, [name for name in used if name not in codes], reading)
        learnt = cls(table.name, target, reading, dates, (*drop, ""), format=table.format)
        learnt = replace(learnt, since={name: str(learnt.moments(table, name).min()) for name in dates})
        named = [name for name in used if name not in {*codes, *dates} and hints.names_rows(table, name, reading.na)]
        for name in used:
            if name not in named:
                learnt._learn(table, name, codes)
        if not set(learnt.categories) - {reading.noise}:
            raise ValueError(f"{table.name}: apart from '{target}' there are only names of rows: {listed(named)}.")
        learnt._warn(table, named, codes)
        candidates = [*named, *filter(hints.like_names, drop)]
        names = next(filter(hints.like_names, candidates), next(iter(candidates), None))
        if names is not None:
            summaries = hints.summaries(table, names)
            if summaries:
                said = f"rows {listed(summaries)} look like summaries of others and are used: delete them if they are"
                warnings.warn(said, stacklevel=2)
        return replace(learnt, left_out=(*learnt.left_out, *named), names=names)

    def _learn(self, table: Table, name: str, codes: Sequence[str]) -> None:
        """Learn what a column of training rows contains: numbers or categories."""
        present = table.texts(name, self.reading.na).loc[lambda cells: cells != ""]
        if present.empty:
            raise ValueError(f"{table.name}: column '{name}' is empty; leave it out with --drop '{name}'.")
        if name in self.dates or (name not in codes and not hints.is_text(table, name, present)):
            self.categories[name] = None
            if np.isnan(self._numbers(table, name)).sum() >= FEWEST_GAPS and name != self.reading.noise:
                self.filled.append(name)
            return
        counts = present.value_counts(sort=False)
        # more than 50 categories, or than half the rows, are names rather, unless each has some 50 rows
        if len(counts) > max(2, min(50, len(present) // 2), min(200, len(present) // 50)):
            raise ValueError(
                f"{table.name}: column '{name}' has text with {len(counts)} different values in {len(present)} rows; "
                f"it looks like names rather than categories. Leave it out with --drop '{name}'."
            )
        self.categories[name] = sorted(counts.index)
        if len(table.frame) - len(present) >= FEWEST_GAPS:
            self.filled.append(name)

    def _warn(self, table: Table, named: list[str], codes: Sequence[str]) -> None:
        """Warn of what was done to the columns."""
        text = [name for name, categories in self.categories.items() if categories and name not in codes]
        inputs = [name for name in self.categories if name != self.reading.noise]
        numbers = [name for name in inputs if not self.categories[name]]
        identifiers = [name for name in numbers if hints.numbers_rows(table, name)]
        like_codes = [name for name in numbers if hints.like_codes(table, name)]
        replicates = [name for name in numbers if hints.like_codes(table, name, hints.LIKE_REPLICATES, 1)]
        constant = [name for name in inputs if table.frame[name].nunique() == 1]
        unnamed = [name for name in table.frame if not name]
        first = min(self.since.values(), default="")[:10]
        for names, what in (
            (text, "columns of text are categories"),
            (replicates, "numbers of replicates say nothing of a new one, and hide that inputs are equal: --drop "
             f"{','.join(replicates)}"),
            (like_codes, "whole numbers with a name of codes are inputs as numbers; if they are codes: --categories "
             f"{','.join(like_codes)}"),
            (named, "text that differs in nearly every row names the rows, and is not used"),
            (self.dates, f"dates are days since {first}; rows in order of time are rarely exchangeable"),
            (constant, "columns with the same value in every row"),
            (identifiers, "whole numbers that are all different: row numbers and identifiers mislead as inputs, and "
             f"--drop {','.join(identifiers)} leaves them out"),
            (unnamed, "columns without a name are not used"),
        ):  # fmt: skip
            if names:
                warnings.warn(f"{what}: {listed(names, 8)}", stacklevel=3)

    def _numbers(self, table: Table, name: str, texts: Sequence[str] | None = None) -> Array:
        """Read numbers or dates, NaN where a value is missing; ``texts`` are the cells, if not as they stand."""
        if name in self.dates:
            return ((self.moments(table, name) - pd.Timestamp(self.since[name])) / pd.Timedelta(days=1)).to_numpy()
        read = table.format.number
        empty = [read(mark) for mark in self.reading.na]
        if table.is_numeric(name):
            found = table.frame[name].to_numpy(dtype=np.float64, na_value=np.nan).tolist()
        else:
            if texts is None:
                texts = table.texts(name, self.reading.na).tolist()
            found = [read(cell) if cell else math.nan for cell in texts]
        if None in found:
            row = table.frame.index[found.index(None)]
            cell = table.texts(name)[row]
            raise ValueError(f"{table.place(name, row)}: '{cell}' is not a number ({self._cure(table, name, cell)}).")
        return np.array([math.nan if value in empty else value for value in found], dtype=np.float64)

    def _cure(self, table: Table, name: str, cell: str) -> str:
        """Say what to do about a cell that is not a number."""
        if name == self.target and hints.not_detected(cell):
            return "if the value is beyond a limit of detection, write the limit, as in <0.02 or >500"
        if without_limit(cell)[1] and name != self.target:
            return f"limits are read in the target alone; enter a number, or leave the column out: --drop '{name}'"
        number = _NUMBER_AND_MORE.match(cell)
        if number is not None and not LIKE_NUMBER.fullmatch(cell):
            return (
                f"write {number[1]} alone: its unit belongs into the header, its uncertainty into a column of its own; "
                f"--na '{cell}' treats it as missing"
            )
        if LIKE_NUMBER.fullmatch(cell):
            if "%" in cell and not table.format.percent:
                return "--percent reads 12% as 12"
            mark = table.format.decimal or "."
            return f"the decimal mark is '{mark}', --decimal sets another, and --thousands the mark between thousands"
        return f"--na '{cell}' treats it as missing"

    def moments(self, table: Table, name: str) -> pd.Series:
        """Read a column of dates; raise if a cell is not a date in the format of the training rows."""
        cells = table.texts(name, self.reading.na)
        moments = read_dates(cells, self.dates[name])
        wrong = cells[moments.isna() & (cells != "")]
        if len(wrong):
            where = table.place(name, wrong.index[0])
            raise ValueError(f"{where}: '{wrong.iloc[0]}' is not a date in the format of {self.source}.")
        return moments

    def inputs(self, table: Table) -> Inputs:
        """Return the inputs of a table's rows, and their noise variances if a column has these.

        A category that no training row has is an error; with ``--missing drop`` its rows are left out.
        """
        self._need(self.categories, table)
        X = pd.DataFrame(index=table.frame.index)
        new = np.zeros(len(X), dtype=bool)
        for name, categories in self.categories.items():
            if categories is None:
                X[name] = self._numbers(table, name)
                continue
            cells = table.texts(name, self.reading.na)
            odd = (~cells.isin([*categories, ""])).to_numpy()
            if odd.any() and self.reading.missing != "drop":
                row = cells.index[odd][0]
                hint = ""
                if not re.search(r"\d", cells[row]):  # the codes S05 and S15 are no misspellings of each other
                    hint = did_you_mean(cells[row], categories)
                raise ValueError(
                    f"{table.place(name, row)}: '{cells[row]}' is not among the categories of {self.source} "
                    f"({listed(categories, 5)}).{hint} If '{name}' names "
                    f"batches, --batch '{name}' is for rows of new ones; --missing drop leaves the predictions of such "
                    "rows empty."
                )
            new |= odd
            X[name] = pd.Categorical(cells.where(cells.isin(categories)), categories=categories)
        gaps = X.isna() & ~new[:, None]
        if self.reading.missing == "impute":
            gaps[self.filled] = False
        if gaps.any(axis=None):
            self._check_gaps(table, X, gaps)
        if new.any():
            warnings.warn(f"rows of {table.name} with a category that no training row has: {new.sum()}", stacklevel=2)
        X = X[~new & ~gaps.any(axis=1)]
        if self.reading.noise is None:
            return Inputs(X, None)
        noise = X.pop(self.reading.noise).to_numpy()
        if (noise < 0.0).any():
            place = table.place(self.reading.noise, X.index[noise < 0.0][0])
            raise ValueError(f"{place}: {noise.min():g} is negative, and noise must be at least 0.")
        if self.reading.sd_column is not None:
            noise = noise**2
        return Inputs(X, noise)

    def _need(self, names: Iterable[str], table: Table) -> None:
        """Refuse a table that lacks columns of the training rows."""
        lacking = [name for name in names if name not in table.frame]
        if lacking:
            hint = did_you_mean(lacking[0], self.extra(table))
            if lacking == [self.reading.noise]:
                hint += " An interval includes the noise of the new measurement, which has to be known: add it."
            raise ValueError(f"{table.name} lacks {listed(lacking)}, which {self.source} has.{hint}")

    def _check_gaps(self, table: Table, X: pd.DataFrame, gaps: pd.DataFrame) -> None:
        """Refuse missing values, or warn of the rows that lack one, as ``missing`` requires."""
        name = gaps.sum().idxmax()
        count = int(gaps[name].sum())
        if self.reading.missing == "error":
            others = f", nor have {count - 1} other rows" * (count > 1)
            raise ValueError(
                f"{table.place(name, gaps[name].idxmax())} has no value{others}; --missing drop leaves out such "
                f"rows, --missing impute fills what at least {FEWEST_GAPS} rows of TRAIN lack, --drop '{name}' leaves "
                "out the column."
            )
        what = f"{gaps.any(axis=1).sum()} of {len(X)} rows of {table.name} lack a value and are left out"
        warnings.warn(f"{what}; column '{name}' alone lacks {count}", stacklevel=3)

    def targets(self, table: Table) -> pd.DataFrame:
        """Return the target "y" of a table's rows; "censoring" is -1 or 1 at a limit of detection: "<0.02", ">500".

        Targets are not imputed: NaN where one is missing.
        """
        self._need([self.target], table)
        found = pd.DataFrame({"censoring": 0}, index=table.frame.index)
        if table.is_numeric(self.target):
            return found.assign(y=self._numbers(table, self.target))
        split = [without_limit(cell) for cell in table.texts(self.target, self.reading.na)]
        y = self._numbers(table, self.target, [text for text, _ in split])
        return found.assign(y=y, censoring=[side for _, side in split])

    def labels(self, table: Table, rows: Iterable[int]) -> list[str]:
        """Call rows by their numbers in the file, and by their names, as "14 (S-12)"."""
        names = self.names_of(table, rows)
        if names is None:
            return [*map(str, rows)]
        return [f"{number} ({name})" if name else str(number) for number, name in zip(rows, names, strict=True)]

    def names_of(self, table: Table, rows: Iterable[int]) -> list[str] | None:
        """Names of rows; None if no column names them."""
        if self.names is None or self.names not in table.frame:
            return None
        return [*table.texts(self.names)[[*rows]]]

    def extra(self, table: Table) -> list[str]:
        """Columns of another table that are not used, and were not left out before."""
        known = {*self.categories, *self.left_out, self.target}
        return [name for name in table.frame if name not in known]


def _split_names(given: Sequence[str], table: Table) -> list[str]:
    """Split names at commas, unless a column has such a name."""
    names: list[str] = []
    for name in given:
        if name in table.frame:
            names.append(name)
        else:
            names += name.split(",")
    return names


def _used(table: Table, target: str, drop: Sequence[str], reading: Reading) -> list[str]:
    """Return the columns that may be inputs, the noise included; raise if there is none, or a name is wrong."""
    names = [name for name in table.frame if name]
    noise = reading.noise
    for name in (target, *drop, *filter(None, [noise])):
        if name not in table.frame:
            hint = did_you_mean(name, names)
            raise ValueError(
                f"{table.name} has no column '{name}'.{hint} Its columns are {listed(names)}{_layout(table)}."
            )
    used = [name for name in names if name != target and name not in drop]
    if noise is not None:
        hints.check_noise_name(noise, squared=noise == reading.sd_column)
    if target in (*drop, noise) or noise in drop or not set(used) - {noise}:
        raise ValueError(f"{table.name} must have the target '{target}', and other columns to predict it from.")
    return used


def _layout(table: Table) -> str:
    """Say where the header was found, if it was not in the first row, and that there is one column alone."""
    if len(table.frame.columns) == 1 and table.format.separator is not None:
        return f" (separator {table.format.separator!r}; --separator sets another, as in --separator space)"
    first = table.frame.index[0]
    if first <= 2:
        return ""
    return f" (header above row {first}; --header-row N sets another)"


def _check_codes(table: Table, codes: Sequence[str], used: Sequence[str]) -> None:
    """Refuse --categories of columns that are no inputs."""
    for name in codes:
        if name not in used:
            raise ValueError(
                f"--categories takes inputs of {table.name}, {listed(used)}; got '{name}'.{did_you_mean(name, used)}"
            )


def _date_formats(table: Table, names: Sequence[str], reading: Reading) -> dict[str, str]:
    """Return the format of each column of dates; dates are an error unless ``--dates`` says what they become."""
    dated = [name for name in names if hints.most(table.texts(name, reading.na), LIKE_DATE)]
    if dated and reading.dates == "error":
        cell = table.texts(dated[0]).iloc[0]
        raise ValueError(
            f"{table.name}: {listed(dated)} has dates ({cell}); --dates elapsed makes an input of the days since the "
            f"first, --drop '{dated[0]}' leaves it out."
        )
    formats: dict[str, str] = {}
    for name in dated:
        cells = table.texts(name, reading.na)
        form = date_format(cells)
        if form is None:
            raise ValueError(
                f"{table.place(name, cells.index[0])}: '{cells.iloc[0]}' may have day or month first; write 2024-12-31."
            )
        formats[name] = form
    return formats
