"""Answers about labels, of a predictor of labels less a given mean function or constant."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from conformal_gp.conformal.pvalues import Counts
from conformal_gp.predictors.base import Predictor
from conformal_gp.types import Array


class ShiftedPredictor(Predictor):
    """A predictor of y - m(x), as one of y.

    The mean function m is fixed beforehand, or comes from rows that are not ranked: labels of training rows and the
    candidate label are shifted by the same function of their inputs, so no row is treated differently. Or it is any
    constant, where the predictor has a mean function with a constant in it, which takes up whatever that is.

    A label is in a region if, shifted, it is in the predictor's. So ends are rounded inwards: the numbers of floating
    point between them are those that are in the region, also where labels are much larger than their differences.

    Parameters
    ----------
    predictor : Predictor
        Of labels less the mean function.
    shift : callable
        m, from inputs (n, d) to (n,).
    """

    def __init__(self, predictor: Predictor, shift: Callable[[Array], Array]):
        self.unshifted = predictor
        self.shift = shift
        self.n_rows, self.n_ranked, self.n_jobs = predictor.n_rows, predictor.n_ranked, predictor.n_jobs

    def mean(self, X: Array) -> Array:
        """See Predictor."""
        return self.unshifted.mean(X) + self.shift(X)

    def mean_and_variance(self, X: Array) -> tuple[Array, Array]:
        """See Predictor."""
        mean, variance = self.unshifted.mean_and_variance(X)
        return mean + self.shift(X), variance

    def mean_and_covariance(self, X: Array) -> tuple[Array, Array]:
        """See Predictor."""
        mean, covariance = self.unshifted.mean_and_covariance(X)
        return mean + self.shift(X), covariance

    def hulls(self, X: Array, ranks: Sequence[int]) -> Array:
        """See Predictor."""
        ends, by = self.unshifted.hulls(X, ranks), self.shift(X)[:, None]
        return np.stack(_shifted(ends[:, 0], ends[:, 1], by), axis=1)

    def regions(self, X: Array, rank: int) -> list[Array]:
        """See Predictor."""
        regions = zip(self.unshifted.regions(X, rank), self.shift(X), strict=True)
        return [np.stack(_shifted(region[:, 0], region[:, 1], by), axis=1) for region, by in regions]

    def bounds(self, X: Array, below: Sequence[int], above: Sequence[int]) -> Array:
        """See Predictor."""
        found, by, n = self.unshifted.bounds(X, below, above), self.shift(X)[:, None], len(below)
        return np.concatenate([_rounded(found[:, :n], by, np.inf), _rounded(found[:, n:], by, -np.inf)], axis=1)

    def counts(self, X: Array, y: Array, signed: bool) -> tuple[Counts, Counts]:
        """See Predictor."""
        return self.unshifted.counts(X, y - self.shift(X), signed)


def _rounded(ends: Array, by: Array | float, towards: float) -> Array:
    """Ends of regions, shifted, and rounded to the side on which the region is."""
    shifted = ends + by
    off = shifted - by
    return np.where(off < ends if towards > 0.0 else off > ends, np.nextafter(shifted, towards), shifted)


def _shifted(low: Array, high: Array, by: Array | float) -> tuple[Array, Array]:
    """Both ends of regions, shifted; where there is no number between them, that which is nearest."""
    first, last = _rounded(low, by, np.inf), _rounded(high, by, -np.inf)
    narrow = first > last
    return np.where(narrow, low + by, first), np.where(narrow, high + by, last)
