"""Jackknife and jackknife+ (Barber, Candès, Ramdas and Tibshirani, 2021), in closed form."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from typing import Any

import numpy as np

from conformal_gp.types import Array, Rows
from reproduction.comparators.held_out import HeldOutRegressor, plus_intervals
from reproduction.comparators.order import scaled, upper_end


class _LeaveOneOut(HeldOutRegressor):
    """Every row is a fold."""

    def __init__(self, estimator: Any = None, *, gamma: float = np.inf, refit: bool = False):
        self.estimator = estimator
        self.gamma = gamma
        self.refit = refit

    def _folds(self, X: Array, y: Array) -> list[Rows]:
        return list(np.arange(y.size)[:, None])


class Jackknife(_LeaveOneOut):
    r"""Intervals around the prediction whose half-width is a quantile of the leave-one-out errors.

    With :math:`t_i` the absolute error of training row i under the model without it, the interval is

    .. math:: \mu(x) \pm t_{(r)}, \qquad r = \lceil (1 - \delta)(l + 1) \rceil,

    infinite when r > l. It usually covers well, but there is no guarantee.

    Parameters
    ----------
    estimator : regressor or None, default=None
        A :class:`~conformal_gp.ConformalGPRegressor` with ``tuning`` "train", "fixed" or "holdout"; with ``refit`` any
        regressor with ``predict(X, return_std=True)``. None is ``ConformalGPRegressor(mean="linear",
        tuning="train", length_scales="one", random_state=0)``.
    gamma : float in [1, inf], default=np.inf
        Root of the predicted variance by which errors are divided. 2 divides by the standard deviation, ``np.inf``
        does not divide.
    refit : bool, default=False
        Whether to fit again without each row. Otherwise the models without a row follow in closed form from the fit to
        all rows. They keep its kernel, noise and scaling of the inputs, and with ``tuning="train"`` its mean function.

    Attributes
    ----------
    estimator_ : regressor
        The Gaussian process, fitted to all rows.
    scores_ : ndarray of shape (n_samples,)
        Leave-one-out errors, divided as ``gamma`` says.

    Examples
    --------
    >>> from conformal_gp import ConformalGPRegressor
    >>> from reproduction.comparators import Jackknife
    >>> base = ConformalGPRegressor("se", tuning="fixed", noise_variance=0.1, mean="zero", scale_inputs=False)
    >>> model = Jackknife(base).fit([[0.0], [1.0], [2.0]], [0.0, 1.0, 0.0])
    >>> model.scores_.round(3)
    array([0.695, 1.   , 0.695])
    >>> model.predict_interval([[1.0]], confidence_level=[0.5, 0.75, 0.9]).round(2)
    array([[[ 0.11, -0.2 ,  -inf],
            [ 1.5 ,  1.8 ,   inf]]])
    """

    def _block_intervals(self, X: Array, levels: Sequence[Fraction]) -> Array:
        mean, std = self.estimator_.predict(X, return_std=True)
        half = scaled(upper_end(self.scores_, levels), self._scale(std)[:, None])
        return np.stack([mean[:, None] - half, mean[:, None] + half], axis=1)


class JackknifePlus(_LeaveOneOut):
    r"""Intervals from leave-one-out errors and leave-one-out predictions.

    With :math:`m_{-i}` the prediction of the model without row i, and :math:`t_i` its absolute error on row i, the
    interval goes from the :math:`\lfloor \delta (l + 1) \rfloor`-th smallest :math:`m_{-i}(x) - t_i` to the
    :math:`\lceil (1 - \delta)(l + 1) \rceil`-th smallest :math:`m_{-i}(x) + t_i`. An end is infinite where its rank is
    0 or more than l. For exchangeable rows and ``refit=True`` the interval contains a new label with probability at
    least :math:`1 - 2 \delta`, and usually about :math:`1 - \delta`.

    Parameters
    ----------
    estimator, gamma, refit
        As in :class:`Jackknife`. The guarantee also holds for ``tuning="fixed"`` with ``scale_inputs=False``.

    Attributes
    ----------
    estimator_, scores_
        As in :class:`Jackknife`.

    References
    ----------
    R. F. Barber, E. J. Candès, A. Ramdas, R. J. Tibshirani, "Predictive inference with the jackknife+", Annals of
    Statistics 49, 2021.

    Examples
    --------
    >>> from conformal_gp import ConformalGPRegressor
    >>> from reproduction.comparators import JackknifePlus
    >>> base = ConformalGPRegressor("se", tuning="fixed", noise_variance=0.1, mean="zero", scale_inputs=False)
    >>> model = JackknifePlus(base).fit([[0.0], [1.0], [2.0]], [0.0, 1.0, 0.0])
    >>> model.predict_interval([[1.0]], confidence_level=[0.5, 0.75, 0.9]).round(2)
    array([[[ 0.17, -1.  ,  -inf],
            [ 1.56,  1.56,   inf]]])
    """

    def _block_intervals(self, X: Array, levels: Sequence[Fraction]) -> Array:
        return plus_intervals(*self._row_intervals(X), levels)
