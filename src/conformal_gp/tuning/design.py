"""Which tuning method the number of rows calls for, and which rows are design rows.

*Design rows* are the training rows from which everything is learnt; they predict like all others but are not ranked.

=================  =====================================================  =============================================
rows               method                                                 who is ranked
=================  =====================================================  =============================================
up to 500          average over hyperparameters ("integrated")            all rows
up to 2000         design split ("holdout"), exact process                three rows in ten, or all but 1000 if more
more               design split ("holdout"), low-rank process             three rows in ten, or all but 20,000 if more
=================  =====================================================  =============================================

Up to 10,000 rows the process stays exact where there is so little noise that it knows more than the low-rank one, by
what design rows say of each other.
"""

from __future__ import annotations

import numpy as np

from conformal_gp.tuning.settings import Settings
from conformal_gp.types import Array, Rows

# Beyond so many rows the low-rank process takes over from the exact one, whose time grows with their cube. On noisy
# rows its intervals are as narrow.
ROWS_FOR_EXACT = 2000
# Up to so many rows hyperparameters are averaged over; the time of that grows with their cube.
ROWS_FOR_INTEGRATED = 500
# Share of the rows that are ranked: more are known better at the price of what is learnt. And most design rows, whose
# likelihood costs their number cubed.
RANKED_SHARE = 0.3
MOST_DESIGN_ROWS = 1000
# One less than a multiple of this are ranked, so that levels like 80, 90 and 95% are met exactly: ranks are whole
# numbers, and rounding them makes intervals wider. The least of them supports a level of 95%.
STEP = 20


def automatic(settings: Settings, n_rows: int) -> str:
    """The tuning method that ``tuning="auto"`` stands for."""
    return "integrated" if n_rows <= ROWS_FOR_INTEGRATED and settings.can_integrate else "holdout"


def design_rows(settings: Settings, X: Array, rng: np.random.RandomState) -> Rows:
    """Design rows: those given, or so many at random."""
    given, (n_rows, n_inputs) = settings.design, X.shape
    if isinstance(given, np.ndarray):
        return given
    size = n_rows - ranked_size(n_rows) if given is None else given
    return drawn(settings.mean, size, n_rows, n_inputs, rng)


def ranked_size(n_rows: int, most_design_rows: int = MOST_DESIGN_ROWS) -> int:
    """How many rows are ranked, if nothing else is said; with very few rows, half of them.

    >>> [ranked_size(n) for n in (20, 45, 60, 100, 400, 2000)]
    [10, 19, 19, 39, 119, 999]
    """
    share = max(RANKED_SHARE, 1.0 - most_design_rows / n_rows)
    most = -(-n_rows // 2) if n_rows < 2 * STEP else n_rows
    return min(max(STEP, round(share * n_rows / STEP) * STEP) - 1, most)


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
