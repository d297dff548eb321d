"""The default beside ``tuning="holdout"`` on the real tables of up to 500 training rows, and what the seed changes.

``python -m benchmarks.real.few_rows [--splits N] [--seeds N]``. Each run is written to build/real/few_rows.jsonl as
soon as it is done, so an interrupted run resumes. No constant of the default was chosen on these tables.
"""

from __future__ import annotations

import argparse
import os
import warnings
from collections import defaultdict
from pathlib import Path

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import numpy as np

from benchmarks.real.__main__ import training_rows
from benchmarks.real.encoding import split
from benchmarks.real.tables import TABLES, Table
from conformal_gp import ConformalGPRegressor
from conformal_gp.metrics import interval_score
from reproduction.experiments.runner import finished, run
from reproduction.studies import common

LEVELS = (0.9, 0.95)
MOST_ROWS = 500
WAYS = ("auto", "holdout")
RAW = Path("build/real/few_rows.jsonl")
OUT = Path("benchmarks/real/results/few_rows.md")


def one_run(table: Table, number: int, tuning: str, n_seeds: int) -> dict:
    """Interval scores and coverage of one split, and the ratio of the widest to the narrowest interval over seeds."""
    rows = split(table, number)
    y_new = rows.y_test
    widths = []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for seed in range(n_seeds):
            model = ConformalGPRegressor(tuning=tuning, random_state=seed, n_jobs=1).fit(rows.X, rows.y)
            ends = model.predict_interval(rows.X_test, LEVELS)
            widths.append(ends[:, 1] - ends[:, 0])
            if seed == 0:
                score = np.atleast_1d(interval_score(y_new, ends, LEVELS)).tolist()
                inside = (ends[:, 0] <= y_new[:, None]) & (y_new[:, None] <= ends[:, 1])
    with np.errstate(invalid="ignore"):
        ratio = np.max(widths, axis=0) / np.min(widths, axis=0)
    return {
        "table": table.key,
        "rows": len(rows.y),
        "tuning": tuning,
        "score": score,
        "covered": inside.mean(axis=0).tolist(),
        "test rows": len(y_new),
        "seeds": np.nanmedian(ratio, axis=0).tolist(),
    }


def write(found: list[dict], splits: int, seeds: int) -> None:
    """The page."""
    by_table: dict[str, dict[str, list[dict]]] = defaultdict(lambda: defaultdict(list))
    for task in found:
        by_table[task["table"]][task["tuning"]].append(task)
    lines = []
    logs = defaultdict(list)
    for name, ways in sorted(by_table.items(), key=lambda item: item[1]["auto"][0]["rows"]):
        own, other = (np.array([task["score"][0] for task in ways[way]]) for way in WAYS)
        ratio = float(np.exp(np.mean(np.log(own / other))))
        rows = ways["auto"][0]["rows"]
        logs["40 to 200" if rows <= 200 else "201 to 500"].append(np.log(ratio))
        cells = [name, rows, f"{ratio:.2f}"]
        for way in WAYS:
            cells.append(f"{np.mean([task['covered'][0] for task in ways[way]]):.1%}")
        for way in WAYS:
            cells.append(f"{np.median([task['seeds'][0] for task in ways[way]]):.2f}")
        lines.append(cells)
    means = [f"{rows} rows: {np.exp(np.mean(own)):.2f} ({len(own)} tables)" for rows, own in logs.items()]
    heads = ["table", "rows", "score ratio", "coverage, default", "holdout", "seeds, default", "seeds, holdout"]
    page = [
        "# Real tables of up to 500 training rows",
        "",
        f"`python -m benchmarks.real.few_rows --splits {splits} --seeds {seeds}`: interval score at 90% of the",
        'default over that of `tuning="holdout"` (below 1 the default is better), coverage of 90% intervals, and the',
        f"median over test rows of the widest over the narrowest interval of {seeds} seeds. Geometric means:",
        f"{'; '.join(means)}.",
        "",
        *common.markdown(heads, lines),
    ]
    common.write_page(OUT, page)


def main() -> None:
    """Run what is missing, then write the page."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.real.few_rows", description=__doc__.splitlines()[0])
    parser.add_argument("--splits", type=int, default=2, help="splits of each table")
    parser.add_argument("--seeds", type=int, default=4, help="seeds of each fit")
    parser.add_argument("--jobs", type=int, default=1)
    given = parser.parse_args()
    tables = [table for table in TABLES if training_rows(table) <= MOST_ROWS]
    tasks = [
        (f"{table.key}/{number}/{way}", (table, number, way, given.seeds))
        for number in range(given.splits)
        for table in tables
        for way in WAYS
    ]
    run(RAW, tasks, one_run, given.jobs)
    write(finished(RAW), given.splits, given.seeds)


if __name__ == "__main__":
    main()
