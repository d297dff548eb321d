"""How often a difficulty breaks a region into pieces or opens it: ``python -m benchmarks.real.pieces``."""

from __future__ import annotations

import warnings

import numpy as np

from benchmarks.real.encoding import encode, split
from benchmarks.real.tables import TABLES
from conformal_gp import ConformalGPRegressor

MOST_ROWS = 10_000
LEVELS = (0.9, 0.95)


def main() -> None:
    total = several = infinite = tables = 0
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for table in TABLES:
            if len(encode(table)[1]) > MOST_ROWS:
                continue
            rows = split(table, 0)
            model = ConformalGPRegressor(random_state=0, y_bounds=None).fit(rows.X, rows.y)
            if model.difficulty_ is None:
                continue
            tables += 1
            for level in LEVELS:
                regions = model.predict_set(rows.X_test, level)
                total += len(regions)
                several += sum(len(region) > 1 for region in regions)
                infinite += sum(bool(np.isinf(region).any()) for region in regions)
    print(f"{tables} tables with a difficulty, {total} regions: {several} in several pieces, {infinite} infinite.")


if __name__ == "__main__":
    main()
