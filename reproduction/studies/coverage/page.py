"""Tables and figures of the study, from its raw results."""

from __future__ import annotations

import csv
from collections import defaultdict
from pathlib import Path

import matplotlib

matplotlib.use("Agg")

import matplotlib.pyplot as plt
import numpy as np

from reproduction.studies.coverage.cells import CELLS, DESIGN, LEVELS, N_TEST, Cell

MANY_ROWS = 99
RESAMPLES = 1000
ORDER = ("augmented", "holdout", "train", "GPR", "jackknife+", "split", "known", "gpyconform")
STYLE = {
    "augmented": ("o", "#0072b2"),
    "holdout": ("s", "#009e73"),
    "train": ("^", "#d55e00"),
    "GPR": ("v", "#999999"),
    "jackknife+": ("D", "#cc79a7"),
    "split": ("x", "#000000"),
    "known": ("*", "#56b4e9"),
    "gpyconform": ("P", "#e69f00"),
}


def summarise(found: list[dict]) -> list[dict]:
    """A row for each cell, method and level: means and standard errors over data sets."""
    raw: dict[tuple[str, str], list[dict]] = defaultdict(list)
    for data_set in found:
        for method, result in data_set["methods"].items():
            raw[data_set["cell"], method].append(result)
    rows = []
    for cell in CELLS:
        for method in ORDER:
            results = raw.get((cell.name, method), [])
            for i, level in enumerate(LEVELS if results else ()):
                coverage = np.array([r["coverage"][i] for r in results])
                widths = [r["width"][i] for r in results if r["width"][i] is not None]
                medians = [r["median"][i] for r in results if r["median"][i] is not None]
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


def write_page(found: list[dict], out: Path, arguments: str, first: int = 0) -> None:
    """CSV of all figures, two pictures and a Markdown page; ``first`` is the number of the first data set."""
    out.mkdir(parents=True, exist_ok=True)
    rows = summarise(found)
    with (out / "coverage.csv").open("w", newline="") as file:
        writer = csv.DictWriter(file, rows[0].keys(), lineterminator="\n")
        writer.writeheader()
        writer.writerows(
            {key: f"{value:.5g}" if isinstance(value, float) else value for key, value in row.items()} for row in rows
        )
    with matplotlib.rc_context({"svg.hashsalt": "coverage"}):  # the same results give the same file
        _draw(rows, out / "coverage.svg")
        _draw_widths(rows, out / "widths.svg")
    (out / "coverage.md").write_text(_markdown(rows, found, arguments, first))
    print(f"Written: {out / 'coverage.md'}, coverage.csv, coverage.svg, widths.svg")


def _cells(rows: list[dict]) -> list[Cell]:
    """Cells that were run."""
    names = {r["cell"] for r in rows}
    return [cell for cell in CELLS if cell.name in names]


def _draw(rows: list[dict], path: Path) -> None:
    """Coverage minus nominal at 90% for every cell."""
    figure, axes = plt.subplots(1, 2, figsize=(10, 7), sharex=True, layout="constrained")
    for ax, scales in zip(axes, ("one", "ARD"), strict=True):
        cells = [cell for cell in _cells(rows) if cell.ard == (scales == "ARD")]
        for method in dict.fromkeys(r["method"] for r in rows):
            points = [r for r in rows if r["method"] == method and r["level"] == 0.9 and r["length scales"] == scales]
            place = [[cell.name for cell in cells].index(r["cell"]) for r in points]
            offset = 0.11 * (ORDER.index(method) - 3)
            marker, colour = STYLE[method]
            ax.errorbar(
                [r["coverage"] for r in points],
                np.array(place) + offset,
                xerr=[3 * r["se"] for r in points],
                fmt=marker,
                color=colour,
                markersize=4,
                linewidth=0.8,
                label=method,
            )
        ax.axvline(0.9, color="black", linewidth=0.8)
        ax.set_yticks(range(len(cells)), [_label(cell) for cell in cells], fontsize=7)
        ax.invert_yaxis()
        ax.set_title("one length scale" if scales == "one" else "a length scale for each input", fontsize=10)
        ax.set_xlabel("coverage at nominal 90% (± 3 se)")
        ax.spines[["top", "right"]].set_visible(False)
        ax.grid(axis="y", linewidth=0.3)
    axes[0].legend(fontsize=7, frameon=False, loc="lower left")
    figure.savefig(path, metadata={"Date": None})


