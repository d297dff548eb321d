"""Columns of dates: how they are written, and the numbers that they become.

A date becomes its year, its month (1 to 12), its day of the week (Monday is 0) and, where some row has a time of day,
its hour. A date such as 03/04/2024 can be read in two ways. Another row of the column must show which (13/04/2024), or
it is an error.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import UTC, date, datetime, time
from typing import Any

import numpy as np

from conformal_gp.tables.cells import is_missing
from conformal_gp.tables.errors import TableError
from conformal_gp.tables.table import Table
from conformal_gp.types import Array

ORDERS = ("ymd", "dmy", "mdy")
PARTS = ("year", "month", "day of week")
_WRITTEN = re.compile(r"(\d{1,4})([./-])(\d{1,2})\2(\d{1,4})(?:[T ](.+))?")
_EPOCH = datetime(1970, 1, 1)
_SECONDS_A_DAY = 86400.0


def order_of(table: Table, name: str, marks: frozenset[str]) -> str:
    """Whether dates of a column are written year first, day first or month first."""
    found = [(row, _WRITTEN.fullmatch(cell)) for row, cell in _written(table, name, marks)]
    parts = [(row, match[1], match[2], match[3]) for row, match in found if match is not None]
    if not parts or len(parts[0][1]) == 4:
        return "ymd"
    if any(mark == "." or int(first) > 12 for _, first, mark, _ in parts):
        return "dmy"
    if any(int(second) > 12 for _, _, _, second in parts):
        return "mdy"
    row = parts[0][0]
    raise TableError(
        f"{table.name}: column '{name}', {table.place(row)}: '{table.cells(name)[row]}' can be read with the day or "
        "the month first, and no other date of the column shows which. Write dates as 2024-12-31."
    )


def read_dates(table: Table, name: str, order: str, marks: frozenset[str]) -> Array:
    """Dates of a column in days since 1970, NaN where a cell holds nothing."""
    days = np.full(len(table), np.nan)
    for row, cell in enumerate(table.cells(name)):
        if is_missing(cell, marks):
            continue
        moment = _moment(cell, order)
        if moment is None:
            written = {"ymd": "2024-12-31", "dmy": "31.12.2024", "mdy": "12/31/2024"}[order]
            raise TableError(
                f"{table.name}: column '{name}', {table.place(row)}: '{cell}' is not a date such as {written}, as the "
                "column's others are; years have four digits."
            )
        days[row] = (moment - _EPOCH).total_seconds() / _SECONDS_A_DAY
    return days


def has_hours(days: Array) -> bool:
    """Whether some date has a time of day."""
    return bool((np.nan_to_num(days) % 1.0 != 0.0).any())


def parts_of(days: Array, hours: bool) -> Array:
    """Year, month, day of the week and perhaps hour of dates, (rows, parts).

    >>> parts_of(np.array([19782.5]), hours=True).tolist()  # noon of 2024-02-29, a Thursday
    [[2024.0, 2.0, 3.0, 12.0]]
    """
    whole = np.floor(days).astype("datetime64[D]")
    months = whole.astype("datetime64[M]").astype(int)
    parts: Sequence[Array] = (1970.0 + months // 12, 1.0 + months % 12, (np.floor(days) + 3.0) % 7.0)
    return np.column_stack([*parts, np.round(24.0 * (days % 1.0), 6)] if hours else parts)


def _written(table: Table, name: str, marks: frozenset[str]) -> list[tuple[int, str]]:
    cells = enumerate(table.cells(name))
    return [(row, cell) for row, cell in cells if isinstance(cell, str) and not is_missing(cell, marks)]


def _moment(cell: Any, order: str) -> datetime | None:
    """A date and time without a zone, or None."""
    if isinstance(cell, datetime):
        return cell if cell.tzinfo is None else cell.astimezone(UTC).replace(tzinfo=None)
    if isinstance(cell, date):
        return datetime(cell.year, cell.month, cell.day)
    match = _WRITTEN.fullmatch(cell) if isinstance(cell, str) else None
    if match is None:
        return None
    numbers = dict(zip(order, (match[1], match[3], match[4]), strict=True))
    try:
        if len(numbers["y"]) != 4:
            return None
        day = datetime(int(numbers["y"]), int(numbers["m"]), int(numbers["d"]))
        moment = time.fromisoformat((match[5] or "00:00").strip())
    except ValueError:
        return None
    whole = datetime.combine(day, moment)
    return whole if whole.tzinfo is None else whole.astimezone(UTC).replace(tzinfo=None)
