"""Run the study: ``python -m studies.coverage [--data-sets N] [--jobs N] [--gpyconform] [--out DIR]``.

Every data set of a cell is one line of a file as soon as it is done, so an interrupted run goes on where it stopped.
The same data set gives the same numbers whatever ``--jobs`` is.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
import warnings
from functools import partial
from pathlib import Path

import numpy as np
from joblib import Parallel, delayed
from threadpoolctl import threadpool_limits

from studies.coverage.cells import CELLS, Cell
from studies.coverage.methods import METHODS, gpyconform
from studies.coverage.page import write_page

GPYCONFORM_ROWS = (19, 39)


def one_data_set(cell: Cell, seed: int, methods: tuple) -> dict:
    """Coverage, widths and seconds of every method on one data set."""
    X, y, X_test, y_test = cell.draw(seed)
    found: dict = {"cell": cell.name, "seed": seed, "methods": {}}
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


def run(raw: Path, data_sets: int, jobs: int, methods: tuple, cells: list[Cell]) -> None:
    """Run what is not in ``raw`` yet."""
    done = (
        {(line["cell"], line["seed"]) for line in map(json.loads, raw.read_text().splitlines())}
        if raw.exists()
        else set()
    )
    todo = [(cell, seed) for cell in cells for seed in range(data_sets) if (cell.name, seed) not in done]
    print(f"{len(todo)} of {len(cells) * data_sets} data sets to do, {jobs} at a time -> {raw}", flush=True)
    start = time.monotonic()
    with raw.open("a") as file, Parallel(jobs, return_as="generator_unordered", batch_size=1) as parallel:
        results = parallel(delayed(one_data_set)(cell, seed, methods) for cell, seed in todo)
        for i, result in enumerate(results, start=1):
            file.write(json.dumps(result) + "\n")
            file.flush()
            if i % 20 == 0 or i == len(todo):
                left = (time.monotonic() - start) / i * (len(todo) - i)
                print(f"\r{i}/{len(todo)}  {left / 60:.1f} minutes left  {result['cell']:32}", end="", flush=True)
    print(flush=True)


def main() -> None:
    """Run the study and write its page."""
    parser = argparse.ArgumentParser(prog="python -m studies.coverage", description=__doc__.splitlines()[0])
    parser.add_argument("--data-sets", type=int, default=200, help="data sets a cell, 50 test labels each")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--gpyconform", action="store_true", help="also run gpyconform where l is 19 or 39 (slow)")
    parser.add_argument("--gpyconform-data-sets", type=int, default=200)
    parser.add_argument("--raw", type=Path, default=Path("build/coverage"), help="where results of data sets go")
    parser.add_argument("--out", type=Path, default=Path("docs/guarantee"), help="where tables and figures go")
    arguments = parser.parse_args()
    arguments.raw.mkdir(parents=True, exist_ok=True)
    start = partial(run, jobs=arguments.jobs)
    start(arguments.raw / "ours.jsonl", data_sets=arguments.data_sets, methods=METHODS, cells=CELLS)
    if arguments.gpyconform:
        small = [cell for cell in CELLS if cell.l in GPYCONFORM_ROWS and cell.d >= 5]
        start(
            arguments.raw / "gpyconform.jsonl",
            data_sets=arguments.gpyconform_data_sets,
            methods=(gpyconform,),
            cells=small,
        )
    write_page(sorted(arguments.raw.glob("*.jsonl")), arguments.out, " ".join(sys.argv[1:]))


if __name__ == "__main__":
    main()
