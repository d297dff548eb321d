"""Numbers, shares and names of methods as people read them."""

from __future__ import annotations

from fractions import Fraction

CONFORMAL, STANDARD = "conformal", "standard GP"
"""Names of the methods that are compared."""


def percent(share: float | Fraction, decimals: int | None = None) -> str:
    """Write a share in percent, with some decimals, or as many as it has.

    Examples
    --------
    >>> percent(0.95), percent(0.999), percent(17 / 392, decimals=1)
    ('95%', '99.9%', '4.3%')
    """
    value = float(100 * share)
    if decimals is None:
        return f"{value:.12g}%"
    return f"{value:.{decimals}f}%"


def number(value: float, digits: int = 4) -> str:
    """Write a number with some significant digits; with an exponent only if it is very large or very small.

    >>> number(1345678.9), number(0.012345), number(3.0), number(2.5e15), number(float("inf"))
    ('1346000', '0.01235', '3', '2.5e+15', 'inf')
    """
    text = f"{value:.{digits}g}"
    if "e+" in text and abs(value) < 1e12:
        return f"{float(text):.0f}"
    return text
