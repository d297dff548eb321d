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
import numpy as np
from conformal_gp import ConformalGPRegressor, SparseConformalGPRegressor
rng = np.random.default_rng(0)
X = rng.uniform(-2, 2, (1500, 5))
y = np.sin(2 * X[:, 0]) + X[:, 1] + 0.1 * rng.standard_normal(1500)
"""
WORK = {
    "holdout": ("", "ConformalGPRegressor(tuning='holdout').fit(X, y)"),
    "train": ("", "ConformalGPRegressor(tuning='train').fit(X, y)"),
    "augmented": ("", "ConformalGPRegressor(tuning='augmented').fit(X, y)"),
    "sparse": ("", "SparseConformalGPRegressor(design=1000, n_inducing=64).fit(np.tile(X, (9, 1)), np.tile(y, 9))"),
    "predict_interval": (
        "model = ConformalGPRegressor('se', tuning='fixed', noise_variance=0.1).fit(X, y)",
        "model.predict_interval(np.tile(X, (99, 1)))",
    ),
    "predict_interval, augmented": (
        "model = ConformalGPRegressor(length_scales='one').fit(X[:200], y[:200])",
        "model.predict_interval(np.tile(X, (99, 1)))",
    ),
    "import": (None, "import conformal_gp.cli.app, conformal_gp.persistence, conformal_gp.plotting"),
}
# It took 0.6 to 2.4 s on a machine that was busy with other tests; the rest is for busier ones.
MOST_SECONDS = 5.0


@pytest.mark.skipif(not hasattr(os, "fork"), reason="signals of POSIX")
@pytest.mark.parametrize("name", WORK)
def test_ctrl_c_ends_it(name):
    setup, work = WORK[name]
    setup = "" if setup is None else ROWS + setup
    # a shell may have started the tests in the background, where interrupts are ignored
    listen = "import signal\nsignal.signal(signal.SIGINT, signal.default_int_handler)"
    code = f"{listen}\n{setup}\nprint('go', flush=True)\nwhile True:\n    {work}\n    import time; time.sleep(0.001)\n"
    environment = os.environ | {"OPENBLAS_NUM_THREADS": "2", "OMP_NUM_THREADS": "2"}
    with subprocess.Popen(
        [sys.executable, "-W", "ignore", "-c", code],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=environment,
    ) as process:
        assert process.stdout.readline() == "go\n"
        time.sleep(0.2 if name == "import" else 1.0)
        start = time.monotonic()
        process.send_signal(signal.SIGINT)
        try:
            error = process.communicate(timeout=60)[1]
        finally:
            process.kill()
        seconds = time.monotonic() - start
    assert "KeyboardInterrupt" in error
    if "_numba_unpickle" not in error:  # Numba makes a SystemError of an interrupt that comes while it loads code
        assert process.returncode == -signal.SIGINT, error
        assert error.splitlines()[-1] == "KeyboardInterrupt"
    assert seconds < MOST_SECONDS


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
