"""Our default and the design split on the four benchmark data sets, beside the paper's way and its figures.

``python -m reproduction.studies.benchmark_sets [--runs N]``: random runs of ten-fold cross-validation, gamma 2. Each
fold is written as soon as it is done, so an interrupted run goes on where it stopped.
"""

from __future__ import annotations

import sys
import time
import warnings
from itertools import product

import numpy as np
from sklearn.model_selection import KFold
from threadpoolctl import threadpool_limits

from conformal_gp import ConformalGPRegressor, datasets
from reproduction.experiments.folds import N_FOLDS
from reproduction.experiments.paper import Row, printed
from reproduction.experiments.runner import run
from reproduction.studies import common

SETS = ("servo", "cpu", "auto_mpg", "boston")
KERNELS = {"se": "SE", "matern52": "Matern52"}
"""Kernels, and their names in the paper's tables."""
LEVELS = (0.90, 0.95, 0.99)
# The paper's three random starts are one given start and two random ones.
WAYS = {
    "train": {"tuning": "train", "length_scales": "one", "mean": "linear"},
    "default": {},
    "holdout": {"tuning": "holdout"},
    "holdout, gamma chosen": {"tuning": "holdout", "gamma": [1.0, 2.0, 4.0, np.inf]},
}


def one_fold(name: str, kernel: str, way: str, run_number: int, fold: int) -> dict:
    """Widths and misses of one fold at every level."""
    X, y = getattr(datasets, f"load_{name}")(return_X_y=True)
    train, test = list(KFold(N_FOLDS, shuffle=True, random_state=run_number).split(X))[fold]
    model = ConformalGPRegressor(kernel, n_restarts=2, random_state=100 * run_number + fold, n_jobs=1, **WAYS[way])
    with threadpool_limits(1), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        start = time.perf_counter()
        ends = model.fit(X[train], y[train]).predict_interval(X[test], LEVELS)
        seconds = time.perf_counter() - start
    missed = (y[test, None] < ends[:, 0]) | (y[test, None] > ends[:, 1])
    return {
        "set": name,
        "kernel": kernel,
        "way": way,
        "run": run_number,
        "rows": int(test.size),
        "width": [w if np.isfinite(w) else "inf" for w in (ends[:, 1] - ends[:, 0]).sum(axis=0)],
        "missed": missed.sum(axis=0).tolist(),
        "seconds": seconds,
        "gamma": str(model.gamma_),
    }


def table(results: list[dict], kernel: str) -> list[str]:
    """The table of one kernel."""
    percents = [round(100 * level) for level in LEVELS]
    heads = ["data set", "tuning", *(f"width {p}%" for p in percents), *(f"outside {p}%" for p in percents)]
    lines: list[list[str]] = []
    for name in SETS:
        paper = [printed()[name, Row("GPR-CP", KERNELS[kernel], 2.0), p] for p in percents]
        misses = [f"{cell.miscoverage:.2f}%" for cell in paper]
        lines.append([name, "the paper", *(f"{cell.width:g}" for cell in paper), *misses, "", ""])
        for way in WAYS:
            own = [r for r in results if (r["set"], r["kernel"], r["way"]) == (name, kernel, way)]
            rows = sum(r["rows"] for r in own)
            widths = np.array([[float(w) for w in r["width"]] for r in own]).sum(axis=0) / rows
            runs = sorted({r["run"] for r in own})
            missed = np.array([np.sum([r["missed"] for r in own if r["run"] == i], axis=0) for i in runs])
            share = 100 * missed / (rows / len(runs))
            error = share.std(axis=0, ddof=1) / np.sqrt(len(runs)) if len(runs) > 1 else []
            shares = [f"{s:.2f}%" for s in share.mean(axis=0)]
            seconds = np.mean([r["seconds"] for r in own])
            errors = ", ".join(f"{e:.2f}" for e in error)
            lines.append([name, way, *(f"{w:.4g}" for w in widths), *shares, errors, f"{seconds:.2f}"])
    return common.markdown([*heads, "(se)", "seconds a fold"], lines)


def main() -> None:
    """Run the study and write its tables."""
    given = common.options("benchmark_sets", __doc__, runs=(10, "runs of ten-fold cross-validation")).parse_args()
    keys = product(SETS, KERNELS, WAYS, range(given.runs), range(N_FOLDS))
    results = run(given.raw, [("/".join(map(str, key)), key) for key in keys], one_fold, given.jobs)
    lines = [
        "# The four benchmark data sets",
        "",
        f"Made by `{' '.join(['python -m reproduction.studies.benchmark_sets', *sys.argv[1:]])}`: {given.runs} runs of "
        "ten-fold cross-validation, gamma 2 but where it is chosen on design rows. Mean widths; share of labels "
        "outside, with its standard error over runs at the three levels; seconds for fit and prediction of a fold on "
        "one core.",
    ]
    for kernel in KERNELS:
        lines += ["", f"## {'Squared exponential' if kernel == 'se' else 'Matérn 5/2'}", "", *table(results, kernel)]
    common.write_page(given.out / "benchmark_sets.md", lines)


if __name__ == "__main__":
    main()
