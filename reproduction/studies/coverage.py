"""Does coverage survive tuning? A simulation over kinds of data, numbers of rows and methods.

``python -m reproduction.studies.coverage [--data-sets N] [--first N] [--rows L ...] [--gpyconform]``. Every data set
of a cell is written as soon as it is done, so an interrupted run goes on where it stopped. The same data set gives the
same numbers whatever ``--jobs`` is.
"""

from __future__ import annotations

import sys
import time
import warnings
from collections import defaultdict
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
from sklearn.frozen import FrozenEstimator
from sklearn.gaussian_process.kernels import RBF, ConstantKernel, DotProduct, Kernel, Matern
from threadpoolctl import threadpool_limits

from conformal_gp import ConformalGPRegressor
from conformal_gp.arrays import Array
from reproduction.comparators import JackknifePlus, SplitConformal, gaussian_intervals
from reproduction.experiments.runner import run
from reproduction.studies import common
from reproduction.studies.cells import CELLS, LEVELS, N_TEST, Cell, grades
from reproduction.studies.gpyconform import gpyconform_intervals

GPYCONFORM_ROWS = (19, 39)
STYLE = {
    "integrated": ("o", "#0072b2"),
    "holdout": ("s", "#009e73"),
    "train": ("^", "#d55e00"),
    "GPR": ("v", "#999999"),
    "jackknife+": ("D", "#cc79a7"),
    "split": ("x", "#000000"),
    "known": ("*", "#56b4e9"),
    "gpyconform": ("P", "#e69f00"),
}
"""Markers and colours of the methods, in the order of tables."""
Way = Callable[[Cell, Array, Array, Array], Iterator[tuple[str, Array]]]


def model(cell: Cell, tuning: str) -> ConformalGPRegressor:
    """Our regressor as this cell asks for it, two restarts, gamma 2; with "integrated" at its default settings."""
    if tuning == "integrated":
        return ConformalGPRegressor(n_jobs=1)
    kernel: str | Kernel = "matern52"
    if cell.ard:
        kernel = ConstantKernel(1.0) * Matern(np.full(cell.d, np.sqrt(cell.d)), (1e-2, 1e3), nu=2.5)
    return ConformalGPRegressor(kernel, mean=cell.mean, tuning=tuning, n_restarts=2, random_state=0, n_jobs=1)


def exact(cell: Cell, X: Array, y: Array, X_test: Array) -> Iterator[tuple[str, Array]]:
    """The two ways of tuning whose coverage is exact."""
    for tuning in ("holdout", "integrated"):
        yield tuning, model(cell, tuning).fit(X, y).predict_interval(X_test, LEVELS)


def on_training_rows(cell: Cell, X: Array, y: Array, X_test: Array) -> Iterator[tuple[str, Array]]:
    """Methods that share one maximum likelihood fit to all training rows: the paper's, plain GPR, jackknife+."""
    fitted = model(cell, "train").fit(X, y)
    yield "train", fitted.predict_interval(X_test, LEVELS)
    yield "GPR", gaussian_intervals(*fitted.predict(X_test, return_std=True), LEVELS)
    yield "jackknife+", JackknifePlus(FrozenEstimator(fitted)).fit(X, y).predict_interval(X_test, LEVELS)


def split(cell: Cell, X: Array, y: Array, X_test: Array) -> Iterator[tuple[str, Array]]:
    """Split conformal prediction, normalised: half the rows fit the process, half calibrate it."""
    half = y.size // 2
    fitted = model(cell, "train").fit(X[:half], y[:half])
    method = SplitConformal().calibrate(*fitted.predict(X[half:], return_std=True), y[half:])
    yield "split", method.intervals(*fitted.predict(X_test, return_std=True), LEVELS)


def known(cell: Cell, X: Array, y: Array, X_test: Array) -> Iterator[tuple[str, Array]]:
    """Kernel and noise variance that the data were drawn with: a yardstick for methods that learn them."""
    if cell.truth == "linear" and cell.mean == "linear":
        kernel: Kernel = ConstantKernel(1e-6) * Matern(1.0)  # the mean function is all there is
    else:
        kernel = {
            "linear": ConstantKernel(1.0 / cell.d) * DotProduct(1e-9),
            "rough": Matern(np.sqrt(cell.d), nu=0.5),
            "smooth": RBF(1.5 * np.sqrt(cell.d / 2)),
            "graded": RBF(grades(cell.d)),
            "sparse": RBF(np.where(np.arange(cell.d) < 2, 1.0, 1e5)),
        }[cell.truth]
    fixed = ConformalGPRegressor(
        kernel, mean=cell.mean, noise_variance=cell.noise_variance, tuning="fixed", scale_inputs=False, n_jobs=1
    )
    yield "known", fixed.fit(X, y).predict_interval(X_test, LEVELS)


def gpyconform(cell: Cell, X: Array, y: Array, X_test: Array) -> Iterator[tuple[str, Array]]:
    """The paper's own package."""
    yield "gpyconform", gpyconform_intervals(X, y, X_test, LEVELS, cell.ard)


