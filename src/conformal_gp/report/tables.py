"""Tables and sentences of the page. All text from the data is escaped."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from fractions import Fraction
from html import escape
from typing import Any

import numpy as np

from conformal_gp import __version__
from conformal_gp.evaluation import (
    Finding,
    HeldOut,
    Judgement,
    coverage_by_parts,
    summary,
)
from conformal_gp.evaluation.kernel_words import TUNING, kernel_in_words
from conformal_gp.formatting import percent
from conformal_gp.report.chart import CONFORMAL, PERCENTS, STANDARD, decimals, text
from conformal_gp.validation import input_names

LEVELS = tuple(Fraction(percents, 100) for percents in (50, 80, 90, 95, 99))
PART_LEVEL = Fraction(9, 10)
ROWS_SHOWN = 200


def table(head: Sequence[str], rows: Iterable[Sequence[str]], *, caption: str, kind: str = "numbers") -> str:
    """An HTML table of plain text, of the kind "numbers" or "words"; the first cell of each row is its heading."""
    top = "".join(f'<th scope="col">{escape(cell)}</th>' for cell in head)
    body = "".join(
        f'<tr><th scope="row">{escape(first)}</th>' + "".join(f"<td>{escape(cell)}</td>" for cell in rest) + "</tr>"
        for first, *rest in rows
    )
    return (
        f'<div class="scroll" tabindex="0" role="region" aria-label="{escape(caption)}"><table class="{kind}">'
        f"<caption>{escape(caption)}</caption><thead><tr>{top}</tr></thead><tbody>{body}</tbody></table></div>"
    )


def paragraphs(sentences: Iterable[str]) -> str:
    """Write sentences as paragraphs."""
    return "".join(f"<p>{escape(line[0].upper() + line[1:])}</p>" for line in sentences)


def in_short(held_out: HeldOut, X: Any, n_rows: int) -> list[str]:
    """Summarise how rows were held out, the verdict, where intervals are infinite, and advice."""
    how = f"Each of the {n_rows} rows was predicted by a model that was not fitted to it (cross-validation)."
    if held_out.y.size < n_rows:
        how = f"{held_out.y.size} of the {n_rows} rows were held out, and predicted by a model not fitted to them."
    infinite = np.isinf(held_out.intervals[CONFORMAL]).all(axis=1).mean(axis=0)
    finite = [level for level in LEVELS if infinite[held_out.levels.index(level)] < 1.0] or [LEVELS[0]]
    shown = [level for level in finite if level >= PART_LEVEL] or finite[-1:]
    sentences = [how]
    if infinite[-1] > 0:
        sentences.append(
            f"From {PERCENTS[int(np.argmax(infinite > 0))]}% on, some intervals are infinite: there are too few rows "
            "for these levels."
        )
    return [*sentences, *summary(held_out.at(shown), X)]


def guarantee(statement: str) -> str:
    """State whether intervals are guaranteed, and quote the model's own statement."""
    opening = "These intervals are not guaranteed."
    meaning = (
        "About 95 in 100 new rows like these should have their true value inside 95% intervals, but it can be fewer. "
        "The default way of tuning has a guarantee."
    )
    if statement.startswith("Valid"):
        opening = "These intervals are guaranteed up to Monte Carlo error."
        if statement.startswith("Valid:"):
            opening = "These intervals are guaranteed."
        meaning = (
            "95% intervals contain the true value of at least 95 in 100 new rows like these, on average over data sets "
            "and rows. This does not depend on whether the model is right: a poor model gives wide intervals, not "
            "invalid ones."
        )
    own = f"The model's own statement: <q>{escape(statement)}</q>"
    return f"<p><strong>{opening}</strong> {meaning}</p><p>{own}</p>"


def coverage_table(held_out: HeldOut) -> str:
    """Coverage and widths at some levels, and the expected range."""
    digits = decimals(held_out.y, held_out.intervals[CONFORMAL])
    found = {(finding.method, finding.level): finding for finding in held_out.findings(LEVELS)}
    rows = []
    for level in LEVELS:
        cells = [percent(level)]
        for method in (CONFORMAL, STANDARD):
            finding = found[method, level]
            cells += [percent(finding.coverage, 1), text(finding.median_width, digits), finding.judgement.value]
        cells.insert(3, found[CONFORMAL, level].expected_in_words)
        rows.append(cells)
    head = ("level", "coverage", "median width", "expected range", "verdict")
    return table((*head, "standard GP: coverage", "median width", "verdict"), rows, caption="Coverage and width")


def parts(held_out: HeldOut, X: Any) -> str:
    """Coverage by fifths of the prediction, and by the columns behind a button that unfolds them."""
    digits = decimals(held_out.y, held_out.intervals[CONFORMAL])
    by_prediction = coverage_by_parts(held_out, None, PART_LEVEL)
    by_column = coverage_by_parts(held_out, X, PART_LEVEL)[len(by_prediction) :]
    by_group = held_out.by_group([PART_LEVEL])
    tables = _part_table(by_prediction, "By fifths of the prediction, at 90%", digits)
    if by_group:
        tables = _part_table(by_group, "By group, at 90%", digits) + tables
    inputs = _part_table(by_column, "By each input, at 90%", digits)
    return f"{tables}<details><summary>By each input</summary>{inputs}</details>"


def _part_table(found: Sequence[Finding], caption: str, digits: int) -> str:
    """Coverage and widths of subgroups."""
    marks = {Judgement.TOO_NARROW: "✕ too narrow", Judgement.IN_DOUBT: "perhaps too narrow"}
    rows = [
        (
            part.among,
            str(part.n_rows),
            percent(part.coverage, 1),
            text(part.median_width, digits),
            marks.get(part.judgement, ""),
        )
        for part in found[: 5 * ROWS_SHOWN]
    ]
    return table(("rows where", "rows", "coverage", "median width", ""), rows, caption=caption)


def importance(held_out: HeldOut) -> str:
    """Permutation importance of the inputs, if it was measured."""
    if not held_out.importance:
        return ""
    rows = [(name, f"{share:+.0%}".replace("-", "\N{MINUS SIGN}")) for name, share in held_out.importance.items()]
    return table(("input", "increase in error"), rows[:ROWS_SHOWN], caption="Permutation importance")


def model_table(model: Any) -> str:
    """Parameters of the fitted model."""
    names = [str(name) for name in input_names(model)]
    transformation = "none"
    if model.target_transform_ is not None:
        transformation = model.target_transform_.name.strip("'")
    difficulty = "no"
    if model.difficulty_ is not None:
        difficulty = "yes"
    facts = {
        "method": type(model).__name__,
        "kernel": kernel_in_words(model.kernel_, model.noise_variance_, names, model.scale_inputs),
        "mean function": model.mean_,
        "hyperparameters": TUNING[getattr(model, "tuning_", model.tuning)],
        "target transformation": transformation,
        "difficulty model": difficulty,
        "made by": f"conformal-gp {__version__}",
    }
    return table(("setting", "value"), facts.items(), caption="The model, fitted to all rows", kind="words")
