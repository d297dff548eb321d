"""What would help most."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from scipy.stats import binomtest, norm

from conformal_gp.conformal.levels import rows_needed
from conformal_gp.evaluation.cross_validation import HeldOut
from conformal_gp.evaluation.findings import EXPECTED_OUTSIDE, USUAL, Judgement, percent
from conformal_gp.evaluation.parts import columns_of, coverage_by_parts

# Misses on one side are no chance below this p-value; intervals of a high level are wide if they are so many times as
# much wider than those of a usual level as a normal distribution makes them.
ONE_SIDED, WIDE = 0.01, 2.0


def advice(held_out: HeldOut, X: Any = None) -> str:
    """What would help the first method most, in a sentence, as far as the figures show it; else nothing.

    It looks, in this order, for a column that numbers the rows, too few rows for a level, errors that differ between
    parts of the rows, labels outside on one side, a level that is dearly paid for, and too few rows for a verdict.
    ``X`` holds the inputs of the held-out rows.

    Examples
    --------
    >>> import numpy as np
    >>> from fractions import Fraction
    >>> from conformal_gp.evaluation import HeldOut, advice
    >>> ends = {"mine": np.tile([[-np.inf], [np.inf]], (40, 1, 1))}
    >>> advice(HeldOut(np.zeros(40), [Fraction(99, 100)], {"mine": np.zeros(40)}, ends))
    'More rows, or a lower level: 99% takes at least 99 rows to be ranked.'
    """
    columns = {} if X is None else columns_of(X)
    order = held_out.rows if held_out.rows.size else np.arange(held_out.y.size)
    for name, values in columns.items():
        if len(columns) > 1 and values.dtype.kind == "f" and np.array_equal(values - values[0], order - order[0]):
            return f"Leave out '{name}', which numbers the rows, unless their order matters."
    method = next(iter(held_out.intervals))
    findings = [finding for finding in held_out.findings() if finding.method == method]
    infinite = [finding.level for finding in findings if finding.n_infinite]
    if infinite:
        where = "" if held_out.groups is None else " in each group"
        needed = f"{percent(min(infinite))} takes at least {rows_needed(min(infinite))} rows to be ranked{where}."
        return f"More rows, or a lower level: {needed}"
    usual = min(findings, key=lambda finding: abs(finding.level - USUAL[0]))
    parts = [p for p in coverage_by_parts(held_out, X, usual.level) if p.judgement == Judgement.TOO_NARROW]
    if parts:
        worst = max(parts, key=lambda part: part.miscoverage)
        share = f"{percent(worst.miscoverage, 1)} outside at {percent(usual.level)}"
        where = f"errors are larger where {worst.among} ({share}), and widths do not follow"
        return f"More rows of this kind, or a difficulty of your own (difficulty=): {where}."
    if usual.n_outside and binomtest(usual.n_above, usual.n_outside).pvalue < ONE_SIDED:
        sides = f"{usual.n_above} labels lie above their intervals and {usual.n_below} below at {percent(usual.level)}"
        return f"A map of the labels (target_transform='yeo-johnson') or equal tails (tails='equal'): {sides}."
    highest = max(findings, key=lambda finding: finding.level)
    ratio = highest.median_width / usual.median_width if usual.median_width > 0.0 else 1.0
    if ratio > WIDE * norm.ppf((1 + float(highest.level)) / 2) / norm.ppf((1 + float(usual.level)) / 2):
        dear, cheap = percent(highest.level), percent(usual.level)
        return f"{cheap} where that is enough: intervals of {dear} are {ratio:.1f} times as wide."
    if usual.judgement == Judgement.TOO_FEW:
        enough = math.ceil(EXPECTED_OUTSIDE / (1 - usual.level))
        return f"More rows: a verdict on {percent(usual.level)} takes about {enough}, and there are {usual.n_rows}."
    return ""
