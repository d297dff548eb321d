"""``conformal-gp report``: a page about a table."""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from conformal_gp.cli import options
from conformal_gp.cli.evaluate import held_out_by
from conformal_gp.cli.options import Model, Reading
from conformal_gp.cli.output import Output
from conformal_gp.cli.rows import read_training


def report(
    ctx: typer.Context,
    data: options.Data,
    target: options.Target,
    out: Annotated[str, typer.Option("--out", "-o", metavar="FILE", help="The page, HTML; - is standard output.")],
    title: Annotated[str | None, typer.Option(metavar="TEXT", help="Title of the page.")] = None,
    ordered: options.Ordered = False,
    folds: options.Folds = None,
    *,
    reading: Reading,
    choice: Model,
    quiet: options.Quiet = False,
) -> None:
    """Write a page about DATA: coverage, width, and what to look at.

    conformal-gp report cars.csv --target mpg -o report.html
    conformal-gp report runs.csv --target yield --ordered -o report.html

    The page is one HTML file, which opens without a network, with a slider for the level.
    """
    from conformal_gp.files import check_output, write_bytes

    check_output(out, [data])
    output = Output(quiet=quiet)
    training = read_training(data, target, reading, output)
    if ordered:
        training = training.sorted_by_date(output)
    from conformal_gp.report import Origin, build_report

    cv = held_out_by(folds, training, choice.seed, output)
    origin = Origin(
        file=training.columns.source,
        notes=output.notices,
        command=ctx.obj,
        condition=training.condition,
        row_numbers=training.known("number"),
        row_names=training.known("name"),
    )
    with output.working("cross-validating", folds=True) as progress:
        page = build_report(
            training.X,
            training.y,
            target_name=target,
            title=title,
            model=choice.regressor(training.y),
            cv=cv,
            ordered=ordered,
            origin=origin,
            random_state=choice.seed,
            progress=progress,
            **training.of_rows(),
        )
    if out == "-":
        sys.stdout.write(page)
    else:
        write_bytes(out, page.encode())
        output.info(f"Page: {out}")
