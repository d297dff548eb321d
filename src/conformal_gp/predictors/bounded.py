r"""A predictor whose regions are cut at bounds of the labels, given or learnt from design rows.

Given bounds hold for every label: a label outside is in no region.

Bounds that design rows suggest may be wrong, so they follow a rule that treats all rows of the bag alike. *If at most
one row of the bag lies outside, its score is infinite; if more do, there are no bounds.* The rule is a function of
the bag, so ranked rows and test row stay exchangeable and coverage stays exact. With no ranked row outside, regions are
cut. With one, that row covers every label inside, and labels outside are judged without bounds. With signed scores,
the score of a row below the lower bound is minus infinity.
"""

from __future__ import annotations

from typing import Self

import numpy as np

from conformal_gp.conformal.weights import Needed
from conformal_gp.gp.inputs import Points
from conformal_gp.gp.warps import Bounds
from conformal_gp.predictors.base import Predictor, Process, union
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
        within = self._ranked_side == 0.0
        self._one_outside = int((~within).sum()) == 1
        self._no_bounds = int((~within).sum()) > 1
        self._inside = predictor.among(self.ranked[within]) if self._one_outside else predictor

    @property
    def process(self) -> Process:
        """See Predictor; without a row outside, where there is one."""
        return self._inside.process

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

    def _left(self, needed: Needed, covering: Mask) -> Needed:
        """What labels inside need of rows inside, where some rows outside cover them all."""
        if not self._one_outside:
            return needed
        weight = float(needed.each(self.ranked.size)[covering].sum())
        return needed.among(np.flatnonzero(self._ranked_side == 0.0), weight, list(range(needed.n_levels)))

    def hulls(self, new: Points, needed: Needed) -> Array:
        """See Predictor."""
        if self._no_bounds:
            return self.unbounded.hulls(new, needed)
        ends = self.bounds_of_labels.clip(self._inside.hulls(new, self._left(needed, self._ranked_side != 0.0)))
        return self._or_plain(ends, self.unbounded.hulls(new, needed)) if self._one_outside else ends

    def _or_plain(self, ends: Array, plain: Array) -> Array:
        """Ends of regions inside, or of those without bounds where these reach further out."""
        return np.where(self.bounds_of_labels.side(plain) != 0.0, plain, ends)

    def regions(self, new: Points, needed: Needed) -> list[Array]:
        """See Predictor."""
        if self._no_bounds:
            return self.unbounded.regions(new, needed)
        found = self._inside.regions(new, self._left(needed, self._ranked_side != 0.0))
        found = [self.bounds_of_labels.cut(pieces) for pieces in found]
        if not self._one_outside:
            return found
        plain = [self.bounds_of_labels.rest(pieces) for pieces in self.unbounded.regions(new, needed)]
        return [union(np.concatenate(both)) for both in zip(found, plain, strict=True)]

    def bounds(self, new: Points, below: Needed, above: Needed) -> Array:
        """See Predictor."""
        if self._no_bounds:
            return self.unbounded.bounds(new, below, above)
        left = self._left(below, self._ranked_side < 0.0), self._left(above, self._ranked_side > 0.0)
        ends = self.bounds_of_labels.clip(self._inside.bounds(new, *left))
        return self._or_plain(ends, self.unbounded.bounds(new, below, above)) if self._one_outside else ends

    def counts(self, new: Points, y: Array, signed: bool, weights: Array | None = None) -> tuple[Array, Array]:
        """See Predictor."""
        plain = self.unbounded.counts(new, y, signed, weights)
        if self._no_bounds:
            return plain
        side, every = self.bounds_of_labels.side(y), np.ones(self.ranked.size) if weights is None else weights
        if not self._one_outside:  # a label outside scores higher than all rows, or, with signs, lower
            lower = np.where(signed & (side < 0.0), every.sum(), 0.0)
            at_least, greater = (np.where(side == 0.0, count, lower) for count in plain)
            return at_least, greater
        within = self._ranked_side == 0.0
        covering = every[self._ranked_side > 0.0 if signed else ~within].sum()
        inside = self._inside.counts(new, y, signed, None if weights is None else weights[within])
        at_least, greater = (
            np.where(side == 0.0, own + covering, count) for own, count in zip(inside, plain, strict=True)
        )
        return at_least, greater
