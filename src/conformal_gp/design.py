"""Designs on a grid: factorial, central composite and similar experiments, recognised from their runs.

Runs on a grid are not exchangeable with points between the levels, and a model errs less on a run that was left out
than between the levels. So neither the theorem nor cross-validation tells how often intervals cover there.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from dataclasses import dataclass
from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from conformal_gp.arrays import Array, Mask
from conformal_gp.validation import ExtrapolationWarning, holds_numbers, is_frame

# Columns that are named.
SHOWN = 6


@dataclass(frozen=True)
class Grid:
    """Runs of a designed experiment at few levels of each column.

    Examples
    --------
    >>> import numpy as np
    >>> from conformal_gp.design import Grid
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
    n_repeated: int = 0
    """Combinations that several runs have."""

    @classmethod
    def find(cls, columns: Mapping[str, NDArray[Any]]) -> Grid | None:
        """Recognise a design from columns of numbers and of text; None if there is no sign of one.

        A full factorial design has nearly all combinations of its levels. In other designs, such as fractions, central
        composite and Box-Behnken designs, the levels of each column are balanced, and columns are orthogonal.
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
        complete = 10 * n_runs >= 9 * n_combinations  # a few runs may have failed
        if n_runs < 4 or not (complete or _is_balanced({name: ranks[name] for name in numbers})):
            return None
        return cls(numbers, n_runs, n_combinations, int((counts > 1).sum()))

    @classmethod
    def of_runs(cls, columns: Mapping[str, NDArray[Any]]) -> Grid | None:
        """Recognise a design whose runs differ, except for repetitions of its centre or of one other point.

        Points between its levels are far from any of its runs.
        """
        grid = cls.find(columns)
        if grid is None or grid.n_repeated > 1:
            return None
        return grid

    def between(self, columns: Mapping[str, NDArray[Any]]) -> Mask:
        """Rows with a value that is not among the levels of its column, (n,)."""
        away = [
            np.abs(columns[name][:, None] - levels).min(axis=1) > 1e-6 * np.ptp(levels)  # beyond rounding
            for name, levels in self.levels.items()
        ]
        return np.any(away, axis=0)

    def warn_between(self, columns: Mapping[str, NDArray[Any]], stacklevel: int) -> None:
        """Warn of rows between the levels."""
        between = self.between(columns)
        if between.any():
            message = f"{between.sum()} of {between.size} rows lie between the levels. {self.condition} {self.remedy}"
            warnings.warn(message, ExtrapolationWarning, stacklevel=stacklevel + 1)

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

    @property
    def remedy(self) -> str:
        """What gives points between the levels a guarantee, in a sentence."""
        return (
            "Some 19 additional runs at random points as calibration rows, with the runs of the grid as tuning rows "
            "(tuning='holdout', tuning_rows=their row numbers), make 90 and 95% intervals valid between the levels."
        )


def _is_balanced(ranks: Mapping[str, NDArray[Any]]) -> bool:
    """Return whether columns have few levels each, centred and orthogonal.

    With u the ranks of the levels, centred, that is 1'u = 0 for each column and u'v = 0 for each pair. Sums of halves
    have no rounding error.
    """
    highest = np.array([values.max() for values in ranks.values()])
    if len(ranks) < 2 or highest.max() >= 5:
        return False
    centred = np.column_stack(list(ranks.values())) - highest / 2.0
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


def columns_of_inputs(X: Array, names: Any, encoding: Any) -> dict[str, NDArray[Any]]:
    """Split inputs of a model into the columns that they come from: numbers as floats, categories as text.

    ``encoding`` is a :class:`conformal_gp.encoding.Encoding`, or None where all columns are numbers. Indicators of
    missing values, which stand last, are left out.
    """
    if encoding is None:
        return {str(name): column for name, column in zip(names, X.T[: len(names)], strict=True)}
    columns = {}
    for j, (name, block) in enumerate(zip(names, encoding.blocks(X), strict=True)):
        columns[str(name)] = block[:, 0]
        if encoding.categories[j] is not None and not encoding.ordered[j]:
            columns[str(name)] = (block @ np.arange(1.0, block.shape[1] + 1.0)).astype(str)
    return columns
