"""The page of the study of test functions: tables and a picture."""

from __future__ import annotations

import csv
from collections.abc import Mapping
from pathlib import Path

import numpy as np

Cells = Mapping[tuple, list[dict]]
COMMAND = "python -m reproduction.studies.simulators"
LEVELS = ("90%", "95%", "99%")
MARKERS = {60: "o", 150: "s", 250: "^", 500: "D"}


def _mean(tasks: list[dict], what: str, level: int) -> float:
    return float(np.mean([task[what][level] for task in tasks]))


def equal_coverage_width(tasks: list[dict], coverage: float, level: int) -> float:
    """Mean width after intervals are stretched about their centres until they hold a share of the labels."""
    reach = np.concatenate([task["reach"][level] for task in tasks])
    return _mean(tasks, "width", level) * float(np.quantile(reach, min(coverage, 1.0)))


def fair_ratio(ours: list[dict], train: list[dict], level: int, nominal: float) -> float:
    """Mean width over that of training-row tuning, at equal coverage where that falls short by more than 2 points."""
    width = _mean(train, "width", level)
    if _mean(train, "covered", level) < nominal - 0.02:
        width = equal_coverage_width(train, _mean(ours, "covered", level), level)
    return _mean(ours, "width", level) / width


def rows_of(cells: Cells) -> list[dict]:
    """A row for each kind of data: widths, coverages and scores."""
    found = []
    for name, n_rows, noise in dict.fromkeys(key[:3] for key in cells):
        ours, train, kriging = (cells[name, n_rows, noise, method] for method in ("default", "train", "kriging"))
        row: dict = {"function": name, "rows": n_rows, "noise": noise, "draws": len(ours)}
        for i, level in enumerate(LEVELS[: len(ours[0]["width"])]):
            nominal = float(level.strip("%")) / 100
            row |= {
                f"coverage {level}": _mean(ours, "covered", i),
                f"train coverage {level}": _mean(train, "covered", i),
                f"kriging coverage {level}": _mean(kriging, "covered", i),
                f"width over train {level}": _mean(ours, "width", i) / _mean(train, "width", i),
                f"fair width ratio {level}": fair_ratio(ours, train, i, nominal),
                f"score over kriging {level}": _mean(ours, "score", i) / _mean(kriging, "score", i),
            }
        found.append(row)
    return found


def write_page(cells: Cells, out: Path) -> None:
    """Write table and picture."""
    rows = rows_of(cells)
    out.mkdir(parents=True, exist_ok=True)
    with (out / "simulators.csv").open("w", newline="") as file:
        writer = csv.DictWriter(file, list(max(rows, key=len)), restval="")
        writer.writeheader()
        writer.writerows({k: round(v, 4) if isinstance(v, float) else v for k, v in row.items()} for row in rows)
    draws = {n: [row["draws"] for row in rows if row["rows"] == n] for n in sorted({row["rows"] for row in rows})}
    commands = [f"`{COMMAND} --rows {n} --draws {min(of)}`" for n, of in draws.items()]
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
        "| function | rows | noise | coverage: default / train / kriging | width ratio 90% | 95% | 99% "
        "| score over kriging |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for row in rows:
        coverages = " / ".join(f"{row[k]:.1%}" for k in ("coverage 90%", "train coverage 90%", "kriging coverage 90%"))
        ratios = " | ".join(f"{r:.2f}" if (r := row.get(f"fair width ratio {level}")) else "" for level in LEVELS)
        lines.append(
            f"| {row['function']} | {row['rows']} | {row['noise']:g} | {coverages} | {ratios} "
            f"| {row['score over kriging 90%']:.2f} |"
        )
    lines.append("")
    for n in draws:
        own = [row for row in rows if row["rows"] == n]
        of = np.array([row["fair width ratio 90%"] for row in own])
        coverage = np.array([row["coverage 90%"] for row in own])
        lines.append(
            f"With {n} rows, width ratios at 90%: geometric mean {np.exp(np.log(of).mean()):.3f}, from {of.min():.2f} "
            f"to {of.max():.2f}; at most 1.10 in {np.sum(of <= 1.1)} of {of.size} kinds. Mean coverage of the "
            f"default {coverage.mean():.1%}."
        )
    lines.append("")
    (out / "simulators.md").write_text("\n".join(lines))
    _draw(rows, out / "simulators.svg")


def _draw(rows: list[dict], path: Path) -> None:
    import matplotlib

    matplotlib.use("Agg")
    matplotlib.rcParams["svg.hashsalt"] = "simulators"
    from matplotlib import pyplot as plt

    names = list(dict.fromkeys(row["function"] for row in rows))
    noises = sorted({row["noise"] for row in rows})
    figure, axes = plt.subplots(figsize=(8, 4), layout="constrained")
    for row in rows:
        x = names.index(row["function"]) + 0.18 * (noises.index(row["noise"]) - 1.5)
        marker, colour = MARKERS[row["rows"]], f"C{noises.index(row['noise'])}"
        axes.plot(x, row["fair width ratio 90%"], marker, color=colour)
    for i, noise in enumerate(noises):
        axes.plot([], [], "o", color=f"C{i}", label=f"noise {noise:g}")
    for n in sorted({row["rows"] for row in rows}):
        axes.plot([], [], MARKERS[n], color="grey", label=f"{n} rows")
    axes.axhline(1.0, color="black", linewidth=0.8)
    axes.set_xticks(range(len(names)), names)
    axes.set_ylabel("width over training-row tuning, 90%")
    axes.legend(ncols=3, fontsize=8)
    figure.savefig(path, metadata={"Date": None})
    plt.close(figure)
