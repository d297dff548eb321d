"""Findings in plain words."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

from conformal_gp.evaluation.findings import Finding, Judgement


def percent(share: float | Fraction, decimals: int | None = None) -> str:
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


def verdict(findings: Sequence[Finding]) -> list[str]:
    """A sentence on each method: what was found at each level, and what chance allows.

    Examples
    --------
    >>> from fractions import Fraction
    >>> from conformal_gp.evaluation import Finding, verdict
    >>> print(*verdict([Finding("mine", Fraction(9, 10), 45, 5, 4, 2.5, 2.5, 0)]))
    mine: 90% too few rows to tell (20.0% outside; chance allows 2.2 to 20.0%).
    """
    methods = dict.fromkeys(finding.method for finding in findings)
    return [f"{name}: {'; '.join(_found(f) for f in findings if f.method == name)}." for name in methods]


def _found(finding: Finding) -> str:
    level, judgement = percent(finding.level), finding.judgement
    if judgement == Judgement.INFINITE:
        return f"{level} infinite, for want of rows"
    low, high = finding.chance()
    chance = f"chance allows {100 * low:.1f} to {percent(high, 1)}"
    return f"{level} {judgement} ({percent(finding.miscoverage, 1)} outside; {chance})"
