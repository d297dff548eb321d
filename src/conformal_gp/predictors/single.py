"""One set of hyperparameters for every test row and every label."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from copy import copy
from functools import cached_property

import numpy as np

from conformal_gp.conformal.lines import Lines, Slack, rounding
from conformal_gp.conformal.one_sided import bounds
from conformal_gp.conformal.pvalues import Counts, counts
from conformal_gp.conformal.regions import hulls, regions
from conformal_gp.gp.factor import multiply_triangle
from conformal_gp.gp.inputs import Inputs
from conformal_gp.gp.posterior import Moments, Posterior, Prediction
from conformal_gp.predictors import single_precision
from conformal_gp.predictors.base import Predictor, score_lines
from conformal_gp.types import Array, Rows

# Lines are computed in pieces that stay in the cache: allocating new memory would take as long as the computation.
PIECE_ENTRIES = 2**17
# Fewer ranked rows than this gain nothing from single precision.
ROWS_FOR_SINGLE = 500


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
        blocks = self.map_blocks(lambda rows: self.posterior.moments(self.inputs.new(X[rows]))[1:3], _all(X))
        mean, variance = (np.concatenate(part) for part in zip(*blocks, strict=True))
        return mean, variance

    def mean_and_covariance(self, X: Array) -> tuple[Array, Array]:
        """See Predictor."""
        return self.mean(X), self.posterior.covariance(self.inputs.new(X))

    def hulls(self, X: Array, ranks: Sequence[int]) -> Array:
        """See Predictor."""
        rows_in_single = self._rows_in_single if self._gamma == 2.0 and self.n_ranked >= ROWS_FOR_SINGLE else None

        def block(rows: Rows) -> Array:
            moments = self._moments(X, rows)
            if rows_in_single is not None and single_precision.pays(rows_in_single, moments.square, moments.variance):
                return self._rough_hulls(rows_in_single, moments, ranks)
            return np.concatenate([hulls(lines, ranks) for _, lines in self._lines(moments, rows)])

        return np.concatenate(self.map_blocks(block, _all(X)))

    def regions(self, X: Array, rank: int) -> list[Array]:
        """See Predictor."""

        def block(rows: Rows) -> list[Array]:
            return [region for _, lines in self._lines(self._moments(X, rows), rows) for region in regions(lines, rank)]

        return [region for found in self.map_blocks(block, _all(X)) for region in found]

    def bounds(self, X: Array, below: Sequence[int], above: Sequence[int]) -> Array:
        """See Predictor."""

        def block(rows: Rows) -> Array:
            found = [bounds(lines, below, above) for _, lines in self._lines(self._moments(X, rows), rows)]
            return np.concatenate(found)

        return np.concatenate(self.map_blocks(block, _all(X)))

    def counts(self, X: Array, y: Array, signed: bool) -> tuple[Counts, Counts]:
        """See Predictor."""

        def block(rows: Rows) -> Counts:
            pieces = self._lines(self._moments(X, rows), rows)
            return np.concatenate([np.stack(counts(lines, y[piece], signed)) for piece, lines in pieces], axis=1)

        at_least, greater = np.concatenate(self.map_blocks(block, _all(X)), axis=1)
        return at_least, greater

    def _moments(self, X: Array, rows: Rows) -> Moments:
        return self.posterior.moments(self.inputs.new(X[rows]))

    def _lines(self, moments: Moments, rows: Rows) -> Iterator[tuple[Rows, Lines]]:
        """Lines for the test rows ``rows``, in pieces: some of the rows, and their lines. ``moments`` is used up."""
        weights, *rest = self.posterior.weights(moments), moments.mean, moments.variance, moments.prior
        for piece in _pieces(rows.size, PIECE_ENTRIES // self.n_rows):
            prediction = Prediction(weights[piece], *(part[piece] for part in rest))
            yield rows[piece], score_lines(self.posterior, self._ranked, prediction, self._gamma)

    def _rough_hulls(self, rows: single_precision.RoughRows, moments: Moments, ranks: Sequence[int]) -> Array:
        """Hulls by way of single precision, (m, 2, levels), put out as those of lines are."""
        sizes = self.posterior.sizes
        off = rounding(sizes, np.sqrt(sizes.relative * moments.square), moments.variance, moments.prior)
        below, above = map(Slack.of(moments.mean, off).put_out, _rough_reach(rows, moments, ranks))
        mean = moments.mean[:, None]
        return np.stack([mean - below, mean + above], axis=1)

    @cached_property
    def _rows_in_single(self) -> single_precision.RoughRows | None:
        """The ranked rows in single precision; None where a row alone determines a coefficient of the mean."""
        alpha, diagonal = self.posterior.residuals[self._ranked], self.posterior.diagonal[self._ranked]
        if (diagonal == 0.0).any():
            return None
        return single_precision.prepare(np.arange(self.n_rows)[self._ranked], self.posterior.root, alpha, diagonal)


def _rough_reach(rows: single_precision.RoughRows, moments: Moments, ranks: Sequence[int]) -> Array:
    """How far hulls reach below and above the mean, by way of single precision, (2, m, levels)."""
    half, mean, variance, square, _ = moments
    cosines = np.empty(half.shape, dtype=np.float32)
    np.multiply(half, np.where(square > 0.0, square, 1.0)[:, None] ** -0.5, out=cosines, casting="same_kind")
    multiply_triangle(rows.unit_root, cosines, transposed=True)
    everything = rows.numbers.size == half.shape[1]
    return np.concatenate(
        [
            single_precision.ends(
                rows,
                cosines[piece] if everything else cosines[piece, rows.numbers],
                half[piece],
                square[piece],
                variance[piece],
                ranks,
            )
            for piece in _pieces(mean.size, 2 * PIECE_ENTRIES // half.shape[1])  # of half the bytes
        ],
        axis=1,
    )


def _pieces(n_new: int, step: int) -> list[slice]:
    return [slice(start, start + max(1, step)) for start in range(0, n_new, max(1, step))]


def _all(X: Array) -> Rows:
    return np.arange(X.shape[0])
