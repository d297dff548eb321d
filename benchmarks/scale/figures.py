"""The figures of docs/scale.md."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.scale.parts import SIZE_PARTS
from benchmarks.scale.rivals import RIVALS, SIZES

Results = Mapping[str, dict[str, Any]]


def draw(folder: Path, results: Results) -> None:
    """Draw what there are results for."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    folder.mkdir(parents=True, exist_ok=True)
    for name, function in (("rows", _rows), ("rivals", _rivals)):
        # The same picture is the same file: no date, no random identifiers.
        with plt.rc_context({"svg.hashsalt": name, "svg.fonttype": "none", "font.size": 10}):
            figure = function(plt, results)
            if figure is not None:
                figure.savefig(folder / f"scale-{name}.svg", metadata={"Date": None})
                plt.close(figure)


def _rows(plt: Any, results: Results) -> Any:
    found = [results[name] for name in SIZE_PARTS if name in results]
    if len(found) < 2:
        return None
    sizes = np.array([result["rows"] for result in found], dtype=float)
    figure, axes = plt.subplots(figsize=(6.4, 4.4), layout="constrained")
    curves = {
        "fit: two passes over the rows": [result["fit"] - result["design"] for result in found],
        "fit: design step": [result["design"] for result in found],
        "intervals of 1,000 test rows, three levels": [result["predict"] for result in found],
        "bare product G'w, 1,000 test rows": [result["product"] for result in found],
    }
    for label, seconds in curves.items():
        axes.loglog(sizes, seconds, marker="o", markersize=4, label=label)
    law = (found[-1]["fit"] - found[-1]["design"]) * sizes / sizes[-1]
    axes.loglog(sizes, law, color="0.6", linestyle="--", label="proportional to rows", zorder=0)
    axes.set(xlabel="rows", ylabel="seconds")
    axes.set_xticks(sizes, [f"{size:,.0f}" for size in sizes])
    axes.set_xticks([], minor=True)
    axes.grid(True, which="major", color="0.9")
    axes.spines[["top", "right"]].set_visible(False)
    axes.legend(frameon=False)
    return figure


def _rivals(plt: Any, results: Results) -> Any:
    panels = [data for data in SIZES if f"rivals-{data}-0" in results]
    if not panels:
        return None
    figure, all_axes = plt.subplots(
        1, len(panels), figsize=(4.2 * len(panels), 4.2), layout="constrained", squeeze=False
    )
    for axes, data in zip(all_axes[0], panels, strict=True):
        for number, rival in enumerate(RIVALS):
            result = results.get(f"rivals-{data}-{number}")
            if result:
                axes.semilogx(result["fit"] + result["predict"], result["score"][0], f"oC{number}", label=rival)
        axes.set(xlabel="seconds, fit and predict", title=data)
        axes.grid(True, which="major", color="0.9")
        axes.spines[["top", "right"]].set_visible(False)
    all_axes[0][0].set_ylabel("interval score at 90%")
    figure.legend(*all_axes[0][0].get_legend_handles_labels(), loc="outside lower center", ncols=2, frameon=False)
    return figure
