"""What commands share: messages and results, and the rows of tables as a model takes them."""

from __future__ import annotations

import json
import math
import sys
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple

from rich.console import Console

from conformal_gp.cli.options import Model, Reading

if TYPE_CHECKING:
    import pandas as pd
    from numpy.typing import NDArray

    from conformal_gp.arrays import Array, Indices
    from conformal_gp.cli.columns import Columns, Inputs
    from conformal_gp.cli.tables import Table

FEWEST_ROWS = 3


class Output:
    """Messages and results of a command: results go to standard output, everything else to standard error."""

    def __init__(self, *, quiet: bool):
        self.notices: list[str] = []
        plain: dict[str, Any] = {"highlight": False, "markup": False}
        self._errors = Console(stderr=True, quiet=quiet, soft_wrap=not sys.stderr.isatty(), **plain)
        self._always = Console(stderr=True, soft_wrap=not sys.stderr.isatty(), **plain)
        self._results = Console(**plain)

    def notice(self, text: str) -> None:
        """Print a note, once."""
        if text and text not in self.notices:
            self.notices.append(text)
            self.info(f"note: {text}")

    def warning(self, text: str) -> None:
        """Print what limits the guarantee, also with --quiet."""
        self.notices.append(text)
        self._always.print(f"warning: {text}")

    def info(self, *lines: str) -> None:
        """Print summaries."""
        for line in lines:
            self._errors.print(line)

    def result(self, *renderables: Any) -> None:
        """Print a result for people: sentences that a terminal wraps between words, and a pipe does not."""
        for renderable in renderables:
            whole = isinstance(renderable, str) and not self._results.is_terminal
            self._results.print(renderable, soft_wrap=whole)

    def document(self, document: dict[str, Any]) -> None:
        """Print a result for programs, notices included: strict JSON, null for numbers that are not finite."""
        print(json.dumps(_strict(document | {"notices": self.notices}), allow_nan=False, ensure_ascii=False))

    @contextmanager
    def working(self, label: str) -> Iterator[Callable[[int, int], None]]:
        """Show progress on a terminal, and turn warnings into notices; yield a function of how much is done."""
        with warnings.catch_warnings(record=True) as caught, self._errors.status(label) as status:
            warnings.simplefilter("always")
            yield lambda done, total: status.update(f"{label}: {done} of {total}")
        for warning in caught:  # commands print a notice of their own about extrapolation
            if issubclass(warning.category, UserWarning) and warning.category.__name__ != "ExtrapolationWarning":
                self.notice(str(warning.message))


