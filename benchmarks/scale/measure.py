"""What is measured of a method: coverage, width, interval score, seconds, memory."""

from __future__ import annotations

import re
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.problems import LEVELS
from benchmarks.scale.data import Split
from conformal_gp import metrics


def peak_gigabytes() -> float:
    """Most memory that this process has held so far."""
    status = Path("/proc/self/status")
    if not status.exists():
        return float("nan")
    return int(re.search(r"VmHWM:\s+(\d+) kB", status.read_text()).group(1)) / 1e6


def quality(intervals: np.ndarray, y: np.ndarray) -> dict[str, Any]:
    """Coverage, mean width and mean interval score at each level."""
    return {
        "coverage": np.atleast_1d(metrics.coverage(y, intervals)).tolist(),
        "width": np.atleast_1d(metrics.mean_width(intervals)).tolist(),
        "score": np.atleast_1d(metrics.interval_score(y, intervals, LEVELS)).tolist(),
    }


def assess(fit: Callable[[], Any], rows: Split) -> dict[str, Any]:
    """Fit a model and predict intervals at all levels; everything that is measured."""
    start = time.perf_counter()
    model = fit()
    fitted = time.perf_counter()
    intervals = model.predict_interval(rows.X_test, LEVELS)
    done = time.perf_counter()
    error = model.predict(rows.X_test) - rows.y_test
    return {
        **quality(intervals, rows.y_test),
        "rmse": float(np.sqrt(np.mean(error**2))),
        "fit": fitted - start,
        "predict": done - fitted,
        "memory": peak_gigabytes(),
    }
