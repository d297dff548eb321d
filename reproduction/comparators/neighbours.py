"""kNNR-CP: nearest neighbours regression, with residuals normalised by distances to the neighbours."""

from __future__ import annotations

from numbers import Integral, Real
from typing import NamedTuple

import numpy as np
from scipy.spatial.distance import cdist
from sklearn.model_selection import KFold
from sklearn.utils import check_random_state, gen_batches

from conformal_gp.conformal.lines import Lines, centred_lines
from conformal_gp.constraints import Interval, StrOptions
from conformal_gp.gp.inputs import Scaling
from conformal_gp.predictors.base import BLOCK_ENTRIES
from conformal_gp.types import Array, Rows
from reproduction.comparators.full import FullConformalRegressor

__all__ = ["ConformalNeighbours", "best_n_neighbors"]


FOLDS = 10
# Largest number of neighbours that cross-validation considers.
MOST_NEIGHBOURS = 15

# exp(gamma λ) of an isolated row overflows. Beyond this exponent a score is practically infinite, or zero.
LARGEST_EXPONENT = 500.0


class Neighbourhoods(NamedTuple):
    """Sums over the k nearest neighbours of each of l rows, and over all but the farthest of them."""

    last: Rows
    """(l,): the farthest of the k."""
    reach: Array
    """(l,): its distance."""
    labels: Array
    """(l, 2): sum of the labels of all but the farthest, and of all."""
    distances: Array
    """(l, 2): sum of their distances, likewise."""


def nearest(distances: Array, k: int) -> Rows:
    """Columns of the k smallest entries of each row, smallest first; of equal entries, the first columns."""
    return np.argsort(distances, axis=1, kind="stable")[:, :k]


def _finite_distances(X: Array, Z: Array) -> Array:
    distances = cdist(X, Z)
    if not np.isfinite(distances).all():
        raise ValueError(f"X reaches {np.abs(X).max():.1e}, too far for squared distances; divide X by a constant.")
    return distances


