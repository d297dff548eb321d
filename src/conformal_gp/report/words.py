"""Sentences of the page: the verdict, the guarantee, and what to look at."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from typing import Any, NamedTuple

import numpy as np

from conformal_gp.arrays import Indices
from conformal_gp.drift import Shift
from conformal_gp.evaluation import Finding, HeldOut, Judgement, advice, coverage_by_parts
from conformal_gp.formatting import CONFORMAL, percent
from conformal_gp.report.chart import PERCENTS, decimals
from conformal_gp.report.chart import text as written

TABLED = tuple(Fraction(percents, 100) for percents in (50, 80, 90, 95, 99))
USUAL = Fraction(9, 10)
MOST_NAMED = 5
# How good a verdict is.
GOOD, DOUBT, BAD = "good", "doubt", "bad"
QUALITY = {Judgement.WITHIN: GOOD, Judgement.TOO_FEW: GOOD, Judgement.TOO_NARROW: BAD}


class Notice(NamedTuple):
    """A fact that limits what the page shows; ``warns`` if something may have to be done about it."""

    topic: str
    text: str
    warns: bool


def shown_level(held_out: HeldOut) -> Fraction:
    """The highest level up to 90% at which most intervals are finite; the lowest if there is none."""
    finite = np.isfinite(held_out.intervals[CONFORMAL]).any(axis=1).mean(axis=0) > 0.5
    candidates = [level for level in TABLED if level <= USUAL and finite[held_out.levels.index(level)]]
    return max(candidates, default=TABLED[0])


def verdict(finding: Finding, narrow: Sequence[Finding]) -> tuple[str, str]:
    """State the coverage of all rows, and that of the worst of the subgroups whose intervals are too narrow.

    Quality of the intervals, for the colour of the line, and the line.

    >>> verdict(Finding("conformal", USUAL, 352, 20, 14, 2.5, 0), [])
    ('good', '90% intervals covered 90.3% of 352 held-out rows, as expected.')
    """
    level = percent(finding.level)
    if finding.judgement == Judgement.INFINITE:
        return BAD, f"{level} intervals are infinite: there are too few rows."
    quality = QUALITY.get(finding.judgement, DOUBT)
    if narrow and quality == GOOD:
        quality = DOUBT
    covered = f"{percent(finding.coverage, 1)} of {finding.n_rows:,} held-out rows"
    return quality, f"{level} intervals covered {covered}, {finding.judged(narrow)}."


def too_narrow(held_out: HeldOut, X: Any, level: Fraction) -> list[Finding]:
    """Subgroups whose intervals are significantly too narrow, the worst first."""
    parts = held_out.by_group([level]) + coverage_by_parts(held_out, X, level)
    narrow = [part for part in parts if part.judgement == Judgement.TOO_NARROW]
    return sorted(narrow, key=lambda part: part.coverage)


def held_out_how(held_out: HeldOut, n_rows: int) -> str:
    """Describe how rows were held out."""
    if held_out.y.size < n_rows:
        return f"{held_out.y.size:,} of the {n_rows:,} rows were held out, and predicted by a model not fitted to them."
    return f"Each of the {n_rows:,} rows was predicted by a model that was not fitted to it (cross-validation)."


def drawn(n_chart: int, n_held_out: int) -> str:
    """State how many of the held-out rows are in the chart.

    >>> drawn(20, 20), drawn(200, 1400)[:36]
    ('All 20 held-out rows are drawn.', '200 of 1,400 held-out rows are drawn')
    """
    if n_chart == n_held_out:
        return f"All {n_held_out:,} held-out rows are drawn."
    return f"{n_chart:,} of {n_held_out:,} held-out rows are drawn; the numbers above are over all of them."


def guaranteed(statement: str, level: Fraction) -> tuple[str, str]:
    """State in short whether intervals are guaranteed, and at length what that means.

    >>> guaranteed("Valid: nothing was tuned.", USUAL)[0]
    'Guaranteed: if new rows are exchangeable with these, 90% intervals cover with probability at least 90%.'
    """
    which, what = "rows", "new rows"
    if "new batches" in statement:
        which, what = "batches", "rows of new batches"
    meaning = (
        f"95% intervals contain the true value of at least 95 in 100 {what} like these, on average over data sets and "
        "rows. This does not depend on whether the model is right: a poor model gives wide intervals, not invalid ones."
    )
    shown = percent(level)
    covers = f"if new {which} are exchangeable with these, {shown} intervals cover with probability at least {shown}."
    if statement.startswith("Valid:"):
        return f"Guaranteed: {covers}", meaning
    if statement.startswith("Valid"):
        return f"Guaranteed up to Monte Carlo error: {covers}", meaning
    meaning = (
        "About 95 in 100 new rows like these should have their true value inside 95% intervals, but it can be fewer. "
        "The default way of tuning has a guarantee."
    )
    reason = statement.removeprefix("Not valid in general: ").split(". ")[0].rstrip(".")
    return f"Not guaranteed: {reason}.", meaning


def scope(held_out: HeldOut) -> str:
    """State which rows the guarantee is for."""
    which = "It is for all rows together, not for each subgroup separately."
    if held_out.groups is not None:
        which = "It is for each group, not for other subgroups."
    return (
        "Exchangeable rows have the same distribution, in no particular order. The guarantee does not apply to series "
        f"that drift, nor to rows from another source. {which}"
    )


def notices(
    held_out: HeldOut, X: Any, labels: Sequence[str], level: Fraction, drift: Shift | None, *, command: bool
) -> list[Notice]:
    """What to look at: those that warn first. ``labels`` are what the held-out rows are called."""
    at = percent(level)
    found = [
        Notice(
            "Subgroup",
            f"Where {part.among}, {at} intervals covered only {percent(part.coverage, 1)} of {part.n_rows:,} rows "
            f"(expected {part.expected_in_words}).",
            warns=True,
        )
        for part in too_narrow(held_out, X, level)[:MOST_NAMED]
    ]
    some = np.isinf(held_out.intervals[CONFORMAL]).all(axis=1).any(axis=0)
    some &= np.array([held_out.lacks_rows(other) for other in held_out.levels])
    if some.any():
        first = PERCENTS[int(np.argmax(some))]
        lacking = f"there are too few {held_out.calibration} for these levels"
        text = f"From {first}% on, some intervals are infinite: {lacking}."
        found.append(Notice("Infinite intervals", text, warns=first <= 100 * USUAL))
    if drift is not None:
        found.append(Notice("Drift", str(drift), warns=drift.alarm))
    found += [Notice("Outlier", text, warns=True) for text in _outliers(held_out, labels, level)]
    helps_most = advice(held_out.at([other for other in TABLED if other >= level]), X, command=command)
    if helps_most:
        found.append(Notice("Advice", helps_most, warns=False))
    found += [
        Notice(topic, text, warns=topic in ("Extrapolation", "Designed experiment"))
        for topic, text in held_out.at([level]).conditions().items()
    ]
    return sorted(found, key=lambda notice: not notice.warns)


def _outliers(held_out: HeldOut, labels: Sequence[str], level: Fraction) -> list[str]:
    """Rows farther from their interval than it is wide, the farthest first: with normal errors, five sigma at 90%."""
    low, high = held_out.intervals[CONFORMAL][:, :, held_out.levels.index(level)].T
    prediction = held_out.prediction[CONFORMAL]
    width = high - low
    away = np.fmax(low - held_out.y, held_out.y - high)
    far: Indices = np.flatnonzero(np.isfinite(width) & (away > width))
    far = far[np.argsort(-away[far])]
    digits = decimals(held_out.y, held_out.intervals[CONFORMAL])
    sentences = [
        f"Row {labels[i]}: {written(held_out.y[i], digits)}, predicted {written(prediction[i], digits)}; "
        f"farther from its {percent(level)} interval than the interval is wide. Check its values."
        for i in far[:MOST_NAMED]
    ]
    if far.size > MOST_NAMED:
        sentences.append(f"{far.size - MOST_NAMED} more rows are as far away.")
    return sentences


def nothing_found(drift: Shift | None) -> str:
    """State what was looked for, where nothing was found."""
    looked = "subgroups covered too little, rows outside the training range, outliers"
    if drift is not None:
        looked += ", drift"
    return f"Nothing unusual was found; looked for: {looked}."
