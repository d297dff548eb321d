"""Cross-conformal prediction (Vovk, 2015) and CV+ (Barber, Candès, Ramdas and Tibshirani, 2021), in closed form."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from fractions import Fraction
from numbers import Integral
from typing import Any

import numpy as np
from sklearn.model_selection import KFold, check_cv

from conformal_gp.conformal.levels import rank
from conformal_gp.constraints import HasMethods, Interval, StrOptions
from conformal_gp.types import Array, Rows
from reproduction.comparators.base import RegionRegressor
from reproduction.comparators.held_out import HeldOutRegressor, plus_intervals


class CrossConformal(HeldOutRegressor, RegionRegressor):
    r"""Intervals from the errors and predictions of models that each leave out a fold.

    With :math:`\mu_i, s_i` the mean and variance of a label under the model without row i's fold, and
    :math:`t_i` the score :math:`|y_i - \mu_i| / s_i^{1/\gamma}` of row i, a candidate label y has the p-value

    .. math:: p(y) = \frac{1 + \#\{i : |y - \mu_i(x)| / s_i(x)^{1/\gamma} \le t_i\}}{l + 1},

    and the region consists of the labels with :math:`p(y) > \delta`. There is no exact guarantee. For exchangeable rows
    and ``refit=True``, a label is missed with probability at most slightly more than :math:`2 \delta` (Barber et al.,
    2021), and usually about :math:`\delta`.

    Parameters
    ----------
    estimator : regressor or None, default=None
        As in :class:`Jackknife`.
    cv : int, splitter or iterable of splits, default=10
        Folds; an integer is a number of folds drawn at random.
    method : {"cross", "plus"}, default="cross"
        "cross" is the region above, whose convex hull is the interval. "plus" is CV+, an interval that contains it: its
        ends are order statistics of :math:`\mu_i \pm t_i s_i^{1/\gamma}`, as in :class:`JackknifePlus`.
    gamma : float in [1, inf], default=2.0
        As in :class:`Jackknife`.
    refit : bool, default=False
        As in :class:`Jackknife`, for each fold in place of each row.
    random_state : int, RandomState instance or None, default=None
        Seed of the folds.

    Attributes
    ----------
    estimator_ : regressor
        The Gaussian process, fitted to all rows.
    scores_ : ndarray of shape (n_samples,)
        Scores of the training rows.

    References
    ----------
    V. Vovk, "Cross-conformal predictors", Annals of Mathematics and Artificial Intelligence 74, 2015.

    R. F. Barber, E. J. Candès, A. Ramdas, R. J. Tibshirani, "Predictive inference with the jackknife+", Annals of
    Statistics 49, 2021.

    Examples
    --------
    >>> import numpy as np
    >>> from conformal_gp import ConformalGPRegressor
    >>> from reproduction.comparators import CrossConformal
    >>> X = np.linspace(0, 3, 40)[:, None]
    >>> y = np.sin(2 * X[:, 0]) + 0.1 * np.cos(50 * X[:, 0])
    >>> base = ConformalGPRegressor("se", tuning="fixed", noise_variance=0.01, scale_inputs=False)
    >>> model = CrossConformal(base, cv=5, random_state=0).fit(X, y)
    >>> model.predict_interval([[1.0], [2.0]], confidence_level=0.9).round(2)
    array([[ 0.78,  1.03],
           [-0.88, -0.63]])
    """

    _parameter_constraints: dict = {  # noqa: RUF012 (scikit-learn's convention)
        **HeldOutRegressor._parameter_constraints,
        "cv": [Interval(Integral, 2, None, closed="left"), HasMethods(["split"]), Iterable],
        "method": [StrOptions({"cross", "plus"})],
        "random_state": ["random_state"],
    }

    def __init__(
        self,
        estimator: Any = None,
        *,
        cv: Any = 10,
        method: str = "cross",
        gamma: float = 2.0,
        refit: bool = False,
        random_state: int | np.random.RandomState | None = None,
    ):
        self.estimator = estimator
        self.cv = cv
        self.method = method
        self.gamma = gamma
        self.refit = refit
        self.random_state = random_state

    def _folds(self, X: Array, y: Array) -> list[Rows]:
        random = isinstance(self.cv, Integral)
        splitter = KFold(self.cv, shuffle=True, random_state=self.random_state) if random else check_cv(self.cv)
        folds = [np.asarray(held_out) for _, held_out in splitter.split(X, y)]
        if not np.array_equal(np.sort(np.concatenate(folds)), np.arange(y.size)):
            raise ValueError(f"cv must hold out each of the {y.size} rows exactly once, got {self.cv!r}.")
        return folds

    def _block_intervals(self, X: Array, levels: Sequence[Fraction]) -> Array:
        lower, upper = self._row_intervals(X)
        if self.method == "plus":
            return plus_intervals(lower, upper, levels)
        labels, depth = sweep(lower, upper)
        hulls = [hull(labels, depth, rank(level, self.scores_.size)) for level in levels]
        return np.stack(hulls, axis=-1)

    def _regions(self, X: Array, level: Fraction) -> list[Array]:
        k = rank(level, self.scores_.size)
        return [pieces(*row, k) for row in zip(*sweep(*self._row_intervals(X)), strict=True)]


def sweep(lower: Array, upper: Array) -> tuple[Array, Rows]:
    """The sorted ends of l closed intervals, and the number of intervals that hold the points after each, (m, 2 l).

    Of equal ends the lower come first, because closed intervals that touch share a point.
    """
    ends = np.concatenate([lower, upper], axis=1)
    order = np.argsort(ends, axis=1, kind="stable")
    steps = np.where(order < lower.shape[1], 1, -1)
    return np.take_along_axis(ends, order, axis=1), np.cumsum(steps, axis=1)


def hull(labels: Array, depth: Rows, k: int) -> Array:
    """Convex hull of the labels in at least k intervals, (m, 2).

    Where there are none, it is that of the labels in the largest number of intervals.
    """
    if k == 0:
        return np.tile([-np.inf, np.inf], (labels.shape[0], 1))
    inside = depth >= np.minimum(k, depth.max(axis=1))[:, None]
    first = np.argmax(inside, axis=1)
    last = inside.shape[1] - np.argmax(inside[:, ::-1], axis=1)  # the upper end of the last piece
    rows = np.arange(labels.shape[0])
    return np.stack([labels[rows, first], labels[rows, last]], axis=1)


def pieces(labels: Array, depth: Rows, k: int) -> Array:
    """The labels in at least k intervals, (pieces, 2)."""
    if k == 0:
        return np.array([[-np.inf, np.inf]])
    before = np.concatenate([[0], depth[:-1]])
    return np.stack([labels[(before < k) & (depth >= k)], labels[(before >= k) & (depth < k)]], axis=1)
