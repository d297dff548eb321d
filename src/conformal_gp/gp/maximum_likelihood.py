"""Maximum likelihood by L-BFGS-B from several starts, with weak priors on length scales and noise.

With many rows the starts are followed on some of them, which costs little, and the best goes on with all rows, for some
steps. With many inputs a step is expensive, so their number is limited, and inputs that are the categories of one
variable share a length scale. The priors are for tuning rows, which may be few (docs/theory.md, "Tuning rows").
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from numpy.linalg import LinAlgError
from scipy.optimize import OptimizeResult, minimize
from sklearn.gaussian_process.kernels import Kernel

from conformal_gp.arrays import Array, Indices
from conformal_gp.gp.covariance import shared_variance
from conformal_gp.gp.kernels import hyperparameter_names, is_amplitude, is_length
from conformal_gp.gp.likelihood import NegativeLogLikelihood, entries, for_each_input
from conformal_gp.gp.posterior import Posterior, noise_floor
from conformal_gp.threads import map_threads, one_blas_thread, slices, stopping_point

# Noise variances relative to the kernel's variance. Double precision hardly distinguishes smaller ones from 0.
NOISE_RATIOS = (1.5e-12, 1e2)
# Standard deviation of the logarithms of length scales about their mean. A fifth less or more makes little difference.
SHRINKAGE = 1.5
# Below this ratio of noise to the kernel's variance its logarithm costs so many nats for each factor of e.
LITTLE_NOISE = 1e-2
NOISE_COST = 0.5
# With more inputs than this, categories of one variable share a length scale.
MANY_INPUTS = 50
# With more rows than the first number, starts are followed on the second number of rows, and the best then takes at
# most so many steps with all rows. A search of 1000 rows costs twenty times as much, and ends nearby.
ROWS_FOR_COARSE = 400
COARSE_ROWS = 300
FINAL_STEPS = 6
# The likelihood of more rows than the first number is the sum over blocks of at most the second.
ROWS_IN_BLOCKS = 1000
BLOCK_ROWS = 600
# Steps of a search with many inputs: so many, or as many as these multiplications pay for, where one step of l rows and
# d inputs is l² (l + 4 d). Up to so many inputs, and with fewer rows, searches end by themselves.
LEAST_STEPS = 50
AFFORDED = 1.3e10
MOST_STEPS = 15000
# Random starts are log-normal about the given start: a factor of 3 either way is within one standard deviation.
START_SPREAD = 1.1
# Leave-one-out errors are clearly larger if their mean square is by this factor, and by so many standard errors.
CLEARLY_MORE = 1.5
STANDARD_ERRORS = 2.0
# SciPy's status of a search that ran out of steps.
OUT_OF_STEPS = 1
# Hyperparameters that may end on their upper bound.
HARMLESS_ABOVE = ("length_scale", "constant_value")


@dataclass(frozen=True)
class Optimum:
    """Hyperparameters found, and what they reached."""

    kernel: Kernel
    """With a length scale for each variable, if inputs share them."""
    noise_variance: float
    log_marginal_likelihood: float
    remarks: list[str] = field(default_factory=list)
    """Warnings."""


class LearningRows(NamedTuple):
    """Rows to learn from."""

    X: Array
    """(l, d): inputs."""
    y: Array
    """(l,): targets, of variance about 1."""
    H: Array
    """(l, p): mean basis with independent columns."""
    y_variance: Array | None
    """(l,): known noise variances; None where they were not given."""
    variables: Indices | None = None
    """(d,): which of the kernel's length scales each input has; None is one for each input, or one for all."""

    def noise(self, learnt: float) -> Array:
        """Noise variances of the targets, (l,)."""
        known = 0.0 if self.y_variance is None else self.y_variance
        return np.full(self.y.size, learnt) + known

    def take(self, rows: Indices) -> LearningRows:
        """Some of them, with a mean basis of independent columns."""
        left, singular, _ = np.linalg.svd(self.H[rows], full_matrices=False)
        H = left[:, singular > 1e-6 * singular.max(initial=0.0)]
        y_variance = None if self.y_variance is None else self.y_variance[rows]
        return LearningRows(self.X[rows], self.y[rows], H, y_variance, self.variables)

    def blocks(self, rng: np.random.RandomState) -> list[LearningRows]:
        """All of them, at random in blocks of at most :data:`BLOCK_ROWS` rows."""
        if self.y.size <= ROWS_IN_BLOCKS:
            return [self]
        order = rng.permutation(self.y.size)
        return [self.take(np.sort(order[block])) for block in slices(self.y.size, BLOCK_ROWS)]


