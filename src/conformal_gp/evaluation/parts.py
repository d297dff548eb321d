"""Coverage in subgroups, by fifths of the prediction and of each column or by its categories; and advice.

The guarantee is over all rows together, and misses may gather in a subgroup. Many subgroups are tested, so the error
probability of the judgement on each of m subgroups is :math:`1 / m` of the usual one.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.stats import binomtest

from conformal_gp.arrays import Mask
from conformal_gp.conformal.levels import read_level, rows_needed
from conformal_gp.evaluation.findings import EXPECTED_MISSES, USUAL, Finding, Judgement, Level
from conformal_gp.extrapolation import columns_of
from conformal_gp.formatting import number, percent

N_PARTS = 5
# Misses are one-sided below this p-value of a sign test.
ONE_SIDED = 0.01
# Options of the command for the parameters that advice names.
OPTIONS = {
    "(difficulty=)": "(in Python: difficulty=a regressor)",
    "(groups=)": "(--groups)",
    "target_transform='yeo-johnson'": "--target-transform yeo-johnson",
    " or equal tails (tails='equal')": "",
    "(tuning='holdout', tuning_rows=their row numbers)": "(in Python: tuning='holdout', tuning_rows=their row numbers)",
}


def coverage_by_parts(held_out: Any, X: Any, confidence_level: Level) -> list[Finding]:
    """Coverage by fifths of the first method's prediction and of each column; by category where it has some.

    Parameters
    ----------
    held_out : HeldOut
        Cross-validated intervals.
    X : array-like or data frame of shape (n_samples, n_features), or None
        Inputs of these rows; None takes the prediction alone.
    confidence_level : float
        One of the levels of ``held_out``.

    Returns
    -------
    parts : list of Finding
        ``among`` names the rows. Equal values stay together, so a column may have fewer than five parts, or none.

    Examples
    --------
    Noise that grows with the input, and intervals that do not:

    >>> import numpy as np
    >>> from fractions import Fraction
    >>> from conformal_gp.evaluation import HeldOut, coverage_by_parts
    >>> rng = np.random.default_rng(0)
    >>> x = rng.uniform(size=1000)
    >>> ends = {"a": np.tile([[-3.0], [3.0]], (1000, 1, 1))}
    >>> held_out = HeldOut(3 * x * rng.standard_normal(1000), [Fraction(9, 10)], {"a": np.zeros(1000)}, ends)
    >>> [(part.among, part.judgement.value) for part in coverage_by_parts(held_out, x[:, None], 0.9)][-1]
    ('x0 is 0.8133 to 0.9995', 'too narrow')
    """
    level = read_level(confidence_level)
    (name, ends), *_ = held_out.intervals.items()
    ends = ends[:, :, held_out.levels.index(level)]
    columns = {"prediction": held_out.prediction[name]}
    if X is not None:
        columns |= columns_of(X)
    parts = [(f"{column} is {where}", rows) for column, values in columns.items() for where, rows in _parts(values)]
    return [
        Finding.of(
            name,
            level,
            held_out.y[rows],
            ends[rows],
            among=among,
            n_parts=len(parts),
            n_batches=held_out.n_batches(rows),
        )
        for among, rows in parts
    ]


def _parts(values: NDArray[Any]) -> Iterator[tuple[str, Mask]]:
    """Yield a name and the rows of each category, or of each fifth of the values."""
    distinct = np.unique(values)
    if distinct.size == 1:
        return
    if values.dtype.kind == "U":
        for value in distinct:
            yield str(value), values == value
        return
    edges = distinct
    if distinct.size > N_PARTS:
        edges = np.unique(np.quantile(values, np.linspace(0.0, 1.0, N_PARTS + 1)[1:], method="inverted_cdf"))
    fifth = np.searchsorted(edges, values)
    for k in np.unique(fifth):
        rows = fifth == k
        low = number(values[rows].min())
        high = number(values[rows].max())
        if low == high:
            yield low, rows
        else:
            yield f"{low} to {high}", rows


def advice(held_out: Any, X: Any = None, *, command: bool = False) -> str:
    """Advise in a sentence what would improve the first method's intervals most; empty if the figures show nothing.

    Tested, in this order: a designed grid, too few rows for a level, a subgroup with too narrow intervals, misses on
    one side, and too few rows for a verdict.
    ``X`` has the inputs of the held-out rows. Advice names options of the ``command``, or parameters in Python.

    Examples
    --------
    >>> import numpy as np
    >>> from fractions import Fraction
    >>> from conformal_gp.evaluation import HeldOut, advice
    >>> ends = {"mine": np.tile([[-np.inf], [np.inf]], (40, 1, 1))}
    >>> advice(HeldOut(np.zeros(40), [Fraction(99, 100)], {"mine": np.zeros(40)}, ends))
    'More rows, or a lower level: 99% needs at least 99 calibration rows.'
    """
    method = next(iter(held_out.intervals))
    findings = [finding for finding in held_out.findings() if finding.method == method]
    usual = min(findings, key=lambda finding: abs(finding.level - USUAL[0]))
    if held_out.grid is not None:
        helps_most = held_out.grid.remedy
    else:
        helps_most = (
            _infinite(held_out, findings) or _narrow(held_out, X, usual) or _one_sided(usual) or _too_few(usual)
        )
    if command:
        for parameter, option in OPTIONS.items():
            helps_most = helps_most.replace(parameter, option)
    return helps_most


def _infinite(held_out: Any, findings: list[Finding]) -> str:
    """Advise more rows where intervals are infinite."""
    infinite = [finding.level for finding in findings if finding.n_infinite and held_out.lacks_rows(finding.level)]
    if not infinite:
        return ""
    what = held_out.calibration
    needed = f"{percent(min(infinite))} needs at least {rows_needed(min(infinite))} calibration {what}"
    if held_out.groups is not None:
        needed += " in each group"
    return f"More {what}, or a lower level: {needed}."


def _narrow(held_out: Any, X: Any, usual: Finding) -> str:
    """Advise groups or a difficulty where a subgroup has too narrow intervals."""
    parts = [p for p in coverage_by_parts(held_out, X, usual.level) if p.judgement == Judgement.TOO_NARROW]
    if not parts:
        return ""
    worst = min(parts, key=lambda part: part.coverage)
    where = f"where {worst.among}, {percent(usual.level)} intervals covered only {percent(worst.coverage, 1)}"
    column = worst.among.rsplit(" is ", 1)[0]
    if X is not None and column in columns_of(X) and columns_of(X)[column].dtype.kind == "U":
        return f"More rows of this kind, or intervals valid in each category (groups=): {where}."
    return f"More rows of this kind, or a difficulty model (difficulty=): {where}."


def _one_sided(usual: Finding) -> str:
    """Advise a target transformation where misses are on one side."""
    if not usual.n_outside or binomtest(usual.n_above, usual.n_outside).pvalue >= ONE_SIDED:
        return ""
    sides = f"{usual.n_above} values lie above their {percent(usual.level)} intervals and {usual.n_below} below"
    return f"A target transformation (target_transform='yeo-johnson') or equal tails (tails='equal'): {sides}."


def _too_few(usual: Finding) -> str:
    """Advise more rows where there are too few for a verdict."""
    if usual.judgement != Judgement.TOO_FEW:
        return ""
    enough = math.ceil(EXPECTED_MISSES / (1 - usual.level))
    count, what = usual.independent.split()
    return f"More {what}: a verdict on {percent(usual.level)} needs about {enough}, and there are {count}."
