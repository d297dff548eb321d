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

# Misses count as wrong when chance alone would give as many, or as few, less than once in a hundred times.
SIGNIFICANCE = 0.01

TOO_NARROW, FITTING, TOO_WIDE, INFINITE = "too narrow", "as promised", "wider than needed", "infinite"


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
        if self._chance("greater") < SIGNIFICANCE:
            return TOO_NARROW
        return TOO_WIDE if self._chance("less") < SIGNIFICANCE else FITTING

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
    name = findings[0].method
    narrow = [finding for finding in findings if finding.judgement == TOO_NARROW]
    wide = [finding for finding in findings if finding.judgement == TOO_WIDE]
    infinite = [finding for finding in findings if finding.judgement == INFINITE]
    parts = []
    if narrow:
        parts.append(f"its error bars were wrong, too narrow: {_list(narrow)}")
    if wide:
        parts.append(f"wider than needed: {_list(wide)}")
    if infinite:
        parts.append(f"infinite, with too few rows to promise {_levels(infinite)}")
    kept = [finding for finding in findings if finding.judgement == FITTING]
    if kept:
        parts.append(f"in keeping with the promise at {_levels(kept)}")
    return f"{name}: {'; '.join(parts)}."


def _list(findings: Sequence[Finding]) -> str:
    return ", ".join(
        f"{finding.outside:.1%} of labels outside at {percent(finding.level)}%, "
        f"{finding.outside / finding.promised:.1f} times the {percent(1 - finding.level)}% promised"
        for finding in findings
    )


def _levels(findings: Sequence[Finding]) -> str:
    return ", ".join(f"{percent(finding.level)}%" for finding in findings)


def _price(findings: Sequence[Finding]) -> list[str]:
    """How much wider the first method's intervals are than the second's."""
    first, *others = dict.fromkeys(finding.method for finding in findings)
    found = []
    for finding in findings:
        if finding.method != first or not np.isfinite(finding.mean_width):
            continue
        for other in findings:
            if other.method == others[0] and other.level == finding.level and np.isfinite(other.mean_width):
                found.append(f"{finding.mean_width / other.mean_width - 1:+.0%} at {percent(finding.level)}%")
    return [f"Width of {first} beside {others[0]}: {', '.join(found)}."] if found else []
