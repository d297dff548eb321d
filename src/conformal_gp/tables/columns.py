"""From the columns of a table to inputs and labels, the same for training rows and new ones.

Numbers are inputs as they are. A column of text holds categories: each becomes an input that is 1 in its rows and 0 in
others (two categories make one input), or, if so asked, the column becomes one input that numbers its categories from 0
in alphabetical order. A column of dates becomes year, month and day of the week, if so asked. Columns are matched
by name; their order does not matter.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any, NamedTuple, Self, TypeVar

import numpy as np
from numpy.typing import NDArray

from conformal_gp.tables.cells import MISSING_MARKS
from conformal_gp.tables.column import (
    Column,
    codes,
    count_missing,
    described,
    learn_column,
    missing_value,
    names_rows,
    numbers_rows,
    read_numbers,
)
from conformal_gp.tables.dates import ORDERS, read_dates
from conformal_gp.tables.dialect import Dialect
from conformal_gp.tables.errors import TableError, did_you_mean, listed
from conformal_gp.tables.table import Table
from conformal_gp.types import Array

if TYPE_CHECKING:
    import pandas

Item = TypeVar("Item")
Result = TypeVar("Result")

CATEGORY_INPUTS = ("onehot", "codes")
MISSING_RULES = ("error", "drop", "impute")


class DesignMatrix(NamedTuple):
    """Rows of a table as a model takes them."""

    X: Array
    """(rows, inputs)"""
    rows: NDArray[np.int64]
    """Which rows of the table these are: all, but for those dropped."""
    unseen: NDArray[np.int64] = np.empty(0, dtype=np.int64)
    """Those that were dropped because a category is new."""
    imputed: int = 0
    """How many missing values were filled in."""
    noise: Array | None = None
    """(rows,): known noise variances, where a column holds these."""


class _Values(NamedTuple):
    """A column of a table in numbers; which of its cells have a new category, and which were filled in."""

    values: Array
    unseen: NDArray[np.bool_]
    imputed: NDArray[np.bool_]


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
    dialect: Dialect | None = None
    """How the table was written, if it was text: new rows are read the same way."""
    numbering: tuple[str, ...] = ()
    """Columns that are used, and look like row numbers or identifiers."""
    noise: str | None = None
    """The column of known noise variances, which is no input."""

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
        dates: str = "error",
        noise: str | None = None,
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
        dates : {"error", "parts"}, default="error"
            Whether a column of dates is an error, or becomes year, month and day of the week (and hour).
        noise : str or None, default=None
            Name of a column with the known variance of the noise on each label, which is no input.

        Returns
        -------
        columns : Columns
            The columns.
        """
        marks = MISSING_MARKS | frozenset(missing_marks)
        leave_out = list(leave_out)
        for name in [target, *leave_out, *([] if noise is None else [noise])]:
            if name not in table.names:
                raise TableError(
                    f"{table.name} has no column '{name}'.{did_you_mean(name, table.names)} "
                    f"Its columns are {listed(filter(None, table.names))}."
                )
        if target in leave_out:
            raise TableError(f"the target '{target}' cannot be dropped.")
        if noise is not None and noise in (target, *leave_out):
            raise TableError(f"the column of noise variances '{noise}' cannot be the target, nor be dropped.")
        used = [name for name in table.names if name not in (target, noise) and name not in leave_out]
        unnamed = [name for name in used if not name]
        used = [name for name in used if name]
        if unnamed and not numbers_rows(table):
            raise TableError(
                f"{table.name} has a column without a name; give it one in the header, or leave it out with --drop ''."
            )
        if not used:
            raise TableError(f"{table.name} has no column besides the target '{target}' to predict it from.")
        columns = tuple(_each(used, lambda name: learn_column(table, name, marks, missing, category_inputs, dates)))
        left_out = (*leave_out, *unnamed)
        dialect = None if table.typed else table.dialect
        numbering = tuple(name for name in used if names_rows(table, name, marks))
        return cls(
            table.name,
            target,
            columns,
            category_inputs,
            missing,
            tuple(missing_marks),
            left_out,
            dialect,
            numbering,
            noise,
        )

    @classmethod
    def of_numbers(cls, source: str, target: str, names: Iterable[str], **options: Any) -> Self:
        """Columns that are inputs as they are; ``options`` are other attributes."""
        columns = tuple(Column(name, None, 0.0) for name in names)
        usual = {"category_inputs": "onehot", "missing": "error", "missing_marks": (), "left_out": ()}
        return cls(source, target, columns, **usual | options)

    @property
    def input_names(self) -> list[str]:
        """Names of the inputs."""
        return [name for column in self.columns for name in column.inputs(self.category_inputs)]

    def groups(self) -> dict[str, list[int]]:
        """Numbers of the inputs that each column became."""
        found: dict[str, list[int]] = {}
        for column in self.columns:
            start = sum(map(len, found.values()))
            found[column.name] = list(range(start, start + len(column.inputs(self.category_inputs))))
        return found

    @property
    def _marks(self) -> frozenset[str]:
        return MISSING_MARKS | frozenset(self.missing_marks)

    def extra(self, table: Table) -> list[str]:
        """Columns of another table that are not used, and were not left out before."""
        known = {column.name for column in self.columns} | {self.target, self.noise, *self.left_out}
        return [name for name in table.names if name not in known]

    def design(self, table: Table, unseen: str = "error") -> DesignMatrix:
        """Inputs of a table's rows; with ``unseen="blank"``, without those that have a new category.

        Raises
        ------
        TableError
            If a column is not there, a category is new (unless ``unseen`` says otherwise), a value is missing (unless
            ``missing`` says otherwise) or not a number.
        """
        needed = [*(column.name for column in self.columns), *([] if self.noise is None else [self.noise])]
        absent = [name for name in needed if name not in table.names]
        if absent:
            hint = did_you_mean(absent[0], self.extra(table)) if len(absent) == 1 else ""
            raise TableError(f"{table.name} lacks {listed(absent)}, which {self.source} has.{hint}")
        read = _each(self.columns, lambda column: self._values(table, column, unseen))
        values = np.array([found.values for found in read])
        noise = None if self.noise is None else self._noise_variances(table, self.noise)
        lacking = np.isnan(values).any(axis=0)  # NaN only in rows to drop
        rows = np.flatnonzero(~lacking if noise is None else ~(lacking | np.isnan(noise)))
        inputs = zip(self.columns, values[:, rows], strict=True)
        X = np.hstack([column.design(value, self.category_inputs) for column, value in inputs])
        new = np.flatnonzero(np.any([found.unseen for found in read], axis=0))
        imputed = sum(int(found.imputed[rows].sum()) for found in read)
        return DesignMatrix(X, rows, new, imputed, None if noise is None else noise[rows])

    def _noise_variances(self, table: Table, name: str) -> Array:
        """Known noise variances, NaN only where a row is to be dropped: they are not imputed."""
        variances = read_numbers(table, name, self._marks)
        absent = np.isnan(variances)
        if absent.any() and self.missing != "drop":
            raise missing_value(table, name, absent)
        if (variances < 0.0).any():
            row = int(np.argmax(variances < 0.0))
            where = f"{variances[row]:g} in {table.place(row)}"
            raise TableError(f"{table.name}: variances cannot be negative; column '{name}' has {where}.")
        return variances

    def _values(self, table: Table, column: Column, unseen: str) -> _Values:
        """A column as numbers, days or codes, NaN only where a row is to be dropped."""
        new = np.zeros(len(table), dtype=bool)
        fill = float(column.fill) if column.categories is None else float(column.categories.index(str(column.fill)))
        if column.categories is not None:
            values, new = codes(table, column, self._marks, self.source, unseen)
        elif column.dates is not None:
            values = read_dates(table, column.name, column.dates, self._marks)
        else:
            values = read_numbers(table, column.name, self._marks)
        absent = np.isnan(values) & ~new
        if absent.any() and self.missing == "error":
            raise missing_value(table, column.name, absent)
        if self.missing == "impute":
            values[absent] = fill
        return _Values(values, new, absent & (self.missing == "impute"))

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
        labels = read_numbers(table, self.target, self._marks, is_target=True)
        absent = np.isnan(labels)
        if absent.any() and self.missing == "error":
            raise missing_value(table, self.target, absent, is_target=True)
        return labels

    def training_rows(self, table: Table) -> tuple[DesignMatrix, Array]:
        """Inputs and labels of the rows that have a label and lack nothing that is not imputed."""
        design = self.design(table)
        y = self.labels(table)[design.rows]
        labelled = np.isfinite(y)
        if not labelled.any():
            raise TableError(f"{table.name} has no row without missing values.")
        noise = None if design.noise is None else design.noise[labelled]
        found = DesignMatrix(design.X[labelled], design.rows[labelled], imputed=design.imputed, noise=noise)
        return found, y[labelled]

    def emptiest(self, table: Table) -> tuple[str, int]:
        """The column that lacks the most values, and how many."""
        names = [self.target, *(column.name for column in self.columns), *([] if self.noise is None else [self.noise])]
        absent = {name: count_missing(table, name, self._marks) for name in names}
        return max(absent.items(), key=lambda item: item[1])

    def notices(self) -> list[str]:
        """What was done to the columns, for the user."""
        found = []
        text = [column for column in self.columns if column.categories is not None]
        if text:
            how = "numbered in alphabetical order" if self.category_inputs == "codes" else "one 0/1 input a category"
            found.append(f"text columns are categories ({how}): {described(text)}")
        dates = [column.name for column in self.columns if column.dates is not None]
        if dates:
            found.append(
                f"dates are inputs as year, month and day of the week: {listed(dates)}; beware: rows in order of time "
                "are rarely exchangeable, and later dates are beyond all that was seen"
            )
        if self.numbering:
            options = " ".join(f"--drop '{name}'" if " " in name else f"--drop {name}" for name in self.numbering)
            found.append(
                f"whole numbers that are all different, as row numbers and identifiers are: {listed(self.numbering)}; "
                f"used as inputs, these widen intervals or mislead. Leave them out with {options}"
            )
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
        columns = [
            Column(
                column["name"],
                _tuple_of_text(column["categories"]),
                column["fill"],
                bool(column["constant"]),
                column.get("dates"),
                bool(column.get("hours", False)),
            )
            for column in document["columns"]
        ]
        for column in columns:
            _check(isinstance(column.name, str), f"a column is named {column.name!r}")
            _check(column.dates in (None, *ORDERS), f"dates of '{column.name}' are written {column.dates!r}")
            if column.categories is None:
                is_number = isinstance(column.fill, int | float) and not isinstance(column.fill, bool)
                _check(is_number and np.isfinite(column.fill), f"'{column.name}' is filled in with {column.fill!r}")
            else:
                known = len(set(column.categories)) == len(column.categories) and column.fill in column.categories
                _check(known, f"'{column.name}' has the categories {listed(column.categories)}")
        _check(document["category_inputs"] in CATEGORY_INPUTS, f"category_inputs is {document['category_inputs']!r}")
        _check(document["missing"] in MISSING_RULES, f"missing is {document['missing']!r}")
        source, target = document["source"], document["target"]
        _check(isinstance(source, str) and isinstance(target, str), f"source and target are {source!r}, {target!r}")
        dialect, noise = document.get("dialect"), document.get("noise")
        _check(noise is None or isinstance(noise, str), f"noise is {noise!r}")
        return cls(
            source,
            target,
            tuple(columns),
            document["category_inputs"],
            document["missing"],
            _tuple_of_text(document["missing_marks"]) or (),
            _tuple_of_text(document["left_out"]) or (),
            None if dialect is None else Dialect.from_json(dialect),
            _tuple_of_text(document.get("numbering")) or (),
            noise,
        )


def _tuple_of_text(items: Any) -> tuple[str, ...] | None:
    """Text out of JSON; None for null."""
    _check(items is None or (isinstance(items, list) and all(isinstance(item, str) for item in items)), repr(items))
    return None if items is None else tuple(items)


def _check(condition: bool, what: str) -> None:
    if not condition:
        raise ValueError(what)


def _each(items: Sequence[Item], function: Callable[[Item], Result]) -> list[Result]:
    """Results for all items, or one error that names what is wrong with each, so that all can be fixed at once."""
    results, errors = [], []
    for item in items:
        try:
            results.append(function(item))
        except TableError as error:
            errors.append(error)
    if errors:
        raise TableError.together(errors) if len(errors) > 1 else errors[0]
    return results
