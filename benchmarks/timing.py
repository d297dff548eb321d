"""Timing of several functions in turns, so that a slow spell of the machine falls on all of them."""

from __future__ import annotations

import math
import statistics
import time
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass

# BLAS and OpenMP threads spin for some tens of milliseconds after their last work. They are left to go to sleep before
# the next function has its turn.
PAUSE = 0.1


@dataclass(frozen=True)
class Timing:
    """Seconds per call, one entry a turn."""

    seconds: tuple[float, ...]

    @property
    def median(self) -> float:
        """Median over turns."""
        return statistics.median(self.seconds)

    def __str__(self) -> str:
        low, high = min(self.seconds), max(self.seconds)
        return f"{duration(self.median)} ({duration(low)} to {duration(high)})"


def once(function: Callable[[], object]) -> float:
    """Seconds that one call takes."""
    start = time.perf_counter()
    function()
    return time.perf_counter() - start


def in_turns(
    functions: Mapping[str, Callable[[], object]],
    *,
    turns: int,
    cold: Collection[str] = (),
    seconds_a_turn: float = 0.2,
) -> dict[str, Timing]:
    """Time each function ``turns`` times, one after the other, the first of them changing.

    A fast function is called several times in its turn, to fill ``seconds_a_turn``. Functions named in ``cold`` take
    so long that they are not called before, and once a turn.
    """
    calls = dict.fromkeys(functions, 1)
    for name, function in functions.items():
        if name not in cold:
            function()
            calls[name] = max(1, math.ceil(seconds_a_turn / once(function)))
    seconds: dict[str, list[float]] = {name: [] for name in functions}
    names = list(functions)
    for turn in range(turns):
        first = turn % len(names)
        for name in names[first:] + names[:first]:
            time.sleep(PAUSE)
            n, function = calls[name], functions[name]

            def repeat(n: int = n, function: Callable[[], object] = function) -> None:
                for _ in range(n):
                    function()

            seconds[name].append(once(repeat) / n)
    return {name: Timing(tuple(values)) for name, values in seconds.items()}


def duration(seconds: float) -> str:
    """Three digits and a unit: 0.01234 is 12.3 ms."""
    if seconds >= 0.9995:
        return f"{seconds:.3g} s" if seconds < 999.5 else f"{seconds:.0f} s"
    if seconds >= 0.9995e-3:
        return f"{1e3 * seconds:.3g} ms"
    return f"{1e6 * seconds:.3g} µs"
