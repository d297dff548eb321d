"""Memory for many test rows."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

from benchmarks.results import Row, Section

CHILD = Path(__file__).parent / "children" / "many_rows.py"
AT_MOST = 500.0


def run(quick: bool) -> Section:
    section = Section(
        "Memory for many test rows",
        "Peak resident memory of a process above what it held with the fitted model; test rows and result included.",
    )
    if not Path("/proc/self/status").exists():
        section.remark("Left out: peak memory is read from /proc/self/status, which this system does not have.")
        return section
    l, m = 1000, 10_000 if quick else 100_000
    command = [sys.executable, str(CHILD), str(l), str(m)]
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
