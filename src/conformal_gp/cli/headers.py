"""The header of a table: title lines above it, a line of units below it.

Instruments write titles, dates and names of methods above a table. The header is the first row that has all of the
names that are expected; else the first row that is as wide as the rows below it and has text above their numbers, if
all rows above it are narrower; else the first row.
"""

from __future__ import annotations

import warnings
from collections import Counter
from collections.abc import Collection, Sequence
from typing import Any, NamedTuple

import pandas as pd

from conformal_gp.cli.dates import LIKE_DATE
from conformal_gp.cli.tables import LIKE_NUMBER, MISSING_MARKS, plain, without_limit

# A header is looked for among so many rows, by so many rows below it.
MOST_TITLES, ROWS_BELOW = 60, 200
NO_UNIT = frozenset({"", "-", "\N{EN DASH}", "\N{EM DASH}", "NA", "n/a"})

Row = tuple[int, list[Any]]
"""Number of a row in its file, and its cells: text, or values of a workbook."""


class Header(NamedTuple):
    """Place of the header among the rows, and whether the row below it has units."""

    place: int
    units: bool


def find_header(name: str, rows: Sequence[Row], expected: Collection[str] = (), given: int | None = None) -> Header:
    """Find the header; ``expected`` are names that it should have, ``given`` is the number of its row in the file.

    >>> rows = [["Report"], ["t", "y"], ["min", "mV"], ["0.5", "2.5"], ["1.0", "2.75"]]
    >>> find_header("lab.csv", [*enumerate(rows, 1)], given=2)
    Header(place=1, units=True)
    """
    if not rows:
        raise ValueError(f"{name} has no rows below a header.")
    numbers = [number for number, _ in rows]
    if given is not None:
        if given not in numbers:
            raise ValueError(f"--header-row {given}: {name} has nothing in that row; its first is row {numbers[0]}.")
        place = numbers.index(given)
        cells = _texts(rows[: place + ROWS_BELOW])
    else:
        cells = _texts(rows[: MOST_TITLES + ROWS_BELOW])
        named = (i for i, row in enumerate(cells[:MOST_TITLES]) if len(row) > 1 and expected and {*expected} <= {*row})
        place = next(named, _by_shape(cells))
        if place:
            said = f"the header of {name} is row {numbers[place]}; what is above it is skipped"
            warnings.warn(said, stacklevel=4)
    below = cells[place + 1 :]
    return Header(place, len(below) > 1 and _has_units(below[0], below[1:]))


def _texts(rows: Sequence[Row]) -> list[list[str]]:
    return [[text_of(cell) for cell in row] for _, row in rows]


def _by_shape(cells: list[list[str]]) -> int:
    """Find the header by its width, and by its text above numbers; 0 if there are no title rows above it."""
    widths = Counter(_width(row) for row in cells[-ROWS_BELOW:])
    width = max(widths, key=lambda each: (widths[each], each), default=0)
    for place, row in enumerate(cells[:MOST_TITLES]):
        if _width(row) == width and all(row[1:width]):
            below = cells[place + 1 :]
            if any(text and not _like_value(text) and _numeric(below, j) for j, text in enumerate(row[:width])):
                return place
        if sum(map(bool, row)) >= width:  # a row of the table
            return 0
    return 0


def _has_units(first: list[str], below: list[list[str]]) -> bool:
    """Return whether a row has text that is above numbers only."""
    text = {j: cell for j, cell in enumerate(first) if cell not in NO_UNIT}
    if not text or any(_like_value(cell) or cell in MISSING_MARKS for cell in text.values()):
        return False
    return all(_numeric(below, j) for j in text)


def _numeric(rows: list[list[str]], column: int) -> bool:
    """Return whether most cells of a column that are not empty are numbers, limits of detection or dates."""
    present = [row[column] for row in rows if column < len(row) and row[column] not in MISSING_MARKS]
    return 2 * sum(map(_like_value, present)) > len(present)


def _like_value(text: str) -> bool:
    """Return whether a cell is like a number, a limit of detection or a date."""
    return any(pattern.fullmatch(without_limit(text)[0]) for pattern in (LIKE_NUMBER, LIKE_DATE))


def _width(row: list[str]) -> int:
    """Number of cells up to the last that is not empty."""
    return max((j for j, cell in enumerate(row, 1) if cell), default=0)


def text_of(cell: Any) -> str:
    """Return a cell as text."""
    if not isinstance(cell, str) and pd.isna(cell):
        return ""
    return plain(cell)
