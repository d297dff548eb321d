"""The paper's four benchmark data sets: our default and the split, beside the narrowest of the paper's methods.

``python -m reproduction.studies.benchmark_sets [--runs N]``: random runs of ten-fold cross-validation. Each fold is
written as soon as it is done, so an interrupted run resumes.
"""

from __future__ import annotations

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
LEVELS = (0.90, 0.95, 0.99)
PERCENTS = [round(100 * level) for level in LEVELS]
WAYS: dict[str, dict] = {"default": {}, "holdout": {"tuning": "holdout"}}


def one_fold(name: str, way: str, run_number: int, fold: int) -> dict:
    """Widths and misses of one fold at every level."""
    X, y = getattr(datasets, f"load_{name}")(return_X_y=True)
    train, test = list(KFold(N_FOLDS, shuffle=True, random_state=run_number).split(X))[fold]
    model = ConformalGPRegressor(random_state=100 * run_number + fold, n_jobs=1, **WAYS[way])
    with threadpool_limits(1), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        ends = model.fit(X[train], y[train]).predict_interval(X[test], LEVELS)
    missed = (y[test, None] < ends[:, 0]) | (y[test, None] > ends[:, 1])
    return {
        "set": name,
        "way": way,
        "run": run_number,
        "rows": int(test.size),
        "width": [w if np.isfinite(w) else "inf" for w in (ends[:, 1] - ends[:, 0]).sum(axis=0)],
        "missed": missed.sum(axis=0).tolist(),
    }


def narrowest(name: str, percent: int) -> tuple[float, Row, float]:
    """Mean width, name and miscoverage of the narrowest of the paper's conformal methods, of any kernel and gamma."""
    cells = printed()
    rows = [row for (data, row, own) in cells if (data, own) == (name, percent) and row.method.endswith("-CP")]
    best = min(rows, key=lambda row: float(cells[name, row, percent].width))
    cell = cells[name, best, percent]
    return float(cell.width), best, float(cell.miscoverage)


def lines_of(results: list[dict]) -> tuple[list[list[str]], list[float]]:
    """Rows of the table, and the ratios of the default's widths to the paper's narrowest."""
    lines: list[list[str]] = []
    ratios = []
    for name in SETS:
        best = [narrowest(name, percent) for percent in PERCENTS]
        misses = [f"{miscoverage:.1f}%" for _, _, miscoverage in best]
        lines.append([name, "the paper's narrowest", *(f"{width:.4g}" for width, _, _ in best), *misses])
        for way in WAYS:
            own = [r for r in results if (r["set"], r["way"]) == (name, way)]
            rows = sum(r["rows"] for r in own)
            widths = np.array([[float(w) for w in r["width"]] for r in own]).sum(axis=0) / rows
            shares = 100.0 * np.array([r["missed"] for r in own]).sum(axis=0) / rows
            cells = [*(f"{w:.4g}" for w in widths), *(f"{share:.1f}%" for share in shares)]
            lines.append([name, way, *cells])
            if way == "default":
                ratios += [width / paper for width, (paper, _, _) in zip(widths, best, strict=True)]
    return lines, ratios


def main() -> None:
    """Run the study and write its table."""
    given = common.options("benchmark_sets", __doc__, runs=(2, "runs of ten-fold cross-validation")).parse_args()
    keys = product(SETS, WAYS, range(given.runs), range(N_FOLDS))
    results = run(given.raw, [("/".join(map(str, key)), key) for key in keys], one_fold, given.jobs)
    lines, ratios = lines_of(results)
    heads = ["data set", "method", *(f"width {p}%" for p in PERCENTS), *(f"outside {p}%" for p in PERCENTS)]
    narrower = sum(ratio < 1.0 for ratio in ratios)
    page = [
        "# The paper's four benchmark data sets",
        "",
        f"`python -m reproduction.studies.benchmark_sets --runs {given.runs}`: ten-fold cross-validation, mean widths,",
        "and share of targets outside. The paper's narrowest is",
        "the narrowest of its conformal methods, with any kernel and gamma, for each cell. The default is narrower",
        f"in {narrower} of {len(ratios)} cells; the largest ratio of widths is {max(ratios):.2f}, the geometric mean",
        f"{np.exp(np.mean(np.log(ratios))):.2f}.",
        "",
        *common.markdown(heads, lines),
    ]
    common.write_page(given.out / "benchmark_sets.md", page)


if __name__ == "__main__":
    main()
