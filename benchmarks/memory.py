"""Memory for many test rows; ``python -m benchmarks.memory L M`` is the process that is measured."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

import numpy as np

from benchmarks.problems import LEVELS, N_INPUTS, draw, ours
from benchmarks.results import Row, Section

AT_MOST = 500.0
STATUS = Path("/proc/self/status")


def run(quick: bool) -> Section:
    section = Section(
        "Memory for many test rows",
        "Peak resident memory of a process above what it held with the fitted model; test rows and result included.",
    )
    if not STATUS.exists():
        section.remark("Left out: peak memory is read from /proc/self/status, which this system does not have.")
        return section
    l, m = 1000, 10_000 if quick else 100_000
    command = [sys.executable, "-m", "benchmarks.memory", str(l), str(m)]
    found = json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
    section.add(
        Row(
            f"l = {l}, {m:,} test rows, three levels",
            f"{found['growth']:.0f} MB above {found['fitted']:.0f} MB",
            target=f"at most {AT_MOST:g} MB",
            reached=found["growth"] <= AT_MOST,
        )
    )
    return section


def megabytes(entry: str) -> float:
    """An entry of this process's status; NaN where there is none."""
    found = re.search(rf"{entry}:\s+(\d+) kB", STATUS.read_text()) if STATUS.exists() else None
    return int(found.group(1)) / 1000 if found else float("nan")


def measure(l: int, m: int) -> None:
    """Print the memory of this process with a fitted model, and how far it grows for its intervals."""
    model = ours(tuning="fixed").fit(*draw(l))
    model.predict_interval(draw(10, seed=1).X, LEVELS)
    fitted = megabytes("VmRSS")
    model.predict_interval(np.random.default_rng(0).standard_normal((m, N_INPUTS)), LEVELS)
    # The peak over the life of the process, fit included: if anything, too high.
    print(json.dumps({"fitted": fitted, "growth": megabytes("VmHWM") - fitted}))


if __name__ == "__main__":
    measure(*map(int, sys.argv[1:]))
