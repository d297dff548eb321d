"""Single columns: which cells are missing, numbers, dates or text."""

from __future__ import annotations

import re
from collections.abc import Sequence
from decimal import Decimal
from numbers import Real
from typing import Any

import numpy as np

from conformal_gp.tables.dialect import Dialect
from conformal_gp.types import Array

MISSING_MARKS = frozenset({"", "NA", "N/A", "n/a", "#N/A", "NaN", "nan", "NULL", "null", "?"})
_DATE = re.compile(r"\d{4}-\d{1,2}-\d{1,2}([T ].*)?|\d{1,2}([./-])\d{1,2}\2\d{2,4}( .*)?|\d{4}/\d{1,2}/\d{1,2}( .*)?")
# Digits with marks, a currency or a percent sign: meant as a number, even if it cannot be read as one.
_LIKE_A_NUMBER = re.compile(r"[$€£]?\s*[+-]?\d[\d.,'\s]*([eE][+-]?\d+)?\s*[%$€£]?")


def is_missing(cell: Any, marks: frozenset[str] = MISSING_MARKS) -> bool:
    """Whether a cell, of whatever type, holds nothing."""
    if isinstance(cell, str):
        return cell in marks
    if cell is None or type(cell).__name__ in ("NAType", "NaTType"):
        return True
    return isinstance(cell, Real | Decimal) and bool(cell != cell)


def number(cell: Any, dialect: Dialect) -> float | None:
    """The number in a cell, or None."""
    if isinstance(cell, str):
        return dialect.number(cell)
    try:
        return float(cell)
    except (TypeError, ValueError):
        return None


def as_numbers(cells: Sequence[Any], dialect: Dialect, marks: frozenset[str] = MISSING_MARKS) -> Array | None:
    """Cells as numbers, NaN where one holds nothing; None if some cell holds something else.

    A mark that is itself a number stands for that number, however it is written.

    >>> as_numbers(["1.5", "-999.0", ""], Dialect(), MISSING_MARKS | {"-999"}).tolist()
    [1.5, nan, nan]
    """
    numbers = _plain_numbers(cells) if dialect.decimal == "." else None
    if numbers is None:
        found = [np.nan if is_missing(cell, marks) else number(cell, dialect) for cell in cells]
        if None in found:
            return None
        numbers = np.array(found, dtype=np.float64)
    for mark in marks - MISSING_MARKS:
        value = dialect.number(mark)
        if value is not None:
            numbers[numbers == value] = np.nan
    return numbers


def _plain_numbers(cells: Sequence[Any]) -> Array | None:
    """A column of plain numbers, by a fast method; None if some cell is not one."""
    try:
        return np.array([float(cell) for cell in cells if "_" not in cell], dtype=np.float64).reshape(len(cells))
    except (TypeError, ValueError):
        return None


def is_date(cell: Any) -> bool:
    """Whether a cell holds a date or a time.

    >>> is_date("2024-02-29"), is_date("29.2.2024"), is_date("2.5")
    (True, True, False)
    """
    if isinstance(cell, str):
        return _DATE.fullmatch(cell) is not None
    return hasattr(cell, "isoformat")


def is_like_a_number(cell: Any) -> bool:
    """Whether a cell is meant as a number.

    >>> is_like_a_number("1.234,5"), is_like_a_number("$ 3"), is_like_a_number("3 doors")
    (True, True, False)
    """
    return not isinstance(cell, str) or _LIKE_A_NUMBER.fullmatch(cell) is not None
