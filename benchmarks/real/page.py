"""The tables of the comparison on real data, results.csv and results.md."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from benchmarks.real.ours import DEFAULT, OPTIONS
from benchmarks.real.peers import PEERS
from benchmarks.real.summary import (
    PERCENT,
    best_peer,
    cells,
    geometric_mean,
    holding,
    over_tables,
    parts,
    scores,
)
from benchmarks.results import table as markdown


def write(runs: list[dict[str, Any]], out: Path) -> None:
    """Write tables into the folder ``out`` from the runs that are there."""
    out.mkdir(parents=True, exist_ok=True)
    table = cells(runs)
    shown = table.drop(columns=[name for name in table if str(name).startswith("fifth")])
    shown.to_csv(out / "results.csv", index=False, float_format="%.5g")
    text = [
        "# Real data: the tables",
        "Made by `make bench-real` (`python -m benchmarks.real`); all figures, also widths and the other levels, are "
        "in [results.csv](results.csv). How tables and peers were picked is said in "
        "[benchmarks](../../../docs/benchmarks.md).",
    ]
    for title, part in parts(table).items():
        text += [f"## {title}", _methods(part), _against_best(part), _each(part)]
    failed = _failures(runs)
    if failed:
        text += ["## Failures", failed]
    (out / "results.md").write_text("\n\n".join(text) + "\n", encoding="utf-8")


def _methods(table: pd.DataFrame) -> str:
    """Table of the methods over all tables."""
    heads = (
        "method",
        "tables",
        "coverage at 80 / 90 / 95%",
        "worst fifth, 90%",
        "worst category, 90%",
        "tables under 85% at 90%",
        "width, 90%",
        "score, 80 / 90 / 95%",
        "default ahead",
        "seconds",
    )
    lines = [
        (
            row["method"],
            str(row["tables"]),
            " / ".join(f"{100 * row[f'coverage {level}']:.1f}" for level in PERCENT),
            f"{100 * row['worst fifth 90%']:.1f}",
            _percent(row["worst category 90%"], 1),
            str(row["short of 85%"]),
            f"{row['width 90%']:.2f}",
            " / ".join(f"{row[f'score {level}']:.2f}" for level in PERCENT),
            "-" if row["method"] == DEFAULT else f"{row['default ahead']} of {row['tables']}",
            f"{row['seconds']:.1f}",
        )
        for _, row in over_tables(table).iterrows()
    ]
    said = (
        "Coverages are means over tables; the worst fifth is the lowest of the five coverages in fifths of the "
        "prediction, each a mean over tables. The worst category is the mean over tables of the lowest coverage in a "
        "category of at least 50 test rows. Widths and interval scores are geometric means of ratios to the "
        "default's on the same tables: above 1 the default is better. Seconds are the processor's, fit and "
        "prediction together, median over tables."
    )
    return said + "\n\n" + markdown(heads, lines)


def _against_best(table: pd.DataFrame) -> str:
    """Our scores over those of the best peer of each table."""
    lines = []
    for way in OPTIONS:
        for level in PERCENT:
            wide = scores(table, level)
            if way not in wide:
                continue
            found = []
            for among in (PEERS, holding(table, level)):
                ratio = (wide[way] / best_peer(wide, among)["score"]).dropna()
                found += [f"{geometric_mean(ratio):.3f}", f"{int((ratio < 1.0).sum())} of {len(ratio)}"]
            lines.append((way, level, *found))
    heads = ("ours", "level", "score over the best peer", "ahead", "over the best peer that holds its level", "ahead")
    said = (
        "Beside the best peer of each table, which is known only afterwards (geometric means). A peer holds its level "
        "if its mean coverage over these tables is at most three points short of it."
    )
    return said + "\n\n" + markdown(heads, lines)


def _each(table: pd.DataFrame) -> str:
    """A line for each table: coverage and score of ours, the best peer, and ratios to some peers."""
    wide = scores(table)
    best = best_peer(wide)
    ours = [way for way in OPTIONS if way in wide]
    rows = table.set_index(["table", "method"])
    heads = (
        "table",
        "rows",
        "inputs",
        "splits",
        "coverage",
        "worst fifth",
        "worst category",
        "best peer",
        *(f"score of {way} over it" for way in ours),
    )
    lines = []
    for name in wide.index:
        mine = rows.loc[name, DEFAULT]
        ratios = (wide.loc[name, way] / best.loc[name, "score"] for way in ours)
        lines.append(
            (
                name,
                f"{mine['rows']:,.0f}",
                f"{mine['inputs']:.0f}",
                f"{mine['splits']:.0f}",
                f"{100 * mine['coverage 90%']:.0f}",
                f"{100 * mine['worst fifth 90%']:.0f}",
                _percent(mine["worst category 90%"]),
                best.loc[name, "peer"],
                *(_ratio(ratio) for ratio in ratios),
            )
        )
    return "At 90%, table by table; below 1 ours is better:\n\n" + markdown(heads, lines)


def _percent(value: float, digits: int = 0) -> str:
    return "-" if np.isnan(value) else f"{100 * value:.{digits}f}"


def _ratio(value: float) -> str:
    return "-" if np.isnan(value) else f"{value:.2f}" if value < 1.0 else f"**{value:.2f}**"


def _failures(runs: list[dict[str, Any]]) -> str:
    """Runs that ended in an error."""
    return "\n".join(
        f"- {run['method']} on {run['table']}, split {run['split']}: {run['error'].splitlines()[0][:150]}"
        for run in runs
        if "error" in run
    )
