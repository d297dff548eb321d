"""Means, intervals, regions, quantiles and bounds for the rows of a table."""

from __future__ import annotations

from fractions import Fraction
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from conformal_gp.cli.asked import Wanted
from conformal_gp.cli.output import Output
from conformal_gp.cli.training import Model, Reading, say_imputed, tuning_of
from conformal_gp.evaluation import chance_range, percent
from conformal_gp.metrics import coverage
from conformal_gp.model_words import guarantee_in_words, kernel_in_words
from conformal_gp.regressor import ConformalGPRegressor
from conformal_gp.tables import Columns, Table
from conformal_gp.types import Array

_ROWS_NAMED = 5
BEYOND = "beyond_training"


class NewRows(NamedTuple):
    """New rows, and the table that they are in."""

    table: Table
    X: Array
    """(rows, inputs)"""
    rows: NDArray[np.int64]
    """Which rows of the table these are: all, but for those that lack a value or have a new category."""
    noise: Array | None
    """Known noise variances, where a column holds these."""


def read_new(source: str, columns: Columns, reading: Reading, output: Output) -> NewRows:
    """Read a table of new rows the way the training rows were read."""
    table = reading.table(source, output, columns.dialect)
    extra = columns.extra(table)
    if extra:
        output.notice(f"{table.name} has columns that {columns.source} has not; they are not used: {_named(extra)}")
    design = columns.design(table, reading.unseen)
    say_imputed(table, design.imputed, output)
    lacking = len(table) - design.rows.size - design.unseen.size
    if lacking:
        output.notice(f"rows of {table.name} that lack a value: {lacking}; their predictions are left empty")
    if design.unseen.size:
        output.notice(
            f"rows of {table.name} with a category that {columns.source} has not: {design.unseen.size} "
            f"({places(table, design.unseen)}); their predictions are left empty"
        )
    return NewRows(table, design.X, design.rows, design.noise)


def places(table: Table, rows: Any) -> str:
    """Where the first of some rows are."""
    named = ", ".join(table.place(int(row)) for row in rows[:_ROWS_NAMED])
    return named if len(rows) <= _ROWS_NAMED else f"{named} and {len(rows) - _ROWS_NAMED} more"


