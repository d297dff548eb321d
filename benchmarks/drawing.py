"""Curves of cost against size, and their pictures."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np


@dataclass(frozen=True)
class Curve:
    """Seconds at each size, and the power law to draw beside them."""

    name: str
    title: str
    axis: str
    seconds: dict[str, dict[int, float]]
    power: int

    def points(self, who: str) -> tuple[np.ndarray, np.ndarray]:
        """Sizes in order, and their seconds."""
        sizes, seconds = zip(*sorted(self.seconds[who].items()), strict=True)
        return np.array(sizes, dtype=float), np.array(seconds)

    def exponent(self, who: str) -> float:
        """Slope in the log-log plot over the three largest sizes."""
        sizes, seconds = self.points(who)
        return float(np.polyfit(np.log(sizes[-3:]), np.log(seconds[-3:]), 1)[0])


def save(curve: Curve, folder: Path) -> Path:
    """Draw ``curve`` as ``bench-<name>.svg`` in ``folder``."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    # The same picture is the same file: no date, no random identifiers.
    with plt.rc_context({"svg.hashsalt": curve.name, "svg.fonttype": "none", "font.size": 10}):
        figure, axes = plt.subplots(figsize=(5.2, 3.6), layout="constrained")
        for who in curve.seconds:
            axes.loglog(*curve.points(who), marker="o", markersize=4, label=who)
        sizes, seconds = curve.points("ours")
        law = seconds[-1] * (sizes / sizes[-1]) ** curve.power
        label = curve.axis if curve.power == 1 else f"{curve.axis}$^{curve.power}$"
        axes.loglog(sizes, law, color="0.6", linestyle="--", label=f"proportional to {label}", zorder=0)
        axes.set(xlabel=curve.axis, ylabel="seconds", title=curve.title)
        axes.set_xticks(sizes, [f"{size:,.0f}" for size in sizes])
        axes.set_xticks([], minor=True)
        axes.grid(True, which="major", color="0.9")
        axes.spines[["top", "right"]].set_visible(False)
        axes.legend(frameon=False)
        folder.mkdir(parents=True, exist_ok=True)
        path = folder / f"bench-{curve.name}.svg"
        figure.savefig(path, metadata={"Date": None})
        plt.close(figure)
    return path
