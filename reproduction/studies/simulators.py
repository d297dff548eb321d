"""What exactness costs on computer experiments: default, training-row tuning and plain kriging on test functions.

``python -m reproduction.studies.simulators [--rows L ...] [--draws N]`` writes simulators.{csv,md,svg} from all that
has been run so far. Each task is written as soon as it is done, so an interrupted run goes on where it stopped. No
constant of the package was chosen on these draws.
"""

from __future__ import annotations

import os
import time
import warnings
from collections import defaultdict
from itertools import product
from pathlib import Path

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import numpy as np
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import ConstantKernel, Matern, WhiteKernel

from conformal_gp import ConformalGPRegressor
from conformal_gp.metrics import interval_score
from conformal_gp.types import Array
from reproduction.comparators import gaussian_intervals
from reproduction.experiments.runner import finished, run
from reproduction.studies import common
from reproduction.studies.functions import FUNCTIONS, draw

FIRST_SEED = 5000
ROWS = (60, 150, 250, 500)
NOISES = (0.0, 1e-4, 1e-2, 0.2)
N_TEST = 50
METHODS = ("default", "train", "kriging")
MARKERS = {60: "o", 150: "s", 250: "^", 500: "D"}
Cells = dict[tuple, list[dict]]
"""Results of draws by function, rows, noise and method."""


def levels_of(n_rows: int) -> tuple[float, ...]:
    """Levels that so many rows are asked for."""
    return (0.9, 0.95, 0.99) if n_rows >= 500 else (0.9, 0.95)


def intervals(method: str, X: Array, y: Array, X_new: Array) -> Array:
    """Intervals at all levels, (m, 2, levels)."""
    if method == "kriging":
        kernel = ConstantKernel(1.0, (1e-6, 1e6)) * Matern(np.ones(X.shape[1]), (1e-2, 1e4), nu=2.5)
        plain = GaussianProcessRegressor(
            kernel + WhiteKernel(1e-4, (1e-10, 1e2)), normalize_y=True, n_restarts_optimizer=2, random_state=0
        )
        return gaussian_intervals(*plain.fit(X, y).predict(X_new, return_std=True), levels_of(y.size))
    options = {} if method == "default" else {"tuning": "train", "mean": "constant"}
    return ConformalGPRegressor(random_state=0, **options).fit(X, y).predict_interval(X_new, levels_of(y.size))


def one_task(name: str, n_rows: int, noise: float, seed: int, method: str) -> dict:
    """Widths, misses and residuals of one method on one draw."""
    X, y = draw(name, n_rows, noise, seed)
    X_new, y_new = draw(name, N_TEST, noise, seed + 10**6)
    start = time.perf_counter()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        ends = intervals(method, X, y, X_new)
    low, high, labels = ends[:, 0], ends[:, 1], y_new[:, None]
    return {
        "key": [name, n_rows, noise, seed, method],
        "seconds": time.perf_counter() - start,
        "width": (high - low).mean(axis=0).tolist(),
        "covered": ((low <= labels) & (labels <= high)).mean(axis=0).tolist(),
        "score": np.atleast_1d(interval_score(y_new, ends, levels_of(n_rows))).tolist(),
        "reach": (np.abs(labels - 0.5 * (low + high)) / (0.5 * (high - low))).T.round(4).tolist(),
    }


def _mean(tasks: list[dict], what: str, level: int) -> float:
    return float(np.mean([task[what][level] for task in tasks]))


def fair_ratio(ours: list[dict], train: list[dict], level: int, nominal: float) -> float:
    """Mean width over that of training-row tuning, at equal coverage where that falls short by more than 2 points.

    Its intervals are then stretched about their centres until they hold as many labels as ours.
    """
    width = _mean(train, "width", level)
    if _mean(train, "covered", level) < nominal - 0.02:
        reach = np.concatenate([task["reach"][level] for task in train])
        width *= float(np.quantile(reach, _mean(ours, "covered", level)))
    return _mean(ours, "width", level) / width


def rows_of(cells: Cells) -> list[dict]:
    """A row for each kind of data: widths, coverages and scores."""
    found = []
    for name, n_rows, noise in dict.fromkeys(key[:3] for key in cells):
        ours, train, kriging = (cells[name, n_rows, noise, method] for method in METHODS)
        row: dict = {"function": name, "rows": n_rows, "noise": noise, "draws": len(ours)}
        for i, level in enumerate(levels_of(n_rows)):
            row |= {
                f"coverage {level:.0%}": _mean(ours, "covered", i),
                f"train coverage {level:.0%}": _mean(train, "covered", i),
                f"kriging coverage {level:.0%}": _mean(kriging, "covered", i),
                f"width over train {level:.0%}": _mean(ours, "width", i) / _mean(train, "width", i),
                f"fair width ratio {level:.0%}": fair_ratio(ours, train, i, level),
                f"score over kriging {level:.0%}": _mean(ours, "score", i) / _mean(kriging, "score", i),
            }
        found.append(row)
    return found


