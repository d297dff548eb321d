"""From nothing to the first interval."""

from __future__ import annotations

import json
import statistics
import subprocess
import sys
import time
from pathlib import Path

from benchmarks.results import Row, Section
from benchmarks.timing import Timing, duration

CHILD = Path(__file__).parent / "children" / "small_fit.py"
AT_MOST = 3.0
AT_MOST_SECOND = 0.05  # compilation takes a second or more


def run(quick: bool) -> Section:
    section = Section(
        "Start-up",
        "A fresh Python process that imports the package, fits l = 100 rows with 5 inputs at the default settings and "
        "predicts intervals. It has run once before, so compiled code is in the cache.",
    )
    _start()
    whole, children = zip(*(_start() for _ in range(2 if quick else 7)), strict=True)
    first, second = (Timing(tuple(child["calls"][i] for child in children)) for i in (0, 1))
    later = statistics.median(seconds for child in children for seconds in child["calls"][2:])
    section.add(
        Row(
            "Whole process: imports, fit, first intervals and nine more",
            str(Timing(whole)),
            target=f"at most {AT_MOST:g} s",
            reached=statistics.median(whole) <= AT_MOST,
        ),
        Row("of which the fit", str(Timing(tuple(child["fit"] for child in children)))),
        Row("First `predict_interval`", str(first)),
        Row(
            f"Second `predict_interval` (later ones: {duration(later)})",
            str(second),
            target=f"at most {duration(AT_MOST_SECOND)}",
            reached=second.median <= AT_MOST_SECOND,
        ),
    )
    return section


def _start() -> tuple[float, dict]:
    start = time.perf_counter()
    done = subprocess.run([sys.executable, str(CHILD)], check=True, capture_output=True, text=True)
    return time.perf_counter() - start, json.loads(done.stdout)
