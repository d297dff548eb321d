"""Run the benchmarks: ``python -m benchmarks [--quick] [--only NAME] [--out FOLDER]``."""

from __future__ import annotations

import argparse
import time
from pathlib import Path

from benchmarks import fitting, full_conformal, likelihood, machine, memory, prediction
from benchmarks.results import tally, write

BENCHMARKS = {
    "likelihood": likelihood,
    "fitting": fitting,
    "prediction": prediction,
    "full_conformal": full_conformal,
    "memory": memory,
}


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks", description="Speed and memory, side by side with peers."
    )
    parser.add_argument("--quick", action="store_true", help="a short sample, to see that all runs")
    parser.add_argument("--only", choices=BENCHMARKS, action="append", help="one benchmark (may be repeated)")
    parser.add_argument(
        "--out", type=Path, help="folder for speed.md (default: benchmarks/results for a full run; others only print)"
    )
    return parser.parse_args()


def main() -> None:
    options = arguments()
    full = not (options.quick or options.only)
    out = options.out or (Path("benchmarks/results") if full else None)
    start = time.perf_counter()
    description = machine.describe()
    print("\n".join(description))
    sections = []
    for name in options.only or BENCHMARKS:
        print(f"\n{name} ...", flush=True)
        others = machine.Others()
        section = BENCHMARKS[name].run(options.quick)
        section.remark(f"Other processes took {others.share():.0%} of the machine meanwhile.")
        sections.append(section)
    print(f"\n{tally(sections)}, in {time.perf_counter() - start:.0f} s.")
    if out:
        chosen = [f"--only {name}" for name in options.only or ()]
        command = " ".join(["python -m benchmarks", *["--quick"] * options.quick, *chosen])
        print(f"Written: {write(out, sections, description, command, full)}")


if __name__ == "__main__":
    main()
