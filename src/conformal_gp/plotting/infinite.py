"""Infinite ends: drawn to the edge of the axes, with an arrowhead and an entry in the legend."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike

from conformal_gp.plotting.style import ink

if TYPE_CHECKING:
    from matplotlib.axes import Axes


NOTE = "no finite end"


def limits_of(*values: ArrayLike | None, margin: float = 0.05) -> tuple[float, float]:
    """Limits that show all finite values, with a margin on both sides.

    >>> limits_of([0.0, np.inf], [10.0], margin=0.1)
    (-1.0, 11.0)
    """
    everything = np.concatenate([np.ravel(np.asarray(part, float)) for part in values if part is not None])
    finite = everything[np.isfinite(everything)]
    if finite.size == 0:
        return -1.0, 1.0
    low, high = float(finite.min()), float(finite.max())
    room = margin * (high - low) or 1.0
    return low - room, high + room


def arrowheads(ax: Axes, lower: ArrayLike, upper: ArrayLike, limits: tuple[float, float]) -> None:
    """Arrowheads at the lower and upper edges, at the places whose ends are infinite.

    Parameters
    ----------
    ax : Axes
        Where to draw; its vertical limits are set.
    lower, upper : array-like
        Horizontal places with an infinite lower or upper end.
    limits : (float, float)
        Vertical limits.
    """
    ax.set_ylim(limits)
    note: str | None = NOTE
    for places, edge, marker in ((upper, limits[1], "^"), (lower, limits[0], "v")):
        x = np.asarray(places, float)
        if x.size:
            ax.plot(
                x,
                np.full(x.size, edge),
                linestyle="none",
                marker=marker,
                color=ink(),
                markersize=5,
                clip_on=False,
                zorder=5,
                label=note,
            )
            note = None
