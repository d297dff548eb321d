"""Tables as they were read: cells as numbers, and names in messages.

Cells of a text file are turned into numbers strictly: "1,234" is a number only if the comma is known to be the decimal
mark, or the mark between thousands.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable
from difflib import get_close_matches
from importlib.util import find_spec
from pathlib import PurePath
from typing import Any, NamedTuple

import pandas as pd

MISSING_MARKS = frozenset({"", "NA", "N/A", "n/a", "#N/A", "NaN", "nan", "NULL", "null", "?"})
KINDS = {".tsv": "tabs", ".tab": "tabs", ".parquet": "parquet", ".pq": "parquet", ".xlsx": "excel", ".xlsm": "excel"}
KINDS |= dict.fromkeys(["", ".csv", ".txt", ".dat"], "text")
SPACES = " \N{NO-BREAK SPACE}\N{NARROW NO-BREAK SPACE}\N{THIN SPACE}"
MINUS = "\N{MINUS SIGN}"
APOSTROPHES = "'\N{RIGHT SINGLE QUOTATION MARK}"
LIKE_NUMBER = re.compile(rf"[$€£]?\s*[+\-{MINUS}]?\d[\d.,{APOSTROPHES}\s]*([eE][+-]?\d+)?\s*[%$€£]?")
LIKE_DATE = re.compile(
    r"(\d{4}([-/])\d{1,2}\2\d{1,2}|\d{1,2}([./-])\d{1,2}\3\d{2,4}|"
    r"\d{1,2}([- ])[A-Za-z]{3,9}\4\d{2,4}|[A-Za-z]{3,9} \d{1,2}, \d{4})([T ]\d{1,2}:.*)?"
)
THOUSANDS = re.compile(r"[+-]?[1-9]\d{0,2}([,.]\d{3})+")
_NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?")
_LIMIT = re.compile(r"(<=|>=|[<>≤≥])\s*")


class Format(NamedTuple):
    """How a table is written, as far as it is known; ``separator`` and ``encoding`` are of text files alone."""

    decimal: str | None = None
    """The decimal mark; None if it may be a point or a comma."""
    thousands: str | None = None
    percent: bool = False
    separator: str | None = None
    encoding: str = "utf-8"

    def number(self, text: str) -> float | None:
        """Read a finite number; None if the text is not one.

        >>> Format(",").number("1,5"), Format(".").number("1,5"), Format().number("1_000"), Format().number("inf")
        (1.5, None, None, None)
        >>> Format(".", ",").number("1,234.5"), Format(percent=True).number("12 %"), Format().number("1,5")
        (1234.5, 12.0, 1.5)
        """
        text = text.replace(MINUS, "-")
        if self.percent:
            text = text.removesuffix("%").rstrip()
        text = self.ungrouped(text)
        if self.decimal == "," or (self.decimal is None and "," in text and not THOUSANDS.fullmatch(text)):
            text = text.replace(".", "?").replace(",", ".")
        if not _NUMBER.fullmatch(text):
            return None
        value = float(text)
        if math.isinf(value):
            return None
        return value

    def ungrouped(self, text: str) -> str:
        """Remove marks between groups of three digits."""
        if self.thousands is None:
            return text
        marks = re.escape({" ": SPACES, "'": APOSTROPHES}.get(self.thousands, self.thousands))
        grouped = re.match(rf"[+-]?\d{{1,3}}([{marks}]\d{{3}})+(?!\d)", text)
        if grouped is None:
            return text
        return re.sub(f"[{marks}]", "", grouped[0]) + text[grouped.end() :]

    def written(self, text: str) -> str:
        """Write a number with the decimal mark of the table."""
        return text.replace(".", self.decimal or ".")


class Table(NamedTuple):
    """A table as it was read: cells are text if they are of a text file, typed if of Parquet or Excel."""

    name: str
    frame: pd.DataFrame
    """Its index has the row of the file that each row is, where a spreadsheet counts the header too; in Parquet from 1.
    """
    format: Format = Format()

    def place(self, name: str, row: int) -> str:
        """Return the place of a cell."""
        return f"{self.name}: column '{name}', row {row}"

    def is_numeric(self, name: str) -> bool:
        """Return whether a column was read as numbers, not as text."""
        return bool(pd.api.types.is_numeric_dtype(self.frame[name].dtype))

    def texts(self, name: str, marks: Iterable[str] = ()) -> pd.Series:
        """Return the cells of a column as text, empty where a value is missing; whole numbers have no point."""
        texts = self.frame[name].astype(object).map(plain)
        return texts.where(~texts.isin(MISSING_MARKS | set(marks)), "")


def kind_of(name: str) -> str:
    """Return the kind of a file by its ending: "text", "tabs", "parquet" or "excel"; raise if its extra is missing."""
    kind = KINDS.get(PurePath(name).suffix.lower())
    if kind is None:
        raise ValueError(f"{name} must be CSV (.csv, .txt, .dat), TSV (.tsv), Parquet (.parquet) or Excel (.xlsx).")
    need_extra(name, kind)
    return kind


def need_extra(name: str, kind: str) -> None:
    """Refuse a file of a kind whose library is not installed."""
    library = {"parquet": "pyarrow", "excel": "openpyxl"}.get(kind, "pandas")
    if find_spec(library) is None:
        raise ValueError(f"{name} needs pip install '.[{kind}]' in a clone of conformal-gp.")


def plain(cell: Any) -> str:
    """Write a cell as text, empty if it has no value; workbooks hold the code 7 as 7.0 beside empty cells.

    >>> plain(7.0), plain(" a "), plain(7.5), plain(None)
    ('7', 'a', '7.5', '')
    """
    if isinstance(cell, str):
        return cell.strip()
    if pd.isna(cell):
        return ""
    if isinstance(cell, float) and cell.is_integer():
        return f"{cell:.0f}"
    return str(cell)


def like_value(text: str) -> bool:
    """Return whether a cell is like a number, a limit of detection or a date."""
    return any(pattern.fullmatch(without_limit(text)[0]) for pattern in (LIKE_NUMBER, LIKE_DATE))


def without_limit(text: str) -> tuple[str, int]:
    """Split a limit of detection into its number and its side: -1 below, 1 above; 0 if the text is no limit.

    >>> without_limit("<0.02"), without_limit("≥ 500"), without_limit("0.5")
    (('0.02', -1), ('500', 1), ('0.5', 0))
    """
    mark = _LIMIT.match(text)
    if mark is None:
        return text, 0
    side = 1
    if mark[1][0] in "<≤":
        side = -1
    return text[mark.end() :], side


def listed(names: Iterable[Any], most: int = 12) -> str:
    """Join names for a sentence, cut short if there are many."""
    quoted = [f"'{name}'" for name in names]
    shown = ", ".join(quoted[:most])
    if len(quoted) > most:
        return f"{shown} and {len(quoted) - most} more"
    return shown


def did_you_mean(name: str, known: Iterable[Any]) -> str:
    """Ask for the nearest known name; empty if none is near.

    >>> did_you_mean("MPG", ["mpg", "weight"])
    " Did you mean 'mpg'?"
    """
    folded = {str(candidate).casefold(): candidate for candidate in known}
    near = get_close_matches(name.casefold(), list(folded), n=1, cutoff=0.55)
    if not near:
        return ""
    return f" Did you mean '{folded[near[0]]}'?"
