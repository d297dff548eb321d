"""One set of hyperparameters for every test row and every label."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from copy import copy

import numpy as np
from numpy.typing import NDArray

from conformal_gp.conformal.lines import Lines, normalised_residual_lines
from conformal_gp.conformal.pvalues import p_values
from conformal_gp.conformal.regions import hulls, regions
from conformal_gp.gp.inputs import Inputs
from conformal_gp.gp.posterior import Posterior
from conformal_gp.predictors.base import Predictor

Array = NDArray[np.float64]
Rows = NDArray[np.int64]


# Lines are worked on in pieces that stay in the cache: fresh pages of memory would cost as much as the work on them.
PIECE_ENTRIES = 2**17


class SinglePredictor(Predictor):
    """Full conformal prediction with one posterior.

    Parameters
    ----------
    inputs : Inputs
        Training inputs.
    posterior : Posterior
        The Gaussian process given all training rows.
    ranked : ndarray of int, or None
        Rows that are ranked against the test row; the others are fixed background. None ranks all.
    gamma : float
        Root of the variance in the nonconformity measure.
    n_jobs : int or None
        Threads over blocks of test rows.
    """

    def __init__(
        self,
        inputs: Inputs,
        posterior: Posterior,
        ranked: Rows | None,
        gamma: float,
        n_jobs: int | None,
    ):
        self.inputs = inputs
        self.posterior = posterior
        self._ranked: Rows | slice = slice(None) if ranked is None else ranked
        self._gamma = gamma
        self.n_jobs = n_jobs
        self.n_rows = posterior.alpha.size
        self.n_ranked = self.n_rows if ranked is None else ranked.size

    def with_gamma(self, gamma: float) -> SinglePredictor:
        """The same posterior with another gamma."""
        other = copy(self)
        other._gamma = gamma
        return other

    def mean(self, X: Array) -> Array:
        """See Predictor."""
        return np.concatenate(self.map_blocks(lambda rows: self.posterior.mean(self.inputs.new(X[rows])), _all(X)))

    def mean_and_variance(self, X: Array) -> tuple[Array, Array]:
        """See Predictor."""
        blocks = self.map_blocks(lambda rows: self.posterior.predict(self.inputs.new(X[rows]))[1:], _all(X))
        mean, variance = (np.concatenate(part) for part in zip(*blocks, strict=True))
        return mean, variance

    def hulls(self, X: Array, ranks: Sequence[int]) -> Array:
        """See Predictor."""

        def block(rows: Rows) -> Array:
            return np.concatenate([hulls(lines, ranks) for _, lines in self._lines(X, rows)])

        return np.concatenate(self.map_blocks(block, _all(X)))

    def regions(self, X: Array, rank: int) -> list[Array]:
        """See Predictor."""

        def block(rows: Rows) -> list[Array]:
            return [region for _, lines in self._lines(X, rows) for region in regions(lines, rank)]

        return [region for found in self.map_blocks(block, _all(X)) for region in found]

    def p_values(self, X: Array, y: Array, tie_breaks: Array | None) -> Array:
        """See Predictor."""

        def block(rows: Rows) -> Array:
            found = [
                p_values(lines, y[piece], None if tie_breaks is None else tie_breaks[piece])
                for piece, lines in self._lines(X, rows)
            ]
            return np.concatenate(found)

        return np.concatenate(self.map_blocks(block, _all(X)))

    def _lines(self, X: Array, rows: Rows) -> Iterator[tuple[Rows, Lines]]:
        """Lines for the test rows ``X[rows]``, in pieces: some of the rows, and their lines."""
        weights, mean, variance = self.posterior.predict(self.inputs.new(X[rows]))
        alpha, diagonal = self.posterior.alpha[self._ranked], self.posterior.diagonal[self._ranked]
        step = max(1, PIECE_ENTRIES // self.n_rows)
        for start in range(0, rows.size, step):
            piece = slice(start, start + step)
            ranked = weights[piece, self._ranked]
            yield (
                rows[piece],
                normalised_residual_lines(alpha, diagonal, ranked, mean[piece], variance[piece], self._gamma),
            )


def _all(X: Array) -> Rows:
    return np.arange(X.shape[0])
