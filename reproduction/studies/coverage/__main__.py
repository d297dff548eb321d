"""Run the study: ``python -m reproduction.studies.coverage [--data-sets N] [--first N] [--rows L ...] [--gpyconform] [--out DIR]``.

Every data set of a cell is one line of a file as soon as it is done, so an interrupted run goes on where it stopped.
The same data set gives the same numbers whatever ``--jobs`` is.
"""

from __future__ import annotations

import argparse
import sys
import time
import warnings
from pathlib import Path

import numpy as np
from threadpoolctl import threadpool_limits

from reproduction.experiments.runner import run
from reproduction.studies.coverage.cells import CELLS, Cell
from reproduction.studies.coverage.methods import METHODS, gpyconform
from reproduction.studies.coverage.page import write_page

GPYCONFORM_ROWS = (19, 39)


def one_data_set(cell: Cell, seed: int, methods: tuple) -> dict:
    """Coverage, widths and seconds of every method on one data set."""
    X, y, X_test, y_test = cell.draw(seed)
    found: dict = {"cell": cell.name, "methods": {}}
    with threadpool_limits(1), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for ways in methods:
            start = time.perf_counter()
            for name, ends in ways(cell, X, y, X_test):
                width = ends[:, 1] - ends[:, 0]
                inside = (y_test[:, None] >= ends[:, 0]) & (y_test[:, None] <= ends[:, 1])
                finite = np.isfinite(width)
                found["methods"][name] = {
                    "coverage": inside.mean(axis=0).tolist(),
                    "infinite": (~finite).mean(axis=0).tolist(),
                    "width": [float(w[f].mean()) if f.any() else None for w, f in zip(width.T, finite.T, strict=True)],
                    "median": [float(m) if np.isfinite(m) else None for m in np.median(width, axis=0)],
                    "seconds": time.perf_counter() - start,
                }
                start = time.perf_counter()
    return found


def main() -> None:
    """Run the study and write its page."""
    parser = argparse.ArgumentParser(
        prog="python -m reproduction.studies.coverage", description=__doc__.splitlines()[0]
    )
    parser.add_argument("--data-sets", type=int, default=200, help="data sets a cell, 50 test labels each")
    parser.add_argument("--first", type=int, default=0, help="number of the first data set: others to try again on")
    sizes = sorted({cell.l for cell in CELLS})
    parser.add_argument("--rows", type=int, nargs="+", choices=sizes, default=sizes, help="only cells of so many rows")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--gpyconform", action="store_true", help="also run gpyconform where l is 19 or 39 (slow)")
    parser.add_argument("--gpyconform-data-sets", type=int, default=200)
    parser.add_argument("--raw", type=Path, default=Path("build/coverage"), help="where results of data sets go")
    parser.add_argument(
        "--out", type=Path, default=Path("reproduction/results/guarantee"), help="where tables and figures go"
    )
    arguments = parser.parse_args()
    cells = [cell for cell in CELLS if cell.l in arguments.rows]
    seeds = range(arguments.first, arguments.first + arguments.data_sets)
    results = run(arguments.raw / "ours.jsonl", _tasks(cells, seeds, METHODS), one_data_set, arguments.jobs)
    if arguments.gpyconform:
        small = [cell for cell in cells if cell.l in GPYCONFORM_ROWS and cell.d >= 5]
        tasks = _tasks(small, seeds[: arguments.gpyconform_data_sets], (gpyconform,))
        results += run(arguments.raw / "gpyconform.jsonl", tasks, one_data_set, arguments.jobs)
    write_page(results, arguments.out, " ".join(sys.argv[1:]), arguments.first)


def _tasks(cells: list[Cell], seeds: range, methods: tuple) -> list[tuple[str, tuple]]:
    return [(f"{cell.name}/{seed}", (cell, seed, methods)) for cell in cells for seed in seeds]


if __name__ == "__main__":
    main()
