"""From runs to figures: for each table and method, and over tables."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from typing import Any

import numpy as np
import pandas as pd

from benchmarks.real.encoding import encode
from benchmarks.real.measure import LEVELS
from benchmarks.real.ours import DEFAULT, OPTIONS
from benchmarks.real.peers import PEERS
from benchmarks.real.tables import ALL, MORE

FEW_ROWS = 2000
MOST_SHORT = 0.03
LEAST_OF_CATEGORY = 50
PERCENT = tuple(f"{level:.0%}" for level in LEVELS)


def whole(runs: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Runs of tables on which the default and every peer that takes so many rows have finished a split."""
    done, rows = defaultdict(set), {run["table"]: run["rows"] for run in runs}
    for run in runs:
        done[run["table"]].add(run["method"])
    return [
        run
        for run in runs
        if {DEFAULT, *(name for name in PEERS if PEERS[name].most_rows >= rows[run["table"]])} <= done[run["table"]]
    ]


def cells(runs: list[dict[str, Any]]) -> pd.DataFrame:
    """A row for each table and method: means over the splits that every method of the table has finished.

    A method that fails on a split, or gives an infinite interval there, has an infinite score.
    """
    by_table: dict[str, dict[str, dict[int, dict]]] = defaultdict(lambda: defaultdict(dict))
    for run in runs:
        by_table[run["table"]][run["method"]][run["split"]] = run
    found = []
    for table in (table for table in ALL if table.key in by_table):
        inputs, labels = encode(table)
        methods = by_table[table.key]
        splits = set.intersection(*(set(done) for done in methods.values()))
        for method in (name for name in (*OPTIONS, *PEERS) if name in methods and splits):
            row = {"table": table.key, "rows": len(labels), "inputs": inputs.shape[1], "method": method}
            found.append(row | _means([methods[method][number] for number in sorted(splits)]))
    return pd.DataFrame(found)


def _means(runs: list[dict[str, Any]]) -> dict[str, float]:
    row: dict[str, float] = {"splits": len(runs)}
    done = [run for run in runs if "error" not in run]
    row["seconds"] = float(np.mean([run["seconds"] for run in done])) if done else np.nan
    for i, level in enumerate(PERCENT):
        row[f"coverage {level}"] = _mean(done, "covered", i)
        fifths = [sum(run["fifths"][part][0][i] for run in done) for part in range(5)]
        sizes = [sum(run["fifths"][part][1] for run in done) for part in range(5)]
        shares = [inside / size for inside, size in zip(fifths, sizes, strict=True)] if done else [np.nan] * 5
        row[f"worst fifth {level}"] = min(shares)
        row |= {f"fifth {part + 1} {level}": share for part, share in enumerate(shares)}
        row[f"worst category {level}"] = _worst_category(done, i)
        row[f"width {level}"] = _mean(done, "width", i)
        row[f"score {level}"] = _mean(done, "score", i) if len(done) == len(runs) else np.inf
    return row


def _worst_category(runs: list[dict[str, Any]], level: int) -> float:
    """Least coverage in a category of at least 50 test rows, those of all splits together; NaN where there is none."""
    shares = []
    for category in zip(*(run["categories"] for run in runs), strict=True):
        size = sum(rows for _, rows in category)
        if size >= LEAST_OF_CATEGORY:
            shares.append(sum(inside[level] for inside, _ in category) / size)
    return min(shares, default=np.nan)


def _mean(runs: list[dict[str, Any]], what: str, level: int) -> float:
    return float(np.mean([run[what][level] for run in runs])) if runs else np.nan


def parts(table: pd.DataFrame) -> dict[str, pd.DataFrame]:
    """Rows of the two lists of tables, each with few and with many rows, by title."""
    more = table["table"].isin([each.key for each in MORE])
    few = table["rows"] < FEW_ROWS
    found = {
        "Fewer than 2,000 rows": table[~more & few],
        "2,000 rows and more": table[~more & ~few],
        "Twenty more tables: 200 to 2,000 rows": table[more & few],
        "Twenty more tables: 2,000 rows and more": table[more & ~few],
    }
    return {title: part for title, part in found.items() if len(part)}


def scores(table: pd.DataFrame, level: str = "90%") -> pd.DataFrame:
    """Interval scores, a row for each table and a column for each method; in the order of their rows."""
    wide = table.pivot(index="table", columns="method", values=f"score {level}")
    return wide.loc[table.drop_duplicates("table").sort_values("rows", kind="stable")["table"]]


def holding(table: pd.DataFrame, level: str) -> list[str]:
    """Peers whose mean coverage over tables is at most three points short of the level."""
    coverage = table.groupby("method")[f"coverage {level}"].mean()
    return [name for name in PEERS if name in coverage and coverage[name] >= float(level.strip("%")) / 100 - MOST_SHORT]


def best_peer(wide: pd.DataFrame, among: Iterable[str] = PEERS) -> pd.DataFrame:
    """For each table the peer of the lowest score, and that score."""
    peers = wide[[name for name in among if name in wide]]
    return pd.DataFrame({"peer": peers.idxmin(axis=1), "score": peers.min(axis=1)})


def geometric_mean(ratios: pd.Series) -> float:
    """Geometric mean of what is there and finite."""
    kept = ratios[np.isfinite(ratios)]
    return float(np.exp(np.log(kept).mean())) if len(kept) else np.nan


def over_tables(table: pd.DataFrame) -> pd.DataFrame:
    """A row for each method: means over tables, and scores and widths beside the default's on the same tables."""
    wide = {level: scores(table, level) for level in PERCENT}
    widths = table.pivot(index="table", columns="method", values="width 90%")
    found = []
    for method in (name for name in (*OPTIONS, *PEERS) if name in wide["90%"]):
        mine = table[table["method"] == method]
        ratio = {level: (wide[level][DEFAULT] / wide[level][method]).dropna() for level in PERCENT}
        row: dict[str, Any] = {"method": method, "tables": len(mine)}
        row |= {f"coverage {level}": mine[f"coverage {level}"].mean() for level in PERCENT}
        row["worst fifth 90%"] = min(mine[f"fifth {part} 90%"].mean() for part in range(1, 6))
        row["worst category 90%"] = mine["worst category 90%"].mean()
        row["short of 85%"] = int((mine["coverage 90%"] < 0.85).sum())
        row["width 90%"] = geometric_mean(widths[method] / widths[DEFAULT])
        row |= {f"score {level}": geometric_mean(1.0 / ratio[level]) for level in PERCENT}
        row["default ahead"] = int((ratio["90%"] < 1.0).sum())
        row["seconds"] = mine["seconds"].median()
        found.append(row)
    return pd.DataFrame(found)
