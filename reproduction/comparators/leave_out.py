r"""A Gaussian process without some of its training rows: from one fit, or from one fit for each fold.

With :math:`P` the inverse covariance matrix of the l training labels and :math:`\alpha = P y` (see
:mod:`conformal_gp.gp.posterior`), the labels of a fold S, given all other rows, have

.. math:: \text{residuals } R_S = P_{SS}^{-1} \alpha_S, \qquad \text{covariance } P_{SS}^{-1},

and for a test row with weights v, mean μ and variance s, mean and variance without the fold are

.. math:: \mu - v_S' R_S, \qquad s + v_S' P_{SS}^{-1} v_S .

Kernel, noise and scaling of the inputs are those of the fit to all rows. So are the coefficients of the mean with
``tuning="train"``. With ``tuning="fixed"`` or "holdout" they have a flat prior, and are estimated without the fold.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any

import numpy as np
from scipy.linalg import LinAlgError, cholesky, solve_triangular
from sklearn.base import clone

from conformal_gp.predictors.single import SinglePredictor
from conformal_gp.types import Array, Rows

# Smallest squared pivot of a block of P that is scaled to a unit diagonal. Below it the rows of the block alone
# determine a coefficient of the mean; gp/posterior.py has the same rule for single rows.
_SMALLEST_PIVOT = 1e-10


class LeftOut(ABC):
    """Predictions with each fold of the training rows left out.

    Attributes
    ----------
    fold : ndarray of shape (l,)
        Number of each training row's fold.
    residual : ndarray of shape (l,)
        Label of each row minus its mean without the row's fold; infinite where the other rows do not determine the
        mean.
    std : ndarray of shape (l,)
        Standard deviation of each label without the row's fold.
    """

    fold: Rows
    residual: Array
    std: Array

    @abstractmethod
    def predict(self, X: Array) -> tuple[Array, Array]:
        """Means and standard deviations of the labels of m test rows without each fold, each (m, folds)."""


class ClosedForm(LeftOut):
    """Predictions without each fold in closed form, from the fit to all rows.

    Parameters
    ----------
    predictor : SinglePredictor
        The predictor of a fitted regressor.
    folds : sequence of ndarray of int
        Rows of each fold. Each training row is in one fold.
    """

    def __init__(self, predictor: SinglePredictor, folds: Sequence[Rows]):
        self._predictor = predictor
        self._folds = folds
        posterior = predictor.posterior
        self.fold = fold_of_rows(folds)
        self.residual = np.full(self.fold.size, np.inf)
        self.std = np.ones(self.fold.size)
        self._roots: list[Array | None] = []
        for rows in folds:
            root = _inverse_root(posterior.precision(rows))
            self._roots.append(root)
            if root is not None:
                self.residual[rows] = root.T @ (root @ posterior.alpha[rows])
                self.std[rows] = np.sqrt(np.einsum("ij,ij->j", root, root))

    def predict(self, X: Array) -> tuple[Array, Array]:
        """See LeftOut."""
        blocks = self._predictor.map_blocks(lambda rows: self._predict(X[rows]), np.arange(X.shape[0]))
        mean, variance = (np.concatenate(part) for part in zip(*blocks, strict=True))
        return mean, np.sqrt(variance)

    def _predict(self, X: Array) -> tuple[Array, Array]:
        weights, mean, variance, _ = self._predictor.posterior.predict(self._predictor.inputs.new(X))
        means, variances = (np.tile(part[:, None], len(self._folds)) for part in (mean, variance))
        for j, (rows, root) in enumerate(zip(self._folds, self._roots, strict=True)):
            if root is not None:
                means[:, j] -= weights[:, rows] @ self.residual[rows]
                variances[:, j] += np.sum((weights[:, rows] @ root.T) ** 2, axis=1)
        return means, variances


class Refits(LeftOut):
    """Predictions without each fold by a fit to the other folds.

    Parameters
    ----------
    estimator : regressor with ``predict(X, return_std=True)``
        It is cloned for each fit.
    X : ndarray of shape (l, d)
        Training inputs.
    y : ndarray of shape (l,)
        Training labels.
    folds : sequence of ndarray of int
        Rows of each fold. Each training row is in one fold.
    """

    def __init__(self, estimator: Any, X: Array, y: Array, folds: Sequence[Rows]):
        self.fold = fold_of_rows(folds)
        self.residual, self.std = np.empty_like(y), np.empty_like(y)
        self._estimators = []
        for rows in folds:
            others = np.setdiff1d(np.arange(y.size), rows)
            model = clone(estimator).fit(X[others], y[others])
            mean, self.std[rows] = model.predict(X[rows], return_std=True)
            self.residual[rows] = y[rows] - mean
            self._estimators.append(model)

    def predict(self, X: Array) -> tuple[Array, Array]:
        """See LeftOut."""
        predictions = [model.predict(X, return_std=True) for model in self._estimators]
        means, stds = (np.stack(part, axis=1) for part in zip(*predictions, strict=True))
        return means, stds


def fold_of_rows(folds: Sequence[Rows]) -> Rows:
    """Number of the fold that each row is in.

    >>> fold_of_rows([np.array([0, 2]), np.array([1, 3, 4])])
    array([0, 1, 0, 1, 1])
    """
    fold = np.empty(sum(rows.size for rows in folds), dtype=np.int64)
    for number, rows in enumerate(folds):
        fold[rows] = number
    return fold


def _inverse_root(block: Array) -> Array | None:
    """L^-1 with block^-1 = L^-T L^-1; None where the block is numerically singular."""
    scale = np.sqrt(np.diagonal(block))
    if not scale.all():
        return None
    try:
        L = cholesky(block / np.outer(scale, scale), lower=True)
    except LinAlgError:
        return None
    if np.diagonal(L).min() ** 2 < _SMALLEST_PIVOT:
        return None
    return solve_triangular(L, np.diag(1.0 / scale), lower=True)
