"""A small fit and predictions, as a user's script would do them; prints the seconds of each."""

import json
import time

import numpy as np

from conformal_gp import ConformalGPRegressor

rng = np.random.default_rng(0)
X = rng.standard_normal((100, 5))
y = np.sin(X[:, 0]) + 0.1 * rng.standard_normal(100)


def seconds(function, *args):
    start = time.perf_counter()
    function(*args)
    return time.perf_counter() - start


model = ConformalGPRegressor(random_state=0)
fit = seconds(model.fit, X, y)
calls = [seconds(model.predict_interval, X, 0.9) for _ in range(10)]
print(json.dumps({"fit": fit, "calls": calls}))
