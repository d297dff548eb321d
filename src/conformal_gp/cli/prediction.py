"""Means, intervals and regions for the rows of a table."""

from __future__ import annotations

from fractions import Fraction
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from conformal_gp.cli.output import Output
from conformal_gp.cli.training import Model, Reading, tuning_of
from conformal_gp.evaluation import percent
from conformal_gp.metrics import coverage
from conformal_gp.tables import Columns, Table
from conformal_gp.types import Array

_ROWS_NAMED = 5


class NewRows(NamedTuple):
    """New rows, and the table that they are in."""

    table: Table
    X: Array
    """(rows, inputs)"""
    rows: NDArray[np.int64]
    """Which rows of the table these are: all, but for those that lack a value."""


def read_new(source: str, columns: Columns, reading: Reading, output: Output) -> NewRows:
    """Read a table of new rows the way the training rows were read."""
    table = reading.table(source, output, columns.dialect)
    extra = columns.extra(table)
    if extra:
        output.notice(f"{table.name} has columns that {columns.source} has not; they are not used: {_named(extra)}")
    return NewRows(table, *columns.design(table))


class Prediction:
    """Predictions of a fitted model for new rows."""

    def __init__(self, model: Model, columns: Columns, new: NewRows, levels: list[Fraction], output: Output):
        self._model = model
        self._columns = columns
        self._table = new.table
        self._levels = levels
        self.rows = new.rows
        inputs = columns.frame(new.X)
        with output.warnings_as_notices():
            self.mean = np.asarray(model.predict(inputs))
            self.intervals = model.predict_interval(inputs, [float(level) for level in levels])
            self.regions = self._exact_regions(inputs)
        self._say_what_is_unusual(output)

    def _exact_regions(self, inputs: Any) -> list[list[Array]]:
        """Pieces of each region, by level, then by row."""
        if self._model.gamma_ == 2.0 and tuning_of(self._model) != "augmented":  # always one piece
            return [[ends[None] for ends in self.intervals[:, :, i]] for i in range(len(self._levels))]
        return [self._model.predict_set(inputs, float(level)) for level in self._levels]

    def _say_what_is_unusual(self, output: Output) -> None:
        if self.rows.size < len(self._table):
            blank = len(self._table) - self.rows.size
            output.notice(f"rows of {self._table.name} that lack a value: {blank}; their predictions are left empty")
        for i, level in enumerate(self._levels):
            with_holes = [row for row, pieces in zip(self.rows, self.regions[i], strict=True) if len(pieces) > 1]
            if with_holes:
                output.notice(
                    f"regions with holes at {percent(level)}: {len(with_holes)} ({self._places(with_holes)}); lower "
                    "and upper are their outer ends, --regions gives all pieces"
                )
            infinite = self.rows[~np.isfinite(self.intervals[:, :, i]).all(axis=1)]
            if 0 < infinite.size < self.rows.size:
                output.notice(
                    f"infinite intervals at {percent(level)}: {infinite.size} ({self._places(infinite)}); the "
                    "training rows say nothing there, or too little for this level"
                )

    def _places(self, rows: Any) -> str:
        named = ", ".join(self._table.place(int(row)) for row in rows[:_ROWS_NAMED])
        return named if len(rows) <= _ROWS_NAMED else f"{named} and {len(rows) - _ROWS_NAMED} more"

    def added(self, prefix: str, with_regions: bool) -> dict[str, Array | list[str]]:
        """Columns to add to the table."""
        columns: dict[str, Array | list[str]] = {f"{prefix}mean": self._spread(self.mean)}
        for i, level in enumerate(self._levels):
            ending = percent(level).removesuffix("%")
            columns[f"{prefix}lower_{ending}"] = self._spread(self.intervals[:, 0, i])
            columns[f"{prefix}upper_{ending}"] = self._spread(self.intervals[:, 1, i])
            if with_regions:
                cells = [""] * len(self._table)
                for row, pieces in zip(self.rows, self.regions[i], strict=True):
                    cells[row] = " ".join(f"[{low!r}; {high!r}]" for low, high in pieces.tolist())
                columns[f"{prefix}region_{ending}"] = cells
        return columns

    def _spread(self, values: Array) -> Array:
        """Values of the predicted rows as a column of all rows, NaN elsewhere."""
        column = np.full(len(self._table), np.nan)
        column[self.rows] = values
        return column

    def coverage(self) -> Array | None:
        """Share of labels inside at each level, if every predicted row has a label."""
        if self._columns.target not in self._table.names:
            return None
        try:
            labels = self._columns.labels(self._table)[self.rows]
        except ValueError:  # without all labels there is no coverage to report
            return None
        return None if np.isnan(labels).any() else np.asarray(coverage(labels, self.intervals))

    def summary(self) -> str:
        """A summary in a few lines."""
        lines = [
            f"{self.rows.size} rows predicted from {self._model._predictor.n_rows}, kernel {self._model.kernel_}, "
            f"tuning {tuning_of(self._model)}.",
            self._model.guarantee_,
        ]
        inside = self.coverage()
        if inside is not None:
            shares = ", ".join(
                f"{percent(share, 1)} inside at {percent(level)}"
                for share, level in zip(inside, self._levels, strict=True)
            )
            lines.append(f"{self._table.name} has labels: {shares}.")
        return "\n".join(lines)

    def document(self) -> dict[str, Any]:
        """The predictions as JSON."""
        inside = self.coverage()
        return {
            "target": self._columns.target,
            "levels": [float(level) for level in self._levels],
            "training_rows": self._model._predictor.n_rows,
            "inputs": self._columns.input_names,
            "tuning": tuning_of(self._model),
            "kernel": str(self._model.kernel_),
            "guarantee": self._model.guarantee_,
            "coverage": None if inside is None else inside.tolist(),
            "rows": [
                {
                    "row": int(row) + 1,
                    "mean": self.mean[j],
                    "lower": self.intervals[j, 0].tolist(),
                    "upper": self.intervals[j, 1].tolist(),
                    "regions": [by_row[j].tolist() for by_row in self.regions],
                }
                for j, row in enumerate(self.rows)
            ],
        }


def _named(names: list[str]) -> str:
    return ", ".join(names[:10]) + (f" and {len(names) - 10} more" if len(names) > 10 else "")
