"""Pictures of slices of the space of inputs: one or two inputs vary, the others are held at those of a row."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils import _safe_indexing

from conformal_gp.arrays import Array, Mask
from conformal_gp.conformal.levels import read_level, read_levels
from conformal_gp.extrapolation import columns_of
from conformal_gp.formatting import percent
from conformal_gp.plotting.frame import Display, accent, arrowheads, ink, limits_of, stacked, tint, vector
from conformal_gp.validation import is_frame

NEAR = 0.2  # share of the rows that is drawn in full: those nearest in the other inputs
MOST_HELD = 5  # inputs whose values are named below the picture
ARROWS = 12  # along a band without a finite end
N_COLOURS = 8


class Slice(NamedTuple):
    """Inputs that vary, and the row of X that has the values of the others."""

    X: Any
    varied: dict[str, NDArray[Any]]
    """Values of the inputs that vary, in all rows."""
    row: int
    near: Mask
    """Rows whose other inputs are near the held ones, (n,)."""
    held: str
    """The held values in words; empty if every input varies."""

    @classmethod
    def of(cls, X: Any, features: Sequence[int | str], row: int | None) -> Slice:
        """Find inputs by number or name; None holds the row nearest to medians and most frequent categories."""
        if not is_frame(X):
            X = np.asarray(X, dtype=float)
        columns = columns_of(X)
        varied = {}
        for feature in features:
            name = _named(feature, list(columns))
            varied[name] = columns[name]
        columns = {name: values for name, values in columns.items() if name not in varied}
        n_rows = len(next(iter(varied.values())))
        if row is None:
            row = int(np.argmin(_distances(columns, [_middle(column) for column in columns.values()], n_rows)))
        if not 0 <= row < n_rows:
            raise ValueError(f"row must be a row of X: 0 to {n_rows - 1}, or None; got {row!r}.")
        held = {name: column[row] for name, column in columns.items()}
        distance = _distances(columns, list(held.values()), n_rows)
        return cls(X, varied, row, distance <= np.quantile(distance, NEAR), _in_words(held))

    def named(self, feature: str) -> str:
        """Name of an axis: an input, and the values of those that are held."""
        return "\n".join(filter(None, [feature, self.held]))

    def at(self, values: Mapping[str, Any]) -> Any:
        """Rows of the kind of X where the inputs that vary have given values, (m,) each."""
        size = len(next(iter(values.values())))
        rows = _safe_indexing(self.X, [self.row] * size)
        names = list(columns_of(self.X))
        if is_frame(self.X):
            parts = {name: values[name] if name in values else rows[name] for name in names}
            return type(self.X)({name: getattr(part, "array", part) for name, part in parts.items()})  # no pandas index
        for name, value in values.items():
            rows[:, names.index(name)] = value
        return rows


def is_text(column: NDArray[Any]) -> bool:
    """Whether a column has categories."""
    return column.dtype.kind == "U"


def _named(feature: int | str, names: list[str]) -> str:
    """Name of an input given by number or name."""
    if feature in names:
        return str(feature)
    if isinstance(feature, int | np.integer) and not isinstance(feature, bool) and 0 <= feature < len(names):
        return names[feature]
    raise ValueError(f"feature must be a column: 0 to {len(names) - 1}, or {', '.join(names)}; got {feature!r}.")


def _in_words(held: Mapping[str, Any]) -> str:
    """Name the first of the held values."""
    if not held:
        return ""
    said = [f"{name} {value}" if isinstance(value, str) else f"{name} {value:.4g}" for name, value in held.items()]
    shown = ", ".join(said[:MOST_HELD])
    if len(said) > MOST_HELD:
        shown += f" and {len(said) - MOST_HELD} more"
    return f"others held at {shown}"


def _distances(columns: Mapping[str, NDArray[Any]], at: Sequence[Any], n_rows: int) -> Array:
    """Squared distance of each row from given values, in standard deviations; 1 for another category."""
    distance = np.zeros(n_rows)
    for column, value in zip(columns.values(), at, strict=True):
        if is_text(column):
            distance += column != value
        else:
            distance += ((column - value) / (column.std() or 1.0)) ** 2
    return distance


def _middle(column: NDArray[Any]) -> Any:
    """The median, or the most frequent category."""
    if not is_text(column):
        return np.median(column)
    values, counts = np.unique(column, return_counts=True)
    return values[np.argmax(counts)]


def draw_rows(ax: Any, x: Array, y: Array, near: ArrayLike | None, faded: float, **style: Any) -> None:
    """Draw rows as dots; those that are not near the held values are faded. None is near as all are."""
    rows = np.ones(x.size, dtype=bool)
    if near is not None and x.size:
        rows = np.asarray(near, dtype=bool)
    label = "rows near the held values"
    if rows.all():
        label = "rows"
    for which, alpha, what in ((~rows, faded, "other rows"), (rows, 0.8, label)):
        if which.any():
            ax.plot(x[which], y[which], linestyle="none", alpha=alpha, label=what, **style)


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
        self.near = near
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
        draw_rows(ax, self.x + aside, self.y, self.near, 0.15, marker=".", color=ink(), markersize=5)
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


class WidthContourDisplay(Display):
    """Width of prediction intervals over two inputs, the other inputs held: where a model is certain, and where not.

    Parameters
    ----------
    first, second : array-like of shape (n_first,) and (n_second,)
        Values of the two inputs, ascending.
    width : array-like of shape (n_second, n_first)
        Widths of the intervals there; infinite ones are left blank.
    confidence_level : float
        The level.
    rows : pair of array-like of shape (n_samples,) or None, default=None
        Values of the two inputs in rows to draw as dots.
    near : array-like of bool of shape (n_samples,) or None, default=None
        Rows like those of the slice in the other inputs; the others fade. None draws all in full.
    feature_names : pair of str, default=("", "")
        Names of the axes.
    target_name : str or None, default=None
        Name of the target.

    Examples
    --------
    >>> from conformal_gp.plotting import WidthContourDisplay
    >>> WidthContourDisplay([0, 1], [0, 1], [[1, 2], [3, 4]], confidence_level=0.9).plot().bar_.ax.get_ylabel()
    'width of 90% intervals of the target'
    """

    def __init__(
        self,
        first: ArrayLike,
        second: ArrayLike,
        width: ArrayLike,
        *,
        confidence_level: float,
        rows: Sequence[ArrayLike] | None = None,
        near: ArrayLike | None = None,
        feature_names: Sequence[str] = ("", ""),
        target_name: str | None = None,
    ):
        self.width = np.asarray(width, dtype=float)
        if self.width.ndim != 2:
            raise ValueError(f"width must have shape (n_second, n_first), got {self.width.shape}.")
        self.first = vector("first", first, self.width.shape[1])
        self.second = vector("second", second, self.width.shape[0])
        self.level = read_level(confidence_level)
        self.rows = np.empty((2, 0))
        if rows is not None:
            self.rows = np.asarray(rows, dtype=float)
        self.near = near
        self.feature_names = feature_names
        self.target_name = target_name

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        X: Any,
        *,
        features: Sequence[int | str] = (0, 1),
        row: int | None = None,
        confidence_level: float = 0.9,
        n_points: int = 25,
        **described: Any,
    ) -> Self:
        """Predict on a grid of two inputs and draw.

        Parameters
        ----------
        estimator : fitted regressor with ``predict_interval``
            The model.
        X : array-like or data frame
            Rows that give the ranges of the inputs, drawn as dots.
        features : pair of int or str, default=(0, 1)
            Numbers or names of two inputs of numbers.
        row, confidence_level, n_points, **described
            As in :class:`PredictionBandDisplay`; one level, and points along each input.

        Examples
        --------
        >>> from conformal_gp import ConformalGPRegressor
        >>> from conformal_gp.plotting import WidthContourDisplay
        >>> X = [[0.0, 0.0], [1.0, 2.0], [2.0, 1.0]]
        >>> model = ConformalGPRegressor("se", tuning="fixed", noise_variance=0.1).fit(X, [0, 1, 0])
        >>> WidthContourDisplay.from_estimator(model, X, confidence_level=0.5, n_points=3).width.shape
        (3, 3)
        """
        level = float(read_level(confidence_level))
        part = Slice.of(X, features, row)
        if len(part.varied) != 2 or any(map(is_text, part.varied.values())):
            raise ValueError(f"features must be two different inputs of numbers, got {features!r}.")
        names = list(part.varied)
        first, second = (np.linspace(values.min(), values.max(), n_points) for values in part.varied.values())
        grid = np.meshgrid(first, second)
        ends = estimator.predict_interval(part.at(dict(zip(names, map(np.ravel, grid), strict=True))), level)
        width = (ends[:, 1] - ends[:, 0]).reshape(n_points, n_points)
        described |= {"rows": list(part.varied.values()), "near": part.near, "confidence_level": level}
        described["feature_names"] = (part.named(names[0]), names[1])
        return cls.from_predictions(first, second, width, **described)

    def _draw(self, ax: Any) -> dict[str, str]:
        finite = np.isfinite(self.width)
        if finite.any():
            drawn = ax.contourf(
                self.first, self.second, np.ma.array(self.width, mask=~finite), N_COLOURS, cmap="viridis"
            )
            name = self.target_name or "the target"
            self.bar_ = ax.figure.colorbar(drawn, ax=ax, label=f"width of {percent(self.level)} intervals of {name}")
        if not finite.all():
            ax.plot([], [], linestyle="none", marker="s", markerfacecolor="none", color=ink(), label="infinite (blank)")
        style: dict[str, Any] = {"marker": "o", "color": "#222222", "markeredgecolor": "#FFFFFF", "markersize": 4}
        draw_rows(ax, self.rows[0], self.rows[1], self.near, 0.3, **style)
        return {"xlabel": self.feature_names[0], "ylabel": self.feature_names[1]}
