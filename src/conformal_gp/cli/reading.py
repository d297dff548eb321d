"""Tables from files: CSV, TSV, Parquet and Excel as data frames.

The encoding is detected for each file. A separator or decimal mark that is not given is that of the training rows, or
else is taken from the file. Rows and columns without any value are skipped.

Instruments write titles, dates and names of methods above a table. The header is the first row that has all of the
names that are expected; else the first row that is as wide as the rows below it and has text above their numbers, if
all rows above it are narrower; else the first row.
"""

from __future__ import annotations

import csv
import io
import sys
import warnings
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from conformal_gp.cli.options import Reading
from conformal_gp.cli.tables import (
    APOSTROPHES,
    LIKE_DATE,
    LIKE_NUMBER,
    MISSING_MARKS,
    SPACES,
    THOUSANDS,
    Format,
    Table,
    did_you_mean,
    kind_of,
    listed,
    need_extra,
    plain,
    without_limit,
)

SEPARATORS = {"tab": "\t", "\\t": "\t", "semicolon": ";", "pipe": "|", "comma": ",", "space": " "}
SHOWN_SEPARATORS = "\t;|,"
THOUSANDS_MARKS = {".": ".", ",": ",", "space": " ", **dict.fromkeys(SPACES, " "), **dict.fromkeys(APOSTROPHES, "'")}
SHOWN_UNITS = 6
KINDS = {"parquet": "a Parquet file", "excel": "an Excel workbook"}
# A header is looked for among so many rows, by so many rows below it.
MOST_TITLES, ROWS_BELOW = 60, 200
NO_UNIT = frozenset({"", "-", "\N{EN DASH}", "\N{EM DASH}", "NA", "n/a"})

Row = tuple[int, list[Any]]
"""Number of a row in its file, and its cells: text, or values of a workbook."""


def read_table(
    source: str, reading: Reading, like: Format | None = None, expected: Collection[str] = (), new: bool = False
) -> Table:
    """Read a table by its header, which should have the ``expected`` names; ``-`` is standard input.

    The separator and the decimal mark of a text file are those given, else those of the training rows (``like``), else
    what the file shows. The encoding is the one given, else it is detected. ``new`` is whether rows are those of NEW,
    whose sheet is the second.
    """
    given = _given(reading)
    name, kind, content = _content(source)
    if kind == "parquet":
        return _checked(Table(name, _opened(name, content, kind, _parquet), given))
    if kind == "excel":
        as_it_is: dict[str, Any] = {"header": None, "dtype": object, "na_values": [""], "keep_default_na": False}
        sheets = _opened(name, content, kind, lambda file: pd.read_excel(file, sheet_name=None, **as_it_is))
        rows = _rows_of_sheet(_chosen_sheet(name, sheets, reading.sheet, new))
        place, units = find_header(name, rows, expected, reading.header_row)
        frame = _framed(name, rows[place:], units)
        return _checked(Table(name, frame.infer_objects(), given))
    like = like or Format()
    text, encoding = _decoded(name, content, reading.encoding, like.encoding)
    form = Format(
        given.decimal or like.decimal,
        given.thousands or like.thousands,
        given.percent or like.percent,
        given.separator,
        encoding,
    )
    return _from_text(name, text, form, like.separator, expected, reading.header_row)


def _given(reading: Reading) -> Format:
    """What options say of the format, with characters in place of their names; raise if one cannot be used."""
    separator = SEPARATORS.get(reading.separator or "", reading.separator)
    if separator is not None and (len(separator) != 1 or separator in '"\r\n'):
        raise ValueError(f"--separator takes one character, got {separator!r}.")
    decimal = reading.decimal
    if decimal not in (None, ".", ","):
        raise ValueError(f"--decimal takes . or , and got {decimal!r}.")
    thousands = THOUSANDS_MARKS.get(reading.thousands or "")
    if reading.thousands is not None and (thousands is None or thousands == decimal):
        raise ValueError(f"--thousands takes , . ' or space, and not the decimal mark; got {reading.thousands!r}.")
    if thousands in (".", ","):
        decimal = {".": ",", ",": "."}[thousands]
    return Format(decimal, thousands, reading.percent, separator)


