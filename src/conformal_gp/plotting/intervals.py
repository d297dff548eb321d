"""Intervals of many rows, sorted by prediction."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import ArrayLike

from conformal_gp.conformal.levels import read_level
from conformal_gp.evaluation import percent
from conformal_gp.plotting.arguments import vector
from conformal_gp.plotting.display import Display
from conformal_gp.plotting.infinite import arrowheads, limits_of
from conformal_gp.plotting.style import BLUE, VERMILION, axes_or_new, finish, ink, tint, titled

if TYPE_CHECKING:
    from matplotlib.axes import Axes


class IntervalDisplay(Display):
    """The intervals of rows, sorted by prediction, with labels outside marked.

    Made by :meth:`from_estimator` or :meth:`from_predictions`.

    Parameters
    ----------
    y_true : ndarray of shape (n_samples,) or None
        Labels; None where they are not known.
    prediction : ndarray of shape (n_samples,)
        Predicted labels.
    intervals : ndarray of shape (n_samples, 2)
        Lower and upper ends.
    confidence_level : float or None, default=None
        Their level, kept as ``level``.
    name, target_name : str or None, default=None
        What to call the method and the label.

    Attributes
    ----------
    order_ : ndarray of int of shape (n_samples,)
        Rows from left to right.
    missed_ : ndarray of bool of shape (n_samples,)
        Whether each row's label lies outside its interval; all False without labels.
    ax_, figure_ : matplotlib Axes and Figure
        Where it was drawn.

    Examples
    --------
    >>> from conformal_gp.plotting import IntervalDisplay
    >>> display = IntervalDisplay.from_predictions([1, 2, 9], [1, 2, 3], [[0, 2], [1, 3], [2, 4]], confidence_level=0.9)
    >>> display.missed_
    array([False, False,  True])
    >>> display.ax_.get_title(loc="left")
    '90% intervals: 2 of 3 labels inside (66.7%)'
    """

    def __init__(
        self,
        y_true: ArrayLike | None,
        prediction: ArrayLike,
        intervals: ArrayLike,
        *,
        confidence_level: float | None = None,
        name: str | None = None,
        target_name: str | None = None,
    ):
        self.intervals = np.asarray(intervals, dtype=float)
        if self.intervals.ndim != 2 or self.intervals.shape[1] != 2:
            raise ValueError(f"intervals must have shape (n, 2), got {self.intervals.shape}.")
        self.prediction = vector("prediction", prediction, len(self.intervals))
        self.y_true = None if y_true is None else vector("y_true", y_true, len(self.intervals))
        self.level = None if confidence_level is None else float(read_level(confidence_level))
        self.name = name
        self.target_name = target_name

    @classmethod
    def from_estimator(
        cls, estimator: Any, X: Any, y: ArrayLike | None = None, *, confidence_level: float = 0.95, **described: Any
    ) -> Self:
        """Predict test rows and draw their intervals.

        Parameters
        ----------
        estimator, X, y
            A fitted regressor with ``predict_interval``, test inputs, and their labels, if known.
        confidence_level : float, default=0.95
            One level.
        **described
            ``name`` and ``target_name``, as in the class, and ``ax``, where to draw; None makes a figure.

        Returns
        -------
        display : IntervalDisplay
            The display.

        Examples
        --------
        >>> from conformal_gp import ConformalGPRegressor
        >>> from conformal_gp.plotting import IntervalDisplay
        >>> model = ConformalGPRegressor("se", tuning="fixed", noise_variance=0.1).fit([[0.0], [1.0], [2.0]], [0, 1, 0])
        >>> display = IntervalDisplay.from_estimator(model, [[0.5], [1.5]], [0.5, 9.0], confidence_level=0.5)
        >>> display.missed_
        array([False,  True])
        """
        level = float(read_level(confidence_level))
        return cls.from_predictions(
            y, estimator.predict(X), estimator.predict_interval(X, level), confidence_level=level, **described
        )

    def plot(self, ax: Axes | None = None) -> Self:
        """Draw into ``ax``, or into a new figure.

        Examples
        --------
        >>> from conformal_gp.plotting import IntervalDisplay
        >>> IntervalDisplay(None, [3, 1, 2], [[2, 4], [0, 2], [1, 3]]).plot().order_
        array([1, 2, 0])
        """
        ax = axes_or_new(ax)
        self.order_ = np.argsort(self.prediction, kind="stable")
        low, high = self.intervals.T
        self.missed_ = np.zeros(low.size, bool) if self.y_true is None else (self.y_true < low) | (self.y_true > high)

        places = np.arange(low.size)
        missed = self.missed_[self.order_]
        limits = limits_of(self.intervals, self.prediction, self.y_true)
        bars = np.clip(self.intervals[self.order_], *limits)
        thick = min(5.0, max(0.6, 250.0 / max(low.size, 1)))  # in points, so that neighbours do not touch
        label = titled(None if self.level is None else percent(self.level), "interval")
        ax.vlines(places, *bars.T, color=tint(BLUE, 0.45), linewidth=thick, label=label)
        ax.plot(places, self.prediction[self.order_], color=BLUE, linewidth=1, linestyle="--", label="prediction")
        if self.y_true is not None:
            labels = self.y_true[self.order_]
            dots: dict[str, Any] = {"linestyle": "none", "zorder": 3}
            ax.plot(
                places[~missed], labels[~missed], marker=".", color=ink(), markersize=4, label="label inside", **dots
            )
            ax.plot(
                places[missed],
                labels[missed],
                marker="X",
                color=VERMILION,
                markeredgecolor=ink(),
                markeredgewidth=0.6,
                markersize=7,
                label="label outside",
                **dots,
            )
        if np.isinf(self.intervals).any():
            endless = np.isinf(self.intervals[self.order_])
            arrowheads(ax, places[endless[:, 0]], places[endless[:, 1]], limits)
        ax.set(xlabel="rows, by prediction", ylabel=self.target_name or "")
        ax.set_title(self._title(), loc="left", fontsize="medium")
        finish(ax, "upper left")  # predictions grow to the right
        self.ax_, self.figure_ = ax, ax.figure
        return self

    def _title(self) -> str:
        what = titled(self.name, None if self.level is None else percent(self.level), "intervals")
        if self.y_true is None:
            return what
        inside = int((~self.missed_).sum())
        return f"{what}: {inside} of {self.missed_.size} labels inside ({inside / self.missed_.size:.1%})"
