"""Prediction bands over one input."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from conformal_gp.evaluation import percent
from conformal_gp.plotting.arguments import one_input_varied, stacked, vector
from conformal_gp.plotting.display import Display
from conformal_gp.plotting.infinite import arrowheads, limits_of
from conformal_gp.plotting.style import BLUE, LINES, axes_or_new, finish, ink, nth, tints, titled
from conformal_gp.types import Mask

if TYPE_CHECKING:
    from matplotlib.axes import Axes


ARROWS = 12  # along a band without a finite end


class RowsAlongOneInput(Display):
    """What displays over one input share: the rows as dots, arrowheads for infinite ends, names of axes."""

    def __init__(
        self,
        grid: ArrayLike,
        n_points: int,
        *,
        x: ArrayLike | None = None,
        y: ArrayLike | None = None,
        feature_name: str | None = None,
        target_name: str | None = None,
    ):
        if (x is None) != (y is None):
            raise ValueError("x and y must be given together, got one of them.")
        self.grid = vector("grid", grid, n_points)
        self.x = np.empty(0) if x is None else np.ravel(np.asarray(x, dtype=float))
        self.y = np.empty(0) if y is None else vector("y", y, self.x.size)
        self.feature_name = feature_name
        self.target_name = target_name

    def _add_rows(self, ax: Axes) -> None:
        """Draw the rows, if there are any."""
        if self.x.size:
            ax.plot(self.x, self.y, linestyle="none", marker=".", color=ink(), markersize=4, alpha=0.6, label="rows")

    def _add_arrows(self, ax: Axes, below: Mask, above: Mask, limits: tuple[float, float]) -> None:
        """Draw arrowheads where something is infinite, evenly over the grid: at all places they would touch."""
        if below.any() or above.any():
            apart = max(1, self.grid.size // ARROWS)
            arrowheads(ax, self.grid[below][::apart], self.grid[above][::apart], limits)

    def _finished(self, ax: Axes) -> Self:
        """Name the axes and keep them."""
        ax.set(xlabel=self.feature_name or "", ylabel=self.target_name or "")
        finish(ax)
        self.ax_, self.figure_ = ax, ax.figure
        return self


class PredictionBandDisplay(RowsAlongOneInput):
    """Prediction intervals along one input, the other inputs held: a band for each level.

    Made by :meth:`from_estimator` or :meth:`from_predictions`.

    Parameters
    ----------
    grid : ndarray of shape (n_points,)
        Values of the input, ascending.
    prediction : ndarray of shape (n_points,)
        Predicted labels there.
    intervals : ndarray of shape (n_points, 2, n_levels)
        Lower and upper ends.
    confidence_level : float or sequence of floats
        Their level or levels, kept as the list ``levels``.
    x, y : ndarray of shape (n_samples,) or None, default=None
        Rows to draw as dots.
    feature_name, target_name : str or None, default=None
        What the axes are called.
    name : str or None, default=None
        What the bands are called in the legend.

    Attributes
    ----------
    ax_, figure_ : matplotlib Axes and Figure
        Where it was drawn.
    bands_ : list of matplotlib PolyCollection
        The bands, in the order of ``levels``.
    line_ : matplotlib Line2D
        The predictions.

    Examples
    --------
    >>> from conformal_gp import ConformalGPRegressor
    >>> from conformal_gp.datasets import load_auto_mpg
    >>> from conformal_gp.plotting import PredictionBandDisplay
    >>> X, y = load_auto_mpg(return_X_y=True)
    >>> model = ConformalGPRegressor(tuning="holdout", length_scales="one", random_state=0).fit(X[:100], y[:100])
    >>> display = PredictionBandDisplay.from_estimator(model, X, feature=3, target_name="miles per gallon")
    >>> display.ax_.get_ylabel()
    'miles per gallon'
    """

    def __init__(
        self,
        grid: ArrayLike,
        prediction: ArrayLike,
        intervals: ArrayLike,
        *,
        confidence_level: float | ArrayLike,
        name: str | None = None,
        **described: Any,
    ):
        self.intervals, self.levels = stacked(intervals, confidence_level)
        super().__init__(grid, len(self.intervals), **described)
        self.prediction = vector("prediction", prediction, len(self.intervals))
        self.name = name

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        X: Any,
        y: ArrayLike | None = None,
        *,
        feature: int | str = 0,
        fixed: Mapping[int | str, float] | None = None,
        confidence_level: float | ArrayLike = (0.5, 0.8, 0.95),
        n_points: int = 200,
        name: str | None = None,
        target_name: str | None = None,
        ax: Axes | None = None,
    ) -> Self:
        """Predict along one input and draw.

        Parameters
        ----------
        estimator : fitted regressor with ``predict_interval``
            The model.
        X : array-like or data frame of shape (n_samples, n_features)
            Rows that give the range of the input and the medians of the others.
        y : array-like of shape (n_samples,) or None, default=None
            Labels of ``X``, to draw the rows as dots. With more than one input the bands are not those of these rows,
            whose other inputs differ from the medians.
        feature : int or str, default=0
            Number or name of the input that varies.
        fixed : mapping of int or str to float, or None, default=None
            Values of other inputs, in place of their medians. Give it for categories that are 0/1 inputs: at the
            medians a row may belong to no category.
        confidence_level : float or sequence of floats, default=(0.5, 0.8, 0.95)
            Level of each band.
        n_points : int, default=200
            Points along the input.
        name, target_name : str or None, default=None
            What to call the bands and the label.
        ax : matplotlib Axes or None, default=None
            Where to draw; None makes a figure.

        Returns
        -------
        display : PredictionBandDisplay
            The display.

        Examples
        --------
        >>> from conformal_gp import ConformalGPRegressor
        >>> from conformal_gp.plotting import PredictionBandDisplay
        >>> model = ConformalGPRegressor("se", tuning="fixed", noise_variance=0.1).fit([[0.0], [1.0], [2.0]], [0, 1, 0])
        >>> display = PredictionBandDisplay.from_estimator(model, [[0.0], [2.0]], confidence_level=0.5, n_points=3)
        >>> display.grid, display.intervals.shape
        (array([0., 1., 2.]), (3, 2, 1))
        """
        rows, grid, x, feature_name = one_input_varied(X, feature, fixed, n_points)
        return cls.from_predictions(
            grid,
            estimator.predict(rows),
            estimator.predict_interval(rows, confidence_level),
            confidence_level=confidence_level,
            x=None if y is None else x,
            y=y,
            feature_name=feature_name,
            target_name=target_name,
            name=name,
            ax=ax,
        )

    def limits(self) -> tuple[float, float]:
        """Vertical limits that show all that is finite.

        Examples
        --------
        >>> from conformal_gp.plotting import PredictionBandDisplay
        >>> display = PredictionBandDisplay([0, 1], [1, 1], [[0, 2], [0, float("inf")]], confidence_level=0.9)
        >>> low, high = display.limits()
        >>> low < 0 < 2 < high < 3
        True
        """
        return limits_of(self.intervals, self.prediction, self.y)

    def plot(self, ax: Axes | None = None, *, color: str = BLUE, hatch: str | None = None) -> Self:
        """Draw.

        Parameters
        ----------
        ax : matplotlib Axes or None, default=None
            Where; None makes a figure.
        color : str, default=blue
            Colour of the edges; the bands are filled with tints of it.
        hatch : str or None, default=None
            Matplotlib's hatch for the bands.

        Returns
        -------
        self : PredictionBandDisplay
            The display.

        Examples
        --------
        >>> from conformal_gp.plotting import PredictionBandDisplay
        >>> display = PredictionBandDisplay([0, 1], [1, 1], [[0, 2], [0, 2]], confidence_level=0.9, name="mine")
        >>> display.plot(color="#009e73").bands_[0].get_label()
        'mine 90%'
        """
        ax = axes_or_new(ax)
        limits = self.limits()
        shown = np.clip(self.intervals, *limits)
        fills = tints(color, len(self.levels))
        self.bands_: list[Any] = [None] * len(self.levels)
        for step, k in enumerate(np.argsort(self.levels)[::-1]):  # the widest lies below the others
            self.bands_[k] = ax.fill_between(
                self.grid,
                shown[:, 0, k],
                shown[:, 1, k],
                facecolor=fills[step],
                edgecolor=color,
                linestyle=nth(LINES, step),
                linewidth=0.8,
                hatch=hatch,
                label=titled(self.name, percent(self.levels[k])),
            )
        (self.line_,) = ax.plot(self.grid, self.prediction, color=ink(), linewidth=1.4, label="prediction")
        self._add_rows(ax)
        endless: NDArray[np.bool_] = np.any(np.isinf(self.intervals), axis=2)
        self._add_arrows(ax, endless[:, 0], endless[:, 1], limits)
        return self._finished(ax)