def _from_text(
    name: str, text: str, form: Format, likely: str | None, expected: Collection[str], header_row: int | None
) -> Table:
    """Read a table from the text of a file; ``likely`` is the separator of the training rows."""
    lines = io.StringIO(text, newline="").readlines()
    separator = form.separator or _separator(lines, likely, expected)
    form = form._replace(separator=separator)
    top = _loosely(lines[: MOST_TITLES + ROWS_BELOW + (header_row or 0)], separator)
    place, units = find_header(name, top, expected, header_row)
    start = top[place][0]
    frame = _framed(name, _rows(name, lines, separator, start - 1), units)
    if form.decimal is None:
        form = form._replace(decimal=_shown_decimal(name, frame, form))
    if all(form.number(cell) is not None for cell in frame):
        raise ValueError(f"{name} has no header: row {start} contains numbers. Put the columns' names above them.")
    return _checked(Table(name, frame, form))


def _framed(name: str, rows: Sequence[Row], units: bool) -> pd.DataFrame:
    """Put rows from the header on into a frame, whose index are their numbers; units are noted."""
    (_, names), *below = rows
    if units:
        text = [cell for cell in below[0][1] if isinstance(cell, str) and cell.strip()]
        said = f"row {below[0][0]} of {name} has units and is skipped: {listed(text, SHOWN_UNITS)}"
        warnings.warn(said, stacklevel=4)
        below = below[1:]
    header = [" ".join(text_of(cell).split()) for cell in names]
    numbers = [number for number, _ in below]
    return pd.DataFrame([cells for _, cells in below], numbers, header, dtype=object)


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
    named = frame.columns != ""
    used = (frame.notna() & (frame != "")).any().to_numpy()
    nameless = np.flatnonzero(used & ~named)
    if nameless.size > 1:
        places = ", ".join(map(str, nameless + 1))
        raise ValueError(f"{table.name}: columns {places} have values and no name; name them.")
    twice = frame.columns[named & frame.columns.duplicated()]
    if len(twice):
        raise ValueError(f"{table.name} has more than one column named {listed(sorted({*twice}))}.")
    if not len(frame):
        raise ValueError(f"{table.name} has no rows below a header.")
    return table._replace(frame=frame.loc[:, named | used])


def _opened(name: str, content: bytes, kind: str, read: Callable[[io.BytesIO], Any]) -> Any:
    """Read a file of a kind whose cells have types."""
    need_extra(name, kind)
    try:
        return read(io.BytesIO(content))
    except Exception as error:  # a damaged file can fail anywhere in its reader
        raise ValueError(f"{name} is not {KINDS[kind]}, or is damaged ({error}).") from error


def _parquet(file: io.BytesIO) -> pd.DataFrame:
    frame = pd.read_parquet(file)
    if frame.index.name is not None:  # as pandas saves an index
        frame = frame.reset_index()
    frame.columns = [str(column).strip() for column in frame.columns]
    return frame.set_axis(range(1, len(frame) + 1))


def _chosen_sheet(name: str, sheets: dict[str, pd.DataFrame], asked: Sequence[str], new: bool) -> pd.DataFrame:
    """The sheet that is asked for; without one, the first that is not empty. A single one is optional for NEW."""
    if len(asked) > 2:
        raise ValueError(f"--sheet can be given twice, for TRAIN and NEW; got {len(asked)}.")
    if asked:
        wanted = asked[0]
        if new:
            wanted = asked[-1]
        if wanted in sheets:
            return sheets[wanted]
        if not new or len(asked) > 1:
            hint = did_you_mean(wanted, sheets)
            raise ValueError(f"{name} has no sheet '{wanted}'.{hint} Its sheets are {listed(sheets)}.")
    title, *others = [title for title, cells in sheets.items() if len(cells)] or sheets
    if others:
        said = f"{name} has {1 + len(others)} sheets; only the first, '{title}', is read, --sheet names another"
        warnings.warn(said, stacklevel=4)
    return sheets[title]


def _rows_of_sheet(sheet: pd.DataFrame) -> list[Row]:
    """Rows of a sheet without empty rows and columns."""
    cells = sheet.map(lambda cell: None if isinstance(cell, str) and not cell.strip() else cell)
    cells = cells.dropna(how="all").dropna(axis=1, how="all")
    return [(int(row) + 1, values) for row, values in zip(cells.index, cells.to_numpy().tolist(), strict=True)]


