"""p-values of labels, with ties counted as full conformal prediction counts them."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from conformal_gp.conformal.lines import Lines

Array = NDArray[np.float64]

# Scores that differ by less than this share of their size are tied: the ends of a region, computed and handed back,
# must belong to it, and rows that are equal must tie, in spite of rounding.
TIE = 1e-10


def p_values(lines: Lines, y: Array, tie_breaks: Array | None = None) -> Array:
    """p-value of the label ``y[j]`` of each test row j.

    Parameters
    ----------
    lines : Lines
        Centred lines of n ranked rows for m test rows.
    y : ndarray of shape (m,)
        One label for each test row.
    tie_breaks : ndarray of shape (m,), default=None
        Uniform numbers that break ties at random. None counts every tie in full.

    Returns
    -------
    p : ndarray of shape (m,)
        Share of the n + 1 rows, the test row included, whose score is at least the test row's; with tie breaks, ties
        count as that fraction.
    """
    t = (y - lines.centre)[:, None]
    own = np.abs(t)
    scores = np.abs(lines.offset + lines.slope * t)
    # The label itself is known to rounding only, and so then is t.
    slack = TIE * (np.abs(lines.offset) + own) + 8.0 * np.finfo(float).eps * np.abs(y)[:, None]
    at_least = (scores >= own - slack).sum(axis=1)
    if tie_breaks is None:
        return (at_least + 1.0) / (scores.shape[1] + 1.0)
    greater = (scores > own + slack).sum(axis=1)
    return (greater + tie_breaks * (at_least - greater + 1.0)) / (scores.shape[1] + 1.0)
