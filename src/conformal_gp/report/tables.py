"""Tables of the page. All text from the data is escaped."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from fractions import Fraction
from html import escape
from typing import Any

from conformal_gp.evaluation import Finding, HeldOut, Judgement, coverage_by_parts
from conformal_gp.evaluation.cross_validation import MOST_COLUMNS
from conformal_gp.evaluation.kernel_words import TUNING, kernel_in_words
from conformal_gp.formatting import percent
from conformal_gp.report.chart import CONFORMAL, decimals, text
from conformal_gp.report.words import LEVELS, Notice
from conformal_gp.validation import input_names

ROWS_SHOWN = 200
WORDS = ("method", "verdict")  # columns of words


def table(head: Sequence[str], rows: Iterable[Sequence[str]], *, caption: str, kind: str = "numbers") -> str:
    """An HTML table of plain text, of the kind "numbers" or "words"; the first cell of each row is its heading."""
    top = "".join(f'<th scope="col"{_aligned(name)}>{escape(name)}</th>' for name in head)
    classes = [_aligned(name) for name in head[1:]] or [""]
    body = ""
    for first, *rest in rows:
        cells = (f"<td{each}>{escape(cell)}</td>" for each, cell in zip(classes, rest, strict=True))
        body += f'<tr><th scope="row">{escape(first)}</th>{"".join(cells)}</tr>'
    if top:
        top = f"<thead><tr>{top}</tr></thead>"
    return (
        f'<div class="scroll" tabindex="0" role="region" aria-label="{escape(caption)}"><table class="{kind}">'
        f"<caption>{escape(caption)}</caption>{top}<tbody>{body}</tbody></table></div>"
    )


def _aligned(name: str) -> str:
    """Attribute of the cells of a column, by its name: some have words in a table of numbers."""
    if name in WORDS:
        return ' class="word"'
    return ""


def notice_list(notices: Sequence[Notice]) -> str:
    """What to look at, as a list."""
    return "".join(
        f'<li class="{"warns" if notice.warns else "notes"}"><strong>{escape(notice.topic)}.</strong> '
        f"{escape(notice.text[0].upper() + notice.text[1:])}</li>"
        for notice in notices
    )


def coverage_table(held_out: HeldOut) -> str:
    """Coverage and widths of each method at some levels, and the expected range."""
    digits = decimals(held_out.y, held_out.intervals[CONFORMAL])
    rows = [
        (
            percent(finding.level),
            finding.method,
            percent(finding.coverage, 1),
            finding.expected_in_words,
            text(finding.median_width, digits),
            finding.judgement.value,
        )
        for finding in held_out.findings(LEVELS)
    ]
    head = ("level", "method", "coverage", "expected", "median width", "verdict")
    return table(head, rows, caption="Coverage and width")


def subgroups(held_out: HeldOut, X: Any, level: Fraction) -> str:
    """Coverage by group, by fifths of the prediction, and by each input."""
    digits = decimals(held_out.y, held_out.intervals[CONFORMAL])
    by_prediction = coverage_by_parts(held_out, None, level)
    found = {
        "By group": held_out.by_group([level]),
        "By fifths of the prediction": by_prediction,
        "By each input": coverage_by_parts(held_out, X, level)[len(by_prediction) :],
    }
    return "".join(_part_table(parts, f"{name}, at {percent(level)}", digits) for name, parts in found.items() if parts)


def _part_table(found: Sequence[Finding], caption: str, digits: int) -> str:
    """Coverage and widths of subgroups."""
    marks = {Judgement.TOO_NARROW: "✕ too narrow", Judgement.IN_DOUBT: "perhaps too narrow"}
    rows = [
        (
            part.among,
            f"{part.n_rows:,}",
            percent(part.coverage, 1),
            text(part.median_width, digits),
            marks.get(part.judgement, ""),
        )
        for part in found[: 5 * ROWS_SHOWN]
    ]
    return table(("rows where", "rows", "coverage", "median width", "verdict"), rows, caption=caption)


def importance(held_out: HeldOut) -> str:
    """Permutation importance of the inputs, if it was measured."""
    if not held_out.importance:
        return f"<p>Not measured with more than {MOST_COLUMNS} inputs.</p>"
    rows = [(name, f"{share:+.0%}".replace("-", "\N{MINUS SIGN}")) for name, share in held_out.importance.items()]
    return table(("input", "increase in error"), rows[:ROWS_SHOWN], caption="Permutation importance")


def model_table(model: Any) -> str:
    """Parameters of the fitted model."""
    transformation = "none"
    if model.target_transform_ is not None:
        transformation = model.target_transform_.name.strip("'")
    difficulty = "no"
    if model.difficulty_ is not None:
        difficulty = "yes"
    names = [str(name) for name in input_names(model)]
    facts = {
        "method": type(model).__name__,
        "kernel": kernel_in_words(model.kernel_, model.noise_variance_, names, model.scale_inputs),
        "mean function": model.mean_,
        "hyperparameters": TUNING[getattr(model, "tuning_", model.tuning)],
        "target transformation": transformation,
        "difficulty model": difficulty,
    }
    return table(("setting", "value"), facts.items(), caption="The model, fitted to all rows", kind="words")
