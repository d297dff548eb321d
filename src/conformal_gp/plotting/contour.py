"""Widths of intervals over two inputs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike

from conformal_gp.conformal.levels import read_level
from conformal_gp.formatting import percent
from conformal_gp.plotting.frame import Display, ink, vector
from conformal_gp.plotting.slices import Slice, is_text

N_COLOURS = 8


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
        self.near = np.ones(self.rows.shape[1], dtype=bool)
        if near is not None:
            self.near = np.asarray(near, dtype=bool)
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
        for which, alpha, label in ((~self.near, 0.3, "other rows"), (self.near, 1.0, "rows near the held values")):
            if which.any():
                style = {"linestyle": "none", "marker": "o", "color": "#222222", "markeredgecolor": "#FFFFFF"}
                if self.near.all():
                    label = "rows"
                ax.plot(*self.rows[:, which], markersize=4, alpha=alpha, label=label, **style)
        return {"xlabel": self.feature_names[0], "ylabel": self.feature_names[1]}
