"""Where labels lie outside: coverage by fifths of the prediction and of each input.

A guarantee is over all rows together, and misses may gather in one kind of row. Each part of the rows is held against
the same promise. Many parts are looked at, and some would stand out by chance. So for m parts, one is in doubt only
beyond the central :math:`1 - 0.05 / m` of the binomial distribution, and too narrow or too wide only beyond the central
:math:`1 - 0.01 / m`. By chance alone that happens to any of them in at most 1 of 40, and 1 of 100, tables.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import ArrayLike

from conformal_gp.conformal.levels import read_level
from conformal_gp.evaluation.cross_validation import HeldOut
from conformal_gp.evaluation.judgement import LIKELY, NEARLY_ALL, Judgement, Level, chance_range
from conformal_gp.evaluation.words import listed, number, percent
from conformal_gp.types import Array, Mask

N_PARTS = 5
PREDICTION = "prediction"


@dataclass(frozen=True)
class Part:
    """Coverage among some of the rows.

    Parameters
    ----------
    of : str
        "prediction", or the name of an input.
    low, high : float
        Least and greatest value of it among these rows.
    level : Fraction
        Confidence level.
    n_rows, n_outside : int
        Number of rows, and of labels outside their intervals.
    mean_width : float
        Mean width of their intervals.
    judgement : Judgement
        "kept", "in doubt", "too narrow", "too wide" or "infinite"; allows for the number of parts that are looked at.

    Examples
    --------
    >>> from fractions import Fraction
    >>> from conformal_gp.evaluation import Judgement, Part
    >>> part = Part("weight", 3.5, 5.1, Fraction(9, 10), 50, 18, 7.5, Judgement.TOO_NARROW)
    >>> part.where, part.miscoverage
    ('3.5 to 5.1', 0.36)
    """

    of: str
    low: float
    high: float
    level: Fraction
    n_rows: int
    n_outside: int
    mean_width: float
    judgement: Judgement

    @property
    def miscoverage(self) -> float:
        """Share of labels outside."""
        return self.n_outside / self.n_rows

    @property
    def where(self) -> str:
        """The values of these rows, in words."""
        return number(self.low) if self.low == self.high else f"{number(self.low)} to {number(self.high)}"


def coverage_by_parts(
    held_out: HeldOut,
    X: ArrayLike,
    names: Sequence[str],
    confidence_level: Level,
    method: str | None = None,
) -> list[Part]:
    """Labels outside by fifths of the prediction and of each input.

    Parameters
    ----------
    held_out : HeldOut
        Cross-validated intervals.
    X : array-like of shape (n_samples, n_features)
        Inputs of these rows.
    names : sequence of str
        Names of the inputs.
    confidence_level : float
        One of the levels of ``held_out``.
    method : str or None, default=None
        Which method; None is the first.

    Returns
    -------
    parts : list of Part
        Fifths of the prediction, then of each input, ascending. Values that are equal stay together, so there may be
        fewer than five; an input that is the same in all rows has none.

    Examples
    --------
    Noise that grows with the input, and intervals that do not:

    >>> import numpy as np
    >>> from fractions import Fraction
    >>> from conformal_gp.evaluation import HeldOut, coverage_by_parts
    >>> rng = np.random.default_rng(0)
    >>> x = rng.uniform(size=500)
    >>> y = 3 * x * rng.standard_normal(500)
    >>> ends = {"a": np.tile([[-3.0], [3.0]], (500, 1, 1))}
    >>> held_out = HeldOut(y, [Fraction(9, 10)], {"a": np.zeros(500)}, ends)
    >>> for part in coverage_by_parts(held_out, x[:, None], ["x"], 0.9):
    ...     print(part.of, part.where, f"{part.miscoverage:.0%}", part.judgement.value)
    x 0.0003007 to 0.2253 0% too wide
    x 0.2259 to 0.4428 0% too wide
    x 0.4503 to 0.6341 4% kept
    x 0.6363 to 0.8227 19% in doubt
    x 0.8228 to 0.9972 25% too narrow
    """
    name = next(iter(held_out.intervals)) if method is None else method
    level = read_level(confidence_level)
    ends = held_out.intervals[name][:, :, held_out.levels.index(level)]
    outside = (held_out.y < ends[:, 0]) | (held_out.y > ends[:, 1])
    columns = zip((PREDICTION, *names), (held_out.prediction[name], *np.asarray(X, dtype=float).T), strict=True)
    found = [(of, values, rows) for of, values in columns for rows in _fifths(values)]
    parts = []
    for of, values, rows in found:
        part = values[rows]
        n_rows, n_outside = int(rows.sum()), int(outside[rows].sum())
        widths = ends[rows, 1] - ends[rows, 0]
        judgement = _judged(level, n_rows, n_outside, bool(np.isinf(widths).all()), len(found))
        parts.append(Part(of, part.min(), part.max(), level, n_rows, n_outside, float(widths.mean()), judgement))
    return parts


def where_it_fails(parts: Sequence[Part]) -> str:
    """Which parts have more labels outside than chance allows, in a sentence.

    Parameters
    ----------
    parts : sequence of Part
        Of one level.

    Returns
    -------
    sentence : str
        It names the worst parts.

    Examples
    --------
    >>> from fractions import Fraction
    >>> from conformal_gp.evaluation import Judgement, Part, where_it_fails
    >>> part = Part("weight", 3.5, 5.1, Fraction(9, 10), 50, 18, 7.5, Judgement.TOO_NARROW)
    >>> print(where_it_fails([part]))
    At 90% too many labels are outside where weight is 3.5 to 5.1 (36.0% of 50).
    """
    if not parts:
        return ""
    level = percent(parts[0].level)
    suspect = (Judgement.TOO_NARROW, Judgement.IN_DOUBT)
    wrong = sorted((p for p in parts if p.judgement in suspect), key=lambda p: -p.miscoverage)
    if not wrong:
        return f"At {level} no fifth of the prediction or of an input has more labels outside than chance allows."
    named = [f"{p.of} is {p.where} ({percent(p.miscoverage, 1)} of {p.n_rows})" for p in wrong[:3]]
    others = len(wrong) - len(named)
    more = f", and in {others} other part{'s' if others > 1 else ''}" if others else ""
    return f"At {level} too many labels are outside where {listed(named)}{more}."


def _fifths(values: Array) -> Iterator[Mask]:
    """Rows with the lowest fifth of values, the next, and so on; equal values stay together."""
    distinct = np.unique(values)
    if distinct.size <= N_PARTS:
        edges = distinct
    else:
        edges = np.unique(np.quantile(values, np.linspace(0.0, 1.0, N_PARTS + 1)[1:], method="inverted_cdf"))
    part = np.searchsorted(edges, values)
    for k in range(edges.size):
        if edges.size > 1 and (part == k).any():
            yield part == k


def _judged(level: Fraction, n_rows: int, n_outside: int, infinite: bool, n_parts: int) -> Judgement:
    if infinite:
        return Judgement.INFINITE
    low, high = chance_range(level, n_rows, 1.0 - (1.0 - NEARLY_ALL) / n_parts)
    inside = (n_rows - n_outside) / n_rows
    if inside < low:
        return Judgement.TOO_NARROW
    if inside < chance_range(level, n_rows, 1.0 - (1.0 - LIKELY) / n_parts)[0]:
        return Judgement.IN_DOUBT
    return Judgement.TOO_WIDE if inside > high else Judgement.KEPT
