"""The band of a plain Gaussian process beside the conformal one."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike

from conformal_gp.conformal.levels import read_levels
from conformal_gp.gp.error_bars import error_bars
from conformal_gp.plotting.arguments import one_input_varied
from conformal_gp.plotting.band import PredictionBandDisplay
from conformal_gp.plotting.style import BLUE, VERMILION, pyplot


class ComparisonDisplay:
    """Error bars of a plain Gaussian process beside conformal intervals, along one input and on the same scale.

    Made by :meth:`from_estimator` or :meth:`from_predictions`.

    Parameters
    ----------
    plain, conformal : PredictionBandDisplay
        The two bands.

    Attributes
    ----------
    ax_ : ndarray of two matplotlib Axes
        Where they were drawn, plain first.
    figure_ : matplotlib Figure
        Its figure.

    Examples
    --------
    >>> import numpy as np
    >>> from conformal_gp.plotting import ComparisonDisplay
    >>> x = np.linspace(0.0, 1.0, 5)
    >>> narrow, wide = np.stack([x - 1.0, x + 1.0], axis=1), np.stack([x - 2.0, x + 2.0], axis=1)
    >>> display = ComparisonDisplay.from_predictions(x, x, narrow, wide, confidence_level=0.9)
    >>> [ax.get_title(loc="left") for ax in display.ax_]
    ['Gaussian process', 'Conformal']
    """

    def __init__(self, *, plain: PredictionBandDisplay, conformal: PredictionBandDisplay):
        self.plain = plain
        self.conformal = conformal

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        X: Any,
        y: ArrayLike | None = None,
        *,
        plain: Any = None,
        confidence_level: float | ArrayLike = 0.95,
        target_name: str | None = None,
        ax: ArrayLike | None = None,
        **along: Any,
    ) -> Self:
        """Predict along one input and draw both bands.

        Parameters
        ----------
        estimator, X, y, confidence_level, target_name
            As in :meth:`PredictionBandDisplay.from_estimator`.
        plain : fitted regressor with ``predict(X, return_std=True)``, or None, default=None
            The plain model, whose standard deviations are those of new labels. None takes ``estimator``.
        ax : sequence of two matplotlib Axes, or None, default=None
            Where to draw; None makes a figure.
        **along
            ``feature``, ``fixed`` and ``n_points``, as in :meth:`PredictionBandDisplay.from_estimator`.

        Returns
        -------
        display : ComparisonDisplay
            The display.

        Examples
        --------
        >>> from conformal_gp import ConformalGPRegressor
        >>> from conformal_gp.plotting import ComparisonDisplay
        >>> model = ConformalGPRegressor("se", tuning="fixed", noise_variance=0.1).fit([[0.0], [1.0], [2.0]], [0, 1, 0])
        >>> display = ComparisonDisplay.from_estimator(model, [[0.0], [2.0]], confidence_level=0.5, n_points=3)
        >>> display.plain.intervals.shape == display.conformal.intervals.shape == (3, 2, 1)
        True
        """
        rows, grid, x, feature_name = one_input_varied(X, **along)
        mean, std = (estimator if plain is None else plain).predict(rows, return_std=True)
        return cls.from_predictions(
            grid,
            estimator.predict(rows),
            error_bars(mean, std, read_levels(confidence_level)[0]),
            estimator.predict_interval(rows, confidence_level),
            confidence_level=confidence_level,
            plain_prediction=mean,
            x=None if y is None else x,
            y=y,
            feature_name=feature_name,
            target_name=target_name,
            ax=ax,
        )

    @classmethod
    def from_predictions(
        cls,
        grid: ArrayLike,
        prediction: ArrayLike,
        plain_intervals: ArrayLike,
        conformal_intervals: ArrayLike,
        *,
        plain_prediction: ArrayLike | None = None,
        ax: ArrayLike | None = None,
        **described: Any,
    ) -> Self:
        """Draw given predictions.

        Parameters
        ----------
        grid, prediction
            As in :class:`PredictionBandDisplay`.
        plain_intervals, conformal_intervals : array-like of shape (n_points, 2) or (n_points, 2, n_levels)
            Lower and upper ends of the two bands.
        plain_prediction : array-like of shape (n_points,) or None, default=None
            Predictions of the plain model; None takes ``prediction``.
        ax : sequence of two matplotlib Axes, or None, default=None
            Where to draw; None makes a figure.
        **described
            ``confidence_level`` and the other parameters of :class:`PredictionBandDisplay`.

        Returns
        -------
        display : ComparisonDisplay
            The display.

        Examples
        --------
        >>> from conformal_gp.plotting import ComparisonDisplay
        >>> narrow, wide = [[0, 2], [0, 2]], [[-1, 3], [-1, 3]]
        >>> display = ComparisonDisplay.from_predictions([0, 1], [1, 1], narrow, wide, confidence_level=0.9)
        >>> display.conformal.intervals[:, :, 0]
        array([[-1.,  3.],
               [-1.,  3.]])
        """
        means = prediction if plain_prediction is None else plain_prediction
        plain = PredictionBandDisplay(grid=grid, prediction=means, intervals=plain_intervals, **described)
        conformal = PredictionBandDisplay(grid=grid, prediction=prediction, intervals=conformal_intervals, **described)
        return cls(plain=plain, conformal=conformal).plot(ax)

    def plot(self, ax: ArrayLike | None = None) -> Self:
        """Draw into two axes, or into a new figure.

        Examples
        --------
        >>> from conformal_gp.plotting import ComparisonDisplay, PredictionBandDisplay
        >>> band = PredictionBandDisplay([0, 1], [1, 1], [[0, 2], [0, 2]], confidence_level=0.9)
        >>> ComparisonDisplay(plain=band, conformal=band).plot().ax_.shape
        (2,)
        """
        plt = pyplot()
        if ax is None:
            ax = plt.subplots(1, 2, figsize=(9, 4), layout="constrained")[1]
        axes = np.ravel(np.asarray(ax, dtype=object))
        if axes.size != 2:
            raise ValueError(f"ax must be two axes, got {axes.size}.")
        self.plain.plot(axes[0], color=VERMILION, hatch="///")
        self.conformal.plot(axes[1], color=BLUE)
        limits = np.array([display.limits() for display in (self.plain, self.conformal)])
        for axis, title in zip(axes, ("Gaussian process", "Conformal"), strict=True):
            axis.set_ylim(limits[:, 0].min(), limits[:, 1].max())
            axis.set_title(title, loc="left")
        axes[1].set_ylabel("")
        self.ax_, self.figure_ = axes, axes[0].figure
        return self
