"""Tables in files: CSV, TSV, Parquet and Excel as data frames that the regressor takes, and back with predictions.

Cells of a text file are read as text and turned into numbers here, strictly: "1,234" is a number only where the comma
is known to be the decimal mark. A separator, decimal mark or encoding that is not given is taken from the file, and new
rows are read the way the training rows were.
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
_THOUSANDS = re.compile(r"[+-]?[1-9]\d{0,2}([,.]\d{3})+")


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
        """Where a cell is; rows count from 1 below the header."""
        line = "" if self.lines is None else f" (line {self.lines[row]})"
        return f"{self.name}: column '{name}', row {row + 1}{line}"

    def texts(self, name: str, marks: Iterable[str] = ()) -> pd.Series:
        """Cells of a column as text, empty where one holds nothing."""
        cells = self.frame[name].astype(object)
        texts = cells.where(cells.notna(), "").map(lambda cell: str(cell).strip())
        return texts.where(~texts.isin(MISSING_MARKS | set(marks)), "")


def listed(names: Iterable[Any], most: int = 12) -> str:
    """Names for a sentence, cut short when there are many."""
    quoted = [f"'{name}'" for name in names]
    return ", ".join(quoted[:most]) + (f" and {len(quoted) - most} more" if len(quoted) > most else "")


def did_you_mean(name: str, known: Iterable[Any]) -> str:
    """A question that names the nearest known name, or nothing.

    >>> did_you_mean("MPG", ["mpg", "weight"])
    " Did you mean 'mpg'?"
    """
    folded = {str(candidate).casefold(): candidate for candidate in known}
    near = get_close_matches(name.casefold(), list(folded), n=1, cutoff=0.55)
    return f" Did you mean '{folded[near[0]]}'?" if near else ""


def kind_of(name: str) -> str:
    """The kind of a table file by its ending, "text", "tabs", "parquet" or "excel"; raises if its extra is missing."""
    kind = ENDINGS.get(PurePath(name).suffix.lower())
    if kind is None:
        raise ValueError(f"{name} must be CSV (.csv, .txt, .dat), TSV (.tsv), Parquet (.parquet) or Excel (.xlsx).")
    _need_extra(name, kind)
    return kind


def _need_extra(name: str, kind: str) -> None:
    library = {"parquet": "pyarrow", "excel": "openpyxl"}.get(kind, "pandas")
    if find_spec(library) is None:
        raise ValueError(f"{name} needs pip install 'conformal-gp[{kind}]'.")


def number(text: str, decimal: str | None = ".") -> float | None:
    """The finite number that a text is, or None.

    >>> number("1,5", ","), number("1,5", "."), number("1_000"), number("inf")
    (1.5, None, None, None)
    """
    if decimal == ",":
        text = text.replace(".", "?").replace(",", ".")
    value = float(text) if _NUMBER.fullmatch(text) else math.inf
    return value if math.isfinite(value) else None


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

    Separator, decimal mark and encoding of a text file are those given, else those of the table that it goes with
    (``like``), else what the file shows.
    """
    name, kind = ("standard input", "text") if source == "-" else (source, kind_of(source))
    try:
        content = sys.stdin.buffer.read() if source == "-" else Path(source).read_bytes()
    except OSError as error:
        raise ValueError(f"{source}: {error.strerror or error}.") from None
    if not content.strip():
        raise ValueError(f"{name} is empty: a table needs a header line and rows.")
    if kind == "parquet" or content.startswith(b"PAR1"):
        return _typed(name, io.BytesIO(content), "parquet")
    if kind == "excel" or content.startswith(b"PK\x03\x04"):
        return _typed(name, io.BytesIO(content), "excel")
    text, encoding = _decoded(name, content, encoding or (like.encoding if like else None))
    lines = io.StringIO(text, newline="").readlines()
    if separator is None:
        one_column = not set("\t;|,") & set(lines[0])
        known = like is not None and (one_column or like.separator in lines[0])
        separator = like.separator if like and known else _guess_separator(lines[:100])
    separator = SEPARATORS.get(separator, separator)
    if len(separator) != 1 or separator in '"\r\n' or decimal not in (None, ".", ","):
        raise ValueError(f"--separator takes one character and --decimal . or , and not {separator!r}, {decimal!r}.")
    (_, header), *rows = _rows(name, lines, separator)
    decimal = decimal or (like.decimal if like else None) or _shown_decimal(name, rows, separator)
    if all(number(cell, decimal) is not None for cell in header):
        raise ValueError(f"{name} has no header: its first line holds numbers. Put the columns' names above them.")
    frame = pd.DataFrame([cells for _, cells in rows], columns=header, dtype=object)
    return _checked(Table(name, frame, Format(separator, decimal, encoding), [line for line, _ in rows]))


