"""Whole distributions beside those of the plain Gaussian process and of crepes, where noise is not normal.

``python -m reproduction.studies.distributions [--data-sets N] [--folds N]`` writes distributions.{csv,md,svg}. Each
data set is written as soon as it is done, so an interrupted run goes on where it stopped. No constant of the package
was chosen on these data sets.
"""

from __future__ import annotations

import os
import warnings
from collections.abc import Iterator
from itertools import product
from pathlib import Path
from typing import Any

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import numpy as np
from crepes import ConformalPredictiveSystem
from properscoring import crps_gaussian
from scipy.stats import norm
from sklearn.model_selection import KFold

from conformal_gp import ConformalGPRegressor, datasets
from conformal_gp.arrays import Array
from reproduction.experiments.runner import run
from reproduction.studies import common
from reproduction.studies.cells import Cell

LEVELS = (0.9, 0.95)
ROWS = (19, 49, 99, 199)
NOISES = {
    "skewed": "skewed (exponential)",
    "heavy": "heavy tails (Student's t, 3)",
    "varying": "varying with an input",
}
N_TEST = 25
FOLDS = 10
SETS = ("servo", "cpu", "auto_mpg", "boston")
# Tails in the order of the table, and those that are compared.
TAILS = [f"{side} {level:.0%}" for level in LEVELS for side in ("lower", "upper")]
SHOWN = ("ours", "plain")

Bounds = tuple[Array, Array, Array]
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


def _judged(X: Array, y: Array, X_new: Array, y_new: Array) -> dict:
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


def methods(X: Array, y: Array, X_new: Array, y_new: Array) -> Iterator[tuple[str, Bounds]]:
    """Ours as it comes, the process with maximum likelihood on all rows, and crepes' system on one on half of them."""
    distribution = ConformalGPRegressor(random_state=0, n_jobs=1).fit(X, y).predict_distribution(X_new)
    yield "ours", _bounds(distribution, y_new)

    mean, std = _plain(X, y).predict(X_new, return_std=True)
    reach = std[:, None] * norm.ppf(LEVELS)
    yield "plain", (mean[:, None] - reach, mean[:, None] + reach, crps_gaussian(y_new, mean, std))

    half = y.size // 2
    process = _plain(X[:half], y[:half])
    mean, std = process.predict(X[half:], return_std=True)
    system = ConformalPredictiveSystem().fit(y[half:] - mean, sigmas=std)
    mean, std = process.predict(X_new, return_std=True)
    steps = np.sort(system.predict_cpds(mean, sigmas=std), axis=1)
    yield "crepes", _bounds(type(distribution)(steps), y_new)


def _plain(X: Array, y: Array) -> ConformalGPRegressor:
    return ConformalGPRegressor(tuning="train", random_state=0, n_jobs=1).fit(X, y)


def _bounds(distribution: Any, y_new: Array) -> Bounds:
    lower, upper = (distribution.quantile(q) for q in (1.0 - np.array(LEVELS), LEVELS))
    return lower, upper, distribution.crps(y_new)


def rows_of(results: list[dict]) -> list[dict]:
    """A row for each kind of data: coverage of tails with standard errors, and scores over those of others."""
    found = []
    for kind, n_rows in dict.fromkeys((result["kind"], result["rows"]) for result in results):
        own = [result["methods"] for result in results if (result["kind"], result["rows"]) == (kind, n_rows)]
        row: dict = {"kind": kind, "rows": n_rows, "data sets": len(own)}
        for method, side, (i, level) in product(SHOWN, ("lower", "upper"), enumerate(LEVELS)):
            covered = np.array([result[method][side][i] for result in own])
            row[f"{method} {side} {level:.0%}"] = float(covered.mean())
            row[f"{method} {side} {level:.0%} se"] = float(covered.std(ddof=1) / np.sqrt(covered.size))
        for i, level in enumerate(LEVELS):
            row[f"crepes infinite {level:.0%}"] = float(np.mean([result["crepes"]["infinite"][i] for result in own]))
        scores = {method: np.array([result[method]["crps"] for result in own]) for method in own[0]}
        row["crps"] = float(scores["ours"].mean())
        for other in ("crepes", "plain"):
            row[f"crps over {other}"], row[f"crps over {other} se"] = _ratio(scores["ours"], scores[other])
        found.append(row)
    return found


def _ratio(ours: Array, others: Array) -> tuple[float, float]:
    """Ratio of means over data sets and its jackknife standard error."""
    n = ours.size
    left_out = (ours.sum() - ours) / (others.sum() - others)
    error = np.sqrt((n - 1) / n * np.sum((left_out - left_out.mean()) ** 2))
    return float(ours.mean() / others.mean()), float(error)


def _is_low(row: dict, tail: str) -> bool:
    """Whether coverage of a tail is below its level by more than three standard errors."""
    return bool(row[tail] < float(tail.split()[-1].strip("%")) / 100 - 3.0 * row[f"{tail} se"])


def _share(row: dict, tail: str) -> str:
    text = f"{100 * row[tail]:.1f} ± {100 * row[f'{tail} se']:.1f}"
    return f"**{text}**" if _is_low(row, tail) else text