WAYS: tuple[Way, ...] = (exact, on_training_rows, split, known)


def one_data_set(cell: Cell, seed: int, ways: tuple[Way, ...]) -> dict:
    """Coverage, widths and seconds of every method on one data set."""
    X, y, X_test, y_test = cell.draw(seed)
    found: dict = {"cell": cell.name, "methods": {}}
    with threadpool_limits(1), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for way in ways:
            start = time.perf_counter()
            for name, ends in way(cell, X, y, X_test):
                width = ends[:, 1] - ends[:, 0]
                inside = (y_test[:, None] >= ends[:, 0]) & (y_test[:, None] <= ends[:, 1])
                finite = np.isfinite(width)
                found["methods"][name] = {
                    "coverage": inside.mean(axis=0).tolist(),
                    "infinite": (~finite).mean(axis=0).tolist(),
                    "width": [float(w[f].mean()) if f.any() else None for w, f in zip(width.T, finite.T, strict=True)],
                    "median": [float(m) if np.isfinite(m) else None for m in np.median(width, axis=0)],
                    "seconds": time.perf_counter() - start,
                }
                start = time.perf_counter()
    return found


def summarise(found: list[dict]) -> list[dict]:
    """A row for each cell, method and level: means and standard errors over data sets."""
    raw: dict[tuple[str, str], list[dict]] = defaultdict(list)
    for data_set in found:
        for method, result in data_set["methods"].items():
            raw[data_set["cell"], method].append(result)
    rows = []
    for cell, method in ((cell, method) for cell in CELLS for method in STYLE if raw[cell.name, method]):
        results = raw[cell.name, method]
        for i, level in enumerate(LEVELS):
            coverage = np.array([r["coverage"][i] for r in results])
            widths, medians = ([r[kind][i] for r in results if r[kind][i] is not None] for kind in ("width", "median"))
            rows.append(
                {
                    "cell": cell.name,
                    "l": cell.l,
                    "d": cell.d,
                    "length scales": "ARD" if cell.ard else "one",
                    "noise": cell.noise,
                    "truth": cell.truth,
                    "method": method,
                    "level": level,
                    "data sets": len(results),
                    "coverage": coverage.mean(),
                    "se": coverage.std(ddof=1) / np.sqrt(len(results)),
                    "mean width": np.mean(widths) if widths else np.inf,
                    "median width": np.median(medians) if medians else np.inf,
                    "infinite": np.mean([r["infinite"][i] for r in results]),
                    "seconds": np.mean([r["seconds"] for r in results]),
                }
            )
    return rows


