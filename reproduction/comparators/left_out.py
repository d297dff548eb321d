r"""Jackknife, jackknife+ and cross-conformal prediction: intervals from models without each row, or without its fold.

With :math:`P` the inverse covariance matrix of the l training labels and :math:`\alpha = P y` (see
:mod:`conformal_gp.gp.posterior`), the labels of a fold S, given all other rows, have

.. math:: \text{residuals } R_S = P_{SS}^{-1} \alpha_S, \qquad \text{covariance } P_{SS}^{-1},

and for a test row with weights v, mean μ and variance s, mean and variance without the fold are

.. math:: \mu - v_S' R_S, \qquad s + v_S' P_{SS}^{-1} v_S .

Kernel, noise and scaling of the inputs are those of the fit to all rows. So are the coefficients of the mean with
``tuning="train"``. With ``tuning="fixed"`` or "holdout" they have a flat prior, and are estimated without the fold.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from fractions import Fraction
from typing import Any

import numpy as np
from scipy.linalg import LinAlgError, cholesky, solve_triangular
from sklearn.base import clone
from sklearn.model_selection import KFold

from conformal_gp.arrays import Array, Indices
from conformal_gp.conformal.levels import rank
from conformal_gp.rows import Rows
from reproduction.comparators.base import IntervalRegressor, lower_end, scaled, upper_end

# Smallest squared pivot of a block of P that is scaled to a unit diagonal. Below it the rows of the block alone
# determine a coefficient of the mean; gp/posterior.py has the same rule for single rows.
SMALLEST_PIVOT = 1e-10


class LeftOutRegressor(IntervalRegressor):
    r"""A Gaussian process fitted to all training rows, and in closed form to all but each fold of them.

    With :math:`\mu_i, s_i` the mean and variance of row i under the model without its fold, the score of the row is
    :math:`t_i = |y_i - \mu_i| / s_i^{1/\gamma}`. Subclasses define the folds, and the intervals that follow.

    Parameters
    ----------
    estimator : ConformalGPRegressor
        With ``tuning`` "train", "fixed" or "holdout".
    gamma : float in [1, inf]
        Normalisation exponent: 2 divides by the standard deviation, ``np.inf`` does not divide.

    Attributes
    ----------
    estimator_ : ConformalGPRegressor
        The Gaussian process, fitted to all rows.
    residuals_, stds_ : ndarray of shape (l,)
        Label of each row minus its mean without the row's fold, infinite where the other rows do not determine the
        mean; standard deviation of the label without the fold.
    scores_ : ndarray of shape (l,)
        Scores of the training rows.
    """

    estimator: Any
    gamma: float

    def _fit(self, X: Array, y: Array) -> None:
        self.estimator_ = clone(self.estimator).fit(X, y)
        self.residuals_, self.stds_ = np.full(y.size, np.inf), np.ones(y.size)
        self._fold = np.empty(y.size, dtype=np.int64)
        self._folds = [(rows, self._inverse_root(rows)) for rows in self._split(y.size)]
        posterior = self.estimator_._answers.model.posterior
        for number, (rows, root) in enumerate(self._folds):
            self._fold[rows] = number
            if root is not None:
                self.residuals_[rows] = root.T @ (root @ posterior.alpha[rows])
                self.stds_[rows] = np.sqrt(np.einsum("ij,ij->j", root, root))
        self.scores_ = np.abs(self.residuals_) / self._scale(self.stds_)

    def _inverse_root(self, rows: Indices) -> Array | None:
        """L^-1 with L L' the block of P among some rows; None where the block is numerically singular."""
        posterior = self.estimator_._answers.model.posterior
        block = posterior.columns(rows)[rows]
        scale = np.sqrt(posterior.diagonal[rows])  # 0 where a row alone determines a coefficient
        try:
            L = cholesky(block / np.outer(scale, scale), lower=True) if scale.all() else np.zeros((1, 1))
        except LinAlgError:
            return None
        if np.diagonal(L).min() ** 2 < SMALLEST_PIVOT:
            return None
        return solve_triangular(L, np.diag(1.0 / scale), lower=True)

    def _predict(self, X: Array) -> Array:
        return self.estimator_.predict(X)

    def predict_left_out(self, X: Array) -> tuple[Array, Array]:
        """Means and standard deviations of the labels of m test rows without each fold, each (m, folds)."""
        model = self.estimator_._answers.model
        new = model.posterior.predict(model.inputs.new(Rows(X)))
        means, variances = (np.tile(part[:, None], len(self._folds)) for part in (new.mean, new.variance))
        for number, (rows, root) in enumerate(self._folds):
            if root is not None:
                means[:, number] -= new.weights[:, rows] @ self.residuals_[rows]
                variances[:, number] += np.sum((new.weights[:, rows] @ root.T) ** 2, axis=1)
        return means, np.sqrt(variances)

    def _row_intervals(self, X: Array) -> tuple[Array, Array]:
        """Ends, (m, l), of the labels that score no more than row i under the model without its fold."""
        mean, std = (part[:, self._fold] for part in self.predict_left_out(X))
        half = scaled(self.scores_, self._scale(std))
        return mean - half, mean + half

    def _scale(self, std: Array) -> Array:
        return std ** (2.0 / self.gamma)

    @abstractmethod
    def _split(self, n_rows: int) -> list[Indices]:
        """Rows of each fold."""


