"""``conformal-gp plot``: pictures of intervals for a table, or of a saved model."""

from __future__ import annotations

import io
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, NamedTuple

import typer

from conformal_gp.cli import options
from conformal_gp.cli.evaluate import CONFORMAL, cross_validated
from conformal_gp.cli.levels import parse_levels
from conformal_gp.cli.options import Model, Reading
from conformal_gp.cli.output import Output
from conformal_gp.cli.predict import also_missing, load_fitted
from conformal_gp.cli.rows import Training, read_new, read_training

if TYPE_CHECKING:
    import pandas as pd

    from conformal_gp.arrays import Array
    from conformal_gp.cli.columns import Columns

FORMATS = (".png", ".svg", ".pdf")
INPUTS = {"band": 1, "width": 2}
"""Number of inputs of the kinds that are along inputs."""


def plot(
    ctx: typer.Context,
    files: Annotated[list[str] | None, typer.Argument(metavar="[DATA] [NEW]")] = None,
    target: Annotated[str | None, typer.Option("--target", "-t", metavar="COL", help="Column to predict.")] = None,
    model: options.Fitted = None,
    *,
    out: Annotated[Path, typer.Option("--out", "-o", metavar="FILE", help="The picture: .png, .svg or .pdf.")],
    kind: Annotated[
        Literal["intervals", "residuals", "coverage", "band", "width"],
        typer.Option(metavar="KIND", help="intervals, residuals, coverage, band (along an input), width (over two)."),
    ] = "intervals",
    inputs: Annotated[
        list[str],
        typer.Option("--input", metavar="COL", help="Column of a band; twice for width.  [default: the first]"),
    ] = [],  # noqa: B006 (typer copies it)
    confidence: options.Confidence = [],  # noqa: B006
    folds: options.Folds = None,
    reading: Reading,
    choice: Model,
    quiet: options.Quiet = False,
) -> None:
    """Draw intervals of new or held-out rows, or a picture of a model.

    conformal-gp plot cars.csv new-cars.csv --target mpg -o intervals.png
    conformal-gp plot cars.csv -t mpg --kind band --input weight -o band.png

    Without NEW, intervals and coverage are of held-out rows, and residuals of rows that are left out one at a time.
    Rows outside the training range are marked. With --model, the table has rows to predict, or the ranges of a band.
    """
    from conformal_gp.files import check_output

    output = Output(quiet=quiet)
    files = files or []
    levels: Any = [*map(float, parse_levels(confidence))]
    check_picture(out, "--out")
    _check_files(files, target, model, kind)
    check_output(out, [*files, *filter(None, [model])])
    if model is not None:
        fitted = load_fitted(ctx, model, target)
        rows = None
        if files:
            rows = Rows.new(files[-1], also_missing(fitted._columns, reading), reading, output)
        picture = Picture(kind, fitted._columns, levels, inputs)
        display = picture.of_model(fitted, rows, output)
    else:
        training = read_training(files[0], str(target), reading, output)
        picture = Picture(kind, training.columns, levels, inputs)
        picture.check_inputs(training.X)
        _refuse_noise(training.columns)
        rows = None
        if kind in INPUTS:
            rows = Rows(training.X, training.y)
        if len(files) == 2:
            rows = Rows.new(files[1], training.columns, reading, output)
        if rows is None and kind != "residuals":
            display = picture.of_held_out(training, choice, folds, output)
        else:
            display = picture.of_model(training.fit(choice, output), rows, output)
    save_picture(display.figure_, out)
    output.info(f"Picture: {out}")


def _check_files(files: Sequence[str], target: str | None, model: str | None, kind: str) -> None:
    """Refuse a wrong number of tables."""
    if model is None and (target is None or not 1 <= len(files) <= 2):
        raise ValueError("give DATA and --target COL, and perhaps NEW; or --model FILE and a table.")
    if model is None and len(files) == 2 and kind not in ("intervals", "residuals"):
        raise ValueError(f"--kind {kind} takes DATA alone.")
    if model is not None and (len(files) > 1 or not (files or kind == "residuals")):
        raise ValueError(f"--kind {kind} of --model FILE takes one table.")


def _refuse_noise(columns: Columns) -> None:
    """Refuse known noise, which pictures do not take."""
    if columns.reading.noise is not None:
        raise ValueError("--noise-column and --sd-column are not for pictures; predict and report take them.")


