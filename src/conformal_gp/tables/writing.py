"""Tables with new columns, written the way they were read."""

from __future__ import annotations

import csv
import io
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from conformal_gp.files import replacing, write_bytes
from conformal_gp.tables.cells import as_numbers, is_missing
from conformal_gp.tables.errors import TableError, listed
from conformal_gp.tables.excel import write_workbook
from conformal_gp.tables.kinds import kind_of
from conformal_gp.tables.table import Table

if TYPE_CHECKING:
    import pandas

STANDARD_OUTPUT = "-"
_EMPTY = frozenset({""})

Added = Mapping[str, NDArray[np.float64] | list[str]]


def write_table(table: Table, added: Added, out: str | Path) -> None:
    """Write a table with columns added.

    A text table keeps its cells as they were, its separator, decimal mark and encoding; the ending of ``out`` says
    whether it becomes Parquet (``.parquet``, ``.pq``), Excel (``.xlsx``), tab-separated (``.tsv``) or stays as it was.

    Parameters
    ----------
    table : Table
        The table.
    added : mapping of str to array or list of str
        New columns; NaN becomes an empty cell.
    out : str or Path
        The file, replaced whole if it exists; ``-`` is standard output.

    Raises
    ------
    TableError
        If a new column has the name of an old one, the table's encoding lacks a character, or ``out`` has an ending
        that no kind of table has. Nothing is written then.
    """
    check_added(table, added)
    name = str(out)
    kind = kind_of(name)
    if kind in ("parquet", "excel"):
        frame = _typed(table, added)
        with replacing(out) as file:
            if kind == "parquet":
                frame.to_parquet(file, index=False)
            else:
                write_workbook({column: frame[column].astype(object).tolist() for column in frame}, file, name)
        return
    text = _as_text(table, added, "\t" if kind == "tabs" else table.dialect.separator)
    if name == STANDARD_OUTPUT:
        sys.stdout.write(text)
        sys.stdout.flush()
    else:
        write_bytes(out, _encoded(text, table))


def check_added(table: Table, names: Mapping[str, object]) -> None:
    """Refuse new columns with the name of an old one."""
    taken = [name for name in names if name in table.names]
    if taken:
        raise TableError(f"{table.name} already has {listed(taken)}; choose other names with --prefix.")


def _encoded(text: str, table: Table) -> bytes:
    encoding = table.dialect.encoding
    try:
        return text.encode(encoding)
    except UnicodeEncodeError as error:
        line = text.count("\n", 0, error.start) + 1
        raise TableError(
            f"line {line} of the output has the character '{text[error.start]}', which {encoding}, the encoding of "
            f"{table.name}, lacks. Save {table.name} in UTF-8, or choose other names with --prefix."
        ) from None


def _as_text(table: Table, added: Added, separator: str) -> str:
    buffer = io.StringIO(newline="")
    writer = csv.writer(buffer, delimiter=separator, lineterminator="\n")
    writer.writerow([*table.names, *added])
    old = [["" if is_missing(cell, _EMPTY) else str(cell) for cell in table.cells(name)] for name in table.names]
    new = [
        values if isinstance(values, list) else ["" if np.isnan(v) else table.dialect.write(v) for v in values]
        for values in added.values()
    ]
    writer.writerows(zip(*old, *new, strict=True))
    return buffer.getvalue()


def _typed(table: Table, added: Added) -> pandas.DataFrame:
    """The table with its columns of numbers as numbers, as Parquet and Excel have them."""
    import pandas

    if table.typed:
        frame = pandas.DataFrame({name: table.columns[name] for name in table.names})
    else:
        cells = {name: table.cells(name) for name in table.names}
        typed = {name: as_numbers(column, table.dialect) for name, column in cells.items()}
        frame = pandas.DataFrame({name: cells[name] if typed[name] is None else typed[name] for name in cells})
    for name, values in added.items():
        frame[name] = [cell or None for cell in values] if isinstance(values, list) else values
    return frame
