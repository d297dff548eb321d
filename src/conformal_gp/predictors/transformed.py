"""Answers about labels, of a predictor of transformed labels: shifted by a constant, or mapped by a warp."""

from __future__ import annotations

from typing import Self

import numpy as np

from conformal_gp.conformal.weights import Needed
from conformal_gp.gp.inputs import Points
from conformal_gp.gp.warps import Warp
from conformal_gp.predictors.base import Predictor, Process
from conformal_gp.types import Array, Rows


class ShiftedPredictor(Predictor):
    """A predictor of labels less a constant, as one of labels.

    Where labels are large beside their differences, that takes no digits from these. The predictor's mean function has
    a constant in it, which takes up whatever that is, so nothing else changes. A label is in a region if, shifted, it
    is in the predictor's: ends are rounded inwards, so that the numbers of floating point between them are those that
    are in the region.

    Parameters
    ----------
    predictor : Predictor
        Of labels less the constant.
    shift : float
        The constant.
    """

    def __init__(self, predictor: Predictor, shift: float):
        self.unshifted = predictor
        self.shift = shift
        self.n_rows, self.ranked, self.n_jobs = predictor.n_rows, predictor.ranked, predictor.n_jobs

    @property
    def process(self) -> Process:
        """See Predictor."""
        return self.unshifted.process

    def among(self, rows: Rows) -> Self:
        """See Predictor."""
        return type(self)(self.unshifted.among(rows), self.shift)

    def mean(self, new: Points) -> Array:
        """See Predictor."""
        return self.unshifted.mean(new) + self.shift

    def mean_and_variance(self, new: Points) -> tuple[Array, Array]:
        """See Predictor."""
        mean, variance = self.unshifted.mean_and_variance(new)
        return mean + self.shift, variance

    def mean_and_covariance(self, new: Points) -> tuple[Array, Array]:
        """See Predictor."""
        mean, covariance = self.unshifted.mean_and_covariance(new)
        return mean + self.shift, covariance

    def hulls(self, new: Points, needed: Needed) -> Array:
        """See Predictor."""
        ends = self.unshifted.hulls(new, needed)
        return np.stack(self._intervals(ends[:, 0], ends[:, 1]), axis=1)

    def regions(self, new: Points, needed: Needed) -> list[Array]:
        """See Predictor."""
        found = self.unshifted.regions(new, needed)
        return [np.stack(self._intervals(region[:, 0], region[:, 1]), axis=1) for region in found]

    def bounds(self, new: Points, below: Needed, above: Needed) -> Array:
        """See Predictor."""
        found, n = self.unshifted.bounds(new, below, above), below.n_levels
        return np.concatenate([self._rounded(found[:, :n], np.inf), self._rounded(found[:, n:], -np.inf)], axis=1)

    def counts(self, new: Points, y: Array, signed: bool, weights: Array | None = None) -> tuple[Array, Array]:
        """See Predictor."""
        return self.unshifted.counts(new, y - self.shift, signed, weights)

    def _rounded(self, ends: Array, towards: float) -> Array:
        """Ends of regions, shifted, and rounded to the side on which the region is."""
        shifted = ends + self.shift
        off = shifted - self.shift
        return np.where(off < ends if towards > 0.0 else off > ends, np.nextafter(shifted, towards), shifted)

    def _intervals(self, low: Array, high: Array) -> tuple[Array, Array]:
        """Both ends of regions, shifted; where there is no number between them, that which is nearest."""
        first, last = self._rounded(low, np.inf), self._rounded(high, -np.inf)
        narrow = first > last
        return np.where(narrow, low + self.shift, first), np.where(narrow, high + self.shift, last)


class WarpedPredictor(Predictor):
    """A predictor seen through an increasing map of labels.

    Parameters
    ----------
    predictor : Predictor
        Of mapped labels.
    warp : Warp
        The map.
    """

    def __init__(self, predictor: Predictor, warp: Warp):
        self._predictor = predictor
        self._warp = warp
        self.n_rows, self.ranked, self.n_jobs = predictor.n_rows, predictor.ranked, predictor.n_jobs

    @property
    def process(self) -> Process:
        """See Predictor."""
        return self._predictor.process

    def among(self, rows: Rows) -> Self:
        """See Predictor."""
        return type(self)(self._predictor.among(rows), self._warp)

    def mean(self, new: Points) -> Array:
        """Medians: the mean of the mapped label is its median too, and a median stays one under the map."""
        return self._warp.backward(self._predictor.mean(new))

    def mean_and_variance(self, new: Points) -> tuple[Array, Array]:
        """Medians, and squares of half the length of what is within a standard deviation of the mapped label's mean."""
        mean, variance = self._predictor.mean_and_variance(new)
        below, above = (self._warp.backward(mean + sign * np.sqrt(variance)) for sign in (-1.0, 1.0))
        return self._warp.backward(mean), (0.5 * (above - below)) ** 2

    def mean_and_covariance(self, new: Points) -> tuple[Array, Array]:
        """Of mapped labels: what a map makes of covariances is no matter of two moments."""
        return self._predictor.mean_and_covariance(new)

    def draw(self, new: Points, n_samples: int, rng: np.random.RandomState) -> Array:
        """Draws of mapped labels, mapped back."""
        return self._warp.backward(self._predictor.draw(new, n_samples, rng))

    def hulls(self, new: Points, needed: Needed) -> Array:
        """See Predictor."""
        return self._warp.backward(self._predictor.hulls(new, needed))

    def regions(self, new: Points, needed: Needed) -> list[Array]:
        """See Predictor; pieces where there are no labels are left out."""
        return [self._region(pieces) for pieces in self._predictor.regions(new, needed)]

    def _region(self, pieces: Array) -> Array:
        mapped = self._warp.backward(pieces)
        return mapped[(mapped[:, 0] < mapped[:, 1]) | (pieces[:, 0] == pieces[:, 1])]

    def bounds(self, new: Points, below: Needed, above: Needed) -> Array:
        """See Predictor."""
        return self._warp.backward(self._predictor.bounds(new, below, above))

    def counts(self, new: Points, y: Array, signed: bool, weights: Array | None = None) -> tuple[Array, Array]:
        """See Predictor; labels outside the map's domain score higher than all rows, or, with signs, lower."""
        z = self._warp.extended(y)
        outside = np.isinf(z)
        at_least, greater = self._predictor.counts(new, np.where(outside, 0.0, z), signed, weights)
        everyone = np.where(signed & (z < 0.0), self.n_ranked if weights is None else weights.sum(), 0.0)
        return np.where(outside, everyone, at_least), np.where(outside, everyone, greater)
