r"""How much weight of calibration rows must cover a label, from the level: what stands between levels and regions.

With weights :math:`w_i` of the n calibration rows, :math:`W = \sum w_i`, and w of the test row, a label at which rows
of weight c score at least as high as the test row has the p-value :math:`p = (c + w) / (W + w)`. So

.. math:: p > \delta \quad \Longleftrightarrow \quad c > \delta (W + w) - w .

Where the right side is negative, the test row's weight alone is more than :math:`\delta` of the total, and the region
is the whole line. Weights of 1 make c a number of rows, which must be at least :math:`k = \lfloor \delta (n + 1)
\rfloor`, the rank: an integer that is found without rounding.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from typing import NamedTuple

import numpy as np

from conformal_gp.arrays import Array, Indices

# Weights that differ by less than this share of the total are equal.
WEIGHT_TIE = 1e-12


class Needed(NamedTuple):
    """Weight of covering rows that labels of a region exceed, for several levels.

    Examples
    --------
    >>> Needed.of_weights([Fraction(9, 10)], np.ones(19), np.ones(1)).least.round(6), Needed.of_ranks([2]).least
    (array([[1.]]), array([[1.5]]))
    """

    least: Array
    """(m, levels), or (1, levels) if all weights are 1; negative where the region is the whole line."""
    weights: Array | None = None
    """(n,): weights of the calibration rows; None if all are 1, those of the test rows too."""

    @classmethod
    def of_weights(cls, levels: Sequence[Fraction], weights: Array, own: Array) -> Needed:
        """For some levels, from weights of calibration rows (n,) and of test rows (m,)."""
        delta, total = np.array([float(1 - level) for level in levels]), weights.sum() + own[:, None]
        return cls((delta + WEIGHT_TIE) * total - own[:, None], weights)

    @classmethod
    def of_ranks(cls, ranks: Sequence[int]) -> Needed:
        """How many rows must cover a label, from 0 (then the region is the whole line) to n."""
        return cls(np.array([ranks], dtype=np.float64) - 0.5)

    @property
    def n_levels(self) -> int:
        """Number of levels."""
        return self.least.shape[1]

    def each(self, n_rows: int) -> Array:
        """Weights of so many calibration rows."""
        return np.ones(n_rows) if self.weights is None else self.weights

    def by_row(self, n_new: int) -> Array:
        """What labels of each test row need, (m, levels)."""
        return np.broadcast_to(self.least, (n_new, self.n_levels))

    def take(self, rows: Indices | slice) -> Needed:
        """For some of the test rows."""
        return self if self.weights is None else self._replace(least=self.least[rows])

    def among(self, rows: Indices, covering: float, levels: Indices | list[int]) -> Needed:
        """For some levels and calibration rows, where others of some weight cover all labels in question."""
        weights = None if self.weights is None else self.weights[rows]
        return Needed(self.least[:, levels] - covering, weights)

    def largest(self, values: Array) -> Array:
        """For each test row and level, the largest number that values of more weight than needed are not below.

        Parameters
        ----------
        values : ndarray of shape (m, n)
            A value of each calibration row for each test row. They are reordered.

        Returns
        -------
        found : ndarray of shape (m, levels)
            With weights of 1, the k-th largest value. Infinite where no weight is needed.
        """
        n = values.shape[1]
        found = np.full((values.shape[0], self.n_levels), np.inf)
        if self.weights is None:
            ranks = np.ceil(self.least[0]).astype(np.int64)
            finite = np.flatnonzero(ranks > 0)
            if finite.size == 1:
                values.partition(n - ranks[finite[0]], axis=1)
            elif finite.size:
                values.sort(axis=1)  # for five ranks, two to four times as fast as np.partition
            found[:, finite] = values[:, n - ranks[finite]]
        elif n:
            order = np.argsort(values, axis=1)[:, ::-1]
            weight = np.cumsum(self.weights[order], axis=1)
            place = np.stack([np.searchsorted(*row, side="right") for row in zip(weight, self.least, strict=True)])
            chosen = np.take_along_axis(order, np.minimum(place, n - 1), axis=1)
            found = np.where(self.least < 0.0, np.inf, np.take_along_axis(values, chosen, axis=1))
        return found


def weight_up_to(ends: Array, weights: Array, labels: Array, side: str) -> Array:
    """Weight of the ends that lie before each label (side "left"), or not after it ("right")."""
    order = np.argsort(ends)
    total = np.append(0.0, np.cumsum(weights[order]))
    return total[np.searchsorted(ends[order], labels, side)]  # type: ignore[call-overload]
