"""Cross-conformal prediction (Vovk, 2015) and CV+ (Barber, Candès, Ramdas and Tibshirani, 2021), in closed form."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from fractions import Fraction
from numbers import Integral
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.model_selection import KFold, check_cv
from sklearn.utils._param_validation import HasMethods, Interval, StrOptions
from sklearn.utils.validation import check_is_fitted

from conformal_gp.comparators.held_out import HeldOutRegressor, Rows, plus_intervals
from conformal_gp.conformal.levels import rank, read_levels
from conformal_gp.validation import check_inputs

Array = NDArray[np.float64]


class CrossConformal(HeldOutRegressor):
    r"""Intervals from errors and predictions of models that leave out a fold each.

    With :math:`m_i, s_i` the mean and standard deviation of a label under the model without row i's fold, and
    :math:`t_i` the score :math:`|y_i - m_i| / s_i^{2/\gamma}` of row i, a label y of a new row has the p-value

    .. math:: p(y) = \frac{1 + \#\{i : |y - m_i(x)| / s_i(x)^{2/\gamma} \le t_i\}}{l + 1},

    and the region holds the labels with :math:`p(y) > \delta`. There is no exact guarantee: for exchangeable rows and
    models fitted anew, a label is missed with probability at most :math:`2 \delta` and a little more (Barber et al.,
    2021), and usually about :math:`\delta`.

    Parameters
    ----------
    estimator : regressor or None, default=None
        A :class:`~conformal_gp.ConformalGPRegressor` with ``tuning`` "train", "fixed" or "holdout"; with ``refit`` any
        regressor with ``predict(X, return_std=True)``. None is ``ConformalGPRegressor(tuning="train",
        random_state=0)``.
    cv : int, splitter or iterable of splits, default=10
        Folds; an integer is a number of folds drawn at random.
    method : {"cross", "plus"}, default="cross"
        "cross" is the region above, or its convex hull. "plus" is CV+, an interval that contains it: ends are order
        statistics of :math:`m_i \pm t_i s_i^{2/\gamma}`, as in :class:`JackknifePlus`.
    gamma : float in [1, inf], default=2.0
        Root of the predicted variance by which errors are divided. 2 divides by the standard deviation, ``np.inf``
        does not divide.
    refit : bool, default=False
        Whether to fit anew without each fold. Otherwise the models without folds follow from the one fit in closed
        form, with its kernel, noise and scaling of the inputs, and with ``tuning="train"`` its mean function too.
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
    >>> from conformal_gp.comparators import CrossConformal
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

    def predict_set(self, X: ArrayLike, confidence_level: float = 0.95) -> list[Array]:
        r"""Exact regions of the "cross" method, holes and all.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Test inputs.
        confidence_level : float, default=0.95
            One level strictly between 0 and 1.

        Returns
        -------
        regions : list of ndarrays of shape (n_pieces, 2)
            For each row its region as sorted, disjoint, closed intervals; none where no label has a p-value above
            :math:`\delta`.
        """
        check_is_fitted(self)
        inputs = check_inputs(self, X, reset=False)
        levels, single = read_levels(confidence_level)
        if not single:
            raise ValueError(f"confidence_level must be one number for predict_set, got {confidence_level!r}.")
        k = rank(levels[0], self.scores_.size)
        labels, depth = sweep(*self._row_intervals(inputs))
        return [pieces(*row, k) for row in zip(labels, depth, strict=True)]


def sweep(lower: Array, upper: Array) -> tuple[Array, Rows]:
    """Ends of l closed intervals in order, and in how many intervals one is after each, both (m, 2 l).

    Of equal ends the lower come first: closed intervals that touch share a point.
    """
    ends = np.concatenate([lower, upper], axis=1)
    order = np.argsort(ends, axis=1, kind="stable")
    steps = np.where(order < lower.shape[1], 1, -1)
    return np.take_along_axis(ends, order, axis=1), np.cumsum(steps, axis=1)


def hull(labels: Array, depth: Rows, k: int) -> Array:
    """Convex hull of what is inside at least k intervals, (m, 2); of what is deepest where there is no such label."""
    if k == 0:
        return np.tile([-np.inf, np.inf], (labels.shape[0], 1))
    inside = depth >= np.minimum(k, depth.max(axis=1))[:, None]
    first = np.argmax(inside, axis=1)
    last = inside.shape[1] - np.argmax(inside[:, ::-1], axis=1)  # the end that leaves the last stretch
    rows = np.arange(labels.shape[0])
    return np.stack([labels[rows, first], labels[rows, last]], axis=1)


def pieces(labels: Array, depth: Rows, k: int) -> Array:
    """What is inside at least k intervals, (pieces, 2)."""
    if k == 0:
        return np.array([[-np.inf, np.inf]])
    before = np.concatenate([[0], depth[:-1]])
    return np.stack([labels[(before < k) & (depth >= k)], labels[(before >= k) & (depth < k)]], axis=1)
