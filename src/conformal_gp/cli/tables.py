"""Tables in files: CSV, TSV, Parquet and Excel as data frames, and back with predictions.

Cells of a text file are read as text and turned into numbers here, strictly: "1,234" is a number only if the comma is
known to be the decimal mark. The encoding is detected for each file. A separator or decimal mark that is not given is
that of the training rows, or else is taken from the file.
"""

from __future__ import annotations

import csv
import io
import math
import re
import sys
import warnings
from collections.abc import Iterable, Sequence
from contextlib import suppress
from difflib import get_close_matches
from importlib.util import find_spec
from pathlib import Path, PurePath
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from conformal_gp.files import write_bytes

MISSING_MARKS = frozenset({"", "NA", "N/A", "n/a", "#N/A", "NaN", "nan", "NULL", "null", "?"})
ENDINGS = {".tsv": "tabs", ".tab": "tabs", ".parquet": "parquet", ".pq": "parquet", ".xlsx": "excel", ".xlsm": "excel"}
ENDINGS |= dict.fromkeys(["", ".csv", ".txt", ".dat"], "text")
SEPARATORS = {"tab": "\t", "\\t": "\t", "semicolon": ";", "pipe": "|", "comma": ","}
_NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?")
LIKE_NUMBER = re.compile(r"[$€£]?\s*[+-]?\d[\d.,'\s]*([eE][+-]?\d+)?\s*[%$€£]?")
_LIMIT = re.compile(r"(<=|>=|[<>≤≥])\s*")
THOUSANDS = re.compile(r"[+-]?[1-9]\d{0,2}([,.]\d{3})+")


class Format(NamedTuple):
    """How a text table is written; ``decimal`` is None where no number shows it."""

    separator: str
    decimal: str | None
    encoding: str


class Table(NamedTuple):
    """A table as it was read: text from a text file, typed from Parquet and Excel, which have no ``format``."""

    name: str
    frame: pd.DataFrame
    format: Format | None = None
    lines: Sequence[int] | None = None

    def place(self, name: str, row: int) -> str:
        """Return the place of a cell; rows count from 1 below the header."""
        place = f"{self.name}: column '{name}', row {row + 1}"
        if self.lines is None:
            return place
        return f"{place} (line {self.lines[row]})"

    def is_numeric(self, name: str) -> bool:
        """Return whether a column was read as numbers, not as text."""
        return bool(pd.api.types.is_numeric_dtype(self.frame[name].dtype))

    def texts(self, name: str, marks: Iterable[str] = ()) -> pd.Series:
        """Return the cells of a column as text, empty where a value is missing."""
        cells = self.frame[name].astype(object)
        texts = cells.where(cells.notna(), "").map(lambda cell: str(cell).strip())
        return texts.where(~texts.isin(MISSING_MARKS | set(marks)), "")


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


def kind_of(name: str) -> str:
    """Return the kind of a file by its ending: "text", "tabs", "parquet" or "excel"; raise if its extra is missing."""
    kind = ENDINGS.get(PurePath(name).suffix.lower())
    if kind is None:
        raise ValueError(f"{name} must be CSV (.csv, .txt, .dat), TSV (.tsv), Parquet (.parquet) or Excel (.xlsx).")
    _need_extra(name, kind)
    return kind


def _need_extra(name: str, kind: str) -> None:
    library = {"parquet": "pyarrow", "excel": "openpyxl"}.get(kind, "pandas")
    if find_spec(library) is None:
        raise ValueError(f"{name} needs pip install '.[{kind}]' in a clone of conformal-gp.")


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


def number(text: str, decimal: str | None = ".") -> float | None:
    """Read a finite number; None if the text is not one.

    >>> number("1,5", ","), number("1,5", "."), number("1_000"), number("inf")
    (1.5, None, None, None)
    """
    if decimal == ",":
        text = text.replace(".", "?").replace(",", ".")
    if not _NUMBER.fullmatch(text):
        return None
    value = float(text)
    if math.isinf(value):
        return None
    return value


# Reading