def write(cells: Cells, out: Path) -> None:
    """Write table, page and picture."""
    rows = rows_of(cells)
    common.write_csv(out / "simulators.csv", rows)
    draws = {n: [row["draws"] for row in rows if row["rows"] == n] for n in sorted({row["rows"] for row in rows})}
    commands = [f"`python -m reproduction.studies.simulators --rows {n} --draws {min(of)}`" for n, of in draws.items()]
    table = []
    for row in rows:
        coverages = " / ".join(f"{row[k]:.1%}" for k in ("coverage 90%", "train coverage 90%", "kriging coverage 90%"))
        ratios = [f"{r:.2f}" if (r := row.get(f"fair width ratio {level}")) else "" for level in ("90%", "95%", "99%")]
        score = f"{row['score over kriging 90%']:.2f}"
        table.append([row["function"], row["rows"], f"{row['noise']:g}", coverages, *ratios, score])
    lines = [
        "# Test functions of computer experiments",
        "",
        f"{', '.join(commands)}: 50 test rows a draw, Matérn 5/2, uniform inputs; noise is relative to the function's",
        'standard deviation. Width ratios are of mean widths: the default over `tuning="train"` with a length scale',
        'for each input and a constant mean. Where "train" covers less than its level by more than two points, it is',
        "over its width at equal coverage: its intervals stretched until they hold as many labels as the default's.",
        "Scores are mean interval scores at 90% over those of scikit-learn's GaussianProcessRegressor with a",
        "length scale for each input.",
        "",
        *common.markdown(
            [
                *("function", "rows", "noise", "coverage: default / train / kriging"),
                *("width ratio 90%", "95%", "99%", "score over kriging"),
            ],
            table,
        ),
        "",
    ]
    for n in draws:
        of, coverage = (
            np.array([row[k] for row in rows if row["rows"] == n]) for k in ("fair width ratio 90%", "coverage 90%")
        )
        lines.append(
            f"With {n} rows, width ratios at 90%: geometric mean {np.exp(np.log(of).mean()):.3f}, from {of.min():.2f} "
            f"to {of.max():.2f}; at most 1.10 in {np.sum(of <= 1.1)} of {of.size} kinds. Mean coverage of the "
            f"default {coverage.mean():.1%}."
        )
    common.write_page(out / "simulators.md", lines)
    names, noises = list(dict.fromkeys(row["function"] for row in rows)), sorted({row["noise"] for row in rows})
    with common.figure(out / "simulators.svg", 1, 1, (8, 4)) as panels:
        axes = panels[0, 0]
        for row in rows:
            x = names.index(row["function"]) + 0.18 * (noises.index(row["noise"]) - 1.5)
            axes.plot(x, row["fair width ratio 90%"], MARKERS[row["rows"]], color=f"C{noises.index(row['noise'])}")
        for i, noise in enumerate(noises):
            axes.plot([], [], "o", color=f"C{i}", label=f"noise {noise:g}")
        for n in draws:
            axes.plot([], [], MARKERS[n], color="grey", label=f"{n} rows")
        axes.axhline(1.0, color="black", linewidth=0.8)
        axes.set_xticks(range(len(names)), names)
        axes.set_ylabel("width over training-row tuning, 90%")
        axes.legend(ncols=3, fontsize=8)


def main() -> None:
    """Run what is missing, then write the page."""
    parser = common.options("simulators", __doc__, draws=(8, "draws of each kind of data"))
    parser.add_argument("--rows", type=int, nargs="+", choices=ROWS, default=ROWS, help="training rows")
    given = parser.parse_args()
    seeds = range(FIRST_SEED, FIRST_SEED + given.draws)
    keys = [key for seed in seeds for key in product(FUNCTIONS, given.rows, NOISES, [seed], METHODS)]
    run(given.raw, [("/".join(map(str, key)), key) for key in keys], one_task, given.jobs)
    done = {tuple(task["key"]): task for task in finished(given.raw)}
    cells: Cells = defaultdict(list)
    for (*kind, seed, method), task in sorted(done.items()):
        if all((*kind, seed, other) in done for other in METHODS):
            cells[*kind, method].append(task)
    write(cells, given.out)


if __name__ == "__main__":
    main()
