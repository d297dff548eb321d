"""Observed coverage, the range in which it is expected, and the verdict in words."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy.stats import beta, binom

from conformal_gp.arrays import Array
from conformal_gp.conformal.levels import read_level, read_levels, rows_needed
from conformal_gp.formatting import number, percent

Level = float | Fraction

# Central parts of the binomial distribution: outside the first, intervals are in doubt; outside the second, wrong.
LIKELY, NEARLY_ALL = 0.95, 0.99
# If fewer misses are expected, nearly any coverage is in the expected range.
EXPECTED_MISSES = 10
# Default levels, and those of data with too few rows for them.
USUAL, LOWER = (Fraction(9, 10), Fraction(19, 20), Fraction(99, 100)), (Fraction(4, 5), Fraction(1, 2))


def chance_range(confidence_level: Level | Iterable[Level], n_rows: int, probability: float = LIKELY) -> Array:
    """Expected range of the coverage of intervals: the central part of a binomial distribution.

    Parameters
    ----------
    confidence_level : float or sequence of floats
        Probability that an interval covers.
    n_rows : int
        Number of rows.
    probability : float in (0, 1), default=0.95
        Probability of the range.

    Returns
    -------
    bounds : ndarray of shape (2,) or (n_levels, 2)
        Least and greatest coverage; two-dimensional if a sequence of levels is given.

    Examples
    --------
    >>> from conformal_gp.evaluation import chance_range
    >>> chance_range(0.95, 392).round(3)
    array([0.929, 0.969])
    """
    if not 0.0 < probability < 1.0:
        raise ValueError(f"probability must lie strictly between 0 and 1, got {probability!r}.")
    levels, single = read_levels(confidence_level)
    bounds = np.stack(binom.interval(probability, n_rows, [float(level) for level in levels]), axis=1) / n_rows
    if single:
        return bounds[0]
    return bounds


def supported_levels(n_calibration: int) -> list[Fraction]:
    """Levels of 90, 95 and 99% that the calibration rows support with finite intervals; if none, 80 or 50%.

    Examples
    --------
    >>> from conformal_gp.evaluation import supported_levels
    >>> [float(level) for level in supported_levels(40)], [float(level) for level in supported_levels(6)]
    ([0.9, 0.95], [0.8])
    """
    usual = [level for level in USUAL if rows_needed(level) <= n_calibration]
    return usual or [next((level for level in LOWER if rows_needed(level) <= n_calibration), LOWER[-1])]


def one_set_range(level: Level, n_calibration: int) -> Array:
    """Range of the actual coverage of one training set, in nine cases out of ten; its average is the level.

    With k = ceil(level (n + 1)) of n calibration rows its distribution is Beta(k, n + 1 - k), if scores have no ties
    and do not depend on the calibration rows (Vovk, 2012).

    >>> one_set_range(0.9, 19).round(2), one_set_range(0.9, 199).round(2)
    (array([0.77, 0.98]), array([0.86, 0.93]))
    """
    k = math.ceil(read_level(level) * (n_calibration + 1))
    if k > n_calibration:
        return np.ones(2)
    return np.array(beta.interval(0.9, k, n_calibration + 1 - k))


class Judgement(StrEnum):
    """The verdict on intervals; :mod:`conformal_gp.evaluation` states how it is reached.

    >>> Judgement.TOO_FEW.value
    'too few rows to tell'
    """

    WITHIN = "as expected"
    TOO_FEW = "too few rows to tell"
    IN_DOUBT = "in doubt"
    TOO_NARROW = "too narrow"
    TOO_WIDE = "too wide"
    INFINITE = "infinite"
    AT_LEVELS = "unknown between the levels"


@dataclass(frozen=True)
class Finding:
    """Misses and widths of the intervals of one method at one level, among all rows or a subgroup.

    Examples
    --------
    >>> from conformal_gp.evaluation import Finding
    >>> finding = Finding.of("mine", 0.9, [1.0] * 150, [[2.0, 3.0]] * 40 + [[0.0, 3.0]] * 110)
    >>> finding.n_below, finding.judgement.value
    (40, 'too narrow')
    """

    method: str
    level: Fraction
    n_rows: int
    n_below: int
    n_above: int
    median_width: float
    n_infinite: int
    """Intervals without any bound; an interval that reaches a limit of detection has one."""
    among: str = ""
    """The subgroup in words; empty for all rows."""
    n_parts: int = 1
    """Number of subgroups that are tested; the judgement has Bonferroni's correction for it."""
    on_grid: bool = False
    """Whether the rows are a designed grid: coverage at its levels does not tell the coverage between them."""
    n_batches: int = 0
    """Number of batches if whole ones were held out, which may be covered or missed as a whole; 0 for single rows."""

    @classmethod
    def of(cls, method: str, level: Level, y_true: ArrayLike, intervals: ArrayLike, **described: Any) -> Finding:
        """Count targets (n,) that intervals (n, 2) miss, and measure widths; other fields are ``described``."""
        y = np.asarray(y_true, dtype=np.float64)
        lower, upper = np.asarray(intervals, dtype=np.float64).T
        widths = upper - lower
        return cls(
            method,
            read_level(level),
            n_rows=y.size,
            n_below=int((y < lower).sum()),
            n_above=int((y > upper).sum()),
            median_width=float(np.median(widths)),
            n_infinite=int((np.isinf(lower) & np.isinf(upper)).sum()),
            **described,
        )

    @property
    def n_outside(self) -> int:
        """Number of misses."""
        return self.n_below + self.n_above

    @property
    def miscoverage(self) -> float:
        """Share of misses."""
        return self.n_outside / self.n_rows

    @property
    def coverage(self) -> float:
        """Share of targets that intervals cover."""
        return 1.0 - self.miscoverage

    @property
    def n_independent(self) -> int:
        """Number of independent misses that there may be: of batches, or of rows."""
        return self.n_batches or self.n_rows

    def expected(self, probability: float = LIKELY) -> tuple[float, float]:
        """Least and greatest coverage of the expected range."""
        low, high = chance_range(self.level, self.n_independent, 1.0 - (1.0 - probability) / self.n_parts)
        return float(low), float(high)

    @property
    def expected_in_words(self) -> str:
        """The expected range in percent."""
        low, high = self.expected()
        return f"{100 * low:.1f} to {percent(high, 1)}"

    @property
    def judgement(self) -> Judgement:
        """The verdict, without regard to subgroups."""
        if self.n_infinite == self.n_rows:
            return Judgement.INFINITE
        rounding = 1e-12
        least, most = self.expected(NEARLY_ALL)
        if self.coverage < least - rounding:
            return Judgement.TOO_NARROW
        if self.on_grid:
            return Judgement.AT_LEVELS
        if self.coverage > most + rounding:
            return Judgement.TOO_WIDE
        if self.coverage < self.expected()[0] - rounding:
            return Judgement.IN_DOUBT
        if self.n_independent * (1 - self.level) < EXPECTED_MISSES:
            return Judgement.TOO_FEW
        return Judgement.WITHIN

    def judged(self, parts: Sequence[Finding] = ()) -> str:
        """The verdict in words, with the expected range where coverage is outside of it.

        It names the subgroup whose intervals are too narrow, if one of ``parts`` is.
        """
        if self.judgement == Judgement.INFINITE:
            return f"{self.judgement.value} (too few rows)"
        words = self.judgement.value
        if self.judgement == Judgement.TOO_FEW and self.n_batches:
            words = words.replace("rows", "batches")
        if self.judgement in (Judgement.TOO_NARROW, Judgement.TOO_WIDE, Judgement.IN_DOUBT):
            words += f" (expected {self.expected_in_words})"
        same = [part for part in parts if (part.method, part.level) == (self.method, self.level)]
        narrow = [part for part in same if part.judgement == Judgement.TOO_NARROW]
        if not narrow or self.judgement == Judgement.TOO_NARROW:
            return words
        worst = min(narrow, key=lambda part: part.coverage)
        return f"{words} overall, but too narrow where {worst.among} (covered {percent(worst.coverage, 1)})"

    def in_words(self, parts: Sequence[Finding] = ()) -> str:
        """Coverage, the verdict and the width."""
        if self.judgement == Judgement.INFINITE:
            return f"{percent(self.level)}: {self.judged()}"
        width = f"median width {number(self.median_width)}"
        if math.isinf(self.median_width):
            width = "half of them or more are unbounded"
        return f"{percent(self.level)} intervals covered {percent(self.coverage, 1)}, {self.judged(parts)}; {width}"


def verdict(findings: Sequence[Finding], parts: Sequence[Finding] = ()) -> list[str]:
    """State for each method the coverage at each level, the verdict and the width.

    ``parts`` are findings on subgroups, as :meth:`HeldOut.by_part` returns them; where intervals of a subgroup are
    significantly too narrow, the verdict names it.

    Examples
    --------
    >>> from fractions import Fraction
    >>> from conformal_gp.evaluation import Finding, verdict
    >>> print(*verdict([Finding("mine", Fraction(9, 10), 45, 5, 4, 2.5, 0)]))
    mine: 90% intervals covered 80.0%, too few rows to tell; median width 2.5.
    """
    methods = dict.fromkeys(finding.method for finding in findings)
    return [f"{name}: {'; '.join(f.in_words(parts) for f in findings if f.method == name)}." for name in methods]
