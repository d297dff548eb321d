"""Standardised residuals against predictions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import ndtri

from conformal_gp.evaluation import leave_one_out
from conformal_gp.formatting import percent
from conformal_gp.plotting.frame import ORANGE, ink, limits_of, tint, vector
from conformal_gp.plotting.intervals import IntervalDisplay


class ResidualDisplay(IntervalDisplay):
    """Standardised residuals against predictions, with intervals in the same unit.

    If the Gaussian process is right, residuals over its standard deviations are standard normal everywhere, and the
    conformal interval of each row agrees with the shaded band, the interval of the standard GP. Errors of a good
    surrogate are thinner than dots in a picture of actual values; residuals show them.

    Parameters
    ----------
    y_true, prediction, intervals
        As in :class:`IntervalDisplay`.
    std : array-like of shape (n_samples,)
        Standard deviations of the Gaussian process.
    **described
        Other parameters of :class:`IntervalDisplay`. Rows that are not covered are named, if there are at most 12.

    Attributes
    ----------
    residual : ndarray of shape (n_samples,)
        Standardised residuals.

    Examples
    --------
    >>> from conformal_gp.plotting import ResidualDisplay
    >>> ends = [[0, 2], [1, 3], [2, 4]]
    >>> std = [0.5, 0.5, 0.5]
    >>> display = ResidualDisplay.from_predictions([1, 2, 9], [1, 2, 3], ends, std=std, confidence_level=0.9)
    >>> display.residual
    array([ 0.,  0., 12.])
    """

    def __init__(
        self, y_true: ArrayLike, prediction: ArrayLike, intervals: ArrayLike, *, std: ArrayLike, **described: Any
    ):
        super().__init__(y_true, prediction, intervals, **described)
        self.std = vector("std", std, self.n_rows)
        self.residual = (self.y_true - self.prediction) / self.std

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        X: Any = None,
        y: ArrayLike | None = None,
        *,
        confidence_level: float = 0.9,
        names: Sequence[str] | None = None,
        **described: Any,
    ) -> Self:
        """Predict new rows, or leave each calibration row out, and draw.

        Parameters
        ----------
        estimator : ConformalGPRegressor
            A fitted model.
        X, y : array-like, or None, default=None
            New rows and their true values; None takes :func:`conformal_gp.evaluation.leave_one_out`.
        confidence_level : float, default=0.9
            One level.
        names : sequence of str or None, default=None
            Names of the new rows; without X, of the training rows, which None numbers from 0.
        **described
            Other parameters of :class:`IntervalDisplay`, and ``ax``, where to draw.

        Examples
        --------
        >>> from conformal_gp import ConformalGPRegressor
        >>> from conformal_gp.plotting import ResidualDisplay
        >>> model = ConformalGPRegressor("se", tuning="fixed", noise_variance=0.1).fit([[0.0], [1.0], [2.0]], [0, 1, 0])
        >>> ResidualDisplay.from_estimator(model, confidence_level=0.5).residual.round(1)
        array([-0.8,  1.2, -0.8])
        """
        if (X is None) != (y is None):
            raise ValueError("X and y must be given together, or neither.")
        described["confidence_level"] = confidence_level
        if X is not None:
            described |= {"names": names, "std": estimator.predict(X, return_std=True)[1]}
            return super().from_estimator(estimator, X, y, **described)
        found = leave_one_out(estimator, confidence_level)
        described["names"] = found.rows
        if names is not None:
            described["names"] = [names[row] for row in found.rows]
        return cls.from_predictions(found.y, found.prediction, found.intervals, std=found.std, **described)

    def _draw(self, ax: Any) -> dict[str, str]:
        ends = (self.intervals - self.prediction[:, None]) / self.std[:, None]
        z = float(ndtri(0.5 + 0.5 * float(self.level)))
        inside = int((np.abs(self.residual) <= z).sum())
        label = f"standard GP's {percent(self.level)}, covers {inside} of {self.n_rows} rows"
        ax.axhspan(-z, z, color=tint(ORANGE, 0.3), linewidth=0, label=label)
        ax.axhline(0.0, color=ink(), linewidth=0.8, linestyle=":")
        self._draw_rows(ax, self.prediction, ends, self.residual, limits_of(ends, self.residual))
        return {"xlabel": f"predicted {self.target_name or 'target'}", "ylabel": "residual / standard deviation"}
