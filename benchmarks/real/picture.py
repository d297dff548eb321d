"""The picture: every peer's score over ours on every small table, and mean ranks with their critical difference."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from scipy.stats import rankdata, studentized_range

from benchmarks.real.ours import DEFAULT
from benchmarks.real.peers import PEERS
from benchmarks.real.summary import scores

LEAST, MOST = 0.5, 8.0
NEARLY_ALL = 0.9
MARKERS = "os^vDPX*<>"


def draw(table: pd.DataFrame, path: Path) -> None:
    """Draw the scores at 90% on tables of fewer than 2,000 rows."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    wide = scores(table)
    # The same picture is the same file: no date, no random identifiers.
    with plt.rc_context({"svg.hashsalt": "real", "svg.fonttype": "none", "font.size": 9}):
        figure, (left, right) = plt.subplots(
            1, 2, figsize=(10.5, 8.2), layout="constrained", gridspec_kw={"width_ratios": [2.1, 1.0]}
        )
        _ratios(left, wide, table)
        _ranks(right, wide)
        figure.savefig(path, metadata={"Date": None})
        plt.close(figure)


def _ratios(axes: Any, wide: pd.DataFrame, table: pd.DataFrame) -> None:
    """A row for each table, a mark for each peer at its score over ours."""
    rows = table.drop_duplicates("table").set_index("table")["rows"]
    places = np.arange(len(wide))
    for number, peer in enumerate(name for name in PEERS if name in wide):
        ratio = wide[peer] / wide[DEFAULT]
        shown = ratio.clip(LEAST, MOST)
        label = f"{peer}: worse on {(ratio > 1.0).sum()} of {ratio.notna().sum()}"
        axes.plot(shown, places, MARKERS[number], color=f"C{number}", markersize=4.5, alpha=0.85, label=label)
    axes.axvline(1.0, color="black", linewidth=1.0)
    axes.set_xscale("log")
    ticks = [0.5, 0.7, 1.0, 1.5, 2.0, 3.0, 5.0, 8.0]
    axes.set_xticks(ticks, [f"{tick:g}" for tick in ticks[:-1]] + ["8+"])
    axes.set_xticks([], minor=True)
    axes.set_yticks(places, [f"{name} ({rows[name]:,})" for name in wide.index])
    axes.set_ylim(-0.7, len(wide) - 0.3)
    axes.grid(True, axis="both", color="0.92")
    axes.set_axisbelow(True)
    axes.set_xlabel("interval score at 90% over conformal-gp's; right of the line is worse")
    axes.spines[["top", "right"]].set_visible(False)
    axes.legend(loc="upper center", bbox_to_anchor=(0.5, -0.07), ncols=2, frameon=False, fontsize=8)


def _ranks(axes: Any, wide: pd.DataFrame) -> None:
    """Mean ranks of the methods that ran on nearly all tables, and Nemenyi's critical difference at 5%."""
    wide = wide.loc[:, wide.notna().mean() >= NEARLY_ALL].dropna()
    ranks = pd.Series(rankdata(wide, axis=1).mean(axis=0), index=wide.columns).sort_values()
    n_tables, n_methods = wide.shape
    difference = studentized_range.ppf(0.95, n_methods, np.inf) / np.sqrt(2.0)
    difference *= np.sqrt(n_methods * (n_methods + 1) / (6.0 * n_tables))
    places = np.arange(len(ranks))[::-1]
    for place, (name, rank) in zip(places, ranks.items(), strict=True):
        ours = str(name).startswith(DEFAULT)
        axes.plot([rank, rank + difference], [place, place], color="C3" if ours else "0.7", linewidth=2.0)
        axes.plot(rank, place, "o", color="C3" if ours else "0.3")
        axes.annotate(f"{name}  {rank:.2f}", (rank, place), xytext=(0, 6), textcoords="offset points")
    axes.axvline(ranks.iloc[0] + difference, color="C3", linewidth=0.8, linestyle="--")
    axes.set(xlim=(0.8, n_methods + 1.2), ylim=(-0.7, len(ranks) - 0.2), yticks=[])
    axes.set_xlabel(f"mean rank over {n_tables} tables; bars: critical difference\n({difference:.2f}, Nemenyi, 5%)")
    axes.spines[["top", "right", "left"]].set_visible(False)
