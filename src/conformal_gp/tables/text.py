"""Text tables: from lines to cells, without losing any and without guessing what the file does not show."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Sequence

import numpy as np

from conformal_gp.tables.dialect import Dialect, decode, find_decimal, guess_separator, read_separator
from conformal_gp.tables.errors import TableError
from conformal_gp.tables.table import Table, check_names

MOST_CHARACTERS = csv.field_size_limit()
"""Longest cell. A longer one is no number or category, but the text after a missing quote."""


def read_text(name: str, content: bytes, separator: str | None, decimal: str | None, like: Dialect | None) -> Table:
    """A text table; see :func:`conformal_gp.tables.read_table`."""
    text, encoding = decode(content, name)
    first, _, rest = text.partition("\n")
    skipped = 0
    if first.strip().lower().startswith("sep=") and len(first.strip()) == 5:  # Excel's own way to name the separator
        separator, text, skipped = separator or first.strip()[-1], rest, 1
    if separator is None:
        separator = guess_separator(text, None if like is None else like.separator)
    else:
        separator = read_separator(separator)
    header, rows, lines = _cells(name, text, separator, skipped)
    check_names(name, header)
    if not rows:
        raise TableError(f"{name} has a header but no rows.")
    columns = dict(zip(header, map(list, zip(*rows, strict=True)), strict=True))
    table = Table(name, columns, Dialect(separator, encoding=encoding), np.array(lines))
    mark, seen = _decimal_mark(table, rows, decimal, like)
    dialect = Dialect(separator, mark, encoding, seen)
    if all(dialect.number(column) is not None for column in header):
        raise TableError(f"{name} has no header: its first line holds numbers. Put the columns' names above them.")
    return Table(name, columns, dialect, table.lines)


def _decimal_mark(
    table: Table, rows: Sequence[Sequence[str]], said: str | None, like: Dialect | None
) -> tuple[str, bool]:
    """The decimal mark, and whether it was given, or found here or in the other table."""
    if said is not None:
        return said, True
    seen, doubtful = find_decimal(rows, table.dialect.separator)
    if seen is not None:
        return seen, True
    if like is not None and like.marked:
        return like.decimal, True
    if doubtful is None:
        return ".", False
    row, column = doubtful
    cell = rows[row][column]
    mark = "," if "," in cell else "."
    raise TableError(
        f"{table.name}: column '{table.names[column]}', {table.place(row)}: '{cell}' can be read as "
        f"{cell.replace(',', '.')} or as {cell.replace(mark, '')}, and no other number shows which. If '{mark}' is the "
        f"decimal mark, say --decimal {mark} (decimal='{mark}'); if it stands between thousands, take it out."
    )


def _cells(name: str, text: str, separator: str, skipped: int) -> tuple[list[str], list[list[str]], list[int]]:
    """Header, rows and the rows' lines; all rows have as many cells as the header."""
    lines = list(io.StringIO(text, newline=""))
    if '"' in text:  # blanks after a closing quote are harmless, but not to a strict reader
        blanks = re.compile(rf'(?<!")"[ \t]+(?={re.escape(separator)}|[\r\n]|$)')
        lines = [blanks.sub('"', line) for line in lines]
    reader = csv.reader(lines, delimiter=separator, skipinitialspace=True, strict=True)
    header: list[str] = []
    rows, numbers = [], []
    before = 0  # lines read before the row
    try:
        for row in reader:
            start, before = before, reader.line_num
            if not any(cell.strip() for cell in row) and len(row) <= 1:
                continue  # an empty line
            cells = [cell.strip() for cell in row]
            line = reader.line_num + skipped
            if not header:
                header = cells
                continue
            if len(cells) != len(header):
                raise TableError(
                    f"{name}, line {line}: {len(cells)} cells, but the header names {len(header)} columns "
                    f"(separator {separator!r}; another can be given with --separator)."
                )
            spanned = lines[start : reader.line_num]
            if len(spanned) > 1 and all(part.count(separator) == len(header) - 1 for part in spanned):
                raise TableError(
                    f'{name}, line {start + 1 + skipped}: a quote (") is opened that closes only in line {line}, and '
                    "each of these lines looks like a row of its own; close the quote, or take it out."
                )
            rows.append(cells)
            numbers.append(line)
    except csv.Error as error:
        where = f"{name}, line {before + 1 + skipped}"
        raise TableError(f"{where}: {_in_words(str(error), reader.line_num + skipped)}") from error
    return header, rows, numbers


def _in_words(error: str, line: int) -> str:
    """An error of the csv module in plain words; ``line`` is where it stopped."""
    if "unexpected end of data" in error:
        return 'a quote (") is opened and never closed, so that the rest of the file would be one cell.'
    if "expected after" in error:
        return f'a quote (") closes in line {line} before its cell ends; a quote inside a cell is written twice ("").'
    if "field limit" in error:
        return f'a cell has more than {MOST_CHARACTERS:,} characters; is a quote (") missing that would close it?'
    return f"{error}."
