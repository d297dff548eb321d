"""The paper's tables with our numbers beside the paper's, as Markdown, CSV and LaTeX."""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

from reproduction.experiments.paper import PAPER_LEVELS, Printed, Row, printed, rows_of
from reproduction.experiments.protocol import TABLES
from reproduction.experiments.results import Cell, Results

TITLES = {
    "artificial_well_specified": "Artificial data, known hyperparameters",
    "artificial_outliers": "Artificial data with outliers, learnt hyperparameters",
    "boston": "Boston Housing",
    "auto_mpg": "Auto-mpg",
    "cpu": "CPU Performance",
    "servo": "Servo",
}
COVARIANCE_TITLES = {"Matern32": "Matérn 3/2", "Matern52": "Matérn 5/2"}
LEGEND = (
    "Mean width of the intervals and share of labels outside them, in percent. In each cell our mean over runs ± its "
    "standard error stands above the paper's number. As in the paper, an asterisk marks rows that are well calibrated "
    "on all data sets of the table, here: the share outside is at most 30% above the nominal one at all three levels, "
    "two standard errors allowed. Bold is the smallest width among these."
)
FIELDS = (
    *("data_set", "method", "covariance", "gamma", "confidence"),
    *("width", "width_error", "paper_width", "miscoverage", "miscoverage_error", "paper_miscoverage"),
    *("well_calibrated", "runs"),
)


class Entry(NamedTuple):
    """A cell of ours beside the paper's."""

    ours: Cell
    paper: Printed
    best: bool


class Notation(NamedTuple):
    """How a format writes infinity, plus-minus and bold."""

    infinity: str
    plus_minus: str
    bold: str


MARKDOWN = Notation("∞", " ± ", "**{}**")
LATEX = Notation(r"$\infty$", r"$\pm$", r"\textbf{{{}}}")


def markdown(data_sets: Sequence[str], results: Results) -> str:
    """A table for each data set."""
    lines = [LEGEND]
    levels = [f"width {p}%" for p in PAPER_LEVELS] + [f"outside {p}%" for p in PAPER_LEVELS]
    for data_set in data_sets:
        lines += ["", f"## {TITLES[data_set]}", ""]
        lines.append(_markdown_line(["method", "covariance", "gamma", *levels]))
        lines.append(_markdown_line(["---"] * 3 + ["--:"] * len(levels)))
        for row, entries in _lines(data_set, results):
            star = r" \*" if well_calibrated(data_set, row, results) else ""
            cells = [f"{ours}<br>{paper}" for ours, paper in _texts(entries, data_set, MARKDOWN)]
            lines.append(_markdown_line([row.method + star, covariance_title(row), _gamma(row, "∞"), *cells]))
    return "\n".join(lines) + "\n"


def latex(data_sets: Sequence[str], results: Results) -> str:
    """One table in the paper's layout, data sets side by side. Each of our lines is followed by the paper's."""
    n = len(data_sets)
    titles = [r"\multicolumn{6}{c}{" + TITLES[name] + "}" for name in data_sets]
    parts = [r"\multicolumn{3}{c}{Mean width}", r"\multicolumn{3}{c}{Miscoverage (\%)}"]
    levels = [rf"{percent}\%" for percent in PAPER_LEVELS]
    lines = [
        r"\begin{tabular}{lcc" + "rrrrrr" * n + r"} \hline",
        _latex_line(["", "", "", *titles]) + r" \hline",
        _latex_line(["Method", "Covariance", r"$\gamma$", *parts * n]),
        _latex_line(["", "", "", *levels * 2 * n]) + r" \hline",
    ]
    by_set = [dict(_lines(name, results)) for name in data_sets]
    group = None
    for row in by_set[0]:
        if group not in (None, (row.method, row.gamma and row.covariance)):
            lines.append(r"\hline")
        group = row.method, row.gamma and row.covariance
        star = " *" if well_calibrated(data_sets[0], row, results) else ""
        texts = [
            text for name, found in zip(data_sets, by_set, strict=True) for text in _texts(found[row], name, LATEX)
        ]
        method, covariance = row.method.replace("kNN", "$k$NN"), covariance_title(row).replace("é", r"\'e")
        lines.append(
            _latex_line([method + star, covariance, _gamma(row, LATEX.infinity), *(ours for ours, _ in texts)])
        )
        lines.append(_latex_line([r"\textit{paper}", "", "", *(rf"\textit{{{paper}}}" for _, paper in texts)]))
    return "\n".join([*lines, r"\hline", r"\end{tabular}"]) + "\n"


