"""Tables from files: CSV, TSV, Parquet and Excel as data frames.

What is not given is found: the encoding in each file, the separator and the decimal mark in the training rows, and the
header, below titles and dates that instruments write above a table. The header is the first row that has all of the
names that are expected, else the first that is as wide as most.
"""

from __future__ import annotations

import csv
import io
import sys
import warnings
from argparse import Namespace
from collections import Counter
from collections.abc import Callable, Collection, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import pandas as pd

from conformal_gp.cli.tables import (
    MISSING_MARKS,
    THOUSANDS,
    Format,
    Table,
    did_you_mean,
    kind_of,
    like_value,
    listed,
    need_extra,
    plain,
    without_limit,
)

SEPARATORS = "\t;|,"
MOST_TITLES = 60  # rows in which a header is looked for
_NO_UNIT = frozenset({"", "-", "\N{EN DASH}", "\N{EM DASH}", "NA", "n/a"})
Row = tuple[int, list[Any]]
"""Number of a row in its file, and its cells: text, or values of a workbook."""


def read_table(
    source: str, options: Namespace, like: Format | None = None, expected: Collection[str] = (), new: bool = False
) -> Table:
    """Read a table by its header, which should have the ``expected`` names; ``-`` is standard input.

    The separator and the decimal mark of a text file are those given, else those of the training rows (``like``), else
    what the file shows. ``new`` is whether rows are those of NEW, whose sheet is the second.
    """
    name, kind, content = _content(source)
    form = Format(options.decimal, options.thousands, options.percent, options.separator)
    if form.thousands in (".", ","):
        form = form._replace(decimal={".": ",", ",": "."}[form.thousands])
    if kind == "parquet":
        frame = _opened(name, content, "a Parquet file", pd.read_parquet)
        if frame.index.name is not None:  # as pandas saves an index
            frame = frame.reset_index()
        names = [str(column).strip() for column in frame]
        return _checked(Table(name, frame.set_axis(names, axis=1).set_axis(range(1, len(frame) + 1)), form))
    first = 0
    if kind == "excel":
        rows = _rows_of_workbook(name, content, options.sheet, expected, new)
    else:
        like = like or Format()
        text, encoding = _decoded(name, content, options.encoding)
        lines = io.StringIO(text, newline="").readlines()
        separator = form.separator or _separator(lines, like.separator, expected)
        form = Format(
            form.decimal or like.decimal,
            form.thousands or like.thousands,
            form.percent or like.percent,
            separator,
            encoding,
        )
        first = (options.header_row or 1) - 1
        rows = _rows_of_text(name, lines, separator, first)
    place = _place_of_header(name, rows, expected, options.header_row)
    if place:
        warnings.warn(f"the header of {name} is row {rows[place][0]}; what is above it is skipped", stacklevel=2)
    frame = _framed(name, rows[place:], form.separator)
    if kind == "excel":
        return _checked(Table(name, frame, form))
    if form.decimal is None:
        form = form._replace(decimal=_shown_decimal(name, frame, form))
    if all(form.number(cell) is not None for cell in frame):
        raise ValueError(
            f"{name} has no header: row {rows[place][0]} contains numbers. Put the columns' names above them."
        )
    return _checked(Table(name, frame, form))


def _content(source: str) -> tuple[str, str, bytes]:
    """Read a file or standard input: what messages call it, its kind by ending or first bytes, and its content."""
    name = source
    kind = "text"
    if source == "-":
        name = "standard input"
        content = sys.stdin.buffer.read()
    else:
        kind = kind_of(source)
        content = Path(source).read_bytes()
    if not content.strip():
        raise ValueError(f"{name} is empty: a table needs a header line and rows.")
    if content.startswith(b"PAR1"):
        kind = "parquet"
    elif content.startswith(b"PK\x03\x04") and kind != "parquet":
        kind = "excel"
    need_extra(name, kind)
    return name, kind, content