def _decoded(name: str, content: bytes, encoding: str | None, likely: str | None) -> tuple[str, str]:
    """Decode a file: by its byte-order mark, the encoding given, UTF-8, a likely one, or Windows-1252."""
    marks = {b"\xef\xbb\xbf": "utf-8-sig", b"\xff\xfe": "utf-16", b"\xfe\xff": "utf-16"}
    candidates = [known for mark, known in marks.items() if content.startswith(mark)]
    if not candidates and encoding is not None:
        candidates = [encoding]
    elif not candidates:
        candidates = ["utf-8", "cp1252"]
        if likely not in (None, "utf-8-sig", "utf-16"):
            candidates.insert(1, likely)
    for candidate in candidates:
        with suppress(UnicodeError, LookupError):
            text = content.decode(candidate)
            if "\0" not in text:
                return text, candidate
    called = [{"utf-8": "UTF-8", "cp1252": "Windows-1252"}.get(candidate, candidate) for candidate in candidates]
    raise ValueError(f"{name} is not text in {' or '.join(called)}; save it in UTF-8, or give --encoding.")


def _separator(lines: list[str], likely: str | None, expected: Collection[str]) -> str:
    """Return the likely separator if the file has it, or has one column; else that of the most equally wide lines."""
    if likely is not None:
        shows_none = not set(SHOWN_SEPARATORS) & set("".join(lines[:MOST_TITLES]))
        if likely in lines[0] or shows_none or lines[0].strip().strip('"') in expected:
            return likely
    agreeing = dict.fromkeys(SHOWN_SEPARATORS, 0)
    for separator in agreeing:
        with suppress(csv.Error):
            widths = Counter(len(row) for row in csv.reader(lines[:100], delimiter=separator) if row)
            agreeing[separator] = max((count for width, count in widths.items() if width > 1), default=0)
    if not any(agreeing.values()):
        return ","
    return max(agreeing, key=agreeing.__getitem__)


def _split(lines: list[str], separator: str, start: int = 0, strict: bool = False) -> Iterator[tuple[int, int, Any]]:
    """Split lines into cells: how many lines are before each row, how many at its end, and its cells."""
    reader = csv.reader(lines[start:], delimiter=separator, skipinitialspace=True, strict=strict)
    before = start
    for cells in reader:
        after = start + reader.line_num
        yield before, after, [cell.strip() for cell in cells]
        before = after


def _loosely(lines: list[str], separator: str) -> list[Row]:
    """Split lines into cells as far as they are a table; rows without a value are left out."""
    rows: list[Row] = []
    with suppress(csv.Error):
        rows.extend((before + 1, cells) for before, _, cells in _split(lines, separator) if any(cells))
    return rows


def _rows(name: str, lines: list[str], separator: str, start: int) -> list[Row]:
    """Split lines into cells: number and cells of each row that has a value, from the header on.

    The csv module is strict; pandas would fill up short rows.
    """
    rows: list[Row] = []
    after = start
    try:
        for before, after, cells in _split(lines, separator, start, strict=True):
            width = len(cells)
            if rows:
                width = len(rows[0][1])
            spanned = lines[before:after]
            if len(spanned) > 1 and all(line.count(separator) == width - 1 for line in spanned):
                after = before
                raise csv.Error  # each looks like a separate row
            if any(cells):
                if any(cells[width:]) or len(cells) < width:
                    where = f"{name}, line {before + 1}: the header has {width} cells, this line {len(cells)}"
                    cure = f"delete it if it is no row of the table; the separator is {separator!r}"
                    raise ValueError(f"{where} ({cure}, --separator sets another).")
                rows.append((before + 1, cells[:width]))
    except csv.Error:
        raise ValueError(f'{name}, line {after + 1}: a quote (") is not closed, or closes too early.') from None
    return rows


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


def find_header(
    name: str, rows: Sequence[Row], expected: Collection[str] = (), given: int | None = None
) -> tuple[int, bool]:
    """Find the place of the header, and whether the row below it has units.

    ``expected`` are names that it should have, ``given`` is the number of its row in the file.

    >>> rows = [["Report"], ["t", "y"], ["min", "mV"], ["0.5", "2.5"], ["1.0", "2.75"]]
    >>> find_header("lab.csv", [*enumerate(rows, 1)], given=2)
    (1, True)
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
    return place, len(below) > 1 and _has_units(below[0], below[1:])


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
