"""Files whose functions run when a model is fitted and predicts, for each way of tuning, as a table for a page.

``python docs/_ext/walk.py`` brings ``docs/architecture.md`` up to date, as ``tests/test_architecture.py`` checks.
"""

from __future__ import annotations

import ast
import sys
import threading
import warnings
from collections.abc import Callable
from functools import cache
from pathlib import Path
from types import FrameType
from typing import Any

import numpy as np
from import_graph import PACKAGE, PAGE

import conformal_gp
from conformal_gp import ConformalGPRegressor, SparseConformalGPRegressor

IN_USE = Path(conformal_gp.__file__).parent  # the checkout, or an installed wheel
START, END = "<!-- walk: start -->", "<!-- walk: end -->"

WAYS: dict[str, Callable[[], Any]] = {
    "integrated": lambda: ConformalGPRegressor(tuning="integrated"),
    "holdout": lambda: ConformalGPRegressor(tuning="holdout", random_state=0),
    "train": lambda: ConformalGPRegressor(tuning="train", random_state=0),
    "fixed": lambda: ConformalGPRegressor(tuning="fixed", noise_variance=0.1),
    "low rank": lambda: SparseConformalGPRegressor(n_inducing=10, random_state=0),
}


def _rows() -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    X = rng.uniform(size=(40, 2))
    return X, X[:, 0] + 0.1 * rng.standard_normal(40)


@cache
def files_used(way: str) -> list[str]:
    """Files of the package in the order in which ``fit`` and ``predict_interval`` first call their functions."""
    X, y = _rows()

    def use() -> None:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            WAYS[way]().fit(X, y).predict_interval(X[:3])

    seen: dict[str, None] = {}

    def note(frame: FrameType, event: str, argument: object) -> None:
        path = Path(frame.f_code.co_filename)
        if event == "call" and path.is_relative_to(IN_USE):
            seen.setdefault(path.relative_to(IN_USE).as_posix())

    use()  # imports what is imported at first use
    before = sys.getprofile()
    threading.setprofile(note)
    sys.setprofile(note)
    try:
        use()
    finally:
        sys.setprofile(before)
        threading.setprofile(None)
    return list(seen)


def table() -> str:
    """One line for each file, in the order of the default way, then of the others."""
    used = {way: files_used(way) for way in WAYS}
    order = list(dict.fromkeys(file for files in used.values() for file in files))
    lines = [f"| file | what it is | {' | '.join(used)} |", "|---|---|" + ":-:|" * len(used)]
    for file in order:
        docstring = ast.get_docstring(ast.parse((PACKAGE / file).read_text())) or ""
        marks = " | ".join("•" if file in files else "" for files in used.values())
        lines.append(f"| `{file}` | {docstring.splitlines()[0]} | {marks} |")
    counts = " | ".join(str(len(files)) for files in used.values())
    return "\n".join([*lines, f"| **files** | | {counts} |"])


def page(text: str) -> str:
    """The page with its table up to date."""
    before, rest = text.split(START)
    _, after = rest.split(END)
    return f"{before}{START}\n\n{table()}\n\n{END}{after}"


if __name__ == "__main__":
    PAGE.write_text(page(PAGE.read_text()))
