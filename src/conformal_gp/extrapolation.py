"""Test rows that are unlike the training rows: far outside their range, or between the levels of a designed experiment.

Designs are factorial, central composite and similar experiments, recognised from their runs. Runs on a grid are not
exchangeable with points between the levels, and a model errs less on a run that was left out than between the levels.
So neither the theorem nor cross-validation tells how often intervals cover there.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from conformal_gp.arrays import Array, Mask
from conformal_gp.encoding import holds_numbers
from conformal_gp.validation import column_in_words, is_frame, warn_caller

# Columns that are named in a sentence about a design, and in a warning.
SHOWN = 6
MOST_NAMED = 5
# One channel in a hundred of a spectrum that is out of its range says nothing: extrapolation shows in many.
FEW_INPUTS = 0.01


class ExtrapolationWarning(UserWarning):
    """Some test rows lie far outside the training range, where intervals are as good as the model is there.

    Examples
    --------
    >>> import warnings
    >>> from conformal_gp import ConformalGPRegressor, ExtrapolationWarning
    >>> model = ConformalGPRegressor("se", tuning="fixed", noise_variance=0.1).fit([[0.0], [1.0], [2.0]], [0, 1, 0])
    >>> with warnings.catch_warnings(action="error", category=ExtrapolationWarning):
    ...     _ = model.predict([[300.0]])
    Traceback (most recent call last):
    ...
    conformal_gp.extrapolation.ExtrapolationWarning: 1 of 1 rows lie far outside the training range, in column 0: ...
    """


# The range of the training rows


def input_box(ends: Array, X: Array | None, n_rows: int) -> Array:
    r"""Least and greatest value of each input, (2, d), outside which a row is far outside the training rows.

    ``ends`` are those of the training rows, and ``X`` is None where they are not in memory, and many. With n rows, a
    new row exceeds the range of some input in up to 2 d / n of all cases, and heavy tails exceed it by far. So
    distances from the median are multiplied by :math:`T^a`, T the ratio of the largest to the upper quartile.
    """
    low, high = ends
    # a tenth of the range; more with fewer than 20 rows, from whose quartiles no tail can be told
    room = 0.1 * max(1.0, 20.0 / n_rows) ** 3 * (high - low)
    room = room + 1e-12 * np.maximum(np.abs(low), np.abs(high))  # rounding is no extrapolation
    # For a tail of index alpha, T is about (n / 4)^(1 / alpha), and the range is exceeded by a factor c in a share
    # c^-alpha of the 2 d / n cases. So (n / 4)^a = 2 d / (n epsilon) leaves a share epsilon of all, here 0.005,
    # whatever the index (measured in tests/test_extrapolation.py).
    exponent = np.log(2.0 * low.size / (0.005 * n_rows)) / np.log(max(n_rows / 4.0, 1.5))
    exponent = float(np.clip(exponent, 0.0, 3.0))
    if X is None or exponent == 0.0:
        return np.stack([low - room, high + room])
    middle = np.nanmedian(X, axis=0)
    below = (middle - low) * _tail(middle - X) ** exponent
    above = (high - middle) * _tail(X - middle) ** exponent
    return np.stack([np.minimum(middle - below, low - room), np.maximum(middle + above, high + room)])


def _tail(deviation: Array) -> Array:
    """Ratio of the largest deviation to its upper quartile, or to the median of positive ones; 1 if there are none."""
    largest = np.nanmax(deviation, axis=0)
    typical = np.nanquantile(deviation, 0.75, axis=0)
    for j in np.flatnonzero((typical <= 0.0) & (largest > 0.0)):
        typical[j] = np.median(deviation[deviation[:, j] > 0.0, j])
    return np.where(largest > 0.0, largest / np.where(typical > 0.0, typical, 1.0), 1.0)


def beyond(X: Array, box: Array) -> Mask:
    """Inputs outside a box, (m, d); of more than 100 inputs, as of spectra, only where more than one in a hundred is.

    >>> beyond(np.array([[1.1, 5.0], [1.2, 6.0]]), np.array([[0.0, 5.0], [1.15, 5.0]])).tolist()
    [[False, False], [True, True]]
    """
    outside = np.asarray((box[0] > X) | (box[1] < X))
    few = outside.mean(axis=1, keepdims=True) <= FEW_INPUTS
    if X.shape[1] > 1.0 / FEW_INPUTS:
        outside &= ~few
    return outside


def warn_beyond(model: Any, X: Array, box: Array) -> None:
    """Warn of test rows that lie far outside the training range."""
    outside = beyond(X, box)
    n_rows = int(outside.any(axis=1).sum())
    if not n_rows:
        return
    columns = np.flatnonzero(outside.any(axis=0))
    named = [column_in_words(model)(j) for j in columns[:MOST_NAMED]]
    if columns.size > MOST_NAMED:
        named[-1] += f" and {columns.size - MOST_NAMED} more"
    warn_caller(
        f"{n_rows} of {len(X)} rows lie far outside the training range, in {', '.join(named)}: the model "
        "extrapolates, and intervals of these rows are as good as the model is there. beyond_training(X) says which "
        "rows, and input_range_ has the range of the training rows.",
        ExtrapolationWarning,
    )


# Designed experiments


@dataclass(frozen=True)
class Grid:
    """Runs of a designed experiment at few levels of each column.

    Examples
    --------
    >>> import numpy as np
    >>> from conformal_gp.extrapolation import Grid
    >>> runs = np.stack(np.meshgrid([-1.0, 0.0, 1.0], [10.0, 20.0]), axis=-1).reshape(-1, 2)
    >>> grid = Grid.find({"speed": runs[:, 0], "load": runs[:, 1]})
    >>> print(grid)
    3 levels of 'speed', 2 of 'load'; 6 of 6 combinations
    >>> grid.between({"speed": np.array([0.0, 0.5]), "load": np.array([10.0, 10.0])})
    array([False,  True])
    """

    levels: dict[str, Array]
    """Levels of each column of numbers, ascending."""
    n_runs: int
    """Different combinations of levels that there are, categories included."""
    n_combinations: int
    """Combinations of levels that there could be."""

    @classmethod
    def find(cls, columns: Mapping[str, NDArray[Any]], most_repeated: int | None = None) -> Grid | None:
        """Recognise a design from columns of numbers and of text; None if there is no sign of one.

        A full factorial design has nearly all combinations of its levels. In other designs, such as fractions, central
        composite and Box-Behnken designs, the levels of each column are balanced, and columns are orthogonal. With
        ``most_repeated=1``, runs differ except for repetitions of one point, such as the centre: points between the
        levels are then far from any run.
        """
        ranks = {}
        levels = {}
        for name, values in columns.items():
            distinct, ranks[name] = np.unique(values, return_inverse=True)
            if distinct.size > 1:
                levels[name] = distinct
        numbers = {name: values for name, values in levels.items() if values.dtype.kind == "f"}
        if len(levels) < 2 or not numbers or max(map(len, numbers.values())) > 20:
            return None
        counts = np.unique([ranks[name] for name in levels], axis=1, return_counts=True)[1]
        n_runs = counts.size
        n_combinations = prod(map(len, levels.values()))
        if n_runs < 4 or (most_repeated is not None and (counts > 1).sum() > most_repeated):
            return None
        complete = 10 * n_runs >= 9 * n_combinations  # a few runs may have failed
        if not (complete or _is_balanced([ranks[name] for name in numbers])):
            return None
        return cls(numbers, n_runs, n_combinations)

    def between(self, columns: Mapping[str, NDArray[Any]]) -> Mask:
        """Rows with a value that is not among the levels of its column, (n,)."""
        away = [
            np.abs(columns[name][:, None] - levels).min(axis=1) > 1e-6 * np.ptp(levels)  # beyond rounding
            for name, levels in self.levels.items()
        ]
        return np.any(away, axis=0)

    def warn_between(self, columns: Mapping[str, NDArray[Any]]) -> None:
        """Warn of rows between the levels."""
        between = self.between(columns)
        if between.any():
            message = f"{between.sum()} of {between.size} rows lie between the levels. {self.condition} {self.remedy}"
            warn_caller(message, ExtrapolationWarning)

    def __str__(self) -> str:
        counts = [f"{levels.size} of '{name}'" for name, levels in self.levels.items()]
        counts[0] = counts[0].replace(" of ", " levels of ", 1)
        shown = ", ".join(counts[:SHOWN])
        if len(counts) > SHOWN:
            shown += f" and so on for {len(counts) - SHOWN} more"
        return f"{shown}; {self.n_runs} of {self.n_combinations} combinations"

    @property
    def condition(self) -> str:
        """What the guarantee is limited to, in a sentence."""
        return f"The training rows are a grid ({self}): a guarantee is for new rows at these levels, not between them."

    remedy = (
        "Some 19 additional runs at random points as calibration rows, with the runs of the grid as tuning rows "
        "(tuning='holdout', tuning_rows=their row numbers), make 90 and 95% intervals valid between the levels."
    )


def _is_balanced(ranks: list[NDArray[Any]]) -> bool:
    """Return whether columns have few levels each, centred and orthogonal.

    With u the ranks of the levels, centred, that is 1'u = 0 for each column and u'v = 0 for each pair. Sums of halves
    have no rounding error.
    """
    highest = np.array([values.max() for values in ranks])
    if len(ranks) < 2 or highest.max() >= 5:
        return False
    centred = np.column_stack(ranks) - highest / 2.0
    products = centred.T @ centred
    return not centred.sum(axis=0).any() and not products[~np.eye(len(ranks), dtype=bool)].any()


def columns_of(X: Any) -> dict[str, NDArray[Any]]:
    """Split an array or data frame into columns by name: numbers as floats, everything else as text."""
    if not is_frame(X):
        return {f"x{j}": column for j, column in enumerate(np.asarray(X, dtype=np.float64).T)}
    columns: dict[str, NDArray[Any]] = {}
    for name, dtype in zip(X.columns, X.dtypes, strict=True):
        kind: type = str
        if holds_numbers(dtype):
            kind = np.float64
        columns[str(name)] = np.asarray(X[name]).astype(kind)
    return columns
