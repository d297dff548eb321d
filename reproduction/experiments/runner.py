"""Run independent tasks, write each result as soon as it is known, and resume an interrupted run."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from joblib import Parallel, delayed, effective_n_jobs, parallel_config

Advance = Callable[[str], None]


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
    with raw.open("a") as file, _workers(cluster), _progress(len(todo)) as advance:
        parallel = Parallel(jobs if cluster is None else -1, return_as="generator_unordered", batch_size=1)
        for i, result in enumerate(parallel(delayed(_named)(function, *task) for task in todo)):
            file.write("\n" * (i == 0) + json.dumps(result) + "\n")
            file.flush()
            advance(result["task"])
    by_name = {result["task"]: result for result in finished(raw)}
    return [by_name[name] for name, _ in tasks]


def _named(function: Callable[..., dict], name: str, arguments: tuple) -> dict:
    return {"task": name, **function(*arguments)}


@contextmanager
def _workers(cluster: str | None) -> Iterator[None]:
    """Choose the workers that joblib uses inside the ``with`` block."""
    if cluster is None:
        yield
        return
    try:
        from distributed import Client
    except ImportError as error:
        raise ImportError("cluster needs Dask: pip install 'conformal-gp[dask]'") from error
    with Client(cluster) as client, parallel_config(backend="dask", client=client):
        yield


@contextmanager
def _progress(total: int) -> Iterator[Advance]:
    """A progress bar with the time left, or plain lines without rich or a terminal; yields ``advance``."""
    try:
        from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn
    except ImportError:
        yield _plain_lines(total)
        return
    if not sys.stdout.isatty():
        yield _plain_lines(total)
        return
    columns = BarColumn(), MofNCompleteColumn(), TimeRemainingColumn(), TextColumn("left  {task.description}")
    # Tasks differ in cost, so speed is estimated over minutes.
    with Progress(*columns, speed_estimate_period=600) as progress:
        bar = progress.add_task("", total=total)
        yield lambda name: progress.update(bar, advance=1, description=name)


def _plain_lines(total: int) -> Advance:
    """Progress as twenty lines in all."""
    start = time.monotonic()
    done = 0

    def advance(name: str) -> None:
        nonlocal done
        done += 1
        if done * 20 // total > (done - 1) * 20 // total:
            left = (time.monotonic() - start) / done * (total - done)
            print(f"{done}/{total}  {left / 60:.1f} minutes left  {name}", flush=True)

    return advance
