"""``conformal-gp reproduce``: the paper's evaluation, run again."""

from __future__ import annotations

import sys
from contextlib import nullcontext, redirect_stdout
from enum import StrEnum
from io import StringIO
from pathlib import Path
from typing import Annotated

import typer

from conformal_gp.cli import options
from conformal_gp.experiments.protocol import RUNS
from conformal_gp.experiments.reproduce import SELECTIONS
from conformal_gp.experiments.reproduce import reproduce as run_again

Selection = StrEnum("Selection", {name: name for name in SELECTIONS})  # type: ignore[misc]


def reproduce(
    what: Annotated[
        list[Selection] | None, typer.Argument(metavar="WHAT", help="Tables to make, figures, or all.  [default: all]")
    ] = None,
    runs: Annotated[int, typer.Option(min=1, help="Runs of ten-fold cross-validation.")] = RUNS,
    jobs: Annotated[int, typer.Option(help="Processes; -1 is one per core. Results do not depend on it.")] = -1,
    out: Annotated[Path, typer.Option(file_okay=False, help="Folder for tables, figures and a page.")] = Path("paper"),
    raw: Annotated[
        Path | None, typer.Option(dir_okay=False, help="Finished folds, to resume from.  [default: OUT/folds.jsonl]")
    ] = None,
    seed: Annotated[int, typer.Option(min=0, help="Seed of splits, starts and draws.")] = 0,
    cluster: Annotated[str | None, typer.Option(help="Address of a Dask scheduler that runs the folds.")] = None,
    quick: Annotated[
        bool, typer.Option("--quick", help="Only a sample, in a minute or two: two folds of one run.")
    ] = False,
    quiet: options.Quiet = False,
) -> None:
    """Run the paper's evaluation again, and compare the results with the paper's.

    Every fold is written as soon as it is done, so that an interrupted run can be resumed.
    """
    if quick and not quiet:
        typer.echo("Only a sample: two folds of one run. The full evaluation is without --quick.")
    with redirect_stdout(StringIO()) if quiet else nullcontext():  # progress is what it prints
        page = run_again(
            [choice.value for choice in what or [Selection("all")]],
            runs=runs,
            jobs=jobs,
            out=out,
            raw=raw,
            seed=seed,
            cluster=cluster,
            quick=quick,
            command=" ".join(["conformal-gp", *sys.argv[1:]]),
        )
    typer.echo(page)
    if not quiet:
        typer.echo(f"\nWritten to {out}.")
