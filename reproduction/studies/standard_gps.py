"""Error bars of standard GPs of four libraries and of the default, on 20 to 60 rows of real tables.

``python -m reproduction.studies.standard_gps [--draws N]`` needs ``pip install gpytorch botorch GPy``. Each task
is written as soon as it is done, so an interrupted run resumes. No constant of the package was chosen on these draws.
"""

from __future__ import annotations

import os
import warnings
from collections import defaultdict
from collections.abc import Callable
from itertools import product
from pathlib import Path

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import numpy as np
from sklearn.datasets import load_diabetes
from sklearn.preprocessing import StandardScaler

from conformal_gp import ConformalGPRegressor
from conformal_gp.arrays import Array
from conformal_gp.datasets import load_auto_mpg, load_boston, load_cpu, load_servo
from conformal_gp.metrics import interval_score
from reproduction.comparators import gaussian_intervals
from reproduction.experiments.runner import finished, run
from reproduction.studies import common, simulators

FIRST_SEED = 7000
ROWS = (20, 30, 40, 60)
LEVELS = (0.9, 0.95)
MOST_TEST_ROWS = 100
TABLES: dict[str, Callable] = {
    "diabetes": load_diabetes,
    "auto_mpg": load_auto_mpg,
    "boston": load_boston,
    "cpu": load_cpu,
    "servo": load_servo,
}


def botorch(X: Array, y: Array, X_new: Array) -> tuple[Array, Array]:
    """Mean and standard deviation of BoTorch's SingleTaskGP, with its own priors and its own fit."""
    import torch
    from botorch.fit import fit_gpytorch_mll
    from botorch.models import SingleTaskGP
    from gpytorch.mlls import ExactMarginalLogLikelihood

    torch.manual_seed(0)
    torch.set_num_threads(1)
    model = SingleTaskGP(torch.tensor(X), torch.tensor(y[:, None]))
    fit_gpytorch_mll(ExactMarginalLogLikelihood(model.likelihood, model))
    with torch.no_grad():
        found = model.posterior(torch.tensor(X_new), observation_noise=True)
        return found.mean[:, 0].numpy(), found.variance[:, 0].sqrt().numpy()


def gpy(X: Array, y: Array, X_new: Array) -> tuple[Array, Array]:
    """Mean and standard deviation of GPy's GPRegression, a length scale for each input, two restarts."""
    import GPy

    np.random.seed(0)  # noqa: NPY002  (GPy draws restarts from it)
    shift, scale = y.mean(), y.std()
    model = GPy.models.GPRegression(X, (y[:, None] - shift) / scale, GPy.kern.Matern52(X.shape[1], ARD=True))
    model.optimize_restarts(3, robust=True, verbose=False)
    mean, variance = model.predict(X_new)
    variance = np.maximum(np.nan_to_num(variance), 0.0)  # rounding may leave it negative, or not a number
    return shift + scale * mean[:, 0], scale * np.sqrt(variance[:, 0])


STANDARD = {
    "scikit-learn": simulators.kriging,
    "GPyTorch": simulators.gpytorch,
    "BoTorch": botorch,
    "GPy": gpy,
}
TRAIN = "conformal, tuned on the same rows"
OURS = "conformal-gp"
METHODS = (*STANDARD, TRAIN, OURS)


def conformal(method: str, X: Array, y: Array, X_new: Array) -> Array:
    """Intervals of the default, or of full conformal prediction after maximum likelihood on the training rows."""
    tuning = "auto" if method == OURS else "train"
    return ConformalGPRegressor(tuning=tuning, random_state=0, n_jobs=1).fit(X, y).predict_interval(X_new, LEVELS)


def standard(method: str, X: Array, y: Array, X_new: Array) -> Array:
    """Gaussian intervals of a library's GP; inputs are standardised, and those of one value left out."""
    varied = np.ptp(X, axis=0) > 0
    scaler = StandardScaler().fit(X[:, varied])
    mean, deviation = STANDARD[method](scaler.transform(X[:, varied]), y, scaler.transform(X_new[:, varied]))
    return gaussian_intervals(mean, deviation, LEVELS)


