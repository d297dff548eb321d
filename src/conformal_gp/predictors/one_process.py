"""Full conformal prediction with one set of hyperparameters for every test row and every label."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from copy import copy

import numpy as np

from conformal_gp.conformal.lines import Lines
from conformal_gp.conformal.one_sided import bounds
from conformal_gp.conformal.pvalues import Counts, counts
from conformal_gp.conformal.regions import hulls, regions
from conformal_gp.gp.inputs import Inputs, Points
from conformal_gp.gp.posterior import Posterior
from conformal_gp.predictors.base import Part, Predictor, score_lines
from conformal_gp.types import Array, Rows


class OneProcess(Predictor):
    """Answers from one posterior.

    Parameters
    ----------
    inputs : Inputs
        Training inputs.
    posterior : Posterior
        The Gaussian process given all training rows.
    ranked : ndarray of int, or None
        Rows that are ranked against the test row; the others are fixed background. None ranks all.
    gamma : float
        Normalisation exponent.
    n_jobs : int or None
        Threads over blocks of test rows.
    """

    def __init__(self, inputs: Inputs, posterior: Posterior, ranked: Rows | None, gamma: float, n_jobs: int | None):
        self.inputs = inputs
        self.posterior = posterior
        self._ranked: Rows | slice = slice(None) if ranked is None else ranked
        self._gamma = gamma
        self.n_jobs = n_jobs
        self.n_rows = posterior.alpha.size
        self.n_ranked = self.n_rows if ranked is None else ranked.size

    def with_gamma(self, gamma: float) -> OneProcess:
        """The same posterior with another gamma."""
        other = copy(self)
        other._gamma = gamma
        return other

    def mean(self, new: Points) -> Array:
        """See Predictor."""
        return np.concatenate(
            self.map_blocks(lambda block: self.posterior.mean(self.inputs.new(new.take(block))), len(new.X))
        )

    def mean_and_variance(self, new: Points) -> tuple[Array, Array]:
        """See Predictor."""
        blocks = self.map_blocks(lambda block: self.posterior.moments(self.inputs.new(new.take(block))), len(new.X))
        mean, variance = (np.concatenate(part) for part in zip(*blocks, strict=True))
        return mean, variance

    def mean_and_covariance(self, new: Points) -> tuple[Array, Array]:
        """See Predictor."""
        return self.mean(new), self.posterior.covariance(self.inputs.new(new))

    def hulls(self, new: Points, ranks: Sequence[int]) -> Array:
        """See Predictor."""
        return np.concatenate(self._map_lines(lambda lines, block: hulls(lines, ranks), new))

    def regions(self, new: Points, rank: int) -> list[Array]:
        """See Predictor."""
        return [region for found in self._map_lines(lambda lines, block: regions(lines, rank), new) for region in found]

    def bounds(self, new: Points, below: Sequence[int], above: Sequence[int]) -> Array:
        """See Predictor."""
        return np.concatenate(self._map_lines(lambda lines, block: bounds(lines, below, above), new))

    def counts(self, new: Points, y: Array, signed: bool) -> tuple[Counts, Counts]:
        """See Predictor."""
        found = self._map_lines(lambda lines, block: np.stack(counts(lines, y[block], signed)), new)
        at_least, greater = np.concatenate(found, axis=1)
        return at_least, greater

    def _map_lines(self, function: Callable[[Lines, slice], Part], new: Points) -> list[Part]:
        """Apply ``function`` to the lines of blocks of test rows."""

        def apply(block: slice) -> Part:
            prediction = self.posterior.predict(self.inputs.new(new.take(block)))
            return function(score_lines(self.posterior, self._ranked, prediction, self._gamma), block)

        return self.map_blocks(apply, len(new.X))
