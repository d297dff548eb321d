"""Coverage against nominal level."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import ArrayLike

from conformal_gp import metrics
from conformal_gp.conformal.levels import read_levels
from conformal_gp.evaluation import chance_range, percent
from conformal_gp.plotting.arguments import named, stacked
from conformal_gp.plotting.style import COLOURS, LINES, MARKERS, axes_or_new, finish, grey, ink, nth
from conformal_gp.types import Array

if TYPE_CHECKING:
    from matplotlib.axes import Axes


WHOLE_PERCENTS = tuple(number / 100 for number in range(50, 100))
MARKERS_ON_A_LINE = 10


class CoverageDisplay:
    """Share of labels inside their intervals against the level that was asked for.

    The band shows the shares that chance allows: the central part of a binomial distribution at each level
    (:func:`conformal_gp.evaluation.chance_range`). Intervals whose line lies below it are too narrow.

    Made by :meth:`from_estimator` or :meth:`from_predictions`.

    Parameters
    ----------
    coverage : mapping of str to ndarray of shape (n_levels,)
        Share of labels inside, for each method.
    confidence_level : sequence of floats
        Levels, kept as the list ``levels``.
    n_rows : int
        Number of labels.
    band : float, default=0.95
        Probability of the binomial band at each level.

    Attributes
    ----------
    band_ : ndarray of shape (n_levels, 2)
        Ends of the binomial band.
    lines_ : dict of str to matplotlib Line2D
        The line of each method.
    ax_, figure_ : matplotlib Axes and Figure
        Where it was drawn.

    Examples
    --------
    >>> from conformal_gp import ConformalGPRegressor
    >>> from conformal_gp.datasets import load_auto_mpg
    >>> from conformal_gp.plotting import CoverageDisplay
    >>> X, y = load_auto_mpg(return_X_y=True)
    >>> model = ConformalGPRegressor(tuning="holdout", length_scales="one", random_state=0).fit(X[::2], y[::2])
    >>> display = CoverageDisplay.from_estimator(model, X[1::2], y[1::2], confidence_level=[0.5, 0.8, 0.95])
    >>> display.coverage["conformal"].round(2)
    array([0.59, 0.85, 0.98])
    """

    def __init__(self, *, coverage: Mapping[str, Array], confidence_level: ArrayLike, n_rows: int, band: float = 0.95):
        if not 0.0 < band < 1.0:
            raise ValueError(f"band must lie strictly between 0 and 1, got {band!r}.")
        self.coverage = coverage
        self.levels = [float(level) for level in read_levels(confidence_level)[0]]
        self.n_rows = n_rows
        self.band = band
        self.band_ = chance_range(self.levels, n_rows, band)

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        X: Any,
        y: ArrayLike,
        *,
        confidence_level: ArrayLike = WHOLE_PERCENTS,
        band: float = 0.95,
        ax: Axes | None = None,
    ) -> Self:
        """Predict test rows at many levels, count and draw.

        Parameters
        ----------
        estimator : fitted regressor with ``predict_interval``, or mapping of str to such
            The model, or several by name.
        X : array-like or data frame of shape (n_samples, n_features)
            Test inputs.
        y : array-like of shape (n_samples,)
            Their labels.
        confidence_level : sequence of floats, default=0.5 to 0.99
            Levels.
        band : float, default=0.95
            Probability of the binomial band at each level.
        ax : matplotlib Axes or None, default=None
            Where to draw; None makes a figure.

        Returns
        -------
        display : CoverageDisplay
            The display.

        Examples
        --------
        >>> from conformal_gp import ConformalGPRegressor
        >>> from conformal_gp.plotting import CoverageDisplay
        >>> model = ConformalGPRegressor("se", tuning="fixed", noise_variance=0.1).fit([[0.0], [1.0], [2.0]], [0, 1, 0])
        >>> display = CoverageDisplay.from_estimator(model, [[0.5], [1.5]], [0.5, 9.0], confidence_level=[0.5, 0.6])
        >>> display.coverage["conformal"]
        array([0.5, 0.5])
        """
        levels = np.ravel(np.asarray(confidence_level))
        intervals = {
            name: model.predict_interval(X, levels) for name, model in named(estimator, default="conformal").items()
        }
        return cls.from_predictions(y, intervals, confidence_level=levels, band=band, ax=ax)

    @classmethod
    def from_predictions(
        cls,
        y_true: ArrayLike,
        intervals: ArrayLike | Mapping[str, ArrayLike],
        *,
        confidence_level: ArrayLike,
        band: float = 0.95,
        ax: Axes | None = None,
    ) -> Self:
        """Count labels inside given intervals and draw.

        Parameters
        ----------
        y_true : array-like of shape (n_samples,)
            Labels.
        intervals : array-like of shape (n_samples, 2, n_levels), or mapping of str to such
            Lower and upper ends of one method, or of several by name.
        confidence_level : sequence of floats
            Levels of the intervals.
        band, ax
            As in :meth:`from_estimator`.

        Returns
        -------
        display : CoverageDisplay
            The display.

        Examples
        --------
        >>> from conformal_gp.plotting import CoverageDisplay
        >>> intervals = {"narrow": [[0, 1], [0, 1]], "wide": [[0, 9], [0, 9]]}
        >>> display = CoverageDisplay.from_predictions([0.5, 2.0], intervals, confidence_level=0.9)
        >>> display.coverage["narrow"], display.coverage["wide"]
        (array([0.5]), array([1.]))
        """
        shares = {}
        for name, ends in named(intervals, default="conformal").items():
            shares[name] = metrics.coverage(y_true, stacked(ends, confidence_level)[0])
        return cls(coverage=shares, confidence_level=confidence_level, n_rows=np.size(y_true), band=band).plot(ax)

    def plot(self, ax: Axes | None = None) -> Self:
        """Draw into ``ax``, or into a new figure.

        Examples
        --------
        >>> from conformal_gp.plotting import CoverageDisplay
        >>> display = CoverageDisplay(coverage={"mine": [0.5, 0.9]}, confidence_level=[0.5, 0.9], n_rows=20)
        >>> display.plot().lines_["mine"].get_xdata()
        array([50., 90.])
        """
        ax = axes_or_new(ax)
        order = np.argsort(self.levels)
        levels = 100.0 * np.asarray(self.levels)[order]
        low, high = 100.0 * self.band_[order].T
        ax.fill_between(
            levels,
            low,
            high,
            color=grey(0.12),
            linewidth=0,
            label=f"chance: {percent(self.band)} of samples of {self.n_rows} rows",
        )
        ax.plot(levels, levels, color=ink(), linewidth=0.8, linestyle=":", label="as asked for")
        self.lines_ = {}
        for number, (name, share) in enumerate(self.coverage.items()):
            (self.lines_[name],) = ax.plot(
                levels,
                100.0 * np.asarray(share)[order],
                color=nth(COLOURS, number),
                linestyle=nth(LINES, number),
                marker=nth(MARKERS, number),
                markersize=5,
                markevery=max(1, levels.size // MARKERS_ON_A_LINE),
                label=name,
            )
        ax.set(xlabel="confidence level, %", ylabel="labels inside, %")
        finish(ax)
        self.ax_, self.figure_ = ax, ax.figure
        return self
