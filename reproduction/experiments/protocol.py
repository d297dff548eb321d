"""The paper's protocol: which methods run on which folds, and what is recorded."""

from __future__ import annotations

import time
import warnings
from collections.abc import Sequence

import numpy as np

from conformal_gp.threads import one_blas_thread
from reproduction.experiments.folds import OUTLIERS, folds_in_run, make_fold
from reproduction.experiments.methods import LEVELS, UNITS, Found, units_for
from reproduction.experiments.paper import PAPER_LEVELS

TABLES = {
    "table1": ("artificial_well_specified",),
    "table2": ("artificial_outliers",),
    "table3": ("boston", "auto_mpg"),
    "table4": ("cpu", "servo"),
}
"""The paper's tables and their data sets."""
IN_TABLES = [LEVELS.index(level / 100) for level in PAPER_LEVELS]
"""Positions of the tables' levels in ``LEVELS``."""
RUNS = 10
"""Number of runs in the paper."""


def tasks(data_sets: Sequence[str], *, runs: int, seed: int, most_folds: int | None = None) -> list[tuple[str, tuple]]:
    """Names and arguments of all calls of :func:`one_fold` that some data sets need, at most so many folds a run."""
    return [
        (f"{seed}/{data_set}/{unit}/{run}/{fold}", (data_set, unit, seed, run, fold))
        for data_set in data_sets
        for unit in units_for(data_set)
        for run in range(runs)
        for fold in range(folds_in_run(data_set))[:most_folds]
    ]


def one_fold(data_set: str, unit: str, seed: int, run: int, fold: int) -> dict:
    """Run one unit on one fold: for each row of a table, the sum of widths and the number of misses at each level."""
    rows = make_fold(data_set, seed, run, fold)
    start = time.thread_time()
    with one_blas_thread(), warnings.catch_warnings():
        # Warnings of optima on a bound and of too few rows for a level are expected here.
        warnings.simplefilter("ignore")
        found = [_kept(each, rows.y_test, data_set) for each in UNITS[unit](rows)]
    return {
        "data_set": data_set,
        "unit": unit,
        "run": run,
        "fold": fold,
        "n": rows.y_test.size,
        "seconds": round(time.thread_time() - start, 3),
        "found": found,
    }


def _kept(found: Found, y: np.ndarray, data_set: str) -> dict:
    lower, upper = found.intervals[:, 0], found.intervals[:, 1]
    width, missed = upper - lower, (y[:, None] < lower) | (y[:, None] > upper)
    kept = {"row": list(found.row), "width": width.sum(axis=0).tolist(), "missed": missed.sum(axis=0).tolist()}
    if found.log_likelihood is not None:
        kept["log_likelihood"] = found.log_likelihood
    if data_set not in OUTLIERS and found.row[:2] == ("GPR-CP", "SE"):  # the paper draws these
        kept["widths"] = [[float(f"{w:.5g}") for w in level] for level in width[:, IN_TABLES].T]
    return kept
