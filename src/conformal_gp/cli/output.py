"""Messages, and results as tables and JSON: results go to standard output or files, all else to standard error.

Digits follow the width of the interval, and rounding never excludes anything. Numbers of a row are rounded to three
digits of its narrowest interval, lower bounds down and upper bounds up, so that each rounded interval contains the
exact one, and the prediction.
"""

from __future__ import annotations

import io
import json
import math
import re
import sys
import textwrap
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from decimal import ROUND_CEILING, ROUND_FLOOR, ROUND_HALF_EVEN, Context, Decimal
from fractions import Fraction
from shutil import get_terminal_size
from typing import Any, TextIO

import numpy as np
import pandas as pd

from conformal_gp.arrays import Array
from conformal_gp.cli.tables import LIKE_NUMBER, MISSING_MARKS, Format, Table, kind_of, listed
from conformal_gp.files import write_bytes
from conformal_gp.formatting import percent

DIGITS = 3
_EXACT = Context(prec=800)  # digits enough for every double
# What the library says to those who write Python, and what does the same here.
NO_BOUND = (
    "give y_bounds=None and target_transform=None",
    "give a --lower-bound that is less, and --target-transform none",
)
_ROW = re.compile(r"\brow (\d+)")
_FIGURE = re.compile(r"[\d.]+")


class Output:
    """Messages of a command, and results that it prints."""

    def __init__(self, *, quiet: bool):
        self.notices: list[str] = []
        self._quiet = quiet

    def notice(self, text: str) -> None:
        """Print a note, once."""
        if text and text not in self.notices:
            self.notices.append(text)
            self.info(f"note: {text}")

    def warning(self, text: str) -> None:
        """Print what limits the guarantee, also with --quiet."""
        self.notices.append(text)
        _print(f"warning: {text}", sys.stderr)

    def info(self, *lines: str) -> None:
        """Print summaries."""
        if not self._quiet:
            _print("\n".join(lines), sys.stderr)

    def result(self, *lines: str) -> None:
        """Print a result for people."""
        _print("\n".join(lines), sys.stdout)

    def document(self, document: dict[str, Any]) -> None:
        """Print a result for programs, notices included: strict JSON, null for numbers that are not finite."""
        print(json.dumps(_strict(document | {"notices": self.notices}), allow_nan=False, ensure_ascii=False))

    @contextmanager
    def working(self, label: str, numbers: Any = None, folds: bool = False) -> Iterator[Callable[[int, int], None]]:
        """Show progress on a terminal, and turn warnings into notices; yield a function of how much is done.

        Rows in warnings get their ``numbers`` in the file. Warnings about ``folds`` name no row, and each comes once.
        """
        caught: list[warnings.WarningMessage] = []
        try:
            with warnings.catch_warnings(record=True) as caught:
                warnings.simplefilter("always")
                self._progress(label)
                yield lambda done, total: self._progress(f"{label}: {done} of {total}")
        finally:  # an error comes last, below what was noted before it
            self._progress("")
            self._notice_warnings(caught, numbers, folds)

    def _progress(self, text: str) -> None:
        if sys.stderr.isatty() and not self._quiet:
            print(f"\r\x1b[K{text}", end="", file=sys.stderr, flush=True)

    def _notice_warnings(self, caught: list[warnings.WarningMessage], numbers: Any, folds: bool) -> None:
        kinds: set[str] = set()
        for warning in caught:  # commands print a notice of their own about extrapolation
            if not issubclass(warning.category, UserWarning) or warning.category.__name__ == "ExtrapolationWarning":
                continue
            text = str(warning.message).replace(*NO_BOUND)
            if folds:
                text = _ROW.sub("one row", text)
                kind = _FIGURE.sub("", text)
                if kind in kinds:
                    continue
                kinds.add(kind)
            elif numbers is not None:
                text = _ROW.sub(lambda found: f"row {numbers[int(found[1])]}", text)
            self.notice(text)


def _print(text: str, stream: TextIO) -> None:
    """Print text, on a terminal wrapped between words."""
    if stream.isatty():
        width = get_terminal_size().columns
        text = "\n".join(textwrap.fill(line, width, break_long_words=False) for line in text.split("\n"))
    print(text, file=stream)


