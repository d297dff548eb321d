"""How a text table is written: separator, decimal mark, encoding; guessed where not given.

A decimal mark is guessed only from numbers that can be read in one way: 1.5 and 0,250 show it, while 1,234 may be a
little more than one or more than a thousand.
"""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any

from conformal_gp.tables.errors import TableError

# In order of preference: a comma may also be part of a number or a name.
SEPARATORS = ("\t", ";", "|", ",")
_SEPARATOR_NAMES = {"comma": ",", "semicolon": ";", "tab": "\t", "\\t": "\t", "pipe": "|"}
_SAMPLE_LINES = 100

_WITH_THOUSANDS = re.compile(r"[+-]?[1-9]\d{0,2}([,.])\d{3}(\1\d{3})*")


def _numbers_with(decimal: str, thousands: str) -> re.Pattern[str]:
    """Numbers with this decimal mark, or with marks that can only stand between thousands beside it."""
    grouped = rf"[1-9]\d{{0,2}}({thousands}\d{{3}})"
    plain = rf"\d+{decimal}\d*|{decimal}\d+|{grouped}+{decimal}\d*"
    return re.compile(rf"[+-]?(({plain})([eE][+-]?\d+)?|{grouped}{{2,}})")


_SHOWS = {".": _numbers_with(r"\.", ","), ",": _numbers_with(",", r"\.")}


@dataclass(frozen=True)
class Dialect:
    """How a text table is written."""

    separator: str = ","
    decimal: str = "."
    encoding: str = "utf-8"
    marked: bool = True
    """Whether the decimal mark was given or found in a number; if not, no number of the table has one."""

    def number(self, cell: str) -> float | None:
        """The number that a cell holds, or None.

        >>> Dialect(decimal=",").number("1,5"), Dialect().number("1,5")
        (1.5, None)
        """
        if self.decimal == ",":
            cell = cell.translate(_COMMA_TO_POINT)
        if "_" in cell:  # Python's own 1_000
            return None
        try:
            return float(cell)
        except ValueError:
            return None

    def write(self, number: float) -> str:
        """A number as a cell, with all its digits."""
        text = repr(float(number))
        return text.replace(".", ",") if self.decimal == "," else text

    @classmethod
    def from_json(cls, document: dict[str, Any]) -> Dialect:
        """Read what ``dataclasses.asdict`` wrote."""
        dialect = cls(**document)
        texts = (dialect.separator, dialect.decimal, dialect.encoding)
        if not all(isinstance(text, str) for text in texts) or not isinstance(dialect.marked, bool):
            raise ValueError(f"not a way to write tables: {document!r}")
        if len(dialect.separator) != 1 or dialect.decimal not in (".", ","):
            raise ValueError(f"not a way to write tables: {document!r}")
        return dialect

    def described(self) -> str:
        """In words, but for what is usual.

        >>> Dialect(";", ",").described(), Dialect().described()
        ("separator ';', decimal mark ','", '')
        """
        parts = []
        if self.separator != "," or self.decimal != ".":
            parts.append("separator tab" if self.separator == "\t" else f"separator '{self.separator}'")
            parts.extend([f"decimal mark '{self.decimal}'"] * self.marked)
        if self.encoding == "cp1252":
            parts.append("encoding Windows-1252, as it is not UTF-8")
        return ", ".join(parts)


_COMMA_TO_POINT = str.maketrans({",": ".", ".": "?"})


def decode(content: bytes, name: str) -> tuple[str, str]:
    """Text of a file, and the encoding it was in; a byte-order mark is taken off."""
    if content.startswith((b"\xff\xfe", b"\xfe\xff")):
        return _decoded(content, "utf-16", name), "utf-16"
    if b"\0" in content:
        raise TableError(f"{name} is not a text table: it holds binary data.")
    if content.startswith(b"\xef\xbb\xbf"):
        return _decoded(content, "utf-8-sig", name), "utf-8-sig"
    try:
        return content.decode("utf-8"), "utf-8"
    except UnicodeDecodeError:
        return _decoded(content, "cp1252", name), "cp1252"  # what Windows programs write without a mark


