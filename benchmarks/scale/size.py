"""Cost against the number of rows, in memory and out of core, beside the bare matrix product."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np

from benchmarks.problems import LEVELS, draw
from benchmarks.scale.data import Split, fill_smooth, smooth
from benchmarks.scale.measure import assess
from conformal_gp import SparseConformalGPRegressor, sparse
from conformal_gp.conformal.levels import rank, read_level
from conformal_gp.threads import map_threads

N_TEST = 1000
BLOCK_ROWS = 8192


def in_memory(n_rows: int) -> dict[str, Any]:
    """Fit and predict from arrays, then the bare product of the same size."""
    return _measured(smooth(n_rows, N_TEST), n_rows)


def out_of_core(n_rows: int) -> dict[str, Any]:
    """The same from a memory map, drawn block by block."""
    with tempfile.TemporaryDirectory() as folder:
        X = np.memmap(Path(folder) / "X", dtype=float, mode="w+", shape=(n_rows, 8))
        y = np.empty(n_rows)
        fill_smooth(X, y)
        X.flush()
        readable = np.memmap(Path(folder) / "X", dtype=float, mode="r", shape=(n_rows, 8))
        return _measured(Split(readable, y, *draw(N_TEST, seed=1)), n_rows)


def _measured(rows: Split, n_rows: int) -> dict[str, Any]:
    models = []

    def fit() -> SparseConformalGPRegressor:
        models.append(SparseConformalGPRegressor(n_inducing=512, random_state=0, verbose=True).fit(rows.X, rows.y))
        return models[-1]

    with timed(sparse, "plan") as design:
        result = assess(fit, rows)
    result["design"] = sum(design)
    result["looked_at"] = looked_at(models[0], rows)
    result["product"] = product_seconds(n_rows, models[0].inducing_.shape[0] + 9, N_TEST)
    start = time.perf_counter()
    models[0].predict_p(rows.X_test, rows.y_test)
    result["p_values"] = time.perf_counter() - start
    return {"rows": n_rows, **result}


@contextmanager
def timed(module: ModuleType, *names: str) -> Iterator[list[float]]:
    """Seconds of each call of some functions of a module."""
    seconds: list[float] = []
    originals = {name: getattr(module, name) for name in names}

    def watched(function: Callable[..., Any]) -> Callable[..., Any]:
        def call(*arguments: Any) -> Any:
            start = time.perf_counter()
            result = function(*arguments)
            seconds.append(time.perf_counter() - start)
            return result

        return call

    for name, function in originals.items():
        setattr(module, name, watched(function))
    try:
        yield seconds
    finally:
        for name, function in originals.items():
            setattr(module, name, function)


def looked_at(model: SparseConformalGPRegressor, rows: Split) -> float:
    """Training rows that decide a test row's interval, on average over test rows, summed over levels."""
    predictor = model._predictor
    new = predictor._posterior.new(rows.X_test)
    spans = [
        predictor._ranking.for_rank(rank(read_level(level), predictor.n_ranked), new.variance, new.size)
        for level in LEVELS
    ]
    return float(np.mean(sum(span.stop - span.start for span in spans)) + predictor._ranking.high_leverage.size)


def product_seconds(n_rows: int, n_features: int, n_test: int) -> float:
    """Seconds of G'w for all rows and test rows, by as many threads, nothing kept."""
    rng = np.random.default_rng(0)
    G = rng.standard_normal((BLOCK_ROWS, n_features))
    W = rng.standard_normal((n_features, n_test))
    n_blocks = -(-n_rows // BLOCK_ROWS)
    some = min(n_blocks, 32)  # enough to time; the rest is more of the same
    list(map_threads(lambda _: (G @ W)[0, 0], range(2), None))
    start = time.perf_counter()
    list(map_threads(lambda _: (G @ W)[0, 0], range(some), None))
    return (time.perf_counter() - start) * n_rows / (some * BLOCK_ROWS)
