"""From the columns of a table to inputs and labels, the same for training rows and new ones.

Numbers are inputs as they are. A column of text holds categories: each becomes an input that is 1 in its rows and 0 in
others (two categories make one input), or, if so asked, the column becomes one input that numbers its categories from 0
in alphabetical order. Columns are matched by name; their order does not matter.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any, NamedTuple, Self, TypeVar

import numpy as np
from numpy.typing import NDArray

from conformal_gp.tables.cells import MISSING_MARKS, as_numbers, is_date, is_like_a_number, is_missing, number
from conformal_gp.tables.dialect import has_thousands
from conformal_gp.tables.errors import TableError, did_you_mean, listed

if TYPE_CHECKING:
    import pandas

    from conformal_gp.tables.reading import Table

Array = NDArray[np.float64]
Item = TypeVar("Item")
Result = TypeVar("Result")

CATEGORY_INPUTS = ("onehot", "codes")
MISSING_RULES = ("error", "drop", "impute")
# More categories than this, or than half the rows, and a column looks like names rather than kinds.
MOST_CATEGORIES = 50


class Design(NamedTuple):
    """Rows of a table as a model takes them."""

    X: Array
    """(rows, inputs)"""
    rows: NDArray[np.int64]
    """Which rows of the table these are: all, but for those dropped."""


@dataclass(frozen=True)
class Column:
    """One column that a model uses."""

    name: str
    categories: tuple[str, ...] | None
    """In alphabetical order; None for numbers."""
    fill: float | str
    """What stands in for a missing value with ``missing="impute"``: the median, or the most frequent category."""
    constant: bool = False
    """Whether all training rows have the same value."""

    def inputs(self, encoding: str) -> list[str]:
        """Names of the inputs that the column becomes."""
        if self.categories is None or encoding == "codes":
            return [self.name]
        shown = self.categories[1:] if len(self.categories) == 2 else self.categories
        return [f"{self.name}={category}" for category in shown]

    def design(self, values: Array, encoding: str) -> Array:
        """Inputs, (rows, inputs), from numbers or numbers of categories."""
        if self.categories is None or encoding == "codes":
            return values[:, None]
        indicators = (values[:, None] == np.arange(len(self.categories))).astype(np.float64)
        return indicators[:, 1:] if len(self.categories) == 2 else indicators


@dataclass(frozen=True)
class Columns:
    """How the columns of a table become inputs, learnt from a table of training rows.

    Examples
    --------
    >>> import pandas as pd
    >>> from conformal_gp.tables import Columns, Table
    >>> from conformal_gp.tables.dialect import Dialect
    >>> frame = pd.DataFrame({"weight": [1.5, 2.5, 2.0], "origin": ["usa", "japan", "usa"], "mpg": [20.0, 30.0, 25.0]})
    >>> table = Table("cars", frame, Dialect())
    >>> columns = Columns.learn(table, "mpg", category_inputs="codes")
    >>> columns.input_names, columns.design(table).X.tolist()
    (['weight', 'origin'], [[1.5, 1.0], [2.5, 0.0], [2.0, 1.0]])
    >>> columns.labels(table).tolist()
    [20.0, 30.0, 25.0]
    """

    source: str
    """What the table of training rows was called."""
    target: str
    columns: tuple[Column, ...]
    category_inputs: str
    missing: str
    missing_marks: tuple[str, ...]
    left_out: tuple[str, ...]

    @classmethod
    def learn(
        cls,
        table: Table,
        target: str,
        *,
        leave_out: Iterable[str] = (),
        category_inputs: str = "onehot",
        missing: str = "error",
        missing_marks: Iterable[str] = (),
    ) -> Self:
        """Learn which columns there are, and the categories of those with text.

        Parameters
        ----------
        table : Table
            Training rows.
        target : str
            Name of the column with the labels.
        leave_out : iterable of str
            Names of columns not to use.
        category_inputs : {"onehot", "codes"}, default="onehot"
            What a column of text becomes: an input for each category, or one that numbers them alphabetically.
        missing : {"error", "drop", "impute"}, default="error"
            What to do with rows that lack a value.
        missing_marks : iterable of str
            Texts that mean a missing value, besides the usual ones.

        Returns
        -------
        columns : Columns
            The columns.
        """
        marks = MISSING_MARKS | frozenset(missing_marks)
        leave_out = list(leave_out)
        for name in [target, *leave_out]:
            if name not in table.names:
                raise TableError(
                    f"{table.name} has no column '{name}'.{did_you_mean(name, table.names)} "
                    f"Its columns are {listed(filter(None, table.names))}."
                )
        if target in leave_out:
            raise TableError(f"the target '{target}' cannot be dropped.")
        used = [name for name in table.names if name != target and name not in leave_out]
        unnamed = [name for name in used if not name]
        numbering = bool(unnamed) and _numbers_rows(table)
        used = [name for name in used if name]
        if unnamed and not numbering:
            raise TableError(
                f"{table.name} has a column without a name; give it one in the header, or leave it out with --drop ''."
            )
        if not used:
            raise TableError(f"{table.name} has no column besides the target '{target}' to predict it from.")
        columns = tuple(_each(used, lambda name: _learn_column(table, name, marks, missing, category_inputs)))
        return cls(table.name, target, columns, category_inputs, missing, tuple(missing_marks), (*leave_out, *unnamed))

    @classmethod
    def of_numbers(cls, source: str, target: str, names: Iterable[str]) -> Self:
        """Columns that are inputs as they are."""
        return cls(source, target, tuple(Column(name, None, 0.0) for name in names), "onehot", "error", (), ())

    @property
    def input_names(self) -> list[str]:
        """Names of the inputs."""
        return [name for column in self.columns for name in column.inputs(self.category_inputs)]

    @property
    def _marks(self) -> frozenset[str]:
        return MISSING_MARKS | frozenset(self.missing_marks)

    def extra(self, table: Table) -> list[str]:
        """Columns of another table that are not used, and were not left out before."""
        known = {column.name for column in self.columns} | {self.target, *self.left_out}
        return [name for name in table.names if name not in known]

    def design(self, table: Table) -> Design:
        """Inputs of a table's rows.

        Raises
        ------
        TableError
            If a column is not there, a category is new, a value is missing (unless ``missing`` says otherwise) or not a
            number.
        """
        absent = [column.name for column in self.columns if column.name not in table.names]
        if absent:
            hint = did_you_mean(absent[0], self.extra(table)) if len(absent) == 1 else ""
            raise TableError(f"{table.name} lacks {listed(absent)}, which {self.source} has.{hint}")
        values = np.array(_each(self.columns, lambda column: self._values(table, column)))
        rows = np.flatnonzero(~np.isnan(values).any(axis=0))  # NaN only in rows to drop
        inputs = zip(self.columns, values[:, rows], strict=True)
        return Design(np.hstack([column.design(value, self.category_inputs) for column, value in inputs]), rows)

    def _values(self, table: Table, column: Column) -> Array:
        """A column as numbers or codes, NaN only where a row is to be dropped."""
        if column.categories is None:
            values = _numbers(table, column.name, self._marks)
            fill = float(column.fill)
        else:
            values = _codes(table, column, self._marks, self.source)
            fill = float(column.categories.index(str(column.fill)))
        absent = np.isnan(values)
        if absent.any() and self.missing == "error":
            raise _missing_value(table, column.name, absent)
        if self.missing == "impute":
            values[absent] = fill
        return values

    def frame(self, X: Array) -> pandas.DataFrame:
        """Inputs with their names."""
        import pandas

        return pandas.DataFrame(X, columns=self.input_names)

    def usual_categories(self) -> dict[int | str, float]:
        """Inputs of the columns of text, by name, in a row with the most frequent category of each."""
        usual: dict[int | str, float] = {}
        for column in self.columns:
            if column.categories is not None:
                code = np.array([float(column.categories.index(str(column.fill)))])
                names = column.inputs(self.category_inputs)
                usual |= zip(names, column.design(code, self.category_inputs)[0].tolist(), strict=True)
        return usual

    def labels(self, table: Table) -> Array:
        """Labels of a table's rows, NaN where one is missing (an error with ``missing="error"``)."""
        labels = _numbers(table, self.target, self._marks, is_target=True)
        absent = np.isnan(labels)
        if absent.any() and self.missing == "error":
            raise _missing_value(table, self.target, absent, is_target=True)
        return labels

    def training_rows(self, table: Table) -> tuple[Design, Array]:
        """Inputs and labels of the rows that have a label and lack nothing that is not imputed."""
        X, rows = self.design(table)
        y = self.labels(table)[rows]
        labelled = np.isfinite(y)
        if not labelled.any():
            raise TableError(f"{table.name} has no row without missing values.")
        return Design(X[labelled], rows[labelled]), y[labelled]

    def emptiest(self, table: Table) -> tuple[str, int]:
        """The column that lacks the most values, and how many."""
        names = [self.target, *(column.name for column in self.columns)]
        absent = {name: sum(is_missing(cell, self._marks) for cell in table.cells(name)) for name in names}
        return max(absent.items(), key=lambda item: item[1])

    def notices(self) -> list[str]:
        """What was done to the columns, for whoever wrote the table."""
        found = []
        text = [column for column in self.columns if column.categories is not None]
        if text:
            how = "numbered in alphabetical order" if self.category_inputs == "codes" else "one 0/1 input a category"
            kinds = "; ".join(f"{column.name}: {_short(column.categories or ())}" for column in text)
            found.append(f"text columns are categories ({how}): {kinds}")
        constant = [column.name for column in self.columns if column.constant]
        if constant:
            found.append(f"the same value in every row of {self.source}: {listed(constant)}")
        if "" in self.left_out:
            found.append("the column without a name is not used")
        return found

    def to_json(self) -> dict[str, Any]:
        """As plain values, for :mod:`conformal_gp.persistence`."""
        return asdict(self)

    @classmethod
    def from_json(cls, document: dict[str, Any]) -> Self:
        """Read what :meth:`to_json` wrote."""
        values = dict(document)
        values["columns"] = tuple(
            Column(
                column["name"],
                None if column["categories"] is None else tuple(column["categories"]),
                column["fill"],
                column["constant"],
            )
            for column in values["columns"]
        )
        for name in ("missing_marks", "left_out"):
            values[name] = tuple(values[name])
        return cls(**values)


