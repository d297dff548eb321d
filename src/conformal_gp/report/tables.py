"""Tables and sentences of the page. All text from the data is escaped."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from fractions import Fraction
from html import escape
from typing import Any

import numpy as np

from conformal_gp import __version__
from conformal_gp.evaluation import Finding, HeldOut, chance_range, percent, verdict
from conformal_gp.model_words import guarantee_in_words, kernel_in_words
from conformal_gp.report.numbers import CONFORMAL, PERCENTS, PLAIN, Rounding, general
from conformal_gp.types import Array

TABLE_LEVELS = (Fraction(1, 2), Fraction(4, 5), Fraction(9, 10), Fraction(19, 20), Fraction(99, 100))
VERDICT_LEVELS = TABLE_LEVELS[2:]
COLUMNS_SHOWN = 200


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


def data_table(X: Array, y: Array, names: Sequence[str], target_name: str) -> str:
    """Least, middle and greatest value of the label and of each input."""
    columns = [(f"{target_name} (label)", y), *zip(names, X.T, strict=True)]
    rows = [
        (name, general(values.min()), general(np.median(values)), general(values.max()), str(np.unique(values).size))
        for name, values in columns[: COLUMNS_SHOWN + 1]
    ]
    left = len(columns) - len(rows)
    caption = f"{y.size} rows, {len(names)} inputs" + (f"; {left} more inputs not listed" if left else "")
    return table(("column", "least", "median", "greatest", "different values"), rows, caption=caption)


def model_table(model: Any, names: Sequence[str]) -> str:
    """Settings and learnt values of the fitted model."""
    facts = [
        ("method", type(model).__name__),
        ("kernel", kernel_in_words(model.kernel_, model.noise_variance_, names) if hasattr(model, "kernel_") else None),
        ("known noise", "a variance of each row" if getattr(model, "_known_noise", False) else None),
        ("mean function", getattr(model, "mean", None)),
        ("gamma", _maybe(general, getattr(model, "gamma_", None))),
        ("tuning", getattr(model, "tuning_", None)),
        ("inputs standardised", _maybe({True: "yes", False: "no"}.get, getattr(model, "scale_inputs", None))),
        ("log marginal likelihood", _maybe(general, getattr(model, "log_marginal_likelihood_", None))),
        ("made by", f"conformal-gp {__version__}"),
    ]
    rows = [(name, str(value)) for name, value in facts if value is not None]
    return table(("setting", "value"), rows, caption="The model, fitted to all rows", kind="words")


def coverage_table(held_out: HeldOut) -> str:
    """Labels inside at some levels, beside what chance allows."""
    rows = [
        (
            percent(conformal.level),
            percent(1 - conformal.miscoverage, 1),
            percent(1 - plain.miscoverage, 1),
            " to ".join(percent(end, 1) for end in chance_range(conformal.level, conformal.n_rows)),
        )
        for conformal, plain in _pairs(held_out)
    ]
    return table(
        ("level", "conformal", "Gaussian process", "chance allows"), rows, caption="Labels inside their intervals"
    )


def width_table(held_out: HeldOut) -> str:
    """Mean and median widths at some levels."""
    write = Rounding.of(held_out.y).text
    rows = [
        (
            percent(conformal.level),
            *(write(width) for found in (conformal, plain) for width in (found.mean_width, found.median_width)),
        )
        for conformal, plain in _pairs(held_out)
    ]
    head = ("level", "conformal, mean", "median", "Gaussian process, mean", "median")
    return table(head, rows, caption="Widths of intervals")


def in_short(held_out: HeldOut) -> str:
    """The verdict in plain words, and the levels at which intervals are infinite."""
    sentences = [*verdict(held_out.findings(VERDICT_LEVELS)), _infinite(held_out.intervals[CONFORMAL])]
    return "".join(f"<p>{escape(sentence[0].upper() + sentence[1:])}</p>" for sentence in sentences if sentence)


def guarantee(model: Any) -> str:
    """The model's guarantee, in plain words and in its own."""
    text = guarantee_in_words(str(model.guarantee_))
    if text.startswith("Exact"):
        opening = "These intervals are guaranteed."
        meaning = (
            "Ask for 95%, and of new rows like these at least 95 in 100 have their label inside, on average over data "
            "sets and rows. It does not matter whether the model is right: a poor model gives wide intervals, not "
            "false ones."
        )
    else:
        opening = "These intervals are not exactly guaranteed."
        meaning = (
            "Ask for 95%, and of new rows like these about 95 in 100 should have their label inside, but it can be "
            "fewer. Other ways of tuning give the full guarantee: the default is one of them."
        )
    words = f"<p><strong>{opening}</strong> {meaning}</p>"
    return f"{words}<p>In the words of the fitted model: <q>{escape(text)}</q></p>"


def _infinite(intervals: Array) -> str:
    """Levels at which intervals are infinite, and why."""
    endless = np.isinf(intervals).any(axis=1)
    sentences = []
    all_rows, some_rows = endless.all(axis=0), endless.any(axis=0)
    if some_rows.any() and not np.array_equal(all_rows, some_rows):
        sentences.append(
            f"From {PERCENTS[int(np.argmax(some_rows))]}% on, the intervals of some rows have no finite ends: "
            "there are too few rows, or gamma is not 2."
        )
    if all_rows.any():
        sentences.append(
            f"From {PERCENTS[int(np.argmax(all_rows))]}% on, no interval has finite ends: there are too few rows to "
            "rule any label out at these levels. More rows make them finite."
        )
    return " ".join(sentences)


def _pairs(held_out: HeldOut) -> list[tuple[Finding, Finding]]:
    """The conformal and the plain finding of each level of the tables."""
    found = {(finding.method, finding.level): finding for finding in held_out.findings(TABLE_LEVELS)}
    return [(found[CONFORMAL, level], found[PLAIN, level]) for level in TABLE_LEVELS]


def _maybe(write: Any, value: Any) -> Any:
    return None if value is None else write(value)