class Rows(NamedTuple):
    """Rows of a table: inputs, true values (NaN where there are none), and names, if a column has them."""

    X: pd.DataFrame
    y: Array | None = None
    names: Sequence[str] | None = None

    @classmethod
    def new(cls, source: str, columns: Columns, reading: Reading, output: Output) -> Rows:
        """Read rows to predict, with their true values if the table has the target."""
        table, new = read_new(source, columns, reading, output)
        _refuse_noise(columns)
        y = None
        if columns.target in table.frame:
            y = columns.targets(table)[0][new.X.index]
        return cls(new.X, y, columns.names_of(table, new.X.index))


class Picture(NamedTuple):
    """What to draw."""

    kind: str
    columns: Columns
    levels: Sequence[float]
    """None is those that the rows support, or one of them."""
    inputs: Sequence[str]

    def check_inputs(self, X: pd.DataFrame) -> None:
        """Refuse inputs that the table does not have, or a wrong number of them."""
        from conformal_gp.cli.tables import did_you_mean, listed

        for name in self.inputs:
            if name not in X:
                known = f"one of {listed(X)}; got '{name}'.{did_you_mean(name, list(X))}"
                raise ValueError(f"--input must be {known}")
        if self.inputs and len(self.inputs) != INPUTS.get(self.kind, 0):
            raise ValueError(f"--kind {self.kind} takes {INPUTS.get(self.kind, 0)} --input, got {len(self.inputs)}.")

    def of_held_out(self, training: Training, choice: Model, folds: int | None, output: Output) -> Any:
        """Draw cross-validated intervals, or their coverage."""
        plotting = plots()
        from conformal_gp.plotting.coverage import TWENTIETHS

        if self.kind == "coverage":
            held_out = cross_validated(training, choice, folds, output, TWENTIETHS)
            ends = held_out.intervals
            return plotting.CoverageDisplay.from_predictions(held_out.y, ends, confidence_level=TWENTIETHS)
        held_out = cross_validated(training, choice, folds, output, self.levels or None)
        labels = training.columns.rows
        return plotting.IntervalDisplay.from_predictions(
            held_out.y,
            held_out.prediction[CONFORMAL],
            held_out.intervals[CONFORMAL][:, :, 0],
            names=[labels[row] for row in held_out.rows],
            extrapolated=held_out.beyond,
            confidence_level=float(held_out.levels[0]),
            target_name=self.columns.target,
        )

    def of_model(self, model: Any, rows: Rows | None, output: Output) -> Any:
        """Draw what a model predicts for rows; without any, what it predicts for rows that are left out."""
        from conformal_gp.evaluation import supported_levels

        plotting = plots()
        levels = self.levels or [*map(float, supported_levels(model._most_calibration))]
        described: dict[str, Any] = {"target_name": self.columns.target, "confidence_level": levels[0]}
        displays = {"intervals": plotting.IntervalDisplay, "residuals": plotting.ResidualDisplay}
        with output.working("drawing"):
            if rows is None:
                return plotting.ResidualDisplay.from_estimator(model, names=self.columns.rows, **described)
            self.check_inputs(rows.X)
            if self.kind == "coverage":
                if rows.y is None:
                    raise ValueError(f"--kind coverage needs the column '{self.columns.target}'.")
                return plotting.CoverageDisplay.from_estimator(model, rows.X, rows.y)
            if self.kind == "band":
                along: dict[str, Any] = {"feature": next(iter(self.inputs), 0)}
                described["confidence_level"] = levels
                return plotting.PredictionBandDisplay.from_estimator(model, rows.X, rows.y, **along, **described)
            if self.kind == "width":
                numbers = [name for name in rows.X if rows.X[name].dtype.kind == "f"]
                return plotting.WidthContourDisplay.from_estimator(
                    model, rows.X, features=self.inputs or numbers[:2], **described
                )
            return displays[self.kind].from_estimator(model, rows.X, rows.y, names=rows.names, **described)


def check_picture(path: Path, option: str) -> None:
    """Refuse a picture of a format that we do not write."""
    if path.suffix.lower() not in FORMATS:
        raise ValueError(f"{option} must end in {', '.join(FORMATS)}; got {path}.")


def plots() -> Any:
    """Import the displays, to draw without a screen."""
    import matplotlib as mpl

    mpl.use("Agg")
    from conformal_gp import plotting

    return plotting


def save_picture(figure: Any, path: Path) -> None:
    """Write a picture, whole or not at all."""
    from conformal_gp.files import write_bytes

    content = io.BytesIO()
    figure.savefig(content, format=path.suffix.lower()[1:], dpi=150, bbox_inches="tight")
    write_bytes(path, content.getvalue())
