"""Tables from files: CSV, TSV, Parquet and Excel as data frames.

The encoding is detected for each file. A separator or decimal mark that is not given is that of the training rows, or
else is taken from the file. Rows and columns without any value are skipped.
"""

from __future__ import annotations

import csv
import io
import sys
import warnings
from collections import Counter
from collections.abc import Collection, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd

from conformal_gp.cli.headers import MOST_TITLES, ROWS_BELOW, Header, Row, find_header, text_of
from conformal_gp.cli.tables import (
    APOSTROPHES,
    SPACES,
    THOUSANDS,
    Format,
    Numerals,
    Table,
    did_you_mean,
    kind_of,
    listed,
    need_extra,
    without_limit,
)

SEPARATORS = {"tab": "\t", "\\t": "\t", "semicolon": ";", "pipe": "|", "comma": ",", "space": " "}
SHOWN_SEPARATORS = "\t;|,"
SHOWN_UNITS = 6


@dataclass(frozen=True)
class Layout:
    """What is known of a table before it is read; None is found from the file.

    ``expected`` are names that the header should have; ``sheet`` is looked for only if ``optional_sheet``.
    """

    separator: str | None = None
    decimal: str | None = None
    encoding: str | None = None
    thousands: str | None = None
    percent: bool = False
    header_row: int | None = None
    sheet: str | None = None
    optional_sheet: bool = False
    like: Format | None = None
    expected: Collection[str] = ()

    def checked(self) -> Layout:
        """Return the same with characters in place of their names; raise if one cannot be used."""
        separator = SEPARATORS.get(self.separator or "", self.separator)
        if separator is not None and (len(separator) != 1 or separator in '"\r\n'):
            raise ValueError(f"--separator takes one character, got {separator!r}.")
        if self.decimal not in (None, ".", ","):
            raise ValueError(f"--decimal takes . or , and got {self.decimal!r}.")
        decimal = self.decimal
        thousands = self.thousands
        if thousands == "space" or (thousands and thousands in SPACES):
            thousands = " "
        elif thousands and thousands in APOSTROPHES:
            thousands = "'"
        if thousands not in (None, ".", ",", " ", "'") or (thousands is not None and thousands == decimal):
            what = "which is the decimal mark" if thousands == decimal else "which is none of these"
            raise ValueError(f"--thousands takes , . ' or space; got {self.thousands!r}, {what}.")
        if thousands in (".", ","):
            decimal = {".": ",", ",": "."}[thousands]
        known = {"separator": separator, "decimal": decimal, "thousands": thousands}
        return Layout(**{**self.__dict__, **known})


def read_table(source: str, **known: Any) -> Table:
    """Read a table by its header; ``-`` is standard input, and ``known`` are fields of :class:`Layout`.

    The separator and the decimal mark of a text file are those given, else those of the table that it goes with
    (``like``), else what the file shows. The encoding is the one given, else it is detected.
    """
    layout = Layout(**known).checked()
    name, kind, content = _content(source)
    if kind == "parquet":
        return _checked(Table(name, _opened(name, content, kind, _parquet), in_cells=_in_cells(layout)))
    if kind == "excel":
        rows = _opened(name, content, kind, lambda file: _sheet(name, file, layout))
        if not rows:
            raise ValueError(f"{name} has no rows below a header.")
        _check_row(name, rows, layout)
        found = find_header(rows, layout.expected, layout.header_row)
        header, lines, cells = _parts(name, rows[found.place :], found, layout)
        frame = pd.DataFrame(cells, columns=header, dtype=object).infer_objects()
        return _checked(Table(name, frame, lines=lines, in_cells=_in_cells(layout)))
    text, encoding = _decoded(name, content, layout.encoding, layout.like)
    return _from_text(name, text, encoding, layout)


