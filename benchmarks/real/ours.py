"""Our regressor, by the options that are given to it; the default has none."""

from __future__ import annotations

from typing import Any

from benchmarks.real.peers import Array, Method
from conformal_gp import ConformalGPRegressor

DEFAULT = "conformal-gp"
PLAIN = "conformal-gp, one width"
OPTIONS: dict[str, dict[str, Any]] = {
    DEFAULT: {},
    PLAIN: {"target_transform": None, "difficulty": None, "y_bounds": None},
}


def _method(options: dict[str, Any]) -> Method:
    def intervals(X: Array, y: Array, X_new: Array, levels: tuple[float, ...], seed: int) -> Array:
        model = ConformalGPRegressor(random_state=seed, n_jobs=1, **options)
        return model.fit(X, y).predict_interval(X_new, levels)

    return Method(intervals)


OURS = {name: _method(options) for name, options in OPTIONS.items()}
