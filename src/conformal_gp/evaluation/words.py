"""Findings in plain words."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from fractions import Fraction

import numpy as np

from conformal_gp.evaluation.judgement import Finding, Judgement


def percent(share: float | Fraction, decimals: int | None = None) -> str:
    """A share in percent.

    Parameters
    ----------
    share : float or Fraction
        The share; 1 is 100%.
    decimals : int or None, default=None
        Digits after the point. None writes as many as the share has.

    Returns
    -------
    text : str
        The number and the sign.

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
    """The findings in plain words.

    Parameters
    ----------
    findings : sequence of Finding
        Of one method or several.

    Returns
    -------
    sentences : list of str
        A sentence for each method, what is wrong first; also where labels on one side are more than half of what is
        promised allows. With two methods or more, another on how wide the intervals of the first are beside those of
        the second.

    Examples
    --------
    >>> from fractions import Fraction
    >>> from conformal_gp.evaluation import Finding, verdict
    >>> print(*verdict([Finding("plain GPR", Fraction(99, 100), 392, 2, 10, 13.3, 13.1, 0)]))
    plain GPR: too narrow at 99% (3.1% of labels outside, 3.1 times the 1% promised); too many above at 99% (2.6%).
    """
    methods = list(dict.fromkeys(finding.method for finding in findings))
    sentences = [_on_method([finding for finding in findings if finding.method == name]) for name in methods]
    return [*sentences, *_price(findings, methods)]


def _on_method(findings: Sequence[Finding]) -> str:
    def found(judgement: Judgement, describe: Callable[[Finding], str]) -> str:
        return listed([describe(finding) for finding in findings if finding.judgement == judgement])

    sides = [(f.judgement_below == Judgement.TOO_NARROW, f.judgement_above == Judgement.TOO_NARROW) for f in findings]
    below = [_one_side(f, f.n_below) for f, side in zip(findings, sides, strict=True) if side == (True, False)]
    above = [_one_side(f, f.n_above) for f, side in zip(findings, sides, strict=True) if side == (False, True)]

    parts = [
        ("too narrow at", found(Judgement.TOO_NARROW, _excess)),
        ("in doubt, perhaps too narrow, at", found(Judgement.IN_DOUBT, _excess)),
        ("wider than they need be at", found(Judgement.TOO_WIDE, _excess)),
        ("infinite, for want of rows, at", found(Judgement.INFINITE, _level)),
        ("kept the promise at", found(Judgement.KEPT, _level)),
        ("too many below at", listed(below)),
        ("too many above at", listed(above)),
    ]
    return f"{findings[0].method}: {'; '.join(f'{words} {levels}' for words, levels in parts if levels)}."


def _level(finding: Finding) -> str:
    return percent(finding.level)


def _one_side(finding: Finding, n_beyond: int) -> str:
    return f"{percent(finding.level)} ({percent(n_beyond / finding.n_rows, 1)})"


def _excess(finding: Finding) -> str:
    times = finding.miscoverage / float(1 - finding.level)
    digits = 1 if abs(times - 1) >= 0.1 else 2  # with many rows a small excess is told from none
    return (
        f"{percent(finding.level)} ({percent(finding.miscoverage, 1)} of labels outside, {times:.{digits}f} times the "
        f"{percent(1 - finding.level)} promised)"
    )


def _price(findings: Sequence[Finding], methods: Sequence[str]) -> list[str]:
    """How much wider the first method's intervals are than the second's, where both are finite."""
    if len(methods) < 2:
        return []
    first, second = methods[:2]
    widths = {(finding.method, finding.level): finding.mean_width for finding in findings}
    found = [
        f"{width / widths[second, level] - 1:+.0%} at {percent(level)}"
        for (method, level), width in widths.items()
        if method == first and np.isfinite(width) and 0.0 < widths[second, level] < np.inf
    ]
    return [f"Mean width of {first}, beside {second}: {', '.join(found)}."] if found else []


def listed(words: Sequence[str]) -> str:
    """Words as people list them.

    >>> listed(["a", "b", "c"]), listed(["a"]), listed([])
    ('a, b and c', 'a', '')
    """
    return " and ".join(filter(None, [", ".join(words[:-1]), *words[-1:]]))
