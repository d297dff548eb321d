"""Maximum likelihood by L-BFGS-B from several starts, with weak priors on length scales and noise.

Starts are followed on some of the rows, which costs little, and all rows choose among their ends. With many inputs a
step is expensive, so their number is limited, and inputs that are the categories of one variable share a length scale.
The priors are for tuning rows, which may be few (docs/theory.md, "Tuning rows").
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.linalg import LinAlgError
from scipy.optimize import OptimizeResult, minimize
from sklearn.gaussian_process.kernels import Kernel

from conformal_gp.arrays import Array, Indices
from conformal_gp.gp.covariance import shared_variance
from conformal_gp.gp.kernels import hyperparameter_names, is_amplitude, is_length
from conformal_gp.gp.likelihood import NegativeLogLikelihood, entries, for_each_input
from conformal_gp.threads import map_threads, stopping_point

# Noise variances relative to the kernel's variance. Double precision hardly distinguishes smaller ones from 0.
NOISE_RATIOS = (1.5e-12, 1e2)
# Standard deviation of the logarithms of length scales about their mean. A fifth less or more makes little difference.
SHRINKAGE = 1.5
# Below this ratio of noise to the kernel's variance its logarithm costs so many nats for each factor of e.
LITTLE_NOISE = 1e-2
NOISE_COST = 0.5
# With more inputs than this, categories of one variable share a length scale.
MANY_INPUTS = 50
# With more rows than the first number, starts are followed on the second number of rows: a search of 1000 rows costs
# twenty times as much, and ends nearby.
ROWS_FOR_COARSE = 400
COARSE_ROWS = 300
# Steps of a search with many inputs: so many, or as many as these multiplications pay for, where one step of l rows and
# d inputs is l² (l + 4 d). Up to so many inputs, and with fewer rows, searches end by themselves.
LEAST_STEPS = 50
AFFORDED = 1.3e10
MOST_STEPS = 15000
# Random starts are log-normal about the given start, so wide for the paper's method, and for tuning rows. There so many
# starts for each that is asked for take so many steps on so many rows. So many of their ends, which differ by so many
# nats, take more steps, all rows choose among them, and the best is followed to its end.
START_SPREAD = 1.1
WIDE_SPREAD = 1.6
SCREENED = 6
SCREEN_STEPS = 10
SCREEN_ROWS = 150
FOLLOWED = 5
SAME_OPTIMUM = 0.5
CHOICE_STEPS = 15
# Leave-one-out errors are clearly larger if their mean square is by this factor, and by so many standard errors.
CLEARLY_MORE = 1.5
STANDARD_ERRORS = 2.0
# SciPy's status of a search that ran out of steps.
OUT_OF_STEPS = 1
# Hyperparameters that may end on their upper bound.
HARMLESS_ABOVE = ("length_scale", "constant_value")


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

    def take(self, rows: Indices) -> LearningRows:
        """Some of them, with a mean basis of independent columns."""
        left, singular, _ = np.linalg.svd(self.H[rows], full_matrices=False)
        H = left[:, singular > 1e-6 * singular.max(initial=0.0)]
        y_variance = None if self.y_variance is None else self.y_variance[rows]
        return LearningRows(self.X[rows], self.y[rows], H, y_variance, self.variables)


def has_noise(kernel: Kernel, rows: LearningRows) -> bool:
    """Whether a kernel has white noise of its own."""
    first = rows.X[:1]
    kernel = for_each_input(kernel, rows.variables)
    return bool(kernel.diag(first)[0] > shared_variance(kernel, first)[0])


@dataclass(frozen=True)
class Space:
    """Hyperparameters of a kernel and, if noise is learnt, the logarithm of its ratio to the amplitude."""

    kernel: Kernel
    """The start, and the bounds; with a length scale for each variable, if inputs share them."""
    noise_variance: float
    """Where the noise starts. 0 means that none is learnt: it stays at the least, or at 0 if the kernel has its own."""
    least_ratio: float
    """Least noise, relative to the amplitude: the model that is made may have more rows than are learnt from, and its
    noise must not be lost in rounding."""
    restricted: bool = True
    """Whether the coefficients of the mean are integrated out, under a flat prior, or maximised over; and whether
    length scales and noise have their priors."""
    tolerance: float = 1e-8
    """Relative change of the likelihood, which is about one nat a row, at which a search stops."""


class Search:
    """The likelihood of blocks of rows, with the prior, as a function of a point x of a space."""

    def __init__(self, space: Space, blocks: list[LearningRows], n_jobs: int | None = None):
        self.space = space
        self._n_jobs = n_jobs
        self.blocks = blocks
        rows = blocks[0]
        kernel = space.kernel
        noise_variance = space.noise_variance
        self._learn_noise = noise_variance > 0.0 or not has_noise(kernel, rows)
        full = for_each_input(kernel, rows.variables)
        self._objectives = [
            NegativeLogLikelihood(
                full,
                block.X,
                block.y,
                block.H,
                noise_variance=None if self._learn_noise else noise_variance,
                restricted=space.restricted,
                known=0.0 if block.y_variance is None else block.y_variance,
            )
            for block in blocks
        ]
        number, lengths = hyperparameter_names(kernel)[1], is_length(kernel)
        self._vectors = [np.flatnonzero(lengths & (number == n)) for n in np.unique(number[lengths])]
        self._amplitude = is_amplitude(kernel).astype(float)
        self._entries = entries(kernel, rows.variables)
        self._most_steps = afforded_steps(*rows.X.shape)
        self.bounds = np.asarray(kernel.bounds).reshape(-1, 2)
        self.start = kernel.theta
        if self._learn_noise:
            ratios = np.log([space.least_ratio, NOISE_RATIOS[1] if noise_variance > 0.0 else space.least_ratio])
            ratio = np.log(noise_variance or space.least_ratio) - self._amplitude @ self.start
            self.bounds = np.vstack([self.bounds, ratios])
            self.start = np.append(self.start, np.clip(ratio, *ratios))

    @property
    def is_coarse(self) -> bool:
        """Whether starts are followed on some of the rows only."""
        return len(self.blocks) > 1 or self.blocks[0].y.size > ROWS_FOR_COARSE

    def some(self) -> Search:
        """The same on so few rows that starts are followed on them."""
        return self.first(COARSE_ROWS) if self.is_coarse else self

    def first(self, n_rows: int) -> Search:
        """The same on the first rows, which are a random sample."""
        rows = self.blocks[0]
        if rows.y.size > n_rows:
            rows = rows.take(np.arange(n_rows))
        return Search(self.space, [rows], self._n_jobs)

    def kernel(self, x: Array) -> Kernel:
        """The kernel at a point, with a length scale for each variable."""
        return self.space.kernel.clone_with_theta(x[: self._amplitude.size])

    def split(self, x: Array) -> tuple[Kernel, float]:
        """The kernel of inputs at a point, and the noise variance."""
        return self._objectives[0].split(self._theta(x))

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
        penalty, slope = self._penalty(x)
        return value + penalty, gradient + slope

    def _penalty(self, x: Array) -> tuple[float, Array]:
        """Minus the log of the prior, and its gradient."""
        value = 0.0
        gradient = np.zeros_like(x)
        if not self.space.restricted:
            return value, gradient
        n = self._amplitude.size
        if self._learn_noise and x[n] < np.log(LITTLE_NOISE):
            value += NOISE_COST * float(np.log(LITTLE_NOISE) - x[n])
            gradient[n] -= NOISE_COST
        for vector in self._vectors:
            deviation = x[vector] - self.space.kernel.theta[vector]
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

    def left_out(self, x: Array) -> tuple[float, Array, Array]:
        """Value with the prior, and leave-one-out errors and deviations of the rows, block after block.

        All are infinite where the matrix is singular.
        """
        theta = self._theta(x)

        def of(objective: NegativeLogLikelihood) -> tuple[float, Array, Array]:
            value, alpha, precision = objective.left_out(theta)
            known = np.where(precision > 0.0, precision, 1.0)
            return value, alpha / known, known**-0.5

        try:
            values, errors, deviations = zip(*map_threads(of, self._objectives, self._n_jobs), strict=True)
        except LinAlgError:
            nothing = np.full(sum(block.y.size for block in self.blocks), np.inf)
            return np.inf, nothing, nothing
        return sum(values) + self._penalty(x)[0], np.concatenate(errors), np.concatenate(deviations)

    def climb(self, start: Array, most_steps: int | None = None) -> OptimizeResult:
        """Search from one start."""
        steps = min(most_steps or MOST_STEPS, self._most_steps)
        options = {"ftol": self.space.tolerance, "maxiter": steps}
        found = minimize(self.penalised, start, jac=True, method="L-BFGS-B", bounds=self.bounds, options=options)
        found.limited = steps < MOST_STEPS
        return found

    def from_starts(self, n_restarts: int, rng: np.random.RandomState, *, may_stay: bool = False) -> OptimizeResult:
        """Search from the given start and random ones, on some of many rows; all rows choose among the ends.

        With ``may_stay`` the start is one of these. All starts are drawn before any is followed, so the result does not
        depend on the number of threads. A LinAlgError is raised where the covariance matrix is singular at all of them.
        """
        if self.start.size == 0:
            return OptimizeResult(x=self.start, fun=self.value(self.start), success=True, nit=0, limited=False)
        some = self.some()
        screens = self.space.restricted and n_restarts > 0
        n_drawn = SCREENED * n_restarts if screens else n_restarts
        spread = WIDE_SPREAD if screens else START_SPREAD
        drawn = self.start + spread * rng.standard_normal((n_drawn, self.start.size))
        starts = [self.start, *np.clip(drawn, *self.bounds.T)]
        if screens:
            few = self.first(SCREEN_ROWS)
            ends = map_threads(lambda start: few.climb(start, SCREEN_STEPS), starts, self._n_jobs)
            different = [end.x for end in _different(ends)]
            ends = map_threads(lambda start: some.climb(start, CHOICE_STEPS), different, self._n_jobs)
            starts = [self.accepted(ends).x]
        ends = map_threads(some.climb, starts, self._n_jobs)
        if may_stay:
            ends.append(OptimizeResult(x=self.start, fun=some.value(self.start), success=True, nit=1, limited=False))
        best = self.accepted(ends)
        if not np.isfinite(best.fun):
            raise LinAlgError(
                "the covariance matrix was not positive definite at any start; give a larger noise_variance, "
                "other bounds or another kernel."
            )
        return best

    def accepted(self, ends: list[OptimizeResult]) -> OptimizeResult:
        """Choose the best of some ends by likelihood whose leave-one-out errors are not clearly larger than others'.

        Errors are clearly larger if their mean square exceeds that of others by the factor :data:`CLEARLY_MORE`, and by
        :data:`STANDARD_ERRORS` of the difference: as of white noise in place of a function that can be learnt.
        """
        if len(ends) == 1 or not self.space.restricted:
            return min(ends, key=lambda end: end.fun)
        values, errors, _ = zip(*(self.left_out(end.x) for end in ends), strict=True)
        squares = [error**2 for error in errors]
        least = min(squares, key=np.mean)
        ordered = np.argsort(values, kind="stable")
        for i in ordered:
            with np.errstate(invalid="ignore"):
                excess = squares[i] - least
            error = STANDARD_ERRORS * excess.std() / np.sqrt(excess.size)
            is_worse = squares[i].mean() > CLEARLY_MORE * least.mean() and excess.mean() > error
            if np.isfinite(values[i]) and not is_worse:
                return ends[i]
        return ends[ordered[0]]

    def remarks(self, end: OptimizeResult) -> list[str]:
        """Warnings about how a search ended; to run out of steps is one unless their number was limited.

        There is none for a length scale on its upper bound, as of an input that does not matter, for an amplitude on
        its upper bound, as of a very smooth function, or for noise on its lower bound.
        """
        remarks = []
        # a line search that rounding ends after some steps is no failure
        if not end.success and (end.nit == 0 or (end.status == OUT_OF_STEPS and not end.limited)):
            remarks.append(
                f"The likelihood was not maximised to tolerance ({end.message}); more n_restarts or "
                "inputs of comparable scale may help."
            )
        names = _names(self.space.kernel) + ["noise_variance"] * self._learn_noise
        for name, value, (low, high) in zip(names, end.x, self.bounds, strict=True):
            at_low, at_high = abs(value - low) < 1e-6, abs(value - high) < 1e-6
            if at_low and low < high and name != "noise_variance":
                remarks.append(f"{name} ended on its lower bound; a wider bound may fit better.")
            if at_high and low < high and not name.partition("[")[0].endswith(HARMLESS_ABOVE):
                remarks.append(f"{name} ended on its upper bound; a wider bound may fit better.")
        return remarks


def _different(ends: list[OptimizeResult]) -> list[OptimizeResult]:
    """The end of the given start, and the best of the others that are not at the same optimum."""
    kept = ends[:1]
    for end in sorted(ends[1:], key=lambda end: end.fun):
        if len(kept) < FOLLOWED and all(abs(end.fun - other.fun) > SAME_OPTIMUM for other in kept):
            kept.append(end)
    return kept


def afforded_steps(n_rows: int, n_inputs: int) -> int:
    """Most steps of a search.

    >>> afforded_steps(1000, 50), afforded_steps(100, 200), afforded_steps(1000, 300)
    (15000, 1444, 50)
    """
    if n_inputs <= MANY_INPUTS:
        return MOST_STEPS
    return int(np.clip(AFFORDED / (n_rows**2 * (n_rows + 4.0 * n_inputs)), LEAST_STEPS, MOST_STEPS))


def _names(kernel: Kernel) -> list[str]:
    """Name of each entry of ``kernel.theta``, elements of a vector with their number."""
    names, number = hyperparameter_names(kernel)
    place = np.arange(number.size) - np.searchsorted(number, number)
    return [f"{name}[{i}]" if names.count(name) > 1 else name for name, i in zip(names, place, strict=True)]
