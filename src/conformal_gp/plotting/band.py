"""Prediction bands over one input."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils import _safe_indexing

from conformal_gp.conformal.levels import read_levels
from conformal_gp.design import columns_of
from conformal_gp.formatting import percent
from conformal_gp.plotting.frame import Display, accent, arrowheads, ink, limits_of, stacked, tint, vector
from conformal_gp.validation import is_frame

ARROWS = 12  # along a band without a finite end
NEAR = 0.2  # share of the rows that is drawn in full: those nearest in the other inputs
MOST_HELD = 5  # inputs whose values are named below the picture


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
        target_name: str | None = None,
        ax: Any = None,
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
        confidence_level, n_points, target_name, ax
            Level of each band, points along an input of numbers, name of the target, and where to draw.

        Examples
        --------
        >>> from conformal_gp import ConformalGPRegressor
        >>> from conformal_gp.plotting import PredictionBandDisplay
        >>> model = ConformalGPRegressor("se", tuning="fixed", noise_variance=0.1).fit([[0.0], [1.0], [2.0]], [0, 1, 0])
        >>> display = PredictionBandDisplay.from_estimator(model, [[0.0], [2.0]], confidence_level=0.5, n_points=3)
        >>> display.grid, display.intervals.shape
        (array([0., 1., 2.]), (3, 2, 1))
        """
        grid, rows, described = _along(X, feature, row, n_points)
        described |= {"confidence_level": confidence_level, "target_name": target_name, "ax": ax}
        if y is None:
            described["x"] = None
        described["y"] = y
        intervals = estimator.predict_interval(rows, confidence_level)
        return cls.from_predictions(grid, estimator.predict(rows), intervals, **described)

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


def _along(X: Any, feature: int | str, row: int | None, n_points: int) -> tuple[Any, Any, dict[str, Any]]:
    """Places along one input, rows of the kind of ``X`` there with other inputs held, and what to say of them."""
    if not is_frame(X):
        X = np.asarray(X, dtype=float)
    columns = columns_of(X)
    names = list(columns)
    varied = feature if feature in names else dict(enumerate(names)).get(feature)  # type: ignore[arg-type]
    if varied is None or isinstance(feature, bool):
        raise ValueError(f"feature must be a column: 0 to {len(names) - 1}, or {', '.join(names)}; got {feature!r}.")
    values = columns.pop(varied)
    if row is None:
        row = int(np.argmin(_distances(columns, [_middle(column) for column in columns.values()], values.size)))
    if not 0 <= row < values.size:
        raise ValueError(f"row must be a row of X: 0 to {values.size - 1}, or None; got {row!r}.")
    held = [column[row] for column in columns.values()]
    categories = None
    if _is_text(values):
        categories = list(np.unique(values))
    if categories is None:
        grid = along = np.linspace(values.min(), values.max(), n_points)
    else:
        grid = np.arange(float(len(categories)))
        along = _safe_indexing(X[varied], [int(np.argmax(values == category)) for category in categories])
    rows = _safe_indexing(X, [row] * grid.size)
    if is_frame(X):
        parts = {name: along if name == varied else rows[name] for name in names}
        rows = type(X)({name: getattr(part, "array", part) for name, part in parts.items()})  # without pandas' index
    else:
        rows[:, names.index(varied)] = along
    distance = _distances(columns, held, values.size)
    said = [value if isinstance(value, str) else f"{value:.4g}" for value in held]
    told = [f"{name} {value}" for name, value in zip(columns, said, strict=True)]
    more = f" and {len(told) - MOST_HELD} more" if len(told) > MOST_HELD else ""
    described = {
        "x": values if categories is None else np.searchsorted(categories, values).astype(float),
        "near": distance <= np.quantile(distance, NEAR),
        "categories": categories,
        "feature_name": f"{varied}\nothers held at {', '.join(told[:MOST_HELD])}{more}" if told else varied,
    }
    return grid, rows, described


def _distances(columns: dict[str, NDArray[Any]], at: list[Any], n_rows: int) -> Any:
    """Squared distance of each row from given values, in standard deviations; 1 for another category."""
    distance = np.zeros(n_rows)
    for column, value in zip(columns.values(), at, strict=True):
        distance += column != value if _is_text(column) else ((column - value) / (column.std() or 1.0)) ** 2
    return distance


def _is_text(column: NDArray[Any]) -> bool:
    return column.dtype.kind == "U"


def _middle(column: NDArray[Any]) -> Any:
    """The median, or the most frequent category."""
    if not _is_text(column):
        return np.median(column)
    values, counts = np.unique(column, return_counts=True)
    return values[np.argmax(counts)]
