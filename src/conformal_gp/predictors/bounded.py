r"""A predictor whose regions are cut at bounds of the labels, given or learnt from design rows.

A label outside the bounds has an infinite score. Given bounds hold for all labels, so nothing changes but that regions
end there. Bounds that design rows suggest are fixed given these, so a ranked row or a test row outside is treated like
any other: its score, infinite, is a function of the row. Ranked rows outside then cover every label inside, which takes
their weight off what is needed; if that leaves nothing to need, labels outside are in the region too. With signed
scores, labels below the lower bound have the score minus infinity.
"""

from __future__ import annotations

from typing import Self

import numpy as np

from conformal_gp.conformal.weights import Needed
from conformal_gp.gp.inputs import Points
from conformal_gp.gp.warps import Bounds
from conformal_gp.predictors.base import Predictor
from conformal_gp.types import Array, Mask, Rows


class BoundedPredictor(Predictor):
    """A predictor with bounds of labels.

    Parameters
    ----------
    predictor : Predictor
        Without bounds.
    bounds : Bounds
        The bounds.
    side : ndarray of shape (n_rows,) or None, default=None
        -1, 0 or 1 for training labels below, within and above. None if the bounds were given and hold for every label.
    """

    def __init__(self, predictor: Predictor, bounds: Bounds, side: Array | None = None):
        self.unbounded = predictor
        self.bounds_of_labels = bounds
        self._side = side
        self.n_rows, self.ranked, self.n_jobs = predictor.n_rows, predictor.ranked, predictor.n_jobs
        self._ranked_side = np.zeros(self.ranked.size) if side is None else side[self.ranked]
        inside = self.ranked[self._ranked_side == 0]
        self._inside = predictor if inside.size == self.ranked.size else predictor.among(inside)

    def among(self, rows: Rows) -> Self:
        """See Predictor."""
        return type(self)(self.unbounded.among(rows), self.bounds_of_labels, self._side)

    def mean(self, new: Points) -> Array:
        """See Predictor; within given bounds."""
        return self._within(self.unbounded.mean(new))

    def _within(self, mean: Array) -> Array:
        return mean if self._side is not None else self.bounds_of_labels.clip(mean)

    def mean_and_variance(self, new: Points) -> tuple[Array, Array]:
        """See Predictor."""
        mean, variance = self.unbounded.mean_and_variance(new)
        return self._within(mean), variance

    def mean_and_covariance(self, new: Points) -> tuple[Array, Array]:
        """See Predictor."""
        return self.unbounded.mean_and_covariance(new)

    def draw(self, new: Points, n_samples: int, rng: np.random.RandomState) -> Array:
        """See Predictor."""
        return self._within(self.unbounded.draw(new, n_samples, rng))

    def _weight(self, which: Mask, weights: Array | None) -> float:
        """Weight of some of the ranked rows."""
        return float(which.sum() if weights is None else weights[which].sum())

    def _left(self, needed: Needed, covering: Mask) -> tuple[Needed, Mask]:
        """What labels inside need of rows inside; and where labels outside need nothing, (m or 1, levels)."""
        places = np.flatnonzero(self._ranked_side == 0)
        left = needed.among(places, self._weight(covering, needed.weights), list(range(needed.n_levels)))
        return left, (left.least < 0.0) & (self._side is not None)

    def hulls(self, new: Points, needed: Needed) -> Array:
        """See Predictor."""
        left, whole = self._left(needed, self._ranked_side != 0)
        ends = self.bounds_of_labels.clip(self._inside.hulls(new, left))
        return np.where(whole[:, None, :], np.array([-np.inf, np.inf])[:, None], ends)

    def regions(self, new: Points, needed: Needed) -> list[Array]:
        """See Predictor."""
        left, whole = self._left(needed, self._ranked_side != 0)
        every = np.array([[-np.inf, np.inf]])
        found = zip(self._inside.regions(new, left), np.broadcast_to(whole, (len(new.X), 1)), strict=True)
        return [every if all_labels else self.bounds_of_labels.cut(pieces) for pieces, all_labels in found]

    def bounds(self, new: Points, below: Needed, above: Needed) -> Array:
        """See Predictor."""
        needed_below, whole_below = self._left(below, self._ranked_side < 0)
        needed_above, whole_above = self._left(above, self._ranked_side > 0)
        ends = self.bounds_of_labels.clip(self._inside.bounds(new, needed_below, needed_above))
        n = below.n_levels
        lower, upper = np.where(whole_below, -np.inf, ends[:, :n]), np.where(whole_above, np.inf, ends[:, n:])
        return np.concatenate([lower, upper], axis=1)

    def counts(self, new: Points, y: Array, signed: bool, weights: Array | None = None) -> tuple[Array, Array]:
        """See Predictor."""
        side, of_rows = self.bounds_of_labels.side(y), self._ranked_side
        inside = None if weights is None else weights[of_rows == 0]
        at_least, greater = self._inside.counts(new, self.bounds_of_labels.clip(y), signed, inside)
        below, above = (self._weight(of_rows == end, weights) for end in (-1, 1))
        covering = above if signed else below + above
        at_least, greater = at_least + covering, greater + covering
        if not signed:
            return np.where(side == 0, at_least, covering), np.where(side == 0, greater, 0.0)
        every = self._weight(np.ones(of_rows.size, dtype=bool), weights)
        ends = (side < 0, side > 0)
        return np.select(ends, (every, above), at_least), np.select(ends, (every - below, 0.0), greater)