def read_table(
    source: str,
    *,
    separator: str | None = None,
    decimal: str | None = None,
    encoding: str | None = None,
    like: Format | None = None,
) -> Table:
    """Read a table by its header; ``-`` is standard input.

    The separator and the decimal mark of a text file are those given, else those of the table that it goes with
    (``like``), else what the file shows. The encoding is the one given, else it is detected.
    """
    separator = SEPARATORS.get(separator or "", separator)
    if separator is not None and (len(separator) != 1 or separator in '"\r\n'):
        raise ValueError(f"--separator takes one character, got {separator!r}.")
    if decimal not in (None, ".", ","):
        raise ValueError(f"--decimal takes . or , and got {decimal!r}.")
    name, kind, content = _content(source)
    if kind in ("parquet", "excel"):
        return _typed(name, io.BytesIO(content), kind)
    text, encoding = _decoded(name, content, encoding, like)
    lines = io.StringIO(text, newline="").readlines()
    separator = separator or _separator(lines, like)
    (_, header), *rows = _rows(name, lines, separator)
    if decimal is None and like is not None:
        decimal = like.decimal
    decimal = decimal or _shown_decimal(name, rows, separator)
    if all(number(cell, decimal) is not None for cell in header):
        raise ValueError(f"{name} has no header: its first line contains numbers. Put the columns' names above them.")
    frame = pd.DataFrame([cells for _, cells in rows], columns=header, dtype=object)
    return _checked(Table(name, frame, Format(separator, decimal, encoding), [line for line, _ in rows]))


def _content(source: str) -> tuple[str, str, bytes]:
    """Read a file or standard input: what messages call it, its kind by ending or first bytes, and its content."""
    name = source
    kind = "text"
    if source == "-":
        name = "standard input"
        content = sys.stdin.buffer.read()
    else:
        kind = kind_of(source)
        try:
            content = Path(source).read_bytes()
        except OSError as error:
            raise ValueError(f"{source}: {error.strerror or error}.") from None
    if not content.strip():
        raise ValueError(f"{name} is empty: a table needs a header line and rows.")
    if content.startswith(b"PAR1"):
        kind = "parquet"
    elif content.startswith(b"PK\x03\x04") and kind != "parquet":
        kind = "excel"
    return name, kind, content


def _checked(table: Table) -> Table:
    names = list(table.frame)
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise ValueError(f"{table.name} has more than one column named {listed(twice)}.")
    if not len(table.frame):
        raise ValueError(f"{table.name} has no rows below a header.")
    return table


def _typed(name: str, source: io.BytesIO, kind: str) -> Table:
    """Read a table whose cells have types, from a file in memory."""
    _need_extra(name, kind)
    what, read = {
        "parquet": ("a Parquet file", pd.read_parquet),
        "excel": ("an Excel workbook", lambda book: _sheet(name, book)),
    }[kind]
    try:
        frame = read(source)
    except Exception as error:  # a damaged file can fail anywhere in its reader
        raise ValueError(f"{name} is not {what}, or is damaged ({error}).") from error
    lines = None
    if kind == "excel":
        lines = [int(line) + 1 for line in frame.index]
    elif frame.index.name is not None:  # as pandas saves an index
        frame = frame.reset_index()
    frame = frame.set_axis([str(column).strip() for column in frame.columns], axis=1).reset_index(drop=True)
    return _checked(Table(name, frame, lines=lines))


def _sheet(name: str, source: Any) -> pd.DataFrame:
    """Read the first sheet that is not empty, without empty rows and columns; its first row is the header."""
    options: dict[str, Any] = {"header": None, "dtype": object, "na_values": [""], "keep_default_na": False}
    book = pd.read_excel(source, sheet_name=None, **options)
    title, *others = [title for title, cells in book.items() if len(cells)] or book
    if others:
        warnings.warn(f"{name} has {1 + len(others)} sheets; only the first, '{title}', is read", stacklevel=4)
    cells = book[title].dropna(how="all").dropna(axis=1, how="all")
    if cells.empty:
        return cells
    return cells.iloc[1:].set_axis(cells.iloc[0].fillna(""), axis=1).infer_objects()


def _decoded(name: str, content: bytes, encoding: str | None, like: Format | None) -> tuple[str, str]:
    """Decode a file: by its byte-order mark, the encoding given, UTF-8, that of ``like``, or Windows-1252."""
    marks = {b"\xef\xbb\xbf": "utf-8-sig", b"\xff\xfe": "utf-16", b"\xfe\xff": "utf-16"}
    candidates = [known for mark, known in marks.items() if content.startswith(mark)]
    if not candidates and encoding is not None:
        candidates = [encoding]
    elif not candidates:
        candidates = ["utf-8", "cp1252"]
        if like is not None and like.encoding not in ("utf-8-sig", "utf-16"):
            candidates.insert(1, like.encoding)
    for candidate in candidates:
        with suppress(UnicodeError, LookupError):
            text = content.decode(candidate)
            if "\0" not in text:
                return text, candidate
    called = [{"utf-8": "UTF-8", "cp1252": "Windows-1252"}.get(candidate, candidate) for candidate in candidates]
    raise ValueError(f"{name} is not text in {' or '.join(called)}; save it in UTF-8, or give --encoding.")


