"""What held-out intervals say about the error bars they stand for, in plain words."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.stats import binomtest

from conformal_gp.cli.levels import percent
from conformal_gp.metrics import mean_width, miscoverage

Array = NDArray[np.float64]

# Misses are put down to the method when chance alone would give as many, or as few, this rarely.
WRONG = 0.01
DOUBTFUL = 0.05

TOO_NARROW, IN_DOUBT, KEPT, TOO_WIDE, INFINITE = "too narrow", "in doubt", "kept", "too wide", "infinite"


@dataclass(frozen=True)
class Finding:
    """How one method did at one level."""

    method: str
    level: Fraction
    n_rows: int
    misses: int
    mean_width: float
    median_width: float
    n_infinite: int

    @classmethod
    def of(cls, method: str, level: Fraction, y: Array, intervals: Array) -> Finding:
        """Judge intervals, (n, 2)."""
        return cls(
            method,
            level,
            y.size,
            round(float(miscoverage(y, intervals)) * y.size),
            float(mean_width(intervals)),
            float(np.median(intervals[:, 1] - intervals[:, 0])),
            int((~np.isfinite(intervals).all(axis=1)).sum()),
        )

    @property
    def outside(self) -> float:
        """Share of labels outside."""
        return self.misses / self.n_rows

    @property
    def promised(self) -> float:
        """Share of labels that may lie outside."""
        return float(1 - self.level)

    @property
    def judgement(self) -> str:
        """Whether the misses are in keeping with the promise, by an exact binomial test."""
        if self.n_infinite == self.n_rows:
            return INFINITE
        as_many, as_few = self._chance("greater"), self._chance("less")
        if as_few < WRONG:
            return TOO_WIDE
        return TOO_NARROW if as_many < WRONG else IN_DOUBT if as_many < DOUBTFUL else KEPT

    def _chance(self, alternative: str) -> float:
        return float(binomtest(self.misses, self.n_rows, self.promised, alternative=alternative).pvalue)

    def document(self) -> dict[str, Any]:
        """For machines."""
        return {
            "method": self.method,
            "level": float(self.level),
            "rows": self.n_rows,
            "outside": self.misses,
            "miscoverage": self.outside,
            "mean_width": self.mean_width,
            "median_width": self.median_width,
            "infinite": self.n_infinite,
            "judgement": self.judgement,
        }


def verdict(findings: Sequence[Finding]) -> list[str]:
    """Sentences on every method, in the order of the findings."""
    methods = list(dict.fromkeys(finding.method for finding in findings))
    sentences = [_on_method([finding for finding in findings if finding.method == name]) for name in methods]
    return [*sentences, *_price(findings)]


def _on_method(findings: Sequence[Finding]) -> str:
    """One sentence, what is wrong first."""
    parts = []
    for judgement, words in (
        (TOO_NARROW, "error bars were wrong, too narrow, at"),
        (IN_DOUBT, "in doubt, perhaps too narrow, at"),
        (TOO_WIDE, "wider than they need be at"),
    ):
        misses = [_misses(finding) for finding in findings if finding.judgement == judgement]
        if misses:
            parts.append(f"{words} {', '.join(misses)}")
    for judgement, words in ((INFINITE, "infinite, for want of rows, at"), (KEPT, "kept the promise at")):
        levels = [f"{percent(finding.level)}%" for finding in findings if finding.judgement == judgement]
        if levels:
            parts.append(f"{words} {', '.join(levels)}")
    return f"{findings[0].method}: {'; '.join(parts)}."


def _misses(finding: Finding) -> str:
    times = finding.outside / finding.promised
    digits = 1 if abs(times - 1) >= 0.1 else 2  # with many rows a small excess is told from none
    return (
        f"{percent(finding.level)}% ({finding.outside:.1%} of labels outside, {times:.{digits}f} times the "
        f"{percent(1 - finding.level)}% promised)"
    )


def _price(findings: Sequence[Finding]) -> list[str]:
    """How much wider the first method's intervals are than the second's, where both are finite."""
    first, second, *_ = dict.fromkeys(finding.method for finding in findings)
    widths = {(finding.method, finding.level): finding.mean_width for finding in findings}
    found = [
        f"{width / widths[second, level] - 1:+.0%} at {percent(level)}%"
        for (method, level), width in widths.items()
        if method == first and np.isfinite(width) and 0.0 < widths[second, level] < np.inf
    ]
    return [f"Mean width of {first}, beside {second}: {', '.join(found)}."] if found else []
