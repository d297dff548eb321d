"""``conformal-gp plot``: pictures of intervals for a table."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Annotated, Any, Literal

import typer

from conformal_gp.cli import options
from conformal_gp.cli.evaluate import CONFORMAL, cross_validated
from conformal_gp.cli.levels import parse_levels
from conformal_gp.cli.options import Model, Reading
from conformal_gp.cli.output import Output
from conformal_gp.cli.rows import read_new, read_training

FORMATS = (".png", ".svg", ".pdf")


def plot(
    data: options.Data,
    target: options.Target,
    out: Annotated[Path, typer.Option("--out", "-o", metavar="FILE", help="The picture: .png, .svg or .pdf.")],
    new: Annotated[str | None, typer.Argument(metavar="[NEW]")] = None,
    kind: Annotated[
        Literal["intervals", "coverage", "band"],
        typer.Option(metavar="KIND", help="intervals, coverage, band (along an input)."),
    ] = "intervals",
    input_name: Annotated[
        str | None, typer.Option("--input", metavar="COL", help="Column of a band.  [default: the first]")
    ] = None,
    confidence: options.Confidence = [],  # noqa: B006 (typer copies it)
    folds: options.Folds = None,
    *,
    reading: Reading,
    choice: Model,
    quiet: options.Quiet = False,
) -> None:
    """Draw intervals of NEW, or of held-out rows of DATA.

    conformal-gp plot cars.csv new-cars.csv --target mpg -o intervals.png
    conformal-gp plot cars.csv --target mpg --kind band --input weight -o band.svg
    """
    from conformal_gp.cli.tables import did_you_mean
    from conformal_gp.files import check_output, write_bytes

    output = Output(quiet=quiet)
    levels: Any = [*map(float, parse_levels(confidence))]
    if out.suffix.lower() not in FORMATS:
        raise ValueError(f"--out must end in {', '.join(FORMATS)}; got {out}.")
    if kind != "intervals" and new is not None:
        raise ValueError(f"--kind {kind} takes DATA alone.")
    check_output(out, [data, *filter(None, [new])])
    training = read_training(data, target, reading, output)
    names = list(training.X)
    if input_name is not None and input_name not in names:
        known = f"one of {', '.join(names)}; got {input_name}.{did_you_mean(input_name, names)}"
        raise ValueError(f"--input must be {known}")
    if training.reading.noise is not None:
        raise ValueError("--noise-column and --sd-column are not for pictures; report takes them.")
    X_new = None
    if new is not None:
        X_new = read_new(new, training.columns, reading, output)[1].X

    import matplotlib as mpl

    mpl.use("Agg")
    from conformal_gp import plotting
    from conformal_gp.evaluation import supported_levels
    from conformal_gp.plotting.coverage import TWENTIETHS

    display: Any
    named: dict[str, Any] = {"target_name": target}
    if kind == "band" or X_new is not None:
        model = training.fit(choice, output)
        levels = levels or [*map(float, supported_levels(model._most_calibration))]
    else:
        if kind == "coverage":
            levels = TWENTIETHS
        held_out = cross_validated(training, choice, folds, output, levels or None)
    with output.working("drawing"):
        if kind == "band":
            along = {"feature": input_name or names[0], "confidence_level": levels}
            display = plotting.PredictionBandDisplay.from_estimator(model, training.X, training.y, **along, **named)
        elif kind == "coverage":
            display = plotting.CoverageDisplay.from_predictions(held_out.y, held_out.intervals, confidence_level=levels)
        elif X_new is not None:
            rows = {"confidence_level": levels[0], "train": (training.X, training.y)}
            display = plotting.IntervalDisplay.from_estimator(model, X_new, **rows, **named)
        else:
            found = held_out.prediction[CONFORMAL], held_out.intervals[CONFORMAL][:, :, 0]
            named["confidence_level"] = float(held_out.levels[0])
            display = plotting.IntervalDisplay.from_predictions(held_out.y, *found, **named)
    picture = io.BytesIO()
    display.figure_.savefig(picture, format=out.suffix.lower()[1:], dpi=150, bbox_inches="tight")
    write_bytes(out, picture.getvalue())
    output.info(f"Picture: {out}")
