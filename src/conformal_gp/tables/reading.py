"""CSV, TSV and Parquet files, or standard input, as tables."""

from __future__ import annotations

import csv
import io
import sys
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from conformal_gp.tables.dialect import Dialect, decode, guess_decimal, guess_separator, read_separator
from conformal_gp.tables.errors import TableError, listed

if TYPE_CHECKING:
    import pandas

STANDARD_INPUT = "-"
PARQUET_ENDINGS = (".parquet", ".pq")
# What files of another kind begin with, and what to say of them.
_OTHER_KINDS = {
    b"PK\x03\x04": "an Excel workbook or a zip archive; save the sheet as CSV",
    b"\xd0\xcf\x11\xe0": "an old Excel workbook; save the sheet as CSV",
    b"\x1f\x8b": "compressed with gzip; unpack it first, or pipe it in: gunzip -c FILE | conformal-gp ... -",
}


@dataclass(frozen=True)
class Table:
    """A table as it was read."""

    name: str
    """What to call it in messages: the file's name."""
    frame: pandas.DataFrame
    """Its columns: as text from a text file, typed from Parquet."""
    dialect: Dialect
    lines: NDArray[np.int64] | None = None
    """The line of each row in a text file."""

    def __len__(self) -> int:
        return len(self.frame)

    @property
    def names(self) -> list[str]:
        """Names of the columns."""
        return [str(name) for name in self.frame.columns]

    def cells(self, name: str) -> list[Any]:
        """The cells of one column."""
        return self.frame[name].astype(object).tolist()

    def place(self, row: int) -> str:
        """Where a row is, for messages: counted from 1 without the header, and its line."""
        return f"row {row + 1}" if self.lines is None else f"row {row + 1} (line {self.lines[row]})"

    def take(self, rows: NDArray[Any]) -> Table:
        """Some of the rows."""
        frame = self.frame.iloc[rows].reset_index(drop=True)
        return Table(self.name, frame, self.dialect, None if self.lines is None else self.lines[rows])


def read_table(source: str | Path, *, separator: str | None = None, decimal: str | None = None) -> Table:
    r"""Read a table by its header.

    Parameters
    ----------
    source : str or Path
        A CSV, TSV or Parquet file, told apart by content; ``-`` is standard input.
    separator : str, default=None
        Of a text file: one character, or "comma", "semicolon", "tab", "pipe". None finds it out.
    decimal : {".", ","}, default=None
        Decimal mark of a text file. None finds it out.

    Returns
    -------
    table : Table
        The table.

    Raises
    ------
    TableError
        If the file is not there, is empty, is not a table, or has rows of different length.

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
    if content.startswith(b"PAR1") or name.lower().endswith(PARQUET_ENDINGS):
        return _parquet(name, content)
    for signature, kind in _OTHER_KINDS.items():
        if content.startswith(signature):
            raise TableError(f"{name} is {kind}.")
    return _text(name, content, separator, decimal)


def _content(source: str) -> tuple[str, bytes]:
    if source == STANDARD_INPUT:
        return "standard input", sys.stdin.buffer.read()
    path = Path(source)
    if path.is_dir():
        raise TableError(f"{source} is a folder; a CSV, TSV or Parquet file is needed.")
    try:
        return source, path.read_bytes()
    except FileNotFoundError:
        raise TableError(f"{source}: there is no such file.") from None
    except OSError as error:
        raise TableError(f"{source} cannot be read: {error.strerror or error}.") from None


def _parquet(name: str, content: bytes) -> Table:
    import pandas
    import pyarrow

    try:
        frame = pandas.read_parquet(io.BytesIO(content), engine="pyarrow")
    except (pyarrow.ArrowException, OSError) as error:
        raise TableError(f"{name} is not a Parquet file, or is damaged ({error}).") from error
    if not isinstance(frame.index, pandas.RangeIndex):
        frame = frame.reset_index()
    frame.columns = [str(column) for column in frame.columns]
    _check_names(name, list(frame.columns))
    if frame.empty:
        raise TableError(f"{name} has a header but no rows.")
    return Table(name, frame, Dialect())


def _text(name: str, content: bytes, separator: str | None, decimal: str | None) -> Table:
    import pandas

    text, encoding = decode(content, name)
    first, _, rest = text.partition("\n")
    skipped = 0
    if first.strip().lower().startswith("sep=") and len(first.strip()) == 5:  # Excel's own way to say it
        separator, text, skipped = separator or first.strip()[-1], rest, 1
    separator = guess_separator(text) if separator is None else read_separator(separator)
    header, rows, lines = _rows(name, text, separator, skipped)
    dialect = Dialect(separator, guess_decimal(rows, separator) if decimal is None else decimal, encoding)
    _check_names(name, header)
    if not rows:
        raise TableError(f"{name} has a header but no rows.")
    if all(dialect.number(column) is not None for column in header):
        raise TableError(f"{name} has no header: its first line holds numbers. Put the columns' names above them.")
    columns = dict(zip(header, map(list, zip(*rows, strict=True)), strict=True))
    return Table(name, pandas.DataFrame(columns, dtype=object), dialect, np.array(lines))


def _rows(name: str, text: str, separator: str, skipped: int) -> tuple[list[str], list[list[str]], list[int]]:
    """Header, rows and the rows' lines; all rows have as many cells as the header."""
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=separator, skipinitialspace=True)
    rows, lines = [], []
    header: list[str] = []
    try:
        for row in reader:
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
            rows.append(cells)
            lines.append(line)
    except csv.Error as error:
        raise TableError(f"{name}, line {reader.line_num + skipped}: {error}.") from error
    return header, rows, lines


def _check_names(name: str, names: list[str]) -> None:
    twice = [column for column, count in Counter(names).items() if count > 1]
    if twice:
        raise TableError(f"{name} has more than one column named {listed(twice)}; names must differ.")
