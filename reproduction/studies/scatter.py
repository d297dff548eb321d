"""How much the coverage of one training set scatters about its level: split and list inside the bag.

``python -m reproduction.studies.scatter [--draws N]`` writes scatter.{csv,md} from all that has been run so far. Each
task is written as soon as it is done, so an interrupted run goes on where it stopped.
"""

from __future__ import annotations

import math
import os
import warnings
from collections import defaultdict
from itertools import product
from pathlib import Path

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import numpy as np

from conformal_gp import ConformalGPRegressor
from conformal_gp.metrics import coverage
from reproduction.experiments.runner import finished, run
from reproduction.studies import common
from reproduction.studies.functions import draw

LEVEL = 0.9
N_TEST = 1000
FIRST_SEED = 7000
FUNCTIONS = ("Branin", "Friedman")
ROWS = (30, 60, 120, 250, 500)
NOISES = (0.0, 0.2)
TUNINGS = ("holdout", "integrated")
Cells = dict[tuple, list[dict]]
"""Results of training sets by tuning method, rows and noise."""


def one_task(name: str, n_rows: int, noise: float, seed: int, tuning: str) -> dict:
    """Share of test labels inside the intervals of one training set."""
    X, y = draw(name, n_rows, noise, seed)
    X_new, y_new = draw(name, N_TEST, noise, seed + 10**6)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = ConformalGPRegressor(tuning=tuning, random_state=seed).fit(X, y)
        inside = float(coverage(y_new, model.predict_interval(X_new, LEVEL)))
    return {"key": [name, n_rows, noise, seed, tuning], "inside": inside, "calibration": model.n_calibration_}


def beta_law(n_calibration: int) -> tuple[float, float]:
    """Mean and standard deviation of coverage by the Beta law, counted on ``N_TEST`` labels.

    >>> mean, deviation = beta_law(19)
    >>> round(mean, 3), round(deviation, 3)
    (0.9, 0.066)
    """
    k = math.floor(round((1.0 - LEVEL) * (n_calibration + 1), 9))
    mean = 1.0 - k / (n_calibration + 1.0)
    variance = mean * (1.0 - mean) / (n_calibration + 2.0)
    return mean, math.sqrt(variance + (mean * (1.0 - mean) - variance) / N_TEST)


def rows_of(cells: Cells) -> list[dict]:
    """A row for each tuning method, number of rows and noise: what was found, beside the Beta law."""
    found = []
    for (tuning, n_rows, noise), tasks in sorted(cells.items(), key=lambda item: (TUNINGS.index(item[0][0]), *item[0])):
        inside = np.array([task["inside"] for task in tasks])
        mean, deviation = beta_law(tasks[0]["calibration"])
        row: dict = {
            "tuning": tuning,
            "rows": n_rows,
            "calibration": tasks[0]["calibration"],
            "noise": noise,
            "sets": inside.size,
        }
        row |= {"coverage": float(inside.mean()), "deviation": float(inside.std(ddof=1)), "least": float(inside.min())}
        found.append(row | {"Beta mean": mean, "Beta deviation": deviation})
    return found


def write(cells: Cells, out: Path) -> None:
    """Write table and page."""
    rows = rows_of(cells)
    common.write_csv(out / "scatter.csv", rows)
    draws = min(row["sets"] for row in rows) // len(FUNCTIONS)
    heads = ["tuning", "rows", "calibration", "noise", "coverage", "standard deviation", "by the Beta law", "least"]
    cells_of = [
        [*(row[k] for k in ("tuning", "rows", "calibration")), f"{row['noise']:g}"]
        + [f"{100 * row[k]:.1f}" for k in ("coverage", "deviation", "Beta deviation", "least")]
        for row in rows
    ]
    ratios = {
        tuning: [row["deviation"] / row["Beta deviation"] for row in rows if row["tuning"] == tuning]
        for tuning in TUNINGS
    }
    lines = [
        "# How much the coverage of one training set scatters",
        "",
        f"`python -m reproduction.studies.scatter --draws {draws}`: the share of {N_TEST:,} test labels inside 90%",
        f"intervals, in percent, over training sets of {' and '.join(FUNCTIONS)} ({draws} of each), with no noise and",
        "with noise of a fifth of the function's standard deviation; map of labels and difficulty as by default. The",
        "Beta law has the standard deviation that calibration rows alone would give, test labels included. A standard",
        f"deviation from {2 * draws} training sets is known to {1 / math.sqrt(4 * draws):.0%}.",
        "",
        *common.markdown(heads, cells_of),
        "",
        "Standard deviation over that of the Beta law: "
        + "; ".join(f"{tuning} {min(of):.2f} to {max(of):.2f}" for tuning, of in ratios.items() if of)
        + ".",
    ]
    common.write_page(out / "scatter.md", lines)


def main() -> None:
    """Run what is missing, then write the page."""
    given = common.options("scatter", __doc__, draws=(40, "training sets of each function")).parse_args()
    seeds = range(FIRST_SEED, FIRST_SEED + given.draws)
    keys = [key for seed in seeds for key in product(FUNCTIONS, ROWS, NOISES, [seed], TUNINGS)]
    run(given.raw, [("/".join(map(str, key)), key) for key in keys], one_task, given.jobs)
    cells: Cells = defaultdict(list)
    for task in finished(given.raw):
        _, n_rows, noise, _, tuning = task["key"]
        cells[tuning, n_rows, noise].append(task)
    write(cells, given.out)


if __name__ == "__main__":
    main()