def write(found: list[dict], out: Path, arguments: str) -> None:
    """CSV of all figures, two pictures and a page."""
    rows = summarise(found)
    common.write_csv(out / "coverage.csv", rows)
    at_90 = {(row["cell"], row["method"]): row for row in rows if row["level"] == 0.9}
    cells = [cell for cell in CELLS if (cell.name, "train") in at_90]
    _draw(at_90, cells, out / "coverage.svg")
    _draw_widths(at_90, cells, out / "widths.svg")
    methods = [method for method in STYLE if any(row["method"] == method for row in rows)]
    below = []
    for method in methods:
        own = [row for row in rows if row["method"] == method]
        short = [sum(row["level"] == level and is_low(row) for row in own) for level in LEVELS]
        worst = min((row for row in own if row["level"] == 0.9), key=lambda row: row["coverage"])
        words = f"{worst['coverage']:.1%} ± {worst['se']:.1%} ({worst['cell']})"
        below.append([method, *short, len(own) // len(LEVELS), words])
    lines = [
        "# Coverage of every cell",
        "",
        f"Made by `python -m reproduction.studies.coverage {arguments}`".rstrip() + f"; {N_TEST} test labels a data "
        "set, standard errors over data sets. All levels, widths and seconds are in [coverage.csv](coverage.csv).",
        "",
        "![Coverage at nominal 90% in every cell](coverage.svg)",
        "",
        "![Median width relative to training-row tuning, by number of rows](widths.svg)",
        "",
        "## Cells below nominal by more than three standard errors",
        "",
        *common.markdown(["method", *(f"{level:.0%}" for level in LEVELS), "of cells", "worst at 90%"], below),
    ]
    ratios = (("integrated", "train"), ("known", "train"), ("integrated", "split"), ("integrated", "holdout"))
    for kind in ("median width", "mean width"):
        lines += ["", f"## Ratios of {kind}s at 90%, averaged over the cells of each number of rows", ""]
        table = []
        for l in sorted({cell.l for cell in cells}):
            own = [cell.name for cell in cells if cell.l == l]
            means = [np.mean([at_90[c, one][kind] / at_90[c, other][kind] for c in own]) for one, other in ratios]
            table.append([l, *(f"{mean:.2f}" for mean in means)])
        lines += common.markdown(["rows", *(f"{one} / {other}" for one, other in ratios)], table)
    for title, words in (
        ("Coverage at nominal 90%, in percent (standard error)", _coverage),
        ("Median width at 90%", lambda row: f"{row['median width']:.2f}"),
    ):
        lines += ["", f"## {title}", ""]
        table = [
            [cell.name, *(words(at_90[cell.name, m]) if (cell.name, m) in at_90 else "" for m in methods)]
            for cell in cells
        ]
        lines += common.markdown(["cell", *methods], table)
    common.write_page(out / "coverage.md", lines)


def is_low(row: dict) -> bool:
    """Whether coverage is below its level by more than three standard errors."""
    return bool(row["coverage"] < row["level"] - 3 * row["se"])


def _coverage(row: dict) -> str:
    text = f"{100 * row['coverage']:.1f} ({100 * row['se']:.1f})"
    return f"**{text}**" if is_low(row) else text


def _draw(at_90: dict[tuple[str, str], dict], cells: list[Cell], path: Path) -> None:
    """Coverage at nominal 90% in every cell."""
    halves = [half for half in ([c for c in cells if not c.ard], [c for c in cells if c.ard]) if half]
    with common.figure(path, len(halves), 1, (7, 1 + 0.2 * len(cells))) as axes:
        for ax, half in zip(axes[:, 0], halves, strict=True):
            for i, (method, (marker, colour)) in enumerate(STYLE.items()):
                points = [(k, at_90[c.name, method]) for k, c in enumerate(half) if (c.name, method) in at_90]
                ax.errorbar(
                    [row["coverage"] for _, row in points],
                    [k + 0.11 * (i - 3) for k, _ in points],
                    xerr=[3 * row["se"] for _, row in points],
                    fmt=marker,
                    color=colour,
                    markersize=4,
                    linewidth=0.8,
                    label=method,
                )
            ax.axvline(0.9, color="black", linewidth=0.8)
            labels = [f"l={cell.l} d={cell.d} {cell.noise}, {cell.truth}" for cell in half]
            ax.set_yticks(range(len(half)), labels, fontsize=7)
            ax.invert_yaxis()
            ax.set_title("a length scale for each input" if half[0].ard else "one length scale", fontsize=10)
            ax.set_xlabel("coverage at nominal 90% (± 3 se)")
            ax.grid(axis="y", linewidth=0.3)
        axes[0, 0].legend(fontsize=7, frameon=False, loc="lower left")


def _draw_widths(at_90: dict[tuple[str, str], dict], cells: list[Cell], path: Path) -> None:
    """Median width at 90% relative to training-row tuning."""
    sizes = sorted({cell.l for cell in cells})
    with common.figure(path, 1, 1, (7, 4.2)) as axes:
        ax = axes[0, 0]
        for i, method in enumerate(("integrated", "holdout", "jackknife+", "split", "known")):
            marker, colour = STYLE[method]
            place, middle = np.arange(len(sizes)) + 0.12 * (i - 2), []
            for x, l in zip(place, sizes, strict=True):
                own = [cell.name for cell in cells if cell.l == l]
                ratios = np.array([at_90[c, method]["median width"] / at_90[c, "train"]["median width"] for c in own])
                middle.append(np.median(ratios))
                finite = ratios[np.isfinite(ratios)]
                ax.plot(np.full(finite.size, x), finite, marker, color=colour, markersize=4, alpha=0.6)
            ax.plot(place, middle, "-", color=colour, linewidth=1.2, label=method)
        ax.axhline(1.0, color="black", linewidth=0.8)
        ax.set_xticks(range(len(sizes)), [f"l = {l}" for l in sizes])
        ax.set_yscale("log")
        ax.set_yticks([1, 1.5, 2, 3, 5], ["1", "1.5", "2", "3", "5"])
        ax.minorticks_off()
        ax.set_ylabel("median 90% width over that of 'train'")
        ax.legend(fontsize=8, frameon=False)


def main() -> None:
    """Run the study and write its page."""
    parser = common.options(
        "coverage",
        __doc__,
        data_sets=(200, "data sets a cell, 50 test labels each"),
        first=(0, "number of the first data set: others to try again on"),
    )
    sizes = sorted({cell.l for cell in CELLS})
    parser.add_argument("--rows", type=int, nargs="+", choices=sizes, default=sizes, help="only cells of so many rows")
    parser.add_argument("--gpyconform", action="store_true", help="also run gpyconform where l is 19 or 39 (slow)")
    given = parser.parse_args()
    cells = [cell for cell in CELLS if cell.l in given.rows]
    seeds = range(given.first, given.first + given.data_sets)

    def tasks(cells: list[Cell], ways: tuple[Way, ...]) -> list[tuple[str, tuple]]:
        return [(f"{cell.name}/{seed}", (cell, seed, ways)) for cell in cells for seed in seeds]

    results = run(given.raw, tasks(cells, WAYS), one_data_set, given.jobs)
    if given.gpyconform:
        small = [cell for cell in cells if cell.l in GPYCONFORM_ROWS and cell.d >= 5]
        results += run(given.raw.with_stem("gpyconform"), tasks(small, (gpyconform,)), one_data_set, given.jobs)
    write(results, given.out, " ".join(sys.argv[1:]))


if __name__ == "__main__":
    main()