def _opened(name: str, content: bytes, kind: str, read: Callable[[io.BytesIO], Any]) -> Any:
    try:
        return read(io.BytesIO(content))
    except Exception as error:  # a damaged file can fail anywhere in its reader
        raise ValueError(f"{name} is not {kind}, or is damaged ({error}).") from error


def _rows_of_workbook(
    name: str, content: bytes, asked: Sequence[str], expected: Collection[str], new: bool
) -> list[Row]:
    """Return rows of the sheet that is asked for; else of the first with the expected names, or with any cell.

    Empty rows and columns are left out. A single name of a sheet is optional for NEW.
    """
    as_it_is: dict[str, Any] = {"sheet_name": None, "header": None, "dtype": object, "na_filter": False}
    sheets = {
        title: [(i, row) for i, row in enumerate(_without_empty_columns(cells), 1) if any(map(plain, row))]
        for title, cells in _opened(
            name, content, "an Excel workbook", lambda file: pd.read_excel(file, **as_it_is)
        ).items()
    }
    wanted = next(iter(asked), "")
    if new and asked:
        wanted = asked[-1]
    if wanted in sheets:
        return sheets[wanted]
    if asked and (not new or len(asked) > 1):
        hint = did_you_mean(wanted, sheets)
        raise ValueError(f"{name} has no sheet '{wanted}'.{hint} Its sheets are {listed(sheets)}.")
    filled = [title for title, rows in sheets.items() if rows] or [*sheets]
    with_names = [title for title in filled if expected and any(_has(row, expected) for _, row in sheets[title])]
    chosen = [*with_names, *filled][0]
    if len(filled) > 1:
        warnings.warn(f"'{chosen}' of the {len(filled)} sheets of {name} is read; --sheet names another", stacklevel=3)
    return sheets[chosen]


def _without_empty_columns(cells: pd.DataFrame) -> list[list[Any]]:
    used = cells.map(plain).ne("").any()
    return cells.loc[:, used].to_numpy().tolist()


def _has(row: Sequence[Any], names: Collection[str]) -> bool:
    return {*names} <= {*map(plain, row)}


def _decoded(name: str, content: bytes, encoding: str | None) -> tuple[str, str]:
    """Decode a file: by its byte-order mark, as UTF-8, or as the option says, by default as Windows-1252."""
    candidates = ["utf-8", encoding or "cp1252"]
    for mark, known in {b"\xef\xbb\xbf": "utf-8-sig", b"\xff\xfe": "utf-16", b"\xfe\xff": "utf-16"}.items():
        if content.startswith(mark):
            candidates = [known]
    for candidate in candidates:
        with suppress(UnicodeError, LookupError):
            text = content.decode(candidate)
            if "\0" not in text:
                return text, candidate
    raise ValueError(f"{name} is not text in {' or '.join(candidates)}; save it in UTF-8, or give --encoding.")


def _separator(lines: list[str], likely: str | None, expected: Collection[str]) -> str:
    """Return the separator that shows the expected names, that of the training rows first.

    If none does, it is that of the most lines with equally many cells.
    """
    equal = {}
    for separator in [*filter(None, [likely]), *SEPARATORS]:
        with suppress(csv.Error):
            rows = [[cell.strip() for cell in row] for row in csv.reader(lines[:100], delimiter=separator) if row]
            if expected and any(_has(row, expected) and (len(row) > 1 or likely) for row in rows):
                return separator
            widths = Counter(len(row) for row in rows if len(row) > 1)
            equal[separator] = max(widths.values(), default=0)
    if not any(equal.values()):
        return likely or ","
    return max(equal, key=equal.__getitem__)


def _rows_of_text(name: str, lines: list[str], separator: str, first: int) -> list[Row]:
    """Split lines into cells: number and cells of each row that has a value."""
    reader = csv.reader(lines[first:], delimiter=separator, skipinitialspace=True, strict=True)
    rows: list[Row] = []
    before = 0
    try:
        for cells in reader:
            stripped = [cell.strip() for cell in cells]
            if any(stripped):
                rows.append((first + before + 1, stripped))
            before = reader.line_num
    except csv.Error:
        line = first + before + 1
        raise ValueError(f'{name}, line {line}: a quote (") is not closed, or closes too early.') from None
    return rows


