"""One method on one split of one table."""

from __future__ import annotations

import time
import warnings

import numpy as np
from threadpoolctl import threadpool_limits

from benchmarks.real.encoding import split
from benchmarks.real.ours import OURS
from benchmarks.real.peers import PEERS, Array
from benchmarks.real.tables import Table
from conformal_gp.metrics import coverage, interval_score, mean_width

LEVELS = (0.8, 0.9, 0.95)
METHODS = OURS | PEERS


def run(table: Table, number: int, name: str) -> dict:
    """Coverage, coverage in fifths of the prediction, width, interval score and processor seconds.

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
    }


def _in_fifths(y: Array, ends: Array) -> list[list[list[int]]]:
    """For each fifth of the test rows by prediction: labels covered at each level, and labels."""
    order = np.argsort(ends[:, :, 0].mean(axis=1), kind="stable")
    inside = (y[:, None] >= ends[:, 0]) & (y[:, None] <= ends[:, 1])
    return [[inside[part].sum(axis=0).tolist(), part.size] for part in np.array_split(order, 5)]
