"""kNNR-CP: nearest neighbours regression, with residuals normalised by distances to the neighbours."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

import numpy as np
from scipy.spatial.distance import cdist
from sklearn.preprocessing import StandardScaler
from sklearn.utils import check_random_state

from conformal_gp.arrays import Array, Indices
from conformal_gp.conformal.levels import Needed, rank
from conformal_gp.conformal.lines import Lines, hulls
from reproduction.comparators.base import IntervalRegressor


class ConformalNeighbours(IntervalRegressor):
    r"""Full conformal prediction on nearest neighbours regression (Papadopoulos, Vovk and Gammerman, JAIR 40, 2011).

    The prediction is the mean label of the k nearest rows. With :math:`d` the sum of a row's distances to its k nearest
    neighbours and :math:`\lambda = d / \mathrm{median}(d)`, its score is :math:`|y - \hat y| / (\gamma + \lambda)`,
    where neighbours, distances and the median are those of training rows and test row together, each row itself left
    out. Where the median is zero, so is every λ.

    Ties between distances are broken by an order of all rows, including the test row, that is drawn at random when the
    model is fitted. So no row is treated differently. All test rows have the same place in this order, and their
    intervals do not depend on each other. Inputs are standardised on the training rows only, as in the paper.

    Parameters
    ----------
    n_neighbors : int
        Number k of neighbours, less than the number of rows.
    gamma : float > 0, default=0.5
        Sensitivity to distances: large values weaken the normalisation.
    random_state : int, RandomState instance or None, default=None
        Seed of the order of rows.

    Examples
    --------
    >>> X, y = [[0.0], [1.0], [2.2], [3.7], [5.5], [8.0]], [0.0, 1.0, 1.5, 3.0, 2.0, 4.0]
    >>> model = ConformalNeighbours(2, random_state=0).fit(X, y)
    >>> model.predict_interval([[1.5]], confidence_level=0.7).round(3)
    array([[0.588, 1.923]])
    """

    def __init__(
        self, n_neighbors: int, *, gamma: float = 0.5, random_state: int | np.random.RandomState | None = None
    ):
        self.n_neighbors = n_neighbors
        self.gamma = gamma
        self.random_state = random_state

    def _fit(self, X: Array, y: Array) -> None:
        if not 1 <= self.n_neighbors < y.size:
            raise ValueError(f"n_neighbors must be from 1 to {y.size - 1}, less than the rows; got {self.n_neighbors}.")
        self._scaler = StandardScaler().fit(X)
        # Rows are kept in the order that breaks ties, so that a stable sort breaks them.
        order = check_random_state(self.random_state).permutation(y.size + 1)
        self._rows_before_test = int(np.flatnonzero(order == y.size)[0])
        order = order[order != y.size]
        self._X, self._y = self._scaler.transform(X[order]), y[order]
        distances = cdist(self._X, self._X)
        np.fill_diagonal(distances, np.inf)  # no row is its own neighbour
        near, far = self._nearest(distances)
        self._last, self._reach = near[:, -1], far[:, -1]
        # Sums over the k nearest but the farthest of them, which the test row may replace, and over all k.
        self._labels, self._sums = (
            np.column_stack([part[:, :-1].sum(axis=1), part.sum(axis=1)]) for part in (self._y[near], far)
        )

    def _nearest(self, distances: Array) -> tuple[Indices, Array]:
        """Columns of the k smallest entries of each row, smallest first, and the entries; of equals the first."""
        near = np.argsort(distances, axis=1, kind="stable")[:, : self.n_neighbors]
        return near, np.take_along_axis(distances, near, axis=1)

    def _predict(self, X: Array) -> Array:
        return self._y[self._nearest(cdist(self._scaler.transform(X), self._X))[0]].mean(axis=1)

    def _intervals(self, X: Array, levels: Sequence[Fraction]) -> Array:
        return hulls(self._lines(X), Needed.of_ranks([rank(level, self._y.size) for level in levels]))

    def _lines(self, X: Array) -> Lines:
        """Lines of the training rows; the test row may replace the farthest neighbour of a training row."""
        k, distances = self.n_neighbors, cdist(self._scaler.transform(X), self._X)
        near, far = self._nearest(distances)
        centre, test_sum = self._y[near].mean(axis=1), far.sum(axis=1, keepdims=True)
        wins_ties = self._last >= self._rows_before_test
        joins = np.where(wins_ties, distances <= self._reach, distances < self._reach)
        a = self._y - np.where(joins, self._labels[:, 0], self._labels[:, 1]) / k
        b = np.where(joins, -1.0 / k, 0.0)
        sums = np.where(joins, self._sums[:, 0] + distances, self._sums[:, 1])
        median = np.median(np.hstack([sums, test_sum]), axis=1, keepdims=True)
        median[median == 0.0] = np.inf
        # The denominator of the test row's score, divided by that of each training row.
        ratio = (self.gamma + test_sum / median) / (self.gamma + sums / median)
        # a + b y = (a + b y_0) + b t at t = y - y_0, with y_0 the centre
        return Lines(centre, (a + b * centre[:, None]) * ratio, b * ratio)
