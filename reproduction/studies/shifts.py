"""Coverage under a known covariate shift: with and without the likelihood ratio, beside split conformal prediction.

``python -m reproduction.studies.shifts [--data-sets N]`` writes shifts.{csv,md}. Each data set is written as soon as it
is done, so an interrupted run goes on where it stopped.
"""

from __future__ import annotations

import os
import warnings
from collections.abc import Iterator
from pathlib import Path

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import numpy as np
from sklearn.linear_model import LogisticRegression

from conformal_gp import ConformalGPRegressor
from conformal_gp.arrays import Array
from reproduction.experiments.runner import run
from reproduction.studies import common

ROWS = (30, 100, 300)
LEVELS = (0.8, 0.9)
N_TEST = 100
N_UNLABELLED = 500
TILT = 1.0
METHODS = {
    "plain": "ours, no ratio",
    "true": "ours, true ratio",
    "estimated": "ours, estimated ratio",
    "split": "split, true ratio",
}


def ratio(X: Array) -> Array:
    """Density of test inputs over that of training inputs, up to a factor."""
    return np.exp(TILT * X[:, 0])


def inputs(rng: np.random.Generator, n: int, shifted: bool) -> Array:
    """Two uniform inputs on (-2, 2); the first, where shifted, has a density in proportion to the ratio."""
    X = rng.uniform(-2.0, 2.0, (n, 2))
    if shifted:
        low, high = np.exp(-2.0 * TILT), np.exp(2.0 * TILT)
        X[:, 0] = np.log(low + rng.uniform(size=n) * (high - low)) / TILT
    return X


def labels(rng: np.random.Generator, X: Array) -> Array:
    """A smooth truth with noise that grows with the first input, to where test inputs are."""
    noise = 0.1 + 0.2 * (X[:, 0] + 2.0)
    return np.sin(2.0 * X[:, 0]) + X[:, 1] + noise * rng.standard_normal(len(X))


def one_data_set(n_rows: int, seed: int) -> dict:
    """Coverage, widths and infinite intervals of all methods."""
    rng = np.random.default_rng([n_rows, seed])
    X, X_new = inputs(rng, n_rows, shifted=False), inputs(rng, N_TEST, shifted=True)
    y, y_new, unlabelled = labels(rng, X), labels(rng, X_new), inputs(rng, N_UNLABELLED, shifted=True)
    found = {}
    with warnings.catch_warnings(action="ignore"):
        for name, ends in methods(X, y, X_new, unlabelled):
            inside = (ends[:, 0] <= y_new[:, None]) & (y_new[:, None] <= ends[:, 1])
            width = ends[:, 1] - ends[:, 0]
            infinite = np.isinf(width).mean(axis=0).tolist()
            found[name] = {"coverage": inside.mean(axis=0).tolist(), "infinite": infinite}
            found[name]["width"] = np.median(width, axis=0).tolist()
    return {"rows": n_rows, "methods": found}


def methods(X: Array, y: Array, X_new: Array, unlabelled: Array) -> Iterator[tuple[str, Array]]:
    """Intervals of each method, (m, 2, levels)."""
    model = ConformalGPRegressor(random_state=0, n_jobs=1).fit(X, y)
    yield "plain", model.predict_interval(X_new, LEVELS)
    yield "true", model.predict_interval(X_new, LEVELS, likelihood_ratio=ratio)

    both = np.vstack([X, unlabelled])
    classifier = LogisticRegression().fit(both, np.arange(len(both)) >= len(X))

    def estimated(rows: Array) -> Array:
        old, new = classifier.predict_proba(rows).T
        return new / old

    yield "estimated", model.predict_interval(X_new, LEVELS, likelihood_ratio=estimated)
    yield "split", weighted_split(X, y, X_new)


