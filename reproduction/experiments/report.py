"""Write the results: tables, figures, the runs behind them, and a page on how far they agree with the paper."""

from __future__ import annotations

import csv
import io
import platform
from collections.abc import Callable, Sequence
from importlib.metadata import version
from pathlib import Path

from conformal_gp import __version__
from reproduction.experiments import figures, tables
from reproduction.experiments.checks import Agreement, agreement, claims
from reproduction.experiments.methods import COVARIANCES, LEVELS
from reproduction.experiments.paper import Row
from reproduction.experiments.protocol import TABLES
from reproduction.experiments.results import Results, summarise


def _by(*methods: str) -> Callable[[str, Row], bool]:
    return lambda data_set, row: row.method in methods


GROUPS: dict[str, Callable[[str, Row], bool]] = {
    "GPR": _by("GPR"),
    "GPR-CP": _by("GPR-CP"),
    "GPR and GPR-CP": _by("GPR", "GPR-CP"),
    "the same without GPR on CPU Performance": lambda data_set, row: (
        row.method == "GPR-CP" or (row.method == "GPR" and data_set != "cpu")
    ),
    **{method: _by(method) for method in ("GPR-RI", "GPR-RB", "GPR-RM", "GPR-RC", "RR-CP", "kNNR-CP")},
}
"""Groups of cells whose agreement is counted together."""
PACKAGES = ("numpy", "scipy", "scikit-learn", "joblib")
SAMPLE = "**Only a sample:** a few folds of one run, to see that everything works. Do not compare these numbers."


def write(
    folds: Sequence[dict],
    out: Path,
    *,
    selection: Sequence[str],
    draw: bool,
    command: str,
    sample: bool,
) -> str:
    """Write tables, figures, runs and a page into a folder from the results of ``one_fold``; returns the page.

    ``selection`` names the tables, ``command`` is how the page says it was made, ``sample`` says whether only a sample
    of the folds was run.
    """
    out.mkdir(parents=True, exist_ok=True)
    results = summarise(folds)
    for table in selection:
        for ending, written in tables.FORMATS.items():
            text = written(TABLES[table], results)
            if ending == "md":
                text = f"# Table {table[-1]} of the paper\n\n" + (f"{SAMPLE}\n\n" if sample else "") + text
            (out / f"{table}.{ending}").write_text(text, encoding="utf-8")
    _write_runs(results, out / "runs.csv")
    pictures = figures.draw(results, out) if draw else []
    page = "\n".join(
        ["# The paper, run again: results", ""]
        + ([SAMPLE, ""] if sample else [])
        + _made_by(command, folds)
        + ["", "Tables: " + ", ".join(f"[{table}]({table}.md)" for table in selection) + ".", ""]
        # A sample can neither agree with the paper nor refute it.
        + ([] if sample else _agreement_lines(results) + _claim_lines(results))
        + _likelihood_lines(results)
        + [f"\n![{path.stem}]({path.name})\n\n*{caption}*" for path, caption in pictures]
    )
    (out / "results.md").write_text(f"{page}\n", encoding="utf-8")
    return page


def _made_by(command: str, folds: Sequence[dict]) -> list[str]:
    versions = ", ".join(f"{package} {version(package)}" for package in PACKAGES)
    spent: dict[str, float] = {}
    count: dict[str, int] = {}
    for fold in folds:
        unit = "GPR and GPR-CP" if fold["unit"] in COVARIANCES else fold["unit"]
        spent[unit] = spent.get(unit, 0.0) + fold["seconds"]
        count[unit] = count.get(unit, 0) + 1
    return [
        f"Made by `{command}` with conformal-gp {__version__}, Python {platform.python_version()}, {versions}. "
        "It took, in minutes of one core:",
        "",
        "| methods | fits | minutes |",
        "|---|--:|--:|",
        *(f"| {unit} | {count[unit]} | {seconds / 60:.1f} |" for unit, seconds in spent.items()),
        f"| all | {len(folds)} | {sum(spent.values()) / 60:.1f} |",
    ]


def _agreement_lines(results: Results) -> list[str]:
    lines = [
        "## Agreement with the paper",
        "",
        "Cells whose mean width is within 3, 8, 10 or 20% of the paper's, of those finite in the paper; infinite cells "
        "that are infinite here too; cells whose share outside is within three of our standard errors of the paper's.",
        "",
        "| cells of | runs | 3% | 8% | 10% | 20% | infinite | share outside |",
        "|---|--:|--:|--:|--:|--:|--:|--:|",
    ]
    for title, counted in GROUPS.items():
        counts = agreement(counted, results)
        if counts.cells:
            runs = sorted({str(len(found.misses)) for key, found in results.items() if counted(*key)})
            lines.append(f"| {title} | {', '.join(runs)} | {_shares(counts)} |")
    return [*lines, ""]


def _shares(counts: Agreement) -> str:
    cells = [f"{100 * within / counts.finite:.0f}%" if counts.finite else "" for within in counts.within.values()]
    cells.append(f"{counts.infinite_too} of {counts.infinite}" if counts.infinite else "")
    cells.append(f"{100 * counts.miscoverage / counts.cells:.0f}%")
    return " | ".join(cells)


def _claim_lines(results: Results) -> list[str]:
    lines = ["## The paper's claims", "", "| | claim | in our run |", "|---|---|---|"]
    for check in claims(results):
        lines.append(f"| {'holds' if check.passed else '**fails**'} | {check.claim} | {check.evidence} |")
    return [*lines, ""]


def _likelihood_lines(results: Results) -> list[str]:
    names = [name for name, row in results if row == Row("GPR", "SE")]
    lines = [
        "## Log marginal likelihoods",
        "",
        "Of the training labels, mean over folds.",
        "",
        "| data set | " + " | ".join(COVARIANCES) + " |",
        "|---|" + "--:|" * len(COVARIANCES),
    ]
    for name in names:
        found = [results.get((name, Row("GPR", covariance))) for covariance in COVARIANCES]
        values = ["" if each is None else f"{each.log_likelihood:.2f}" for each in found]
        lines.append(f"| {tables.TITLES[name]} | " + " | ".join(values) + " |")
    return lines


def _write_runs(results: Results, path: Path) -> None:
    """A line for each row of a table and run: mean widths and miscoverage at all levels."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    percents = [f"{100 * level:g}" for level in LEVELS]
    head = ["data_set", "method", "covariance", "gamma", "run"]
    writer.writerow(head + [f"width_{p}" for p in percents] + [f"outside_{p}" for p in percents])
    for (data_set, row), outcome in results.items():
        gamma = "" if row.gamma is None else f"{row.gamma:g}"
        for run, (widths, misses) in enumerate(zip(outcome.widths, outcome.misses, strict=True)):
            numbers = [f"{width:.6g}" for width in widths] + [f"{miss:.4g}" for miss in misses]
            writer.writerow([data_set, row.method, row.covariance, gamma, run, *numbers])
    path.write_text(text.getvalue(), encoding="utf-8")
