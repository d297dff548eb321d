"""What displays share: axes, colours that follow the style in use, a legend above the data, long intervals."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from textwrap import wrap
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike

from conformal_gp.arrays import Array
from conformal_gp.formatting import STANDARD

# The palette of Okabe and Ito (2008), told apart in the common kinds of colour blindness. Lines and markers differ too.
BLUE, ORANGE, VERMILION, GREEN, PURPLE, SKY = "#0072B2", "#E69F00", "#D55E00", "#009E73", "#CC79A7", "#56B4E9"
# Conformal intervals are blue, those of the standard GP orange, rows that are not covered vermilion.
COLOURS = (BLUE, GREEN, PURPLE, VERMILION)
LINES = ("-", "--", "-.", ":")
MARKERS = ("o", "s", "^", "D", "v", "P")


class Display(ABC):
    """A display whose parameters are what it draws."""

    @classmethod
    def from_predictions(cls, *predictions: Any, ax: Any = None, **described: Any) -> Self:
        """Draw given predictions: the parameters of the class, and ``ax``, where to draw (None makes a figure).

        Examples
        --------
        >>> from conformal_gp.plotting import IntervalDisplay
        >>> IntervalDisplay.from_predictions([1], [1], [[0, 2]], confidence_level=0.9).ax_.get_ylabel()
        'actual target'
        """
        return cls(*predictions, **described).plot(ax)

    def plot(self, ax: Any = None) -> Self:
        """Draw into ``ax``, or into a new figure.

        Examples
        --------
        >>> from conformal_gp.plotting import CoverageDisplay
        >>> CoverageDisplay([0.5], [[0, 1]], confidence_level=0.9).plot().ax_.get_ylabel()
        'coverage, %'
        """
        if ax is None:
            ax = _new_axes()
        labels = self._draw(ax)
        room = int(ax.get_window_extent().width / ax.figure.dpi * 72.0 / 5.5)  # letters on a line, of 10 points
        lines = [part for line in labels.get("xlabel", "").split("\n") for part in wrap(line, room)]
        ax.set(**labels | {"xlabel": "\n".join(lines)})
        ax.spines[["top", "right"]].set_visible(False)
        _part_thousands(ax)
        _legend_above(ax)
        self.ax_, self.figure_ = ax, ax.figure
        return self

    @abstractmethod
    def _draw(self, ax: Any) -> dict[str, str]:
        """Draw, and return the names of the axes."""


def _new_axes() -> Any:
    """Axes of a new figure."""
    try:
        import matplotlib.pyplot as plt
    except ImportError:
        raise ImportError("Pictures need Matplotlib: pip install '.[plot]' in a clone of conformal-gp") from None
    return plt.subplots(layout="constrained")[1]


def _part_thousands(ax: Any) -> None:
    """Write commas between thousands of large numbers, unless an axis has marks of its own."""
    from matplotlib.ticker import ScalarFormatter, StrMethodFormatter

    for axis, limits in ((ax.xaxis, ax.get_xlim()), (ax.yaxis, ax.get_ylim())):
        if isinstance(axis.get_major_formatter(), ScalarFormatter) and 1e4 <= max(map(abs, limits)) < 1e9:
            axis.set_major_formatter(StrMethodFormatter("{x:,.10g}"))


def _legend_above(ax: Any) -> None:
    """A legend above the axes, where no data is, in as many columns as they are wide; titles go above it."""
    for n_columns in range(len(ax.get_legend_handles_labels()[0]), 0, -1):
        options: dict[str, Any] = {"fontsize": "small", "frameon": False, "columnspacing": 1.2, "handlelength": 1.6}
        legend = ax.legend(loc="lower left", bbox_to_anchor=(0.0, 1.0), borderaxespad=0.1, ncols=n_columns, **options)
        if legend.get_window_extent().width <= ax.get_window_extent().width:
            break
    # Matplotlib puts titles above inset axes: this one is empty and lies where the legend does.
    inset = ax.inset_axes((0.0, 1.0, 1.0, 0.1))
    inset.set_axis_off()
    inset.set_axes_locator(
        lambda _, renderer: legend.get_window_extent(renderer).transformed(ax.figure.transSubfigure.inverted())
    )


def _face() -> Array:
    """Colour of axes in the style in use."""
    import matplotlib as mpl

    return np.array(mpl.colors.to_rgb(mpl.rcParams["axes.facecolor"]))


def _is_dark() -> bool:
    return bool(_face().sum() < 1.5)


def ink() -> str:
    """Colour of lines and dots, which stand out from the axes."""
    if _is_dark():
        return "#DDDDDD"
    return "#222222"


def accent() -> str:
    """The blue of intervals, which stands out from the axes."""
    if _is_dark():
        return SKY
    return BLUE


def colour_of(method: str | None, k: int = 0) -> str:
    """Colour of the k-th method of a picture: orange for the standard GP, else blue for the first, and so on."""
    if method == STANDARD:
        return ORANGE
    return (accent(), *COLOURS[1:])[k % len(COLOURS)]


def tint(colour: str, strength: float) -> Any:
    """``colour`` mixed with that of the axes: 0 is theirs, 1 the colour itself."""
    from matplotlib.colors import to_rgb

    return tuple(_face() + strength * (np.array(to_rgb(colour)) - _face()))


def arrowheads(ax: Any, x: Array, intervals: Array, limits: tuple[float, float]) -> None:
    """Arrowheads at the edges of the axes where intervals (n, 2) at places x (n,) continue outside the limits."""
    label: str | None = "continues outside the picture"
    low = intervals[:, 0] < limits[0]
    high = intervals[:, 1] > limits[1]
    for side, marker, beyond in ((0, "v", low), (1, "^", high)):
        places = x[beyond]
        if places.size:
            style: dict[str, Any] = {"color": ink(), "markersize": 5, "clip_on": False, "zorder": 5}
            ax.plot(places, np.full(places.size, limits[side]), linestyle="none", marker=marker, label=label, **style)
            ax.set_ylim(limits)
            label = None


def vector(name: str, values: ArrayLike, size: int) -> Array:
    """``values`` as a vector of ``size`` numbers."""
    array = np.asarray(values, dtype=float)
    if array.shape != (size,):
        raise ValueError(f"{name} must have shape ({size},), got {array.shape}.")
    return array


def stacked(intervals: ArrayLike, levels: Sequence[float]) -> Array:
    """Intervals as (n, 2, levels); raises if the number of levels differs."""
    ends = np.asarray(intervals, dtype=float)
    if ends.ndim == 2:
        ends = ends[:, :, None]
    if ends.ndim != 3 or ends.shape[1:] != (2, len(levels)):
        raise ValueError(f"intervals must have shape (n, 2, {len(levels)}), or (n, 2) for one level; got {ends.shape}.")
    return ends


def limits_of(intervals: Array, *values: ArrayLike | None) -> tuple[float, float]:
    """Limits that show all finite values, and bounds of intervals (n, 2, ...) unless they lie far from the values.

    Far is more than half the range of the values, and more than the median width: one row outside the training range
    may have an interval that is a hundred times as wide as the others.

    >>> limits_of(np.array([[0.0, 11.0], [1.0, 12.0], [-900.0, 900.0], [0.0, np.inf]]), [2.0, 10.0])
    (-10.5, 22.5)
    """
    known = np.concatenate([np.ravel(np.asarray(part, dtype=float)) for part in values if part is not None])
    known = known[np.isfinite(known)]
    low = float(known.min(initial=np.inf))
    high = float(known.max(initial=-np.inf))
    if not known.size:
        low = -1.0
        high = 1.0
    ends = intervals[np.isfinite(intervals)]
    if ends.size:
        widths = intervals[:, 1] - intervals[:, 0]
        widths = widths[np.isfinite(widths)]
        far = 0.5 * (high - low)
        if widths.size:
            far = max(far, float(np.median(widths)))
        lowest = max(float(ends.min()), low - far)
        highest = min(float(ends.max()), high + far)
        low = min(low, lowest)
        high = max(high, highest)
    room = 0.05 * (high - low) or 1.0
    return low - room, high + room
