"""Comparisons: of conformal intervals with the standard GP, and of new batches or later rows with rows at random."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from conformal_gp.evaluation.findings import USUAL, Judgement
from conformal_gp.evaluation.held_out import HeldOut
from conformal_gp.formatting import number, percent

# Differences of coverage of less than this many standard errors may be chance.
STANDARD_ERRORS = 2.0
# What the guarantee bought, by the verdict on the standard GP, the worst first, and by that on conformal intervals.
OPENINGS = {
    Judgement.TOO_NARROW: "The guarantee raised coverage",
    Judgement.IN_DOUBT: "The guarantee raised coverage, if not by chance",
    Judgement.TOO_WIDE: "The guarantee lowered coverage to its level",
    Judgement.WITHIN: "On this table the guarantee bought assurance, not coverage",
    Judgement.TOO_FEW: "So few rows cannot tell what the guarantee bought",
    Judgement.AT_LEVELS: "These rows cannot tell what the guarantee buys between the levels of the grid",
    Judgement.INFINITE: "The guarantee made intervals finite",
}
OWN_OPENINGS = {
    Judgement.TOO_NARROW: "The guarantee needs exchangeable rows, and these seem not to be",
    Judgement.AT_LEVELS: OPENINGS[Judgement.AT_LEVELS],
}


def bought(held_out: HeldOut, ours: str, standard: str) -> str:
    """State in a sentence what the guarantee bought over the standard GP, at the level where that one is worst.

    Examples
    --------
    >>> import numpy as np
    >>> from fractions import Fraction
    >>> from conformal_gp.evaluation import HeldOut
    >>> y = np.arange(200.0)
    >>> ends = {name: np.tile([[low], [199.0]], (200, 1, 1)) for name, low in (("ours", 20.0), ("GP", 50.0))}
    >>> bought(HeldOut(y, [Fraction(9, 10)], {"ours": y, "GP": y}, ends), "ours", "GP")[:71]
    'The guarantee raised coverage: at 90% the GP covered 75.0%, ours 90.0%,'
    """
    findings = held_out.findings()
    worst_first = [*OPENINGS]
    other = min(
        (each for each in findings if each.method == standard),
        key=lambda each: (worst_first.index(each.judgement), abs(each.level - USUAL[0])),
    )
    own = next(each for each in findings if each.method == ours and each.level == other.level)
    if own.judgement == Judgement.INFINITE:
        return f"At {percent(own.level)} there are too few rows for the guarantee."
    opening = OPENINGS[other.judgement]
    if own.judgement in OWN_OPENINGS:
        opening = OWN_OPENINGS[own.judgement]
    width = ""
    if 0.0 < other.median_width < math.inf and own.median_width < math.inf:
        times = number(own.median_width / other.median_width, 2)
        width = f", with intervals {times} times as wide"
        if times == "1":
            width = ", with intervals as wide"
    return (
        f"{opening}: at {percent(own.level)} the {standard} covered {percent(other.coverage, 1)}, {ours} "
        f"{percent(own.coverage, 1)}{width}."
    )


def in_comparison(held_out: HeldOut, random_folds: HeldOut, by: str | None, batches: NDArray[Any] | None) -> str:
    """Compare coverage and width of conformal intervals, in a sentence that says which of both to expect."""
    own = held_out.findings()[0]
    other = random_folds.findings()[0]
    what = "later rows, predicted from earlier ones"
    which = "later rows"
    if by is not None:
        what = f"rows of a new {by}"
        which = what
    said = (
        f"{percent(own.level)} intervals covered {percent(own.coverage, 1)} of {what} "
        f"(median width {number(own.median_width)}), and {percent(other.coverage, 1)} of rows at random "
        f"({number(other.median_width)})."
    )
    variance = own.coverage * own.miscoverage / own.n_rows
    if batches is not None:
        variance = _variance_by_batches(held_out, batches[held_out.rows])
    spread = (variance + other.coverage * other.miscoverage / other.n_rows) ** 0.5
    guarantee = "The guarantee is for rows like the training rows"
    if own.coverage >= min(float(own.level), other.coverage):
        return f"{said} {guarantee}; there is no sign that {which} differ from them."
    if other.coverage - own.coverage > STANDARD_ERRORS * spread:
        return f"{said} {guarantee}, and {which} differ from them: expect the first coverage, not the second."
    return f"{said} {guarantee}; there are too few rows to tell whether {which} differ from them."


def _variance_by_batches(held_out: HeldOut, batches: NDArray[Any]) -> float:
    """Variance of the coverage, batches being independent and their rows not."""
    low, high = next(iter(held_out.intervals.values()))[:, :, 0].T
    covered = (low <= held_out.y) & (held_out.y <= high)
    names = np.unique(batches)
    excess = [float((covered[batches == name] - covered.mean()).sum()) for name in names]
    return float(np.sum(np.square(excess))) / covered.size**2 * names.size / (names.size - 1)
