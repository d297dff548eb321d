"""Limits of detection: observations of which only a bound is known, and answers that cover the true values.

The recorded value of a row is z = max(y, c) with a lower limit c, and min(y, d) with an upper limit d. Rows (x, z) are
exchangeable, so a prediction set R covers the recorded value of a new row. If y is at least c, then z = y. Otherwise
z = c, which is in R, and y is below. So R covers the true value together with everything below c, where R contains c.
The limit of a new row is not known. Every value up to the largest lower limit of the training rows stands for it, and a
limit that is not larger is covered.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np

from conformal_gp.arrays import Array, Indices


def check_censoring(censoring: Any, n_rows: int) -> Indices | None:
    """``censoring`` as -1, 0 or 1 for each row; None where no row is censored.

    >>> check_censoring([0, -1, 0], 3), check_censoring([0, 0], 2)
    (array([ 0, -1,  0]), None)
    """
    values = np.asarray(censoring)
    if values.shape != (n_rows,):
        got = f"an array of shape {values.shape}"
        raise ValueError(f"censoring must hold one number for each of the {n_rows} rows, got {got}.")
    wrong = np.flatnonzero(~np.isin(values, (-1, 0, 1)))
    if wrong.size:
        raise ValueError(
            f"censoring has {values[wrong[0]]!r} in row {wrong[0]}; it must be -1 where the true value is at most y "
            "(limit of detection), 1 where it is at least y, and 0 where y was observed."
        )
    if not (values != 0).any():
        return None
    return values.astype(np.int64)


@dataclass(frozen=True)
class Limits:
    """Limits of detection, and what follows for answers about true values.

    Examples
    --------
    >>> limits = Limits(low=0.5)
    >>> limits.extend(np.array([[0.2, 0.7], [0.6, 0.9]]))
    array([[-inf,  0.7],
           [ 0.6,  0.9]])
    """

    low: float = -np.inf
    """Largest lower limit of the training rows; -inf if no row is censored there."""
    high: float = np.inf
    """Smallest upper limit."""
    least: float = -np.inf
    """Least true value that can be."""
    greatest: float = np.inf

    def with_rows(self, y: Array, censoring: Indices) -> Self:
        """The limits of these rows too."""
        low = float(y[censoring < 0].max(initial=self.low))
        high = float(y[censoring > 0].min(initial=self.high))
        return replace(self, low=low, high=high)

    def extend(self, ends: Array) -> Array:
        """Lower and upper ends, (m, 2, ...): what reaches a limit contains everything beyond it."""
        return np.stack([self.lower(ends[:, 0]), self.upper(ends[:, 1])], axis=1)

    def lower(self, ends: Array) -> Array:
        """Lower ends."""
        return np.where(ends <= self.low, self.least, ends)

    def upper(self, ends: Array) -> Array:
        """Upper ends."""
        return np.where(ends >= self.high, self.greatest, ends)

    def extend_set(self, pieces: Array) -> Array:
        """Sorted, disjoint pieces of a set, (k, 2): those that reach a limit become one.

        >>> Limits(low=0.5).extend_set(np.array([[0.1, 0.2], [0.4, 0.6], [0.7, 0.9]])).tolist()
        [[-inf, 0.6], [0.7, 0.9]]
        """
        below = np.flatnonzero(pieces[:, 0] <= self.low)
        if below.size:
            first = [[self.least, pieces[below[-1], 1]]]
            pieces = np.concatenate([first, pieces[below[-1] + 1 :]])
        above = np.flatnonzero(pieces[:, 1] >= self.high)
        if above.size:
            last = [[pieces[above[0], 0], self.greatest]]
            pieces = np.concatenate([pieces[: above[0]], last])
        return pieces

    def recorded(self, y: Array) -> Array:
        """Values beyond a limit become the limit."""
        return np.clip(y, self.low, self.high)

    def nearest_recorded(self, y: Array, centre: Array) -> Array:
        """For values beyond a limit, what lies between them and the limit and is nearest to the prediction."""
        return np.clip(centre, np.minimum(y, self.high), np.maximum(y, self.low))

    def sentence(self) -> str:
        """The condition on new rows."""
        conditions = []
        if np.isfinite(self.low):
            conditions.append(f"lower limits of detection of new rows are at most {self.low:.6g}")
        if np.isfinite(self.high):
            conditions.append(f"upper limits of new rows are at least {self.high:.6g}")
        return f" True values beyond limits are covered if {' and '.join(conditions)}."
