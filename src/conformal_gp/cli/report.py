"""``conformal-gp report``: an HTML page about intervals for a table."""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from conformal_gp.cli import options
from conformal_gp.cli.evaluate import held_out_by, training_size
from conformal_gp.cli.output import Output
from conformal_gp.cli.training import LabelRange, ModelChoice, Reading, read_training
from conformal_gp.files import check_output, write_bytes


def report(
    data: options.Data,
    target: options.Target,
    out: Annotated[str, typer.Option("--out", "-o", metavar="FILE", help="The page, HTML; - is stdout.")],
    title: Annotated[str | None, typer.Option(metavar="TEXT", help="Title of the page.")] = None,
    folds: options.Folds = None,
    *,
    noise_column: options.NoiseColumn = None,
    possible: LabelRange,
    choice: ModelChoice,
    reading: Reading,
    quiet: options.Quiet = False,
) -> None:
    """Write a page about DATA: coverage and width at every level, and a chart with a slider for the level.

    The page is one HTML file that opens without a network.
    """
    from conformal_gp.report import build_report

    check_output(out, [data])
    output = Output(quiet=quiet, as_json=False)
    training = read_training(data, target, reading, choice.seed, output, noise_column)
    X, y, columns, rows, noise = training
    cv = held_out_by(folds, y.size, choice.seed, output)
    with output.progress("cross-validating") as progress, output.warnings_as_notices():
        page = build_report(
            X,
            y,
            feature_names=columns.input_names,
            groups=columns.groups(),
            target_name=target,
            row_numbers=rows + 1,
            title=title,
            model=choice.model(training_size(y.size, cv)),
            cv=cv,
            label_range=possible.check(training),
            noise_variance=noise,
            random_state=choice.seed,
            progress=progress,
        )
    if out == "-":
        sys.stdout.write(page)
    else:
        write_bytes(out, page.encode())
        output.info(f"Page: {out}")
