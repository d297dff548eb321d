"""Work in threads: in order, errors passed on, BLAS given back as it was, and Ctrl-C ends it soon."""

import inspect
import os
import signal
import subprocess
import sys
import threading
import time

import pytest
from threadpoolctl import threadpool_limits

from conformal_gp import threads
from conformal_gp.threads import (
    ROWS_FOR_BLAS_THREADS,
    StoppedError,
    _pool_size,
    blas_threads,
    map_threads,
    one_blas_thread,
    stopping_point,
)


@pytest.mark.parametrize("n_jobs", [None, 1, 2, 7, -1])
def test_results_come_in_order(n_jobs):
    assert list(map_threads(lambda i: i * i, range(20), n_jobs)) == [i * i for i in range(20)]
    assert list(map_threads(lambda i: i, [], n_jobs)) == []


@pytest.mark.parametrize("n_jobs", [1, 3])
def test_each_piece_of_work_has_one_blas_thread(n_jobs):
    before = blas_threads()
    assert set(map_threads(lambda _: _pool_size(), range(6), n_jobs)) == {1}
    assert blas_threads() == before


@pytest.mark.parametrize("n_jobs", [1, 3])
def test_errors_are_passed_on_and_limits_lifted(n_jobs):
    before = blas_threads()

    def fail(i):
        raise KeyError(i)

    with pytest.raises(KeyError):
        list(map_threads(fail, range(3), n_jobs))
    assert blas_threads() == before


def test_only_small_matrices_are_held_to_one_blas_thread():
    before = blas_threads()
    with one_blas_thread(ROWS_FOR_BLAS_THREADS):
        assert blas_threads() == before
    with one_blas_thread(ROWS_FOR_BLAS_THREADS - 1):
        assert _pool_size() == 1
        assert blas_threads() == before  # what others may use, once they ask
    assert blas_threads() == before


def test_callers_in_several_threads_share_the_limit_and_give_it_back():
    before = blas_threads()
    first_in, second_in, first_out = threading.Event(), threading.Event(), threading.Event()
    inside = []

    def first():
        with one_blas_thread():
            first_in.set()
            second_in.wait(10)
        first_out.set()

    def second():
        first_in.wait(10)
        with one_blas_thread():
            second_in.set()
            first_out.wait(10)
            inside.append(_pool_size())

    workers = [threading.Thread(target=function) for function in (first, second)]
    try:
        for worker in workers:
            worker.start()
        for worker in workers:
            worker.join()
        assert inside == [1]  # the first to leave does not lift the limit of the second
        assert blas_threads() == before
    finally:
        threadpool_limits(before, user_api="blas")  # whatever happened, leave no trace for other tests


def test_limits_are_lifted_whoever_stops():
    """Results are complete before a consumer sees one: a consumer that fails, or stops, holds no limit."""
    before = blas_threads()

    def consume():
        for result in map_threads(lambda i: i, range(6), 2):
            if result == 2:
                raise KeyError(result)

    with pytest.raises(KeyError) as caught:
        consume()
    assert caught.value is not None  # its traceback still refers to the frame
    assert _pool_size() == before
    iterator = iter(map_threads(lambda i: i, range(6), 2))
    next(iterator)
    assert _pool_size() == before
    del iterator


def test_nested_calls():
    before = _pool_size()

    def outer(i):
        return sum(map_threads(lambda j: i * j, range(4), 2)) + 0 * _pool_size()

    assert list(map_threads(outer, range(4), 2)) == [0, 6, 12, 18]
    assert _pool_size() == before


def test_overlapping_calls_from_many_threads_leave_the_number_as_it_was():
    before = _pool_size()
    sizes = []

    def work(_):
        for _ in range(20):
            with one_blas_thread():
                sizes.append(_pool_size())

    workers = [threading.Thread(target=work, args=(i,)) for i in range(4)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert set(sizes) == {1}
    assert _pool_size() == before


def test_only_what_threadpoolctl_documents_is_used():
    assert "OpenBLASController" not in inspect.getsource(threads)


# Interrupts

ROWS = """
import signal
import numpy as np
from conformal_gp import ConformalGPRegressor
signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell may have started the tests in the background
rng = np.random.default_rng(0)
X = rng.uniform(-2, 2, (1500, 5))
y = np.sin(2 * X[:, 0]) + X[:, 1] + 0.1 * rng.standard_normal(1500)
"""
WORK = {
    "fit": "ConformalGPRegressor(tuning='train').fit(X, y)",
    "predict": "model.predict_interval(np.tile(X, (99, 1)))",
}


@pytest.mark.skipif(not hasattr(os, "fork"), reason="signals of POSIX")
@pytest.mark.parametrize("work", WORK)
def test_ctrl_c_ends_it(work):
    setup = f"{ROWS}\nmodel = ConformalGPRegressor('se', tuning='fixed', noise_variance=0.1).fit(X, y)"
    code = f"{setup}\nprint('go', flush=True)\nwhile True:\n    {WORK[work]}\n"
    command = [sys.executable, "-W", "ignore", "-c", code]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stdout.readline() == "go\n"
        time.sleep(0.5)
        start = time.monotonic()
        process.send_signal(signal.SIGINT)
        try:
            error = process.communicate(timeout=60)[1]
        finally:
            process.kill()
    assert time.monotonic() - start < 10.0
    assert process.returncode == -signal.SIGINT, error
    assert error.splitlines()[-1] == "KeyboardInterrupt"


@pytest.mark.parametrize("n_items", [2, 9])
def test_a_failure_stops_the_others_at_their_next_stopping_point(n_items):
    begun, stopped = threading.Event(), []

    def work(item):
        if item == 0:
            begun.wait(10)
            raise KeyError(item)
        begun.set()
        for _ in range(10_000):
            time.sleep(0.001)
            try:
                stopping_point()
            except StoppedError:
                stopped.append(item)
                raise
        return item

    start = time.monotonic()
    with pytest.raises(KeyError):
        list(map_threads(work, range(n_items), 2))
    assert time.monotonic() - start < 5
    assert 1 in stopped
    assert len(stopped) <= 2


def test_a_stopping_point_is_nothing_to_a_thread_that_is_waited_for():
    stopping_point()
    assert list(map_threads(lambda item: stopping_point() or item, range(5), 3)) == list(range(5))
