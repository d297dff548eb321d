"""Design rows: how many, and which."""

from __future__ import annotations

import numpy as np

from conformal_gp.types import Rows

# Share of design rows where everything is learnt from them, and where they only choose gamma.
LEARNING_SHARE = 1 / 2
CHOOSING_SHARE = 1 / 5
# Most design rows that are drawn if nothing else is said: more would teach little, and cannot be ranked.
MOST_DESIGN_ROWS = 1000


def design_rows(
    given: int | Rows | None, mean: str, share: float, shape: tuple[int, int], rng: np.random.RandomState
) -> Rows:
    """Design rows: those given, or so many at random; ``share`` is the default."""
    if isinstance(given, np.ndarray):
        return given
    n_rows, n_inputs = shape
    share = min(share, MOST_DESIGN_ROWS / n_rows)
    size = even_size(share, n_rows, _fewest(mean, n_inputs)) if given is None else given
    return draw(mean, size, n_rows, n_inputs, rng)


def even_size(share: float, n_rows: int, fewest: int) -> int:
    """Number of design rows near a share, chosen so that (number of ranked rows + 1) is a multiple of 20.

    Levels like 80, 90 and 95% are then met exactly: ranks are whole numbers, and rounding them makes intervals wider.
    Of few rows it is a multiple of 10.

    >>> even_size(1 / 2, 150, fewest=5)  # 79 are ranked
    71
    """
    step = 20 if n_rows >= 60 else 10
    even = np.arange(step - 1, n_rows - fewest + 1, step)
    if even.size == 0:
        return int(np.ceil(share * n_rows))
    return n_rows - int(even[np.argmin(np.abs(even - (1.0 - share) * n_rows))])


def _fewest(mean: str, n_inputs: int) -> int:
    """Coefficients of the mean function, and three more."""
    return {"zero": 0, "constant": 1, "linear": 1 + n_inputs}[mean] + 3


def draw(mean: str, size: int, n_rows: int, n_inputs: int, rng: np.random.RandomState) -> Rows:
    """Design rows at random: so many, or as many as the mean function needs."""
    fewest = _fewest(mean, n_inputs)
    size = max(size, fewest)
    if size >= n_rows:
        raise ValueError(
            f"mean={mean!r} has {fewest - 3} coefficients and needs {fewest} design rows, which leaves none to rank of "
            f"n_samples={n_rows}; use mean='constant' or mean='zero'."
        )
    return np.sort(rng.permutation(n_rows)[:size])
