"""``conformal-gp plot``: pictures of intervals for a table, or of a saved model."""

from __future__ import annotations

import io
from argparse import Namespace
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pandas as pd

from conformal_gp.arrays import Array
from conformal_gp.cli.columns import Columns
from conformal_gp.cli.evaluate import cross_validated
from conformal_gp.cli.output import Output
from conformal_gp.cli.rows import load_fitted, read_new, read_training
from conformal_gp.cli.tables import did_you_mean, listed
from conformal_gp.files import check_output, write_bytes
from conformal_gp.formatting import CONFORMAL

Rows = tuple[pd.DataFrame, Array | None, Sequence[str] | None]
"""Inputs, true values (NaN where there are none), and names, if a column has them."""

FORMATS = (".png", ".svg", ".pdf")
INPUTS = {"band": 1, "width": 2}
"""Number of inputs of the kinds that are along inputs."""


def plot(options: Namespace) -> None:
    """Draw what a model predicts for rows, held-out rows if there are no others."""
    output = Output(quiet=options.quiet)
    files = options.tables
    kind = options.kind
    levels: Any = [*map(float, sorted({*options.confidence}))]
    check_picture(options.out, "--out")
    _check_files(options)
    if options.noise_column or options.sd_column:
        raise ValueError("--noise-column and --sd-column are not for pictures; predict and report take them.")
    check_output(options.out, [*files, *filter(None, [options.model])])
    rows = None
    if options.model is not None:
        fitted = load_fitted(options)
        if files:
            rows = _new_rows(files[-1], fitted._columns, options, output)
    else:
        training = read_training(files[0], options.target, options, output)
        if len(files) == 2:
            rows = _new_rows(files[1], training.columns, options, output)
        elif kind in INPUTS:
            rows = (training.X, training.y, None)
            _check_inputs(kind, options.input, training.X)
        if rows is None and kind == "intervals":
            held_out = cross_validated(training, output, levels or None)
            display = plots().IntervalDisplay.from_predictions(
                held_out.y,
                held_out.prediction[CONFORMAL],
                held_out.intervals[CONFORMAL][:, :, 0],
                names=training.rows["label"].iloc[held_out.rows],
                extrapolated=held_out.beyond,
                confidence_level=float(held_out.levels[0]),
                target_name=options.target,
            )
            save_picture(display.figure_, options.out, output)
            return
        fitted = training.fit(output)
    with output.working("drawing"):
        display = _drawn(kind, fitted, rows, options.input, levels)
    save_picture(display.figure_, options.out, output)


def _check_files(options: Namespace) -> None:
    n_files = len(options.tables)
    along_inputs = options.kind in INPUTS
    if options.model is None and (options.target is None or not 1 <= n_files <= 2):
        raise ValueError("give DATA and --target COL, and perhaps NEW; or --model FILE and a table.")
    if options.model is None and n_files == 2 and along_inputs:
        raise ValueError(f"--kind {options.kind} takes DATA alone.")
    if options.model is not None and (n_files > 1 or not (n_files or options.kind == "residuals")):
        raise ValueError(f"--kind {options.kind} of --model FILE takes one table.")


def _new_rows(source: str, columns: Columns, options: Namespace, output: Output) -> Rows:
    """Read rows to predict, with their true values if the table has the target."""
    if columns.noise is not None:
        raise ValueError("the model has known noise, which pictures do not take; predict does.")
    table, new = read_new(source, columns, options, output)
    y = None
    if columns.target in table.frame:
        y = columns.targets(table)["y"][new.X.index].to_numpy()
    return new.X, y, columns.names_of(table, new.X.index)


def _check_inputs(kind: str, inputs: Sequence[str], X: pd.DataFrame) -> None:
    """Refuse inputs that the table does not have, or a wrong number of them."""
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
    if kind in INPUTS:
        features = inputs or [*X.select_dtypes("number")][: INPUTS[kind]]
        if len(features) < INPUTS[kind]:
            raise ValueError(
                f"--kind {kind} takes {INPUTS[kind]} columns of numbers, and the table has {len(features)}."
            )
    if kind == "band":
        described["confidence_level"] = levels
        return plotting.PredictionBandDisplay.from_estimator(model, X, y, feature=features[0], **described)
    if kind == "width":
        return plotting.WidthContourDisplay.from_estimator(model, X, features=features, **described)
    display = {"intervals": plotting.IntervalDisplay, "residuals": plotting.ResidualDisplay}[kind]
    return display.from_estimator(model, X, y, names=names, **described)


def check_picture(path: str, option: str) -> None:
    """Refuse a picture of a format that we do not write."""
    if Path(path).suffix.lower() not in FORMATS:
        raise ValueError(f"{option} must end in {', '.join(FORMATS)}; got {path}.")


def plots() -> Any:
    """Import the displays, to draw without a screen."""
    import matplotlib as mpl

    mpl.use("Agg")
    from conformal_gp import plotting

    return plotting


def save_picture(figure: Any, path: str, output: Output) -> None:
    """Write a picture, whole or not at all."""
    content = io.BytesIO()
    figure.savefig(content, format=Path(path).suffix.lower()[1:], dpi=150, bbox_inches="tight")
    write_bytes(path, content.getvalue())
    output.info(f"Picture: {path}")
