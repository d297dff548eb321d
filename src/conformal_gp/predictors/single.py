"""One set of hyperparameters for every test row and every label."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from conformal_gp.conformal.lines import Lines, normalised_residual_lines
from conformal_gp.conformal.pvalues import p_values
from conformal_gp.conformal.regions import hulls, regions
from conformal_gp.gp.inputs import Inputs
from conformal_gp.gp.posterior import Posterior, Prediction
from conformal_gp.predictors.base import Predictor

Array = NDArray[np.float64]


def lines_of(posterior: Posterior, block: Prediction, ranked: NDArray[np.int64] | slice, gamma: float) -> Lines:
    """Lines of the ranked rows of a posterior for a block of test rows."""
    return normalised_residual_lines(
        posterior.alpha[ranked],
        posterior.diagonal[ranked],
        block.weights[:, ranked],
        block.mean,
        block.variance,
        gamma,
    )


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
        ranked: NDArray[np.int64] | None,
        gamma: float,
        n_jobs: int | None,
    ):
        self._inputs = inputs
        self._posterior = posterior
        self._ranked: NDArray[np.int64] | slice = slice(None) if ranked is None else ranked
        self._gamma = gamma
        self.n_jobs = n_jobs
        self.n_rows = posterior.alpha.size
        self.n_ranked = self.n_rows if ranked is None else ranked.size

    def mean(self, X: Array) -> Array:
        """See Predictor."""
        return np.concatenate(self.map_blocks(lambda rows: self._posterior.mean(self._inputs.new(X[rows])), _all(X)))

    def mean_and_variance(self, X: Array) -> tuple[Array, Array]:
        """See Predictor."""
        blocks = self.map_blocks(lambda rows: self._posterior.predict(self._inputs.new(X[rows]))[1:], _all(X))
        mean, variance = (np.concatenate(part) for part in zip(*blocks, strict=True))
        return mean, variance

    def hulls(self, X: Array, ranks: Sequence[int]) -> Array:
        """See Predictor."""
        return np.concatenate(self.map_blocks(lambda rows: hulls(self._lines(X[rows]), ranks), _all(X)))

    def regions(self, X: Array, rank: int) -> list[Array]:
        """See Predictor."""
        blocks = self.map_blocks(lambda rows: regions(self._lines(X[rows]), rank), _all(X))
        return [region for block in blocks for region in block]

    def p_values(self, X: Array, y: Array, tie_breaks: Array | None) -> Array:
        """See Predictor."""

        def block(rows: NDArray[np.int64]) -> Array:
            return p_values(self._lines(X[rows]), y[rows], None if tie_breaks is None else tie_breaks[rows])

        return np.concatenate(self.map_blocks(block, _all(X)))

    def _lines(self, X: Array) -> Lines:
        return lines_of(self._posterior, self._posterior.predict(self._inputs.new(X)), self._ranked, self._gamma)


def _all(X: Array) -> NDArray[np.int64]:
    return np.arange(X.shape[0])
