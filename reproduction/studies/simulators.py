"""What exactness costs on computer experiments: default, training-row tuning and plain kriging on test functions.

``python -m reproduction.studies.simulators [--rows L ...] [--draws N] [--jobs N]`` writes reproduction/results/guarantee/simulators.{csv,md,svg}
from all that has been run so far. Each task is written to build/simulators.jsonl as soon as it is done, so an
interrupted run goes on where it stopped. With ``--methods default --raw FILE``, and an earlier version of the package
installed, it gives what ``python -m reproduction.studies.price`` compares with. No constant of the package was chosen on these
draws.
"""

from __future__ import annotations

import argparse
import json
import os
import time
import warnings
from collections import defaultdict
from itertools import product
from pathlib import Path

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import numpy as np
from joblib import Parallel, delayed
from scipy.stats import norm
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import ConstantKernel, Matern, WhiteKernel

from conformal_gp import ConformalGPRegressor
from reproduction.studies.functions import FUNCTIONS, draw

FIRST_SEED = 5000
ROWS = (60, 150, 250, 500)
NOISES = (0.0, 1e-4, 1e-2, 0.2)
N_TEST = 50
METHODS = ("default", "train", "kriging")


def levels_of(n_rows: int) -> tuple[float, ...]:
    """Levels that so many rows are asked for."""
    return (0.9, 0.95, 0.99) if n_rows >= 250 else (0.9, 0.95)


def intervals(method: str, X, y, X_new):
    """Intervals at all levels, (m, 2, levels)."""
    levels = levels_of(y.size)
    d = X.shape[1]
    if method == "kriging":
        kernel = ConstantKernel(1.0, (1e-6, 1e6)) * Matern(np.ones(d), (1e-2, 1e4), nu=2.5) + WhiteKernel(
            1e-4, (1e-10, 1e2)
        )
        plain = GaussianProcessRegressor(kernel, normalize_y=True, n_restarts_optimizer=2, random_state=0).fit(X, y)
        mean, std = plain.predict(X_new, return_std=True)
        return mean[:, None, None] + std[:, None, None] * np.array([[-1.0], [1.0]]) * norm.ppf(
            0.5 + np.array(levels) / 2
        )
    options = {} if method == "default" else {"tuning": "train", "mean": "constant"}
    return ConformalGPRegressor(random_state=0, **options).fit(X, y).predict_interval(X_new, levels)


def one_task(name: str, n_rows: int, noise: float, seed: int, method: str) -> dict:
    """Widths, misses and residuals of one method on one draw."""
    X, y = draw(name, n_rows, noise, seed)
    X_new, y_new = draw(name, N_TEST, noise, seed + 10**6)
    start = time.perf_counter()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        ends = intervals(method, X, y, X_new)
    low, high = ends[:, 0], ends[:, 1]
    outside = np.maximum(low - y_new[:, None], 0.0) + np.maximum(y_new[:, None] - high, 0.0)
    half = 0.5 * (high - low)
    return {
        "seconds": time.perf_counter() - start,
        "width": (high - low).mean(axis=0).tolist(),
        "covered": (outside == 0.0).mean(axis=0).tolist(),
        "score": [
            float(np.mean(high[:, i] - low[:, i] + 2.0 / (1.0 - level) * outside[:, i]))
            for i, level in enumerate(levels_of(n_rows))
        ],
        "reach": (np.abs(y_new[:, None] - 0.5 * (low + high)) / half).T.round(4).tolist(),
    }


def main() -> None:
    """Run what is missing, then write the page."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, nargs="+", choices=ROWS, default=ROWS)
    parser.add_argument("--draws", type=int, default=8)
    parser.add_argument("--methods", nargs="+", choices=METHODS, default=METHODS)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--raw", type=Path, default=Path("build/simulators.jsonl"))
    parser.add_argument("--out", type=Path, default=Path("reproduction/results/guarantee"))
    arguments = parser.parse_args()
    arguments.raw.parent.mkdir(parents=True, exist_ok=True)
    done = {}
    if arguments.raw.exists():
        done = {tuple(task["key"]): task for task in map(json.loads, arguments.raw.read_text().splitlines())}
    seeds, rows = range(FIRST_SEED, FIRST_SEED + arguments.draws), arguments.rows
    tasks = [key for seed in seeds for key in product(FUNCTIONS, rows, NOISES, [seed], arguments.methods)]
    tasks = [key for key in tasks if key not in done]
    work = Parallel(n_jobs=arguments.jobs, return_as="generator_unordered")(delayed(_keyed)(key) for key in tasks)
    with arguments.raw.open("a") as file:
        for count, task in enumerate(work, 1):
            done[tuple(task["key"])] = task
            file.write(json.dumps(task) + "\n")
            file.flush()
            print(f"\r{count} of {len(tasks)}", end="", flush=True)
    print()
    if set(arguments.methods) < set(METHODS):
        return
    from reproduction.studies.simulators_page import write_page

    cells = defaultdict(list)
    for (*kind, seed, method), task in sorted(done.items()):
        if all((*kind, seed, other) in done for other in METHODS):
            cells[*kind, method].append(task)
    write_page(cells, arguments.out)


def _keyed(key: tuple) -> dict:
    return {"key": key, **one_task(*key)}


if __name__ == "__main__":
    main()