def _draw_widths(rows: list[dict], path: Path) -> None:
    """Median width at 90% relative to training-row tuning."""
    base = {r["cell"]: r["median width"] for r in rows if r["method"] == "train" and r["level"] == 0.9}
    figure, ax = plt.subplots(figsize=(7, 4.2), layout="constrained")
    sizes = sorted({cell.l for cell in _cells(rows)})
    for method in ("augmented", "holdout", "jackknife+", "split", "known"):
        marker, colour = STYLE[method]
        ratios = {
            l: [
                r["median width"] / base[r["cell"]]
                for r in rows
                if r["method"] == method and r["level"] == 0.9 and r["l"] == l
            ]
            for l in sizes
        }
        place = np.arange(len(sizes)) + 0.12 * (ORDER.index(method) - 3)
        for x, l in zip(place, sizes, strict=True):
            finite = [ratio for ratio in ratios[l] if np.isfinite(ratio)]
            ax.plot([x] * len(finite), finite, marker, color=colour, markersize=4, linestyle="none", alpha=0.6)
        middle = [np.median(ratios[l]) for l in sizes]
        ax.plot(place, middle, "-", color=colour, linewidth=1.2, label=method)
    ax.axhline(1.0, color="black", linewidth=0.8)
    ax.set_xticks(range(len(sizes)), [f"l = {l}" for l in sizes])
    ax.set_yscale("log")
    ax.set_yticks([1, 1.5, 2, 3, 5], ["1", "1.5", "2", "3", "5"])
    ax.minorticks_off()
    ax.set_ylabel("median 90% width over that of 'train'")
    ax.spines[["top", "right"]].set_visible(False)
    ax.legend(fontsize=8, frameon=False)
    figure.savefig(path, metadata={"Date": None})


def _label(cell: Cell) -> str:
    return f"l={cell.l} d={cell.d} {cell.noise}, {cell.truth}"


def _markdown(rows: list[dict], found: list[dict], arguments: str, first: int) -> str:
    """Coverage of every cell at 90%, the shortfalls of every method at all levels, and widths."""
    methods = [method for method in ORDER if any(r["method"] == method for r in rows)]
    at = {(r["cell"], r["method"], r["level"]): r for r in rows}
    lines = [
        "# Coverage of every cell" + (f", data sets from number {first} on" if first else ""),
        "",
        f"Made by `python -m reproduction.studies.coverage {arguments}`".rstrip()
        + f"; {N_TEST} test labels a data set, standard "
        "errors over data sets. All levels, widths and seconds are in [coverage.csv](coverage.csv).",
        "",
        "![Coverage at nominal 90% in every cell](coverage.svg)",
        "",
        "![Median width relative to training-row tuning, by number of rows](widths.svg)",
        "",
        "## Cells below nominal by more than three standard errors",
        "",
        "| method | " + " | ".join(f"{level:.0%}" for level in LEVELS) + " | of cells | worst at 90% |",
        "|---|" + "---|" * (len(LEVELS) + 2),
    ]
    for method in methods:
        own = [r for r in rows if r["method"] == method]
        short = [sum(r["level"] == level and r["coverage"] < level - 3 * r["se"] for r in own) for level in LEVELS]
        worst = min((r for r in own if r["level"] == 0.9), key=lambda r: r["coverage"])
        lines.append(
            f"| {method} | " + " | ".join(map(str, short)) + f" | {len(own) // len(LEVELS)} | "
            f"{worst['coverage']:.1%} ± {worst['se']:.1%} ({worst['cell']}) |"
        )
    lines += _widths_by_rows(rows) + _against_train(found)
    for title, key, form in (
        ("Coverage at nominal 90%, in percent (standard error)", "coverage", None),
        ("Median width at 90%", "median width", "{:.2f}"),
        ("Mean width at 90%", "mean width", "{:.2f}"),
        ("Share of infinite intervals at 90%, in percent", "infinite", "{:.0%}"),
        (
            "Seconds for a data set (fit and 50 predictions; GPR and jackknife+ reuse the fit of train)",
            "seconds",
            "{:.3f}",
        ),
    ):
        lines += ["", f"## {title}", "", "| cell | " + " | ".join(methods) + " |", "|---|" + "---|" * len(methods)]
        for cell in _cells(rows):
            entries = []
            for method in methods:
                row = at.get((cell.name, method, 0.9))
                if row is None:
                    entries.append("")
                elif form is None:
                    entry = f"{100 * row['coverage']:.1f} ({100 * row['se']:.1f})"
                    entries.append(f"**{entry}**" if row["coverage"] < 0.9 - 3 * row["se"] else entry)
                else:
                    entries.append(form.format(row[key]))
            lines.append(f"| {cell.name} | " + " | ".join(entries) + " |")
    return "\n".join(lines) + "\n"


