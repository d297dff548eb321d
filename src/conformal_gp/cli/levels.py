"""Confidence levels and quantiles on the command line."""

from __future__ import annotations

import re
from collections.abc import Iterable
from fractions import Fraction

from conformal_gp.conformal.levels import read_level

# Short, so that no fraction has a denominator of millions of digits.
_LEVEL = re.compile(r"[+-]?(\d{1,20}(\.\d{0,20})?|\.\d{1,20})([eE][+-]?\d)?")
_MOST_DECIMALS = 12


def parse_level(text: str, option: str = "--confidence") -> Fraction:
    """A level, as a share or in percent; ``option`` is where it was given. A number above 1 is in percent.

    >>> parse_level("0.95") == parse_level("95%") == parse_level("95") == Fraction(19, 20)
    True
    """
    kind = "quantiles" if option == "--quantiles" else "levels"
    written = text.strip()
    plain = written.removesuffix("%").strip()
    if not _LEVEL.fullmatch(plain):
        shown = text if len(text) <= 30 else f"{text[:30]}..."
        raise ValueError(f"{option} takes {kind} such as 0.95 or 95%, got '{shown}'.")
    value = Fraction(plain)
    if written.endswith("%") or value > 1:
        value /= 100
    if (value * 10**_MOST_DECIMALS).denominator != 1:
        raise ValueError(f"{option} takes {kind} of up to {_MOST_DECIMALS} decimals, got '{text}'.")
    try:
        return read_level(value)
    except ValueError:
        raise ValueError(f"{option} takes {kind} strictly between 0 and 1 (0% and 100%), got '{text}'.") from None


def parse_levels(texts: Iterable[str], option: str = "--confidence") -> list[Fraction]:
    """Levels in ascending order, without repetitions. A text may contain several, separated by commas."""
    parts = [part for text in texts for part in text.split(",") if part.strip()]
    if not parts:
        kind = "quantiles" if option == "--quantiles" else "levels"
        raise ValueError(f"{option} takes {kind} such as 0.95 or 95%, got none.")
    return sorted({parse_level(part, option) for part in parts})
