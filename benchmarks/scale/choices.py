"""The choices inside the low-rank model, measured: inducing inputs, hyperparameters, approximation."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.gaussian_process.kernels import ConstantKernel, Matern

from benchmarks.scale.data import DATA, Split
from benchmarks.scale.measure import assess
from conformal_gp import SparseConformalGPRegressor
from conformal_gp.gp.inputs import Scaling
from conformal_gp.tuning import low_rank

N_ROWS, N_TEST, N_INDUCING = 20_000, 3000, 256
N_DESIGN = 4000
EACH_INPUT = ConstantKernel(10.0, (1e-3, 1e6)) * Matern(np.full(8, 3.0), (1e-2, 1e3), nu=2.5)


def choices(name: str) -> dict[str, Any]:
    """Every choice on one data set, all else equal; inputs scaled by the design rows beforehand."""
    rows = DATA[name](N_ROWS, N_TEST)
    design = np.sort(np.random.default_rng(0).permutation(N_ROWS)[:N_DESIGN])
    scaling = Scaling.standard(rows.X[design])
    rows = Split(scaling.transform(rows.X), rows.y, scaling.transform(rows.X_test), rows.y_test)
    common = {"design": design, "n_inducing": N_INDUCING, "scale_inputs": False, "n_restarts": 0, "random_state": 0}
    found: dict[str, Any] = {}
    models: dict[int, SparseConformalGPRegressor] = {}
    for n_learning in (1000, 2000):
        with _learning_rows(n_learning):
            models[n_learning] = SparseConformalGPRegressor(**common)
            found[f"exact likelihood of {n_learning} rows"] = assess(
                lambda model=models[n_learning]: model.fit(rows.X, rows.y), rows
            )
    start = models[1000]
    found["a length scale for each input"] = assess(
        lambda: SparseConformalGPRegressor(EACH_INPUT, **common).fit(rows.X, rows.y), rows
    )

    def fixed(kernel: Any, noise: float, **options: Any) -> dict[str, Any]:
        model = SparseConformalGPRegressor(kernel, noise_variance=noise, tuning="fixed", **common | options)
        return assess(lambda: model.fit(rows.X, rows.y), rows)

    try:
        from benchmarks.scale.bound import learn
    except ImportError:  # no PyTorch
        learn = None
    for objective in ("variational bound", "FITC likelihood") if learn else ():
        kernel, noise, seconds = learn(objective, start.kernel_, start.noise_variance_, rows, design, N_INDUCING)
        found[f"{objective} of {N_DESIGN} rows"] = fixed(kernel, noise) | {"fit": seconds}
    for inducing in ("greedy", "random"):
        found[f"{inducing} inducing inputs"] = fixed(start.kernel_, start.noise_variance_, inducing=inducing)
    found["DTC"] = fixed(start.kernel_, start.noise_variance_, approximation="dtc")
    return found


class _learning_rows:  # noqa: N801 (reads as a clause)
    """Another number of design rows to learn from."""

    def __init__(self, n_rows: int):
        self._n_rows = n_rows

    def __enter__(self) -> None:
        self._before = low_rank.LEARNING_ROWS
        low_rank.LEARNING_ROWS = self._n_rows

    def __exit__(self, *error: object) -> None:
        low_rank.LEARNING_ROWS = self._before
