"""Threads: over independent pieces of work first, inside BLAS only where a matrix is large.

BLAS threads that wait spin. On small matrices, beside a busy process, that can cost a factor of a hundred; threads
over restarts or over blocks of test rows, each with one BLAS thread, do not suffer so.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import cache
from typing import TypeVar

import numpy as np
import scipy.linalg
from joblib import effective_n_jobs
from threadpoolctl import ThreadpoolController

Item = TypeVar("Item")
Result = TypeVar("Result")

# Below this many rows a second BLAS thread gains little and may lose much (measured: benchmarks/).
ROWS_FOR_BLAS_THREADS = 800


@cache
def _controller() -> ThreadpoolController:
    # NumPy and SciPy may bring a BLAS each; load both before looking for them.
    np.dot(np.eye(2), np.eye(2))
    scipy.linalg.cholesky(np.eye(2))
    return ThreadpoolController()


def blas_threads() -> int:
    """Number of threads that BLAS may use now."""
    pools = _controller().select(user_api="blas").info()
    return max((pool["num_threads"] for pool in pools), default=1)


@contextmanager
def one_blas_thread(rows: int = 0) -> Iterator[None]:
    """Hold BLAS to one thread inside the ``with`` block, unless the matrices have many rows."""
    if rows >= ROWS_FOR_BLAS_THREADS:
        yield
        return
    with _controller().limit(limits=1, user_api="blas"):
        yield


def map_threads(function: Callable[[Item], Result], items: Iterable[Item], n_jobs: int | None) -> Iterator[Result]:
    """Apply ``function`` to each item in threads with one BLAS thread each; results come in order.

    ``n_jobs=None`` takes as many threads as BLAS would, so that the usual limits (``OMP_NUM_THREADS``, joblib's
    workers) hold here too. Results do not depend on ``n_jobs``, to the last bit.
    """
    work = list(items)
    workers = min(len(work), blas_threads() if n_jobs is None else effective_n_jobs(n_jobs))
    with one_blas_thread():
        if workers <= 1:
            yield from map(function, work)
            return
        with ThreadPoolExecutor(workers) as pool:
            yield from pool.map(function, work)
