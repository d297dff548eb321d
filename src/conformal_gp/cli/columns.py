"""Inputs and target from the columns of a table, the same way for training and new rows.

Columns are matched by name. Text becomes categories, and so do numbers that are declared as codes; dates become days
since the first. A column of text that names the rows is no input: rows are called by it. A fault in a table is an error
that names column, row and cell; what was done to the columns is a warning.
"""

from __future__ import annotations

import math
import re
import warnings
from argparse import Namespace
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import pandas as pd

from conformal_gp.arrays import Array
from conformal_gp.cli import tables
from conformal_gp.cli.tables import LIKE_DATE, LIKE_NUMBER, Format, Table, did_you_mean, listed, without_limit

if TYPE_CHECKING:
    from conformal_gp.extrapolation import Grid

FEWEST_GAPS = 5  # with so many rows that lack a value, hardly any fold of a cross-validation has them all
# "12.5 mg/L", "12.5 ± 0.3" or "12.5*"
_NUMBER_AND_MORE = re.compile(r"([+-]?\d+([.,]\d+)?)\s*[^\d\s.,:/_-].*")
_DAY_AND_MONTH = r"^(\d{1,2})[./-](\d{1,2})[./-]\d"


class Inputs(NamedTuple):
    """Inputs of a table's rows, whose index is that of the table."""

    X: pd.DataFrame
    y_variance: Array | None


