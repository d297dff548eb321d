"""Intervals of many rows, sorted by prediction."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike

from conformal_gp.conformal.levels import read_level
from conformal_gp.formatting import percent
from conformal_gp.plotting.frame import VERMILION, Display, accent, arrowheads, ink, limits_of, vector


class IntervalDisplay(Display):
    """The intervals of rows, sorted by prediction; true values, where they are known, and training rows beneath.

    Parameters
    ----------
    y_true : array-like of shape (n_samples,) or None
        True values, those missed are marked (``missed_``); None where they are not known.
    prediction : array-like of shape (n_samples,)
        Predictions; rows are drawn in their order (``order_``).
    intervals : array-like of shape (n_samples, 2)
        Lower and upper bounds.
    training : pair of array-like of shape (n_train,) or None, default=None
        Predictions and targets of training rows, drawn at the places of their predictions.
    confidence_level : float or None, default=None
        The level.
    name, target_name : str or None, default=None
        Names of the method and the target.

    Examples
    --------
    >>> from conformal_gp.plotting import IntervalDisplay
    >>> display = IntervalDisplay.from_predictions([1, 2, 9], [1, 2, 3], [[0, 2], [1, 3], [2, 4]], confidence_level=0.9)
    >>> display.missed_
    array([False, False,  True])
    >>> display.ax_.get_title(loc="left")
    '90% intervals covered 2 of 3 rows (66.7%)'
    """

    def __init__(
        self,
        y_true: ArrayLike | None,
        prediction: ArrayLike,
        intervals: ArrayLike,
        *,
        training: tuple[ArrayLike, ArrayLike] | None = None,
        confidence_level: float | None = None,
        name: str | None = None,
        target_name: str | None = None,
    ):
        self.intervals = np.asarray(intervals, dtype=float)
        if self.intervals.ndim != 2 or self.intervals.shape[1] != 2:
            raise ValueError(f"intervals must have shape (n, 2), got {self.intervals.shape}.")
        self.prediction = vector("prediction", prediction, len(self.intervals))
        self.y_true = None
        if y_true is not None:
            self.y_true = vector("y_true", y_true, len(self.intervals))
        self.training = None
        if training is not None:
            self.training = [vector("training", part, np.size(training[0])) for part in training]
        self.level = None
        if confidence_level is not None:
            self.level = read_level(confidence_level)
        self.name = name
        self.target_name = target_name

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        X: Any,
        y: ArrayLike | None = None,
        *,
        confidence_level: float = 0.9,
        train: tuple[Any, ArrayLike] | None = None,
        **described: Any,
    ) -> Self:
        """Predict rows and draw their intervals; true values are not needed.

        Parameters
        ----------
        estimator, X, y
            A fitted regressor with ``predict_interval``, new rows, and their true values, where they are known.
        confidence_level : float, default=0.9
            One level.
        train : pair (X, y) or None, default=None
            Training rows to draw beneath.
        **described
            ``name`` and ``target_name``, as in the class, and ``ax``, where to draw.

        Examples
        --------
        >>> from conformal_gp import ConformalGPRegressor
        >>> from conformal_gp.plotting import IntervalDisplay
        >>> model = ConformalGPRegressor("se", tuning="fixed", noise_variance=0.1).fit([[0.0], [1.0], [2.0]], [0, 1, 0])
        >>> IntervalDisplay.from_estimator(model, [[0.9], [0.1]], confidence_level=0.5).order_
        array([1, 0])
        """
        level = float(read_level(confidence_level))
        training = None
        if train is not None:
            training = (estimator.predict(train[0]), train[1])
        intervals = estimator.predict_interval(X, level)
        described |= {"training": training, "confidence_level": level}
        return cls.from_predictions(y, estimator.predict(X), intervals, **described)

    def _draw(self, ax: Any) -> dict[str, str]:
        self.order_ = np.argsort(self.prediction, kind="stable")
        low, high = self.intervals.T
        self.missed_ = np.zeros(low.size, dtype=bool)
        if self.y_true is not None:
            self.missed_ = (self.y_true < low) | (self.y_true > high)
        places = np.arange(low.size)
        prediction = self.prediction[self.order_]
        shown = [prediction, self.y_true]
        if self.training is not None:
            shown.append(self.training[1])
        limits = limits_of(self.intervals, *shown)
        what = "interval"
        if self.level is not None:
            what = f"{percent(self.level)} interval"

        def dots(x: Any, y: Any, marker: str, size: float, label: str, **style: Any) -> None:
            style = {"color": ink(), "zorder": 3} | style
            ax.plot(x, y, linestyle="none", marker=marker, markersize=size, label=label, **style)

        if self.training is not None:
            between = np.interp(self.training[0], prediction, places, left=np.nan, right=np.nan)
            dots(between, self.training[1], ".", 3, "training rows", alpha=0.35, zorder=1)
        # in points, so that neighbours do not touch
        thick = min(5.0, 0.6 * ax.get_window_extent().width / ax.figure.dpi * 72.0 / max(low.size, 1))
        bars = np.clip(self.intervals[self.order_], *limits)
        ax.vlines(places, *bars.T, color=accent(), alpha=0.45, linewidth=thick, label=what)
        dots(places, prediction, "_", max(thick, 3), "prediction", color=accent(), zorder=2)
        if self.y_true is not None:
            observed = self.y_true[self.order_]
            missed = self.missed_[self.order_]
            dots(places, np.where(missed, np.nan, observed), ".", 5, "covered")
            dots(places[missed], observed[missed], "X", 7, "missed", color=VERMILION, markeredgecolor=ink())
            share = f"{(~missed).sum()} of {missed.size} rows ({1 - missed.mean():.1%})"
            title = " ".join(filter(None, [self.name, f"{what}s covered {share}"]))
            ax.set_title(title, loc="left", fontsize="medium")
        ax.xaxis.get_major_locator().set_params(integer=True)
        arrowheads(ax, places, self.intervals[self.order_], limits)
        return {"xlabel": "rows, by prediction", "ylabel": self.target_name or "target"}