def write(results: list[dict], out: Path) -> None:
    """Write table, page and picture."""
    rows = rows_of(results)
    common.write_csv(out / "distributions.csv", rows)
    cells, sets = [r for r in rows if r["kind"] in NOISES], [r for r in rows if r["kind"] not in NOISES]
    low = {m: sum(_is_low(row, f"{m} {tail}") for row in cells for tail in TAILS) for m in SHOWN}
    scores = [
        [NOISES.get(row["kind"], row["kind"]), row["rows"]]
        + [f"{row[f'crps over {m}']:.3f} ± {row[f'crps over {m} se']:.3f}" for m in ("crepes", "plain")]
        for row in rows
    ]
    lines = [
        "# Distributions where noise is not normal",
        "",
        f"`python -m reproduction.studies.distributions --data-sets {cells[0]['data sets']} --folds "
        f"{sets[0]['data sets']}`: so many data sets of each",
        "kind, 25 test rows each, two inputs and a smooth truth, noise of half the truth's standard deviation. *Ours*",
        "is `predict_distribution` of the default. *Plain* is the Gaussian process with maximum likelihood on all rows",
        "and its normal quantiles. *crepes* is its split conformal predictive system on the same process with maximum",
        "likelihood on half of the rows; the other half calibrates, normalised by the process's standard deviations.",
        "Standard errors are over data sets.",
        "",
        "## Each tail on its own",
        "",
        "Share of labels at least the lower, and at most the upper bound, in percent. Bold: below the level by more",
        "than three standard errors.",
        "",
        *common.markdown(
            ["noise", "rows", *(f"{method}: {tail}" for method in SHOWN for tail in TAILS)],
            [
                [NOISES[row["kind"]], row["rows"], *(_share(row, f"{m} {tail}") for m in SHOWN for tail in TAILS)]
                for row in cells
            ],
        ),
        "",
        f"Too low by more than three standard errors: {low['ours']} of {len(TAILS) * len(cells)} tails of ours, "
        f"{low['plain']} of {len(TAILS) * len(cells)} of the plain process.",
        "",
        "![Coverage of tails by noise and number of rows](distributions.svg)",
        "",
        "*Bounds of level 95%; bars are three standard errors either way.*",
        "",
        "## Scores",
        "",
        "Mean CRPS of ours over that of the others, with standard errors of the ratio; less than 1 is better.",
        f"Benchmark data sets are {sets[0]['data sets']} folds of ten-fold cross-validation.",
        "",
        *common.markdown(["data", "rows", "over crepes", "over plain"], scores),
    ]
    for other in ("crepes", "plain"):
        ratios = np.array([row[f"crps over {other}"] for row in rows])
        at_most = f"at most 1 in {np.sum(ratios <= 1.0)} of {ratios.size}"
        lines += ["", f"Over {other}: {ratios.min():.2f} to {ratios.max():.2f}, {at_most}."]
    infinite = sorted({row["rows"] for row in cells if row["crepes infinite 95%"] > 0.0})
    if infinite:
        of = ", ".join(map(str, infinite))
        lines += [
            "",
            f"crepes' upper bounds at 95% are infinite with {of} rows, half of which calibrate.",
        ]
    common.write_page(out / "distributions.md", lines)
    _draw(cells, out / "distributions.svg")


def _draw(rows: list[dict], path: Path) -> None:
    kinds, numbers = list(dict.fromkeys(row["kind"] for row in rows)), sorted({row["rows"] for row in rows})
    with common.figure(path, 1, len(kinds), (10, 3.6)) as axes:
        for ax, kind in zip(axes[0], kinds, strict=True):
            own = [row for row in rows if row["kind"] == kind]
            for (method, colour, nudge), (side, marker, shift) in product(
                (("ours", "#0072b2", -0.04), ("plain", "#d55e00", 0.04)), (("lower", "v", -0.1), ("upper", "^", 0.1))
            ):
                tail = f"{method} {side} 95%"
                x = [numbers.index(row["rows"]) + shift + nudge for row in own]
                error = [300 * row[f"{tail} se"] for row in own]
                label = f"{method}, {side} bound"
                ax.errorbar(x, [100 * row[tail] for row in own], error, fmt=marker, color=colour, label=label, ms=5)
            ax.axhline(95.0, color="black", linewidth=0.8)
            ax.set_xticks(range(len(numbers)), [str(n) for n in numbers])
            ax.set_title(NOISES[kind], fontsize=10)
            ax.set_xlabel("training rows")
        axes[0, 0].set_ylabel("labels within the bound, percent")
        axes[0, -1].legend(fontsize=7, loc="lower right")


def main() -> None:
    """Run what is missing, then write the page."""
    counts = {"data_sets": (60, "data sets of each kind"), "folds": (FOLDS, "of the ten of each benchmark data set")}
    given = common.options("distributions", __doc__, **counts).parse_args()
    cells = [
        (f"{noise}/{n_rows}/{seed}", (n_rows, noise, seed))
        for seed, n_rows, noise in product(range(given.data_sets), ROWS, NOISES)
    ]
    folds = [(f"{name}/{fold}", (name, fold)) for name, fold in product(SETS, range(given.folds))]
    results = run(given.raw, cells, one_cell, given.jobs)
    results += run(given.raw.with_stem("distributions_sets"), folds, one_fold, given.jobs)
    write(results, given.out)


if __name__ == "__main__":
    main()
