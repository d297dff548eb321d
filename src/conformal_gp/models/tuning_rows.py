"""Tuning rows: the training rows from which everything is learnt with "holdout".

They predict like all others but are not calibration rows: these are three rows in ten, or all but 1000 (20,000 with a
low-rank GP) if that is more.
"""

from __future__ import annotations

from fractions import Fraction
from itertools import count

import numpy as np
from numpy.typing import NDArray

from conformal_gp.arrays import Array, Indices
from conformal_gp.conformal.levels import rows_needed
from conformal_gp.models.settings import Settings

# Share of the calibration rows: more are known better at the price of what is learnt. And most tuning rows, whose
# likelihood costs their number cubed.
CALIBRATION_SHARE = 0.3
MOST_TUNING_ROWS = 1000
# Values of rows are the same up to rounding if they agree to so many decimals, in units of their standard deviation.
KEY_DECIMALS = 8
# The number of calibration rows is one less than a multiple of this, so that levels like 80, 90 and 95% are met
# exactly: ranks are whole numbers, and rounding them makes intervals wider. The least of them supports 95%.
ROUND_NUMBER = 20
# Calibration batches for 95, 90 and 80%, and from how many batches on.
FEW_BATCHES = ((19, 29), (9, 10), (4, 5))


def draw_tuning_rows(
    settings: Settings,
    n_rows: int,
    content: tuple[Array, Array] | None,
    rng: np.random.RandomState,
    most: int = MOST_TUNING_ROWS,
) -> Indices:
    """Tuning rows: those given, or so many at random, ascending.

    They are drawn by their content, inputs and targets, so that the order of rows does not matter; by their place where
    rows are not in memory, and ``content`` is None.
    """
    size = settings.tuning_rows
    if isinstance(size, np.ndarray):
        return size
    if size is None:
        size = max(n_rows - calibration_size(n_rows, most), fewest_tuning_rows(settings.mean, settings.n_inputs))
    check_size(settings.mean, size, n_rows, settings.n_inputs)
    if content is None:
        order = rng.permutation(n_rows)
    else:
        order = np.argsort(content_keys(*content, rng.randint(2**31)), kind="stable")
    return np.sort(order[:size])


def content_keys(X: Array, y: Array, seed: int) -> NDArray[np.uint64]:
    """Pseudo-random number of each row, a hash of its values: it depends on neither the order nor the units of rows.

    Rows that are the first by such numbers are a random sample, whatever their values. (Rows that are the first in an
    order of their values are not, and the others would not be exchangeable with a new row.)

    >>> X, y = np.array([[2.0], [1.0], [1.0]]), np.array([0.0, 5.0, 4.0])
    >>> bool((content_keys(X, y, 7)[::-1] == content_keys(1e3 * X[::-1], y[::-1], 7)).all())
    True
    """
    values = np.column_stack([X, y])
    missing = np.isnan(values)
    if missing.any():
        values = np.where(missing, np.nanmean(values, axis=0), values)
    values /= np.maximum(np.abs(values).max(axis=0), np.finfo(float).tiny)  # squares neither overflow nor vanish
    spread = values.std(axis=0)
    scaled = (values - values.mean(axis=0)) / np.where(spread > 0.0, spread, 1.0)
    cells = np.rint(scaled * 10.0**KEY_DECIMALS).astype(np.int64).view(np.uint64)
    # equal rows are told apart by their number among equal rows
    order = np.lexsort(cells.T)
    same = np.append(False, (cells[order[1:]] == cells[order[:-1]]).all(axis=1))
    starts = np.maximum.accumulate(np.where(same, 0, np.arange(order.size)))
    number = np.empty(order.size, dtype=np.uint64)
    number[order] = np.arange(order.size) - starts
    keys = _mixed(number + np.uint64(seed))
    for column in cells.T:
        keys = _mixed(keys ^ column)
    return keys


def _mixed(bits: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """The output function of SplitMix64 (Steele, Lea and Flood, 2014)."""
    bits = bits + np.uint64(0x9E3779B97F4A7C15)
    bits = (bits ^ (bits >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    bits = (bits ^ (bits >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return bits ^ (bits >> np.uint64(31))


def calibration_size(n_rows: int, most_tuning_rows: int = MOST_TUNING_ROWS) -> int:
    """Default number of calibration rows; with very few rows, half of them.

    >>> [calibration_size(n) for n in (20, 45, 60, 100, 400, 2000)]
    [10, 19, 19, 39, 119, 999]
    """
    share = max(CALIBRATION_SHARE, 1.0 - most_tuning_rows / n_rows)
    most = -(-n_rows // 2) if n_rows < 2 * ROUND_NUMBER else n_rows
    return min(max(ROUND_NUMBER, round(share * n_rows / ROUND_NUMBER) * ROUND_NUMBER) - 1, most)


def calibration_batches(n_batches: int) -> int:
    """Default number of calibration batches; with few, as many as 80, 90 or 95% needs.

    >>> [calibration_batches(n) for n in (3, 8, 10, 28, 29, 100)]
    [1, 4, 9, 9, 19, 39]
    """
    if n_batches >= 2 * ROUND_NUMBER:
        return calibration_size(n_batches)
    for n_calibration, fewest in FEW_BATCHES:
        if n_batches >= fewest:
            return n_calibration
    return max(n_batches // 2, 1)


def batches_needed(level: Fraction) -> int:
    """Fewest batches of which enough are calibration batches for a level.

    >>> batches_needed(Fraction(9, 10)), batches_needed(Fraction(19, 20))
    (10, 29)
    """
    needed = rows_needed(level)
    return next(n for n in count(needed + 1) if calibration_batches(n) >= needed)


def fewest_tuning_rows(mean: str, n_inputs: int) -> int:
    """Fewest tuning rows that determine the mean function, with three to spare."""
    return {"zero": 0, "constant": 1, "linear": 1 + n_inputs}[mean] + 3


def check_size(mean: str, size: int, n_rows: int, n_inputs: int) -> None:
    """Raise a ValueError if tuning rows are too few for the mean function, or all rows."""
    fewest = fewest_tuning_rows(mean, n_inputs)
    if size < fewest:
        raise ValueError(f"tuning_rows must be at least {fewest} with mean={mean!r} and {n_inputs} inputs, got {size}.")
    if size >= n_rows:
        raise ValueError(
            f"mean={mean!r} has {fewest - 3} coefficients and needs {fewest} tuning rows, which leaves no calibration "
            f"rows of n_samples={n_rows}; use mean='constant' or mean='zero'."
        )