def _strict(value: Any) -> Any:
    if hasattr(value, "tolist"):
        value = value.tolist()
    if isinstance(value, dict):
        return {key: _strict(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_strict(item) for item in value]
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value


def row_documents(found: pd.DataFrame, names: Any) -> list[dict[str, Any]]:
    """Return results of rows as JSON has them: with their numbers in the file, and their names if a column has them."""
    described = found.copy()
    if names is not None:
        described.insert(0, "name", list(names))
    return described.rename_axis("row").reset_index().to_dict("records")


def bounds_of(level: Fraction) -> list[str]:
    """Name the columns of the bounds of a level.

    >>> bounds_of(Fraction(999, 1000))
    ['lower_99.9', 'upper_99.9']
    """
    return [f"{side}_{percent(level)[:-1]}" for side in ("lower", "upper")]


def rounded(found: pd.DataFrame) -> pd.DataFrame:
    """Round predictions, bounds and quantiles, row by row; quantiles away from the median."""
    result = found.copy()
    widths = _widths(found)
    for name, values in found.items():
        side, _, share = str(name).partition("_")
        direction = ROUND_HALF_EVEN
        if side == "lower" or (side == "quantile" and float(share) < 50):
            direction = ROUND_FLOOR
        elif side in ("upper", "quantile"):
            direction = ROUND_CEILING
        result[name] = [_round(*cell, direction) for cell in zip(values, widths, strict=True)]
    return result


def _widths(found: pd.DataFrame) -> Array:
    """Return the width of the narrowest interval of each row; of one with an infinite bound twice the finite half."""
    lower = found.filter(regex="^lower_").to_numpy()
    upper = found.filter(regex="^upper_").to_numpy()
    if not lower.size:
        lower = found.filter(regex="^quantile_").to_numpy()
        upper = lower
    half = np.abs(np.stack([lower, upper]) - found["mean"].to_numpy()[:, None])
    half = np.where(np.isfinite(half), half, 0.0).max(axis=0)
    with np.errstate(invalid="ignore"):
        width = upper - lower
    width = np.where((width > 0.0) & (width < np.inf), width, 2.0 * half)
    return np.where(width > 0.0, width, np.inf).min(axis=1, initial=np.inf)


def outward(low: float, high: float) -> tuple[float, float]:
    """Round the bounds of an interval outward, to some digits of its width.

    >>> outward(1.28897, 1.55321)
    (1.288, 1.554)
    """
    return _round(low, high - low, ROUND_FLOOR), _round(high, high - low, ROUND_CEILING)


def _round(value: float, width: float, direction: str) -> float:
    """Round a number to three digits of a width; without a width it stays as it is.

    >>> _round(101324.92837, 0.1438, ROUND_FLOOR), _round(101325.07217, 0.1438, ROUND_CEILING)
    (101324.928, 101325.073)
    >>> _round(28766.2, 5321.0, ROUND_FLOOR), _round(-math.inf, 5321.0, ROUND_FLOOR)
    (28760.0, -inf)
    """
    if not math.isfinite(value) or not 0.0 < width < math.inf:
        return value
    unit = Decimal(1).scaleb(math.floor(math.log10(width)) + 1 - DIGITS)
    return float(Decimal(value).quantize(unit, rounding=direction, context=_EXACT))


def write_table(table: Table, added: pd.DataFrame, prefix: str, out: str) -> None:
    """Write a table with columns added, the way it was read, or as the ending of ``out`` requires; ``-`` is stdout.

    Added columns, whose names get the prefix, may lack rows of the table. Text that a spreadsheet would take for a
    formula gets a leading apostrophe, except in Parquet. Text files are UTF-8, with the byte-order mark that
    spreadsheets need unless the table was UTF-8 without one.
    """
    empty = dict.fromkeys(added.select_dtypes(exclude="number"), "")
    added = added.reindex(table.frame.index).fillna(empty).add_prefix(prefix)
    taken = [name for name in added if name in table.frame]
    if taken:
        raise ValueError(f"{table.name} already has {listed(taken)}; rename or delete such columns.")
    kind = kind_of(out)
    old = table.frame
    form = table.format
    if kind in ("parquet", "excel"):
        if form.separator is not None:
            old = old.apply(lambda cells: _as_numbers(cells, form))
        write_bytes(out, _packed(pd.concat([old, added], axis=1), kind))
        return
    for name in added.select_dtypes("float"):
        added[name] = added[name].map(lambda value: form.written(repr(value).removesuffix(".0")), na_action="ignore")
    separator = form.separator or ","
    if kind == "tabs":
        separator = "\t"
    frame = _without_formulas(pd.concat([old, added], axis=1))
    text = frame.to_csv(index=False, sep=separator, lineterminator="\n")
    if out == "-":
        sys.stdout.write(text)
        return
    encoding = "utf-8-sig"
    if form.encoding == "utf-8":
        encoding = "utf-8"
    write_bytes(out, text.encode(encoding))


def _as_numbers(cells: pd.Series, form: Format) -> pd.Series:
    """Turn a column of text into numbers, if all cells are numbers or empty."""
    found = [math.nan if cell in MISSING_MARKS else form.number(cell) for cell in cells]
    if None in found:
        return cells
    return pd.Series(found, cells.index, dtype=np.float64)


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
    if len(cell) < 2 or cell[0] not in "=+-@\t\r\n" or cell == "-inf" or LIKE_NUMBER.fullmatch(cell):
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