def _separator(lines: list[str], like: Format | None) -> str:
    """Return the separator of ``like`` if the header has it, or has one column; else the one that the lines show."""
    if like is not None and (like.separator in lines[0] or not set("\t;|,") & set(lines[0])):
        return like.separator
    return _guess_separator(lines[:100])


def _guess_separator(lines: list[str]) -> str:
    """Return the separator that splits all lines into equally many cells, or the most frequent one of the header."""
    for separator in "\t;|,":
        with suppress(csv.Error):
            widths = {len(row) for row in csv.reader(lines, delimiter=separator) if row}
            if len(widths) == 1 and widths != {1}:
                return separator
    return max(",;\t|", key=lines[0].count)


def _rows(name: str, lines: list[str], separator: str) -> list[tuple[int, list[str]]]:
    """Split lines into cells: line number and cells of each row, header included.

    The csv module is strict; pandas would fill up short rows.
    """
    reader = csv.reader(lines, delimiter=separator, skipinitialspace=True, strict=True)
    rows: list[tuple[int, list[str]]] = []
    before = 0
    try:
        for cells in reader:
            width = len(cells)
            if rows:
                width = len(rows[0][1])
            spanned = lines[before : reader.line_num]
            if len(spanned) > 1 and all(line.count(separator) == width - 1 for line in spanned):
                raise csv.Error  # each looks like a separate row
            if len(cells) > 1 or any(cell.strip() for cell in cells):
                rows.append((before + 1, [cell.strip() for cell in cells]))
                if len(cells) != width:
                    where = f"{name}, line {before + 1}: {len(cells)} cells, but the header has {width}"
                    raise ValueError(f"{where} (separator {separator!r}; --separator sets another).")
            before = reader.line_num
    except csv.Error:
        raise ValueError(f'{name}, line {before + 1}: a quote (") is not closed, or closes too early.') from None
    return rows


def _shown_decimal(name: str, rows: list[tuple[int, list[str]]], separator: str) -> str | None:
    """Return the decimal mark that numbers show, as 1.5 and 0,250 do; 1,234 may also be more than a thousand."""
    cells = [without_limit(cell)[0] for _, row in rows for cell in row if "," in cell or "." in cell]
    doubtful = [cell for cell in cells if THOUSANDS.fullmatch(cell)]
    shown = {mark for cell in set(cells) - set(doubtful) for mark in ".," if number(cell, mark) is not None}
    if "." in shown or (separator == "," and not shown):
        return "."
    if doubtful and not shown:
        raise ValueError(
            f"{name}: '{doubtful[0]}' can be read in two ways, and no other number shows which: give the decimal mark "
            "with --decimal , or --decimal . and remove marks between thousands."
        )
    if not shown:
        return None
    return ","


# Writing


def write_table(table: Table, added: pd.DataFrame, out: str) -> None:
    """Write a table with columns added, the way it was read, or as the ending of ``out`` requires; ``-`` is stdout.

    Text that a spreadsheet would take for a formula gets a leading apostrophe, except in Parquet.
    """
    taken = [name for name in added if name in table.frame]
    if taken:
        raise ValueError(f"{table.name} already has {listed(taken)}; choose other names with --prefix.")
    kind = kind_of(out)
    old = table.frame
    form = table.format or Format(",", ".", "utf-8")
    if table.format and kind in ("parquet", "excel"):
        old = old.apply(lambda cells: _as_numbers(cells, form.decimal))
    frame = pd.concat([old, added], axis=1)
    if kind in ("parquet", "excel"):
        write_bytes(out, _packed(frame, kind))
        return
    frame = _without_formulas(frame)
    for name in added.select_dtypes("float"):
        frame[_without_formula(name)] = [_written(value, form.decimal or ".") for value in added[name]]
    separator = form.separator
    if kind == "tabs":
        separator = "\t"
    text = frame.to_csv(index=False, sep=separator, lineterminator="\n")
    if out == "-":
        sys.stdout.write(text)
        return
    try:
        write_bytes(out, text.encode(form.encoding))
    except UnicodeEncodeError as error:
        what = f"'{text[error.start]}', which {form.encoding}, the encoding of {table.name}, lacks"
        raise ValueError(f"the output has {what}; save {table.name} in UTF-8.") from None


def _as_numbers(cells: pd.Series, decimal: str | None) -> pd.Series:
    """Turn a column of text into numbers, if all cells are numbers or empty."""
    found = [math.nan if cell in MISSING_MARKS else number(cell, decimal) for cell in cells]
    if None in found:
        return cells
    return pd.Series(found, dtype=np.float64)


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