def neighbourhoods(X: Array, y: Array, k: int) -> Neighbourhoods:
    """Neighbourhoods of the rows (X, y) among themselves; of rows at the same distance, the first are nearest."""
    near = np.empty((y.size, k), dtype=np.int64)
    far = np.empty((y.size, k))
    for rows in gen_batches(y.size, max(1, BLOCK_ENTRIES // y.size)):
        distances = _finite_distances(X[rows], X)
        distances[np.arange(distances.shape[0]), np.arange(rows.start, rows.stop)] = np.inf  # not its own neighbour
        near[rows] = nearest(distances, k)
        far[rows] = np.take_along_axis(distances, near[rows], axis=1)

    def sums(values: Array) -> Array:
        but_last = values[:, :-1].sum(axis=1)
        return np.column_stack([but_last, but_last + values[:, -1]])

    return Neighbourhoods(near[:, -1], far[:, -1], sums(y[near]), sums(far))


def best_n_neighbors(
    X: Array,
    y: Array,
    largest: int = MOST_NEIGHBOURS,
    random_state: int | np.random.RandomState | None = None,
) -> int:
    """Number of neighbours with the least squared error in ten-fold cross-validation of nearest neighbours regression.

    Parameters
    ----------
    X : ndarray of shape (l, d)
        Inputs, scaled; at least two rows.
    y : ndarray of shape (l,)
        Labels.
    largest : int, default=15
        Largest number to consider.
    random_state : int, RandomState instance or None, default=None
        Seed of the folds.

    Returns
    -------
    k : int
        The best number, the smallest of equals.

    Examples
    --------
    >>> import numpy as np
    >>> X = np.linspace(0.0, 1.0, 40)[:, None]
    >>> best_n_neighbors(X, 3.0 * X[:, 0], random_state=0)
    2
    """
    folds = KFold(min(FOLDS, y.size), shuffle=True, random_state=random_state)
    splits = list(folds.split(X))
    largest = min(largest, *(train.size for train, _ in splits))
    loss = np.zeros(largest)
    for train, test in splits:
        labels = y[train][nearest(cdist(X[test], X[train]), largest)]
        error = np.cumsum(labels, axis=1) / np.arange(1, largest + 1) - y[test, None]
        loss += (error**2).sum(axis=0)
    return int(np.argmin(loss)) + 1


class ConformalNeighbours(FullConformalRegressor):
    r"""Full conformal prediction on nearest neighbours regression, with normalised residuals.

    The prediction is the mean label of the k nearest rows. With :math:`d` the sum of a row's distances to its k nearest
    neighbours and :math:`\lambda = d / \mathrm{median}(d)`, its score is

    .. math:: \frac{|y - \hat y|}{\gamma + \lambda}, \qquad |y - \hat y|
        \qquad\text{or}\qquad \frac{|y - \hat y|}{\exp(\gamma \lambda)} ,

    where neighbours, distances and the median are those of training rows and test row together, each row itself left
    out. Where the median is zero, so is every λ.

    Ties between distances are broken by an order of all rows, including the test row, that is drawn at random when the
    model is fitted. So no row is treated differently. All test rows have the same place in this order, and their
    intervals do not depend on each other.

    Coverage is exact with given ``n_neighbors`` and ``scale_inputs=False``. Cross-validation and the scaling use the
    training rows only, as in the paper, and so treat the test row differently.

    Parameters
    ----------
    n_neighbors : int or None, default=None
        Number k of neighbours, less than the number of rows. None takes the best of 1 to 15 in ten-fold
        cross-validation of the regression over the training rows.
    measure : {"normalised", "plain", "exponential"}, default="normalised"
        The score, in the order of the formulas above.
    gamma : float > 0, default=0.5
        Sensitivity to distances: large values weaken the normalised measure and strengthen the exponential one.
    scale_inputs : bool, default=True
        Standardise inputs to mean 0 and standard deviation 1 over the training rows.
    random_state : int, RandomState instance or None, default=None
        Seed of the order of rows and of the folds.

    Attributes
    ----------
    n_neighbors_ : int
        Number of neighbours in use.
    n_features_in_ : int
        Number of inputs.

    References
    ----------
    H. Papadopoulos, V. Vovk and A. Gammerman, "Regression Conformal Prediction with Nearest Neighbours", Journal of
    Artificial Intelligence Research 40, 2011.

    Examples
    --------
    >>> from reproduction.comparators.neighbours import ConformalNeighbours
    >>> X, y = [[0.0], [1.0], [2.2], [3.7], [5.5], [8.0]], [0.0, 1.0, 1.5, 3.0, 2.0, 4.0]
    >>> model = ConformalNeighbours(2, scale_inputs=False, random_state=0).fit(X, y)
    >>> model.predict_interval([[1.5]], confidence_level=0.7).round(3)
    array([[0.588, 1.923]])
    """

    _parameter_constraints: dict = {  # noqa: RUF012 (scikit-learn's convention)
        "n_neighbors": [Interval(Integral, 1, None, closed="left"), None],
        "measure": [StrOptions({"normalised", "plain", "exponential"})],
        "gamma": [Interval(Real, 0, None, closed="neither")],
        "scale_inputs": ["boolean"],
        "random_state": ["random_state"],
    }

    def __init__(
        self,
        n_neighbors: int | None = None,
        *,
        measure: str = "normalised",
        gamma: float = 0.5,
        scale_inputs: bool = True,
        random_state: int | np.random.RandomState | None = None,
    ):
        self.n_neighbors = n_neighbors
        self.measure = measure
        self.gamma = gamma
        self.scale_inputs = scale_inputs
        self.random_state = random_state

    def _fit(self, X: Array, y: Array) -> None:
        if y.size < 2 or (self.n_neighbors is not None and self.n_neighbors >= y.size):
            raise ValueError(
                f"n_neighbors={self.n_neighbors} needs at least {(self.n_neighbors or 1) + 1} rows in X, got "
                f"n_samples={y.size}."
            )
        self._n_rows = y.size
        self._scaling = Scaling.standard(X) if self.scale_inputs else Scaling.none(X)
        random_state = check_random_state(self.random_state)
        # Rows are kept in the order that breaks ties, so that a stable sort breaks them.
        order = random_state.permutation(y.size + 1)
        self._rows_before_test = int(np.flatnonzero(order == y.size)[0])
        order = order[order != y.size]
        self._X, self._y = self._scaling.transform(X[order]), y[order]
        self.n_neighbors_ = (
            best_n_neighbors(self._X, self._y, random_state=random_state)
            if self.n_neighbors is None
            else int(self.n_neighbors)
        )
        self._training = neighbourhoods(self._X, self._y, self.n_neighbors_)

    def _predict(self, X: Array) -> Array:
        blocks = gen_batches(X.shape[0], max(1, BLOCK_ENTRIES // self._n_rows))
        return np.concatenate([self._nearest_to(self._distances(X[rows]))[0] for rows in blocks])

    def _distances(self, X: Array) -> Array:
        """Distances of test rows, unscaled, to training rows."""
        return _finite_distances(self._scaling.transform(X), self._X)

    def _nearest_to(self, distances: Array) -> tuple[Array, Array]:
        """Predictions of test rows at these distances, and the sums of their distances to the nearest, each (m,)."""
        near = nearest(distances, self.n_neighbors_)
        return self._y[near].mean(axis=1), np.take_along_axis(distances, near, axis=1).sum(axis=1)

    def _lines(self, X: Array) -> Lines:
        """Lines of the training rows; the test row may replace the farthest neighbour of a training row."""
        k, training = self.n_neighbors_, self._training
        distances = self._distances(X)
        centre, test_sum = self._nearest_to(distances)
        wins_ties = training.last >= self._rows_before_test
        joins = np.where(wins_ties, distances <= training.reach, distances < training.reach)
        a = self._y - np.where(joins, training.labels[:, 0], training.labels[:, 1]) / k
        b = np.where(joins, -1.0 / k, 0.0)
        sums = np.where(joins, training.distances[:, 0] + distances, training.distances[:, 1])
        lines = centred_lines(a, b, -centre, np.ones(centre.size))
        ratio = self._ratio(sums, test_sum[:, None])
        return Lines(centre, lines.offset * ratio, lines.slope * ratio)

    def _ratio(self, sums: Array, test_sum: Array) -> Array | float:
        """The denominator of the test row's score, divided by that of each training row."""
        if self.measure == "plain":
            return 1.0
        median = np.median(np.hstack([sums, test_sum]), axis=1, keepdims=True)
        median[median == 0.0] = np.inf
        if self.measure == "normalised":
            return (self.gamma + test_sum / median) / (self.gamma + sums / median)
        exponent = self.gamma * ((test_sum - sums) / median)
        return np.exp(np.clip(exponent, -LARGEST_EXPONENT, LARGEST_EXPONENT))