def _checked(table: Table) -> Table:
    names = list(table.frame)
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice or not len(table.frame):
        trouble = f"has more than one column named {listed(twice)}" if twice else "has no rows below a header"
        raise ValueError(f"{table.name} {trouble}.")
    return table


def _typed(name: str, source: io.BytesIO, kind: str) -> Table:
    """A table whose cells have types already, from a file in memory."""
    _need_extra(name, kind)
    try:
        frame = pd.read_parquet(source) if kind == "parquet" else _sheet(name, source)
    except Exception as error:  # a damaged file can fail anywhere in its reader
        what = "a Parquet file" if kind == "parquet" else "an Excel workbook"
        raise ValueError(f"{name} is not {what}, or is damaged ({error}).") from error
    if frame.index.name is not None and kind == "parquet":  # as pandas saves an index
        frame = frame.reset_index()
    lines = [int(line) + 1 for line in frame.index] if kind == "excel" else None
    frame = frame.set_axis([str(column).strip() for column in frame.columns], axis=1).reset_index(drop=True)
    return _checked(Table(name, frame, lines=lines))


def _sheet(name: str, source: Any) -> pd.DataFrame:
    """The first sheet of a workbook that is not empty, without empty rows and columns; its first row is the header."""
    options: dict[str, Any] = {"header": None, "dtype": object, "na_values": [""], "keep_default_na": False}
    book = pd.read_excel(source, sheet_name=None, **options)
    title, *others = [title for title, cells in book.items() if len(cells)] or book
    if others:
        warnings.warn(f"{name} has {1 + len(others)} sheets; only the first, '{title}', is read", stacklevel=4)
    cells = book[title].dropna(how="all").dropna(axis=1, how="all")
    return cells.iloc[1:].set_axis(cells.iloc[0].fillna(""), axis=1).infer_objects() if len(cells) else cells


def _decoded(name: str, content: bytes, encoding: str | None) -> tuple[str, str]:
    """Text of a file and its encoding; a byte-order mark decides, and no character is guessed."""
    marks = {b"\xef\xbb\xbf": "utf-8-sig", b"\xff\xfe": "utf-16", b"\xfe\xff": "utf-16"}
    marked = next((known for mark, known in marks.items() if content.startswith(mark)), encoding)
    for candidate in [marked] if marked else ["utf-8", "cp1252"]:
        with suppress(UnicodeError, LookupError):
            text = content.decode(candidate)
            if "\0" not in text:
                return text, candidate
    what = marked or "UTF-8 or Windows-1252"
    raise ValueError(f"{name} is not text in {what}; save it in UTF-8, or say --encoding.")


def _guess_separator(lines: list[str]) -> str:
    """The separator that splits each of the first lines into as many cells as the others, or the header's."""
    for separator in "\t;|,":
        with suppress(csv.Error):
            widths = {len(row) for row in csv.reader(lines, delimiter=separator) if row}
            if len(widths) == 1 and widths != {1}:
                return separator
    return max(",;\t|", key=lines[0].count)


