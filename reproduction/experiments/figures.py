"""The paper's boxplots of widths, and miscoverage against the nominal level."""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from reproduction.experiments.folds import BENCHMARKS
from reproduction.experiments.methods import LEVELS, MORE_GAMMAS
from reproduction.experiments.paper import PAPER_LEVELS, Row
from reproduction.experiments.results import Outcome, Results
from reproduction.experiments.tables import TITLES

STYLES: dict[str, dict[str, Any]] = {
    "GPR": {"color": "#888888", "marker": "o"},
    "GPR-RI": {"color": "#e69f00", "marker": "v"},
    "GPR-RB": {"color": "#cc79a7", "marker": "^"},
    "GPR-RM": {"color": "#d55e00", "marker": "<"},
    "GPR-RC": {"color": "#56b4e9", "marker": ">"},
    "RR-CP": {"color": "#009e73", "marker": "s"},
    "kNNR-CP": {"color": "#7a5c00", "marker": "D"},
    "GPR-CP": {"color": "#0044bb", "marker": "o", "linewidth": 2.0},
}
"""Line styles of the methods. Colour-blind readers can tell the colours apart."""


class Picture(NamedTuple):
    """A figure as saved."""

    path: Path
    """The PNG file; the SVG file is beside it."""
    caption: str


def draw(results: Results, folder: Path) -> list[Picture]:
    """Draw the figures that the results allow into a folder, each as PNG and SVG."""
    drawn = []
    names = [name for name in BENCHMARKS if (name, Row("GPR-CP", "SE", 2.0)) in results]
    for name in names:
        with _figure(f"widths-{name}", folder, 1, 1, (7.0, 3.6)) as (figure, axes, path):
            _boxes(axes[0, 0], [results[name, Row("GPR-CP", "SE", gamma)] for gamma in MORE_GAMMAS])
            axes[0, 0].set_title(f"{TITLES[name]}: widths of GPR-CP intervals, SE covariance")
            drawn.append(Picture(path, f"{TITLES[name]}: median, quartiles and deciles of the widths, by gamma."))
    if names:
        rows, columns = math.ceil(len(names) / 2), min(len(names), 2)
        with _figure("miscoverage", folder, rows, columns, (4.6 * columns, 3.3 * rows + 0.6)) as (figure, axes, path):
            for name, panel in zip(names, axes.flat, strict=False):
                _miscoverage(panel, {row: found for (data_set, row), found in results.items() if data_set == name})
                panel.set_title(TITLES[name])
            axes.flat[0].set_ylim(bottom=0)  # once all panels, which share the scale, have their lines
            for panel in axes.flat[len(names) :]:
                panel.set_visible(False)
            handles, labels = axes.flat[0].get_legend_handles_labels()
            figure.legend(handles, labels, loc="outside lower center", ncols=4, frameon=False)
            caption = (
                "Labels outside, relative to the nominal share: 1 is exact, above 1 intervals promise too much. SE "
                "covariance; thin lines are GPR and GPR-CP with the other covariances and gammas."
            )
            drawn.append(Picture(path, caption))
    return drawn


def _boxes(axes: Any, outcomes: list[Outcome]) -> None:
    """A box for each gamma in each of three parts: quartiles, with whiskers to the deciles."""
    parts = [outcome.quantiles for outcome in outcomes]
    names = ["whislo", "q1", "med", "q3", "whishi"]
    n = len(MORE_GAMMAS)
    for level, percent in enumerate(PAPER_LEVELS):
        boxes = [dict(zip(names, part[:, level], strict=True)) for part in parts if part is not None]
        positions = level * (n + 1.5) + np.arange(n)
        axes.bxp(
            [box | {"fliers": []} for box in boxes],
            positions=positions,
            widths=0.65,
            showfliers=False,
            patch_artist=True,
            boxprops={"facecolor": "#cfe0f5", "edgecolor": "0.3"},
            medianprops={"color": "#0044bb", "linewidth": 1.6},
            whiskerprops={"color": "0.3"},
            capprops={"color": "0.3"},
        )
        axes.text(positions.mean(), 1.0, f"{percent}%", transform=axes.get_xaxis_transform(), ha="center", va="top")
        if level:
            axes.axvline(positions[0] - 1.25, color="0.8", linewidth=0.8)
    places = np.concatenate([level * (n + 1.5) + np.arange(n) for level in range(len(PAPER_LEVELS))])
    labels = ["∞" if math.isinf(gamma) else f"{gamma:g}" for gamma in MORE_GAMMAS]
    axes.set_xticks(places, labels * len(PAPER_LEVELS))
    axes.set(xlabel=r"$\gamma$", ylabel="width", xlim=(places[0] - 0.8, places[-1] + 0.8))
    axes.set_ylim(0, axes.get_ylim()[1] * 1.06)


def _miscoverage(axes: Any, found: dict[Row, Outcome]) -> None:
    """Share outside over nominal share, against the level: 1 is exact, above 1 is undercoverage."""
    places = np.arange(len(LEVELS))
    nominal = 100.0 * (1.0 - np.array(LEVELS))
    axes.axhline(1.0, color="black", linewidth=0.8)
    for method, style in STYLES.items():
        main = Row("GPR-CP", "SE", 2.0) if method == "GPR-CP" else Row(method, "" if method == "kNNR-CP" else "SE")
        for row, outcome in found.items():
            if row.method == method and row != main:
                axes.plot(places, outcome.misses.mean(axis=0) / nominal, color=style["color"], alpha=0.3, linewidth=0.7)
        if main in found:
            label = r"GPR-CP ($\gamma$ = 2)" if method == "GPR-CP" else method
            ratio = found[main].misses.mean(axis=0) / nominal
            axes.plot(places, ratio, **({"linewidth": 1.2, "markersize": 4} | style), label=label)
    axes.set_xticks(places, [f"{100 * level:g}" for level in LEVELS])
    axes.set(xlabel="confidence level, %", ylabel="share outside / nominal share")


@contextmanager
def _figure(
    name: str, folder: Path, rows: int, columns: int, size: tuple[float, float]
) -> Iterator[tuple[Any, Any, Path]]:
    """A figure that is saved as PNG and SVG at the end. The same figure gives the same files."""
    import matplotlib
    from matplotlib.figure import Figure

    with matplotlib.rc_context({"svg.hashsalt": name, "svg.fonttype": "none", "font.size": 9}):
        figure = Figure(figsize=size, layout="constrained")
        axes = figure.subplots(rows, columns, squeeze=False, sharey=True)
        for panel in axes.flat:
            panel.spines[["top", "right"]].set_visible(False)
        yield figure, axes, folder / f"{name}.png"
        figure.savefig(folder / f"{name}.png", dpi=130)
        figure.savefig(folder / f"{name}.svg", metadata={"Date": None})
