"""CSV, TSV, Parquet and Excel files, or standard input, as tables."""

from __future__ import annotations

import io
import sys
from pathlib import Path

from conformal_gp.tables.dialect import Dialect
from conformal_gp.tables.errors import TableError
from conformal_gp.tables.excel import read_workbook
from conformal_gp.tables.kinds import kind_of
from conformal_gp.tables.table import Table, check_names
from conformal_gp.tables.text import read_text

STANDARD_INPUT = "-"
# What files of another kind begin with, and what to say of them.
_OTHER_KINDS = {
    b"\xd0\xcf\x11\xe0": "an old Excel workbook; save it as .xlsx or CSV",
    b"\x1f\x8b": "compressed with gzip; unpack it first, or pipe it in: gunzip -c FILE | conformal-gp ... -",
}


def read_table(
    source: str | Path, *, separator: str | None = None, decimal: str | None = None, like: Dialect | None = None
) -> Table:
    r"""Read a table by its header.

    Parameters
    ----------
    source : str or Path
        A CSV, TSV, Parquet or Excel file, told apart by content; ``-`` is standard input. Of a workbook the first sheet
        is read.
    separator : str, default=None
        Of a text file: one character, or "comma", "semicolon", "tab", "pipe". None detects it.
    decimal : {".", ","}, default=None
        Decimal mark of a text file. None detects it.
    like : Dialect, default=None
        How another table is written, which this one goes with: it decides where this table leaves a doubt.

    Returns
    -------
    table : Table
        The table.

    Raises
    ------
    TableError
        If the file is not there, is empty, is not a table, has an ending that no kind of table has, has rows of
        different length, or numbers that can be read in two ways.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from conformal_gp.tables import read_table
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder) / "cars.csv"
    ...     _ = path.write_text("weight;mpg\n1,5;30\n2,5;20\n")
    ...     table = read_table(path)
    >>> table.names, len(table), table.dialect.separator, table.dialect.decimal
    (['weight', 'mpg'], 2, ';', ',')
    """
    if decimal not in (None, ".", ","):
        raise TableError(f"decimal must be '.' or ',', got {decimal!r}.")
    name, content = _content(str(source))
    if not content.strip():
        raise TableError(f"{name} is empty: a table needs a header line and rows.")
    for signature, other in _OTHER_KINDS.items():
        if content.startswith(signature):
            raise TableError(f"{name} is {other}.")
    kind = "text" if source == STANDARD_INPUT else kind_of(name)
    if content.startswith(b"PAR1") or kind == "parquet":
        return _parquet(name, content)
    if content.startswith(b"PK\x03\x04") or kind == "excel":
        return read_workbook(name, content)
    return read_text(name, content, separator, decimal, like)


def _content(source: str) -> tuple[str, bytes]:
    if source == STANDARD_INPUT:
        return "standard input", sys.stdin.buffer.read()
    path = Path(source)
    if path.is_dir():
        raise TableError(f"{source} is a folder; a CSV, TSV, Parquet or Excel file is needed.")
    try:
        return source, path.read_bytes()
    except FileNotFoundError:
        raise TableError(f"{source}: there is no such file.") from None
    except OSError as error:
        raise TableError(f"{source} cannot be read: {error.strerror or error}.") from None


def _parquet(name: str, content: bytes) -> Table:
    import pandas
    import pyarrow  # noqa: F401 (its absence is not the file's fault)

    try:
        frame = pandas.read_parquet(io.BytesIO(content), engine="pyarrow")
    except Exception as error:  # a damaged file can fail anywhere in its reader
        raise TableError(f"{name} is not a Parquet file, or is damaged ({error}).") from error
    if not isinstance(frame.index, pandas.RangeIndex):
        frame = frame.reset_index()
    frame.columns = [str(column) for column in frame.columns]
    check_names(name, list(frame.columns))
    if frame.empty:
        raise TableError(f"{name} has a header but no rows.")
    return Table(name, frame, Dialect(marked=False), typed=True)
