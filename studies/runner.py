"""Run many independent tasks, write each result as soon as it is there, and go on where a run was interrupted."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from joblib import Parallel, delayed


def finished(raw: Path) -> list[dict]:
    """Results written so far; a line that an interruption cut short does not count."""
    results = []
    for line in raw.read_text().splitlines() if raw.exists() else []:
        try:
            results.append(json.loads(line))
        except json.JSONDecodeError:
            continue
    return results


def run(raw: Path, tasks: Sequence[tuple[str, tuple]], function: Callable[..., dict], jobs: int) -> list[dict]:
    """Results of all tasks.

    Parameters
    ----------
    raw : Path
        File of results, a JSON object a line.
    tasks : sequence of (name, arguments)
        Names are unique; a task whose name is in ``raw`` already is not run again.
    function : callable
        Gives the result of a task as a dict from its arguments.
    jobs : int
        Processes. Results do not depend on it.
    """
    raw.parent.mkdir(parents=True, exist_ok=True)
    done = {result["task"] for result in finished(raw)}
    todo = [(name, arguments) for name, arguments in tasks if name not in done]
    print(f"{len(todo)} of {len(tasks)} tasks to do, {jobs} at a time -> {raw}", flush=True)
    start = time.monotonic()
    with raw.open("a") as file, Parallel(jobs, return_as="generator_unordered", batch_size=1) as parallel:
        results = parallel(delayed(_named)(function, name, arguments) for name, arguments in todo)
        for i, result in enumerate(results, start=1):
            file.write("\n" * (i == 1) + json.dumps(result) + "\n")
            file.flush()
            if i % 20 == 0 or i == len(todo):
                left = (time.monotonic() - start) / i * (len(todo) - i)
                print(f"\r{i}/{len(todo)}  {left / 60:.1f} minutes left  {result['task']:40}", end="", flush=True)
    print(flush=True)
    wanted = {name for name, _ in tasks}
    return [result for result in finished(raw) if result["task"] in wanted]


def _named(function: Callable[..., dict], name: str, arguments: tuple) -> dict:
    return {"task": name, **function(*arguments)}