def comma_separated(data_sets: Sequence[str], results: Results) -> str:
    """One line per cell."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(FIELDS)
    for data_set in data_sets:
        for row, entries in _lines(data_set, results):
            calibrated = int(well_calibrated(data_set, row, results))
            for percent, (ours, paper, _) in zip(PAPER_LEVELS, entries, strict=True):
                widths = ours.width, ours.width_error, paper.width
                misses = ours.miscoverage, ours.miscoverage_error, paper.miscoverage
                numbers = [f"{number:.6g}" for number in (*widths, *misses)]
                names = data_set, row.method, row.covariance, _gamma(row, "inf"), percent
                writer.writerow([*names, *numbers, calibrated, ours.runs])
    return text.getvalue()


FORMATS: dict[str, Callable[[Sequence[str], Results], str]] = {"md": markdown, "csv": comma_separated, "tex": latex}
"""Formats by the ending of their files."""


def well_calibrated(data_set: str, row: Row, results: Results) -> bool:
    """Whether a row is well calibrated on all data sets of the paper's table that ``data_set`` is in."""
    (together,) = (names for names in TABLES.values() if data_set in names)
    return all(results[name, row].calibrated() for name in together if (name, row) in results)


def narrowest(data_set: str, percent: int, results: Results) -> Row | None:
    """The row of smallest mean width among the well calibrated ones, None when there is none."""
    rows = [row for name, row in results if name == data_set and well_calibrated(name, row, results)]
    return min(rows, key=lambda row: results[data_set, row].cell(percent).width, default=None)


def covariance_title(row: Row) -> str:
    """The covariance function as a table names it."""
    return COVARIANCE_TITLES.get(row.covariance, row.covariance)


def _lines(data_set: str, results: Results) -> Iterator[tuple[Row, list[Entry]]]:
    """The rows that were run, in the paper's order, with their cells."""
    best = {percent: narrowest(data_set, percent, results) for percent in PAPER_LEVELS}
    for row in rows_of(data_set):
        if (data_set, row) in results:
            outcome = results[data_set, row]
            yield row, [Entry(outcome.cell(p), printed()[data_set, row, p], row == best[p]) for p in PAPER_LEVELS]


def _texts(entries: list[Entry], data_set: str, notation: Notation) -> list[tuple[str, str]]:
    """Our text and the paper's: widths of the three levels, then miscoverage."""
    digits = 2 if data_set == "cpu" else 3  # as printed
    texts = []
    for ours, paper, best in entries:
        width = _with_error(ours.width, ours.width_error, digits, notation)
        printed_width = _number(paper.width, digits, notation.infinity)
        texts.append((notation.bold.format(width) if best else width, printed_width))
    for ours, paper, _ in entries:
        texts.append((_with_error(ours.miscoverage, ours.miscoverage_error, 2, notation), f"{paper.miscoverage:.2f}"))
    return texts


def _number(value: float, digits: int, infinity: str) -> str:
    return infinity if math.isinf(value) else f"{value:.{digits}f}"


def _with_error(value: float, error: float, digits: int, notation: Notation) -> str:
    text = _number(value, digits, notation.infinity)
    return text if math.isnan(error) else f"{text}{notation.plus_minus}{error:.{digits}f}"


def _gamma(row: Row, infinity: str) -> str:
    return "" if row.gamma is None else _number(row.gamma, 0, infinity)


def _markdown_line(cells: Sequence[str]) -> str:
    return "| " + " | ".join(cells) + " |"


def _latex_line(cells: Sequence[str]) -> str:
    return " & ".join(cells) + r" \\"
