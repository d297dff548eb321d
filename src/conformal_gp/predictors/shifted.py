"""Answers about labels, of a predictor of labels less a given mean function."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from conformal_gp.conformal.pvalues import Counts
from conformal_gp.predictors.base import Predictor
from conformal_gp.types import Array


class ShiftedPredictor(Predictor):
    """A predictor of y - m(x), as one of y.

    The mean function m is fixed beforehand, or comes from rows that are not ranked: labels of training rows and the
    candidate label are shifted by the same function of their inputs, so no row is treated differently.

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
        return self.unshifted.hulls(X, ranks) + self.shift(X)[:, None, None]

    def regions(self, X: Array, rank: int) -> list[Array]:
        """See Predictor."""
        return [region + by for region, by in zip(self.unshifted.regions(X, rank), self.shift(X), strict=True)]

    def bounds(self, X: Array, below: Sequence[int], above: Sequence[int]) -> Array:
        """See Predictor."""
        return self.unshifted.bounds(X, below, above) + self.shift(X)[:, None]

    def counts(self, X: Array, y: Array, signed: bool) -> tuple[Counts, Counts]:
        """See Predictor."""
        return self.unshifted.counts(X, y - self.shift(X), signed)
