"""A fit beside a process that holds one core."""

from __future__ import annotations

import subprocess
import sys
import time
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from sklearn.base import RegressorMixin
from sklearn.exceptions import ConvergenceWarning

from benchmarks.problems import KERNELS, START_NOISE, Rows, draw, ours, scikit_learn
from benchmarks.results import Row, Section
from benchmarks.timing import Timing, once

CHILD = Path(__file__).parent / "children" / "spin.py"
AT_MOST = 3.0


@contextmanager
def busy_core() -> Iterator[None]:
    """Another process spins inside the ``with`` block."""
    child = subprocess.Popen([sys.executable, str(CHILD)])
    try:
        time.sleep(0.3)
        yield
    finally:
        child.kill()
        child.wait()


def run(quick: bool) -> Section:
    section = Section(
        "A busy neighbour",
        "`fit` alone and while another process spins on one core, default `n_jobs`. On two cores fair shares alone "
        "make it up to twice as slow; BLAS threads that spin for one another can make it a hundred times slower.",
    )
    kernel = next(iter(KERNELS.values()))
    small, large = draw(500), draw(1000)
    turns = 2 if quick else 5
    none, three = (ours(kernel, START_NOISE, n_restarts=n) for n in (0, 3))
    section.add(
        slow_down("l = 500, 0 restarts", none, small, turns, AT_MOST),
        slow_down("l = 500, 3 restarts", three, small, turns, AT_MOST),
    )
    if not quick:
        section.add(
            slow_down("l = 1000, 0 restarts", none, large, 3),
            slow_down("scikit-learn, l = 500, 0 restarts", scikit_learn(kernel, START_NOISE), small, 3),
        )
    return section


def slow_down(what: str, model: RegressorMixin, rows: Rows, turns: int, at_most: float | None = None) -> Row:
    """Time of a fit beside a busy process, as a multiple of its time alone."""

    def fit() -> None:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            model.fit(*rows)

    fit()
    alone, beside = [], []
    for _ in range(turns):
        alone.append(once(fit))
        with busy_core():
            beside.append(once(fit))
    shared, quiet = Timing(tuple(beside)), Timing(tuple(alone))
    ratio = shared.median / quiet.median
    return Row(
        what,
        f"beside: {shared}",
        f"alone: {quiet}",
        f"beside/alone {ratio:.2f}",
        "-" if at_most is None else f"at most {at_most:g}",
        None if at_most is None else ratio <= at_most,
    )