def _rows(name: str, lines: list[str], separator: str) -> list[tuple[int, list[str]]]:
    """Line and cells of each row, header included. The csv module is strict, where pandas fills up short rows."""
    reader = csv.reader(lines, delimiter=separator, skipinitialspace=True, strict=True)
    rows: list[tuple[int, list[str]]] = []
    before = 0
    try:
        for cells in reader:
            width = len(rows[0][1]) if rows else len(cells)
            spanned = lines[before : reader.line_num]
            if len(spanned) > 1 and all(line.count(separator) == width - 1 for line in spanned):
                raise csv.Error  # each looks like a row of its own
            if len(cells) > 1 or any(cell.strip() for cell in cells):
                rows.append((before + 1, [cell.strip() for cell in cells]))
                if len(cells) != width:
                    where = f"{name}, line {before + 1}: {len(cells)} cells, but the header has {width}"
                    raise ValueError(f"{where} (separator {separator!r}; --separator says otherwise).")
            before = reader.line_num
    except csv.Error:
        raise ValueError(f'{name}, line {before + 1}: a quote (") is not closed, or closes too early.') from None
    return rows


def _shown_decimal(name: str, rows: list[tuple[int, list[str]]], separator: str) -> str | None:
    """The decimal mark that numbers show, as 1.5 and 0,250 do; 1,234 may also be more than a thousand."""
    cells = [cell for _, row in rows for cell in row if "," in cell or "." in cell]
    doubtful = [cell for cell in cells if _THOUSANDS.fullmatch(cell)]
    shown = {mark for cell in set(cells) - set(doubtful) for mark in ".," if number(cell, mark) is not None}
    if "." in shown or (separator == "," and not shown):
        return "."
    if doubtful and not shown:
        raise ValueError(
            f"{name}: '{doubtful[0]}' can be read in two ways, and no other number shows which: --decimal , or "
            "--decimal . says what the decimal mark is; marks between thousands must be taken out."
        )
    return "," if shown else None


# Writing


def write_table(table: Table, added: pd.DataFrame, out: str, digits: int = 6) -> None:
    """Write a table with columns added, the way it was read, or as the ending of ``out`` says; ``-`` is stdout.

    New numbers are rounded to so many significant digits, but not in Parquet.
    """
    taken = [name for name in added if name in table.frame]
    if taken:
        raise ValueError(f"{table.name} already has {listed(taken)}; choose other names with --prefix.")
    kind, old, new = kind_of(out), table.frame, added.copy()
    form = table.format or Format(",", ".", "utf-8")
    floats = new.select_dtypes("float").columns
    if kind != "parquet":
        new[floats] = new[floats].map(lambda value: float(f"{value:.{digits}g}"))
    if kind in ("parquet", "excel"):
        if table.format:
            old = old.apply(lambda cells: _as_numbers(cells, form.decimal))
        write_bytes(out, _packed(pd.concat([old, new], axis=1), kind))
        return
    for name in floats:
        cells = new[name].map(lambda value: "" if math.isnan(value) else repr(value).removesuffix(".0"))
        new[name] = cells.str.replace(".", form.decimal or ".", regex=False)
    separator = "\t" if kind == "tabs" else form.separator
    text = pd.concat([old, new], axis=1).to_csv(index=False, sep=separator, lineterminator="\n")
    if out == "-":
        sys.stdout.write(text)
        return
    try:
        write_bytes(out, text.encode(form.encoding))
    except UnicodeEncodeError as error:
        what = f"'{text[error.start]}', which {form.encoding}, the encoding of {table.name}, lacks"
        raise ValueError(f"the output has {what}; save {table.name} in UTF-8.") from None


def _as_numbers(cells: pd.Series, decimal: str | None) -> pd.Series:
    """A column of text as numbers, where all cells are numbers or empty."""
    found = [math.nan if cell in MISSING_MARKS else number(cell, decimal) for cell in cells]
    return cells if None in found else pd.Series(found, dtype=np.float64)


def _packed(frame: pd.DataFrame, kind: str) -> bytes:
    """A frame as Parquet or as a workbook, in which text that begins with = is no formula."""
    file = io.BytesIO()
    if kind == "parquet":
        frame.to_parquet(file, index=False)
        return file.getvalue()
    with pd.ExcelWriter(file, engine="openpyxl") as writer:
        frame.to_excel(writer, index=False, sheet_name="predictions")
        for cell in (cell for row in writer.sheets["predictions"].iter_rows() for cell in row):
            cell.data_type = "s" if cell.data_type == "f" else cell.data_type
    return file.getvalue()
