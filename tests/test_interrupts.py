"""Ctrl-C in a script or notebook: whatever it comes upon ends soon, threads included."""

import os
import signal
import subprocess
import sys
import threading
import time

import pytest

from conformal_gp.threads import StoppedError, map_threads, stopping_point

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