@dataclass(frozen=True)
class Columns:
    """The way from the columns of a table to inputs and target, learnt from training rows and kept with a saved model.

    Examples
    --------
    >>> import pandas as pd
    >>> from conformal_gp.cli.columns import Columns
    >>> from conformal_gp.cli.options import parse
    >>> from conformal_gp.cli.tables import Table
    >>> cars = Table("cars", pd.DataFrame({"weight": [1.5, 2.5, 2.0], "origin": ["u", "j", "u"], "mpg": [20, 30, 25]}))
    >>> columns = Columns.learn(cars, "mpg", parse("evaluate", ["cars.csv", "--target", "mpg"]))
    >>> columns.inputs(cars).X.dtypes["origin"].categories.tolist(), columns.targets(cars)["y"].tolist()
    (['j', 'u'], [20.0, 30.0, 25.0])
    """

    source: str
    target: str
    missing: str
    na: list[str]
    """Texts that mark a missing value, in addition to the usual ones."""
    noise: str | None
    """The column of the noise: of its variances, or of its standard deviations."""
    noise_is_sd: bool
    format: Format
    categories: dict[str, list[str] | None] = field(default_factory=dict)
    """The categories of each input, or None for numbers."""
    filled: list[str] = field(default_factory=list)
    """Inputs that enough training rows lack for the model to fill them."""
    day_first: dict[str, bool] = field(default_factory=dict)
    """Columns of dates, and whether the day comes before the month."""
    since: dict[str, str] = field(default_factory=dict)
    """The first date of each, from which days are counted."""
    names: str | None = None
    """The column that names the rows."""
    grid: Grid | None = None
    """The designed grid that the training rows are, if they are one."""
    rows: Sequence[str] = ()
    """What the training rows are called, by their numbers in the file and their names."""

    @classmethod
    def learn(cls, table: Table, target: str, options: Namespace, batch: str | None = None) -> Columns:
        """Learn what each column contains; ``batch`` is a column that is no input."""
        if options.noise_column and options.sd_column:
            raise ValueError("give --noise-column or --sd-column, not both.")
        is_sd = options.sd_column is not None
        noise = options.sd_column or options.noise_column
        drop = [*_split_names(options.drop, table), *filter(None, [batch])]
        codes = _split_names(options.categories, table)
        used = _used(table, target, drop, codes, noise)
        if options.noise_column is not None:
            tables.check_variances(options.noise_column)
        learnt = cls(table.name, target, options.missing, options.na, noise, is_sd, table.format)
        named = [name for name in used if not learnt._learn(table, name, codes, options.dates)]
        if not set(learnt.categories) - {noise}:
            raise ValueError(f"{table.name}: apart from '{target}' there are only names of rows: {listed(named)}.")
        learnt._warn(table, named, codes)
        candidates = [*named, *filter(tables.like_names, drop)]
        names = next(filter(tables.like_names, candidates), next(iter(candidates), None))
        if names is not None:
            summaries = tables.summaries(table, names)
            if summaries:
                said = f"rows {listed(summaries)} look like summaries of others and are used: delete them if they are"
                warnings.warn(said, stacklevel=2)
        return replace(learnt, names=names)

    def _learn(self, table: Table, name: str, codes: Sequence[str], dates: str) -> bool:
        """Learn whether a column has numbers, dates or categories; return False if it names the rows."""
        cells = table.texts(name, self.na)
        present = cells[cells != ""]
        if present.empty:
            raise ValueError(f"{table.name}: column '{name}' is empty; leave it out with --drop '{name}'.")
        is_text = not tables.most(present, LIKE_NUMBER)
        if name not in codes and tables.most(present, LIKE_DATE):
            if dates == "error":
                raise ValueError(
                    f"{table.name}: '{name}' has dates ({present.iloc[0]}); --dates elapsed makes an input of the days "
                    f"since the first, --drop '{name}' leaves it out."
                )
            self.day_first[name] = _day_first(present, table.place(name, present.index[0]))
            self.since[name] = str(self.moments(table, name).min())
            self.categories[name] = None
        elif name in codes or (is_text and not tables.names_rows(name, present)):
            self.categories[name] = _categories(table.name, name, present)
        elif is_text:
            return False
        else:
            self.categories[name] = None
        gaps = len(cells) - len(present)
        if self.categories[name] is None:
            gaps = int(np.isnan(self._numbers(table, name)).sum())
        if gaps >= FEWEST_GAPS and name != self.noise:
            self.filled.append(name)
        return True

    def _warn(self, table: Table, named: list[str], codes: Sequence[str]) -> None:
        text = [name for name, categories in self.categories.items() if categories and name not in codes]
        inputs = [name for name in self.categories if name != self.noise]
        numbers = [name for name in inputs if not self.categories[name]]
        identifiers = [name for name in numbers if tables.numbers_rows(table, name)]
        like_codes = [name for name in numbers if tables.like_codes(table, name)]
        replicates = [name for name in numbers if tables.like_codes(table, name, tables.LIKE_REPLICATES, 1)]
        constant = [name for name in inputs if table.frame[name].nunique() == 1]
        unnamed = [name for name in table.frame if not name]
        first = min(self.since.values(), default="")[:10]
        for names, what in (
            (text, "columns of text are categories"),
            (replicates, "numbers of replicates say nothing of a new one, and hide that inputs are equal (--drop "
             f"{','.join(replicates)} leaves them out)"),
            (like_codes, "inputs as numbers, although they are called as codes are (--categories "
             f"{','.join(like_codes)} makes categories of them)"),
            (named, "text that differs in nearly every row names the rows, and is not used"),
            (list(self.day_first), f"dates are days since {first}; rows in order of time are rarely exchangeable"),
            (constant, "columns with the same value in every row"),
            (identifiers, "row numbers and identifiers mislead as inputs (--drop "
             f"{','.join(identifiers)} leaves them out)"),
            (unnamed, "columns without a name are not used"),
        ):  # fmt: skip
            if names:
                warnings.warn(f"{what}: {listed(names, 8)}", stacklevel=3)

    def _numbers(self, table: Table, name: str, texts: Sequence[str] | None = None) -> Array:
        """Read numbers or dates, NaN where a value is missing; ``texts`` are the cells, if not as they stand."""
        if name in self.day_first:
            return ((self.moments(table, name) - pd.Timestamp(self.since[name])) / pd.Timedelta(days=1)).to_numpy()
        read = table.format.number
        if texts is None:
            texts = table.texts(name, self.na).tolist()
        empty = [read(mark) for mark in self.na]
        found = [read(cell) if cell else math.nan for cell in texts]
        if None in found:
            row = table.frame.index[found.index(None)]
            cell = table.texts(name)[row]
            raise ValueError(f"{table.place(name, row)}: '{cell}' is not a number ({self._cure(table, name, cell)}).")
        return np.array([math.nan if value in empty else value for value in found], dtype=np.float64)

    def _cure(self, table: Table, name: str, cell: str) -> str:
        if name == self.target and tables.not_detected(cell):
            return "if the value is beyond a limit of detection, write the limit, as in <0.02 or >500"
        if without_limit(cell)[1] and name != self.target:
            return f"limits are read in the target alone; enter a number, or leave the column out: --drop '{name}'"
        if LIKE_NUMBER.fullmatch(cell):
            if "%" in cell and not table.format.percent:
                return "--percent reads 12% as 12"
            mark = table.format.decimal or "."
            return f"the decimal mark is '{mark}', --decimal sets another, and --thousands the mark between thousands"
        number = _NUMBER_AND_MORE.match(cell)
        if number is not None:
            return (
                f"write {number[1]} alone: its unit belongs into the header, its uncertainty into a column of its own; "
                f"--na '{cell}' treats it as missing"
            )
        return f"--na '{cell}' treats it as missing"

    def moments(self, table: Table, name: str) -> pd.Series:
        """Read a column of dates; raise if a cell is not a date in the order of the training rows."""
        cells = table.texts(name, self.na)
        moments = pd.to_datetime(cells, dayfirst=self.day_first[name], format="mixed", errors="coerce", utc=True)
        months = cells.str.extract(_DAY_AND_MONTH).astype(float)[int(self.day_first[name])]
        wrong = cells[(cells != "") & (moments.isna() | (months > 12) | ~cells.str.fullmatch(LIKE_DATE.pattern))]
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
            cells = table.texts(name, self.na)
            odd = (~cells.isin([*categories, ""])).to_numpy()
            if odd.any() and self.missing != "drop":
                self._refuse_category(table, name, cells.index[odd][0], cells)
            new |= odd
            X[name] = pd.Categorical(cells.where(cells.isin(categories)), categories=categories)
        gaps = X.isna() & ~new[:, None]
        if self.missing == "impute":
            gaps[self.filled] = False
        if gaps.any(axis=None):
            self._check_gaps(table, X, gaps)
        if new.any():
            warnings.warn(f"rows of {table.name} with a category that no training row has: {new.sum()}", stacklevel=2)
        X = X[~new & ~gaps.any(axis=1)]
        if self.noise is None:
            return Inputs(X, None)
        noise = X.pop(self.noise).to_numpy()
        if (noise < 0.0).any():
            place = table.place(self.noise, X.index[noise < 0.0][0])
            raise ValueError(f"{place}: {noise.min():g} is negative, and noise must be at least 0.")
        if self.noise_is_sd:
            noise = noise**2
        return Inputs(X, noise)

    def _refuse_category(self, table: Table, name: str, row: int, cells: pd.Series) -> None:
        known = self.categories[name] or []
        hint = ""
        if not re.search(r"\d", cells[row]):  # the codes S05 and S15 are no misspellings of each other
            hint = did_you_mean(cells[row], known)
        raise ValueError(
            f"{table.place(name, row)}: '{cells[row]}' is not among the categories of {self.source} "
            f"({listed(known, 5)}).{hint} If '{name}' names batches, --batch '{name}' is for rows of new ones; "
            "--missing drop leaves the predictions of such rows empty."
        )

    def _need(self, names: Iterable[str], table: Table) -> None:
        """Refuse a table that lacks columns of the training rows."""
        lacking = [name for name in names if name not in table.frame]
        if lacking:
            hint = did_you_mean(lacking[0], table.frame)
            if lacking == [self.noise]:
                hint += " An interval includes the noise of the new measurement, which has to be known: add it."
            raise ValueError(f"{table.name} lacks {listed(lacking)}, which {self.source} has.{hint}")

    def _check_gaps(self, table: Table, X: pd.DataFrame, gaps: pd.DataFrame) -> None:
        """Refuse missing values, or warn of the rows that lack one, as ``missing`` requires."""
        name = gaps.sum().idxmax()
        count = int(gaps[name].sum())
        if self.missing == "error":
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
        split = [without_limit(cell) for cell in table.texts(self.target, self.na)]
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


