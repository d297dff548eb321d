"""Methods that fit a Gaussian process to one part of the rows and calibrate it on the other."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from fractions import Fraction
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import clone
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_consistent_length, column_or_1d

from conformal_gp.arrays import Array, Mask
from conformal_gp.conformal.levels import read_levels
from reproduction.comparators.base import IntervalRegressor, lower_end, scaled, upper_end

CALIBRATION_SHARE = 0.25
"""Share of the rows that calibrate, as in the paper."""


class SplitRegressor(IntervalRegressor):
    """A Gaussian process fitted to one part of the rows and calibrated on the other.

    Where predictions are already known, :meth:`calibrate` and :meth:`intervals` need neither fit nor ``estimator``.

    Parameters
    ----------
    estimator : regressor with ``predict(X, return_std=True)``, or None, default=None
        Its standard deviations are those of new labels.
    calibration_size : float in (0, 1), default=0.25
        Share of the rows held out for calibration.
    random_state : int, RandomState instance or None, default=None
        Seed of the split.
    """

    def __init__(
        self,
        estimator: Any = None,
        *,
        calibration_size: float = CALIBRATION_SHARE,
        random_state: int | np.random.RandomState | None = None,
    ):
        self.estimator = estimator
        self.calibration_size = calibration_size
        self.random_state = random_state

    def _fit(self, X: Array, y: Array) -> None:
        held_out = calibration_rows(y.size, self.calibration_size, self.random_state)
        self.estimator_ = clone(self.estimator).fit(X[~held_out], y[~held_out])
        self.calibrate(*self.estimator_.predict(X[held_out], return_std=True), y[held_out])

    def _predict(self, X: Array) -> Array:
        return np.asarray(self.estimator_.predict(X))

    def _intervals(self, X: Array, levels: Sequence[Fraction]) -> Array:
        return self._ends(*self.estimator_.predict(X, return_std=True), levels)

    def calibrate(self, mean: ArrayLike, std: ArrayLike, y: ArrayLike) -> Self:
        """Calibrate on rows whose predicted means, standard deviations and labels are known, each (q,).

        >>> SplitConformal().calibrate([0.0, 0.0, 0.0], [1.0, 1.0, 1.0], [-1.0, 0.5, 2.0]).scores_
        array([1. , 0.5, 2. ])
        """
        means, stds, labels = (column_or_1d(part, dtype=np.float64) for part in (mean, std, y))
        check_consistent_length(means, stds, labels)
        if not (stds > 0.0).all():
            raise ValueError(f"std must be positive in every calibration row, got {stds.min():g}.")
        self._calibrate(means, stds, labels)
        return self

    def intervals(self, mean: ArrayLike, std: ArrayLike, confidence_level: float | ArrayLike = 0.95) -> Array:
        """Intervals of test rows whose predicted means and standard deviations are known.

        >>> method = SplitConformal().calibrate([0.0, 0.0, 0.0], [1.0, 1.0, 1.0], [-1.0, 0.5, 2.0])
        >>> method.intervals([10.0], [3.0], confidence_level=0.5)
        array([[ 7., 13.]])
        """
        levels, single = read_levels(confidence_level)
        ends = self._ends(np.asarray(mean, dtype=np.float64), np.asarray(std, dtype=np.float64), levels)
        return ends[:, :, 0] if single else ends

    @abstractmethod
    def _calibrate(self, mean: Array, std: Array, y: Array) -> None:
        """Learn from calibration rows."""

    @abstractmethod
    def _ends(self, mean: Array, std: Array, levels: Sequence[Fraction]) -> Array:
        """Intervals of test rows with these predictions, (m, 2, levels)."""


def calibration_rows(n_rows: int, share: float, random_state: int | np.random.RandomState | None) -> Mask:
    """Mask of rows held out for calibration, drawn at random: ``round(share * n_rows)`` of them, at least one."""
    held_out = min(max(round(share * n_rows), 1), n_rows - 1)
    mask = np.zeros(n_rows, dtype=bool)
    mask[check_random_state(random_state).permutation(n_rows)[:held_out]] = True
    return mask


class SplitConformal(SplitRegressor):
    r"""Split (inductive) conformal prediction (Papadopoulos et al., ECML 2002) with normalised errors.

    With scores :math:`t_j = |y_j - \mu_j| / s_j^{1/\gamma}` of the q calibration rows, the interval is

    .. math:: \mu(x) \pm t_{(r)}\, s(x)^{1/\gamma}, \qquad r = \lceil (1 - \delta)(q + 1) \rceil,

    infinite when r > q. For exchangeable rows it contains a new label with probability at least :math:`1 - \delta`.

    Parameters
    ----------
    estimator, calibration_size, random_state
        See :class:`SplitRegressor`.
    gamma : float in [1, inf], default=2.0
        Normalisation exponent: 2 divides by the standard deviation, ``np.inf`` does not divide.

    Examples
    --------
    >>> model = SplitConformal().calibrate(np.zeros(19), np.ones(19), np.arange(1, 20))
    >>> model.intervals([0.0, 0.0], [1.0, 2.0], confidence_level=0.9)
    array([[-18.,  18.],
           [-36.,  36.]])
    """

    def __init__(
        self,
        estimator: Any = None,
        *,
        calibration_size: float = CALIBRATION_SHARE,
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


class SplitPredictiveSystem(SplitRegressor):
    r"""Split conformal predictive system (Vovk et al., Neurocomputing 397, 2020): GPR-RC in the paper.

    With scores :math:`r_j = (y_j - \mu_j) / \sqrt{s_j}` of the q calibration rows, the labels
    :math:`z_{(j)} = \mu(x) + \sqrt{s(x)}\, r_{(j)}` divide the line into q + 1 parts of equal probability. The interval
    is

    .. math:: [z_{(k)}, z_{(q + 1 - k)}], \qquad k = \lfloor \delta (q + 1) / 2 \rfloor,

    infinite when k = 0. For exchangeable rows it misses with probability at most :math:`2 k / (q + 1) \le \delta`,
    equally on both sides.

    Examples
    --------
    >>> model = SplitPredictiveSystem().calibrate(np.zeros(39), np.ones(39), np.arange(-19, 20))
    >>> model.intervals([0.0], [1.0], confidence_level=[0.9, 0.95, 0.99])
    array([[[-18., -19., -inf],
            [ 18.,  19.,  inf]]])
    """

    def _calibrate(self, mean: Array, std: Array, y: Array) -> None:
        self.scores_ = (y - mean) / std

    def _ends(self, mean: Array, std: Array, levels: Sequence[Fraction]) -> Array:
        sides = [(1 + level) / 2 for level in levels]  # δ/2 on either side
        ends = np.stack([lower_end(self.scores_, sides), upper_end(self.scores_, sides)])
        return mean[:, None, None] + scaled(ends, std[:, None, None])
