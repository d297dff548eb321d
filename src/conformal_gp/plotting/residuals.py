"""Predicted against actual, and standardised residuals."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import ndtri

from conformal_gp.conformal.levels import read_level
from conformal_gp.evaluation import leave_one_out
from conformal_gp.formatting import percent
from conformal_gp.plotting.frame import VERMILION, Display, accent, arrowheads, ink, limits_of, tint, vector

KINDS = ("residuals", "actual")


class ResidualDisplay(Display):
    """Standardised residuals by prediction, or actual values against predictions, with intervals.

    Errors of a good surrogate are thinner than dots, so a picture of actual values shows nothing. Residuals over the
    standard deviation of the Gaussian process do: if the process is right, they are standard normal everywhere, and the
    conformal interval of each row agrees with the shaded band, the interval of the standard GP.

    Parameters
    ----------
    y_true, prediction, std : array-like of shape (n_samples,)
        Actual values, predictions, and standard deviations of the Gaussian process.
    intervals : array-like of shape (n_samples, 2)
        Lower and upper bounds.
    confidence_level : float
        Their level.
    kind : {"residuals", "actual"}, default="residuals"
        What is drawn against the prediction.
    rows : array-like of shape (n_samples,) or None, default=None
        Row numbers; rows outside their intervals are labelled by them.
    target_name : str or None, default=None
        Name of the target.

    Attributes
    ----------
    residual : ndarray of shape (n_samples,)
        Standardised residuals.
    missed : ndarray of bool of shape (n_samples,)
        Rows outside their intervals.

    Examples
    --------
    >>> from conformal_gp.plotting import ResidualDisplay
    >>> ends = [[0, 2], [1, 3], [2, 4]]
    >>> display = ResidualDisplay.from_predictions([1, 2, 9], [1, 2, 3], [0.5, 0.5, 0.5], ends, confidence_level=0.9)
    >>> display.residual
    array([ 0.,  0., 12.])
    >>> display.missed
    array([False, False,  True])
    """

    def __init__(
        self,
        y_true: ArrayLike,
        prediction: ArrayLike,
        std: ArrayLike,
        intervals: ArrayLike,
        *,
        confidence_level: float,
        kind: str = "residuals",
        rows: ArrayLike | None = None,
        target_name: str | None = None,
    ):
        if kind not in KINDS:
            raise ValueError(f"kind must be 'residuals' or 'actual', got {kind!r}.")
        self.intervals = np.asarray(intervals, dtype=float)
        if self.intervals.ndim != 2 or self.intervals.shape[1] != 2:
            raise ValueError(f"intervals must have shape (n, 2), got {self.intervals.shape}.")
        size = len(self.intervals)
        self.y_true = vector("y_true", y_true, size)
        self.prediction = vector("prediction", prediction, size)
        self.std = vector("std", std, size)
        self.level = read_level(confidence_level)
        self.kind = kind
        self.rows = None
        if rows is not None:
            self.rows = vector("rows", rows, size).astype(np.int64)
        self.target_name = target_name
        self.residual = (self.y_true - self.prediction) / self.std
        low, high = self.intervals.T
        self.missed = (self.y_true < low) | (self.y_true > high)

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        X: Any = None,
        y: ArrayLike | None = None,
        *,
        confidence_level: float = 0.9,
        **described: Any,
    ) -> Self:
        """Predict new rows, or leave each calibration row out, and draw.

        Parameters
        ----------
        estimator : ConformalGPRegressor
            A fitted model.
        X, y : array-like, or None, default=None
            New rows and their actual values; None takes :func:`conformal_gp.evaluation.leave_one_out`.
        confidence_level : float, default=0.9
            One level.
        **described
            ``kind`` and ``target_name``, as in the class, and ``ax``, where to draw.

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
        if X is None:
            found = leave_one_out(estimator, confidence_level)
            described["rows"] = found.rows
            return cls.from_predictions(found.y, found.prediction, found.std, found.intervals, **described)
        prediction, std = estimator.predict(X, return_std=True)
        intervals = estimator.predict_interval(X, float(read_level(confidence_level)))
        return cls.from_predictions(y, prediction, std, intervals, **described)

    def _draw(self, ax: Any) -> dict[str, str]:
        name = self.target_name or "target"
        labels = {"xlabel": f"predicted {name}", "ylabel": f"actual {name}"}
        actual = self.y_true
        ends = self.intervals
        if self.kind == "residuals":
            labels["ylabel"] = "residual / standard deviation"
            actual = self.residual
            ends = (ends - self.prediction[:, None]) / self.std[:, None]
        limits = limits_of(ends, actual)
        self._draw_model(ax, limits)
        what = f"{percent(self.level)} interval"
        bars = np.clip(ends, *limits)
        ax.vlines(self.prediction, *bars.T, color=accent(), alpha=0.45, linewidth=2, label=what)
        style: dict[str, Any] = {"linestyle": "none", "color": ink(), "zorder": 3}
        ax.plot(self.prediction[~self.missed], actual[~self.missed], marker=".", markersize=5, label="covered", **style)
        style |= {"color": VERMILION, "markeredgecolor": ink()}
        ax.plot(self.prediction[self.missed], actual[self.missed], marker="X", markersize=7, label="missed", **style)
        if self.rows is not None:
            for row in np.flatnonzero(self.missed):
                place = (self.prediction[row], actual[row])
                ax.annotate(f" {self.rows[row]}", place, xytext=(4, 0), textcoords="offset points", fontsize="small")
        arrowheads(ax, self.prediction, ends, limits)
        return labels

    def _draw_model(self, ax: Any, limits: tuple[float, float]) -> None:
        """Draw what a right model would give: the band of the standard GP, or the diagonal."""
        if self.kind == "actual":
            known = np.concatenate([self.prediction, self.y_true])
            both = [known.min(), known.max()]
            ax.plot(both, both, color=ink(), linewidth=0.8, linestyle=":", label="actual = predicted")
            return
        z = float(ndtri(0.5 + 0.5 * float(self.level)))
        inside = int((np.abs(self.residual) <= z).sum())
        label = f"standard GP's {percent(self.level)}: {inside} of {self.residual.size} rows"
        ax.axhspan(-z, z, color=tint(ink(), 0.15), linewidth=0, label=label)
        ax.axhline(0.0, color=ink(), linewidth=0.8, linestyle=":")
