"""The price of the guarantee in one picture: width over training-row tuning, in all cells, the default now and before.

``python -m studies.price`` writes docs/guarantee/price.{csv,svg} from the results of ``studies.simulators`` and
``studies.coverage``, and from those of the earlier default: a list of candidates, one length scale, a linear mean.
"""

from __future__ import annotations

import csv
import json
from collections import defaultdict
from pathlib import Path

import numpy as np

from studies.simulators_page import fair_ratio

OUT = Path("docs/guarantee")
# Training-row tuning is no yardstick where it covers less than this at nominal 90%.
LEAST_COVERAGE = 0.88


def of_simulators() -> list[dict]:
    """Test functions: over "train", at equal coverage where that falls short; both defaults on the same draws."""
    now, before = (_raw(Path(f"build/{name}.jsonl")) for name in ("simulators", "simulators_earlier"))
    rows = []
    for name, n_rows, noise, method in now:
        if method != "default" or (name, n_rows, noise, "default") not in before:
            continue
        train = now[name, n_rows, noise, "train"]
        shared = before[name, n_rows, noise, "default"].keys()
        ratio = fair_ratio(list(now[name, n_rows, noise, "default"].values()), list(train.values()), 0, 0.9)
        earlier = fair_ratio(
            [before[name, n_rows, noise, "default"][seed] for seed in shared], [train[seed] for seed in shared], 0, 0.9
        )
        rows.append({"cell": f"{name}, noise {noise:g}", "rows": n_rows, "now": ratio, "before": earlier})
    return rows


def _raw(path: Path) -> dict[tuple, dict[int, dict]]:
    """Results by kind of data and method, then by seed."""
    found: dict[tuple, dict[int, dict]] = defaultdict(dict)
    for task in map(json.loads, path.read_text().splitlines()):
        name, n_rows, noise, seed, method = task["key"]
        found[name, n_rows, noise, method][seed] = task
    return found


def of_cells() -> list[dict]:
    """Simulated data: over "train", or over known hyperparameters where that falls short."""
    now, before = (_cells(OUT / name) for name in ("coverage.csv", "earlier/coverage.csv"))
    rows = []
    for name, own in now.items():
        ratios = {}
        for when, methods in (("now", own), ("before", before.get(name))):
            if methods is None:
                ratios[when] = np.nan
                continue
            yardstick = "train" if float(methods["train"]["coverage"]) >= LEAST_COVERAGE else "known"
            ratios[when] = float(methods["augmented"]["mean width"]) / float(methods[yardstick]["mean width"])
        rows.append({"cell": name, "rows": int(own["train"]["l"]), **ratios})
    return rows


def _cells(path: Path) -> dict[str, dict[str, dict]]:
    """Rows of the study's table at 90%, by cell and method."""
    found: dict[str, dict[str, dict]] = defaultdict(dict)
    with path.open() as file:
        for row in csv.DictReader(file):
            if float(row["level"]) == 0.9:
                found[row["cell"]][row["method"]] = row
    return found


def main() -> None:
    """Write table and picture."""
    simulators, cells = of_simulators(), of_cells()
    with (OUT / "price.csv").open("w", newline="") as file:
        writer = csv.DictWriter(file, ["cell", "rows", "now", "before"], lineterminator="\n")
        writer.writeheader()
        writer.writerows(
            {k: f"{v:.4g}" if isinstance(v, float) else v for k, v in row.items()} for row in simulators + cells
        )
    draw(simulators, cells, OUT / "price.svg")
    for title, rows in (("Test functions", simulators), ("Simulated data", cells)):
        for when in ("before", "now"):
            ratios = np.array([row[when] for row in rows])
            ratios = ratios[np.isfinite(ratios)]
            print(
                f"{title}, {when}: geometric mean {np.exp(np.log(ratios).mean()):.3f}, {ratios.min():.2f} to "
                f"{ratios.max():.2f}, {ratios.size} kinds"
            )


def draw(simulators: list[dict], cells: list[dict], path: Path) -> None:
    """A row for each kind of data, sorted: a hollow mark for the earlier default, a full one for the present."""
    import matplotlib

    matplotlib.use("Agg")
    matplotlib.rcParams["svg.hashsalt"] = "price"
    from matplotlib import pyplot as plt

    figure, axes = plt.subplots(1, 2, figsize=(9, 4), layout="constrained", sharey=True)
    titles = "test functions of computer experiments", "simulated data"
    for ax, title, rows in zip(axes, titles, (simulators, cells), strict=True):
        for k, n_rows in enumerate(sorted({row["rows"] for row in rows})):
            own = sorted((row for row in rows if row["rows"] == n_rows), key=lambda row: row["now"])
            place = k + np.linspace(-0.35, 0.35, len(own))
            ax.plot(place, [row["before"] for row in own], "o", mfc="none", color="#d55e00", markersize=4)
            ax.plot(place, [row["now"] for row in own], "o", color="#0072b2", markersize=4)
        sizes = sorted({row["rows"] for row in rows})
        ax.set_xticks(range(len(sizes)), [f"{n} rows" for n in sizes])
        ax.axhline(1.0, color="black", linewidth=0.8)
        ax.set_title(title, fontsize=10)
        ax.spines[["top", "right"]].set_visible(False)
    axes[0].set_yscale("log")
    ticks = [0.7, 1, 1.5, 2, 3, 5, 10, 20]
    axes[0].set_yticks(ticks, [f"{tick:g}" for tick in ticks])
    axes[0].minorticks_off()
    axes[0].set_ylabel("90% width over training-row tuning")
    axes[0].plot([], [], "o", mfc="none", color="#d55e00", label="earlier default")
    axes[0].plot([], [], "o", color="#0072b2", label="default")
    axes[0].legend(frameon=False, fontsize=9)
    figure.savefig(path, metadata={"Date": None})
    plt.close(figure)


if __name__ == "__main__":
    main()
