"""The machine, the versions and the number of threads that figures belong to."""

from __future__ import annotations

import os
import platform
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from threadpoolctl import threadpool_info, threadpool_limits

import conformal_gp

PACKAGES = ("numpy", "scipy", "scikit-learn", "torch", "gpytorch", "gpyconform")
STAT = Path("/proc/stat")


def describe() -> list[str]:
    """Cores, processor, BLAS and versions, a line each."""
    return [
        f"{cores()} cores, {processor()}, {platform.system()}",
        f"BLAS: {blas()}",
        f"Python {platform.python_version()}, conformal-gp {conformal_gp.__version__}, "
        + ", ".join(f"{package} {installed_version(package)}" for package in PACKAGES),
    ]


def cores() -> int:
    """Number of cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def thread_counts() -> dict[int, str]:
    """One thread, and one for each core, and what they are called."""
    return {n: "1 thread" if n == 1 else f"{n} threads" for n in sorted({1, cores()})}


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


def processor() -> str:
    """Model name of the processor."""
    cpuinfo = Path("/proc/cpuinfo")
    lines = cpuinfo.read_text().splitlines() if cpuinfo.exists() else []
    names = [line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.processor() or platform.machine()


class Others:
    """What other processes take of the machine from now on: it says how far to trust a time."""

    def __init__(self) -> None:
        self._start = self._now()

    def share(self) -> float:
        """Their share of all cores since the start, from 0 to 1; NaN where it cannot be read."""
        wall, busy, ours = (now - start for now, start in zip(self._now(), self._start, strict=True))
        return max(0.0, busy - ours) / (wall * (os.cpu_count() or 1))

    @staticmethod
    def _now() -> tuple[float, float, float]:
        """Seconds by the clock, seconds that all cores were busy, seconds of this process and its children."""
        busy = float("nan")
        if STAT.exists():
            user, nice, system, _idle, _waiting, irq, softirq, steal = map(int, STAT.read_text().split()[1:9])
            busy = (user + nice + system + irq + softirq + steal) / os.sysconf("SC_CLK_TCK")
        return time.perf_counter(), busy, sum(os.times()[:4])


def blas() -> str:
    """The BLAS libraries in this process, without where they are."""
    pools = [pool for pool in threadpool_info() if pool["user_api"] == "blas"]
    names = {f"{pool['internal_api']} {pool['version']} ({pool.get('architecture', '?')})" for pool in pools}
    return ", ".join(sorted(names)) or "unknown"


def installed_version(package: str) -> str:
    """Version of a package, or that it is missing."""
    try:
        return version(package)
    except PackageNotFoundError:
        return "not installed"
