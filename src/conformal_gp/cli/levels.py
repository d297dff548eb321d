"""Confidence levels on the command line."""

from __future__ import annotations

from collections.abc import Iterable
from fractions import Fraction

from conformal_gp.conformal.levels import read_level


def parse_level(text: str) -> Fraction:
    """A level, as a share or in percent.

    >>> parse_level("0.95") == parse_level("95%") == Fraction(19, 20)
    True
    """
    written = text.strip()
    try:
        value = Fraction(written.removesuffix("%").strip())
    except (ValueError, ZeroDivisionError):
        raise ValueError(f"--confidence takes levels such as 0.95 or 95%, got '{text}'.") from None
    if written.endswith("%"):
        value /= 100
    elif 1 < value < 100:
        raise ValueError(f"--confidence takes levels such as 0.95 or 95%, got '{text}'; did you mean {text}%?")
    try:
        return read_level(value)
    except ValueError:
        raise ValueError(f"--confidence takes levels strictly between 0 and 1 (0% and 100%), got '{text}'.") from None


def parse_levels(texts: Iterable[str]) -> list[Fraction]:
    """Levels in ascending order, without repetitions. A text may contain several, separated by commas."""
    parts = [part for text in texts for part in text.split(",") if part.strip()]
    return sorted({parse_level(part) for part in parts})
