"""Plain Gaussian process regression: quantiles of its predictive distribution."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from typing import Any

import numpy as np
from sklearn.base import clone

from conformal_gp.constraints import HasMethods
from conformal_gp.gp.error_bars import error_bars
from conformal_gp.regressor import ConformalGPRegressor
from conformal_gp.types import Array
from reproduction.comparators.base import IntervalRegressor


class GaussianIntervals(IntervalRegressor):
    r"""Central intervals of a Gaussian process's predictive distribution (GPR in the paper).

    .. math:: \mu(x) \pm \Phi^{-1}(1 - \delta/2)\, \sqrt{s(x)},

    with mean :math:`\mu` and variance s of a new label. Their coverage is right if the model is; otherwise there is no
    guarantee.

    Parameters
    ----------
    estimator : regressor with ``predict(X, return_std=True)``, or None, default=None
        Its standard deviations are those of new labels. None is ``ConformalGPRegressor(mean="linear",
        tuning="train", length_scales="one", random_state=0)``.

    Attributes
    ----------
    estimator_ : regressor
        The fitted Gaussian process.

    Examples
    --------
    >>> from conformal_gp import ConformalGPRegressor
    >>> from reproduction.comparators import GaussianIntervals
    >>> base = ConformalGPRegressor("se", tuning="fixed", noise_variance=0.1, mean="zero", scale_inputs=False)
    >>> model = GaussianIntervals(base).fit([[0.0], [1.0], [2.0]], [0.0, 1.0, 0.0])
    >>> model.predict_interval([[1.0], [3.0]], confidence_level=0.9).round(2)
    array([[ 0.1 ,  1.5 ],
           [-1.71,  1.05]])
    """

    _parameter_constraints: dict = {"estimator": [HasMethods(["fit", "predict"]), None]}  # noqa: RUF012

    def __init__(self, estimator: Any = None):
        self.estimator = estimator

    def _fit(self, X: Array, y: Array) -> None:
        default = ConformalGPRegressor(mean="linear", tuning="train", length_scales="one", random_state=0)
        self.estimator_ = clone(default if self.estimator is None else self.estimator).fit(X, y)

    def _predict(self, X: Array) -> Array:
        return np.asarray(self.estimator_.predict(X))

    def _intervals(self, X: Array, levels: Sequence[Fraction]) -> Array:
        mean, std = self.estimator_.predict(X, return_std=True)
        return error_bars(mean, std, levels)
