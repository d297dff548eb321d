"""Which tuning method the numbers of rows and inputs call for, and which rows are design rows.

*Design rows* are the training rows from which everything is learnt; they predict like all others but are not ranked.
"""

from __future__ import annotations

import os

import numpy as np

from conformal_gp.tuning.settings import Settings
from conformal_gp.types import Rows

RANKED = float(os.environ.get("CGP_RANKED", "0"))
SHARE = float(os.environ.get("CGP_SHARE", "0.3"))


def automatic(settings: Settings, n_rows: int, n_inputs: int) -> str:
    """The tuning method that ``tuning="auto"`` stands for: by the numbers of rows and inputs."""
    if settings.candidates is not None:
        return "augmented"
    return "augmented" if n_rows <= float(os.environ.get("CGP_BAG", "30")) else "holdout"


def design_rows(settings: Settings, n_rows: int, n_inputs: int, rng: np.random.RandomState) -> Rows:
    """Design rows: those given, or so many at random."""
    given = settings.design
    if isinstance(given, np.ndarray):
        return given
    size = n_rows - ranked_size(n_rows, n_inputs) if given is None else given
    return drawn(settings.mean, size, n_rows, n_inputs, rng)


def drawn(mean: str, size: int, n_rows: int, n_inputs: int, rng: np.random.RandomState) -> Rows:
    """Design rows at random: so many, or as many as the mean function needs."""
    fewest = {"zero": 0, "constant": 1, "linear": 1 + n_inputs}[mean] + 3
    size = max(size, fewest)
    if size >= n_rows:
        raise ValueError(
            f"mean={mean!r} has {fewest - 3} coefficients and needs {fewest} design rows, which leaves none to rank of "
            f"n_samples={n_rows}; use mean='constant' or mean='zero'."
        )
    return np.sort(rng.permutation(n_rows)[:size])


def ranked_size(n_rows: int, n_inputs: int) -> int:
    """How many rows are ranked: one less than a multiple of 20, or of 10, so that the usual levels are met exactly."""
    if RANKED:
        return int(RANKED)
    step = 20 if n_rows * SHARE >= 15 else 10
    return max(step, int(round(n_rows * SHARE / step)) * step) - 1
