"""Prediction bands over one input."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils import _safe_indexing

from conformal_gp.conformal.levels import read_levels
from conformal_gp.formatting import percent
from conformal_gp.plotting.frame import Display, accent, arrowheads, ink, limits_of, stacked, tint, vector
from conformal_gp.plotting.slices import Slice, is_text

ARROWS = 12  # along a band without a finite end


class PredictionBandDisplay(Display):
    """Prediction intervals along one input, the other inputs held: a band for each level, or bars over categories.

    Parameters
    ----------
    grid : array-like of shape (n_points,)
        Values of the input, ascending; of an input of categories their numbers, 0, 1 and so on.
    prediction : array-like of shape (n_points,)
        Predictions there.
    intervals : array-like of shape (n_points, 2, n_levels) or (n_points, 2)
        Lower and upper bounds.
    confidence_level : float or sequence of floats
        Their level or levels.
    x, y : array-like of shape (n_samples,) or None, default=None
        Rows to draw as dots.
    near : array-like of bool of shape (n_samples,) or None, default=None
        Rows like those of the band in the other inputs; the others fade. None draws all in full.
    categories : sequence of str or None, default=None
        Names of the places of ``grid``, where the input has categories.
    feature_name, target_name : str or None, default=None
        Names of the axes.

    Examples
    --------
    >>> from conformal_gp.plotting import PredictionBandDisplay
    >>> display = PredictionBandDisplay([0, 1], [1, 1], [[0, 2], [0, 2]], confidence_level=0.9)
    >>> display.plot().bands_[0].get_label()
    '90%'
    """

    def __init__(
        self,
        grid: ArrayLike,
        prediction: ArrayLike,
        intervals: ArrayLike,
        *,
        confidence_level: float | ArrayLike,
        x: ArrayLike | None = None,
        y: ArrayLike | None = None,
        near: ArrayLike | None = None,
        categories: list[str] | None = None,
        feature_name: str | None = None,
        target_name: str | None = None,
    ):
        if (x is None) != (y is None):
            raise ValueError("x and y must be given together, got one of them.")
        self.levels = [float(level) for level in read_levels(confidence_level)[0]]
        self.intervals = stacked(intervals, self.levels)
        self.grid = vector("grid", grid, len(self.intervals))
        self.prediction = vector("prediction", prediction, len(self.intervals))
        self.x = np.empty(0)
        self.y = np.empty(0)
        if x is not None and y is not None:
            self.x = np.ravel(np.asarray(x, dtype=float))
            self.y = vector("y", y, self.x.size)
        self.near = np.ones(self.x.size, dtype=bool)
        if near is not None and x is not None:
            self.near = np.asarray(near, dtype=bool)
        self.categories = categories
        self.feature_name = feature_name
        self.target_name = target_name

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        X: Any,
        y: ArrayLike | None = None,
        *,
        feature: int | str = 0,
        row: int | None = None,
        confidence_level: float | ArrayLike = (0.5, 0.8, 0.95),
        n_points: int = 200,
        **described: Any,
    ) -> Self:
        """Predict along one input and draw.

        Parameters
        ----------
        estimator : fitted regressor with ``predict_interval``
            The model.
        X, y
            Rows that give the range of the input; with ``y`` they are drawn, in full the fifth whose other inputs are
            nearest to those of the band, the rest faded.
        feature : int or str, default=0
            Number or name of the input that varies.
        row : int or None, default=None
            Row of X whose other inputs are held; None is the one nearest to medians and most frequent categories.
        confidence_level, n_points
            Level of each band, and points along an input of numbers.
        **described
            ``target_name``, and ``ax``, where to draw.

        Examples
        --------
        >>> from conformal_gp import ConformalGPRegressor
        >>> from conformal_gp.plotting import PredictionBandDisplay
        >>> model = ConformalGPRegressor("se", tuning="fixed", noise_variance=0.1).fit([[0.0], [1.0], [2.0]], [0, 1, 0])
        >>> display = PredictionBandDisplay.from_estimator(model, [[0.0], [2.0]], confidence_level=0.5, n_points=3)
        >>> display.grid, display.intervals.shape
        (array([0., 1., 2.]), (3, 2, 1))
        """
        part = Slice.of(X, [feature], row)
        ((name, x),) = part.varied.items()
        described |= {"feature_name": part.named(name), "near": part.near, "confidence_level": confidence_level}
        if is_text(x):
            described["categories"] = list(np.unique(x))
            x = np.searchsorted(described["categories"], x).astype(float)
            grid = np.unique(x)
            rows = part.at({name: _safe_indexing(X[name], [int(np.argmax(x == place)) for place in grid])})
        else:
            grid = np.linspace(x.min(), x.max(), n_points)
            rows = part.at({name: grid})
        if y is not None:
            described |= {"x": x, "y": y}
        return cls.from_predictions(
            grid, estimator.predict(rows), estimator.predict_interval(rows, confidence_level), **described
        )

    def _draw(self, ax: Any) -> dict[str, str]:
        limits = limits_of(self.intervals, self.prediction, self.y)
        shown = np.clip(self.intervals, *limits)
        self.bands_: list[Any] = [None] * len(self.levels)
        for step, k in enumerate(np.argsort(self.levels)[::-1]):  # the widest lies below the others
            low, high = shown[:, :, k].T
            style: dict[str, Any] = {"facecolor": tint(accent(), 0.2 + 0.45 * step / max(len(self.levels) - 1, 1))}
            style |= {"edgecolor": accent(), "linewidth": 0.8, "label": percent(self.levels[k])}
            if self.categories is None:
                self.bands_[k] = ax.fill_between(self.grid, low, high, **style)
            else:
                self.bands_[k] = ax.bar(self.grid, high - low, bottom=low, width=0.6 - 0.12 * step, **style)
        line: dict[str, Any] = {"linestyle": "-"}
        aside = np.zeros(self.x.size)
        if self.categories is not None:
            line = {"linestyle": "none", "marker": "_"}
            aside = np.random.default_rng(0).uniform(-0.15, 0.15, self.x.size)
        (self.line_,) = ax.plot(self.grid, self.prediction, color=ink(), linewidth=1.4, label="prediction", **line)
        for which, alpha, label in ((~self.near, 0.15, "other rows"), (self.near, 0.8, "rows near the held values")):
            if which.any():
                dots: dict[str, Any] = {"linestyle": "none", "marker": ".", "color": ink(), "markersize": 5}
                if self.near.all():
                    label = "rows"
                ax.plot((self.x + aside)[which], self.y[which], alpha=alpha, label=label, **dots)
        some = slice(None, None, max(1, self.grid.size // ARROWS))
        widest = self.intervals[:, :, int(np.argmax(self.levels))]
        arrowheads(ax, self.grid[some], widest[some], limits)
        if self.categories is not None:
            ax.use_sticky_edges = False  # a margin below bars, too
            turned: dict[str, Any] = {}
            if max(map(len, self.categories)) * len(self.categories) > 60:
                turned = {"rotation": 30, "ha": "right"}
            ax.set_xticks(self.grid, self.categories, **turned)
        return {"xlabel": self.feature_name or "", "ylabel": self.target_name or "target"}