def _place_of_header(name: str, rows: Sequence[Row], expected: Collection[str], given: int | None) -> int:
    """Find the header: in the row that is given, where the expected names are, or the first of usual width."""
    if given is not None:
        numbers = [number for number, _ in rows]
        if given not in numbers:
            raise ValueError(f"--header-row {given}: {name} has nothing in that row.")
        return numbers.index(given)
    if not rows:
        raise ValueError(f"{name} has no rows below a header.")
    widths = [max((j for j, cell in enumerate(cells, 1) if plain(cell)), default=0) for _, cells in rows[:MOST_TITLES]]
    for place, width in enumerate(widths):
        if expected and width >= min(2, max(widths)) and _has(rows[place][1], expected):
            return place
    usual, _ = Counter(widths).most_common(1)[0]
    return widths.index(usual)


def _framed(name: str, rows: Sequence[Row], separator: str | None) -> pd.DataFrame:
    """Put rows from the header on into a frame, whose index are their numbers; a row of units is left out."""
    header = [" ".join(plain(cell).split()) for cell in rows[0][1]]
    below = rows[1:]
    for number, cells in below:
        if any(cells[len(header) :]) or len(cells) < len(header):
            raise ValueError(
                f"{name}, line {number}: the header has {len(header)} cells, this line {len(cells)} (delete it if it "
                f"is no row of the table; the separator is {separator!r}, --separator sets another)."
            )
    units = _units([[plain(cell) for cell in cells] for _, cells in below])
    if units:
        shown = listed(units, 6)
        warnings.warn(f"row {below[0][0]} of {name} has units and is skipped: {shown}", stacklevel=3)
        below = below[1:]
    numbers = [number for number, _ in below]
    return pd.DataFrame([cells[: len(header)] for _, cells in below], numbers, header, dtype=object)


def _units(rows: Sequence[list[str]]) -> list[str]:
    """Return the text of the first row if all of it is above numbers, as units are."""
    if len(rows) < 2:
        return []
    text = {j: cell for j, cell in enumerate(rows[0]) if cell not in _NO_UNIT}
    for j, cell in text.items():
        below = [like_value(row[j]) for row in rows[1:200] if row[j] not in MISSING_MARKS]
        if like_value(cell) or cell in MISSING_MARKS or 2 * sum(below) <= len(below):
            return []
    return [*text.values()]


def _shown_decimal(name: str, frame: pd.DataFrame, form: Format) -> str | None:
    """Return the decimal mark that numbers show, as 1.5 and 0,250 do; 1,234 may also be more than a thousand."""
    cells = frame.to_numpy().ravel()
    texts = {form.ungrouped(without_limit(cell)[0]) for cell in cells if "," in cell or "." in cell}
    doubtful = sorted(text for text in texts if THOUSANDS.fullmatch(text))
    sure = texts.difference(doubtful)
    shown = [mark for mark in ".," if any(form._replace(decimal=mark).number(text) is not None for text in sure)]
    if shown:
        return shown[0]
    if form.separator == ",":
        return "."
    if doubtful:
        raise ValueError(
            f"{name}: '{doubtful[0]}' can be read in two ways, and no other number shows which: give the decimal mark "
            "with --decimal , or --decimal . or the mark between thousands with --thousands."
        )
    return None


def _checked(table: Table) -> Table:
    """Leave out columns that have neither a name nor a value; raise if two have the same name, or there is no row."""
    frame = table.frame
    named = frame.columns != ""
    used = (frame.notna() & (frame != "")).any().to_numpy()
    if sum(used & ~named) > 1:
        raise ValueError(f"{table.name}: {sum(used & ~named)} columns have values and no name; name them.")
    twice = frame.columns[named & frame.columns.duplicated()]
    if len(twice):
        raise ValueError(f"{table.name} has more than one column named {listed(sorted({*twice}))}; rename them.")
    if not len(frame):
        raise ValueError(f"{table.name} has no rows below a header.")
    return table._replace(frame=frame.loc[:, named | used])
