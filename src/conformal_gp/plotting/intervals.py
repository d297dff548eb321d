"""Intervals of rows: against their predictions, by name, or of standardised residuals; and their coverage by level."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import ndtri

from conformal_gp import metrics
from conformal_gp.arrays import Array
from conformal_gp.conformal.levels import read_level, read_levels
from conformal_gp.evaluation import chance_range, leave_one_out
from conformal_gp.formatting import CONFORMAL, percent
from conformal_gp.plotting.frame import (
    LINES,
    MARKERS,
    ORANGE,
    PURPLE,
    VERMILION,
    Display,
    arrowheads,
    colour_of,
    ink,
    limits_of,
    stacked,
    tint,
    vector,
)

FEW_ROWS = 40  # rows that are drawn by name
MOST_NAMED = 12  # rows that are not covered and are named in a picture of more rows
TWENTIETHS = tuple(percents / 100 for percents in range(50, 100, 5))


class IntervalDisplay(Display):
    """Predicted against actual: the interval of each row at its prediction, with true values where they are known.

    Up to 40 rows with names are drawn side by side under their names, in order of their predictions. Rows outside the
    training range, to which the guarantee does not apply, are dotted.

    Parameters
    ----------
    y_true : array-like of shape (n_samples,) or None
        True values, NaN or None where they are not known; those not covered are marked (``covered``).
    prediction : array-like of shape (n_samples,)
        Predictions.
    intervals : array-like of shape (n_samples, 2)
        Lower and upper bounds.
    confidence_level : float
        Their level.
    names : sequence of str or None, default=None
        Names of the rows. Of more than 40 rows, those that are not covered are named, if there are at most 12.
    extrapolated : array-like of bool of shape (n_samples,) or None, default=None
        Rows outside the training range.
    method, target_name : str or None, default=None
        Names of the method and the target.

    Examples
    --------
    >>> from conformal_gp.plotting import IntervalDisplay
    >>> display = IntervalDisplay.from_predictions([1, 2, 9], [1, 2, 3], [[0, 2], [1, 3], [2, 4]], confidence_level=0.9)
    >>> display.covered
    array([ True,  True, False])
    >>> display.ax_.get_title(loc="left")
    '90% intervals covered 2 of 3 rows (66.7%)'
    """

    def __init__(
        self,
        y_true: ArrayLike | None,
        prediction: ArrayLike,
        intervals: ArrayLike,
        *,
        confidence_level: float,
        names: Sequence[str] | None = None,
        extrapolated: ArrayLike | None = None,
        method: str | None = None,
        target_name: str | None = None,
    ):
        self.intervals = np.asarray(intervals, dtype=float)
        if self.intervals.ndim != 2 or self.intervals.shape[1] != 2:
            raise ValueError(f"intervals must have shape (n, 2), got {self.intervals.shape}.")
        self.n_rows = len(self.intervals)
        self.prediction = vector("prediction", prediction, self.n_rows)
        self.y_true = np.full(self.n_rows, np.nan)
        if y_true is not None:
            self.y_true = vector("y_true", y_true, self.n_rows)
        low, high = self.intervals.T
        self.covered = (low <= self.y_true) & (self.y_true <= high)
        self.level = read_level(confidence_level)
        self.names = None
        if names is not None:
            self.names = np.array([*map(str, names)])
            if self.names.shape != (self.n_rows,):
                raise ValueError(f"names must be one for each of {self.n_rows} rows, got {self.names.size}.")
        self.extrapolated = np.zeros(self.n_rows, dtype=bool)
        if extrapolated is not None:
            self.extrapolated = np.asarray(extrapolated, dtype=bool)
        self.method = method
        self.target_name = target_name

    @classmethod
    def from_estimator(
        cls, estimator: Any, X: Any, y: ArrayLike | None = None, *, confidence_level: float = 0.9, **described: Any
    ) -> Self:
        """Predict rows and draw.

        Parameters
        ----------
        estimator, X, y
            A fitted regressor with ``predict_interval``, new rows, and their true values, where they are known.
        confidence_level : float, default=0.9
            One level.
        **described
            Other parameters of the class, and ``ax``, where to draw.

        Examples
        --------
        >>> from conformal_gp import ConformalGPRegressor
        >>> from conformal_gp.plotting import IntervalDisplay
        >>> model = ConformalGPRegressor("se", tuning="fixed", noise_variance=0.1).fit([[0.0], [1.0], [2.0]], [0, 1, 0])
        >>> IntervalDisplay.from_estimator(model, [[0.9], [500.0]], confidence_level=0.5).extrapolated
        array([False,  True])
        """
        level = float(read_level(confidence_level))
        if hasattr(estimator, "beyond_training"):
            described["extrapolated"] = estimator.beyond_training(X).any(axis=1)
        described["confidence_level"] = level
        return cls.from_predictions(y, estimator.predict(X), estimator.predict_interval(X, level), **described)

    def _draw(self, ax: Any) -> dict[str, str]:
        name = self.target_name or "target"
        n_known = int(np.isfinite(self.y_true).sum())
        if n_known:
            share = f"{self.covered.sum()} of {n_known} rows ({percent(self.covered.sum() / n_known, 1)})"
            title = f"{percent(self.level)} intervals covered {share}"
            ax.set_title(" ".join(filter(None, [self.method, title])), loc="left", fontsize="medium")
            name = f"actual {name}"
        limits = limits_of(self.intervals, self.prediction, self.y_true)
        order = np.argsort(self.prediction, kind="stable")
        if self.names is None or self.n_rows > FEW_ROWS:
            self._draw_rows(ax, self.prediction, self.intervals, self.y_true, limits)
            ax.plot(self.prediction[order], self.prediction[order], color=ink(), linewidth=0.8, linestyle=":")
            return {"xlabel": f"predicted {self.target_name or 'target'}", "ylabel": name}
        places = np.argsort(order).astype(float)
        self._draw_rows(ax, places, self.intervals, self.y_true, limits, named=False)
        style: dict[str, Any] = {"linestyle": "none", "marker": "_", "color": colour_of(self.method), "markersize": 8}
        ax.plot(places, self.prediction, label="prediction", **style)
        ax.set_xticks(np.arange(self.n_rows), self.names[order], rotation=90)
        return {"xlabel": "", "ylabel": name}

    def _draw_rows(
        self, ax: Any, x: Array, ends: Array, y: Array, limits: tuple[float, float], *, named: bool = True
    ) -> None:
        """Draw intervals (n, 2) at places x (n,), and values y (n,), NaN where they are not known."""
        what = f"{percent(self.level)} interval"
        # in points, so that neighbours hardly touch
        width = min(5.0, max(1.0, 0.6 * ax.get_window_extent().width / ax.figure.dpi * 72.0 / max(self.n_rows, 1)))
        bars = np.clip(ends, *limits)
        inside = ~self.extrapolated
        style: dict[str, Any] = {"alpha": 0.45, "linewidth": width}
        ax.vlines(x[inside], *bars[inside].T, color=colour_of(self.method), label=what, **style)
        if self.extrapolated.any():
            style |= {"alpha": 1.0, "linewidth": 2.0, "linestyle": ":", "label": "row outside the training range"}
            ax.vlines(x[self.extrapolated], *bars[self.extrapolated].T, color=PURPLE, **style)
        if np.isfinite(y).any():
            dots: dict[str, Any] = {"linestyle": "none", "color": ink(), "zorder": 3}
            missed = np.isfinite(y) & ~self.covered
            ax.plot(x[self.covered], y[self.covered], marker=".", markersize=5, label="covered", **dots)
            dots |= {"color": VERMILION, "markeredgecolor": ink()}
            ax.plot(x[missed], y[missed], marker="X", markersize=7, label="not covered", **dots)
            if named and self.names is not None and missed.sum() <= MOST_NAMED:
                for row in np.flatnonzero(missed):
                    place = (x[row], y[row])
                    text: dict[str, Any] = {"xytext": (6, 0), "textcoords": "offset points", "fontsize": "small"}
                    ax.annotate(self.names[row], place, va="center", **text)
        arrowheads(ax, x, ends, limits)


class ResidualDisplay(IntervalDisplay):
    """Standardised residuals against predictions, with intervals in the same unit.

    If the Gaussian process is right, residuals over its standard deviations are standard normal everywhere, and the
    conformal interval of each row agrees with the shaded band, the interval of the standard GP. Errors of a good
    surrogate are thinner than dots in a picture of actual values; residuals show them.

    Parameters
    ----------
    y_true, prediction, intervals
        As in :class:`IntervalDisplay`.
    std : array-like of shape (n_samples,)
        Standard deviations of the Gaussian process.
    **described
        Other parameters of :class:`IntervalDisplay`. Rows that are not covered are named, if there are at most 12.

    Attributes
    ----------
    residual : ndarray of shape (n_samples,)
        Standardised residuals.

    Examples
    --------
    >>> from conformal_gp.plotting import ResidualDisplay
    >>> ends = [[0, 2], [1, 3], [2, 4]]
    >>> std = [0.5, 0.5, 0.5]
    >>> display = ResidualDisplay.from_predictions([1, 2, 9], [1, 2, 3], ends, std=std, confidence_level=0.9)
    >>> display.residual
    array([ 0.,  0., 12.])
    """

    def __init__(
        self, y_true: ArrayLike, prediction: ArrayLike, intervals: ArrayLike, *, std: ArrayLike, **described: Any
    ):
        super().__init__(y_true, prediction, intervals, **described)
        self.std = vector("std", std, self.n_rows)
        self.residual = (self.y_true - self.prediction) / self.std

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        X: Any = None,
        y: ArrayLike | None = None,
        *,
        confidence_level: float = 0.9,
        names: Sequence[str] | None = None,
        **described: Any,
    ) -> Self:
        """Predict new rows, or leave each calibration row out, and draw.

        Parameters
        ----------
        estimator : ConformalGPRegressor
            A fitted model.
        X, y : array-like, or None, default=None
            New rows and their true values; None takes :func:`conformal_gp.evaluation.leave_one_out`.
        confidence_level : float, default=0.9
            One level.
        names : sequence of str or None, default=None
            Names of the new rows; without X, of the training rows, which None numbers from 0.
        **described
            Other parameters of :class:`IntervalDisplay`, and ``ax``, where to draw.

        Examples
        --------
        >>> from conformal_gp import ConformalGPRegressor
        >>> from conformal_gp.plotting import ResidualDisplay
        >>> model = ConformalGPRegressor("se", tuning="fixed", noise_variance=0.1).fit([[0.0], [1.0], [2.0]], [0, 1, 0])
        >>> ResidualDisplay.from_estimator(model, confidence_level=0.5).residual.round(1)
        array([-0.8,  1.2, -0.8])
        """
        if (X is None) != (y is None):
            raise ValueError("X and y must be given together, or neither.")
        described["confidence_level"] = confidence_level
        if X is not None:
            described |= {"names": names, "std": estimator.predict(X, return_std=True)[1]}
            return super().from_estimator(estimator, X, y, **described)
        found = leave_one_out(estimator, confidence_level)
        described["names"] = found.rows
        if names is not None:
            described["names"] = [names[row] for row in found.rows]
        return cls.from_predictions(found.y, found.prediction, found.intervals, std=found.std, **described)

    def _draw(self, ax: Any) -> dict[str, str]:
        ends = (self.intervals - self.prediction[:, None]) / self.std[:, None]
        z = float(ndtri(0.5 + 0.5 * float(self.level)))
        inside = int((np.abs(self.residual) <= z).sum())
        label = f"standard GP's {percent(self.level)}, covers {inside} of {self.n_rows} rows"
        ax.axhspan(-z, z, color=tint(ORANGE, 0.3), linewidth=0, label=label)
        ax.axhline(0.0, color=ink(), linewidth=0.8, linestyle=":")
        self._draw_rows(ax, self.prediction, ends, self.residual, limits_of(ends, self.residual))
        return {"xlabel": f"predicted {self.target_name or 'target'}", "ylabel": "residual / standard deviation"}


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
