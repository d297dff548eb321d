"""Methods that score every training row by a model fitted without it."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from fractions import Fraction
from numbers import Real
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.utils import gen_batches

from conformal_gp.constraints import HasMethods, Interval
from conformal_gp.predictors.single import SinglePredictor
from conformal_gp.regressor import ConformalGPRegressor
from conformal_gp.types import Array, Rows
from reproduction.comparators.base import IntervalRegressor
from reproduction.comparators.leave_out import ClosedForm, LeftOut, Refits
from reproduction.comparators.order import lower_end, scaled, upper_end

# Test rows are taken in blocks of this many pairs with training rows.
BLOCK_ENTRIES = 2**20


class HeldOutRegressor(IntervalRegressor):
    r"""A Gaussian process fitted to all training rows, and to all but each fold of them.

    With :math:`\mu_i, s_i` the mean and variance of row i under the model without its fold, the score of the
    row is :math:`t_i = |y_i - \mu_i| / s_i^{1/\gamma}`. Subclasses define the folds, and the intervals that follow.
    :class:`~reproduction.comparators.Jackknife` describes the parameters, and
    :mod:`reproduction.comparators.leave_out` the closed form.
    """

    _parameter_constraints: dict = {  # noqa: RUF012 (scikit-learn's convention)
        "estimator": [HasMethods(["fit", "predict"]), None],
        "gamma": [Interval(Real, 1, None, closed="both")],
        "refit": ["boolean"],
    }

    estimator: Any
    gamma: float
    refit: bool

    def _fit(self, X: Array, y: Array) -> None:
        folds = self._folds(X, y)
        default = ConformalGPRegressor(mean="linear", tuning="train", length_scales="one", random_state=0)
        estimator = default if self.estimator is None else self.estimator
        self.estimator_ = clone(estimator).fit(X, y)
        self.left_out_: LeftOut = (
            Refits(estimator, X, y, folds) if self.refit else ClosedForm(_single_predictor(self.estimator_), folds)
        )
        if not self.left_out_.std.all():
            raise ValueError("estimator must predict positive standard deviations, got 0 for a row left out.")
        self.scores_ = np.abs(self.left_out_.residual) / self._scale(self.left_out_.std)

    def _predict(self, X: Array) -> Array:
        return np.asarray(self.estimator_.predict(X))

    def _intervals(self, X: Array, levels: Sequence[Fraction]) -> Array:
        blocks = gen_batches(X.shape[0], max(1, BLOCK_ENTRIES // self.scores_.size))
        return np.concatenate([self._block_intervals(X[block], levels) for block in blocks])

    def _row_intervals(self, X: Array) -> tuple[Array, Array]:
        """Ends, (m, l), of the labels that score no more than row i under the model without its fold."""
        mean, std = (part[:, self.left_out_.fold] for part in self.left_out_.predict(X))
        half = scaled(self.scores_, self._scale(std))
        return mean - half, mean + half

    def _scale(self, std: Array) -> Array:
        return std ** (2.0 / self.gamma)

    @abstractmethod
    def _folds(self, X: Array, y: Array) -> list[Rows]:
        """Rows of each fold."""

    @abstractmethod
    def _block_intervals(self, X: Array, levels: Sequence[Fraction]) -> Array:
        """Intervals of a block of test rows, (m, 2, levels)."""


def plus_intervals(lower: Array, upper: Array, levels: Sequence[Fraction]) -> Array:
    """Intervals of jackknife+ and CV+: the order statistics of the rows' lower and upper ends, (m, 2, levels)."""
    return np.stack([lower_end(lower, levels), upper_end(upper, levels)], axis=1)


def _single_predictor(estimator: Any) -> SinglePredictor:
    predictor = getattr(estimator, "_predictor", None)
    if not isinstance(predictor, SinglePredictor):
        raise ValueError(
            "estimator must be a ConformalGPRegressor with tuning='train', 'fixed' or 'holdout', unless refit=True; "
            f"got {estimator!r}."
        )
    return predictor
