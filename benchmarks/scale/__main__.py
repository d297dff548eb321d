"""Run the benchmark of many rows: ``python -m benchmarks.scale [--only NAME] [--again]``.

Each part runs in a process of its own, and what it measured is kept: an interrupted run goes on where it stopped.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import time
from pathlib import Path

from benchmarks import machine
from benchmarks.scale import page
from benchmarks.scale.parts import PARTS

DOCS = Path("docs")


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.scale", description="Cost and quality with many rows.")
    parser.add_argument(
        "--only", action="append", metavar="NAME", help=f"parts whose names begin so: {', '.join(PARTS)}"
    )
    parser.add_argument("--again", action="store_true", help="measure anew what is measured already")
    parser.add_argument("--results", type=Path, default=Path("build/scale"), help="folder of results (build/scale)")
    options = parser.parse_args()
    for name in options.only or ():
        if not any(part.startswith(name) for part in PARTS):
            parser.error(f"--only: no part begins with {name!r}; there are {', '.join(PARTS)}")
    return options


def run(name: str) -> dict:
    """What a part measured; None where a package is missing, or the part failed."""
    others, start = machine.Others(), time.perf_counter()
    done = subprocess.run([sys.executable, "-m", "benchmarks.scale.parts", name], stdout=subprocess.PIPE, text=True)
    print(f"  {name}: {time.perf_counter() - start:.0f} s", flush=True)
    if done.returncode != 0:
        return {}
    return json.loads(done.stdout.splitlines()[-1]) | {"others": others.share()}


def main() -> None:
    options = arguments()
    options.results.mkdir(parents=True, exist_ok=True)
    print("\n".join(machine.describe()), flush=True)
    wanted = [name for name in PARTS if not options.only or name.startswith(tuple(options.only))]
    for name in wanted:
        path = options.results / f"{name}.json"
        if options.again or not path.exists():
            result = run(name)
            if result:
                path.write_text(json.dumps(result), encoding="utf-8")
    found = {name: options.results / f"{name}.json" for name in PARTS}
    results = {name: json.loads(path.read_text(encoding="utf-8")) for name, path in found.items() if path.exists()}
    page.write(DOCS, results, machine.describe())
    print(f"Written: {DOCS / 'scale.md'}, with {len(results)} of {len(PARTS)} parts.")


if __name__ == "__main__":
    main()
