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
    from conformal_gp.files import check_output

    output = Output(quiet=quiet)
    levels: Any = [*map(float, parse_levels(confidence))]
    check_picture(out, "--out")
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

    plotting = plots()
    from conformal_gp.evaluation import supported_levels
    from conformal_gp.plotting.coverage import TWENTIETHS

    display: Any
    if kind == "band" or X_new is not None:
        model = training.fit(choice, output)
        levels = levels or [*map(float, supported_levels(model._most_calibration))]
        if X_new is None:
            display = plotting.PredictionBandDisplay.from_estimator(
                model,
                training.X,
                training.y,
                feature=input_name or names[0],
                confidence_level=levels,
                target_name=target,
            )
        else:
            display = plotting.IntervalDisplay.from_estimator(
                model, X_new, confidence_level=levels[0], train=(training.X, training.y), target_name=target
            )
    elif kind == "coverage":
        held_out = cross_validated(training, choice, folds, output, TWENTIETHS)
        ends = held_out.intervals
        display = plotting.CoverageDisplay.from_predictions(held_out.y, ends, confidence_level=TWENTIETHS)
    else:
        held_out = cross_validated(training, choice, folds, output, levels or None)
        found = (held_out.prediction[CONFORMAL], held_out.intervals[CONFORMAL][:, :, 0])
        level = float(held_out.levels[0])
        display = plotting.IntervalDisplay.from_predictions(
            held_out.y, *found, confidence_level=level, target_name=target
        )
    save_picture(display.figure_, out)
    output.info(f"Picture: {out}")


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