def _split_names(given: Sequence[str], table: Table) -> list[str]:
    """Split names at commas, unless a column has such a name."""
    names: list[str] = []
    for name in given:
        if name in table.frame:
            names.append(name)
        else:
            names += name.split(",")
    return names


def _used(table: Table, target: str, drop: Sequence[str], codes: Sequence[str], noise: str | None) -> list[str]:
    """Return the columns that may be inputs, the noise included; raise if there is none, or a name is wrong."""
    names = [name for name in table.frame if name]
    for name in (target, *drop, *codes, *filter(None, [noise])):
        if name not in table.frame:
            hint = did_you_mean(name, names)
            layout = ""
            if len(names) == 1 and table.format.separator is not None:
                layout = f" (separator {table.format.separator!r}; --separator sets another, as in --separator space)"
            elif table.frame.index[0] > 2:
                layout = f" (header above row {table.frame.index[0]}; --header-row N sets another)"
            raise ValueError(f"{table.name} has no column '{name}'.{hint} Its columns are {listed(names)}{layout}.")
    used = [name for name in names if name != target and name not in drop]
    if target in (*drop, noise) or noise in drop or not set(used) - {noise}:
        raise ValueError(f"{table.name} must have the target '{target}', and other columns to predict it from.")
    return used


def _categories(source: str, name: str, present: pd.Series) -> list[str]:
    """Return the categories of a column, which are not too many.

    More than 50 categories, or than half the rows, are names rather, unless each has some 50 rows.
    """
    categories = sorted(present.unique())
    if len(categories) > max(2, min(50, len(present) // 2), min(200, len(present) // 50)):
        raise ValueError(
            f"{source}: column '{name}' has text with {len(categories)} different values in {len(present)} rows; "
            f"it looks like names rather than categories. Leave it out with --drop '{name}'."
        )
    return categories


def _day_first(cells: pd.Series, where: str) -> bool:
    """Return whether the day comes before the month in dates such as 13/1/2024; with points it always does."""
    parts = cells.str.extract(_DAY_AND_MONTH).astype(float)
    most = parts.max()
    with_points = cells.str.match(r"\d{1,2}\.")
    if not with_points.all() and most.notna().all() and most.max() <= 12 and (parts[0] != parts[1]).any():
        raise ValueError(f"{where}: '{cells.iloc[0]}' may have day or month first; write 2024-12-31.")
    return bool(with_points.any() or most[0] > 12)
