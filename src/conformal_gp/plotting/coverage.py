"""Coverage against nominal level."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike

from conformal_gp import metrics
from conformal_gp.conformal.levels import read_levels
from conformal_gp.evaluation import chance_range
from conformal_gp.formatting import CONFORMAL
from conformal_gp.plotting.frame import LINES, MARKERS, Display, colour_of, ink, stacked, tint

TWENTIETHS = tuple(percents / 100 for percents in range(50, 100, 5))


class CoverageDisplay(Display):
    """Coverage against confidence level, of one model or several.

    The band is the expected range, the central 95% of a binomial distribution at each level
    (:func:`conformal_gp.evaluation.chance_range`). Intervals whose line lies below it are too narrow.

    Parameters
    ----------
    y_true : array-like of shape (n_samples,)
        True values.
    intervals : array-like of shape (n_samples, 2, n_levels) or (n_samples, 2), or mapping of str to such
        Lower and upper bounds of one method, or of several by name.
    confidence_level : float or sequence of floats
        Levels of the intervals.

    Attributes
    ----------
    coverage : dict of str to ndarray of shape (n_levels,)
        Coverage of each method.
    band : ndarray of shape (n_levels, 2)
        Bounds of the expected range.

    Examples
    --------
    >>> from conformal_gp.plotting import CoverageDisplay
    >>> intervals = {"narrow": [[0, 1], [0, 1]], "wide": [[0, 9], [0, 9]]}
    >>> display = CoverageDisplay.from_predictions([0.5, 2.0], intervals, confidence_level=0.9)
    >>> display.coverage["narrow"], display.coverage["wide"]
    (array([0.5]), array([1.]))
    """

    def __init__(
        self, y_true: ArrayLike, intervals: ArrayLike | Mapping[str, ArrayLike], *, confidence_level: ArrayLike
    ):
        self.levels = [float(level) for level in read_levels(np.ravel(confidence_level))[0]]
        if not isinstance(intervals, Mapping):
            intervals = {CONFORMAL: intervals}
        self.coverage = {k: metrics.coverage(y_true, stacked(ends, self.levels)) for k, ends in intervals.items()}
        self.n_rows = np.size(y_true)
        self.band = chance_range(self.levels, self.n_rows)

    @classmethod
    def from_estimator(
        cls, estimator: Any, X: Any, y: ArrayLike, *, confidence_level: ArrayLike = TWENTIETHS, ax: Any = None
    ) -> Self:
        """Predict test rows at many levels, count and draw.

        Parameters
        ----------
        estimator : fitted regressor with ``predict_interval``, or mapping of str to such
            The model, or several by name.
        X, y, confidence_level, ax
            Test inputs, their true values, levels, and where to draw.

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
        if not isinstance(estimator, Mapping):
            estimator = {CONFORMAL: estimator}
        intervals = {name: model.predict_interval(X, levels) for name, model in estimator.items()}
        return cls.from_predictions(y, intervals, confidence_level=levels, ax=ax)

    def _draw(self, ax: Any) -> dict[str, str]:
        order = np.argsort(self.levels)
        levels = 100.0 * np.asarray(self.levels)[order]
        label = f"expected range, {self.n_rows} rows"
        ax.fill_between(levels, *(100.0 * self.band[order].T), color=tint(ink(), 0.15), linewidth=0, label=label)
        ax.plot(levels, levels, color=ink(), linewidth=0.8, linestyle=":", label="nominal")
        self.lines_ = {}
        for k, (name, share) in enumerate(self.coverage.items()):
            style: dict[str, Any] = {"color": colour_of(name, k), "linestyle": LINES[k % 4]}
            style |= {"marker": MARKERS[k % 6], "markersize": 5, "markevery": max(1, levels.size // 10)}
            (self.lines_[name],) = ax.plot(levels, 100.0 * np.asarray(share)[order], label=name, **style)
        return {"xlabel": "confidence level, %", "ylabel": "coverage, %"}
