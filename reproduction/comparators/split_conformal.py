"""Split (inductive) conformal prediction with normalised errors."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from numbers import Real
from typing import Any

import numpy as np

from conformal_gp.constraints import Interval
from conformal_gp.types import Array
from reproduction.comparators.order import scaled, upper_end
from reproduction.comparators.split import SplitRegressor


class SplitConformal(SplitRegressor):
    r"""Intervals around the prediction whose half-width is a quantile of the errors on calibration rows.

    With scores :math:`t_j = |y_j - \mu_j| / s_j^{1/\gamma}` of the q calibration rows, the interval is

    .. math:: \mu(x) \pm t_{(r)}\, s(x)^{1/\gamma}, \qquad r = \lceil (1 - \delta)(q + 1) \rceil,

    infinite when r > q. For exchangeable rows it contains a new label with probability at least :math:`1 - \delta`.

    Parameters
    ----------
    estimator : regressor with ``predict(X, return_std=True)``, or None, default=None
        Its standard deviations are those of new labels. None is ``ConformalGPRegressor("se",
        mean="linear", tuning="train", length_scales="one")``.
    calibration_size : float in (0, 1), default=0.25
        Share of the rows held out for calibration.
    random_state : int, RandomState instance or None, default=None
        Seed of the split, and of the default estimator.
    gamma : float in [1, inf], default=2.0
        Root of the predicted variance by which errors are divided. 2 divides by the standard deviation, ``np.inf``
        does not divide.

    Attributes
    ----------
    estimator_ : regressor
        The Gaussian process, fitted to the rows that are not held out.
    scores_ : ndarray of shape (n_calibration,)
        Scores of the calibration rows.

    References
    ----------
    H. Papadopoulos, K. Proedrou, V. Vovk, A. Gammerman, "Inductive Confidence Machines for Regression", ECML 2002.

    Examples
    --------
    >>> import numpy as np
    >>> from reproduction.comparators import SplitConformal
    >>> model = SplitConformal().calibrate(np.zeros(19), np.ones(19), np.arange(1, 20))
    >>> model.intervals([0.0, 0.0], [1.0, 2.0], confidence_level=0.9)
    array([[-18.,  18.],
           [-36.,  36.]])
    """

    _parameter_constraints: dict = {  # noqa: RUF012 (scikit-learn's convention)
        **SplitRegressor._parameter_constraints,
        "gamma": [Interval(Real, 1, None, closed="both")],
    }

    def __init__(
        self,
        estimator: Any = None,
        *,
        calibration_size: float = 0.25,
        random_state: int | np.random.RandomState | None = None,
        gamma: float = 2.0,
    ):
        super().__init__(estimator, calibration_size=calibration_size, random_state=random_state)
        self.gamma = gamma

    def _calibrate(self, mean: Array, std: Array, y: Array) -> None:
        self.scores_ = np.abs(y - mean) / std ** (2.0 / self.gamma)

    def _ends(self, mean: Array, std: Array, levels: Sequence[Fraction]) -> Array:
        half = scaled(upper_end(self.scores_, levels), std[:, None] ** (2.0 / self.gamma))
        return np.stack([mean[:, None] - half, mean[:, None] + half], axis=1)