def maximise_likelihood(
    kernel: Kernel,
    noise_variance: float,
    rows: LearningRows,
    *,
    restricted: bool,
    n_restarts: int,
    random_state: np.random.RandomState,
    n_jobs: int | None,
    least_ratio: float = 0.0,
    tolerance: float = 1e-8,
    most_steps: int | None = None,
) -> Optimum:
    """Learn kernel hyperparameters and noise variance from rows.

    Parameters
    ----------
    kernel : sklearn.gaussian_process.kernels.Kernel
        The start, and the bounds.
    noise_variance : float
        Where the noise variance starts. 0 means that none is learnt: it stays at the least that is searched, or at 0 if
        the kernel has white noise of its own.
    rows : LearningRows
        The rows.
    restricted : bool
        Whether the coefficients of the mean are integrated out, under a flat prior, or maximised over; and whether
        length scales and noise have their priors.
    n_restarts : int
        Random starts in addition to the given one.
    random_state : numpy.random.RandomState
        Draws all starts, and rows to follow them on, before any is followed, so the result does not depend on
        ``n_jobs``.
    n_jobs : int or None
        Threads over starts.
    least_ratio : float, default=0.0
        Least noise that is searched, relative to the amplitude of the kernel: the model that is made with what is
        learnt may have more rows than these, and its noise must not be lost in rounding.
    tolerance : float, default=1e-8
        Relative change of the likelihood, which is about one nat a row, at which a search stops.
    most_steps : int or None, default=None
        Most steps of the search, all rows from the start; None is for a search as far as it goes.

    Returns
    -------
    optimum : Optimum
        The best of the starts, except one that is clearly worse by leave-one-out errors.
    """
    least_ratio = max(NOISE_RATIOS[0], noise_floor(rows.y.size), least_ratio)
    without_noise = False
    if noise_variance == 0.0 and not has_noise(kernel, rows):
        # without noise a search from usual starts ends at length scales of next to nothing: noise comes first
        kernel = maximise_likelihood(
            kernel, 0.1, rows, restricted=restricted, n_restarts=n_restarts, random_state=random_state, n_jobs=n_jobs,
            least_ratio=least_ratio, tolerance=tolerance, most_steps=most_steps,
        ).kernel  # fmt: skip
        n_restarts = 0
        without_noise = True
    blocks = rows.blocks(random_state) if restricted else [rows]
    search = _Search(kernel, noise_variance, blocks, restricted, least_ratio, tolerance, n_jobs)
    if search.start.size == 0:
        return Optimum(kernel, noise_variance, -search.value(search.start), [])
    drawn = search.start + START_SPREAD * random_state.standard_normal((n_restarts, search.start.size))
    starts = [search.start, *np.clip(drawn, *search.bounds.T)]
    if most_steps is None and rows.y.size > ROWS_FOR_COARSE:
        some = rows.take(random_state.permutation(rows.y.size)[:COARSE_ROWS])
        coarse = _Search(kernel, noise_variance, [some], restricted, least_ratio, tolerance)
        ends = [result.x for result in map_threads(coarse.climb, starts, n_jobs)]
        starts = [search.accepted([OptimizeResult(x=x, fun=search.penalised(x)[0]) for x in ends]).x]
        most_steps = FINAL_STEPS if restricted else None
    climb = partial(search.climb, most_steps=most_steps)
    if len(starts) == 1:  # leaves the threads to BLAS, if there are many rows
        with one_blas_thread(rows.y.size):
            results = [climb(starts[0])]
    else:
        results = map_threads(climb, starts, n_jobs)
    if without_noise:  # where it comes from, should it end in white noise
        results.append(OptimizeResult(x=search.start, fun=search.value(search.start), success=True, nit=1))
    best = search.accepted(results)
    if not np.isfinite(best.fun):
        raise LinAlgError(
            "the covariance matrix was not positive definite at any start; give a larger noise_variance, "
            "other bounds or another kernel."
        )
    return search.optimum(best, limited=most_steps is not None)


def has_noise(kernel: Kernel, rows: LearningRows) -> bool:
    """Whether a kernel has white noise of its own."""
    first = rows.X[:1]
    return bool(kernel.diag(first)[0] > shared_variance(kernel, first)[0])


