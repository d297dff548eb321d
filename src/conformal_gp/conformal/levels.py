"""Confidence levels as exact fractions, and the rank that each asks for.

(1 - 0.9) * 500 is 49.999999999999986 in floating point, and its floor is the wrong rank. So a level is read as the
fraction that a person meant by it, and ranks are found in integers.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from decimal import Decimal
from fractions import Fraction
from numbers import Rational, Real
from typing import Any

import numpy as np


def read_level(level: Any, name: str = "confidence_level") -> Fraction:
    """Read one confidence level strictly between 0 and 1; ``name`` is what errors call it.

    A float within a few units in the last place of a fraction with a denominator up to a million is that fraction: 0.9
    is 9/10, and so is 1 - 0.1.

    >>> read_level(0.95), read_level(1 - 0.7)
    (Fraction(19, 20), Fraction(3, 10))
    """
    if isinstance(level, bool | np.bool_) or not isinstance(level, Real | Decimal):
        raise ValueError(f"{name} must be a number strictly between 0 and 1, got {level!r}.")
    if isinstance(level, Rational):
        exact = Fraction(level)
    elif math.isfinite(level):
        # np.float32(0.9) means 0.9; its shortest decimal says so, its binary value does not.
        written = Fraction(str(level))
        simple = written.limit_denominator(10**6)
        exact = simple if abs(simple - written) < Fraction(1, 10**15) else written
    else:
        exact = Fraction(0)
    if not 0 < exact < 1:
        hint = f"; {level}% is {float(level) / 100:g}" if 1 < exact < 100 else ""
        raise ValueError(f"{name} must lie strictly between 0 and 1, got {level!r}{hint}.")
    return exact


def read_levels(given: Any, name: str = "confidence_level") -> tuple[list[Fraction], bool]:
    """Levels as a list, and whether a single one was given."""
    if isinstance(given, str) or not isinstance(given, Iterable):
        return [read_level(given, name)], True
    if isinstance(given, np.ndarray) and given.ndim == 0:
        return [read_level(given[()], name)], True
    levels = [read_level(level, name) for level in given]
    if not levels:
        raise ValueError(f"{name} must hold at least one level, got an empty sequence.")
    return levels, False


def rank(level: Fraction, n_calibration: int) -> int:
    """k = floor(δ (n + 1)): a label is in the region when at least k of the n calibration rows conform no better.

    p = (count + 1) / (n + 1) > δ is count + 1 > δ (n + 1), which for integers is count >= floor(δ (n + 1)).

    >>> rank(Fraction(9, 10), 499)
    50
    """
    return math.floor((1 - level) * (n_calibration + 1))


def rows_needed(level: Fraction) -> int:
    """Fewest calibration rows for which the region is not the whole line: the least n with δ (n + 1) >= 1."""
    return math.ceil(1 / (1 - level)) - 1
