"""Tables with columns added, written the way they were read; and digits of the numbers in these columns.

Digits follow the width of the interval, and rounding never excludes anything. Numbers of a row are rounded to three
digits of its narrowest interval, lower bounds down and upper bounds up, so that each rounded interval contains the
exact one, and the prediction.
"""

from __future__ import annotations

import io
import math
import sys
from collections.abc import Sequence
from decimal import ROUND_CEILING, ROUND_FLOOR, ROUND_HALF_EVEN, Context, Decimal
from fractions import Fraction
from typing import Any

import numpy as np
import pandas as pd

from conformal_gp.cli.tables import LIKE_NUMBER, MISSING_MARKS, Format, Table, kind_of, listed
from conformal_gp.files import write_bytes
from conformal_gp.formatting import percent

DIGITS = 3
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


def rounded(found: pd.DataFrame, levels: list[Fraction], shares: Sequence[Fraction] = ()) -> pd.DataFrame:
    """Round means, bounds and quantiles, row by row."""
    directions = {"mean": ROUND_HALF_EVEN}
    pairs = [bounds_of(level) for level in levels]
    for lower, upper in pairs:
        directions |= {lower: ROUND_FLOOR, upper: ROUND_CEILING}
    for share in shares:
        directions[quantile_of(share)] = ROUND_FLOOR  # away from the median
        if share >= Fraction(1, 2):
            directions[quantile_of(share)] = ROUND_CEILING
        if not levels:
            pairs.append([quantile_of(share)] * 2)
    columns = [zip(found[lower], found[upper], found["mean"], strict=True) for lower, upper in pairs]
    widths = [min(filter(None, (_width(*ends) for ends in row)), default=0.0) for row in zip(*columns, strict=True)]
    result = found.copy()
    for name, direction in directions.items():
        result[name] = [_round(*cell, direction) for cell in zip(found[name], widths, strict=True)]
    return result


def outward(low: float, high: float) -> tuple[float, float]:
    """Round the bounds of an interval outward, to some digits of its width.

    >>> outward(1.28897, 1.55321)
    (1.288, 1.554)
    """
    return _round(low, high - low, ROUND_FLOOR), _round(high, high - low, ROUND_CEILING)


def _width(lower: float, upper: float, mean: float) -> float:
    """Return the width of an interval; if one bound is infinite, twice the other's distance from the prediction."""
    if lower == upper or math.isinf(upper - lower):
        return 2.0 * max((abs(end - mean) for end in (lower, upper) if math.isfinite(end)), default=0.0)
    return upper - lower


def _round(value: float, width: float, direction: str) -> float:
    """Round a number to three digits of a width; without a width it stays as it is.

    >>> _round(101324.92837, 0.1438, ROUND_FLOOR), _round(101325.07217, 0.1438, ROUND_CEILING)
    (101324.928, 101325.073)
    >>> _round(28766.2, 5321.0, ROUND_FLOOR), _round(-math.inf, 5321.0, ROUND_FLOOR)
    (28760.0, -inf)
    """
    if not math.isfinite(value) or not 0.0 < width < math.inf:
        return value
    unit = Decimal(1).scaleb(math.floor(math.log10(width)) + 1 - DIGITS)
    return float(Decimal(value).quantize(unit, rounding=direction, context=_EXACT))


def write_table(table: Table, added: pd.DataFrame, prefix: str, out: str) -> None:
    """Write a table with columns added, the way it was read, or as the ending of ``out`` requires; ``-`` is stdout.

    Added columns, whose names get the prefix, may lack rows of the table. Text that a spreadsheet would take for a
    formula gets a leading apostrophe, except in Parquet.
    """
    empty = dict.fromkeys(added.select_dtypes(exclude="number"), "")
    added = added.reindex(table.frame.index).fillna(empty).add_prefix(prefix)
    taken = [name for name in added if name in table.frame]
    if taken:
        raise ValueError(f"{table.name} already has {listed(taken)}; rename or delete such columns.")
    kind = kind_of(out)
    old = table.frame
    form = table.format
    if form.separator and kind in ("parquet", "excel"):
        old = old.apply(lambda cells: _as_numbers(cells, form))
    frame = pd.concat([old, added], axis=1)
    if kind in ("parquet", "excel"):
        write_bytes(out, _packed(frame, kind))
        return
    frame = _without_formulas(frame)
    for name in added.select_dtypes("float"):
        frame[_without_formula(name)] = [_written(value, form.decimal or ".") for value in added[name]]
    separator = form.separator or ","
    if kind == "tabs":
        separator = "\t"
    text = frame.to_csv(index=False, sep=separator, lineterminator="\n")
    if out == "-":
        sys.stdout.write(text)
        return
    try:
        write_bytes(out, text.encode(form.encoding or "utf-8"))
    except UnicodeEncodeError as error:
        what = f"'{text[error.start]}', which {form.encoding}, the encoding of {table.name}, lacks"
        raise ValueError(f"the output has {what}; save {table.name} in UTF-8.") from None


def _as_numbers(cells: pd.Series, form: Format) -> pd.Series:
    """Turn a column of text into numbers, if all cells are numbers or empty."""
    found = [math.nan if cell in MISSING_MARKS else form.number(cell) for cell in cells]
    if None in found:
        return cells
    return pd.Series(found, cells.index, dtype=np.float64)


def _written(value: float, decimal: str) -> str:
    """Write a new number with the decimal mark of its table; empty where there is none."""
    if math.isnan(value):
        return ""
    return repr(float(value)).removesuffix(".0").replace(".", decimal)


def _without_formulas(frame: pd.DataFrame) -> pd.DataFrame:
    """Mark text that a spreadsheet would run, in cells and in the header."""
    safe = frame.copy()
    for name in frame:
        if any(isinstance(cell, str) for cell in frame[name]):
            safe[name] = frame[name].astype(object).map(_without_formula)
    return safe.set_axis([_without_formula(name) for name in frame], axis=1)


def _without_formula(cell: Any) -> Any:
    """Put an apostrophe before a text that is no number and starts as a formula does.

    >>> [_without_formula(cell) for cell in ("=1+1", "@a", "-x", "-", "-1,5", "+3%", 7)]
    ["'=1+1", "'@a", "'-x", '-', '-1,5', '+3%', 7]
    """
    if not isinstance(cell, str):
        return cell
    lines = cell.replace("\r\n", "\n").replace("\r", "\n")  # the csv module does not quote "\r"
    if len(cell) < 2 or cell[0] not in "=+-@\t\r\n" or LIKE_NUMBER.fullmatch(cell):
        return lines
    return f"'{lines}"


def _packed(frame: pd.DataFrame, kind: str) -> bytes:
    """Return the content of a Parquet file, or of a workbook without formulas."""
    file = io.BytesIO()
    if kind == "parquet":
        frame.to_parquet(file, index=False)
        return file.getvalue()
    with pd.ExcelWriter(file, engine="openpyxl") as writer:
        _without_formulas(frame).to_excel(writer, index=False, sheet_name="predictions")
    return file.getvalue()
