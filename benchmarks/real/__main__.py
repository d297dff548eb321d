"""Measure on real tables: ``python -m benchmarks.real [--splits N] [--tables NAME ...] [--methods NAME ...]``.

Each run is written to build/real/runs.jsonl as soon as it is done, so an interrupted run goes on where it stopped. The
page is written from what is there, and what was asked for by name is printed.
"""

from __future__ import annotations

import argparse
import logging
import os
from pathlib import Path
from typing import Any

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
os.environ.setdefault("OMP_NUM_THREADS", "1")

from benchmarks.real.encoding import MOST_TEST_ROWS, TEST_SHARE, encode
from benchmarks.real.measure import LEVELS, METHODS, run
from benchmarks.real.tables import ALL, Table
from reproduction.experiments import runner

FEW_ROWS = 2000
LARGE_SPLITS = 2
RAW = Path("build/real/runs.jsonl")
OUT = Path("benchmarks/real/results")


def training_rows(table: Table) -> int:
    """Training rows of each split."""
    n_rows = len(encode(table)[1])
    return n_rows - min(int(TEST_SHARE * n_rows), MOST_TEST_ROWS)


def tasks(tables: tuple[Table, ...], methods: list[str], splits: int) -> list[tuple[str, tuple]]:
    """What to run, small tables and first splits first; tables of 2,000 rows and more have two splits."""
    found = []
    for table in tables:
        large = len(encode(table)[1]) >= FEW_ROWS
        for number in range(min(splits, LARGE_SPLITS) if large else splits):
            turn = (2 * number + 3 if large else 2 * number, training_rows(table))
            for method in methods:
                if training_rows(table) <= METHODS[method].most_rows:
                    found.append((turn, (f"{table.key}/{number}/{method}", (table, number, method))))
    return [task for _, task in sorted(found, key=lambda item: item[0])]


def main() -> None:
    """Run what is missing, then write the tables."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.real", description="Intervals on real tables.")
    parser.add_argument("--splits", type=int, default=4, help="splits of each table (4); of large ones two")
    parser.add_argument("--tables", nargs="+", metavar="NAME", choices=[table.key for table in ALL])
    parser.add_argument("--methods", nargs="+", metavar="NAME", choices=list(METHODS), default=list(METHODS))
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--page-only", action="store_true", help="run nothing")
    arguments = parser.parse_args()
    logging.disable(logging.WARNING)  # MAPIE tells of every crossing of quantiles
    if not arguments.page_only:
        tables = tuple(table for table in ALL if not arguments.tables or table.key in arguments.tables)
        runner.run(RAW, tasks(tables, arguments.methods, arguments.splits), run, arguments.jobs)
    from benchmarks.real.page import write
    from benchmarks.real.summary import whole

    found = runner.finished(RAW)
    for each in found:
        if each["table"] in (arguments.tables or ()) and each["method"] in arguments.methods:
            print(in_words(each))
    if whole(found):
        write(whole(found), OUT)
    else:
        print("No table has been through all methods yet, so the page is not written.")


def in_words(found: dict[str, Any]) -> str:
    """A run in one line, at 90%."""
    if "error" in found:
        return f"{found['table']}: {found['method']}: {found['error']}"
    place = LEVELS.index(0.9)
    covered, width, score = (found[measure][place] for measure in ("covered", "width", "score"))
    return f"{found['table']}: {found['method']}: {covered:.1%} inside at 90%, width {width:.4g}, score {score:.4g}"


if __name__ == "__main__":
    main()
