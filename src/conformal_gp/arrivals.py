r"""Rank tests of rows that come later: whether they look exchangeable with the calibration rows.

Of a row that is exchangeable with n calibration rows, the rank of its score among theirs is uniform, and so is the rank
of each of its inputs. With u the ranks over n + 1, of m rows that come together, :math:`\sum (u - 1/2)` has variance
:math:`m (n + m + 1) / (12 n)` (Mann and Whitney), and :math:`\sum (|u - 1/2| - 1/4)` a quarter of that, nearly. Sums go
on from call to call: ranks among all rows before are independent, so their variances add.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.stats import norm

from conformal_gp.arrays import Array

# Chance of a warning at a call, if rows are exchangeable.
LEVEL = 1e-3


@dataclass(frozen=True)
class Arrivals:
    """Sums over the rows that came later.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> calibration = rng.uniform(size=(50, 1))
    >>> Arrivals.none(1).extended(np.full(20, 0.5), rng.uniform(size=(20, 1)), calibration).departs()
    array([], dtype=int64)
    >>> Arrivals.none(1).extended(np.full(20, 0.5), 1.0 + rng.uniform(size=(20, 1)), calibration).departs()
    array([1])
    """

    shifts: Array
    """(1 + d,): sums of u - 1/2, of scores and of each input."""
    spreads: Array
    """(1 + d,): sums of |u - 1/2| - 1/4; 0 for scores, and for inputs with ties."""
    variance: float = 0.0
    """Variance of the first of these."""

    @classmethod
    def none(cls, n_inputs: int) -> Arrivals:
        """No rows yet."""
        return cls(np.zeros(1 + n_inputs), np.zeros(1 + n_inputs))

    def extended(self, p: Array, X: Array, calibration: Array) -> Arrivals:
        """These and further rows.

        Parameters
        ----------
        p : ndarray of shape (m,)
            p-values of the rows, ties counted by half.
        X, calibration : ndarray of shape (m, d) and (n, d)
            Their inputs, and those of the calibration rows.
        """
        n = len(calibration)
        below = np.empty(X.shape)
        ties = np.empty(X.shape)
        for j, column in enumerate(np.sort(calibration, axis=0).T):
            below[:, j] = np.searchsorted(column, X[:, j], "left")
            ties[:, j] = np.searchsorted(column, X[:, j], "right") - below[:, j]
        ranks = np.column_stack([p, (below + 0.5 * ties + 0.5) / (n + 1.0)])
        spread = np.sum(np.abs(ranks - 0.5) - 0.25, axis=0)
        spread[1:] = np.where(ties.any(axis=0), 0.0, spread[1:])
        spread[0] = 0.0
        variance = len(X) * (n + len(X) + 1.0) / (12.0 * n)
        return Arrivals(self.shifts + np.sum(ranks - 0.5, axis=0), self.spreads + spread, self.variance + variance)

    def departs(self) -> NDArray[np.int64]:
        """Places of the sums that are larger than chance explains: 0 for scores, then inputs."""
        largest = np.maximum(np.abs(self.shifts), 2.0 * np.abs(self.spreads)) / np.sqrt(self.variance)
        d = max(largest.size - 1, 1)
        share = np.append(0.5, np.full(largest.size - 1, 0.25 / d))  # half for scores, half for inputs by two sums
        return np.flatnonzero(largest > norm.isf(0.5 * LEVEL * share))

    def warn(self, names: NDArray[np.str_], stacklevel: int) -> None:
        """Warn if the rows do not look exchangeable with the calibration rows."""
        found = self.departs()
        if found.size == 0:
            return
        what = ["their errors"] * (0 in found) + [f"input {names[place - 1]!r}" for place in found[found > 0][:5]]
        warnings.warn(
            f"rows that partial_fit added differ from the calibration rows, in {', '.join(what)}, by more than chance "
            f"explains (rank tests at level {LEVEL:g}). Coverage is not guaranteed if they are not exchangeable, as "
            "rows that were chosen by the model, or measured under other conditions: call fit with such rows as "
            "tuning_rows.",
            UserWarning,
            stacklevel=stacklevel + 1,
        )