def _against_train(found: list[dict]) -> list[str]:
    """Ratios of widths at 90% to those of "train", cell by cell, where rows are many enough for it to be worth it."""
    kinds = [(method, kind) for method in ("augmented", "known") for kind in ("median", "width")]
    columns = [f"{method}, {'median' if kind == 'median' else 'mean'} width" for method, kind in kinds]
    lines = [
        "",
        f"## Widths at 90% over those of train, cells of {MANY_ROWS} rows and more",
        "",
        f"With standard errors from {RESAMPLES} resamples of the data sets.",
        "",
        "| cell | coverage of train | " + " | ".join(columns) + " |",
        "|---|" + "---|" * (len(kinds) + 1),
    ]
    ratios: dict[str, list[tuple[float, float]]] = {}
    for cell in CELLS:
        results = [data_set["methods"] for data_set in found if data_set["cell"] == cell.name]
        if cell.l < MANY_ROWS or not results:
            continue
        ratios[cell.name] = [_ratio(results, method, kind) for method, kind in kinds]
        coverage = np.mean([r["train"]["coverage"][LEVELS.index(0.9)] for r in results])
        lines.append(f"| {cell.name} | {coverage:.1%} | " + _with_errors(ratios[cell.name]))
    for title, cells in (("the design's", DESIGN), ("all", CELLS)):
        for l in sorted({cell.l for cell in cells if cell.name in ratios}):
            own = np.array([ratios[cell.name] for cell in cells if cell.l == l and cell.name in ratios])
            averages = zip(own[..., 0].mean(axis=0), np.sqrt((own[..., 1] ** 2).sum(axis=0)) / len(own), strict=True)
            lines.append(f"| average of {title} {len(own)} with {l} rows | | " + _with_errors(list(averages)))
    return lines


def _ratio(results: list[dict], method: str, kind: str) -> tuple[float, float]:
    """Width of a method over that of "train" on the same data sets, and its standard error by the bootstrap."""
    statistic = np.median if kind == "median" else np.mean
    i = LEVELS.index(0.9)
    own, train = (np.array([r[name][kind][i] for r in results]) for name in (method, "train"))
    drawn = np.random.default_rng(0).integers(len(results), size=(RESAMPLES, len(results)))
    resampled = statistic(own[drawn], axis=1) / statistic(train[drawn], axis=1)
    return float(statistic(own) / statistic(train)), float(resampled.std(ddof=1))


def _with_errors(ratios: list[tuple[float, float]]) -> str:
    return " | ".join(f"{ratio:.3f} ± {error:.3f}" for ratio, error in ratios) + " |"


def _widths_by_rows(rows: list[dict]) -> list[str]:
    """Ratios of widths at 90%, averaged over the cells of each number of rows."""
    ratios = (("augmented", "train"), ("known", "train"), ("augmented", "split"), ("augmented", "holdout"))
    lines = []
    for kind in ("median width", "mean width"):
        width = {(r["cell"], r["method"]): r[kind] for r in rows if r["level"] == 0.9}
        lines += [
            "",
            f"## Ratios of {kind}s at 90%, averaged over the cells of each number of rows",
            "",
            "| rows | " + " | ".join(f"{one} / {other}" for one, other in ratios) + " |",
            "|---|" + "---|" * len(ratios),
        ]
        for l in sorted({cell.l for cell in _cells(rows)}):
            cells = [cell.name for cell in _cells(rows) if cell.l == l]
            means = [np.mean([width[cell, one] / width[cell, other] for cell in cells]) for one, other in ratios]
            lines.append(f"| {l} | " + " | ".join(f"{mean:.2f}" for mean in means) + " |")
    return lines
