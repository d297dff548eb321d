"""Confidence levels and quantiles on the command line."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Sequence
from fractions import Fraction
from itertools import count

_OPTIONS = ("--confidence", "--quantiles")
# Short, so that no fraction has a denominator of millions of digits.
_LEVEL = re.compile(r"\d{1,3}(\.\d{0,12})?|\.\d{1,12}")


def spread_levels(arguments: list[str]) -> list[str]:
    """Repeat ``--confidence`` and ``--quantiles`` before each level, as the option parser needs it.

    >>> spread_levels(["a.csv", "--confidence", "0.9", "95%", "-o", "b.csv"])
    ['a.csv', '--confidence', '0.9', '--confidence', '95%', '-o', 'b.csv']
    """
    spread: list[str] = []
    for argument in arguments:
        if len(spread) > 1 and spread[-2] in _OPTIONS and all(map(_is_level, (spread[-1], argument))):
            spread.append(spread[-2])
        spread.append("--confidence" if argument == "-c" else argument)
    return spread


def _is_level(text: str) -> bool:
    return _LEVEL.fullmatch(text.removesuffix("%").strip()) is not None


def parse_levels(texts: Iterable[str], option: str = "--confidence", any_level: bool = False) -> list[Fraction]:
    """Levels in ascending order, as shares or in percent: 95 means 95%. Commas may separate them.

    >>> parse_levels(["0.95", "80%,95"])
    [Fraction(4, 5), Fraction(19, 20)]
    """
    levels = set()
    for text in (part.strip() for given in texts for part in given.split(",")):
        value = Fraction(text.removesuffix("%").strip()) if _is_level(text) else Fraction(0)
        level = value / 100 if text.endswith("%") or value >= 2 else value
        if not 0 < level < 1:
            raise ValueError(f"{option} takes levels strictly between 0 and 1, such as 0.95 or 95%; got '{text[:30]}'.")
        if level < Fraction(1, 2) and not any_level:
            raise ValueError(
                f"{option} {text} asks for intervals that hold {written(level)}% of labels; did you mean "
                f"{written(1 - level)}%? --any-level takes it as it is."
            )
        levels.add(level)
    return sorted(levels)


def written(level: Fraction) -> str:
    """A level in percent, without the sign.

    >>> written(Fraction(999, 1000))
    '99.9'
    """
    return f"{float(100 * level):.12g}"


def more_rows(levels: Sequence[Fraction], split: bool, share: float = 1.0) -> str:
    """How many rows the usual levels need that are not among these; nothing if all are.

    ``split`` says whether tuning rows are set aside, ``share`` how many of the rows are training rows.
    """
    from conformal_gp.conformal.levels import rows_needed
    from conformal_gp.evaluation.findings import USUAL
    from conformal_gp.models.tuning_rows import ROWS_FOR_INTEGRATED, calibration_size

    def least(level: Fraction) -> int:
        """Fewest rows of which enough are calibration rows."""
        needed = rows_needed(level)
        all_calibrate = 0 if split else ROWS_FOR_INTEGRATED
        return next(n for n in count(needed) if (n if n <= all_calibrate else calibration_size(n)) >= needed)

    wanted = [f"{math.ceil(least(level) / share)} rows for {written(level)}%" for level in USUAL if level not in levels]
    return f"higher levels take more rows: {' and '.join(wanted)}" if wanted else ""
