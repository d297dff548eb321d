"""``conformal-gp plot``: pictures of intervals for a table, or of a saved model."""

from __future__ import annotations

import io
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from conformal_gp.cli import options
from conformal_gp.cli.evaluate import cross_validated
from conformal_gp.cli.options import Model, Reading, parse_levels
from conformal_gp.cli.output import Output
from conformal_gp.cli.predict import load_fitted
from conformal_gp.cli.rows import read_new, read_training
from conformal_gp.formatting import CONFORMAL

if TYPE_CHECKING:
    import pandas as pd

    from conformal_gp.arrays import Array
    from conformal_gp.cli.columns import Columns

    Rows = tuple[pd.DataFrame, Array | None, Sequence[str] | None]
    """Inputs, true values (NaN where there are none), and names, if a column has them."""

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
        Literal["intervals", "residuals", "band", "width"],
        typer.Option(metavar="KIND", help="intervals, residuals, band (along an input), width (over two)."),
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
    """Draw intervals of new or held-out rows, or a model.

    conformal-gp plot cars.csv new-cars.csv --target mpg -o intervals.png
    conformal-gp plot cars.csv -t mpg --kind band --input weight -o band.png

    Without NEW, intervals are of held-out rows, and residuals of rows that are left out one at a time.
    Rows outside the training range are marked. With --model, the table has rows to predict, or the ranges of a band.
    """
    from conformal_gp.files import check_output

    output = Output(quiet=quiet)
    files = files or []
    levels: Any = [*map(float, parse_levels(confidence))]
    check_picture(out, "--out")
    _check_files(files, target, model, kind)
    if reading.noise is not None:
        raise ValueError("--noise-column and --sd-column are not for pictures; predict and report take them.")
    check_output(out, [*files, *filter(None, [model])])
    rows = None
    if model is not None:
        fitted = load_fitted(ctx, model, target, reading)
        if files:
            rows = _new_rows(files[-1], fitted._columns, reading, output)
    else:
        training = read_training(files[0], str(target), reading, output)
        if len(files) == 2:
            rows = _new_rows(files[1], training.columns, reading, output)
        elif kind in INPUTS:
            rows = (training.X, training.y, None)
            _check_inputs(kind, inputs, training.X)
        if rows is None and kind == "intervals":
            held_out = cross_validated(training, choice, folds, output, levels or None)
            display = plots().IntervalDisplay.from_predictions(
                held_out.y,
                held_out.prediction[CONFORMAL],
                held_out.intervals[CONFORMAL][:, :, 0],
                names=training.rows["label"].iloc[held_out.rows],
                extrapolated=held_out.beyond,
                confidence_level=float(held_out.levels[0]),
                target_name=target,
            )
            save_picture(display.figure_, out, output)
            return
        fitted = training.fit(choice, output)
    with output.working("drawing"):
        display = _drawn(kind, fitted, rows, inputs, levels)
    save_picture(display.figure_, out, output)


def _check_files(files: Sequence[str], target: str | None, model: str | None, kind: str) -> None:
    """Refuse a wrong number of tables."""
    if model is None and (target is None or not 1 <= len(files) <= 2):
        raise ValueError("give DATA and --target COL, and perhaps NEW; or --model FILE and a table.")
    if model is None and len(files) == 2 and kind in INPUTS:
        raise ValueError(f"--kind {kind} takes DATA alone.")
    if model is not None and (len(files) > 1 or not (files or kind == "residuals")):
        raise ValueError(f"--kind {kind} of --model FILE takes one table.")


def _new_rows(source: str, columns: Columns, reading: Reading, output: Output) -> Rows:
    """Read rows to predict, with their true values if the table has the target."""
    if columns.reading.noise is not None:
        raise ValueError("the model has known noise, which pictures do not take; predict does.")
    table, new = read_new(source, columns, reading, output)
    y = None
    if columns.target in table.frame:
        y = columns.targets(table)["y"][new.X.index].to_numpy()
    return new.X, y, columns.names_of(table, new.X.index)


def _check_inputs(kind: str, inputs: Sequence[str], X: pd.DataFrame) -> None:
    """Refuse inputs that the table does not have, or a wrong number of them."""
    from conformal_gp.cli.tables import did_you_mean, listed

    for name in inputs:
        if name not in X:
            known = f"one of {listed(X)}; got '{name}'.{did_you_mean(name, list(X))}"
            raise ValueError(f"--input must be {known}")
    if inputs and len(inputs) != INPUTS.get(kind, 0):
        raise ValueError(f"--kind {kind} takes {INPUTS.get(kind, 0)} --input, got {len(inputs)}.")


def _drawn(kind: str, model: Any, rows: Rows | None, inputs: Sequence[str], levels: Sequence[float]) -> Any:
    """Draw what a model predicts for rows; without any, what it predicts for rows that are left out."""
    from conformal_gp.evaluation import supported_levels

    plotting = plots()
    levels = levels or [*map(float, supported_levels(model._most_calibration))]
    described: dict[str, Any] = {"target_name": model._columns.target, "confidence_level": levels[0]}
    if rows is None:
        return plotting.ResidualDisplay.from_estimator(model, names=model._columns.rows, **described)
    X, y, names = rows
    _check_inputs(kind, inputs, X)
    if kind == "band":
        described["confidence_level"] = levels
        return plotting.PredictionBandDisplay.from_estimator(model, X, y, feature=next(iter(inputs), 0), **described)
    if kind == "width":
        features = inputs or [*X.select_dtypes("number")][:2]
        return plotting.WidthContourDisplay.from_estimator(model, X, features=features, **described)
    display = {"intervals": plotting.IntervalDisplay, "residuals": plotting.ResidualDisplay}[kind]
    return display.from_estimator(model, X, y, names=names, **described)


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


def save_picture(figure: Any, path: Path, output: Output) -> None:
    """Write a picture, whole or not at all."""
    from conformal_gp.files import write_bytes

    content = io.BytesIO()
    figure.savefig(content, format=path.suffix.lower()[1:], dpi=150, bbox_inches="tight")
    write_bytes(path, content.getvalue())
    output.info(f"Picture: {path}")
