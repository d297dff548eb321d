"""The paper's results: every cell of its four tables."""

from __future__ import annotations

import csv
from functools import cache
from importlib.resources import files
from typing import NamedTuple

PAPER_LEVELS = (90, 95, 99)
"""Confidence levels of the tables, in percent."""


class Row(NamedTuple):
    """A line of a table: a method with its settings."""

    method: str
    covariance: str = ""
    gamma: float | None = None


class Printed(NamedTuple):
    """A cell as printed in the paper."""

    width: float
    miscoverage: float


@cache
def printed() -> dict[tuple[str, Row, int], Printed]:
    """Cells of the paper by data set, row and level in percent, in the paper's order.

    >>> printed()["boston", Row("GPR-CP", "SE", 2.0), 90]
    Printed(width=8.277, miscoverage=10.53)
    """
    cells = {}
    with (files(__package__) / "paper.csv").open() as lines:
        for line in csv.DictReader(lines):
            row = Row(line["method"], line["covariance"], float(line["gamma"]) if line["gamma"] else None)
            cell = Printed(float(line["mean_width"]), float(line["miscoverage_percent"]))
            cells[line["data_set"], row, int(line["confidence"])] = cell
    return cells


def rows_of(data_set: str) -> list[Row]:
    """Rows of the paper's table for a data set."""
    return list(dict.fromkeys(row for name, row, _ in printed() if name == data_set))
