"""Answers in the labels' own units, of a predictor whose labels were mapped."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from conformal_gp.conformal.pvalues import Counts
from conformal_gp.gp.warps import Warp
from conformal_gp.predictors.base import Predictor
from conformal_gp.types import Array


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
        self.n_rows, self.n_ranked, self.n_jobs = predictor.n_rows, predictor.n_ranked, predictor.n_jobs

    def mean(self, X: Array) -> Array:
        """Medians: the mean of the mapped label is its median too, and a median stays one under the map."""
        return self._warp.backward(self._predictor.mean(X))

    def mean_and_variance(self, X: Array) -> tuple[Array, Array]:
        """Medians, and squares of half the length of what is within a standard deviation of the mapped label's mean."""
        mean, variance = self._predictor.mean_and_variance(X)
        below, above = (self._warp.backward(mean + sign * np.sqrt(variance)) for sign in (-1.0, 1.0))
        return self._warp.backward(mean), (0.5 * (above - below)) ** 2

    def mean_and_covariance(self, X: Array) -> tuple[Array, Array]:
        """Of mapped labels: what a map makes of covariances is no matter of two moments."""
        return self._predictor.mean_and_covariance(X)

    def draw(self, X: Array, n_samples: int, rng: np.random.RandomState) -> Array:
        """Draws of mapped labels, mapped back."""
        return self._warp.backward(self._predictor.draw(X, n_samples, rng))

    def hulls(self, X: Array, ranks: Sequence[int]) -> Array:
        """See Predictor."""
        return self._warp.backward(self._predictor.hulls(X, ranks))

    def regions(self, X: Array, rank: int) -> list[Array]:
        """See Predictor; pieces where there are no labels are left out."""
        return [self._region(pieces) for pieces in self._predictor.regions(X, rank)]

    def _region(self, pieces: Array) -> Array:
        mapped = self._warp.backward(pieces)
        return mapped[(mapped[:, 0] < mapped[:, 1]) | (pieces[:, 0] == pieces[:, 1])]

    def bounds(self, X: Array, below: Sequence[int], above: Sequence[int]) -> Array:
        """See Predictor."""
        return self._warp.backward(self._predictor.bounds(X, below, above))

    def counts(self, X: Array, y: Array, signed: bool) -> tuple[Counts, Counts]:
        """See Predictor; labels outside the map's domain score higher than all rows, or, with signs, lower."""
        z = self._warp.extended(y)
        outside = np.isinf(z)
        at_least, greater = self._predictor.counts(X, np.where(outside, 0.0, z), signed)
        everyone = np.where(signed & (z < 0.0), self.n_ranked, 0)
        return np.where(outside, everyone, at_least), np.where(outside, everyone, greater)