def _each(items: Sequence[Item], function: Callable[[Item], Result]) -> list[Result]:
    """Results for all items, or one error that names what is wrong with each, so that all can be mended at once."""
    results, errors = [], []
    for item in items:
        try:
            results.append(function(item))
        except TableError as error:
            errors.append(error)
    if errors:
        raise TableError.together(errors) if len(errors) > 1 else errors[0]
    return results


def _short(categories: Sequence[str]) -> str:
    return ", ".join(categories[:5]) + (f" and {len(categories) - 5} more" if len(categories) > 5 else "")


def _numbers_rows(table: Table) -> bool:
    """Whether the column without a name is the row number that data frames are saved with, in whatever order."""
    numbers = as_numbers(table.cells(""), table.dialect)
    if numbers is None or not np.all(numbers == np.round(numbers)):  # NaN is not equal to itself
        return False
    return np.unique(numbers).size == numbers.size


def _learn_column(table: Table, name: str, marks: frozenset[str], missing: str, category_inputs: str) -> Column:
    cells = table.cells(name)
    numbers = as_numbers(cells, table.dialect, marks)
    absent = np.array([is_missing(cell, marks) for cell in cells]) if numbers is None else np.isnan(numbers)
    if absent.all():
        raise TableError(f"{table.name}: column '{name}' is empty; leave it out with --drop '{name}'.")
    if absent.any() and missing == "error":
        raise _missing_value(table, name, absent)
    present = [] if numbers is not None else [cells[row] for row in np.flatnonzero(~absent)]
    if sum(map(is_date, present)) > len(present) / 2:
        row = next(int(row) for row in np.flatnonzero(~absent) if is_date(cells[row]))
        raise TableError(
            f"{table.name}: column '{name}' holds dates ({table.place(row)}: {cells[row]}), which are no inputs. Turn "
            f"it into a number (day of the year, age in days), or leave it out with --drop '{name}'. Beware: rows in "
            "order of time are rarely exchangeable."
        )
    if numbers is not None or sum(map(is_like_a_number, present)) > len(present) / 2:
        numbers = _numbers(table, name, marks)
        return Column(name, None, float(np.nanmedian(numbers)), bool(np.nanmax(numbers) == np.nanmin(numbers)))
    counts = Counter(map(str, present))
    if category_inputs == "onehot" and len(counts) > max(2, min(MOST_CATEGORIES, len(present) / 2)):
        raise TableError(
            f"{table.name}: column '{name}' holds text with {len(counts)} different values in {len(present)} rows; it "
            f"looks like names rather than categories. Leave it out with --drop '{name}', or number the values "
            "alphabetically with --categories codes."
        )
    return Column(name, tuple(sorted(counts)), counts.most_common(1)[0][0], len(counts) == 1)


