"""Confidence levels on the command line."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Sequence
from fractions import Fraction
from itertools import count

from conformal_gp.formatting import percent

LOWEST = Fraction(1, 2)  # a lower level is more likely a mistake: 5% where 95% is meant
_SEVERAL_LEVELS = ("--confidence", "--quantiles")
# Short, so that no fraction has a denominator of millions of digits.
_LEVEL = re.compile(r"\d{1,3}(\.\d{0,12})?|\.\d{1,12}")


def spread_levels(arguments: list[str]) -> list[str]:
    """Repeat ``--confidence`` and ``--quantiles`` before each level, as the option parser needs it.

    >>> spread_levels(["a.csv", "--confidence", "0.9", "95%", "-o", "b.csv"])
    ['a.csv', '--confidence', '0.9', '--confidence', '95%', '-o', 'b.csv']
    """
    spread: list[str] = []
    for argument in ["--confidence" if argument == "-c" else argument for argument in arguments]:
        if len(spread) > 1 and spread[-2] in _SEVERAL_LEVELS and all(map(_is_level, (spread[-1], argument))):
            spread.append(spread[-2])
        spread.append(argument)
    return spread


def _is_level(text: str) -> bool:
    return _LEVEL.fullmatch(text.removesuffix("%").strip()) is not None


def parse_levels(texts: Iterable[str], option: str = "--confidence", lowest: Fraction = LOWEST) -> list[Fraction]:
    """Read levels, as shares or in percent (95 means 95%), separated by commas; sorted.

    >>> parse_levels(["0.95", "80%,95"])
    [Fraction(4, 5), Fraction(19, 20)]
    """
    levels = set()
    for text in (part.strip() for given in texts for part in given.split(",")):
        level = Fraction(0)
        if _is_level(text):
            level = Fraction(text.removesuffix("%").strip())
        if text.endswith("%") or level >= 2:
            level /= 100
        if not 0 < level < 1:
            raise ValueError(f"{option} takes levels strictly between 0 and 1, such as 0.95 or 95%; got '{text[:30]}'.")
        if level < lowest:
            raise ValueError(
                f"{option} {text} asks for intervals that cover {percent(level)} of rows, and takes levels from "
                f"{percent(lowest)} on; did you mean {percent(1 - level)}?"
            )
        levels.add(level)
    return sorted(levels)


def more_rows(levels: Sequence[Fraction], split: bool, share: float = 1.0, batches: bool = False) -> str:
    """Say how many rows, or batches, the usual levels need that are not among these; empty if all are.

    ``split`` is whether tuning rows are set aside, ``share`` the share of the rows that train.
    """
    from conformal_gp.evaluation.findings import USUAL
    from conformal_gp.models.tuning_rows import batches_needed

    needed: list[str] = []
    for level in USUAL:
        if level in levels:
            continue
        if batches:
            what = f"{math.ceil(batches_needed(level) / share)} batches"
        else:
            what = f"{math.ceil(_rows_for(level, split) / share)} rows"
        needed.append(f"{percent(level)} intervals need {what} here")
    return "; ".join(needed)


def _rows_for(level: Fraction, split: bool) -> int:
    """Return the fewest training rows that leave enough calibration rows for a level."""
    from conformal_gp.conformal.levels import rows_needed
    from conformal_gp.models.settings import ROWS_FOR_INTEGRATED
    from conformal_gp.models.tuning_rows import calibration_size

    needed = rows_needed(level)
    if not split and needed <= ROWS_FOR_INTEGRATED:
        return needed
    return next(n for n in count(needed) if calibration_size(n) >= needed)
