"""One method on one split of one table."""

from __future__ import annotations

import time
import warnings

import numpy as np
from numpy.typing import NDArray
from threadpoolctl import threadpool_limits

from benchmarks.real.encoding import encode, split
from benchmarks.real.ours import OURS
from benchmarks.real.peers import PEERS, Array
from benchmarks.real.tables import Table
from conformal_gp.metrics import coverage, interval_score, mean_width

LEVELS = (0.8, 0.9, 0.95)
METHODS = OURS | PEERS


def run(table: Table, number: int, name: str) -> dict:
    """Coverage, also in fifths of the prediction and in categories, width, interval score and processor seconds.

    The prediction is the middle of the interval of the lowest level, which all methods have. A method that fails has
    the message of its error instead.
    """
    rows = split(table, number)
    found = {"table": table.key, "split": number, "method": name, "rows": rows.y.size}
    start = time.process_time()
    try:
        with threadpool_limits(1), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            ends = METHODS[name].intervals(rows.X, rows.y, rows.X_test, LEVELS, number)
    except Exception as error:
        return found | {"error": f"{type(error).__name__}: {error}"}
    seconds = time.process_time() - start
    with np.errstate(invalid="ignore"):
        score = interval_score(rows.y_test, ends, LEVELS)
    return found | {
        "seconds": seconds,
        "covered": coverage(rows.y_test, ends).tolist(),
        "width": mean_width(ends).tolist(),
        "score": score.tolist(),
        "fifths": _in_fifths(rows.y_test, ends),
        "categories": _in_categories(table, rows.X_test, rows.y_test, ends),
    }


def _in_fifths(y: Array, ends: Array) -> list[list[list[int]]]:
    """For each fifth of the test rows by prediction: labels covered at each level, and labels."""
    order = np.argsort(ends[:, :, 0].mean(axis=1), kind="stable")
    inside = _inside(y, ends)
    return [[inside[part].sum(axis=0).tolist(), part.size] for part in np.array_split(order, 5)]


def _in_categories(table: Table, X: Array, y: Array, ends: Array) -> list[list[list[int]]]:
    """For each category, in an order that all splits share: labels covered at each level, and labels.

    Categories are the two values of every column that has two: zero means "another category" in a column of zeros and
    ones for one of several.
    """
    inputs = encode(table)[0].to_numpy(float)
    inside = _inside(y, ends)
    found = []
    for column, values in enumerate(map(np.unique, inputs.T)):
        for value in values if values.size == 2 else ():
            part = X[:, column] == value
            found.append([inside[part].sum(axis=0).tolist(), int(part.sum())])
    return found


def _inside(y: Array, ends: Array) -> NDArray[np.bool_]:
    return (y[:, None] >= ends[:, 0]) & (y[:, None] <= ends[:, 1])
