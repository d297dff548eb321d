"""How much of the intervals a picture shows."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from conformal_gp.arrays import Array


def limits_of(intervals: Array, *values: ArrayLike | None) -> tuple[float, float]:
    """Limits that show all finite values, and ends of intervals (n, 2, ...) unless they lie far beyond the values.

    Far is more than half the range of the values, and more than the median width: one row beyond the training rows
    may have an interval that is a hundred times as wide as the others.

    >>> limits_of(np.array([[0.0, 11.0], [1.0, 12.0], [-900.0, 900.0], [0.0, np.inf]]), [2.0, 10.0])
    (-10.5, 22.5)
    """
    known = np.concatenate([np.ravel(np.asarray(part, dtype=float)) for part in values if part is not None])
    known = known[np.isfinite(known)]
    low, high = (float(known.min()), float(known.max())) if known.size else (-1.0, 1.0)
    ends = intervals[np.isfinite(intervals)]
    if ends.size:
        widths = intervals[:, 1] - intervals[:, 0]
        finite = np.isfinite(widths)
        far = max(0.5 * (high - low), float(np.median(widths[finite])) if finite.any() else 0.0)
        low, high = min(low, max(float(ends.min()), low - far)), max(high, min(float(ends.max()), high + far))
    room = 0.05 * (high - low) or 1.0
    return low - room, high + room
