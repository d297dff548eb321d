"""The exact GP with one set of hyperparameters: scores of calibration rows are lines in the candidate value."""

from __future__ import annotations

from collections.abc import Callable
from copy import copy
from typing import Self, TypeVar

import numpy as np

from conformal_gp.answers import Block, Question
from conformal_gp.arrays import Array, Indices
from conformal_gp.conformal.lines import Lines, normalised_residual_lines, rounding
from conformal_gp.gp.inputs import Inputs
from conformal_gp.gp.posterior import Posterior, Prediction
from conformal_gp.rows import Rows
from conformal_gp.targets.difficulty import Spread
from conformal_gp.threads import map_threads, slices

Part = TypeVar("Part")

# Test rows are taken in blocks that stay in the cache: so many covariances with training rows, but at least and at
# most so many rows. Memory does not grow with the number of test rows.
COVARIANCES = 2**17
CACHED_ROWS = (64, 512)


class ExactModel:
    """An exact GP given training rows.

    Parameters
    ----------
    inputs, posterior : Inputs and Posterior
        Training inputs, and the Gaussian process given all training rows.
    calibration : ndarray of int
        Numbers of the calibration rows.
    gamma : float
        Normalisation exponent, eq. 19 of the paper.
    n_jobs : int or None
        Threads over blocks of test rows.
    rows, difficulty : Rows and callable, or None, default=None
        Training rows, and a function from rows to location and scale of their scores; None is 0 and 1.
    """

    screens: bool = False

    def __init__(
        self,
        inputs: Inputs,
        posterior: Posterior,
        calibration: Indices,
        gamma: float,
        n_jobs: int | None,
        rows: Rows | None = None,
        difficulty: Callable[[Rows], Spread] | None = None,
    ):
        self.inputs = inputs
        self.posterior = posterior
        self.calibration = calibration
        self.gamma = gamma
        self.n_jobs = n_jobs
        self.n_rows = posterior.alpha.size
        self.difficulty = difficulty
        self.one_interval = gamma == 2.0 and difficulty is None
        if difficulty is not None and rows is not None:
            self._spread = difficulty(rows.take(calibration))

    def among(self, calibration: Indices) -> Self:
        """See Model."""
        other = copy(self)
        other.calibration = calibration
        if self.difficulty is not None:
            other._spread = self._spread.take(np.searchsorted(self.calibration, calibration))
        return other

    def _map_blocks(self, function: Callable[[slice], Part], n_new: int) -> list[Part]:
        """Apply ``function`` to blocks of test rows, in threads."""
        step = int(np.clip(COVARIANCES // self.n_rows, *CACHED_ROWS))
        return map_threads(function, slices(n_new, step), self.n_jobs)

    def visit(self, new: Rows, question: Question, fill: Callable[[Block], None]) -> None:
        """See Model."""
        chosen: Indices | slice = self.calibration
        if self.calibration.size == self.n_rows:
            chosen = slice(None)

        def visit_block(block: slice) -> None:
            rows = new.take(block)
            prediction = self.posterior.predict(self.inputs.new(rows))
            lines = score_lines(self.posterior, chosen, prediction, self.gamma)
            if self.difficulty is not None:
                lines = lines.normalised(self._spread, self.difficulty(rows), prediction.variance)
            fill(Block(np.arange(block.start, block.stop), lines))

        self.posterior.prepare()
        self._map_blocks(visit_block, len(new.X))

    def centre(self, new: Rows) -> Array:
        """See Model: the mean, moved by the location of the scores where they have one."""
        if self.difficulty is not None:
            mean, variance = self.moments(new)
            return mean + located(variance, self.difficulty(new))
        blocks = self._map_blocks(lambda block: self.posterior.mean(self.inputs.new(new.take(block))), len(new.X))
        return np.concatenate(blocks)

    def moments(self, new: Rows) -> tuple[Array, Array]:
        """See Model."""
        blocks = self._map_blocks(lambda block: self.posterior.moments(self.inputs.new(new.take(block))), len(new.X))
        mean, variance = (np.concatenate(part) for part in zip(*blocks, strict=True))
        return mean, variance

    def covariance(self, new: Rows) -> Array:
        """See Model."""
        return self.posterior.covariance(self.inputs.new(new))

    def sample(self, new: Rows, n_samples: int, rng: np.random.RandomState) -> Array:
        """See Model."""
        return sample_normal(self.moments(new)[0], self.covariance(new), n_samples, rng)

    def typical(self) -> tuple[float, float]:
        """See Model."""
        scale = 1.0
        if self.difficulty is not None:
            scale = float(np.median(self._spread.scale))
        return 1.0 / float(np.median(self.posterior.diagonal[self.calibration])), scale


def located(variance: Array, spread: Spread) -> Array:
    """Distance from the mean at which a score measured from a location is 0; 0 where the variance is infinite."""
    deviation = np.sqrt(np.where(np.isfinite(variance), variance, 0.0))
    return deviation * spread.location


def sample_normal(mean: Array, covariance: Array, n_samples: int, rng: np.random.RandomState) -> Array:
    """Draws from a normal distribution, one a column; a ValueError if it is not determined."""
    if not np.isfinite(covariance).all():
        row = int(np.argmin(np.isfinite(np.diagonal(covariance))))
        raise ValueError(f"the training rows do not determine the mean at row {row} of X: nothing can be drawn.")
    return rng.multivariate_normal(mean, covariance, n_samples).T


def score_lines(posterior: Posterior, calibration: Indices | slice, prediction: Prediction, gamma: float) -> Lines:
    """Lines of calibration rows for a block of test rows, eq. 21 of the paper, and how far rounding puts them off."""
    weights, mean, variance, prior = prediction
    # |p_i + q_i t| of eq. (1) in docs/theory.md, which is the paper's eq. 21 measured from the mean
    diagonal = posterior.diagonal[calibration]
    own_weights = weights[:, calibration]
    lines = normalised_residual_lines(posterior.residuals[calibration], diagonal, own_weights, mean, variance, gamma)
    length = np.sqrt(weights**2 @ posterior.prior)  # |D v|
    unequal: Array | float = 1.0
    if gamma != 2.0:
        unequal = _unequal(diagonal, own_weights, variance, gamma)
    return lines._replace(rounding=rounding(posterior.sizes, length, variance, prior, unequal))


def _unequal(diagonal: Array, weights: Array, variance: Array, gamma: float) -> Array:
    """Largest ratio of an error in units of scores to one in units of standard deviations.

    Rows that determine a coefficient by themselves score 0, without any error.
    """
    with np.errstate(invalid="ignore"):
        ratio = variance[:, None] * diagonal + weights**2
    ratio = np.where((diagonal > 0.0) & (ratio > 0.0) & np.isfinite(ratio), ratio, 1.0)
    return np.maximum(ratio ** (1.0 / gamma - 0.5), 1.0).max(axis=1, initial=1.0)
