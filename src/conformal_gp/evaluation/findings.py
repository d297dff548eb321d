"""How many labels lie outside, whether chance explains it, and the verdict in plain words."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from fractions import Fraction

import numpy as np
from numpy.typing import ArrayLike
from scipy.stats import beta, binom

from conformal_gp.arrays import Array
from conformal_gp.conformal.levels import read_level, read_levels, rows_needed

Level = float | Fraction

# Central parts of the binomial distribution: beyond the first, intervals are in doubt; beyond the second, wrong.
LIKELY, NEARLY_ALL = 0.95, 0.99
# With fewer labels to be expected outside, chance allows nearly anything.
EXPECTED_OUTSIDE = 10
# Levels where nothing else is asked for, and those of data with too few rows for them.
USUAL, LOWER = (Fraction(9, 10), Fraction(19, 20), Fraction(99, 100)), (Fraction(4, 5), Fraction(1, 2))


def percent(share: Level, decimals: int | None = None) -> str:
    """A share in percent, with so many digits after the point, or as many as it has.

    Examples
    --------
    >>> from conformal_gp.evaluation import percent
    >>> percent(0.95), percent(0.999), percent(17 / 392, decimals=1)
    ('95%', '99.9%', '4.3%')
    """
    value = float(100 * share)
    return f"{value:.12g}%" if decimals is None else f"{value:.{decimals}f}%"


def number(value: float, digits: int = 4) -> str:
    """A number with so many significant digits; with an exponent only if it is very large or very small.

    >>> number(1345678.9), number(0.012345), number(3.0), number(2.5e15), number(float("inf"))
    ('1346000', '0.01235', '3', '2.5e+15', 'inf')
    """
    text = f"{value:.{digits}g}"
    return f"{float(text):.0f}" if "e+" in text and abs(value) < 1e12 else text


def chance_range(confidence_level: Level | Iterable[Level], n_rows: int, probability: float = LIKELY) -> Array:
    """Least and greatest share of labels inside that chance allows: the central part of a binomial distribution.

    Parameters
    ----------
    confidence_level : float or sequence of floats
        Probability that a label is inside.
    n_rows : int
        Number of labels.
    probability : float in (0, 1), default=0.95
        Probability of the range.

    Returns
    -------
    ends : ndarray of shape (2,) or (n_levels, 2)
        Two-dimensional when a sequence of levels is given.

    Examples
    --------
    >>> from conformal_gp.evaluation import chance_range
    >>> chance_range(0.95, 392).round(3)
    array([0.929, 0.969])
    """
    if not 0.0 < probability < 1.0:
        raise ValueError(f"probability must lie strictly between 0 and 1, got {probability!r}.")
    levels, single = read_levels(confidence_level)
    ends = np.stack(binom.interval(probability, n_rows, [float(level) for level in levels]), axis=1) / n_rows
    return ends[0] if single else ends


def supported_levels(n_calibration: int) -> list[Fraction]:
    """Those of 90, 95 and 99% at which so many calibration rows give finite intervals; where none does, 80 or 50%.

    Examples
    --------
    >>> from conformal_gp.evaluation import supported_levels
    >>> [float(level) for level in supported_levels(40)], [float(level) for level in supported_levels(6)]
    ([0.9, 0.95], [0.8])
    """
    usual = [level for level in USUAL if rows_needed(level) <= n_calibration]
    return usual or [next((level for level in LOWER if rows_needed(level) <= n_calibration), LOWER[-1])]


def one_set_range(level: Level, n_calibration: int) -> Array:
    """Least and greatest coverage of new rows that nine in ten sets of training rows have: a level is their average.

    With k = ceil(level (n + 1)) of n calibration rows it is Beta(k, n + 1 - k) distributed where scores have no ties
    and do not depend on the calibration rows (Vovk, 2012).

    >>> one_set_range(0.9, 19).round(2), one_set_range(0.9, 199).round(2)
    (array([0.77, 0.98]), array([0.86, 0.93]))
    """
    k = math.ceil(read_level(level) * (n_calibration + 1))
    return np.array(beta.interval(0.9, k, n_calibration + 1 - k)) if k <= n_calibration else np.ones(2)


class Judgement(StrEnum):
    """Whether intervals kept their promise; the text of :mod:`conformal_gp.evaluation` says how it is decided.

    >>> Judgement.TOO_FEW.value
    'too few rows to tell'
    """

    KEPT = "kept"
    TOO_FEW = "too few rows to tell"
    IN_DOUBT = "in doubt"
    TOO_NARROW = "too narrow"
    TOO_WIDE = "too wide"
    INFINITE = "infinite"


@dataclass(frozen=True)
class Finding:
    """How the intervals of one method and one level did, among all rows or a part of them.

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
    among: str = ""
    """Which rows, in words; empty for all."""
    n_parts: int = 1
    """How many such parts are looked at; the judgement allows for it by Bonferroni's correction."""

    @classmethod
    def of(cls, method: str, level: Level, y_true: ArrayLike, intervals: ArrayLike, *part: str | int) -> Finding:
        """Count labels (n,) outside intervals (n, 2), and measure widths."""
        y, ends = np.asarray(y_true, dtype=np.float64), np.asarray(intervals, dtype=np.float64)
        widths = ends[:, 1] - ends[:, 0]
        counts = int((y < ends[:, 0]).sum()), int((y > ends[:, 1]).sum()), float(np.median(widths))
        return cls(method, read_level(level), y.size, *counts, int(np.isinf(widths).sum()), *part)  # type: ignore[arg-type]

    @property
    def n_outside(self) -> int:
        """Labels outside their intervals."""
        return self.n_below + self.n_above

    @property
    def miscoverage(self) -> float:
        """Share of labels outside."""
        return self.n_outside / self.n_rows

    def chance(self, probability: float = LIKELY) -> tuple[float, float]:
        """Least and greatest share of labels outside that chance allows."""
        low, high = chance_range(self.level, self.n_rows, 1.0 - (1.0 - probability) / self.n_parts)
        return 1.0 - float(high), 1.0 - float(low)

    @property
    def judgement(self) -> Judgement:
        """Whether the intervals kept their promise."""
        if self.n_infinite == self.n_rows:
            return Judgement.INFINITE
        (_, likely), (least, most) = self.chance(), self.chance(NEARLY_ALL)
        rounding = 1e-12
        if not least - rounding <= self.miscoverage <= most + rounding:
            return Judgement.TOO_WIDE if self.miscoverage < least else Judgement.TOO_NARROW
        if self.miscoverage > likely + rounding:
            return Judgement.IN_DOUBT
        return Judgement.KEPT if self.n_rows * (1 - self.level) >= EXPECTED_OUTSIDE else Judgement.TOO_FEW

    def __str__(self) -> str:
        if self.judgement == Judgement.INFINITE:
            return f"{percent(self.level)} infinite, for want of rows"
        low, high = self.chance()
        chance = f"chance allows {100 * low:.1f} to {percent(high, 1)}"
        return f"{percent(self.level)} {self.judgement} ({percent(self.miscoverage, 1)} outside; {chance})"


def verdict(findings: Sequence[Finding]) -> list[str]:
    """A sentence on each method: what was found at each level, and what chance allows.

    Examples
    --------
    >>> from fractions import Fraction
    >>> from conformal_gp.evaluation import Finding, verdict
    >>> print(*verdict([Finding("mine", Fraction(9, 10), 45, 5, 4, 2.5, 0)]))
    mine: 90% too few rows to tell (20.0% outside; chance allows 2.2 to 20.0%).
    """
    methods = dict.fromkeys(finding.method for finding in findings)
    return [f"{name}: {'; '.join(str(f) for f in findings if f.method == name)}." for name in methods]
