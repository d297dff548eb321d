"""Our regressors, by the options that are given to them; the default has none.

Up to 2,000 training rows the exact process, beyond that the low-rank model. The command changes over at 5,000 rows; the
smaller number keeps the cost of the whole table down.
"""

from __future__ import annotations

from typing import Any

from benchmarks.real.peers import Array, Method
from conformal_gp import ConformalGPRegressor, SparseConformalGPRegressor

MOST_EXACT_ROWS = 2000
DEFAULT = "conformal-gp"
WAYS: dict[str, dict[str, Any]] = {
    DEFAULT: {},
    "conformal-gp, warp": {"warp": "auto"},
}


def _method(options: dict[str, Any]) -> Method:
    def intervals(X: Array, y: Array, X_new: Array, levels: tuple[float, ...], seed: int) -> Array:
        kind = ConformalGPRegressor if y.size <= MOST_EXACT_ROWS else SparseConformalGPRegressor
        return kind(random_state=seed, n_jobs=1, **options).fit(X, y).predict_interval(X_new, levels)

    return Method(intervals)


OURS = {name: _method(options) for name, options in WAYS.items()}
