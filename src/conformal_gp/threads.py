"""Threads: over independent pieces of work first, inside BLAS only where a matrix is large.

Idle BLAS threads spin. On small matrices, beside a busy process, that can cost a factor of a hundred. Threads over
restarts or over blocks of test rows, each with one BLAS thread, avoid this.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import cache
from itertools import pairwise
from threading import Event, Lock, local
from typing import Any, TypeVar

import numpy as np
import scipy.linalg
import threadpoolctl
from joblib import effective_n_jobs

Item = TypeVar("Item")
Result = TypeVar("Result")

# Below this many rows a second BLAS thread gains little and may lose much (measured: benchmarks/).
ROWS_FOR_BLAS_THREADS = 800


@cache
def _pools(api: str) -> threadpoolctl.ThreadpoolController:
    """Return the libraries with threads of a kind, "blas" or "openmp"."""
    # NumPy and SciPy may bring a BLAS each; load both before looking for them.
    np.dot(np.eye(2), np.eye(2))
    scipy.linalg.cholesky(np.eye(2))
    return threadpoolctl.ThreadpoolController().select(user_api=api)


class _Limit:
    """One thread of BLAS from the first of some calls to the last.

    The number of BLAS threads belongs to the process, and threadpoolctl lets only the thread that set it change it.
    Calls may nest and overlap in time, in several threads. So a thread of its own sets the limit, and lifts it.
    """

    def __init__(self) -> None:
        self.begin()

    def begin(self) -> None:
        """Forget all calls."""
        self.callers = 0
        self.threads_before = 1
        self._lock = Lock()
        self._keeper = ThreadPoolExecutor(1)  # its thread starts with the first call, and waits
        self._limiter: Any = None

    def __enter__(self) -> None:
        with self._lock:
            if self.callers == 0:
                self.threads_before = _pool_size()
                self._limiter = self._keeper.submit(_pools("blas").limit, limits=1).result()
                self._keeper.submit(self._limiter.__enter__).result()
            self.callers += 1

    def __exit__(self, *error: object) -> None:
        with self._lock:
            self.callers -= 1
            if self.callers == 0:
                self._keeper.submit(self._limiter.__exit__, None, None, None).result()


_limit = _Limit()
if hasattr(os, "register_at_fork"):  # a forked process has only the thread that forked
    os.register_at_fork(after_in_child=_limit.begin)


def _pool_size() -> int:
    return max((pool["num_threads"] for pool in _pools("blas").info()), default=1)


def blas_threads() -> int:
    """Number of threads that BLAS may use, apart from limits that this module has set for the moment."""
    return _limit.threads_before if _limit.callers else _pool_size()


@contextmanager
def one_blas_thread(rows: int = 0) -> Iterator[None]:
    """Hold BLAS and OpenMP to one thread inside the ``with`` block, unless the matrices have many rows."""
    if rows >= ROWS_FOR_BLAS_THREADS:
        yield
        return
    with _limit, _pools("openmp").limit(limits=1):  # OpenMP's number belongs to each thread
        yield


def n_threads(n_jobs: int | None) -> int:
    """Return the number of threads that ``n_jobs`` asks for."""
    return blas_threads() if n_jobs is None else effective_n_jobs(n_jobs)


def map_threads(function: Callable[[Item], Result], items: Iterable[Item], n_jobs: int | None) -> list[Result]:
    """Apply ``function`` to each item in threads with one BLAS thread each; results are in the order of the items.

    ``n_jobs=None`` takes as many threads as BLAS would, so that the usual limits (``OMP_NUM_THREADS``, joblib's
    workers) hold here too. Results do not depend on ``n_jobs``, to the last bit.

    Once an item has failed, or the caller is interrupted, items that wait are dropped and those that run end at their
    next :func:`stopping_point`.
    """
    work = list(items)
    workers = min(len(work), n_threads(n_jobs))
    with one_blas_thread():
        if workers <= 1:
            return [function(item) for item in work]
        stop = Event()
        stops = (*getattr(_working, "stops", ()), stop)

        def apply(item: Item) -> Result:
            _working.stops = stops
            stopping_point()
            return function(item)

        pool = ThreadPoolExecutor(workers)
        try:
            if workers < len(work):
                return list(pool.map(apply, work))
            # an item each: the calling thread need not wait for the others to start
            others = pool.map(apply, work[1:])
            first = function(work[0])
            return [first, *others]
        except BaseException:
            stop.set()
            raise
        finally:
            pool.shutdown(cancel_futures=True)


def slices(n_rows: int, block_rows: int) -> list[slice]:
    """Blocks of nearly equal size, of at most ``block_rows``.

    >>> slices(5, 2)
    [slice(0, 2, None), slice(2, 3, None), slice(3, 5, None)]
    """
    edges = np.linspace(0, n_rows, -(-n_rows // block_rows) + 1).round().astype(int).tolist()
    return [slice(start, stop) for start, stop in pairwise(edges)]


class StoppedError(Exception):
    """Raised in a thread whose caller waits no longer."""


_working = local()


def stopping_point() -> None:
    """End the item that this thread works on if nobody waits for it any more; to be called in long computations."""
    if any(stop.is_set() for stop in getattr(_working, "stops", ())):
        raise StoppedError
