"""Our default and the design split on the four benchmark data sets, beside the paper's way and its figures.

``python -m reproduction.studies.benchmark_sets [--runs N] [--jobs N]``: random runs of ten-fold cross-validation, gamma 2. Each fold
is written as soon as it is done, so an interrupted run goes on where it stopped.
"""

from __future__ import annotations

import argparse
import sys
import time
import warnings
from pathlib import Path

import numpy as np
from sklearn.model_selection import KFold
from threadpoolctl import threadpool_limits

from conformal_gp import ConformalGPRegressor, datasets
from reproduction.experiments.runner import run

SETS = ("servo", "cpu", "auto_mpg", "boston")
KERNELS = ("se", "matern52")
LEVELS = (0.90, 0.95, 0.99)
# The paper's three random starts are one given start and two random ones.
WAYS = {
    "train": {"tuning": "train", "length_scales": "one", "mean": "linear"},
    "default": {},
    "holdout": {"tuning": "holdout"},
    "holdout, gamma chosen": {"tuning": "holdout", "gamma": [1.0, 2.0, 4.0, np.inf]},
}
# Papadopoulos (2024), Tables 3 and 4, GPR-CP with gamma 2: mean widths at 90, 95, 99%, miscoverage in percent.
PAPER = {
    ("servo", "se"): ("1.650", "2.872", "6.699", "10.24%", "4.55%", "0.66%"),
    ("servo", "matern52"): ("1.650", "2.920", "6.376", "10.12%", "4.37%", "0.60%"),
    ("cpu", "se"): ("110.33", "165.04", "253.38", "10.96%", "5.17%", "1.05%"),
    ("cpu", "matern52"): ("112.22", "177.38", "305.51", "10.81%", "5.22%", "0.91%"),
    ("auto_mpg", "se"): ("7.746", "10.286", "19.315", "10.20%", "4.87%", "0.82%"),
    ("auto_mpg", "matern52"): ("7.770", "10.313", "19.156", "10.28%", "5.08%", "0.82%"),
    ("boston", "se"): ("8.277", "11.078", "19.773", "10.53%", "4.94%", "0.91%"),
    ("boston", "matern52"): ("8.159", "11.206", "20.040", "10.45%", "4.88%", "1.03%"),
}


def one_fold(name: str, kernel: str, way: str, run_number: int, fold: int) -> dict:
    """Widths and misses of one fold at every level."""
    X, y = getattr(datasets, f"load_{name}")(return_X_y=True)
    train, test = list(KFold(10, shuffle=True, random_state=run_number).split(X))[fold]
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
    """Markdown rows of one kernel."""
    lines = [
        "| data set | tuning | width 90% | 95% | 99% | outside 90% | 95% | 99% | (se) | seconds a fold |",
        "|---|---|---|---|---|---|---|---|---|---|",
    ]
    for name in SETS:
        paper = PAPER[name, kernel]
        lines.append(f"| {name} | the paper | " + " | ".join(paper) + " | | |")
        for way in WAYS:
            own = [r for r in results if (r["set"], r["kernel"], r["way"]) == (name, kernel, way)]
            rows = sum(r["rows"] for r in own)
            widths = np.array([[float(w) for w in r["width"]] for r in own]).sum(axis=0) / rows
            runs = sorted({r["run"] for r in own})
            misses = np.array([np.sum([r["missed"] for r in own if r["run"] == i], axis=0) for i in runs])
            share = 100 * misses / (rows / len(runs))
            error = share.std(axis=0, ddof=1) / np.sqrt(len(runs)) if len(runs) > 1 else []
            lines.append(
                f"| {name} | {way} | "
                + " | ".join(f"{w:.4g}" for w in widths)
                + " | "
                + " | ".join(f"{s:.2f}%" for s in share.mean(axis=0))
                + f" | {', '.join(f'{e:.2f}' for e in error)} | {np.mean([r['seconds'] for r in own]):.2f} |"
            )
    return lines


def main() -> None:
    """Run the study and write its tables."""
    parser = argparse.ArgumentParser(
        prog="python -m reproduction.studies.benchmark_sets", description=__doc__.splitlines()[0]
    )
    parser.add_argument("--runs", type=int, default=10, help="runs of ten-fold cross-validation")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--raw", type=Path, default=Path("build/benchmark_sets.jsonl"))
    parser.add_argument("--out", type=Path, default=Path("reproduction/results/guarantee/benchmark_sets.md"))
    arguments = parser.parse_args()
    tasks = [
        (f"{name}/{kernel}/{way}/{i}/{fold}", (name, kernel, way, i, fold))
        for name in SETS
        for kernel in KERNELS
        for way in WAYS
        for i in range(arguments.runs)
        for fold in range(10)
    ]
    results = run(arguments.raw, tasks, one_fold, arguments.jobs)
    lines = [
        "# The four benchmark data sets",
        "",
        f"Made by `{' '.join(['python -m reproduction.studies.benchmark_sets', *sys.argv[1:]])}`: {arguments.runs} runs of "
        "ten-fold cross-validation, gamma 2 but where it is chosen on design rows. Mean widths; share of labels "
        "outside, with its standard error over runs at the three levels; seconds for fit and prediction of a fold on "
        "one core.",
    ]
    for kernel in KERNELS:
        lines += ["", f"## {'Squared exponential' if kernel == 'se' else 'Matérn 5/2'}", "", *table(results, kernel)]
    arguments.out.parent.mkdir(parents=True, exist_ok=True)
    arguments.out.write_text("\n".join(lines) + "\n")
    print(f"Written: {arguments.out}")


if __name__ == "__main__":
    main()
