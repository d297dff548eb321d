"""A table in memory: columns of cells, as they were read."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from conformal_gp.tables.dialect import Dialect
from conformal_gp.tables.errors import TableError, listed


@dataclass(frozen=True)
class Table:
    """A table as it was read."""

    name: str
    """What to call it in messages: the file's name."""
    columns: Mapping[str, Any]
    """Cells of each column: text from a text file, typed from Parquet (a frame) and Excel."""
    dialect: Dialect
    lines: NDArray[np.int64] | None = None
    """The line of each row in a text file or sheet; None for Parquet."""
    typed: bool = False
    """Whether cells are numbers, dates and text already, and not all text."""
    note: str = ""
    """What the user should know of how it was read."""

    def __len__(self) -> int:
        return len(self.columns[self.names[0]])

    @property
    def names(self) -> list[str]:
        """Names of the columns."""
        return list(self.columns)

    def cells(self, name: str) -> list[Any]:
        """The cells of one column."""
        column = self.columns[name]
        return column if isinstance(column, list) else column.astype(object).tolist()

    def place(self, row: int) -> str:
        """Where a row is, for messages: counted from 1 without the header, and its line."""
        return f"row {row + 1}" if self.lines is None else f"row {row + 1} (line {self.lines[row]})"


def check_names(name: str, names: Sequence[str]) -> None:
    """Refuse columns of the same name."""
    twice = [column for column, count in Counter(names).items() if count > 1]
    if twice:
        raise TableError(f"{name} has more than one column named {listed(twice)}; names must differ.")
