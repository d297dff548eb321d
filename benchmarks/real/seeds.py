"""How good fits are beside LightGBM, and how much they depend on the seed: ``python -m benchmarks.real.seeds``.

Each table has one split, up to 1,000 rows of it for testing, and every method six seeds. Runs are kept in
build/real/seeds.jsonl under a label, so an interrupted run goes on where it stopped and a change is measured beside
what was before: ``--label before``, then, with the change, ``--label after``.
"""

from __future__ import annotations

import argparse
import os
import time
import warnings
from pathlib import Path
from typing import Any

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
os.environ.setdefault("OMP_NUM_THREADS", "1")

import numpy as np
import pandas as pd
from threadpoolctl import threadpool_limits

from benchmarks.real.encoding import split
from benchmarks.real.peers import _leaf, quantile_boosting
from benchmarks.real.tables import CHOOSING, COUNTING, Table
from benchmarks.results import table as markdown
from conformal_gp import ConformalGPRegressor
from conformal_gp.metrics import coverage, interval_score
from reproduction.experiments import runner

LEVEL = 0.9
MOST_TEST_ROWS = 1000
RAW = Path("build/real/seeds.jsonl")
OUT = Path("benchmarks/real/results/seeds.md")
LISTS = {"choosing": CHOOSING, "counting": COUNTING}
PEER = "LightGBM"


def run(table: Table, seed: int, label: str) -> dict[str, Any]:
    """Interval score and coverage at 90%, mean absolute error of the median, and processor seconds."""
    rows = split(table, 0, MOST_TEST_ROWS)
    start = time.process_time()
    with threadpool_limits(1), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        if label == PEER:
            ends = quantile_boosting(rows.X, rows.y, rows.X_test, (LEVEL,), seed)[:, :, 0]
            seconds = time.process_time() - start
            median = _median_boosting(rows.X, rows.y, rows.X_test, seed)
        else:
            model = ConformalGPRegressor(random_state=seed, n_jobs=1).fit(rows.X, rows.y)
            ends = model.predict_interval(rows.X_test, LEVEL)
            seconds = time.process_time() - start
            median = model.predict_quantiles(rows.X_test, 0.5)
    return {
        "table": table.key,
        "seed": seed,
        "label": label,
        "rows": rows.y.size,
        "score": interval_score(rows.y_test, ends, LEVEL),
        "covered": coverage(rows.y_test, ends),
        "error": float(np.abs(rows.y_test - np.ravel(median)).mean()),
        "seconds": seconds,
    }


def _median_boosting(X: np.ndarray, y: np.ndarray, X_new: np.ndarray, seed: int) -> np.ndarray:
    from lightgbm import LGBMRegressor

    options = {"objective": "quantile", "alpha": 0.5, "random_state": seed, "n_jobs": 1, "verbose": -1}
    return LGBMRegressor(min_child_samples=_leaf(y.size), **options).fit(X, y).predict(X_new)


def summary(runs: list[dict[str, Any]], tables: tuple[Table, ...], label: str) -> pd.DataFrame:
    """A row for each table: ours over LightGBM, means over seeds; and greatest over least of the seeds.

    Means are over the seeds that all labels have of a table, so that labels can be compared.
    """
    frame = pd.DataFrame(runs)
    found = []
    for key in (table.key for table in tables):
        of_table = frame[frame["table"] == key]
        if of_table.empty:
            continue
        common = set.intersection(*(set(part["seed"]) for _, part in of_table.groupby("label")))
        mine, peer = (of_table[of_table["label"] == name] for name in (label, PEER))
        if len(mine) and common:
            row = {"table": key, "rows": mine["rows"].iloc[0], "seeds": f"{len(common)} of {len(mine)}"}
            both = [part[part["seed"].isin(common)] for part in (mine, peer)]
            row |= {what: both[0][what].mean() / both[1][what].mean() for what in ("score", "error", "seconds")}
            row["score by seeds"] = mine["score"].max() / mine["score"].min()
            row["error by seeds"] = mine["error"].max() / mine["error"].min()
            row["LightGBM by seeds"] = peer["score"].max() / peer["score"].min()
            found.append(row | {"coverage": mine["covered"].mean()})
    return pd.DataFrame(found)


def page(runs: list[dict[str, Any]]) -> str:
    """All labels, on both lists of tables."""
    parts = [
        "# Real data: seeds, and LightGBM",
        "Made by `python -m benchmarks.real.seeds --label NAME`. Interval score at 90% and seconds are ours over "
        "LightGBM's conformalised quantile regression, the error is the mean absolute one of our median over that of "
        "LightGBM's, over the seeds that all labels have. By seeds: greatest over least score or error of all seeds of "
        "a label, on the same test rows; 1 with a single one. The last line is the geometric mean, of the coverage the "
        "mean.",
    ]
    for name, tables in LISTS.items():
        for label in dict.fromkeys(run["label"] for run in runs if run["label"] != PEER):
            found = summary(runs, tables, label)
            if len(found):
                parts += [f"## {name.capitalize()}: {label}", _table(found)]
    return "\n\n".join(parts) + "\n"


def _table(found: pd.DataFrame) -> str:
    numbers = [name for name in found if name not in ("table", "rows", "seeds")]
    last = {name: f"{np.exp(np.log(found[name]).mean()):.3f}" for name in numbers}
    last |= {"table": "all", "rows": "", "seeds": "", "coverage": f"{found['coverage'].mean():.3f}"}
    shown = found.astype(object)
    shown[numbers] = found[numbers].map("{:.3f}".format)
    lines = [*shown.astype(str).to_numpy().tolist(), [last[str(name)] for name in found]]
    return markdown([str(name) for name in found], lines)


def main() -> None:
    """Run what is missing, and write the page."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.real.seeds", description="Seeds, and LightGBM.")
    parser.add_argument("--label", default="now", help="name of what is measured (now)")
    parser.add_argument("--lists", nargs="+", choices=list(LISTS), default=list(LISTS))
    parser.add_argument("--tables", nargs="+", metavar="NAME", help="only these")
    parser.add_argument("--seeds", type=int, default=6)
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--raw", type=Path, default=RAW)
    arguments = parser.parse_args()
    tables = [table for name in arguments.lists for table in LISTS[name]]
    if arguments.tables:
        tables = [table for table in tables if table.key in arguments.tables]
    tasks = [
        (f"{label}/{table.key}/{seed}", (table, seed, label))
        for seed in range(arguments.seeds)
        for table in tables
        for label in (PEER, arguments.label)
    ]
    runner.run(arguments.raw, tasks, run, arguments.jobs)
    text = page(runner.finished(arguments.raw))
    if arguments.raw == RAW:
        OUT.write_text(text, encoding="utf-8")
    print(text)


if __name__ == "__main__":
    main()
