"""The price of the guarantee in one picture: width over training-row tuning, the default now and before.

``python -m reproduction.studies.price`` writes reproduction/results/guarantee/price.{csv,svg} from the results of ``studies.simulators``. Those of
the earlier default (a list of candidates, one length scale, a linear mean), which is no longer a part of the package,
are kept in the table: up to two draws of each kind.
"""

from __future__ import annotations

import csv
import json
from collections import defaultdict
from pathlib import Path

import numpy as np

from reproduction.studies.simulators_page import fair_ratio

OUT = Path("reproduction/results/guarantee")


def of_simulators() -> list[dict]:
    """Test functions: over "train", at equal coverage where that falls short."""
    now = _raw(Path("build/simulators.jsonl"))
    with (OUT / "price.csv").open(newline="") as file:
        before = {(row["cell"], int(row["rows"])): float(row["before"]) for row in csv.DictReader(file)}
    rows = []
    for name, n_rows, noise, method in now:
        cell = f"{name}, noise {noise:g}"
        if method == "default" and (cell, n_rows) in before:
            default, train = (list(now[name, n_rows, noise, way].values()) for way in ("default", "train"))
            ratio = fair_ratio(default, train, 0, 0.9)
            rows.append({"cell": cell, "rows": n_rows, "now": ratio, "before": before[cell, n_rows]})
    return rows


def _raw(path: Path) -> dict[tuple, dict[int, dict]]:
    """Results by kind of data and method, then by seed."""
    found: dict[tuple, dict[int, dict]] = defaultdict(dict)
    for task in map(json.loads, path.read_text().splitlines()):
        name, n_rows, noise, seed, method = task["key"]
        found[name, n_rows, noise, method][seed] = task
    return found


def main() -> None:
    """Write table and picture."""
    rows = of_simulators()
    with (OUT / "price.csv").open("w", newline="") as file:
        writer = csv.DictWriter(file, ["cell", "rows", "now", "before"], lineterminator="\n")
        writer.writeheader()
        writer.writerows({k: f"{v:.4g}" if isinstance(v, float) else v for k, v in row.items()} for row in rows)
    draw(rows, OUT / "price.svg")
    for when in ("before", "now"):
        ratios = np.array([row[when] for row in rows])
        print(f"{when}: geometric mean {np.exp(np.log(ratios).mean()):.3f}, {ratios.min():.2f} to {ratios.max():.2f}")


def draw(rows: list[dict], path: Path) -> None:
    """A place for each kind of data, sorted: a hollow mark for the earlier default, a full one for the present."""
    import matplotlib

    matplotlib.use("Agg")
    matplotlib.rcParams["svg.hashsalt"] = "price"
    from matplotlib import pyplot as plt

    figure, ax = plt.subplots(figsize=(8, 4), layout="constrained")
    sizes = sorted({row["rows"] for row in rows})
    for k, n_rows in enumerate(sizes):
        own = sorted((row for row in rows if row["rows"] == n_rows), key=lambda row: row["before"])
        place = k + np.linspace(-0.4, 0.4, len(own))
        ax.plot(place, [row["before"] for row in own], "o", mfc="none", color="#d55e00", markersize=5)
        ax.plot(place, [row["now"] for row in own], "o", color="#0072b2", markersize=5)
    ax.plot([], [], "o", mfc="none", color="#d55e00", label="earlier default")
    ax.plot([], [], "o", color="#0072b2", label="default")
    ax.axhline(1.0, color="black", linewidth=0.8)
    ax.set_xticks(range(len(sizes)), [f"{n} rows" for n in sizes])
    ax.set_yscale("log")
    ticks = [0.7, 1, 1.5, 2, 3, 5, 10, 20, 40]
    ax.set_yticks(ticks, [f"{tick:g}" for tick in ticks])
    ax.minorticks_off()
    ax.set_ylabel("90% width over training-row tuning")
    ax.legend(frameon=False)
    ax.spines[["top", "right"]].set_visible(False)
    figure.savefig(path, metadata={"Date": None})
    plt.close(figure)


if __name__ == "__main__":
    main()
