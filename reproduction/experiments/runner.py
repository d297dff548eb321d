"""Run independent tasks, write each result as soon as it is known, and resume an interrupted run."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from pathlib import Path

from joblib import Parallel, delayed, effective_n_jobs, parallel_config


def finished(raw: Path) -> list[dict]:
    """Results written so far, without a last line that was cut short."""
    results = []
    for line in raw.read_text().splitlines() if raw.exists() else []:
        try:
            results.append(json.loads(line))
        except json.JSONDecodeError:
            continue
    return results


def run(
    raw: Path,
    tasks: Sequence[tuple[str, tuple]],
    function: Callable[..., dict],
    jobs: int,
    cluster: str | None = None,
) -> list[dict]:
    """Results of all tasks, in the order of the tasks.

    Parameters
    ----------
    raw : Path
        File of results, one JSON object per line.
    tasks : sequence of (name, arguments)
        Names are unique. A task whose name is already in ``raw`` is not run again.
    function : callable
        Returns the result of a task as a dict, given its arguments.
    jobs : int
        Number of processes; -1 is one per core. Results do not depend on it.
    cluster : str or None, default=None
        Address of a Dask scheduler whose workers run the tasks instead of local processes.
    """
    raw.parent.mkdir(parents=True, exist_ok=True)
    done = {result["task"] for result in finished(raw)}
    todo = [(name, arguments) for name, arguments in tasks if name not in done]
    where = f"{effective_n_jobs(jobs)} at a time" if cluster is None else f"on {cluster}"
    print(f"{len(todo)} of {len(tasks)} tasks to do, {where} -> {raw}", flush=True)
    with raw.open("a") as file, ExitStack() as stack:
        if cluster is not None:
            from distributed import Client

            stack.enter_context(parallel_config(backend="dask", client=stack.enter_context(Client(cluster))))
        parallel = Parallel(jobs if cluster is None else -1, return_as="generator_unordered", batch_size=1)
        start = time.monotonic()
        for count, result in enumerate(parallel(delayed(_named)(function, *task) for task in todo), 1):
            file.write("\n" * (count == 1) + json.dumps(result) + "\n")
            file.flush()
            if count * 20 // len(todo) > (count - 1) * 20 // len(todo):  # twenty lines in all
                left = (time.monotonic() - start) / count * (len(todo) - count)
                print(f"{count}/{len(todo)}  {left / 60:.1f} minutes left  {result['task']}", flush=True)
    by_name = {result["task"]: result for result in finished(raw)}
    return [by_name[name] for name, _ in tasks]


def _named(function: Callable[..., dict], name: str, arguments: tuple) -> dict:
    return {"task": name, **function(*arguments)}
