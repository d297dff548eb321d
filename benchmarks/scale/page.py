"""The measurements as part of docs/scale.md, between two marks, with figures."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from benchmarks.problems import LEVELS
from benchmarks.scale import figures
from benchmarks.scale.choices import N_DESIGN, N_INDUCING, N_ROWS
from benchmarks.scale.parts import CHOICE_PARTS, SIZE_PARTS
from benchmarks.scale.rivals import CALIBRATION, RIVALS, SIZES

BEGIN, END = "<!-- measured: begin -->", "<!-- measured: end -->"
Results = Mapping[str, dict[str, Any]]
TITLES = {"smooth": "Smooth synthetic rows", "rough": "Rough synthetic rows", "flights": "Flights"}


def write(docs: Path, results: Results, machine: Sequence[str]) -> None:
    """Replace what is between the marks of ``scale.md`` in the folder ``docs``, and draw the figures."""
    path = docs / "scale.md"
    before, _, rest = path.read_text(encoding="utf-8").partition(BEGIN)
    after = rest.partition(END)[2]
    parts = ["\n".join(f"- {line}" for line in machine), *_sizes(results), *_choices(results), *_rivals(results)]
    path.write_text("\n\n".join([before + BEGIN, *parts, END + after]), encoding="utf-8")
    if find_spec("matplotlib") is not None:
        figures.draw(docs / "figures", results)


def _table(headings: Sequence[str], lines: Iterable[Sequence[str]]) -> str:
    rows = [headings, ["---"] * len(headings), *lines]
    return "\n".join("| " + " | ".join(row) + " |" for row in rows)


def _three(values: Sequence[float], form: str) -> str:
    return " / ".join(format(value, form) for value in values)


def _sizes(results: Results) -> list[str]:
    found = [results[name] for name in SIZE_PARTS if name in results]
    lines = [
        (
            f"{result['rows']:,}",
            f"{result['fit']:.0f} s",
            f"{result['design']:.0f} s",
            f"{result['predict']:.2f} s",
            f"{result['product']:.2f} s",
            f"{result['predict'] / result['product']:.2f}",
            f"{result['looked_at']:,.0f}",
            f"{result['p_values']:.1f} s",
            f"{result['memory']:.1f} GB",
            _three(result["coverage"], ".3f"),
            f"{result['others']:.0%}",
        )
        for result in found
    ]
    headings = (
        "rows",
        "fit",
        "of which design",
        "predict",
        "bare product",
        "ratio",
        "looked at",
        "p-values",
        "memory",
        "coverage",
        "others",
    )
    levels = _three(LEVELS, "g")
    text = (
        "Smooth synthetic rows, eight inputs, 512 inducing inputs, 1,000 test rows, three levels. *Fit* has the design "
        "step in it; *predict* is intervals at all levels; *bare product* is G'w alone for all rows and test rows, by "
        "as many threads; *looked at* is how many training rows decide a test row's three intervals; *memory* is the "
        f"process's peak, training rows included; *coverage* is at {levels}, over 1,000 labels; *others* is the share "
        "of the machine that other processes took. Ten million rows are in a memory map."
    )
    verdict = []
    million = results.get("million")
    if million:
        total, ratio = million["fit"] + million["predict"], million["predict"] / million["product"]
        verdict = [
            f"Targets at a million rows: fit and predict in at most 300 s, measured {total:.0f} s; at most 8 GB, "
            f"measured {million['memory']:.1f} GB; at most 3 times the bare product, measured {ratio:.2f} times."
        ]
    picture = "![Seconds to fit and to predict against the number of rows](figures/scale-rows.svg)"
    return ["### Cost against the number of rows", text, _table(headings, lines), *verdict, picture] if found else []


def _quality(result: Mapping[str, Any]) -> list[str]:
    digits = ".3f" if result["width"][0] < 10 else ".1f"
    return [
        format(result["rmse"], digits),
        _three(result["width"], digits),
        _three(result["score"], digits),
        _three(result["coverage"], ".3f"),
    ]


def _choices(results: Results) -> list[str]:
    parts = []
    for name in CHOICE_PARTS:
        if name in results:
            choices = {choice: value for choice, value in results[name].items() if choice != "others"}
            headings = ("choice", "RMSE", "width", "interval score", "coverage", "fit")
            lines = [(choice, *_quality(value), f"{value['fit']:.0f} s") for choice, value in choices.items()]
            parts += [f"**{TITLES[name.removeprefix('choices-')]}**", _table(headings, lines)]
    text = (
        f"{N_ROWS:,} rows, {N_INDUCING} inducing inputs, {N_DESIGN} design rows, widths and scores at "
        f"{_three(LEVELS, 'g')}. The first line is the default: hyperparameters by the exact likelihood of 1000 design "
        "rows, k-means, FITC; each other line differs in what it says. For the bound and the FITC likelihood, *fit* is "
        "the seconds of learning alone, from the first line's optimum on."
    )
    return ["### Choices inside the model", text, *parts] if parts else []


def _rivals(results: Results) -> list[str]:
    parts = []
    for data, (n_rows, n_test) in SIZES.items():
        found = {
            rival: results[f"rivals-{data}-{number}"]
            for number, rival in enumerate(RIVALS)
            if f"rivals-{data}-{number}" in results
        }
        if found:
            headings = ("method", "RMSE", "width", "interval score", "coverage", "fit", "predict", "memory")
            lines = [
                (
                    rival,
                    *_quality(value),
                    f"{value['fit']:.0f} s",
                    f"{value['predict']:.1f} s",
                    f"{value['memory']:.1f} GB",
                )
                for rival, value in found.items()
            ]
            parts += [f"**{TITLES[data]}**: {n_rows:,} rows, {n_test:,} test rows", _table(headings, lines)]
    text = (
        f"The same rows and test labels for all; levels {_three(LEVELS, 'g')}. All Gaussian processes have a Matérn "
        "5/2 kernel with a length scale for each input, and a linear mean. The sparse ones of GPyTorch have 512 "
        "inducing inputs like ours, but train them too, and take their intervals from split conformal prediction "
        f"(errors over predicted standard deviation) on {CALIBRATION:.0%} of the rows, which their training does "
        "without; so do the trees (plain errors)."
    )
    picture = "![Interval score, of which less is better, against seconds](figures/scale-rivals.svg)"
    return ["### Side by side", text, *parts, picture] if parts else []
