"""Whole distributions beside those of the plain Gaussian process and of crepes, where noise is not normal.

``python -m reproduction.studies.distributions [--data-sets N] [--folds N] [--jobs N]`` writes
reproduction/results/guarantee/distributions.{csv,md,svg}. Each data set is written as soon as it is done, so an interrupted run goes on
where it stopped. No constant of the package was chosen on these data sets.
"""

from __future__ import annotations

import argparse
import os
import warnings
from collections.abc import Iterator
from itertools import product
from pathlib import Path

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import numpy as np
from crepes import ConformalPredictiveSystem
from scipy.stats import norm
from sklearn.model_selection import KFold

from conformal_gp import ConformalGPRegressor, datasets
from conformal_gp.gp.error_bars import normal_scores
from conformal_gp.steps import PredictiveDistribution
from reproduction.experiments.runner import run
from reproduction.studies.coverage.cells import Cell

LEVELS = (0.9, 0.95)
ROWS = (19, 49, 99, 199)
NOISES = ("skewed", "heavy", "varying")
N_TEST = 25
FOLDS = 10
SETS = ("servo", "cpu", "auto_mpg", "boston")

Bounds = tuple[np.ndarray, np.ndarray, np.ndarray]
"""Lower and upper bounds, each (m, levels), and the score of each label, (m,)."""


def one_cell(n_rows: int, noise: str, seed: int) -> dict:
    """One data set of two inputs and a smooth truth."""
    X, y, X_new, y_new = Cell(n_rows, 2, True, noise, "smooth").draw(seed)
    return {"kind": noise, "rows": n_rows} | _judged(X, y, X_new[:N_TEST], y_new[:N_TEST])


def one_fold(name: str, fold: int) -> dict:
    """One fold of a benchmark data set."""
    X, y = getattr(datasets, f"load_{name}")(return_X_y=True)
    train, test = list(KFold(FOLDS, shuffle=True, random_state=0).split(X))[fold]
    return {"kind": name, "rows": y.size} | _judged(X[train], y[train], X[test], y[test])


def _judged(X: np.ndarray, y: np.ndarray, X_new: np.ndarray, y_new: np.ndarray) -> dict:
    """Coverage of each tail and mean score by method."""
    found = {}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for method, (lower, upper, scores) in methods(X, y, X_new, y_new):
            found[method] = {
                "lower": (y_new[:, None] >= lower).mean(axis=0).tolist(),
                "upper": (y_new[:, None] <= upper).mean(axis=0).tolist(),
                "infinite": np.isinf(upper).mean(axis=0).tolist(),
                "crps": float(scores.mean()),
            }
    return {"test rows": y_new.size, "methods": found}


def methods(X: np.ndarray, y: np.ndarray, X_new: np.ndarray, y_new: np.ndarray) -> Iterator[tuple[str, Bounds]]:
    """Ours as it comes, the process with maximum likelihood on all rows, and crepes' system on one on half of them."""
    yield "ours", _of_steps(ConformalGPRegressor(random_state=0, n_jobs=1).fit(X, y).predict_distribution(X_new), y_new)

    mean, std = _plain(X, y).predict(X_new, return_std=True)
    reach = std[:, None] * norm.ppf(LEVELS)
    yield "plain", (mean[:, None] - reach, mean[:, None] + reach, normal_scores(y_new, mean, std))

    half = y.size // 2
    process = _plain(X[:half], y[:half])
    mean, std = process.predict(X[half:], return_std=True)
    system = ConformalPredictiveSystem().fit(y[half:] - mean, sigmas=std)
    mean, std = process.predict(X_new, return_std=True)
    yield "crepes", _of_steps(PredictiveDistribution(np.sort(system.predict_cpds(mean, sigmas=std), axis=1)), y_new)


def _plain(X: np.ndarray, y: np.ndarray) -> ConformalGPRegressor:
    return ConformalGPRegressor(tuning="train", random_state=0, n_jobs=1).fit(X, y)


def _of_steps(distribution: PredictiveDistribution, y_new: np.ndarray) -> Bounds:
    lower, upper = (distribution.quantile(q) for q in (1.0 - np.array(LEVELS), LEVELS))
    return lower, upper, distribution.crps(y_new)


def main() -> None:
    """Run what is missing, then write the page."""
    parser = argparse.ArgumentParser(
        prog="python -m reproduction.studies.distributions", description=__doc__.splitlines()[0]
    )
    parser.add_argument("--data-sets", type=int, default=60)
    parser.add_argument("--folds", type=int, default=FOLDS, help="of the ten of each benchmark data set")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--raw", type=Path, default=Path("build/distributions.jsonl"))
    parser.add_argument("--out", type=Path, default=Path("reproduction/results/guarantee"))
    arguments = parser.parse_args()
    cells = [
        (f"{noise}/{n_rows}/{seed}", (n_rows, noise, seed))
        for seed, n_rows, noise in product(range(arguments.data_sets), ROWS, NOISES)
    ]
    folds = [(f"{name}/{fold}", (name, fold)) for name, fold in product(SETS, range(arguments.folds))]
    results = run(arguments.raw, cells, one_cell, arguments.jobs)
    results += run(arguments.raw.with_stem(arguments.raw.stem + "_sets"), folds, one_fold, arguments.jobs)
    from reproduction.studies.distributions_page import write_page

    write_page(results, arguments.out)


if __name__ == "__main__":
    main()