class _Search:
    """The likelihood of some rows, with the prior, as a function of what is searched.

    That is the hyperparameters of the kernel and, if noise is learnt, the logarithm of its ratio to the amplitude.
    """

    def __init__(
        self,
        kernel: Kernel,
        noise_variance: float,
        blocks: list[LearningRows],
        restricted: bool,
        least_ratio: float,
        tolerance: float,
        n_jobs: int | None = None,
    ):
        rows = blocks[0]
        self._blocks = blocks
        self._n_jobs = n_jobs
        self._restricted = restricted
        self._tolerance = tolerance
        self._learn_noise = noise_variance > 0.0 or not has_noise(kernel, rows)
        self._kernel = kernel
        full = for_each_input(kernel, rows.variables)
        self._objectives = [
            NegativeLogLikelihood(
                full,
                block.X,
                block.y,
                block.H,
                noise_variance=None if self._learn_noise else noise_variance,
                restricted=restricted,
                known=0.0 if block.y_variance is None else block.y_variance,
            )
            for block in blocks
        ]
        number, lengths = hyperparameter_names(kernel)[1], is_length(kernel)
        self._vectors = [np.flatnonzero(lengths & (number == n)) for n in np.unique(number[lengths]) if restricted]
        self._noise_cost = NOISE_COST if restricted and self._learn_noise else 0.0
        self._amplitude = is_amplitude(kernel).astype(float)
        self._entries = entries(kernel, rows.variables)
        self._most_steps = afforded_steps(*rows.X.shape)
        self.bounds = np.asarray(kernel.bounds).reshape(-1, 2)
        self.start = kernel.theta
        if self._learn_noise:
            ratios = np.log([least_ratio, NOISE_RATIOS[1] if noise_variance > 0.0 else least_ratio])
            ratio = np.log(noise_variance or least_ratio) - self._amplitude @ self.start
            self.bounds = np.vstack([self.bounds, ratios])
            self.start = np.append(self.start, np.clip(ratio, *ratios))

    def _theta(self, x: Array) -> Array:
        """Hyperparameters that ``x`` stands for, with a length scale for each input."""
        n = self._amplitude.size
        return np.concatenate([x[self._entries], x[n:] + self._amplitude @ x[:n]])

    def _objective(self, x: Array) -> tuple[float, Array]:
        """Sum over the blocks of minus the log likelihood, and its gradient in the entries of ``_theta``."""
        theta = self._theta(x)
        if len(self._objectives) == 1:
            return self._objectives[0](theta)
        found = map_threads(lambda objective: objective(theta), self._objectives, self._n_jobs)
        return sum(value for value, _ in found), np.sum([gradient for _, gradient in found], axis=0)

    def penalised(self, x: Array) -> tuple[float, Array]:
        """Minus the log of likelihood times prior, and its gradient; infinite where the matrix is singular."""
        stopping_point()
        n, m = self._amplitude.size, self._entries.size
        try:
            value, by_theta = self._objective(x)
        except LinAlgError:
            return np.inf, np.zeros_like(x)
        # a length scale that inputs share has the sum of their derivatives
        gradient: Array = np.append(np.bincount(self._entries, by_theta[:m], n), by_theta[m:]).astype(np.float64)
        gradient[:n] += by_theta[m:].sum() * self._amplitude
        if self._noise_cost and x[n] < np.log(LITTLE_NOISE):
            value += self._noise_cost * float(np.log(LITTLE_NOISE) - x[n])
            gradient[n] -= self._noise_cost
        for vector in self._vectors:
            deviation = x[vector] - self._kernel.theta[vector]
            deviation -= deviation.mean()
            value += 0.5 * float(deviation @ deviation) / SHRINKAGE**2
            gradient[vector] += deviation / SHRINKAGE**2
        return value, gradient

    def value(self, x: Array) -> float:
        """Minus the log likelihood; infinite where the matrix is singular, which the posterior will say more about."""
        try:
            return self._objective(x)[0]
        except LinAlgError:
            return np.inf

    def climb(self, start: Array, most_steps: int | None = None) -> OptimizeResult:
        """Search from one start."""
        options = {"ftol": self._tolerance, "maxiter": min(most_steps or MOST_STEPS, self._most_steps)}
        return minimize(self.penalised, start, jac=True, method="L-BFGS-B", bounds=self.bounds, options=options)

    def accepted(self, results: list[OptimizeResult]) -> OptimizeResult:
        """Choose the best of some results by likelihood whose leave-one-out errors are not clearly larger than others'.

        Errors are clearly larger if their mean square exceeds that of others by the factor :data:`CLEARLY_MORE`, and by
        :data:`STANDARD_ERRORS` of the difference: as of white noise in place of a function that can be learnt.
        """
        ordered = sorted(results, key=lambda result: result.fun)
        if len(ordered) == 1 or not np.isfinite(ordered[0].fun) or not self._restricted:
            return ordered[0]
        squares = [self._left_out(result.x) ** 2 for result in ordered]
        least = min(squares, key=np.mean)
        for result, square in zip(ordered, squares, strict=True):
            with np.errstate(invalid="ignore"):
                excess = square - least
            error = STANDARD_ERRORS * excess.std() / np.sqrt(excess.size)
            is_worse = square.mean() > CLEARLY_MORE * least.mean() and excess.mean() > error
            if np.isfinite(square).all() and not is_worse:
                return result
        return ordered[0]

    def _left_out(self, x: Array) -> Array:
        """Leave-one-out errors of the rows; infinite where the matrix is singular."""
        kernel, noise = self._objectives[0].split(self._theta(x))
        found = []
        for block in self._blocks:
            inputs: Any = block
            try:
                posterior = Posterior(kernel, noise, inputs, block.y, checked=False)
            except LinAlgError:
                found.append(np.full(block.y.size, np.inf))
                continue
            diagonal = posterior.diagonal
            found.append(posterior.residuals / np.where(diagonal > 0.0, diagonal, 1.0))
        return np.concatenate(found)

    def optimum(self, result: OptimizeResult, limited: bool) -> Optimum:
        """Where a search, of ``limited`` steps or not, has ended."""
        noise_variance = self._objectives[0].split(self._theta(result.x))[1]
        limited = limited or self._most_steps < MOST_STEPS
        remarks = _remarks(self._kernel, result, self.bounds, self._learn_noise, limited)
        kernel = self._kernel.clone_with_theta(result.x[: self._amplitude.size])
        return Optimum(kernel, noise_variance, -self.value(result.x), remarks)


