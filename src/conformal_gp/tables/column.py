"""One column of a table: what it holds, and its cells as numbers."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from conformal_gp.tables.cells import as_numbers, is_date, is_like_a_number, is_missing, number
from conformal_gp.tables.dates import PARTS, has_hours, order_of, parts_of, read_dates
from conformal_gp.tables.dialect import has_thousands
from conformal_gp.tables.errors import TableError, did_you_mean
from conformal_gp.tables.table import Table
from conformal_gp.types import Array

# With more categories than this, or than half the rows, a column probably holds names, not categories; with the second
# number where each has so many rows on average, as countries may.
MOST_CATEGORIES = 50
MOST_OF_MANY_ROWS = 200
ROWS_FOR_EACH = 50
# Fewest rows in which whole numbers that are all different look like row numbers.
FEWEST_NUMBERED = 10
# With more columns of categories than this, the first of them are named, with their number of categories.
MOST_DESCRIBED = 8
_LIKE_AN_IDENTIFIER = re.compile(r"(?i:(^|[^a-z])(id|ids|index|no|nr|num|number|row|key|code))$|[a-z]I[dD]$")


@dataclass(frozen=True)
class Column:
    """One column that a model uses."""

    name: str
    categories: tuple[str, ...] | None
    """In alphabetical order; None for numbers and dates."""
    fill: float | str
    """What replaces a missing value with ``missing="impute"``: the median, or the most frequent category."""
    constant: bool = False
    """Whether all training rows have the same value."""
    dates: str | None = None
    """Of a column of dates: whether these are written "ymd", "dmy" or "mdy"."""
    hours: bool = False
    """Whether dates have a time of day."""

    def inputs(self, encoding: str) -> list[str]:
        """Names of the inputs that the column becomes."""
        if self.dates is not None:
            return [f"{self.name} ({part})" for part in (*PARTS, *["hour"] * self.hours)]
        if self.categories is None or encoding == "codes":
            return [self.name]
        shown = self.categories[1:] if len(self.categories) == 2 else self.categories
        return [f"{self.name}={category}" for category in shown]

    def design(self, values: Array, encoding: str) -> Array:
        """Inputs, (rows, inputs), from numbers, numbers of categories or days since 1970."""
        if self.dates is not None:
            return parts_of(values, self.hours)
        if self.categories is None or encoding == "codes":
            return values[:, None]
        indicators = (values[:, None] == np.arange(len(self.categories))).astype(np.float64)
        return indicators[:, 1:] if len(self.categories) == 2 else indicators


def short(categories: Sequence[str]) -> str:
    """The first few categories, and how many more there are."""
    return ", ".join(categories[:5]) + (f" and {len(categories) - 5} more" if len(categories) > 5 else "")


def described(columns: Sequence[Column]) -> str:
    """Columns of categories and what they hold, in a few lines at most.

    >>> described([Column("origin", ("Europe", "Japan"), "Japan")])
    'origin: Europe, Japan'
    >>> described([Column(f"x{i}", ("a", "b"), "a") for i in range(20)])
    'x0 (2), x1 (2), x2 (2), x3 (2), x4 (2), x5 (2), x6 (2), x7 (2) and 12 more columns'
    """
    if len(columns) <= MOST_DESCRIBED:
        return "; ".join(f"{column.name}: {short(column.categories or ())}" for column in columns)
    named = ", ".join(f"{column.name} ({len(column.categories or ())})" for column in columns[:MOST_DESCRIBED])
    more = len(columns) - MOST_DESCRIBED
    return f"{named} and {more} more column{'s' if more > 1 else ''}"


def numbers_rows(table: Table) -> bool:
    """Whether the column without a name is the row number that data frames are saved with, in whatever order."""
    numbers = as_numbers(table.cells(""), table.dialect)
    if numbers is None or not np.all(numbers == np.round(numbers)):  # NaN is not equal to itself
        return False
    return np.unique(numbers).size == numbers.size


def count_missing(table: Table, name: str, marks: frozenset[str]) -> int:
    """How many cells of a column hold nothing."""
    cells = table.cells(name)
    numbers = as_numbers(cells, table.dialect, marks)
    return sum(is_missing(cell, marks) for cell in cells) if numbers is None else int(np.isnan(numbers).sum())


def names_rows(table: Table, name: str, marks: frozenset[str]) -> bool:
    """Whether a column looks like row numbers or identifiers: whole numbers, all different.

    They must also follow each other without a gap, be in order, or stand below a name such as "id".
    """
    numbers = as_numbers(table.cells(name), table.dialect, marks)
    if numbers is None or numbers.size < FEWEST_NUMBERED or not np.all(numbers == np.round(numbers)):
        return False
    if np.unique(numbers).size < numbers.size:
        return False
    steps = np.diff(numbers)
    in_order = bool((steps > 0.0).all() or (steps < 0.0).all())
    return in_order or np.ptp(numbers) == numbers.size - 1 or _LIKE_AN_IDENTIFIER.search(name) is not None


def most_categories(n_rows: int) -> int:
    """Most different texts in a column of so many rows that are taken for categories.

    >>> [most_categories(n_rows) for n_rows in (3, 20, 100, 2000, 5000, 20000)]
    [2, 10, 50, 50, 100, 200]
    """
    few = min(MOST_CATEGORIES, n_rows // 2)
    return max(2, few, min(MOST_OF_MANY_ROWS, n_rows // ROWS_FOR_EACH))


def learn_column(
    table: Table, name: str, marks: frozenset[str], missing: str, category_inputs: str, dates: str
) -> Column:
    """What a column of training rows holds: numbers, dates, or which categories."""
    cells = table.cells(name)
    numbers = as_numbers(cells, table.dialect, marks)
    absent = np.array([is_missing(cell, marks) for cell in cells]) if numbers is None else np.isnan(numbers)
    if absent.all():
        raise TableError(f"{table.name}: column '{name}' is empty; leave it out with --drop '{name}'.")
    if absent.any() and missing == "error":
        raise missing_value(table, name, absent)
    present = [] if numbers is not None else [cells[row] for row in np.flatnonzero(~absent)]
    if sum(map(is_date, present)) > len(present) / 2 and dates == "parts":
        order = order_of(table, name, marks)
        days = read_dates(table, name, order, marks)
        return Column(
            name, None, float(np.nanmedian(days)), bool(np.nanmax(days) == np.nanmin(days)), order, has_hours(days)
        )
    if sum(map(is_date, present)) > len(present) / 2:
        row = next(int(row) for row in np.flatnonzero(~absent) if is_date(cells[row]))
        raise TableError(
            f"{table.name}: column '{name}' holds dates ({table.place(row)}: {cells[row]}), which are no numbers. "
            f"--dates parts makes inputs of year, month and day of the week; --drop '{name}' leaves it out; or turn it "
            "into a number yourself (age in days). Beware: rows in order of time are rarely exchangeable."
        )
    if numbers is not None or sum(map(is_like_a_number, present)) > len(present) / 2:
        numbers = read_numbers(table, name, marks)
        return Column(name, None, float(np.nanmedian(numbers)), bool(np.nanmax(numbers) == np.nanmin(numbers)))
    counts = Counter(map(str, present))
    if category_inputs == "onehot" and len(counts) > most_categories(len(present)):
        raise TableError(
            f"{table.name}: column '{name}' holds text with {len(counts)} different values in {len(present)} rows; it "
            f"looks like names rather than categories. Leave it out with --drop '{name}', or number the values "
            "alphabetically with --categories codes."
        )
    return Column(name, tuple(sorted(counts)), counts.most_common(1)[0][0], len(counts) == 1)


def read_numbers(table: Table, name: str, marks: frozenset[str], *, is_target: bool = False) -> Array:
    """A column of numbers, NaN where a cell holds nothing."""
    cells = table.cells(name)
    values = as_numbers(cells, table.dialect, marks)
    if values is not None and not np.isinf(values).any():
        return values
    what = "the target" if is_target else "column"
    for row, cell in enumerate(cells):
        value = 0.0 if is_missing(cell, marks) else number(cell, table.dialect)
        if value is None:
            hint = "dates are not numbers" if is_date(cell) else f"if it means a missing value, say --na '{cell}'"
            if isinstance(cell, str) and ("," in cell or "." in cell) and is_like_a_number(cell) and not is_date(cell):
                hint = f"the decimal mark is '{table.dialect.decimal}'; --decimal says otherwise"
                if has_thousands(cell):
                    hint += "; marks between thousands must be taken out"
            raise TableError(f"{table.name}: {what} '{name}', {table.place(row)}: '{cell}' is not a number ({hint}).")
        if not np.isfinite(value):
            raise TableError(f"{table.name}: {what} '{name}', {table.place(row)}: '{cell}' is not finite.")
    raise AssertionError("a column that is not all finite numbers has a cell that is none")


def codes(
    table: Table, column: Column, marks: frozenset[str], source: str, unseen: str = "error"
) -> tuple[Array, NDArray[np.bool_]]:
    """Numbers of a column's categories, NaN where a cell holds nothing, and whether it holds an unseen category.

    With ``unseen="blank"`` an unseen category is NaN too, else an error.
    """
    categories = column.categories or ()
    known = {category: float(code) for code, category in enumerate(categories)}
    values, new = np.full(len(table), np.nan), np.zeros(len(table), dtype=bool)
    for row, cell in enumerate(table.cells(column.name)):
        if is_missing(cell, marks):
            continue
        new[row] = str(cell) not in known
        if new[row] and unseen == "error":
            raise TableError(
                f"{table.name}: column '{column.name}', {table.place(row)}: '{cell}' is not among the categories of "
                f"{source} ({short(categories)}).{did_you_mean(str(cell), categories)} Nothing is known of it.",
                "--unseen blank leaves the predictions of such rows empty.",
            )
        values[row] = known.get(str(cell), np.nan)
    return values, new


def missing_value(table: Table, name: str, absent: NDArray[np.bool_], *, is_target: bool = False) -> TableError:
    """The error that names the first row without a value."""
    rows = np.flatnonzero(absent)
    others = f" and {rows.size - 1} more" if rows.size > 1 else ""
    if is_target:
        what, hint = "the target", "--missing drop and --missing impute leave out such rows: labels are not imputed."
    else:
        what = "column"
        hint = "--missing drop leaves out such rows; --missing impute fills in medians and most frequent categories."
        if rows.size > absent.size / 2:
            others += f", of {absent.size} rows: better leave the column out with --drop '{name}'"
    return TableError(f"{table.name}: {what} '{name}' has no value in {table.place(int(rows[0]))}{others}.", hint)
