"""Run the benchmark of many rows: ``python -m benchmarks.scale [--only NAME] [--again]``.

Each part runs in a process of its own, and what it measured is kept: an interrupted run goes on where it stopped.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import time
import warnings
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

from benchmarks import machine
from benchmarks.scale import page
from benchmarks.scale.measure import by_size
from benchmarks.scale.rivals import RIVALS, SIZES, compare

PAGE = Path("benchmarks/results/scale.md")
PARTS: dict[str, Callable[[], dict[str, Any]]] = {
    **{f"rows-{n_rows}": partial(by_size, n_rows) for n_rows in (10**4, 10**5, 10**6)},
    **{f"{data}-{number}": partial(compare, data, rival) for data in SIZES for number, rival in enumerate(RIVALS)},
}


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.scale", description="Cost and quality with many rows.")
    parser.add_argument("--only", default="", metavar="NAME", help=f"parts that begin so: {', '.join(PARTS)}")
    parser.add_argument("--again", action="store_true", help="measure anew what is measured already")
    parser.add_argument("--results", type=Path, default=Path("build/scale"), help="folder of results (build/scale)")
    parser.add_argument("--part", choices=PARTS, help="measure this part in this process, and print it")
    return parser.parse_args()


def run(name: str) -> dict[str, Any]:
    """What a part measured; nothing where a package is missing, or the part failed."""
    others, start = machine.Others(), time.perf_counter()
    command = [sys.executable, "-m", "benchmarks.scale", "--part", name]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True)
    print(f"  {name}: {time.perf_counter() - start:.0f} s", flush=True)
    return json.loads(done.stdout.splitlines()[-1]) | {"others": others.share()} if done.returncode == 0 else {}


def main() -> None:
    options = arguments()
    if options.part:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            print(json.dumps(PARTS[options.part]()))
        return
    options.results.mkdir(parents=True, exist_ok=True)
    print("\n".join(machine.describe()), flush=True)
    results = {}
    for name in PARTS:
        path = options.results / f"{name}.json"
        if name.startswith(options.only) and (options.again or not path.exists()) and (result := run(name)):
            path.write_text(json.dumps(result), encoding="utf-8")
        if path.exists():
            results[name] = json.loads(path.read_text(encoding="utf-8"))
    page.write(PAGE, results, machine.describe())
    print(f"Written: {PAGE}, with {len(results)} of {len(PARTS)} parts.")


if __name__ == "__main__":
    main()
