"""Pictures of slices of the space of inputs: one or two inputs vary, the others are held at those of a row."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils import _safe_indexing

from conformal_gp.arrays import Array
from conformal_gp.conformal.levels import read_level, read_levels
from conformal_gp.extrapolation import columns_of
from conformal_gp.formatting import number, percent
from conformal_gp.plotting.frame import Display, accent, arrowheads, ink, limits_of, stacked, tint, vector
from conformal_gp.validation import is_frame

MOST_HELD = 5  # inputs whose values are named below the picture
ARROWS = 12  # along a band without a finite end
N_COLOURS = 8


class _Slice(NamedTuple):
    """Inputs that vary, and the row of X that has the values of the others."""

    X: Any
    varied: dict[str, Array]
    """Values of the inputs that vary, in all rows."""
    row: int
    held: str
    """The held values in words; empty if every input varies."""

    @classmethod
    def of(cls, X: Any, features: Sequence[int | str], row: int | None) -> _Slice:
        """Find inputs by number or name; None holds the row nearest to medians and most frequent categories."""
        if not is_frame(X):
            X = np.asarray(X, dtype=float)
        others = columns_of(X)
        names = list(others)
        varied = {}
        for feature in features:
            name = _named(feature, names)
            if name not in others or others[name].dtype.kind != "f":
                raise ValueError(f"inputs that vary must be different columns of numbers, got {features!r}.")
            varied[name] = others.pop(name)
        n_rows = len(X)
        if row is None:
            row = int(np.argmin(_distances(others, n_rows)))
        if not 0 <= row < n_rows:
            raise ValueError(f"row must be a row of X: 0 to {n_rows - 1}, or None; got {row!r}.")
        return cls(X, varied, row, _in_words({name: column[row] for name, column in others.items()}))

    def at(self, values: Mapping[str, Array]) -> Any:
        """Rows of the kind of X where the inputs that vary have given values, (m,) each."""
        size = len(next(iter(values.values())))
        rows = _safe_indexing(self.X, [self.row] * size)
        names = list(columns_of(self.X))
        if is_frame(self.X):
            parts = {name: values.get(name, rows[name]) for name in names}
            return type(self.X)({name: getattr(part, "array", part) for name, part in parts.items()})  # no pandas index
        for name, value in values.items():
            rows[:, names.index(name)] = value
        return rows


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
    said = []
    for name, value in list(held.items())[:MOST_HELD]:
        if not isinstance(value, str):
            value = number(value)
        said.append(f"{name} {value}")
    shown = ", ".join(said)
    if len(held) > MOST_HELD:
        shown += f" and {len(held) - MOST_HELD} more"
    return f"others held at {shown}"


def _distances(columns: Mapping[str, NDArray[Any]], n_rows: int) -> Array:
    """Squared distance of each row from the medians, in standard deviations; 1 for a category that is not the usual."""
    distance = np.zeros(n_rows)
    for column in columns.values():
        if column.dtype.kind == "U":
            codes, counts = np.unique(column, return_inverse=True, return_counts=True)[1:]
            distance += codes != np.argmax(counts)
        else:
            distance += ((column - np.median(column)) / (column.std() or 1.0)) ** 2
    return distance


def _draw_rows(ax: Any, x: Array, y: Array, *, alone: bool, **style: Any) -> None:
    """Draw rows as dots, which fade if they differ in other inputs from what is drawn."""
    style |= {"alpha": 0.8, "label": "rows"}
    if not alone:
        style |= {"alpha": 0.3, "label": "rows, at any values of the others"}
    if x.size:
        ax.plot(x, y, linestyle="none", **style)


class PredictionBandDisplay(Display):
    """Prediction intervals along one input, the other inputs held: a band for each level.

    Parameters
    ----------
    grid : array-like of shape (n_points,)
        Values of the input, ascending.
    prediction : array-like of shape (n_points,)
        Predictions there.
    intervals : array-like of shape (n_points, 2, n_levels) or (n_points, 2)
        Lower and upper bounds.
    confidence_level : float or sequence of floats
        Their level or levels.
    x, y : array-like of shape (n_samples,) or None, default=None
        Rows to draw as dots.
    feature_name, target_name : str or None, default=None
        Names of the axes.
    held : str, default=""
        Values of the other inputs, in words below the picture; rows then fade.

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
        feature_name: str | None = None,
        target_name: str | None = None,
        held: str = "",
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
        self.feature_name = feature_name
        self.target_name = target_name
        self.held = held

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
            Rows that give the range of the input; with ``y`` they are drawn.
        feature : int or str, default=0
            Number or name of the input that varies, a column of numbers.
        row : int or None, default=None
            Row of X whose other inputs are held; None is the one nearest to medians and most frequent categories.
        confidence_level, n_points
            Level of each band, and points along the input.
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
        part = _Slice.of(X, [feature], row)
        ((name, x),) = part.varied.items()
        grid = np.linspace(x.min(), x.max(), n_points)
        rows = part.at({name: grid})
        described |= {"feature_name": name, "held": part.held, "confidence_level": confidence_level}
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
            self.bands_[k] = ax.fill_between(self.grid, low, high, **style)
        (self.line_,) = ax.plot(self.grid, self.prediction, color=ink(), linewidth=1.4, label="prediction")
        _draw_rows(ax, self.x, self.y, alone=not self.held, marker=".", color=ink(), markersize=5)
        some = slice(None, None, max(1, self.grid.size // ARROWS))
        widest = self.intervals[:, :, int(np.argmax(self.levels))]
        arrowheads(ax, self.grid[some], widest[some], limits)
        name = "\n".join(filter(None, [self.feature_name, self.held]))
        return {"xlabel": name, "ylabel": self.target_name or "target"}


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
    feature_names : pair of str, default=("", "")
        Names of the axes.
    target_name : str or None, default=None
        Name of the target.
    held : str, default=""
        Values of the other inputs, in words below the picture; rows then fade.

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
        feature_names: Sequence[str] = ("", ""),
        target_name: str | None = None,
        held: str = "",
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
        self.feature_names = feature_names
        self.target_name = target_name
        self.held = held

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
        if len(features) != 2:
            raise ValueError(f"features must be two columns, got {features!r}.")
        part = _Slice.of(X, features, row)
        names = list(part.varied)
        first, second = (np.linspace(values.min(), values.max(), n_points) for values in part.varied.values())
        grid = np.meshgrid(first, second)
        ends = estimator.predict_interval(part.at(dict(zip(names, map(np.ravel, grid), strict=True))), level)
        width = (ends[:, 1] - ends[:, 0]).reshape(n_points, n_points)
        described |= {"rows": list(part.varied.values()), "held": part.held, "confidence_level": level}
        return cls.from_predictions(first, second, width, feature_names=names, **described)

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
        _draw_rows(ax, *self.rows, alone=not self.held, **style)
        name = "\n".join(filter(None, [self.feature_names[0], self.held]))
        return {"xlabel": name, "ylabel": self.feature_names[1]}
