"""What happens to intervals where the low-rank process takes over from the exact one: ``python -m benchmarks.step``.

Test functions of computer experiments without noise, with a little and with much, on both sides of 2,000 rows and of
10,000, beyond which a function without noise has a low-rank process too. The rows before are among the rows after.
"""

from __future__ import annotations

import warnings
from pathlib import Path

import numpy as np

from conformal_gp import ConformalGPRegressor
from conformal_gp.metrics import interval_score
from conformal_gp.models.settings import ROWS_FOR_EXACT
from conformal_gp.models.tuning import ROWS_FOR_EXACT_WITHOUT_NOISE
from reproduction.studies.functions import FUNCTIONS, draw

PAGE = Path("benchmarks/results/step.md")
NOISES = (0.0, 0.01, 0.2)
N_TEST = 1000
SEED = 2026
LARGE = ("Branin", "Hartmann 6")


def score(X: np.ndarray, y: np.ndarray, n_rows: int) -> float:
    """Interval score at 90% of a model of the first rows, on the last."""
    model = ConformalGPRegressor(random_state=0).fit(X[:n_rows], y[:n_rows])
    return float(interval_score(y[-N_TEST:], model.predict_interval(X[-N_TEST:], 0.9), 0.9))


def ratio(name: str, noise: float, n_rows: int) -> float:
    """Interval score of one row more over that of so many rows, as the mean of logarithms over three draws."""
    draws = (draw(name, n_rows + 1 + N_TEST, noise, SEED + number) for number in range(3 if n_rows < 5000 else 1))
    return float(np.exp(np.mean([np.log(score(X, y, n_rows + 1) / score(X, y, n_rows)) for X, y in draws])))


def main() -> None:
    lines = [
        "# The step from exact to low rank",
        "",
        "Made by `python -m benchmarks.step`: interval score at 90% of one row more over that of the rows named.",
        "",
        "| function | rows | no noise | 1% noise | 20% noise |",
        "|---|---|---|---|---|",
    ]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for name in FUNCTIONS:
            found = [ratio(name, noise, ROWS_FOR_EXACT) for noise in NOISES]
            lines.append(f"| {name} | {ROWS_FOR_EXACT:,} | " + " | ".join(f"{each:.2f}" for each in found) + " |")
            print(lines[-1], flush=True)
        for name in LARGE:
            found = ratio(name, 0.0, ROWS_FOR_EXACT_WITHOUT_NOISE)
            lines.append(f"| {name} | {ROWS_FOR_EXACT_WITHOUT_NOISE:,} | {found:.2f} | | |")
            print(lines[-1], flush=True)
    PAGE.write_text("\n".join(lines) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