class Prediction:
    """Predictions of a fitted model for new rows."""

    def __init__(
        self,
        model: Model,
        columns: Columns,
        new: NewRows,
        wanted: Wanted,
        output: Output,
        ends: tuple[float, float] = (-np.inf, np.inf),
    ):
        self._model = model
        self._columns = columns
        self._table = new.table
        self._wanted = wanted
        self.rows = new.rows
        self._inputs = new.X
        self._noise = new.noise
        inputs = columns.frame(new.X)
        names = np.array(columns.input_names)
        self.beyond = [names[outside].tolist() for outside in model.beyond_training(inputs)]
        with output.warnings_as_notices():
            self.mean = np.asarray(model.predict(inputs)).clip(*ends)
            self.intervals = self._intervals(inputs).clip(*ends)
            self.regions = [[_cut(pieces, ends) for pieces in by_row] for by_row in self._exact_regions(inputs)]
            self.one_sided = {kind: self._one_sided(inputs, kind).clip(*ends) for kind in wanted.one_sided}
        self._say_what_is_unusual(output)

    def _intervals(self, inputs: Any) -> Array:
        if not self._wanted.levels:
            return np.empty((self.rows.size, 2, 0))
        levels, tails = _floats(self._wanted.levels), self._wanted.tails
        return self._model.predict_interval(inputs, levels, tails=tails, noise_variance=self._noise)

    def _exact_regions(self, inputs: Any) -> list[list[Array]]:
        """Pieces of each region, by level, then by row."""
        one_piece = self._model.gamma_ == 2.0 and tuning_of(self._model) != "augmented"
        if one_piece or self._wanted.tails == "equal":
            return [[ends[None] for ends in self.intervals[:, :, i]] for i in range(len(self._wanted.levels))]
        levels = _floats(self._wanted.levels)
        return [self._model.predict_set(inputs, level, noise_variance=self._noise) for level in levels]

    def _one_sided(self, inputs: Any, kind: str) -> Array:
        """Quantiles or bounds, (rows, levels)."""
        shares = _floats(self._wanted.one_sided[kind])
        if kind == "quantile":
            return self._model.predict_quantiles(inputs, shares, noise_variance=self._noise)
        side = kind.removesuffix("_bound")
        return self._model.predict_bound(inputs, shares, side=side, noise_variance=self._noise)

    def _say_what_is_unusual(self, output: Output) -> None:
        far = [row for row, names in zip(self.rows, self.beyond, strict=True) if names]
        if far:
            inputs = list(dict.fromkeys(name for names in self.beyond for name in names))
            output.notice(
                f"rows beyond the training rows: {len(far)} of {self.rows.size} ({places(self._table, far)}), in "
                f"{_named(inputs)}: outside their range by more than a tenth of it. Intervals there rest on the model "
                f"alone, the guarantee does not reach them; the column that ends in {BEYOND} names these inputs"
            )
        for i, level in enumerate(self._wanted.levels):
            with_holes = [row for row, pieces in zip(self.rows, self.regions[i], strict=True) if len(pieces) > 1]
            if with_holes:
                output.notice(
                    f"regions in several pieces at {percent(level)}: {len(with_holes)} "
                    f"({places(self._table, with_holes)}); labels between the pieces are ruled out, lower and upper "
                    "are the outer ends, --regions gives all pieces"
                )
            infinite = self.rows[~np.isfinite(self.intervals[:, :, i]).all(axis=1)]
            if 0 < infinite.size < self.rows.size:
                output.notice(
                    f"infinite intervals at {percent(level)}: {infinite.size} ({places(self._table, infinite)}); the "
                    "training rows say nothing there, or too little for this level"
                )

    def added(self, prefix: str, with_regions: bool) -> dict[str, Array | list[str]]:
        """Columns to add to the table."""
        columns: dict[str, Array | list[str]] = {f"{prefix}mean": self._spread(self.mean)}
        for i, level in enumerate(self._wanted.levels):
            ending = percent(level).removesuffix("%")
            columns[f"{prefix}lower_{ending}"] = self._spread(self.intervals[:, 0, i])
            columns[f"{prefix}upper_{ending}"] = self._spread(self.intervals[:, 1, i])
            if with_regions:
                cells = [""] * len(self._table)
                for row, pieces in zip(self.rows, self.regions[i], strict=True):
                    cells[row] = " ".join(f"[{low!r}; {high!r}]" for low, high in pieces.tolist())
                columns[f"{prefix}region_{ending}"] = cells
        for kind, values in self.one_sided.items():
            for i, share in enumerate(self._wanted.one_sided[kind]):
                columns[f"{prefix}{kind}_{percent(share).removesuffix('%')}"] = self._spread(values[:, i])
        cells = [""] * len(self._table)
        for row, names in zip(self.rows, self.beyond, strict=True):
            cells[row] = "; ".join(names)
        return columns | {f"{prefix}{BEYOND}": cells}

    def _spread(self, values: Array) -> Array:
        """Values of the predicted rows as a column of all rows, NaN elsewhere."""
        column = np.full(len(self._table), np.nan)
        column[self.rows] = values
        return column

    def _labels(self) -> Array | None:
        """The labels, if every predicted row has one."""
        if self._columns.target not in self._table.names:
            return None
        try:
            labels = self._columns.labels(self._table)[self.rows]
        except ValueError:  # without all labels there is no coverage to report
            return None
        return None if np.isnan(labels).any() else labels

    def coverage(self) -> Array | None:
        """Share of labels inside at each level, if every predicted row has a label."""
        labels = self._labels()
        return None if labels is None else np.asarray(coverage(labels, self.intervals))

    def _trained_on(self, labels: Array) -> int:
        """How many predicted rows are training rows, as far as these are kept: with the same inputs and label."""
        if not isinstance(self._model, ConformalGPRegressor):
            return 0
        X, y = self._model._training_rows
        inputs = X[:, : self._inputs.shape[1]]  # without known noise variances
        known = {row.tobytes() for row in np.column_stack([inputs, y]) + 0.0}
        return sum(row.tobytes() in known for row in np.column_stack([self._inputs, labels]) + 0.0)

    def _kept(self, labels: Array) -> list[str]:
        """Shares of labels inside intervals and on the right sides of bounds, in words."""
        inside = zip(np.asarray(coverage(labels, self.intervals)), self._wanted.levels, strict=True)
        words = [
            f"{percent(share, 1)} inside at {percent(level)} ({_expected(level, labels.size)})"
            for share, level in inside
        ]
        for kind, values in self.one_sided.items():
            holds = labels[:, None] >= values if kind == "lower_bound" else labels[:, None] <= values
            words += [
                f"{percent(share, 1)} {'at least' if kind == 'lower_bound' else 'at most'} the "
                f"{percent(level)} {kind.replace('_', ' ')} ({_expected(level, labels.size)})"
                for share, level in zip(holds.mean(axis=0), self._wanted.one_sided[kind], strict=True)
            ]
        return words

    def summary(self) -> str:
        """A summary in a few lines."""
        lines = [
            f"{self.rows.size} rows predicted from {self._model._predictor.n_rows}, tuning {tuning_of(self._model)}.",
            f"Kernel: {kernel_in_words(self._model.kernel_, self._model.noise_variance_, self._columns.input_names)}.",
            guarantee_in_words(self._model.guarantee_),
        ]
        labels = self._labels()
        if labels is not None:
            lines.append(f"{self._table.name} has labels: {', '.join(self._kept(labels))}.")
            known = self._trained_on(labels)
            if known:
                lines.append(
                    f"Of these {labels.size} rows {known} are training rows, with the same inputs and label: the model "
                    "has seen them, and the shares say little of new rows. conformal-gp evaluate holds rows out."
                )
        return "\n".join(lines)

    def document(self) -> dict[str, Any]:
        """The predictions as JSON."""
        inside = self.coverage()
        return {
            "target": self._columns.target,
            "levels": _floats(self._wanted.levels),
            "tails": self._wanted.tails,
            **{f"{kind}s": _floats(shares) for kind, shares in self._wanted.one_sided.items()},
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
                    **{f"{kind}s": values[j].tolist() for kind, values in self.one_sided.items()},
                    BEYOND: self.beyond[j],
                }
                for j, row in enumerate(self.rows)
            ],
        }


def _expected(level: Fraction, n_rows: int) -> str:
    """Between which shares chance leaves the labels inside."""
    low, high = chance_range(level, n_rows)
    return f"by chance {100 * low:.1f} to {percent(high, 1)}"


def _cut(pieces: Array, ends: tuple[float, float]) -> Array:
    """The part of a region between two ends.

    >>> _cut(np.array([[-2.0, -1.0], [-0.5, 1.0]]), (0.0, np.inf))
    array([[0., 1.]])
    """
    return pieces[(pieces[:, 1] >= ends[0]) & (pieces[:, 0] <= ends[1])].clip(*ends)


def _floats(levels: list[Fraction]) -> list[float]:
    return [float(level) for level in levels]


def _named(names: list[str]) -> str:
    return ", ".join(names[:10]) + (f" and {len(names) - 10} more" if len(names) > 10 else "")
