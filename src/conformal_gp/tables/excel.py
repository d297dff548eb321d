"""Excel workbooks: the first sheet as a table, and a table as a workbook of one sheet.

Needs openpyxl (``pip install 'conformal-gp[excel]'``).
"""

from __future__ import annotations

import io
from collections.abc import Mapping, Sequence
from typing import IO, Any

import numpy as np

from conformal_gp.tables.dialect import Dialect
from conformal_gp.tables.errors import TableError, listed
from conformal_gp.tables.table import Table, check_names


def _openpyxl(what: str) -> Any:
    try:
        import openpyxl
    except ImportError:
        raise TableError(f"{what} is an Excel workbook, which needs pip install 'conformal-gp[excel]'.") from None
    return openpyxl


def read_workbook(name: str, content: bytes) -> Table:
    """The first sheet of a workbook that holds anything; the header is its first row that is not empty."""
    openpyxl = _openpyxl(name)
    try:
        book = openpyxl.load_workbook(io.BytesIO(content), read_only=True, data_only=True)
        sheets = {sheet.title: _filled(sheet.iter_rows(values_only=True)) for sheet in book.worksheets}
    except Exception as error:  # a damaged file can fail anywhere in its reader
        raise TableError(f"{name} is not an Excel workbook, or is damaged ({error}).") from error
    filled = [title for title, cells in sheets.items() if cells]
    if not filled:
        raise TableError(f"{name} is empty: a table needs a header line and rows.")
    (header, *rows), places = zip(*sheets[filled[0]], strict=True)
    width = max(len(row) for row in (header, *rows))
    cells = [[_text(cell) for cell in row] + [None] * (width - len(row)) for row in (header, *rows)]
    used = [j for j in range(width) if any(row[j] is not None for row in cells)]
    names = ["" if cells[0][j] is None else str(cells[0][j]).strip() for j in used]
    check_names(name, names)
    if not rows:
        raise TableError(f"{name} has a header but no rows.")
    columns = {column: [row[j] for row in cells[1:]] for column, j in zip(names, used, strict=True)}
    note = ""
    if len(filled) > 1:
        note = f"{name} has {len(filled)} sheets; only the first, '{filled[0]}', is read (not {listed(filled[1:])})"
    return Table(name, columns, Dialect(marked=False), np.array(places[1:]), typed=True, note=note)


def _filled(rows: Any) -> list[tuple[tuple[Any, ...], int]]:
    """Rows that are not empty, and their numbers in the sheet."""
    return [(row, number) for number, row in enumerate(rows, 1) if any(cell is not None for cell in row)]


def _text(cell: Any) -> Any:
    """A cell without blanks around text; empty text is nothing."""
    return (cell.strip() or None) if isinstance(cell, str) else cell


def write_workbook(columns: Mapping[str, Sequence[Any]], file: IO[bytes], name: str) -> None:
    """Columns as a workbook. Numbers that are not finite, which Excel lacks, are text or, if missing, nothing."""
    openpyxl = _openpyxl(name)
    from openpyxl.cell import WriteOnlyCell
    from openpyxl.utils.exceptions import IllegalCharacterError

    book = openpyxl.Workbook(write_only=True)
    sheet = book.create_sheet("predictions")

    def cell(value: Any) -> Any:
        if isinstance(value, np.generic):
            value = value.item()
        if isinstance(value, float) and not np.isfinite(value):
            value = None if np.isnan(value) else str(value)
        if not isinstance(value, str):
            return value
        written = WriteOnlyCell(sheet, value)
        written.data_type = "s"  # text that begins with = is no formula
        return written

    try:
        sheet.append([cell(column) for column in columns])
        for row in zip(*columns.values(), strict=True):
            sheet.append([cell(value) for value in row])
    except (IllegalCharacterError, ValueError) as error:
        raise TableError(f"{name}: Excel takes no cell such as this one ({error}).") from error
    book.save(file)
