"""Tables with new columns, written the way they were read."""

from __future__ import annotations

import csv
import io
import sys
from collections.abc import Mapping
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from conformal_gp.tables.cells import as_numbers, is_missing
from conformal_gp.tables.errors import TableError, listed
from conformal_gp.tables.reading import PARQUET_ENDINGS, Table

STANDARD_OUTPUT = "-"
_EMPTY = frozenset({""})


def write_table(table: Table, added: Mapping[str, NDArray[np.float64] | list[str]], out: str | Path) -> None:
    """Write a table with columns added.

    A text table keeps its cells as they were, its separator and its decimal mark; the ending of ``out`` says whether
    it becomes Parquet (``.parquet``, ``.pq``), tab-separated (``.tsv``) or stays as it was.

    Parameters
    ----------
    table : Table
        The table.
    added : mapping of str to array or list of str
        New columns; NaN becomes an empty cell.
    out : str or Path
        The file, replaced if it exists; ``-`` is standard output.
    """
    taken = [name for name in added if name in table.names]
    if taken:
        raise TableError(f"{table.name} already has {listed(taken)}; choose other names with --prefix.")
    if str(out).lower().endswith(PARQUET_ENDINGS):
        _write_parquet(table, added, Path(out))
        return
    text = _as_text(table, added, "\t" if str(out).lower().endswith((".tsv", ".tab")) else table.dialect.separator)
    if str(out) == STANDARD_OUTPUT:
        sys.stdout.write(text)
        sys.stdout.flush()
    else:
        Path(out).write_text(text, encoding=table.dialect.encoding, newline="")


def _as_text(table: Table, added: Mapping[str, NDArray[np.float64] | list[str]], separator: str) -> str:
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


def _write_parquet(table: Table, added: Mapping[str, NDArray[np.float64] | list[str]], path: Path) -> None:
    frame = table.frame.copy()
    for name in frame.columns:
        numbers = as_numbers(table.cells(name), table.dialect) if table.lines is not None else None
        if numbers is not None:
            frame[name] = numbers
    for name, values in added.items():
        frame[name] = values
    frame.to_parquet(path, index=False)
