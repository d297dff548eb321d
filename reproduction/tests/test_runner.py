"""Tasks that are run once, in any number of processes, with interruptions."""

import json
import os

import pytest

from reproduction.experiments.runner import finished, run


def square(number: int) -> dict:
    return {"square": number**2, "process": os.getpid()}


def fail_at_three(number: int) -> dict:
    if number == 3:
        raise RuntimeError("interrupted")
    return square(number)


def tasks(n: int) -> list[tuple[str, tuple]]:
    return [(f"task {i}", (i,)) for i in range(n)]


@pytest.mark.parametrize("jobs", [1, 2])
def test_results_come_in_the_order_of_the_tasks(tmp_path, jobs):
    results = run(tmp_path / "raw.jsonl", tasks(12), square, jobs)
    assert [result["square"] for result in results] == [i**2 for i in range(12)]
    assert len({result["process"] for result in results}) <= jobs


def test_a_run_goes_on_where_it_was_interrupted(tmp_path):
    raw = tmp_path / "new folder" / "raw.jsonl"
    with pytest.raises(RuntimeError, match="interrupted"):
        run(raw, tasks(6), fail_at_three, 1)
    assert {result["task"] for result in finished(raw)} == {"task 0", "task 1", "task 2"}
    raw.write_text(raw.read_text() + '{"task": "task 3", "squa')  # the machine went down while it wrote
    before = [line for line in raw.read_text().splitlines() if line][:3]
    results = run(raw, tasks(6), square, 1)
    assert [result["square"] for result in results] == [0, 1, 4, 9, 16, 25]
    assert [line for line in raw.read_text().splitlines() if line][:3] == before
    assert len(finished(raw)) == 6


def test_nothing_is_run_twice(tmp_path):
    raw = tmp_path / "raw.jsonl"
    raw.write_text(json.dumps({"task": "task 1", "square": -1}) + "\n")
    assert [result["square"] for result in run(raw, tasks(3), square, 1)] == [0, -1, 4]
    assert [result["square"] for result in run(raw, tasks(3), fail_at_three, 1)] == [0, -1, 4]


def test_progress_is_told(tmp_path, capsys):
    run(tmp_path / "raw.jsonl", tasks(3), square, 1)
    said = capsys.readouterr().out
    assert "3 of 3 tasks to do" in said
    assert "3/3  0.0 minutes left" in said


def test_infinite_numbers_survive_the_file(tmp_path):
    (result,) = run(tmp_path / "raw.jsonl", [("task", (float("inf"),))], square, 1)
    assert result["square"] == float("inf")


def test_a_dask_cluster_gives_the_same_results(tmp_path):
    distributed = pytest.importorskip("distributed", reason="the extra dask is not installed")
    with distributed.LocalCluster(
        n_workers=1, threads_per_worker=2, processes=False, dashboard_address=None, worker_dashboard_address=None
    ) as cluster:
        results = run(tmp_path / "raw.jsonl", tasks(8), square, 1, cluster=cluster.scheduler_address)
    assert [result["square"] for result in results] == [i**2 for i in range(8)]