def one_task(name: str, n_rows: int, seed: int, method: str) -> dict:
    """Coverage, interval scores and widths of one method on one draw of rows."""
    X, y = TABLES[name](return_X_y=True)
    y = np.asarray(y, dtype=float)
    order = np.random.default_rng(seed).permutation(y.size)
    rows = order[:n_rows]
    others = order[n_rows : n_rows + MOST_TEST_ROWS]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        intervals = standard if method in STANDARD else conformal
        ends = intervals(method, X[rows], y[rows], X[others])
    targets = y[others][:, None]
    return {
        "key": [name, n_rows, seed, method],
        "covered": ((ends[:, 0] <= targets) & (targets <= ends[:, 1])).mean(axis=0).tolist(),
        "score": np.atleast_1d(interval_score(y[others], ends, LEVELS)).tolist(),
        "width": (ends[:, 1] - ends[:, 0]).mean(axis=0).tolist(),
    }


def summary(done: dict[tuple, dict]) -> list[dict]:
    """A row for each number of rows and method, and one for each table besides."""
    cells: dict[tuple, list[dict]] = defaultdict(list)
    for (name, n_rows, _, method), task in done.items():
        cells["all", n_rows, method].append(task)
        cells[name, n_rows, method].append(task)
    rows = []
    for name, n_rows, method in product(("all", *TABLES), ROWS, METHODS):
        tasks = cells[name, n_rows, method]
        row: dict = {"table": name, "rows": n_rows, "method": method, "draws": len(tasks)}
        for i, level in enumerate(LEVELS):
            covered = np.array([task["covered"][i] for task in tasks])
            row[f"coverage {level:.0%}"] = float(covered.mean())
            row[f"standard error {level:.0%}"] = float(covered.std(ddof=1) / np.sqrt(covered.size))
        own = np.array([task["score"][0] for task in cells[name, n_rows, OURS]])
        other = np.array([task["score"][0] for task in tasks])
        row["score 90%, ours over it"] = float(np.exp(np.mean(np.log(own / other))))
        rows.append(row)
    return rows


def write(rows: list[dict], draws: int, out: Path) -> None:
    """Table and page."""
    common.write_csv(out / "standard_gps.csv", rows)
    of_all = {(row["rows"], row["method"]): row for row in rows if row["table"] == "all"}
    table = []
    for method in METHODS:
        cells = [of_all[n_rows, method] for n_rows in ROWS]
        coverages = [f"{cell['coverage 90%']:.1%} ({100 * cell['standard error 90%']:.1f})" for cell in cells]
        scores = [f"{cell['score 90%, ours over it']:.2f}" for cell in cells]
        table.append([method, *coverages, *scores])
    heads = ["method", *(f"{n_rows} rows" for n_rows in ROWS), *(f"score, {n_rows} rows" for n_rows in ROWS)]
    by_table = []
    for name, method in product(TABLES, METHODS):
        found = {row["rows"]: row for row in rows if row["table"] == name and row["method"] == method}
        by_table.append([name, method, *(f"{found[n_rows]['coverage 90%']:.1%}" for n_rows in ROWS)])
    lines = [
        "# Standard GPs and conformal-gp with 20 to 60 rows",
        "",
        f"`python -m reproduction.studies.standard_gps --draws {draws}`: {draws} random draws of rows of each of five",
        f"real tables ({', '.join(TABLES)}), up to {MOST_TEST_ROWS} other rows to predict, coverage of nominal 90%",
        "intervals with the standard error of its mean in brackets (percentage points). Standard GPs are fitted by",
        "maximum likelihood with a length scale for each input. BoTorch has its own priors. Scores are geometric",
        "means of the default's interval score over the method's (below 1 the default is better).",
        "",
        *common.markdown(heads, table),
        "",
        "By table, at 90%:",
        "",
        *common.markdown(["table", "method", *(f"{n_rows} rows" for n_rows in ROWS)], by_table),
    ]
    common.write_page(out / "standard_gps.md", lines)


def main() -> None:
    """Run what is missing, then write the page."""
    given = common.options("standard_gps", __doc__, draws=(12, "draws of each table and number of rows")).parse_args()
    seeds = range(FIRST_SEED, FIRST_SEED + given.draws)
    keys = list(product(TABLES, ROWS, seeds, METHODS))
    run(given.raw, [("/".join(map(str, key)), key) for key in keys], one_task, given.jobs)
    done = {tuple(task["key"]): task for task in finished(given.raw)}
    write(summary({key: done[key] for key in keys}), given.draws, given.out)


if __name__ == "__main__":
    main()
