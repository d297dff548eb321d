"""What is measured of a method: coverage, width, interval score, seconds, memory; and the cost of our model by size."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import numpy as np

from benchmarks.memory import megabytes
from benchmarks.problems import LEVELS
from benchmarks.scale.data import Split, smooth
from conformal_gp import ConformalGPRegressor, metrics
from conformal_gp.threads import map_threads

N_INDUCING, N_TEST, BLOCK_ROWS = 512, 1000, 8192


def assess(fit: Callable[[], Any], rows: Split) -> dict[str, Any]:
    """Fit a model and predict intervals at all levels; everything that is measured."""
    start = time.perf_counter()
    model = fit()
    fitted = time.perf_counter()
    intervals = model.predict_interval(rows.X_test, LEVELS)
    done = time.perf_counter()
    error = model.predict(rows.X_test) - rows.y_test
    return {
        "coverage": metrics.coverage(rows.y_test, intervals).tolist(),
        "width": metrics.mean_width(intervals).tolist(),
        "score": metrics.interval_score(rows.y_test, intervals, LEVELS).tolist(),
        "rmse": float(np.sqrt(np.mean(error**2))),
        "fit": fitted - start,
        "predict": done - fitted,
        "memory": megabytes("VmHWM") / 1000,
    }


def by_size(n_rows: int) -> dict[str, Any]:
    """Our model on so many smooth rows, compared with the bare matrix product that intervals for all test rows need."""
    rows = smooth(n_rows, N_TEST)
    model = ConformalGPRegressor(low_rank=N_INDUCING, random_state=0)
    found = assess(lambda: model.fit(rows.X, rows.y), rows)
    return {"rows": n_rows, **found, "product": product_seconds(n_rows, model.inducing_.shape[0] + 9)}


def product_seconds(n_rows: int, n_features: int) -> float:
    """Seconds of G'w for all rows and test rows, by as many threads, nothing kept."""
    rng = np.random.default_rng(0)
    G, W = rng.standard_normal((BLOCK_ROWS, n_features)), rng.standard_normal((n_features, N_TEST))
    some = min(-(-n_rows // BLOCK_ROWS), 32)  # enough to time; the rest is more of the same
    list(map_threads(lambda _: (G @ W)[0, 0], range(2), None))
    start = time.perf_counter()
    list(map_threads(lambda _: (G @ W)[0, 0], range(some), None))
    return (time.perf_counter() - start) * n_rows / (some * BLOCK_ROWS)