class Jackknife(LeftOutRegressor):
    r"""Intervals :math:`\mu(x) \pm t_{(r)}` with r = ⌈(1 - δ)(l + 1)⌉, infinite when r > l; no guarantee.

    Examples
    --------
    >>> from conformal_gp import ConformalGPRegressor
    >>> base = ConformalGPRegressor("se", tuning="fixed", noise_variance=0.1, mean="zero", scale_inputs=False)
    >>> model = Jackknife(base).fit([[0.0], [1.0], [2.0]], [0.0, 1.0, 0.0])
    >>> model.scores_.round(3)
    array([0.695, 1.   , 0.695])
    >>> model.predict_interval([[1.0]], confidence_level=[0.5, 0.75, 0.9]).round(2)
    array([[[ 0.11, -0.2 ,  -inf],
            [ 1.5 ,  1.8 ,   inf]]])
    """

    def __init__(self, estimator: Any, *, gamma: float = np.inf):
        self.estimator = estimator
        self.gamma = gamma

    def _split(self, n_rows: int) -> list[Indices]:
        return list(np.arange(n_rows)[:, None])

    def _intervals(self, X: Array, levels: Sequence[Fraction]) -> Array:
        mean, std = self.estimator_.predict(X, return_std=True)
        half = scaled(upper_end(self.scores_, levels), self._scale(std)[:, None])
        return np.stack([mean[:, None] - half, mean[:, None] + half], axis=1)


class JackknifePlus(Jackknife):
    r"""Jackknife+ (Barber, Candès, Ramdas and Tibshirani, Annals of Statistics 49, 2021).

    With :math:`m_{-i}` the prediction of the model without row i, the interval goes from the
    :math:`\lfloor \delta (l + 1) \rfloor`-th smallest :math:`m_{-i}(x) - t_i` to the
    :math:`\lceil (1 - \delta)(l + 1) \rceil`-th smallest :math:`m_{-i}(x) + t_i`. If hyperparameters do not depend on
    the rows, it contains a new label with probability at least :math:`1 - 2 \delta`, and usually about
    :math:`1 - \delta`.

    Examples
    --------
    >>> from conformal_gp import ConformalGPRegressor
    >>> base = ConformalGPRegressor("se", tuning="fixed", noise_variance=0.1, mean="zero", scale_inputs=False)
    >>> model = JackknifePlus(base).fit([[0.0], [1.0], [2.0]], [0.0, 1.0, 0.0])
    >>> model.predict_interval([[1.0]], confidence_level=[0.5, 0.75, 0.9]).round(2)
    array([[[ 0.17, -1.  ,  -inf],
            [ 1.56,  1.56,   inf]]])
    """

    def _intervals(self, X: Array, levels: Sequence[Fraction]) -> Array:
        lower, upper = self._row_intervals(X)
        return np.stack([lower_end(lower, levels), upper_end(upper, levels)], axis=1)


class CrossConformal(LeftOutRegressor):
    r"""Cross-conformal prediction (Vovk, Annals of Mathematics and Artificial Intelligence 74, 2015).

    A candidate label y has the p-value

    .. math:: p(y) = \frac{1 + \#\{i : |y - \mu_i(x)| / s_i(x)^{1/\gamma} \le t_i\}}{l + 1},

    and the interval is the convex hull of the labels with :math:`p(y) > \delta`. There is no exact guarantee: a label
    is missed with probability at most slightly more than :math:`2 \delta`, and usually about :math:`\delta`.

    Parameters
    ----------
    estimator, gamma
        See :class:`LeftOutRegressor`.
    n_folds : int, default=10
        Folds, drawn at random.
    random_state : int, RandomState instance or None, default=None
        Seed of the folds.
    """

    def __init__(
        self,
        estimator: Any,
        *,
        gamma: float = 2.0,
        n_folds: int = 10,
        random_state: int | np.random.RandomState | None = None,
    ):
        self.estimator = estimator
        self.gamma = gamma
        self.n_folds = n_folds
        self.random_state = random_state

    def _split(self, n_rows: int) -> list[Indices]:
        folds = KFold(self.n_folds, shuffle=True, random_state=self.random_state)
        return [held_out for _, held_out in folds.split(np.empty(n_rows))]

    def _intervals(self, X: Array, levels: Sequence[Fraction]) -> Array:
        row_intervals = self._row_intervals(X)
        return np.stack([deep_hull(*row_intervals, rank(level, self.scores_.size)) for level in levels], axis=-1)


def deep_hull(lower: Array, upper: Array, k: int) -> Array:
    """Convex hull, (m, 2), of the labels in at least k of l closed intervals, given by their ends, each (m, l).

    Where there are none, it is that of the labels in the largest number of intervals.

    >>> deep_hull(np.array([[0.0, 1.0, 5.0]]), np.array([[2.0, 3.0, 6.0]]), 2)
    array([[1., 2.]])
    """
    if k == 0:
        return np.tile([-np.inf, np.inf], (lower.shape[0], 1))
    ends = np.concatenate([lower, upper], axis=1)
    order = np.argsort(ends, axis=1, kind="stable")  # of equal ends the lower come first: closed intervals touch
    labels = np.take_along_axis(ends, order, axis=1)
    depth = np.cumsum(np.where(order < lower.shape[1], 1, -1), axis=1)  # of the points after each end
    inside = depth >= np.minimum(k, depth.max(axis=1))[:, None]
    first = np.argmax(inside, axis=1)
    last = inside.shape[1] - np.argmax(inside[:, ::-1], axis=1)  # the upper end of the last piece
    rows = np.arange(labels.shape[0])
    return np.stack([labels[rows, first], labels[rows, last]], axis=1)
