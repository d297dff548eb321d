"""Peak memory of intervals for many test rows, in a process of its own: python many_rows.py l m."""

import json
import re
import sys
from pathlib import Path

import numpy as np
from sklearn.gaussian_process.kernels import RBF, ConstantKernel

from conformal_gp import ConformalGPRegressor


def megabytes(entry: str) -> float:
    status = Path("/proc/self/status").read_text()
    return int(re.search(rf"{entry}:\s+(\d+) kB", status).group(1)) / 1000


l, m = map(int, sys.argv[1:])
rng = np.random.default_rng(0)
X = rng.standard_normal((l, 8))
model = ConformalGPRegressor(ConstantKernel(1.0) * RBF(3.5), noise_variance=0.04, tuning="fixed")
model.fit(X, np.sin(X[:, 0]) + 0.2 * rng.standard_normal(l))
model.predict_interval(X[:10], [0.9, 0.95, 0.99])  # compiled code is loaded
fitted = megabytes("VmRSS")
intervals = model.predict_interval(rng.standard_normal((m, 8)), [0.9, 0.95, 0.99])
# The peak over the life of the process, fit included: if anything, too high.
print(json.dumps({"fitted": fitted, "growth": megabytes("VmHWM") - fitted, "rows": len(intervals)}))
