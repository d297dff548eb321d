"""45,000 diamond prices: ``python -m benchmarks.real.diamonds [--draws N]`` prints interval scores on 5,000 others.

The low-rank regressor with ``warp="auto"`` and nothing else chosen, beside conformalised quantile regression with
LightGBM, each on the same rows.
"""

from __future__ import annotations

import argparse
import time
import warnings

import numpy as np
from threadpoolctl import threadpool_limits

from benchmarks.real.encoding import encode
from benchmarks.real.peers import PEERS
from benchmarks.real.tables import TABLES
from conformal_gp import SparseConformalGPRegressor
from conformal_gp.metrics import coverage, interval_score, mean_width

N_TRAINING, N_TEST, LEVEL = 45_000, 5_000, 0.9
PEER = "CQR, LightGBM"


def main() -> None:
    """Print coverage, width and score of each draw."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.real.diamonds", description=__doc__.splitlines()[0])
    parser.add_argument("--draws", type=int, default=2)
    X, y = (np.asarray(part, dtype=float) for part in encode(next(t for t in TABLES if t.key == "diamonds")))
    for seed in range(1, parser.parse_args().draws + 1):
        order = np.random.default_rng(seed).permutation(y.size)
        rows, test = order[:N_TRAINING], order[N_TRAINING : N_TRAINING + N_TEST]
        for name in ("conformal-gp, warp", PEER):
            start = time.process_time()
            with threadpool_limits(1), warnings.catch_warnings():
                warnings.simplefilter("ignore")
                if name == PEER:
                    ends = PEERS[PEER].intervals(X[rows], y[rows], X[test], [LEVEL], seed)[:, :, 0]
                else:
                    model = SparseConformalGPRegressor(warp="auto", random_state=seed).fit(X[rows], y[rows])
                    ends = model.predict_interval(X[test], LEVEL)
            score, covered = interval_score(y[test], ends, LEVEL), coverage(y[test], ends)
            seconds = time.process_time() - start
            width = mean_width(ends)
            print(f"draw {seed}, {name}: coverage {covered:.1%}, width {width:.0f}, score {score:.0f}, {seconds:.0f} s")


if __name__ == "__main__":
    main()
