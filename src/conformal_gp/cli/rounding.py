"""Digits of predictions: they follow the width of the interval, and rounding never excludes anything.

Numbers of a row are rounded to some digits of its narrowest interval, lower bounds down and upper bounds up, so that
each rounded interval contains the exact one, and the prediction.
"""

from __future__ import annotations

import math
from decimal import ROUND_CEILING, ROUND_FLOOR, ROUND_HALF_EVEN, Context, Decimal
from fractions import Fraction
from typing import TYPE_CHECKING

from conformal_gp.formatting import percent

if TYPE_CHECKING:
    import pandas as pd

_EXACT = Context(prec=800)  # digits enough for every double


def bounds_of(level: Fraction) -> list[str]:
    """Name the columns of the bounds of a level.

    >>> bounds_of(Fraction(999, 1000))
    ['lower_99.9', 'upper_99.9']
    """
    return [f"{side}_{percent(level)[:-1]}" for side in ("lower", "upper")]


def quantile_of(share: Fraction) -> str:
    """Name the column of a quantile."""
    return f"quantile_{percent(share)[:-1]}"


def rounded(found: pd.DataFrame, levels: list[Fraction], shares: list[Fraction], digits: int) -> pd.DataFrame:
    """Round means, bounds and quantiles, row by row."""
    directions = {"mean": ROUND_HALF_EVEN}
    pairs = [bounds_of(level) for level in levels]
    for lower, upper in pairs:
        directions |= {lower: ROUND_FLOOR, upper: ROUND_CEILING}
    for share in shares:
        directions[quantile_of(share)] = _direction(share)
        if not levels:
            pairs.append([quantile_of(share)] * 2)
    columns = [zip(found[lower], found[upper], found["mean"], strict=True) for lower, upper in pairs]
    widths = [min(filter(None, (_width(*ends) for ends in row)), default=0.0) for row in zip(*columns, strict=True)]
    result = found.copy()
    for name, direction in directions.items():
        result[name] = [_round(*cell, digits, direction) for cell in zip(found[name], widths, strict=True)]
    return result


def outward(low: float, high: float, digits: int) -> tuple[float, float]:
    """Round the ends of an interval outward, to some digits of its width.

    >>> outward(1.28897, 1.55321, 3)
    (1.288, 1.554)
    """
    return _round(low, high - low, digits, ROUND_FLOOR), _round(high, high - low, digits, ROUND_CEILING)


def _direction(share: Fraction) -> str:
    """Return the way to round a quantile: away from the median."""
    if share == Fraction(1, 2):
        return ROUND_HALF_EVEN
    if share < Fraction(1, 2):
        return ROUND_FLOOR
    return ROUND_CEILING


def _width(lower: float, upper: float, mean: float) -> float:
    """Return the width of an interval; if one bound is infinite, twice the other's distance from the prediction."""
    if lower == upper or math.isinf(upper - lower):
        return 2.0 * max((abs(end - mean) for end in (lower, upper) if math.isfinite(end)), default=0.0)
    return upper - lower


def _round(value: float, width: float, digits: int, direction: str) -> float:
    """Round a number to some digits of a width; without a width it stays as it is.

    >>> _round(101324.92837, 0.1438, 3, ROUND_FLOOR), _round(101325.07217, 0.1438, 3, ROUND_CEILING)
    (101324.928, 101325.073)
    >>> _round(28766.2, 5321.0, 3, ROUND_FLOOR), _round(-math.inf, 5321.0, 3, ROUND_FLOOR)
    (28760.0, -inf)
    """
    if not math.isfinite(value) or not 0.0 < width < math.inf:
        return value
    unit = Decimal(1).scaleb(math.floor(math.log10(width)) + 1 - digits)
    return float(Decimal(value).quantize(unit, rounding=direction, context=_EXACT))
