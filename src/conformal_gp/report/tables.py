"""Tables and sentences of the page. All text from the data is escaped."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from fractions import Fraction
from html import escape
from typing import Any

import numpy as np

from conformal_gp import __version__
from conformal_gp.evaluation import (
    Finding,
    HeldOut,
    Judgement,
    advice,
    before_and_after,
    coverage_by_parts,
    percent,
    verdict,
)
from conformal_gp.evaluation.kernel_words import TUNING, kernel_in_words
from conformal_gp.frames import input_names
from conformal_gp.report.chart import CONFORMAL, PERCENTS, PLAIN, decimals, text

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


def in_short(held_out: HeldOut, X: Any, n_rows: int) -> str:
    """How rows were held out, the verdict, where intervals are infinite, and what would help."""
    how = f"Each of the {n_rows} rows was predicted by a model that had not seen it (cross-validation)."
    if held_out.y.size < n_rows:
        how = f"{held_out.y.size} of the {n_rows} rows were held out, and predicted by a model that had not seen them."
    endless = np.isinf(held_out.intervals[CONFORMAL]).any(axis=1).mean(axis=0)
    finite = [level for level in LEVELS if endless[held_out.levels.index(level)] < 1.0] or [LEVELS[0]]
    said = [how, *verdict(held_out.findings([level for level in finite if level >= PART_LEVEL] or finite[-1:]))]
    if endless[-1] > 0:
        said.append(
            f"From {PERCENTS[int(np.argmax(endless > 0))]}% on, intervals have no finite ends: there are too few rows "
            "to rule any label out at these levels. More rows make them finite."
        )
    if held_out.beyond.any():
        what = "Rows beyond the rows that they were predicted from, whose intervals rest on the model alone"
        said.append(f"{what}: {held_out.beyond.sum()}.")
    said += filter(None, [held_out.one_set()])
    places = [held_out.levels.index(level) for level in finite]
    ends = {name: every[:, :, places] for name, every in held_out.intervals.items()}
    help_most = advice(replace(held_out, levels=finite, intervals=ends), X)
    if help_most:
        said.append(f"What would help most: {help_most[0].lower()}{help_most[1:]}")
    return "".join(f"<p>{escape(line[0].upper() + line[1:])}</p>" for line in said)


def guarantee(model: Any) -> str:
    """What the intervals promise, and the model's own words on it."""
    opening = "These intervals are not guaranteed."
    meaning = (
        "Ask for 95%, and of new rows like these about 95 in 100 should have their label inside, but it can be fewer. "
        "The default way of tuning has a guarantee."
    )
    if model.guarantee_.startswith("Valid"):
        opening = "These intervals are guaranteed."
        if not model.guarantee_.startswith("Valid:"):
            opening = "These intervals are guaranteed up to Monte Carlo error."
        meaning = (
            "Ask for 95%, and of new rows like these at least 95 in 100 have their label inside, on average over data "
            "sets and rows. It does not matter whether the model is right: a poor model gives wide intervals, not "
            "false ones."
        )
    own = f"In the words of the fitted model: <q>{escape(model.guarantee_)}</q>"
    return f"<p><strong>{opening}</strong> {meaning}</p><p>{own}</p>"


def coverage_table(held_out: HeldOut) -> str:
    """Labels inside and widths at some levels, beside what chance allows."""
    digits = decimals(held_out.y)
    found = {(finding.method, finding.level): finding for finding in held_out.findings(LEVELS)}
    rows = []
    for level in LEVELS:
        conformal, plain = found[CONFORMAL, level], found[PLAIN, level]
        low, high = (1.0 - share for share in reversed(conformal.chance()))
        chance = f"{100 * low:.1f} to {percent(high, 1)}"
        cells = [(percent(1 - f.miscoverage, 1), text(f.median_width, digits)) for f in (conformal, plain)]
        rows.append((percent(level), *cells[0], chance, conformal.judgement.value, *cells[1], plain.judgement.value))
    head = ("level", "labels inside", "median width", "chance allows", "promise")
    return table((*head, "Gaussian process: inside", "median width", "promise"), rows, caption="Coverage and width")


def parts(held_out: HeldOut, X: Any) -> str:
    """Labels outside by fifths of the prediction, and of the columns behind a button that unfolds them."""
    digits = decimals(held_out.y)
    marks = {Judgement.TOO_NARROW: "✕ too many outside", Judgement.IN_DOUBT: "perhaps too many outside"}

    def cells(part: Finding) -> tuple[str, str]:
        return percent(part.miscoverage, 1), text(part.median_width, digits)

    def shown(found: Sequence[Finding], caption: str, before: Sequence[Finding] = ()) -> str:
        old: list[tuple[str, ...]] = [cells(part) for part in before] or [()] * len(found)
        rows = [
            (part.among, str(part.n_rows), *cells(part), *more, marks.get(part.judgement, ""))
            for part, more in zip(found, old, strict=True)
        ]
        heads = ("rows where", "rows", "labels outside", "median width")
        more_heads = ("outside before", "width before") if before else ()
        return table((*heads, *more_heads, ""), rows[: 5 * ROWS_SHOWN], caption=caption)

    by_prediction = coverage_by_parts(held_out, None, PART_LEVEL)
    by_column = coverage_by_parts(held_out, X, PART_LEVEL)[len(by_prediction) :]
    before = [pair[0] for pair in before_and_after(held_out, PART_LEVEL)]
    said = "“Before” is without the map of labels or the difficulty that was chosen."
    said = said if before else "No map of labels and no difficulty was chosen: too few rows, or they would not pay."
    by_group = held_out.by_group([PART_LEVEL])
    first = shown(by_group, "By group, at 90%") if by_group else ""
    first += shown(by_prediction, "By fifths of the prediction, at 90%", before)
    inputs = shown(by_column, "By each input, at 90%")
    return f"<p>{said}</p>{first}<details><summary>By each input</summary>{inputs}</details>"


def importance(held_out: HeldOut) -> str:
    """Growth of the error when each column is shuffled, and how good predictions are."""
    rows = [(name, f"{share:+.0%}".replace("-", "\N{MINUS SIGN}")) for name, share in held_out.importance.items()]
    caption = "Error when an input is shuffled"
    return f"<p>{held_out.error()}</p>{table(('input', 'growth of the error'), rows[:ROWS_SHOWN], caption=caption)}"


def model_table(model: Any) -> str:
    """Settings and learnt values of the fitted model."""
    names = [str(name) for name in input_names(model)]
    facts = {
        "method": type(model).__name__,
        "kernel": kernel_in_words(model.kernel_, model.noise_variance_, names, model.scale_inputs),
        "mean function": model.mean_,
        "settings": TUNING[getattr(model, "tuning_", model.tuning)],
        "map of labels": "none" if model.target_transform_ is None else model.target_transform_.name.strip("'"),
        "widths follow a difficulty": "no" if model.difficulty_ is None else "yes",
        "made by": f"conformal-gp {__version__}",
    }
    return table(("setting", "value"), facts.items(), caption="The model, fitted to all rows", kind="words")
