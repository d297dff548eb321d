"""Tables with columns added, written the way they were read."""

from __future__ import annotations

import io
import math
import sys
from typing import Any

import numpy as np
import pandas as pd

from conformal_gp.cli.tables import LIKE_NUMBER, MISSING_MARKS, Format, Table, kind_of, listed
from conformal_gp.files import write_bytes


def write_table(table: Table, added: pd.DataFrame, out: str) -> None:
    """Write a table with columns added, the way it was read, or as the ending of ``out`` requires; ``-`` is stdout.

    Text that a spreadsheet would take for a formula gets a leading apostrophe, except in Parquet.
    """
    taken = [name for name in added if name in table.frame]
    if taken:
        raise ValueError(f"{table.name} already has {listed(taken)}; choose other names with --prefix.")
    kind = kind_of(out)
    old = table.frame
    form = table.format
    if form.separator and kind in ("parquet", "excel"):
        old = old.apply(lambda cells: _as_numbers(cells, form))
    frame = pd.concat([old, added], axis=1)
    if kind in ("parquet", "excel"):
        write_bytes(out, _packed(frame, kind))
        return
    frame = _without_formulas(frame)
    for name in added.select_dtypes("float"):
        frame[_without_formula(name)] = [_written(value, form.decimal or ".") for value in added[name]]
    separator = form.separator or ","
    if kind == "tabs":
        separator = "\t"
    text = frame.to_csv(index=False, sep=separator, lineterminator="\n")
    if out == "-":
        sys.stdout.write(text)
        return
    try:
        write_bytes(out, text.encode(form.encoding or "utf-8"))
    except UnicodeEncodeError as error:
        what = f"'{text[error.start]}', which {form.encoding}, the encoding of {table.name}, lacks"
        raise ValueError(f"the output has {what}; save {table.name} in UTF-8.") from None


def _as_numbers(cells: pd.Series, form: Format) -> pd.Series:
    """Turn a column of text into numbers, if all cells are numbers or empty."""
    found = [math.nan if cell in MISSING_MARKS else form.number(cell) for cell in cells]
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
