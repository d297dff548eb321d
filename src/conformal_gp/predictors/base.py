"""Predictors: what a tuned model answers, in blocks of test rows; and the one with one set of hyperparameters."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import NamedTuple, TypeVar

import numpy as np

from conformal_gp.conformal.lines import Lines, normalised_residual_lines, rounding
from conformal_gp.conformal.one_sided import bounds
from conformal_gp.conformal.pvalues import Counts, counts, shares, tied
from conformal_gp.conformal.regions import hulls, regions
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
    n_ranked: int
    """Those among them that are ranked against the test row."""
    n_jobs: int | None
    """Threads over blocks of test rows."""

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
    def hulls(self, new: Points, ranks: Sequence[int]) -> Array:
        """Convex hulls of the regions of several ranks, (m, 2, levels)."""

    @abstractmethod
    def regions(self, new: Points, rank: int) -> list[Array]:
        """Exact regions of one rank, each (pieces, 2)."""

    @abstractmethod
    def bounds(self, new: Points, below: Sequence[int], above: Sequence[int]) -> Array:
        """Lower bounds of some ranks, then upper bounds of others, (m, len(below) + len(above))."""

    @abstractmethod
    def counts(self, new: Points, y: Array, signed: bool) -> tuple[Counts, Counts]:
        """How many rows score at least as high as each test row with its label, and how many higher."""

    @property
    @abstractmethod
    def process(self) -> ProcessPredictor:
        """The predictor of transformed labels, of which the process is; this one, if labels are not transformed."""

    @abstractmethod
    def from_process(self, ends: Array) -> Array:
        """Ends of its intervals, (m, 2, ...), as ends of intervals of labels."""

    def p_values(self, new: Points, y: Array, tie_breaks: Array | None) -> Array:
        """p-values of one label for each test row."""
        return shares(*self.counts(new, y, signed=False), self.n_ranked, tie_breaks)

    def cumulative(self, new: Points, y: Array, tie_breaks: Array) -> Array:
        """Values of the predictive distribution function at one label for each test row."""
        at_least, greater = self.counts(new, y, signed=True)
        return shares(self.n_ranked - greater, self.n_ranked - at_least, self.n_ranked, tie_breaks)


class Typical(NamedTuple):
    """Medians over ranked rows."""

    variance: float
    """Of leave-one-out variances, as the inverse of the median of their inverses."""
    difficulty: float
    label: float
    """Of labels; over design rows, where the process is low-rank."""


class ProcessPredictor(Predictor):
    """Answers about the labels of which the process is, and what explains an interval of these."""

    inputs: Inputs
    """Training inputs, or those of design rows, as the kernel sees them."""

    @property
    def process(self) -> ProcessPredictor:
        """See Predictor."""
        return self

    def from_process(self, ends: Array) -> Array:
        """See Predictor."""
        return ends

    @abstractmethod
    def decided(self, new: Points, ends: Array) -> Rows:
        """Numbers of training rows whose scores tie with each test row's at each of two labels, (m, 2); or -1."""

    @abstractmethod
    def difficulty(self, new: Points) -> Array:
        """Numbers by which scores are divided besides, (m,)."""

    @abstractmethod
    def typical(self) -> Typical:
        """Medians over ranked rows."""


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


class OneProcess(ProcessPredictor):
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
        Training rows, and a function from rows (n, d) to numbers (n,) by which scores are divided besides; None is 1.
    """

    def __init__(
        self,
        inputs: Inputs,
        posterior: Posterior,
        ranked: Rows | None,
        gamma: float,
        n_jobs: int | None,
        rows: Points | None = None,
        difficulty: Callable[[Points], Array] | None = None,
    ):
        self.inputs = inputs
        self.posterior = posterior
        self._ranked: Rows | slice = slice(None) if ranked is None else ranked
        self._gamma = gamma
        self.n_jobs = n_jobs
        self.n_rows = posterior.alpha.size
        self.n_ranked = self.n_rows if ranked is None else ranked.size
        self._difficulty = difficulty
        if difficulty is not None and rows is not None:
            self._ranked_difficulty = difficulty(rows.take(self._ranked))

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

    def decided(self, new: Points, ends: Array) -> Rows:
        """See ProcessPredictor."""
        numbers = np.append(np.arange(self.n_rows)[self._ranked], -1)
        found = self._map_lines(lambda lines, block: np.stack([tied(lines, y) for y in ends[block].T], axis=1), new)
        return numbers[np.concatenate(found)]

    def difficulty(self, new: Points) -> Array:
        """See ProcessPredictor."""
        return np.ones(len(new.X)) if self._difficulty is None else self._difficulty(new)

    def typical(self) -> Typical:
        """See ProcessPredictor."""
        diagonal, y = self.posterior.diagonal[self._ranked], self.posterior.y[self._ranked]
        difficulty = 1.0 if self._difficulty is None else float(np.median(self._ranked_difficulty))
        return Typical(float(1.0 / np.median(diagonal)), difficulty, float(np.median(y)))

    def _map_lines(self, function: Callable[[Lines, slice], Part], new: Points) -> list[Part]:
        """Apply ``function`` to the lines of blocks of test rows."""

        def apply(block: slice) -> Part:
            prediction = self.posterior.predict(self.inputs.new(new.take(block)))
            lines = score_lines(self.posterior, self._ranked, prediction, self._gamma)
            if self._difficulty is not None:
                lines = lines.divided(self._ranked_difficulty, self._difficulty(new.take(block)))
            return function(lines, block)

        return self.map_blocks(apply, len(new.X))
