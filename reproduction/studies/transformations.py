"""Interval scores of ``target_transform="auto"`` compared with the identity, on data that had no part in its rule.

``python -m reproduction.studies.transformations`` prints a table of scores and coverages.
"""

from __future__ import annotations

import argparse
import warnings
from collections.abc import Callable

import numpy as np
from sklearn.datasets import load_diabetes

from conformal_gp import ConformalGPRegressor
from conformal_gp.arrays import Array
from conformal_gp.datasets import load_auto_mpg, load_boston, load_cpu, load_servo
from conformal_gp.metrics import coverage, interval_score
from reproduction.studies.functions import FUNCTIONS

LEVEL = 0.9
TRAINING_ROWS = 160
TEST_ROWS = 100


def _synthetic(noise: Callable[[Array, np.random.RandomState], Array]) -> tuple[Array, Array]:
    """Friedman's function, between 0 and 3, with some noise or other."""
    rng = np.random.RandomState(0)
    X = rng.uniform(size=(TRAINING_ROWS + 3 * TEST_ROWS, 5))
    signal = FUNCTIONS["Friedman"].value(X) / 10.0
    return X, noise(signal, rng)


DATA: dict[str, Callable[[], tuple[Array, Array]]] = {
    "Servo": lambda: load_servo(return_X_y=True),
    "CPU": lambda: load_cpu(return_X_y=True),
    "Auto-mpg": lambda: load_auto_mpg(return_X_y=True),
    "Boston": lambda: load_boston(return_X_y=True),
    "diabetes": lambda: load_diabetes(return_X_y=True),
    "constant noise": lambda: _synthetic(lambda f, rng: f + 0.2 * rng.standard_normal(f.size)),
    "noise in proportion": lambda: _synthetic(lambda f, rng: f * np.exp(0.3 * rng.standard_normal(f.size))),
    "lognormal": lambda: _synthetic(lambda f, rng: np.exp(2.0 * f + 0.3 * rng.standard_normal(f.size))),
    "counts": lambda: _synthetic(lambda f, rng: rng.poisson(2.0 * f).astype(float)),
    "many zeros": lambda: _synthetic(lambda f, rng: np.maximum(f - 1.5 + 0.2 * rng.standard_normal(f.size), 0.0)),
    "heavy tails": lambda: _synthetic(lambda f, rng: f + 0.2 * rng.standard_t(2, f.size)),
}


def compare(X: Array, y: Array, tuning: str, splits: int) -> str:
    """A row of the table: scores of "auto" over those of the identity, coverages, and the chosen transformations."""
    ratios, kept, chosen = [], [], []
    for split in range(splits):
        order = np.random.RandomState(split).permutation(y.size)
        train, test = order[:TRAINING_ROWS], order[TRAINING_ROWS:][:TEST_ROWS]
        if test.size < 20:
            train, test = order[:-40], order[-40:]
        scores = []
        for target_transform in (None, "auto"):
            model = ConformalGPRegressor(tuning=tuning, target_transform=target_transform, random_state=split)
            model.fit(X[train], y[train])
            intervals = model.predict_interval(X[test], LEVEL)
            scores.append(float(np.mean(interval_score(y[test], intervals, LEVEL))))
            kept.append(coverage(y[test], intervals))
        chosen.append({None: "1", 0.5: "1/2", 0.0: "log"}[getattr(model.target_transform_, "exponent", None)])
        ratios.append(scores[1] / scores[0])
    ratio = float(np.exp(np.mean(np.log(ratios))))
    without, automatic = np.mean(kept[::2]), np.mean(kept[1::2])
    return f"{ratio:.2f} | {max(ratios):.2f} | {without:.1%} | {automatic:.1%} | {', '.join(chosen)}"


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--splits", type=int, default=3)
    parser.add_argument("--tuning", default="holdout")
    parser.add_argument("--only", nargs="*", default=list(DATA))
    given = parser.parse_args()
    print("| data | score | worst split | coverage without | with | chosen |\n|---|---|---|---|---|---|")
    warnings.simplefilter("ignore", UserWarning)
    for name in given.only:
        print(f"| {name} | {compare(*DATA[name](), given.tuning, given.splits)} |", flush=True)


if __name__ == "__main__":
    main()
