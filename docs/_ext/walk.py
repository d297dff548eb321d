"""A table of the files whose functions run from ``fit`` to an interval with nothing set, for several kinds of rows.

``python docs/_ext/walk.py`` brings ``docs/architecture.md`` up to date, as ``tests/test_architecture.py`` checks.
"""

from __future__ import annotations

import ast
import sys
import threading
import warnings
from functools import cache
from pathlib import Path
from types import FrameType
from typing import Any

import numpy as np
from import_graph import PACKAGE, PAGE

import conformal_gp
from conformal_gp import ConformalGPRegressor

IN_USE = Path(conformal_gp.__file__).parent  # the checkout, or an installed wheel
START, END = "<!-- walk: start -->", "<!-- walk: end -->"

SIZES = (30, 100, 300, 5000)
SIGNED, POSITIVE, CATEGORIES = "any sign", "positive", "with categories"
WALKS = [*((size, kind) for size in SIZES for kind in (SIGNED, POSITIVE)), (100, CATEGORIES)]
"""Training rows and what they are like."""


def _rows(size: int, kind: str) -> tuple[Any, np.ndarray]:
    """Rows of two inputs; the noise grows with the first."""
    rng = np.random.default_rng(0)
    X = rng.uniform(size=(size, 2))
    y = np.sin(4.0 * X[:, 0]) + X[:, 1] + 0.1 * (1.0 + X[:, 0]) * rng.standard_normal(size)
    if kind == POSITIVE:
        y = np.exp(y)
    if kind != CATEGORIES:
        return X, y
    import pandas as pd

    colour = pd.Categorical.from_codes(np.arange(size) % 3, ["red", "green", "blue"])
    return pd.DataFrame({"x": X[:, 0], "colour": colour}), y


@cache
def files_used(size: int, kind: str) -> list[str]:
    """Files of the package in the order in which ``fit`` and ``predict_interval`` first call their functions."""
    X, y = _rows(size, kind)
    np.random.seed(0)  # noqa: NPY002 (a model whose random_state is not set draws from this)
    seen: dict[str, None] = {}

    def note(frame: FrameType, event: str, argument: object) -> None:
        path = frame.f_code.co_filename
        if event == "call" and path.startswith(str(IN_USE)):
            seen.setdefault(Path(path).relative_to(IN_USE).as_posix())

    before = sys.getprofile()
    threading.setprofile(note)
    sys.setprofile(note)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            ConformalGPRegressor().fit(X, y).predict_interval(X[:3])
    finally:
        sys.setprofile(before)
        threading.setprofile(None)
    return list(seen)


def table() -> str:
    """One line for each file, in the order in which they are first used with few and with many rows."""
    used = {walk: files_used(*walk) for walk in WALKS}
    few = [files for (size, _), files in used.items() if size <= 500]
    many = [files for (size, _), files in used.items() if size > 500]
    columns = [{file for files in walks for file in files} for walks in (few, many)]
    lines = ["| file | what it is | up to 500 rows | more |", "|---|---|:-:|:-:|"]
    for file in dict.fromkeys(file for files in used.values() for file in files):
        docstring = ast.get_docstring(ast.parse((PACKAGE / file).read_text())) or ""
        marks = " | ".join("•" if file in column else "" for column in columns)
        lines.append(f"| `{file}` | {docstring.splitlines()[0]} | {marks} |")
    counts = " | ".join(str(max(map(len, walks))) for walks in (few, many))
    return "\n".join([*lines, f"| **files, at most** | | {counts} |"])


def page(text: str) -> str:
    """The page with its table up to date."""
    before, rest = text.split(START)
    _, after = rest.split(END)
    return f"{before}{START}\n\n{table()}\n\n{END}{after}"


if __name__ == "__main__":
    PAGE.write_text(page(PAGE.read_text()))
