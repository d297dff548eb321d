"""How much memory the first steps take beyond what imports do."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

import conformal_gp

resource = pytest.importorskip("resource", reason="peaks of memory as POSIX counts them")

PEAK = """
import resource
def peak(): return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
import numpy as np
from sklearn.model_selection import train_test_split
from conformal_gp import ConformalGPRegressor
from conformal_gp.datasets import load_auto_mpg
before = peak()
X, y = load_auto_mpg(return_X_y=True)
X_train, X_test, y_train, y_test = train_test_split(X, y, test_size={test_size}, random_state=0)
model = ConformalGPRegressor(random_state=0).fit(X_train, y_train)
model.predict_interval(X_test, confidence_level=0.9)
print(peak() - before)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="counted in kilobytes on Linux")
@pytest.mark.parametrize(("n_rows", "megabytes"), [pytest.param(300, 30, marks=pytest.mark.slow), (45, 15)])
def test_memory_beyond_imports(n_rows, megabytes):
    environment = {**os.environ, "PYTHONPATH": str(Path(conformal_gp.__file__).parents[1])}
    command = [sys.executable, "-W", "ignore", "-c", PEAK.format(test_size=392 - n_rows)]
    found = subprocess.run(command, capture_output=True, text=True, env=environment, check=True)
    assert float(found.stdout) < megabytes