def _from_text(name: str, text: str, encoding: str, layout: Layout) -> Table:
    """Read a table from the text of a file."""
    lines = io.StringIO(text, newline="").readlines()
    like = layout.like
    separator = layout.separator or _separator(lines, layout)
    top = _loosely(lines[: MOST_TITLES + ROWS_BELOW + (layout.header_row or 0)], separator)
    _check_row(name, top, layout)
    found = find_header(top, layout.expected, layout.header_row)
    start = top[found.place][0]
    rows = _rows(name, lines, separator, start - 1)
    header, numbers, cells = _parts(name, rows, found, layout)
    form = Format(separator, layout.decimal, encoding, layout.thousands, layout.percent)
    if like is not None:
        form = form._replace(
            decimal=form.decimal or like.decimal,
            thousands=form.thousands or like.thousands,
            percent=form.percent or like.percent,
        )
    if form.decimal is None:
        form = form._replace(decimal=_shown_decimal(name, cells, form))
    if all(form.numerals.number(cell) is not None for cell in header):
        raise ValueError(f"{name} has no header: row {start} contains numbers. Put the columns' names above them.")
    return _checked(Table(name, pd.DataFrame(cells, columns=header, dtype=object), form, numbers))


def _parts(
    name: str, rows: Sequence[Row], found: Header, layout: Layout
) -> tuple[list[str], list[int], list[list[Any]]]:
    """Divide rows from the header on into header, and numbers and cells of other rows; titles and units are noted."""
    (number, names), *below = rows
    if found.place and layout.header_row is None:
        warnings.warn(f"the header of {name} is row {number}; what is above it is skipped", stacklevel=4)
    if found.units:
        text = [cell for cell in below[0][1] if isinstance(cell, str) and cell.strip()]
        said = f"row {below[0][0]} of {name} has units and is skipped: {listed(text, SHOWN_UNITS)}"
        warnings.warn(said, stacklevel=4)
        below = below[1:]
    header = [" ".join(text_of(cell).split()) for cell in names]
    return header, [number for number, _ in below], [cells for _, cells in below]


def _check_row(name: str, rows: Sequence[Row], layout: Layout) -> None:
    """Refuse --header-row if that row is empty, or is not there."""
    if layout.header_row is None or layout.header_row in [number for number, _ in rows]:
        return
    first = rows[0][0]
    raise ValueError(f"--header-row {layout.header_row}: {name} has nothing in that row; its first is row {first}.")


def _in_cells(layout: Layout) -> Numerals:
    """How numbers are written in cells of text of a typed table."""
    return Numerals(layout.decimal, layout.thousands, layout.percent)


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
    """Leave out columns that have neither a name nor a value; raise if two have the same name, or there is no row."""
    frame = table.frame
    used = [j for j, name in enumerate(frame) if name or not frame.iloc[:, j].isin(["", None]).all()]
    frame = frame.iloc[:, used]
    names = list(frame)
    nameless = [j + 1 for j, name in zip(used, names, strict=True) if not name]
    if len(nameless) > 1:
        raise ValueError(f"{table.name}: columns {', '.join(map(str, nameless))} have values and no name; name them.")
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise ValueError(f"{table.name} has more than one column named {listed(twice)}.")
    if not len(frame):
        raise ValueError(f"{table.name} has no rows below a header.")
    return table._replace(frame=frame)


# Workbooks, and Parquet


def _opened(name: str, content: bytes, kind: str, read: Any) -> Any:
    """Read a file of a kind whose cells have types."""
    need_extra(name, kind)
    try:
        return read(io.BytesIO(content))
    except _NoSheetError as error:
        raise ValueError(str(error)) from None
    except Exception as error:  # a damaged file can fail anywhere in its reader
        what = {"parquet": "a Parquet file", "excel": "an Excel workbook"}[kind]
        raise ValueError(f"{name} is not {what}, or is damaged ({error}).") from error


def _parquet(file: io.BytesIO) -> pd.DataFrame:
    frame = pd.read_parquet(file)
    if frame.index.name is not None:  # as pandas saves an index
        frame = frame.reset_index()
    return frame.set_axis([str(column).strip() for column in frame.columns], axis=1).reset_index(drop=True)


class _NoSheetError(ValueError):
    """A workbook lacks a sheet."""