def _numbers(table: Table, name: str, marks: frozenset[str], *, is_target: bool = False) -> Array:
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


def _codes(table: Table, column: Column, marks: frozenset[str], source: str) -> Array:
    """Numbers of a column's categories, NaN where a cell holds nothing."""
    categories = column.categories or ()
    known = {category: float(code) for code, category in enumerate(categories)}
    values = np.full(len(table), np.nan)
    for row, cell in enumerate(table.cells(column.name)):
        if is_missing(cell, marks):
            continue
        if str(cell) not in known:
            raise TableError(
                f"{table.name}: column '{column.name}', {table.place(row)}: '{cell}' is not among the categories of "
                f"{source} ({_short(categories)}).{did_you_mean(str(cell), categories)} Nothing is known of it."
            )
        values[row] = known[str(cell)]
    return values


def _missing_value(table: Table, name: str, absent: NDArray[np.bool_], *, is_target: bool = False) -> TableError:
    rows = np.flatnonzero(absent)
    others = f" and {rows.size - 1} more" if rows.size > 1 else ""
    if is_target:
        what, hint = "the target", "--missing drop and --missing impute leave out such rows: labels are not imputed."
    else:
        what = "column"
        hint = "--missing drop leaves out such rows; --missing impute fills in medians and most frequent categories."
    return TableError(f"{table.name}: {what} '{name}' has no value in {table.place(int(rows[0]))}{others}.", hint)