def afforded_steps(n_rows: int, n_inputs: int) -> int:
    """Most steps of a search.

    >>> afforded_steps(1000, 50), afforded_steps(100, 200), afforded_steps(1000, 300)
    (15000, 1444, 50)
    """
    if n_inputs <= MANY_INPUTS:
        return MOST_STEPS
    return int(np.clip(AFFORDED / (n_rows**2 * (n_rows + 4.0 * n_inputs)), LEAST_STEPS, MOST_STEPS))


def _remarks(kernel: Kernel, result: OptimizeResult, bounds: Array, learn_noise: bool, limited: bool) -> list[str]:
    """Warnings about how the search ended; to run out of steps is one unless their number was ``limited``.

    There is none for a length scale on its upper bound, as of an input that does not matter, for an amplitude on its
    upper bound, as of a very smooth function, or for noise on its lower bound.
    """
    remarks = []
    # a line search that rounding ends after some steps is no failure
    if not result.success and (result.nit == 0 or (result.status == OUT_OF_STEPS and not limited)):
        remarks.append(
            f"The likelihood was not maximised to tolerance ({result.message}); more n_restarts or "
            "inputs of comparable scale may help."
        )
    names = _names(kernel) + ["noise_variance"] * learn_noise
    for name, value, (low, high) in zip(names, result.x, bounds, strict=True):
        at_low, at_high = abs(value - low) < 1e-6, abs(value - high) < 1e-6
        if at_low and low < high and name != "noise_variance":
            remarks.append(f"{name} ended on its lower bound; a wider bound may fit better.")
        if at_high and low < high and not name.partition("[")[0].endswith(HARMLESS_ABOVE):
            remarks.append(f"{name} ended on its upper bound; a wider bound may fit better.")
    return remarks


def _names(kernel: Kernel) -> list[str]:
    """Name of each entry of ``kernel.theta``, elements of a vector with their number."""
    names, number = hyperparameter_names(kernel)
    place = np.arange(number.size) - np.searchsorted(number, number)
    return [f"{name}[{i}]" if names.count(name) > 1 else name for name, i in zip(names, place, strict=True)]