def weighted_split(X: Array, y: Array, X_new: Array) -> Array:
    """Weighted split conformal prediction (Tibshirani et al., 2019): a process of half of the rows, by hand."""
    half = y.size // 2
    process = ConformalGPRegressor(tuning="train", random_state=0, n_jobs=1).fit(X[:half], y[:half])
    mean, std = process.predict(X[half:], return_std=True)
    scores, weights = np.abs(y[half:] - mean) / std, ratio(X[half:])
    order = np.argsort(scores)
    mean, std = process.predict(X_new, return_std=True)
    share = np.cumsum(weights[order]) / (weights.sum() + ratio(X_new)[:, None])  # a test row's own score is infinite
    ends = np.empty((len(X_new), 2, len(LEVELS)))
    for j, level in enumerate(LEVELS):
        place = (share < level).sum(axis=1)
        reach = np.append(scores[order], np.inf)[place] * std
        ends[:, 0, j], ends[:, 1, j] = mean - reach, mean + reach
    return ends


def rows_of(results: list[dict]) -> list[dict]:
    """A row for each number of rows, method and level."""
    found = []
    for n_rows in dict.fromkeys(result["rows"] for result in results):
        own = [result["methods"] for result in results if result["rows"] == n_rows]
        for name in METHODS:
            for j, level in enumerate(LEVELS):
                of = {key: np.array([each[name][key][j] for each in own]) for key in ("coverage", "infinite", "width")}
                row = {"rows": n_rows, "method": name, "level": level, "data sets": len(own)}
                row |= {"coverage": float(of["coverage"].mean()), "infinite": float(of["infinite"].mean())}
                row["se"] = float(of["coverage"].std(ddof=1) / np.sqrt(len(own)))
                found.append(row | {"width": float(np.median(of["width"]))})
    return found


def _cells(row: dict) -> list[str]:
    low = row["coverage"] < row["level"] - 3.0 * row["se"]
    share = f"{100 * row['coverage']:.1f} ± {100 * row['se']:.1f}"
    return [f"**{share}**" if low else share, f"{row['width']:.2f}", f"{row['infinite']:.0%}"]


def write(results: list[dict], out: Path) -> None:
    """Write table and page."""
    rows = rows_of(results)
    common.write_csv(out / "shifts.csv", rows)
    table = []
    for n_rows in ROWS:
        for name, words in METHODS.items():
            own = [row for row in rows if (row["rows"], row["method"]) == (n_rows, name)]
            table.append([n_rows, words, *(cell for row in own for cell in _cells(row))])
    heads = [f"{what} {level:.0%}" for level in LEVELS for what in ("inside", "width", "infinite")]
    lines = [
        "# Known covariate shift",
        "",
        f"`python -m reproduction.studies.shifts --data-sets {rows[0]['data sets']}`: so many data sets for each",
        f"number of rows, {N_TEST} test rows each. Training inputs are uniform on (-2, 2)²; test inputs have a density",
        "in proportion to exp(x₁) there, and the noise grows with x₁. *No ratio* and *true ratio* are the default",
        "without and with `likelihood_ratio`. *Estimated ratio* takes it from a logistic regression of the training",
        f"inputs against {N_UNLABELLED} unlabelled test inputs. *Split* is weighted split conformal prediction by",
        "hand, on the same process with maximum likelihood on half of the rows. Labels inside in percent, with",
        "standard errors over data sets; bold where they are below the level by more than three of them. Widths are",
        "medians.",
        "",
        *common.markdown(["rows", "method", *heads], table),
    ]
    common.write_page(out / "shifts.md", lines)


def main() -> None:
    """Run what is missing, then write the page."""
    given = common.options("shifts", __doc__, data_sets=(200, "data sets for each number of rows")).parse_args()
    tasks = [(f"{n}-{seed}", (n, seed)) for n in ROWS for seed in range(given.data_sets)]
    write(run(given.raw, tasks, one_data_set, given.jobs), given.out)


if __name__ == "__main__":
    main()