def _decoded(content: bytes, encoding: str, name: str) -> str:
    """Text in an encoding; no character is guessed, as two names could become the same."""
    try:
        return content.decode(encoding)
    except UnicodeDecodeError as error:
        what = "UTF-8 or Windows-1252" if encoding == "cp1252" else encoding.upper().removesuffix("-SIG")
        line = error.object.count(b"\n", 0, error.start) + 1
        raise TableError(f"{name}, line {line}: not text in {what}; save the file in UTF-8.") from None


def read_separator(separator: str) -> str:
    r"""A separator as a person writes it: itself, or its name.

    >>> read_separator("tab") == read_separator("\t") == read_separator(r"\t")
    True
    """
    separator = _SEPARATOR_NAMES.get(separator, separator)
    if len(separator) != 1 or separator in '"\r\n':
        raise TableError(f"separator must be one character or {', '.join(_SEPARATOR_NAMES)}; got {separator!r}.")
    return separator


def guess_separator(text: str, expected: str | None = None) -> str:
    r"""The separator that splits each of the first lines into as many columns as the others.

    >>> guess_separator("a;b\n1,5;2,5\n"), guess_separator("a\tb c\n1\t2\n")
    (';', '\t')
    """
    lines = [line for line in islice(io.StringIO(text, newline=""), _SAMPLE_LINES) if line.strip()]
    known = [] if expected is None else [expected]
    widths = {separator: _widths(lines, separator) for separator in dict.fromkeys([*known, *SEPARATORS])}
    for separator, row in widths.items():
        if row and len(set(row)) == 1 and row[0] > 1:
            return separator
    # No separator fits every line: take the header's, and let the reader name the line that differs.
    return max(widths, key=lambda separator: widths[separator][:1])


def _widths(lines: Sequence[str], separator: str) -> list[int]:
    """Numbers of cells up to the first line that cannot be read; the reader will name that line."""
    widths = []
    try:
        for row in csv.reader(lines, delimiter=separator):
            widths.append(len(row))
    except csv.Error:
        pass
    return widths


def has_thousands(cell: str) -> bool:
    """Whether a number may be written with marks between its thousands.

    >>> has_thousands("3,210"), has_thousands("0,210"), has_thousands("3,21")
    (True, False, False)
    """
    return _WITH_THOUSANDS.fullmatch(cell) is not None


def shown_decimal(cell: str) -> str | None:
    """The decimal mark that a number shows; None if it has none, or could be read in two ways.

    >>> shown_decimal("1,5"), shown_decimal("0.250"), shown_decimal("1,234.5"), shown_decimal("1,234")
    (',', '.', '.', None)
    """
    if _is_doubtful(cell):
        return None
    return next((mark for mark, numbers in _SHOWS.items() if numbers.fullmatch(cell)), None)


def _is_doubtful(cell: str) -> bool:
    """Whether a number has one mark, which may be the decimal mark or stand between thousands."""
    return has_thousands(cell) and cell.count(",") + cell.count(".") == 1


def find_decimal(rows: Iterable[Sequence[str]], separator: str) -> tuple[str | None, tuple[int, int] | None]:
    """The decimal mark that numbers show, or the place of a number, row and column, that can be read in two ways.

    Where commas separate cells, a point is the decimal mark unless a number shows a comma.

    >>> find_decimal([["1", "1,234"], ["0,5", ""]], ";"), find_decimal([["1", "1,234"]], ";")
    ((',', None), (None, (0, 1)))
    """
    doubtful = None
    found: str | None = None
    for row, cells in enumerate(rows):
        for column, cell in enumerate(cells):
            if "." not in cell and "," not in cell:
                continue
            shown = shown_decimal(cell)
            if shown == ".":
                return ".", None  # commas beside points separate thousands, or the cell is reported as no number
            found = found or shown
            if doubtful is None and _is_doubtful(cell):
                doubtful = row, column
    if found is None and doubtful is not None and separator == ",":
        return ".", None
    return found, None if found else doubtful
