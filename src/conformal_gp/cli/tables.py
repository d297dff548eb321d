"""Tables as they were read: cells as numbers, what columns look like, and names in messages.

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
from shlex import quote
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from conformal_gp.arrays import Array

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

FEWEST_NUMBERED = 10  # rows in which whole numbers that are all different look like row numbers
MOST_CODES = 50
# A target looks like levels of standards if it has so many distinct values, each in three rows on average, and if its
# rank correlation with a column of many values is so high.
FEWEST_LEVELS = 4
MOST_LEVELS = 15
REPLICATES = 3
LIKE_RESPONSE = 0.9
_START, _END = r"(?i:(^|[^a-z])", r")($|[^a-z])"
_LIKE_IDENTIFIER = re.compile(r"(?i:(^|[^a-z])(id|ids|index|no|nr|num|number|row|key|code))$|[a-z]I[dD]$")
_LIKE_NAMES = re.compile(_START + r"samples?|names?|ids?|wells?|labels?|barcode|spectrum|file(name)?|specimen" + _END)
LIKE_CODES = re.compile(
    _START + r"runs?|lots?|batch(es)?|plates?|operators?|analysts?|instruments?|machines?|labs?|sites?|operator|column|"
    r"reactors?|lines?|shifts?|suppliers?|kits?|blocks?|subjects?|patients?|codes?|types?|groups?|class|method" + _END
)
LIKE_REPLICATES = re.compile(_START + r"rep|reps|replicates?|repeats?|injection" + _END)
_LIKE_SD = re.compile(
    _START + r"sd|s\.d|std|stdev|std_?dev|se|sem|std_?err(or)?|standard[ _](deviation|error)|uncertainty|sigma|u" + _END
)
_LIKE_VARIANCE = re.compile(_START + r"var|variance|s2|sd2|sigma2" + _END)
_LIKE_SUMMARY = re.compile(
    r"(?i)(mean|average|avg|median|sd|std\.?( ?dev\.?)?|rsd|cv|%(rsd|cv)|min|max|sum|total|n|count)"
)
_NOT_DETECTED = re.compile(
    r"(?i)[<>≤≥]?\s*(n\.?\s?d\.?|not detected|bdl|blq|bql|bld|lod|loq|lloq|uloq|below.*|traces?|over(flow)?|ovrflw)"
)


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

    def texts(self, name: str, marks: Iterable[str] = ()) -> pd.Series:
        """Return the cells of a column as text, empty where a value is missing; whole numbers have no point."""
        texts = self.frame[name].astype(object).map(lambda cell: plain(cell, self.format.decimal or "."))
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


def plain(cell: Any, decimal: str = ".") -> str:
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
    if isinstance(cell, float):
        return str(cell).replace(".", decimal)
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


def most(cells: pd.Series, pattern: re.Pattern[str]) -> bool:
    """Return whether more than half of the cells match."""
    return 2 * sum(pattern.fullmatch(cell) is not None for cell in cells) > len(cells)


def names_rows(name: str, present: pd.Series) -> bool:
    """Return whether text differs in more than four rows of five, as names do.

    If the column is called sample, name or the like, one of five is enough: samples may have replicates.
    """
    share = 0.8
    if like_names(name):
        share = 0.2
    return present.nunique() > max(2, share * len(present))


def like_names(name: str) -> bool:
    """Return whether a column is called as columns of names are.

    >>> like_names("Sample ID"), like_names("sampling rate")
    (True, False)
    """
    return _LIKE_NAMES.search(name) is not None


def summaries(table: Table, name: str) -> list[str]:
    """Return rows that are called as summaries of others are: means and standard deviations below a table."""
    cells = table.texts(name)
    return [f"{row} ({cell})" for row, cell in cells.items() if _LIKE_SUMMARY.fullmatch(cell)]


def numbers_rows(table: Table, name: str) -> bool:
    """Return whether a column looks like row numbers or identifiers: whole numbers, all different.

    They must also follow each other without a gap, or have a name such as "id".
    """
    whole = _whole_numbers(table, name)
    if len(whole) < max(len(table.frame), FEWEST_NUMBERED) or len(set(whole)) < len(whole):
        return False
    return np.ptp(whole) == len(whole) - 1 or _LIKE_IDENTIFIER.search(name) is not None


def _whole_numbers(table: Table, name: str) -> list[float]:
    found = [table.format.number(cell) for cell in table.texts(name)]
    return [value for value in found if value is not None and value == round(value)]


def like_codes(table: Table, name: str, called: re.Pattern[str] = LIKE_CODES, fewest: int = 3) -> bool:
    """Return whether a column of numbers looks like codes: called lot, run or the like, and repeated whole numbers."""
    if called.search(name) is None:
        return False
    whole = _whole_numbers(table, name)
    return len(whole) == len(table.frame) and fewest <= len(set(whole)) <= min(MOST_CODES, len(whole) // 2)


def check_variances(name: str) -> None:
    """Refuse standard deviations as variances, by what the column is called.

    >>> check_variances("variance")
    >>> check_variances("SD")
    Traceback (most recent call last):
    ...
    ValueError: --noise-column takes variances, and 'SD' is called as standard deviations are: give --sd-column ...
    """
    if _LIKE_SD.search(name) and not _LIKE_VARIANCE.search(name):
        raise ValueError(
            f"--noise-column takes variances, and '{name}' is called as standard deviations are: give --sd-column "
            f"'{name}'; if it does hold variances, rename it, say to 'variance'."
        )


def not_detected(cell: str) -> bool:
    """Return whether a text says that a value was beyond a limit of detection.

    >>> not_detected("n.d."), not_detected("<LOD"), not_detected("none")
    (True, True, False)
    """
    return _NOT_DETECTED.fullmatch(cell) is not None


def like_standards(X: pd.DataFrame, y: Array, target: str) -> str:
    """Ask whether a target has the levels of standards, whose signal is in another column; empty if it does not."""
    from scipy.stats import spearmanr  # takes time to import

    n_levels = np.unique(y).size
    if not FEWEST_LEVELS <= n_levels <= min(MOST_LEVELS, y.size // REPLICATES):
        return ""
    for name in X.select_dtypes("number"):
        if X[name].nunique() > 2 * n_levels and abs(spearmanr(X[name], y).statistic) > LIKE_RESPONSE:
            return (
                f"{n_levels} distinct values of {target}: are these standards? Then conformal-gp calibrate TRAIN NEW "
                f"--signal {quote(name)} --target {quote(target)} finds unknown values by the curve of {name} on "
                f"{target}"
            )
    return ""
