"""Predictors: what a tuned model answers, in blocks of test rows; and the one with one set of hyperparameters."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from copy import copy
from typing import Self, TypeVar

import numpy as np

from conformal_gp.conformal.lines import Lines, Spread, normalised_residual_lines, rounding
from conformal_gp.conformal.one_sided import bounds
from conformal_gp.conformal.pvalues import counts
from conformal_gp.conformal.regions import hulls, regions
from conformal_gp.conformal.weights import Needed
from conformal_gp.gp.inputs import Inputs, Points
from conformal_gp.gp.posterior import Posterior, Prediction
from conformal_gp.threads import map_threads, slices
from conformal_gp.types import Array, Rows

Part = TypeVar("Part")

# Test rows are taken in blocks that stay in the cache: so many covariances with training rows, but at least and at
# most so many rows. Memory does not grow with the number of test rows.
BLOCK_ENTRIES = 2**17
BLOCK_ROWS = (64, 512)


class Predictor(ABC):
    """Answers for any number of checked test rows."""

    n_rows: int
    """Training rows."""
    ranked: Rows
    """Numbers of those among them that are ranked against the test row, ascending."""
    n_jobs: int | None
    """Threads over blocks of test rows."""

    @property
    def n_ranked(self) -> int:
        """How many training rows are ranked."""
        return self.ranked.size

    @abstractmethod
    def among(self, rows: Rows) -> Self:
        """The same predictor with only some of its ranked rows, by their numbers, ascending, ranked."""

    @property
    @abstractmethod
    def process(self) -> Process:
        """The process behind, of labels that are not transformed back, shifted or cut."""

    def map_blocks(self, function: Callable[[slice], Part], n_new: int) -> list[Part]:
        """Apply ``function`` to blocks of test rows, in threads."""
        step = int(np.clip(BLOCK_ENTRIES // self.n_rows, *BLOCK_ROWS))
        return list(map_threads(function, slices(n_new, step), self.n_jobs))

    @abstractmethod
    def mean(self, new: Points) -> Array:
        """Plain Gaussian process means."""

    @abstractmethod
    def mean_and_variance(self, new: Points) -> tuple[Array, Array]:
        """Plain Gaussian process means, and variances of new labels."""

    @abstractmethod
    def mean_and_covariance(self, new: Points) -> tuple[Array, Array]:
        """Means of new labels, (m,), and their covariances, noise included, (m, m): one block, whatever m."""

    def draw(self, new: Points, n_samples: int, rng: np.random.RandomState) -> Array:
        """Draws of new labels under the plain Gaussian process, one a column."""
        mean, covariance = self.mean_and_covariance(new)
        if not np.isfinite(covariance).all():
            row = int(np.argmin(np.isfinite(np.diagonal(covariance))))
            raise ValueError(f"the training rows do not determine the mean at row {row} of X: nothing can be drawn.")
        return rng.multivariate_normal(mean, covariance, n_samples).T

    @abstractmethod
    def hulls(self, new: Points, needed: Needed) -> Array:
        """Convex hulls of the regions of several levels, (m, 2, levels)."""

    @abstractmethod
    def regions(self, new: Points, needed: Needed) -> list[Array]:
        """Exact regions of one level, each (pieces, 2)."""

    @abstractmethod
    def bounds(self, new: Points, below: Needed, above: Needed) -> Array:
        """Lower bounds of some levels, then upper bounds of others, (m, levels)."""

    @abstractmethod
    def counts(self, new: Points, y: Array, signed: bool, weights: Array | None = None) -> tuple[Array, Array]:
        """How many ranked rows, or of what weight, score at least as high as each test row with its label, and higher.

        ``weights`` are those of the ranked rows, (n,); None is 1 each.
        """


class Process(Predictor):
    """Answers about the labels of which the process is."""

    inputs: Inputs
    """Training inputs, or those of design rows, as the kernel sees them."""
    difficulty: Callable[[Points], Spread] | None = None
    """From rows to what scores are measured from and by besides; None is 0 and 1."""

    @property
    def process(self) -> Process:
        """See Predictor."""
        return self

    def deciding(self, new: Points, ends: Array) -> tuple[Rows, Rows]:
        """How many ranked rows tie with test rows at ends of their regions, (m, 2), and the number of a single one."""
        # ties are counted with weights from which the number of a single row can be read
        weights = (self.n_rows + self.ranked).astype(np.float64)
        ties = [np.subtract(*self.counts(new, y, False, weights)) for y in ends.T]
        tied, row = np.divmod(np.stack(ties, axis=1).astype(np.int64), self.n_rows)
        return tied, row

    @abstractmethod
    def typical(self) -> tuple[float, float]:
        """Medians over ranked rows: of leave-one-out variances, by way of their inverses, and of scales."""


def union(pieces: Array) -> Array:
    """Pieces, sorted, those that touch made one.

    >>> union(np.array([[2.0, 3.0], [0.0, 1.0], [1.0, 1.5]]))
    array([[0. , 1.5],
           [2. , 3. ]])
    """
    pieces = pieces[np.argsort(pieces[:, 0])]
    reached = np.maximum.accumulate(pieces[:, 1])
    begins = np.append(True, pieces[1:, 0] > reached[:-1])[: len(pieces)]
    return np.column_stack([pieces[begins, 0], reached[np.append(begins[1:], True)[: len(pieces)]]])


def score_lines(posterior: Posterior, ranked: Rows | slice, prediction: Prediction, gamma: float) -> Lines:
    """Lines of the ranked rows for a block of test rows: eq. 21 of the paper, centred.

    Parameters
    ----------
    posterior : Posterior
        The process given all training rows.
    ranked : ndarray of int, or slice
        Those that are ranked.
    prediction : Prediction
        Of m test rows.
    gamma : float
        Normalisation exponent, eq. 19 of the paper.

    Returns
    -------
    lines : Lines
        Scores as functions of the test row's label, and how far rounding puts them off.
    """
    weights, mean, variance, prior = prediction
    diagonal, ranked_weights = posterior.diagonal[ranked], weights[:, ranked]
    lines = normalised_residual_lines(posterior.residuals[ranked], diagonal, ranked_weights, mean, variance, gamma)
    length = np.sqrt(weights**2 @ posterior.prior)
    unequal = 1.0 if gamma == 2.0 else _unequal(diagonal, ranked_weights, variance, gamma)
    return lines._replace(rounding=rounding(posterior.sizes, length, variance, prior, unequal))


def _unequal(diagonal: Array, weights: Array, variance: Array, gamma: float) -> Array:
    """How much larger an error may be in units of scores than in units of standard deviations.

    Rows that determine a coefficient by themselves score 0, without any error.
    """
    with np.errstate(invalid="ignore"):
        ratio = variance[:, None] * diagonal + weights**2
    ratio = np.where((diagonal > 0.0) & (ratio > 0.0) & np.isfinite(ratio), ratio, 1.0)
    return np.maximum(ratio ** (1.0 / gamma - 0.5), 1.0).max(axis=1, initial=1.0)


class OneProcess(Process):
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
    rows, difficulty : Points and callable, or None, default=None
        Training rows, and a function from rows to what scores are measured from and by besides; None is 0 and 1.
    """

    def __init__(
        self,
        inputs: Inputs,
        posterior: Posterior,
        ranked: Rows | None,
        gamma: float,
        n_jobs: int | None,
        rows: Points | None = None,
        difficulty: Callable[[Points], Spread] | None = None,
    ):
        self.inputs = inputs
        self.posterior = posterior
        self._ranked: Rows | slice = slice(None) if ranked is None else ranked
        self._gamma = gamma
        self.n_jobs = n_jobs
        self.n_rows = posterior.alpha.size
        self.ranked = np.arange(self.n_rows)[self._ranked]
        self.difficulty = difficulty
        if difficulty is not None and rows is not None:
            self._ranked_spread = difficulty(rows.take(self._ranked))

    def among(self, rows: Rows) -> Self:
        """See Predictor."""
        other = copy(self)
        other.ranked = other._ranked = rows
        if self.difficulty is not None:
            other._ranked_spread = self._ranked_spread.take(np.searchsorted(self.ranked, rows))
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

    def hulls(self, new: Points, needed: Needed) -> Array:
        """See Predictor."""
        return np.concatenate(self._map_lines(lambda lines, block: hulls(lines, needed.take(block)), new))

    def regions(self, new: Points, needed: Needed) -> list[Array]:
        """See Predictor."""
        blocks = self._map_lines(lambda lines, block: regions(lines, needed.take(block)), new)
        return [region for found in blocks for region in found]

    def bounds(self, new: Points, below: Needed, above: Needed) -> Array:
        """See Predictor."""
        return np.concatenate(
            self._map_lines(lambda lines, block: bounds(lines, below.take(block), above.take(block)), new)
        )

    def counts(self, new: Points, y: Array, signed: bool, weights: Array | None = None) -> tuple[Array, Array]:
        """See Predictor."""
        found = self._map_lines(lambda lines, block: np.stack(counts(lines, y[block], signed, weights)), new)
        at_least, greater = np.concatenate(found, axis=1)
        return at_least, greater

    def typical(self) -> tuple[float, float]:
        """See Process."""
        scale = 1.0 if self.difficulty is None else np.median(self._ranked_spread.scale)
        return 1.0 / float(np.median(self.posterior.diagonal[self._ranked])), float(scale)

    def _map_lines(self, function: Callable[[Lines, slice], Part], new: Points) -> list[Part]:
        """Apply ``function`` to the lines of blocks of test rows."""

        def apply(block: slice) -> Part:
            prediction = self.posterior.predict(self.inputs.new(new.take(block)))
            lines = score_lines(self.posterior, self._ranked, prediction, self._gamma)
            if self.difficulty is not None:
                own = self.difficulty(new.take(block))
                lines = lines.normalised(self._ranked_spread, own, prediction.variance)
            return function(lines, block)

        return self.map_blocks(apply, len(new.X))
