"""The measurements as a page."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from benchmarks.problems import LEVELS
from benchmarks.results import table
from benchmarks.scale.rivals import CALIBRATION, RIVALS, SIZES

Results = Mapping[str, dict[str, Any]]
TITLES = {"rough": "Rough synthetic rows", "flights": "Flights"}


def write(path: Path, results: Results, machine: Sequence[str]) -> None:
    """Write the page."""
    parts = ["# Many rows", "Made by `python -m benchmarks.scale`.", "\n".join(f"- {line}" for line in machine)]
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("\n\n".join([*parts, *_sizes(results), *_rivals(results)]) + "\n", encoding="utf-8")


def _three(values: Sequence[float], form: str) -> str:
    return " / ".join(format(value, form) for value in values)


def _sizes(results: Results) -> list[str]:
    lines = [
        (
            f"{result['rows']:,}",
            f"{result['fit']:.0f} s",
            f"{result['predict']:.2f} s",
            f"{result['product']:.2f} s",
            f"{result['predict'] / result['product']:.2f}",
            f"{result['memory']:.1f} GB",
            _three(result["coverage"], ".3f"),
            f"{result['others']:.0%}",
        )
        for name, result in results.items()
        if name.startswith("rows-")
    ]
    headings = ("rows", "fit", "predict", "bare product", "ratio", "memory", "coverage", "others")
    text = (
        "Smooth synthetic rows, eight inputs, 512 inducing inputs, 1,000 test rows, three levels. *Predict* is "
        "intervals at all levels; *bare product* is G'w alone for all rows and test rows, by as many threads; *memory* "
        "is the process's peak, training rows included; *coverage* is at "
        f"{_three(LEVELS, 'g')}, over 1,000 labels; *others* is the share of the machine that other processes took. "
        "Targets at a million rows: at most 300 s, 8 GB and 3 times the bare product."
    )
    return ["### Cost against the number of rows", text, table(headings, lines)] if lines else []


def _rivals(results: Results) -> list[str]:
    parts = []
    headings = ("method", "RMSE", "width", "interval score", "coverage", "fit", "predict", "memory")
    for data, (n_rows, n_test) in SIZES.items():
        lines = []
        for number, rival in enumerate(RIVALS):
            if value := results.get(f"{data}-{number}"):
                digits = ".3f" if value["width"][0] < 10 else ".1f"
                quality = (_three(value[name], digits) for name in ("width", "score"))
                costs = f"{value['fit']:.0f} s", f"{value['predict']:.1f} s", f"{value['memory']:.1f} GB"
                covered = _three(value["coverage"], ".3f")
                lines.append((rival, format(value["rmse"], digits), *quality, covered, *costs))
        if lines:
            parts += [f"**{TITLES[data]}**: {n_rows:,} rows, {n_test:,} test rows", table(headings, lines)]
    text = (
        f"The same rows and test labels for all; levels {_three(LEVELS, 'g')}. All Gaussian processes have a Matérn "
        "5/2 kernel with a length scale for each input, and a linear mean. GPyTorch's sparse one has 512 inducing "
        "inputs like ours, but trains them too, and takes its intervals from split conformal prediction (errors over "
        f"predicted standard deviation) on {CALIBRATION:.0%} of the rows, which its training does without; so do the "
        "trees (plain errors)."
    )
    return ["### Side by side", text, *parts] if parts else []
