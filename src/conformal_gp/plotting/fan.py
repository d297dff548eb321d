"""Quantiles over one input."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import ArrayLike

from conformal_gp.conformal.levels import read_levels
from conformal_gp.evaluation import percent
from conformal_gp.plotting.arguments import one_input_varied
from conformal_gp.plotting.band import RowsAlongOneInput
from conformal_gp.plotting.infinite import limits_of
from conformal_gp.plotting.style import BLUE, LINES, axes_or_new, ink, nth, tint

if TYPE_CHECKING:
    from matplotlib.axes import Axes


class FanDisplay(RowsAlongOneInput):
    """Quantiles along one input, the other inputs held: a line for each, and shades that are darkest at the median.

    Made by :meth:`from_estimator` or :meth:`from_predictions`.

    Parameters
    ----------
    grid : ndarray of shape (n_points,)
        Values of the input, ascending.
    values : ndarray of shape (n_points, n_quantiles)
        Quantiles of the label there.
    quantiles : sequence of floats
        Which quantiles, ascending.
    x, y, feature_name, target_name
        As in :class:`PredictionBandDisplay`.

    Attributes
    ----------
    ax_, figure_ : matplotlib Axes and Figure
        Where it was drawn.
    lines_ : list of matplotlib Line2D
        The quantiles.
    bands_ : list of matplotlib PolyCollection
        The shades between neighbouring quantiles.

    Examples
    --------
    >>> from conformal_gp import ConformalGPRegressor
    >>> from conformal_gp.datasets import load_auto_mpg
    >>> from conformal_gp.plotting import FanDisplay
    >>> X, y = load_auto_mpg(return_X_y=True)
    >>> model = ConformalGPRegressor(tuning="holdout", length_scales="one", random_state=0).fit(X[:100], y[:100])
    >>> display = FanDisplay.from_estimator(model, X, feature=3, target_name="miles per gallon")
    >>> display.values.shape
    (200, 5)
    """

    def __init__(self, grid: ArrayLike, values: ArrayLike, *, quantiles: ArrayLike, **described: Any):
        wanted = read_levels(quantiles, "quantiles")[0]
        if sorted(set(wanted)) != wanted:
            raise ValueError(f"quantiles must ascend, got {quantiles!r}.")
        self.quantiles = [float(quantile) for quantile in wanted]
        self.values = np.asarray(values, dtype=float)
        if self.values.ndim != 2 or self.values.shape[1] != len(wanted):
            raise ValueError(f"values must have shape (n, {len(wanted)}) for these quantiles, got {self.values.shape}.")
        super().__init__(grid, len(self.values), **described)

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        X: Any,
        y: ArrayLike | None = None,
        *,
        quantiles: ArrayLike = (0.05, 0.25, 0.5, 0.75, 0.95),
        target_name: str | None = None,
        ax: Axes | None = None,
        **varied: Any,
    ) -> Self:
        """Predict quantiles along one input and draw.

        Parameters
        ----------
        estimator : fitted regressor with ``predict_quantiles``
            The model.
        X, y, target_name, ax
            As in :meth:`PredictionBandDisplay.from_estimator`.
        quantiles : sequence of floats, default=(0.05, 0.25, 0.5, 0.75, 0.95)
            Quantiles, ascending.
        **varied
            ``feature``, ``fixed`` and ``n_points``, as there.

        Returns
        -------
        display : FanDisplay
            The display.

        Examples
        --------
        >>> from conformal_gp import ConformalGPRegressor
        >>> from conformal_gp.plotting import FanDisplay
        >>> model = ConformalGPRegressor("se", tuning="fixed", noise_variance=0.1).fit([[0.0], [1.0], [2.0]], [0, 1, 0])
        >>> display = FanDisplay.from_estimator(model, [[0.0], [2.0]], quantiles=[0.25, 0.5, 0.75], n_points=4)
        >>> display.values.shape
        (4, 3)
        """
        rows, grid, x, feature_name = one_input_varied(X, **varied)
        names = {"feature_name": feature_name, "target_name": target_name}
        dots = {} if y is None else {"x": x, "y": y}
        values = estimator.predict_quantiles(rows, np.ravel(np.asarray(quantiles)))
        return cls.from_predictions(grid, values, quantiles=quantiles, ax=ax, **names, **dots)

    def plot(self, ax: Axes | None = None) -> Self:
        """Draw into ``ax``, or into a new figure.

        Examples
        --------
        >>> from conformal_gp.plotting import FanDisplay
        >>> display = FanDisplay([0.0, 1.0], [[1.0, 2.0, 3.0], [1.0, 3.0, 5.0]], quantiles=[0.1, 0.5, 0.9])
        >>> [line.get_label() for line in display.plot().lines_]
        ['10%', 'median', '90%']
        """
        ax = axes_or_new(ax)
        limits = limits_of(self.values, self.y)
        shown = np.clip(self.values, *limits)
        self.bands_ = [
            ax.fill_between(self.grid, *shown[:, i : i + 2].T, color=tint(BLUE, 0.7 * _nearness(*pair)), linewidth=0)
            for i, pair in enumerate(zip(self.quantiles, self.quantiles[1:], strict=False))
        ]
        self.lines_: list[Any] = []
        for i in reversed(range(len(self.quantiles))):  # the highest first, as in the legend's order
            quantile, is_median = self.quantiles[i], self.quantiles[i] == 0.5
            style = nth(LINES, round(abs(np.searchsorted(self.quantiles, 0.5) - i)))
            colour, width = (ink(), 1.6) if is_median else (BLUE, 1.0)
            label = "median" if is_median else percent(quantile)
            self.lines_[:0] = ax.plot(
                self.grid, shown[:, i], color=colour, linestyle=style, linewidth=width, label=label
            )
        self._add_rows(ax)
        self._add_arrows(ax, (self.values == -np.inf).any(axis=1), (self.values == np.inf).any(axis=1), limits)
        return self._finished(ax)


def _nearness(low: float, high: float) -> float:
    """How near the middle of two quantiles is to the median: 1 at it, 0 at the ends.

    >>> _nearness(0.25, 0.75), _nearness(0.0, 0.5)
    (1.0, 0.5)
    """
    return 1.0 - abs(low + high - 1.0)
