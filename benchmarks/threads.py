"""The number of threads, the same for everything that is timed side by side."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager

from threadpoolctl import threadpool_limits


def cores() -> int:
    """Number of cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def thread_counts() -> list[int]:
    """One thread, and one for each core."""
    return sorted({1, cores()})


@contextmanager
def threads(n: int) -> Iterator[None]:
    """Hold BLAS, OpenMP and PyTorch to ``n`` threads inside the ``with`` block."""
    torch = sys.modules.get("torch")
    before = torch.get_num_threads() if torch else 0
    with threadpool_limits(limits=n):
        if torch:
            torch.set_num_threads(n)
        try:
            yield
        finally:
            if torch:
                torch.set_num_threads(before)


def called(n: int) -> str:
    """One thread, two threads..."""
    return "1 thread" if n == 1 else f"{n} threads"