def _strict(value: Any) -> Any:
    """Return a value as JSON has it."""
    if hasattr(value, "tolist"):
        value = value.tolist()
    if isinstance(value, dict):
        return {key: _strict(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_strict(item) for item in value]
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value


class Training(NamedTuple):
    """Training rows; the index of ``X`` has their places in the table, from 0."""

    X: pd.DataFrame
    y: Array
    columns: Columns
    y_variance: Array | None = None
    groups: str | None = None
    condition: str = ""
    """Why the guarantee does not apply to these rows, in a sentence; empty if nothing is against it."""
    censoring: Indices | None = None
    """-1 or 1 where the target is a limit of detection; None if every target was observed."""
    batches: NDArray[Any] | None = None
    """Batches of the rows; None if no column was named."""
    batch: str | None = None
    """The column of batches, if intervals are for rows of new ones."""
    numbers: Sequence[int] = ()
    """Numbers of the rows in the file."""
    names: Sequence[str] | None = None
    """Names of the rows, if a column has them."""
    moments: Array | None = None
    """Dates of the rows, of the first column of dates; None if there is none."""

    def of_rows(self) -> dict[str, Any]:
        """Return noise variances, groups and limits of the rows, as ``fit`` takes them."""
        known: dict[str, Any] = {"y_variance": self.y_variance, "censoring": self.censoring}
        if self.batch is not None:
            known["batches"] = self.batches
        if self.groups is None:
            return known
        return known | {"groups": self.X[self.groups]}

    def sorted_by_date(self, output: Output) -> Training:
        """Return the rows in order of their dates; as they are if no column has dates."""
        import numpy as np

        if self.moments is None:
            return self
        order = np.argsort(self.moments, kind="stable")
        if (np.diff(order) > 0).all():
            return self
        output.notice(f"rows are taken in order of '{next(iter(self.columns.dates))}'")
        each = ("y", "y_variance", "censoring", "batches", "moments", "numbers", "names")
        known: dict[str, Any] = {
            name: np.asarray(value)[order] for name in each if (value := getattr(self, name)) is not None
        }
        return self._replace(X=self.X.iloc[order], **known)

    def seen_again(self, table: Table) -> str:
        """Say how many rows of another table are of these batches, of which a model without --batch knows more."""
        if self.batch is None or self.batch not in table.frame or self.batches is None:
            return ""
        n_again = int(table.texts(self.batch).isin([*self.batches]).sum())
        if not n_again:
            return ""
        which = f"{n_again} of {len(table.frame)} rows of {table.name} have a {self.batch} of {self.columns.source}"
        return f"{which}; intervals are for new ones, and without --batch those of known ones may be narrower"

    def fit(self, choice: Model, output: Output) -> Any:
        """Fit a model, which keeps what is needed to read new rows."""
        from conformal_gp.evaluation.kernel_words import conditional

        with output.working(f"fitting to {self.y.size} rows"):
            model = choice.regressor(self.y).fit(self.X, self.y, **(self.of_rows() | {"groups": self.groups}))
        model.guarantee_ = conditional(model.guarantee_, self.condition)
        model._columns = self.columns
        return model


def read_training(source: str, target: str, reading: Reading, output: Output, by: str | None = None) -> Training:
    """Read training rows from a table, and note what was done to them; ``by`` is a column of batches, and no input."""
    import numpy as np

    from conformal_gp.cli.columns import Columns
    from conformal_gp.cli.reading import read_table
    from conformal_gp.cli.tables import did_you_mean, listed

    if by is not None and reading.batch is not None:
        raise ValueError("give --by COL or --batch COL, not both: with --batch, whole batches are held out.")
    by = by or reading.batch
    with output.working("reading"):
        table = read_table(source, reading, expected=[target])
        if by is not None:
            reading = replace(reading, drop=[*reading.drop, by])
        columns = Columns.learn(table, target, reading)
        X, y_variance, imputed = columns.inputs(table)
        every_y, every_side = columns.targets(table)
        columns.check_targets(table, every_y)
        y = every_y[X.index]
        side = every_side[X.index]
    present = np.isfinite(y)
    if not present.all():
        output.notice(f"{(~present).sum()} more rows of {table.name} have no {target} and are left out")
        X = X[present]
        y = y[present]
        side = side[present]
        if y_variance is not None:
            y_variance = y_variance[present]
    if len(X) < FEWEST_ROWS:
        raise ValueError(f"{table.name} has {len(X)} rows without missing values; at least {FEWEST_ROWS} are needed.")
    if reading.groups is not None and reading.groups not in X:
        known = f"{listed(X)}; got '{reading.groups}'.{did_you_mean(reading.groups, list(X))}"
        raise ValueError(f"--groups must be an input of {table.name}, one of {known}")
    batches = None
    if by is not None:
        batches = table.texts(by, reading.na)[X.index].to_numpy(dtype=str)
        if (batches == "").any():
            raise ValueError(f"{table.place(by, int(X.index[batches == ''][0]))} has no value, and batches need one.")
    censoring = None
    if side.any():
        censoring = side
        output.notice(
            f"{np.count_nonzero(side)} of {len(X)} values of {target} are limits of detection; intervals that reach a "
            "limit contain everything beyond it"
        )
    condition = ""
    n_imputed = X.index.isin(imputed).sum()
    if n_imputed:
        condition = (
            f"missing values in {n_imputed} of {len(X)} rows of {table.name} were imputed from all of its rows, "
            "calibration rows among them."
        )
        output.warning(f"the guarantee does not apply: {condition}")

    from conformal_gp.design import Grid, columns_of  # imports scikit-learn: after mistakes in the table

    columns = replace(columns.of_rows(X), grid=Grid.find(columns_of(X)), rows=columns.labels(table, X.index))
    for name, categories in columns.categories.items():
        if categories:
            X[name] = X[name].cat.set_categories(categories)
    moments = None
    if columns.dates:
        moments = columns.moments(table, next(iter(columns.dates)))[X.index].to_numpy()
    numbers = [table.row_number(row) for row in X.index]
    names = columns.names_of(table, X.index)
    rows: dict[str, Any] = {"numbers": numbers, "names": names, "moments": moments}
    rows["batch"] = reading.batch
    if by is not None:
        output.notice(f"'{by}' names batches and is no input: the model has not seen a new batch")
    return Training(X, y, columns, y_variance, reading.groups, condition, censoring, batches, **rows)


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
        expected = [name for name in columns.named() if name != unknown]
        table = read_table(source, reading, columns.format, expected, new=True)
        filled = table
        if unknown is not None:
            filled = table._replace(frame=table.frame.assign(**{unknown: columns.fill[unknown]}))
        new = columns.inputs(filled)
    extra = columns.extra(table)
    if extra:
        output.notice(f"ignoring columns of {table.name} that {columns.source} does not have: {listed(extra)}")
    if len(new.X) < len(table.frame):
        output.notice(f"predictions of {len(table.frame) - len(new.X)} rows of {table.name} are left empty")
    return table, new


def row_documents(columns: Columns, table: Table, found: pd.DataFrame) -> list[dict[str, Any]]:
    """Return results of rows as JSON has them: with their numbers in the file, and their names if a column has them."""
    described: dict[str, Any] = {"row": [table.row_number(row) for row in found.index]}
    names = columns.names_of(table, found.index)
    if names is not None:
        described["name"] = names
    return [
        {**dict(zip(described, values, strict=True)), **record}
        for *values, record in zip(*described.values(), found.to_dict("records"), strict=True)
    ]
