"""The distribution of widths, as in the paper's boxplots."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import ArrayLike

from conformal_gp.conformal.levels import read_levels
from conformal_gp.evaluation import percent
from conformal_gp.plotting.arguments import named, stacked
from conformal_gp.plotting.infinite import arrowheads, limits_of
from conformal_gp.plotting.style import COLOURS, HATCHES, axes_or_new, finish, grey, ink, nth, tint
from conformal_gp.types import Array

if TYPE_CHECKING:
    from matplotlib.axes import Axes


SHARES = (0.1, 0.25, 0.5, 0.75, 0.9)
KEYS = ("whislo", "q1", "med", "q3", "whishi")  # what Matplotlib calls them


class WidthDisplay:
    """Boxplots of the widths of intervals, a section for each level and a box for each method.

    As in the paper, the line is the median, the box ends at the quartiles and the whiskers at the deciles. An infinite
    quantile is drawn at the upper edge, with an arrowhead.

    Made by :meth:`from_estimator` or :meth:`from_predictions`.

    Parameters
    ----------
    widths : mapping of str to ndarray of shape (n_samples, n_levels)
        Widths, for each method.
    confidence_level : float or sequence of floats
        Level or levels, kept as the list ``levels``.
    target_name : str or None, default=None
        What the label is called.

    Attributes
    ----------
    quantiles_ : dict of str to ndarray of shape (5, n_levels)
        Lower decile, lower quartile, median, upper quartile and upper decile, for each method.
    boxes_ : dict of str to list of matplotlib PathPatch
        The boxes of each method, one for each level.
    ax_, figure_ : matplotlib Axes and Figure
        Where it was drawn.

    Examples
    --------
    >>> import numpy as np
    >>> from conformal_gp.plotting import WidthDisplay
    >>> intervals = np.column_stack([np.zeros(11), np.arange(11)])
    >>> display = WidthDisplay.from_predictions({"γ = 2": intervals}, confidence_level=0.9)
    >>> display.quantiles_["γ = 2"][:, 0]
    array([1. , 2.5, 5. , 7.5, 9. ])
    """

    def __init__(
        self,
        *,
        widths: Mapping[str, Array],
        confidence_level: float | ArrayLike,
        target_name: str | None = None,
    ):
        self.widths = widths
        self.levels = [float(level) for level in read_levels(confidence_level)[0]]
        self.target_name = target_name
        self.quantiles_ = {name: quantiles(np.asarray(values)) for name, values in widths.items()}

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        X: Any,
        *,
        confidence_level: float | ArrayLike = (0.9, 0.95, 0.99),
        target_name: str | None = None,
        ax: Axes | None = None,
    ) -> Self:
        """Predict test rows and draw the widths of their intervals.

        Parameters
        ----------
        estimator, X, ax
            As in :meth:`CoverageDisplay.from_estimator`.
        confidence_level : float or sequence of floats, default=(0.9, 0.95, 0.99)
            Level of each section.
        target_name : str or None, default=None
            What to call the label.

        Returns
        -------
        display : WidthDisplay
            The display.

        Examples
        --------
        >>> from conformal_gp import ConformalGPRegressor
        >>> from conformal_gp.plotting import WidthDisplay
        >>> model = ConformalGPRegressor("se", tuning="fixed", noise_variance=0.1).fit([[0.0], [1.0], [2.0]], [0, 1, 0])
        >>> display = WidthDisplay.from_estimator(model, [[0.5], [1.5]], confidence_level=[0.25, 0.5])
        >>> display.widths["conformal"].shape
        (2, 2)
        """
        intervals = {
            name: model.predict_interval(X, confidence_level)
            for name, model in named(estimator, default="conformal").items()
        }
        return cls.from_predictions(intervals, confidence_level=confidence_level, target_name=target_name, ax=ax)

    @classmethod
    def from_predictions(
        cls,
        intervals: ArrayLike | Mapping[str, ArrayLike],
        *,
        confidence_level: float | ArrayLike,
        target_name: str | None = None,
        ax: Axes | None = None,
    ) -> Self:
        """Draw the widths of given intervals.

        Parameters
        ----------
        intervals : array-like of shape (n_samples, 2) or (n_samples, 2, n_levels), or mapping of str to such
            Lower and upper ends of one method, or of several by name.
        confidence_level : float or sequence of floats
            Levels of the intervals.
        target_name, ax
            As in :meth:`from_estimator`.

        Returns
        -------
        display : WidthDisplay
            The display.

        Examples
        --------
        >>> from conformal_gp.plotting import WidthDisplay
        >>> display = WidthDisplay.from_predictions([[0, 1], [0, 3]], confidence_level=0.9, target_name="weight")
        >>> display.ax_.get_ylabel()
        'width of intervals for weight'
        """
        widths = {}
        for name, ends in named(intervals, default="conformal").items():
            stack = stacked(ends, confidence_level)[0]
            widths[name] = stack[:, 1] - stack[:, 0]
        return cls(widths=widths, confidence_level=confidence_level, target_name=target_name).plot(ax)

    def plot(self, ax: Axes | None = None) -> Self:
        """Draw into ``ax``, or into a new figure.

        Examples
        --------
        >>> import numpy as np
        >>> from conformal_gp.plotting import WidthDisplay
        >>> display = WidthDisplay(widths={"mine": np.array([[1.0], [3.0]])}, confidence_level=0.9)
        >>> len(display.plot().boxes_["mine"])
        1
        """
        ax = axes_or_new(ax)
        top = limits_of(*self.quantiles_.values(), [0.0])[1]
        section = len(self.quantiles_) + 1.0  # the boxes of a level, and a gap
        endless: list[float] = []
        self.boxes_ = {}
        for number, (name, values) in enumerate(self.quantiles_.items()):
            places = number + section * np.arange(len(self.levels))
            shown = np.minimum(values, top)
            drawn = ax.bxp(
                [dict(zip(KEYS, box, strict=True)) for box in shown.T],
                positions=places,
                widths=0.7,
                showfliers=False,
                patch_artist=True,
                manage_ticks=False,
                boxprops={
                    "facecolor": tint(nth(COLOURS, number), 0.45),
                    "edgecolor": ink(),
                    "hatch": nth(HATCHES, number),
                },
                medianprops={"color": ink(), "linewidth": 2},
                whiskerprops={"color": ink()},
                capprops={"color": ink()},
            )
            self.boxes_[name] = drawn["boxes"]
            if len(self.quantiles_) > 1:
                drawn["boxes"][0].set_label(name)
            endless.extend(places[np.isinf(values).any(axis=0)])
        if endless:
            arrowheads(ax, [], endless, (0.0, top))
        ax.set_ylim(bottom=0.0)
        middles = (section - 2.0) / 2.0 + section * np.arange(len(self.levels))
        ax.set_xticks(middles, [percent(level) for level in self.levels])
        ax.tick_params(axis="x", length=0)
        for border in middles[1:] - section / 2.0:
            ax.axvline(border, color=grey(0.2), linewidth=0.8, zorder=0)
        unit = f" of intervals for {self.target_name}" if self.target_name else " of intervals"
        ax.set(xlabel="confidence level", ylabel=f"width{unit}", xlim=(-1.0, section * len(self.levels) - 1.0))
        finish(ax)
        self.ax_, self.figure_ = ax, ax.figure
        return self


def quantiles(widths: Array) -> Array:
    """Deciles, quartiles and median of each column. One that lies between a finite width and infinity is infinite.

    >>> quantiles(np.array([[1.0], [2.0], [np.inf]]))[:, 0]
    array([1.2, 1.5, 2. , inf, inf])
    """
    finite = np.isfinite(widths)
    greatest = np.max(widths, axis=0, where=finite, initial=0.0)
    # A large number stands in for infinity, which does not interpolate (inf - inf is not a number).
    values = np.quantile(np.where(finite, widths, 1e300), SHARES, axis=0)
    return np.where(values > greatest, np.inf, values)