def _sheet(name: str, file: io.BytesIO, layout: Layout) -> list[Row]:
    """Read a sheet, or the first that is not empty, without empty rows and columns."""
    options: dict[str, Any] = {"header": None, "dtype": object, "na_values": [""], "keep_default_na": False}
    book = pd.read_excel(file, sheet_name=None, **options)
    named = layout.sheet
    if named is not None and named not in book:
        if not layout.optional_sheet:
            hint = did_you_mean(named, book)
            raise _NoSheetError(f"{name} has no sheet '{named}'.{hint} Its sheets are {listed(book)}.")
        named = None
    title = named
    if title is None:
        title, *others = [title for title, cells in book.items() if len(cells)] or book
        if others:
            said = f"{name} has {1 + len(others)} sheets; only the first, '{title}', is read, --sheet names another"
            warnings.warn(said, stacklevel=5)
    cells = book[title].map(lambda cell: None if isinstance(cell, str) and not cell.strip() else cell)
    cells = cells.dropna(how="all").dropna(axis=1, how="all")
    return [(int(row) + 1, values) for row, values in zip(cells.index, cells.to_numpy().tolist(), strict=True)]


# Text


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


def _separator(lines: list[str], layout: Layout) -> str:
    """Return the separator of ``like`` if the file has it, or has one column; else the one that the lines show."""
    top = lines[:MOST_TITLES]
    if layout.like is not None:
        like = layout.like.separator
        one_column = lines[0].strip().strip('"') in layout.expected or not set(SHOWN_SEPARATORS) & set("".join(top))
        if like in lines[0] or one_column:
            return like
    return _guess_separator(lines[:100])


def _guess_separator(lines: list[str]) -> str:
    """Return the separator that splits the most lines into equally many cells."""
    agreeing = dict.fromkeys(SHOWN_SEPARATORS, 0)
    for separator in SHOWN_SEPARATORS:
        with suppress(csv.Error):
            widths = Counter(len(row) for row in csv.reader(lines, delimiter=separator) if row)
            agreeing[separator] = max((count for width, count in widths.items() if width > 1), default=0)
    if not any(agreeing.values()):
        return ","
    return max(SHOWN_SEPARATORS, key=agreeing.__getitem__)


def _loosely(lines: list[str], separator: str) -> list[Row]:
    """Split lines into cells as far as they are a table; rows without a value are left out."""
    reader = csv.reader(lines, delimiter=separator, skipinitialspace=True)
    rows: list[Row] = []
    before = 0
    with suppress(csv.Error):
        for cells in reader:
            if any(cell.strip() for cell in cells):
                rows.append((before + 1, [cell.strip() for cell in cells]))
            before = reader.line_num
    return rows


def _rows(name: str, lines: list[str], separator: str, start: int) -> list[Row]:
    """Split lines into cells: number and cells of each row that has a value, from the header on.

    The csv module is strict; pandas would fill up short rows.
    """
    reader = csv.reader(lines[start:], delimiter=separator, skipinitialspace=True, strict=True)
    rows: list[Row] = []
    before = start
    try:
        for cells in reader:
            after = start + reader.line_num
            width = len(cells)
            if rows:
                width = len(rows[0][1])
            spanned = lines[before:after]
            if len(spanned) > 1 and all(line.count(separator) == width - 1 for line in spanned):
                raise csv.Error  # each looks like a separate row
            if any(cell.strip() for cell in cells):
                if "".join(cells[width:]).strip() or len(cells) < width:
                    where = f"{name}, line {before + 1}: {len(cells)} cells, but the header has {width}"
                    raise ValueError(f"{where} (separator {separator!r}; --separator sets another).")
                rows.append((before + 1, [cell.strip() for cell in cells[:width]]))
            before = after
    except csv.Error:
        raise ValueError(f'{name}, line {before + 1}: a quote (") is not closed, or closes too early.') from None
    return rows


def _shown_decimal(name: str, rows: list[list[str]], form: Format) -> str | None:
    """Return the decimal mark that numbers show, as 1.5 and 0,250 do; 1,234 may also be more than a thousand."""
    plain_cells = [form.numerals.ungrouped(without_limit(cell)[0]) for row in rows for cell in row]
    cells = [cell for cell in plain_cells if "," in cell or "." in cell]
    doubtful = [cell for cell in cells if THOUSANDS.fullmatch(cell)]
    sure = set(cells) - set(doubtful)
    shown = {mark for cell in sure for mark in ".," if form._replace(decimal=mark).numerals.number(cell) is not None}
    if "." in shown or (form.separator == "," and not shown):
        return "."
    if doubtful and not shown:
        raise ValueError(
            f"{name}: '{doubtful[0]}' can be read in two ways, and no other number shows which: give the decimal mark "
            "with --decimal , or --decimal . or the mark between thousands with --thousands."
        )
    if not shown:
        return None
    return ","
