"""Run the paper's evaluation again and compare the results with the paper's: ``python -m reproduction --help``."""

from __future__ import annotations

import argparse
import shlex
import sys
from collections.abc import Sequence
from contextlib import nullcontext, redirect_stdout
from io import StringIO
from pathlib import Path

from reproduction.experiments import report
from reproduction.experiments.protocol import RUNS, TABLES, one_fold, tasks
from reproduction.experiments.runner import run

SELECTIONS = (*TABLES, "figures", "all")
QUICK_FOLDS = 2


def reproduce(
    selection: Sequence[str],
    *,
    runs: int,
    jobs: int,
    out: Path,
    raw: Path | None = None,
    seed: int = 0,
    cluster: str | None = None,
    quick: bool = False,
    command: str = "",
) -> str:
    """Run what selected tables and figures need, write them to ``out``, and return the page that summarises them.

    The parameters are the options of the command, and ``command`` is how the page says it was made.
    """
    chosen = [table for table in TABLES if table in selection or "all" in selection]
    draw = bool({"figures", "all"} & set(selection))
    # The figures show all methods on the benchmark data sets.
    needed = [table for table in TABLES if table in chosen or (draw and table in ("table3", "table4"))]
    data_sets = [data_set for table in needed for data_set in TABLES[table]]
    to_do = tasks(data_sets, runs=1 if quick else runs, seed=seed, most_folds=QUICK_FOLDS if quick else None)
    folds = run(raw or out / "folds.jsonl", to_do, one_fold, jobs, cluster)
    return report.write(folds, out, selection=chosen, draw=draw, command=command, sample=quick)


def _count(text: str) -> int:
    if int(text) < 1:
        raise argparse.ArgumentTypeError(f"must be at least 1, got {text}")
    return int(text)


def _jobs(text: str) -> int:
    if int(text) == 0:
        raise argparse.ArgumentTypeError("must be a number of processes, or -1 for one per core; got 0")
    return int(text)


def main(arguments: Sequence[str] | None = None) -> None:
    """Read the command line, run, and print the page."""
    parser = argparse.ArgumentParser(
        prog="python -m reproduction",
        description="Run the paper's evaluation again, and compare the results with the paper's. Every fold is written "
        "as soon as it is done, so that an interrupted run can be resumed.",
        formatter_class=argparse.ArgumentDefaultsHelpFormatter,
    )
    what = ", ".join(SELECTIONS)
    parser.add_argument("what", nargs="*", metavar="WHAT", default=["all"], help=f"what to make: some of {what}")
    parser.add_argument("--runs", type=_count, default=RUNS, help="runs of ten-fold cross-validation")
    parser.add_argument("--jobs", type=_jobs, default=-1, help="processes; -1 is one per core; results are the same")
    parser.add_argument("--out", type=Path, default=Path("paper"), help="folder for tables, figures and a page")
    parser.add_argument("--raw", type=Path, help="finished folds, to resume from; OUT/folds.jsonl if not given")
    parser.add_argument("--seed", type=int, default=0, help="seed of splits, starts and draws")
    parser.add_argument("--cluster", metavar="ADDRESS", help="Dask scheduler whose workers run the folds")
    parser.add_argument("--quick", action="store_true", help="only a sample, in a minute or two: two folds of one run")
    parser.add_argument("-q", "--quiet", action="store_true", help="print the page alone, without progress")
    given = parser.parse_args(arguments)
    if unknown := set(given.what) - set(SELECTIONS):
        parser.error(f"WHAT must be some of {what}; got {', '.join(sorted(unknown))}")
    if given.quick and not given.quiet:
        print("Only a sample: two folds of one run. The full evaluation is without --quick.")
    options = {name: value for name, value in vars(given).items() if name not in ("what", "quiet")}
    command = shlex.join(["python", "-m", "reproduction", *(sys.argv[1:] if arguments is None else arguments)])
    with redirect_stdout(StringIO()) if given.quiet else nullcontext():  # progress is what it prints
        page = reproduce(given.what, **options, command=command)
    print(page)
    if not given.quiet:
        print(f"\nWritten to {given.out}.")


if __name__ == "__main__":
    main()
