"""``conformal-gp plot``: pictures of intervals for a table."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from typing import Annotated, Any, Literal, NamedTuple

import numpy as np
import typer
from sklearn.model_selection import ShuffleSplit

from conformal_gp.cli import options
from conformal_gp.cli.evaluate import cross_validated, curve, held_out_by, picture_format, training_size
from conformal_gp.cli.levels import parse_levels
from conformal_gp.cli.output import Output
from conformal_gp.cli.training import ModelChoice, Reading, Training, read_training
from conformal_gp.evaluation import HeldOut, importance
from conformal_gp.files import check_output, replacing
from conformal_gp.tables import TableError
from conformal_gp.tables.errors import did_you_mean, listed


class Job(NamedTuple):
    """The training rows, the model and the options of a picture."""

    training: Training
    choice: ModelChoice
    levels: list[Fraction]
    folds: int | None
    input_name: str | None
    row: int
    output: Output

    @property
    def cv(self) -> int | ShuffleSplit:
        """Number of folds, or of many rows what holds out some."""
        return held_out_by(self.folds, self.training.y.size, self.choice.seed, self.output)

    def held_out(self, levels: list[Fraction], *, compare: bool, **asked: Any) -> HeldOut:
        """Cross-validated intervals of full conformal prediction, or of all three methods."""
        return cross_validated(self.training, self.choice, levels, self.cv, self.output, compare=compare, **asked)

    def fitted(self, without: int | None = None) -> Any:
        """The model fitted to all rows, or to all but one."""
        X, y, *_ = self.training
        rows = [i for i in range(y.size) if i != without]
        with self.output.warnings_as_notices():
            return self.choice.model(len(rows)).fit(self.training.columns.frame(X[rows]), y[rows])

    @property
    def feature(self) -> int:
        """Number of the input along which a band is drawn. It must be numeric."""
        columns = self.training.columns
        numbers = [column.name for column in columns.columns if column.categories is None and column.dates is None]
        if not numbers:
            raise TableError("a band goes over a column of numbers, and there is none.")
        name = numbers[0] if self.input_name is None else self.input_name
        if name not in numbers:
            raise TableError(
                f"a band cannot go over '{name}'.{did_you_mean(name, numbers)} Columns of numbers are "
                f"{listed(numbers)}."
            )
        return columns.input_names.index(name)


def _floats(levels: list[Fraction]) -> list[float]:
    return [float(level) for level in levels]


def _intervals(job: Job) -> Any:
    from conformal_gp.plotting import IntervalDisplay

    held_out = job.held_out(job.levels[-1:], compare=False)
    ((name, ends),) = held_out.intervals.items()
    return IntervalDisplay.from_predictions(
        held_out.y,
        held_out.prediction[name],
        ends[:, :, 0],
        confidence_level=float(job.levels[-1]),
        name=name,
        target_name=job.training.columns.target,
    )


def _coverage(job: Job) -> Any:
    from conformal_gp.plotting import CoverageDisplay

    levels = curve(training_size(job.training.y.size, job.cv)) or job.levels
    held_out = job.held_out(levels, compare=True)
    return CoverageDisplay.from_predictions(held_out.y, held_out.intervals, confidence_level=_floats(levels))


def _widths(job: Job) -> Any:
    from conformal_gp.plotting import WidthDisplay

    held_out = job.held_out(job.levels, compare=True)
    return WidthDisplay.from_predictions(
        held_out.intervals, confidence_level=_floats(job.levels), target_name=job.training.columns.target
    )


def _importance(job: Job) -> Any:
    from conformal_gp.plotting import ImportanceDisplay

    columns = job.training.columns
    held_out = job.held_out(job.levels[:1], compare=False, groups=columns.groups())
    return ImportanceDisplay.from_predictions(importance(held_out), target_name=columns.target)


def _band(job: Job) -> Any:
    from conformal_gp.plotting import PredictionBandDisplay

    return _along_one_input(job, PredictionBandDisplay, _floats(job.levels))


def _comparison(job: Job) -> Any:
    from conformal_gp.plotting import ComparisonDisplay

    return _along_one_input(job, ComparisonDisplay, float(job.levels[-1]))


def _along_one_input(job: Job, display: Any, confidence_level: float | list[float]) -> Any:
    X, y, columns, *_ = job.training
    return display.from_estimator(
        job.fitted(),
        columns.frame(X),
        y,
        feature=job.feature,
        fixed=columns.usual_categories(),
        confidence_level=confidence_level,
        target_name=columns.target,
    )


def _p_values(job: Job) -> Any:
    from conformal_gp.plotting import PValueDisplay

    X, y, columns, rows, _ = job.training
    places = np.flatnonzero(rows == job.row - 1)
    if places.size == 0:
        within = f"lie between 1 and {rows[-1] + 1}" if not 1 <= job.row <= rows[-1] + 1 else "be a row that was kept"
        raise TableError(f"--row must {within}, got {job.row}.")
    row = int(places[0])
    return PValueDisplay.from_estimator(
        job.fitted(without=row),
        columns.frame(X[[row]]),
        y[row],
        confidence_level=_floats(job.levels),
        target_name=columns.target,
    )


Kind = Literal["intervals", "coverage", "widths", "importance", "band", "comparison", "p-values"]
_KINDS: dict[Kind, Callable[[Job], Any]] = {
    "intervals": _intervals,
    "coverage": _coverage,
    "widths": _widths,
    "importance": _importance,
    "band": _band,
    "comparison": _comparison,
    "p-values": _p_values,
}


def plot(
    data: options.Data,
    target: options.Target,
    out: Annotated[Path, typer.Option("--out", "-o", metavar="FILE", help="The picture: .png, .svg or .pdf.")],
    kind: Annotated[
        Kind,
        typer.Option(
            help="Held-out intervals (of the highest level), coverage, widths; which inputs matter; a band along one "
            "input, plain and conformal bands side by side; or the p-values of possible labels of one row."
        ),
    ] = "intervals",
    input_name: Annotated[
        str | None, typer.Option("--input", metavar="COL", help="Column of a band.  [default: the first numeric one]")
    ] = None,
    row: Annotated[int, typer.Option(metavar="N", help="Row of the p-values in the table, from 1.")] = 1,
    confidence: options.Confidence = ["80%", "95%"],  # noqa: B006 (typer copies it)
    folds: options.Folds = None,
    *,
    choice: ModelChoice,
    reading: Reading,
    quiet: options.Quiet = False,
) -> None:
    """Draw intervals for DATA."""
    import matplotlib as mpl

    mpl.use("Agg")
    output = Output(quiet=quiet, as_json=False)
    levels = parse_levels(confidence)
    written = picture_format(out, "--out")
    check_output(out, [data])
    training = read_training(data, target, reading, choice.seed, output)
    display = _KINDS[kind](Job(training, choice, levels, folds, input_name, row, output))
    with replacing(out) as file:
        display.figure_.savefig(file, format=written, dpi=150, bbox_inches="tight")
    output.info(f"Picture: {out}")
