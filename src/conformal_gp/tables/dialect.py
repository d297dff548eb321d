"""How a text table is written: separator, decimal mark, encoding; guessed where not said."""

from __future__ import annotations

import csv
import re
from collections.abc import Iterable
from dataclasses import dataclass

from conformal_gp.tables.errors import TableError

# In order of trust: a comma may also stand in a number or a name.
SEPARATORS = ("\t", ";", "|", ",")
_SEPARATOR_NAMES = {"comma": ",", "semicolon": ";", "tab": "\t", "\\t": "\t", "pipe": "|"}
_SAMPLE_LINES = 100
_SAMPLE_ROWS = 1000

_WITH_COMMA = re.compile(r"[+-]?\d+,\d+([eE][+-]?\d+)?")
_WITH_THOUSANDS = re.compile(r"[+-]?[1-9]\d{0,2}([,.])\d{3}(\1\d{3})*")
_WITH_POINT = re.compile(r"[+-]?\d*\.\d+([eE][+-]?\d+)?")


@dataclass(frozen=True)
class Dialect:
    """How a text table is written."""

    separator: str = ","
    decimal: str = "."
    encoding: str = "utf-8"

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


_COMMA_TO_POINT = str.maketrans({",": ".", ".": "?"})


def decode(content: bytes, name: str) -> tuple[str, str]:
    """Text of a file, and the encoding it was in; a byte-order mark is taken off."""
    if content.startswith((b"\xff\xfe", b"\xfe\xff")):
        return content.decode("utf-16"), "utf-16"
    if b"\0" in content:
        raise TableError(f"{name} is not a text table: it holds binary data.")
    if content.startswith(b"\xef\xbb\xbf"):
        return content.decode("utf-8-sig", errors="replace"), "utf-8-sig"
    try:
        return content.decode("utf-8"), "utf-8"
    except UnicodeDecodeError:
        return content.decode("cp1252", errors="replace"), "cp1252"  # what Windows programs write without a mark


def read_separator(separator: str) -> str:
    r"""A separator as a person writes it: itself, or its name.

    >>> read_separator("tab") == read_separator("\t") == read_separator(r"\t")
    True
    """
    separator = _SEPARATOR_NAMES.get(separator, separator)
    if len(separator) != 1:
        raise TableError(f"separator must be one character or {', '.join(_SEPARATOR_NAMES)}; got {separator!r}.")
    return separator


def guess_separator(text: str) -> str:
    r"""The separator that splits each of the first lines into as many columns as the others.

    >>> guess_separator("a;b\n1,5;2,5\n"), guess_separator("a\tb c\n1\t2\n")
    (';', '\t')
    """
    lines = [line for line in text.splitlines()[:_SAMPLE_LINES] if line.strip()]
    widths = {separator: [len(row) for row in csv.reader(lines, delimiter=separator)] for separator in SEPARATORS}
    for separator, row in widths.items():
        if row and len(set(row)) == 1 and row[0] > 1:
            return separator
    # No separator fits every line: the header's speaks, and the reader names the line that differs.
    return max(widths, key=lambda separator: widths[separator][:1])


def has_thousands(cell: str) -> bool:
    """Whether a number may be written with marks between its thousands.

    >>> has_thousands("3,210"), has_thousands("0,210"), has_thousands("3,21")
    (True, False, False)
    """
    return _WITH_THOUSANDS.fullmatch(cell) is not None


def guess_decimal(rows: Iterable[list[str]], separator: str) -> str:
    """A comma where numbers have commas and none has a point; else a point.

    Commas that may all stand between thousands are no decimal marks where commas also separate cells.
    """
    cells = {cell for _, row in zip(range(_SAMPLE_ROWS), rows, strict=False) for cell in row}
    commas = [cell for cell in cells if _WITH_COMMA.fullmatch(cell)]
    if separator == "," and all(map(has_thousands, commas)):
        return "."
    return "," if commas and not any(_WITH_POINT.fullmatch(cell) for cell in cells) else "."
