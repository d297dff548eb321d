"""Maximum likelihood by L-BFGS-B from several starts.

With many rows the starts are followed on some of them, which costs little. Where these searches end is then compared by
the likelihood of all rows, and the best goes on there. Noise that may vary is constant first; another search goes on
from there with the coefficients of :mod:`conformal_gp.gp.noise`, and counts if the rows support what it finds.

With many inputs a step is dear and many are needed. Searches then end after a number of steps that the numbers of rows
and inputs decide; with length scales that categories share (:mod:`conformal_gp.gp.shared_lengths`) most is found by
then.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import NamedTuple

import numpy as np
from numpy.linalg import LinAlgError
from scipy.optimize import OptimizeResult, minimize
from sklearn.gaussian_process.kernels import Kernel

from conformal_gp.gp.hyperparameters import NOISE_RATIOS, LengthScalePrior
from conformal_gp.gp.inducing import shared_variance
from conformal_gp.gp.likelihood import NegativeLogLikelihood
from conformal_gp.gp.noise import LARGEST_LOG_WEIGHT, VaryingNoise, is_supported, penalty
from conformal_gp.gp.posterior import noise_floor
from conformal_gp.gp.shared_lengths import MANY_INPUTS, entries, for_each_input
from conformal_gp.kernels import hyperparameter_names, is_amplitude
from conformal_gp.threads import map_threads, stopping_point
from conformal_gp.types import Array, Rows

# Relative change of the likelihood, about one nat a row, at which a search stops: some 1e-5 nats.
TOLERANCE = 1e-8

# With more rows than the first number, starts are followed on the second number of rows. A search of 1000 rows costs
# ten times as much, and ends in the same place for nearly all starts.
ROWS_FOR_COARSE = 600
COARSE_ROWS = 400

# Steps of a search with many inputs: so many, or as many as these multiplications pay for, where one step of l rows and
# d inputs is l² (l + 4 d). Up to so many inputs, and with fewer rows, searches end by themselves.
LEAST_STEPS = 50
AFFORDED = 1.3e10
MOST_STEPS = 15000

# Random starts are log-normal about the given start: a factor of 3 either way is within one standard deviation.
START_SPREAD = 1.1


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
    """What to warn of."""
    varying: VaryingNoise | None = None
    """How noise depends on scaled inputs; None is constant noise."""


def maximise_likelihood(
    kernel: Kernel,
    noise_variance: float,
    X: Array,
    y: Array,
    H: Array,
    *,
    label_variance: float,
    restricted: bool,
    n_restarts: int,
    random_state: np.random.RandomState,
    n_jobs: int | None,
    deviation: float | None = None,
    least_ratio: float = 0.0,
    known: Array | None = None,
    shape: Callable[[Optimum], VaryingNoise] | None = None,
    variables: Rows | None = None,
) -> Optimum:
    """Learn kernel hyperparameters and noise variance from the rows (X, y).

    Parameters
    ----------
    kernel : sklearn.gaussian_process.kernels.Kernel
        The start, and the bounds.
    noise_variance : float
        Where the noise variance starts. 0 means that none is learnt: it stays at the least that is searched, or at 0 if
        the kernel has white noise of its own or noise is known.
    X, y, H : ndarray of shape (l, d), (l,) and (l, p)
        Inputs, labels, mean basis with independent columns.
    label_variance : float
        Mean square of the labels about their mean function, to which the noise is scaled.
    restricted : bool
        Whether the coefficients of the mean are integrated out, under a flat prior, or maximised over.
    n_restarts : int
        Random starts besides the given one. With more than 600 rows all starts are followed on 400 of them, and the
        best goes on.
    random_state : numpy.random.RandomState
        Draws all starts, and rows to follow them on, before any is followed, so the result does not depend on
        ``n_jobs``.
    n_jobs : int or None
        Threads over starts.
    deviation : float or None, default=None
        Standard deviation of the prior on the length scales of different inputs; None is a flat prior.
    least_ratio : float, default=0.0
        Least noise that is searched, relative to the amplitude of the kernel: the model that is made with what is
        learnt may have more rows than these, and its noise must not be lost in rounding.
    known : ndarray of shape (l,) or None, default=None
        Noise variance that is known of each row; None is none.
    shape : callable or None, default=None
        How the learnt noise may vary, from what is learnt with constant noise; None is constant noise.
    variables : ndarray of int of shape (d,) or None, default=None
        Which of the kernel's length scales each input has; None is one for each input, or one for all.

    Returns
    -------
    optimum : Optimum
        The best of the starts.
    """
    rows = _Rows(X, y, H, np.zeros(y.size) if known is None else known, variables)
    least_ratio = max(NOISE_RATIOS[0], noise_floor(y.size), least_ratio)
    if noise_variance == 0.0 and not _has_noise(kernel, rows):
        # from usual starts a search at hardly any noise ends at length scales of next to nothing; so noise comes first
        with_noise = maximise_likelihood(
            kernel,
            0.1 * label_variance,
            X,
            y,
            H,
            label_variance=label_variance,
            restricted=restricted,
            n_restarts=n_restarts,
            random_state=random_state,
            n_jobs=n_jobs,
            deviation=deviation,
            least_ratio=least_ratio,
            variables=variables,
        )
        search = _Search(with_noise.kernel, 0.0, rows, label_variance, restricted, deviation, least_ratio)
        return search.optimum(search.climb(search.start))
    search = _Search(kernel, noise_variance, rows, label_variance, restricted, deviation, least_ratio)
    if search.start.size == 0:
        return Optimum(kernel, noise_variance, -search.value(search.start), [])
    drawn = search.start + START_SPREAD * random_state.standard_normal((n_restarts, search.start.size))
    starts = [search.start, *np.clip(drawn, *search.bounds.T)]
    if y.size > ROWS_FOR_COARSE and n_restarts > 0:
        some = rows.take(random_state.permutation(y.size)[:COARSE_ROWS])
        coarse = _Search(kernel, noise_variance, some, label_variance, restricted, deviation, least_ratio)
        ends = [result.x for result in map_threads(coarse.climb, starts, n_jobs)]
        starts = [min([search.start, *ends], key=search.penalised_value)]
    # A single start leaves the threads to BLAS.
    results = [search.climb(starts[0])] if len(starts) == 1 else list(map_threads(search.climb, starts, n_jobs))
    best = min(results, key=lambda result: result.fun)
    if not np.isfinite(best.fun):
        raise LinAlgError(
            "the covariance matrix was not positive definite at any start; give a larger noise_variance, "
            "other bounds or another kernel."
        )
    constant = search.optimum(best)
    if shape is None:
        return constant
    form = shape(constant)
    features = form.features(X)
    least_ratio *= np.exp(LARGEST_LOG_WEIGHT)
    varying = _Search(kernel, noise_variance, rows, label_variance, restricted, deviation, least_ratio, features)
    # Noise of all rows that a short length scale explained away would have no weights: so the first start, too.
    starts = [np.append(best.x, np.zeros(features.shape[1])), varying.start]
    found = min(map_threads(varying.climb, starts, n_jobs), key=lambda result: result.fun)
    if not is_supported(best.fun - found.fun, features.shape[1]):
        return constant
    return replace(varying.optimum(found), varying=form.with_coefficients(varying.coefficients(found.x)))


def _has_noise(kernel: Kernel, rows: _Rows) -> bool:
    """Whether a kernel has white noise of its own, or noise is known."""
    first = rows.X[:1]
    return bool(kernel.diag(first)[0] > shared_variance(kernel, first)[0] or rows.known.any())


class _Rows(NamedTuple):
    """Rows to learn from."""

    X: Array
    y: Array
    H: Array
    known: Array
    variables: Rows | None
    """Which length scale each input has."""

    def take(self, rows: Rows) -> _Rows:
        """Some of them, with a mean basis of independent columns."""
        left, singular, _ = np.linalg.svd(self.H[rows], full_matrices=False)
        H = left[:, singular > 1e-6 * singular.max(initial=0.0)]
        return _Rows(self.X[rows], self.y[rows], H, self.known[rows], self.variables)


class _Search:
    """The likelihood of some rows, with the prior, as a function of what is searched.

    The noise is searched relative to the amplitude: log noise = log ratio + log amplitude (or log label variance). What
    is searched is the hyperparameters of the kernel, that ratio if noise is learnt, and coefficients of ``features``.
    """

    def __init__(
        self,
        kernel: Kernel,
        noise_variance: float,
        rows: _Rows,
        label_variance: float,
        restricted: bool,
        deviation: float | None,
        least_ratio: float,
        features: Array | None = None,
    ):
        self._learn_noise = noise_variance > 0.0 or not _has_noise(kernel, rows)
        self._kernel = kernel
        self._objective = NegativeLogLikelihood(
            for_each_input(kernel, rows.variables),
            rows.X,
            rows.y,
            rows.H,
            noise_variance=None if self._learn_noise else noise_variance,
            restricted=restricted,
            known=rows.known,
            features=features,
        )
        self._n_coefficients = 0 if features is None else features.shape[1]
        self._prior = LengthScalePrior(kernel, deviation, rows.y.size)
        self._amplitude = is_amplitude(kernel).astype(float)
        self._unit = 0.0 if self._amplitude.any() else np.log(label_variance)
        # Measured in units of the labels the likelihood is free of their scale, and so is the stopping rule.
        self._offset = 0.5 * rows.y.size * np.log(label_variance)
        self._entries = entries(kernel, rows.variables)
        self._most_steps = most_steps(*rows.X.shape)
        self.bounds = np.asarray(kernel.bounds).reshape(-1, 2)
        self.start = kernel.theta
        if self._learn_noise:
            ratios = np.log([least_ratio, NOISE_RATIOS[1] if noise_variance > 0.0 else least_ratio])
            self.bounds = np.vstack([self.bounds, ratios])
            ratio = np.log(noise_variance or least_ratio) - self._amplitude @ self.start - self._unit
            self.start = np.append(self.start, np.clip(ratio, *ratios))
        self.bounds = np.vstack([self.bounds, np.tile([-np.inf, np.inf], (self._n_coefficients, 1))])
        self.start = np.append(self.start, np.zeros(self._n_coefficients))

    def _theta(self, x: Array) -> Array:
        """Hyperparameters that ``x`` stands for, with a length scale for each input."""
        n = self._amplitude.size
        others = x[n:].copy()
        if self._learn_noise:
            others[0] += self._amplitude @ x[:n] + self._unit
        return np.concatenate([x[self._entries], others])

    def _by_entry(self, gradient: Array) -> Array:
        """A gradient in what is searched, from that in the hyperparameters: a shared length scale has the sum."""
        n = self._entries.size
        return np.concatenate([np.bincount(self._entries, gradient[:n], self._amplitude.size), gradient[n:]])

    def penalised(self, x: Array) -> tuple[float, Array]:
        """Minus the log of likelihood times prior, and its gradient; infinite where the matrix is singular."""
        stopping_point()
        n = self._amplitude.size
        try:
            value, gradient = self._objective(self._theta(x))
        except LinAlgError:
            return np.inf, np.zeros_like(x)
        gradient = self._by_entry(gradient)
        if self._learn_noise:
            gradient[:n] += gradient[n] * self._amplitude
        of_lengths, by_lengths = self._prior(x[:n])
        of_noise, by_noise = penalty(self.coefficients(x))
        gradient[:n] += by_lengths
        gradient[x.size - by_noise.size :] += by_noise
        return value + of_lengths + of_noise - self._offset, gradient

    def coefficients(self, x: Array) -> Array:
        """Coefficients of varying noise."""
        return x[x.size - self._n_coefficients :]

    def penalised_value(self, x: Array) -> float:
        """The value alone."""
        return self.penalised(x)[0]

    def value(self, x: Array) -> float:
        """Minus the log likelihood; infinite where the matrix is singular, which the posterior will say more about."""
        try:
            return self._objective(self._theta(x))[0]
        except LinAlgError:
            return np.inf

    def climb(self, start: Array) -> OptimizeResult:
        """Search from one start."""
        return minimize(
            self.penalised,
            start,
            jac=True,
            method="L-BFGS-B",
            bounds=self.bounds,
            options={"ftol": TOLERANCE, "maxiter": self._most_steps},
        )

    def optimum(self, result: OptimizeResult) -> Optimum:
        """Where a search has ended."""
        noise_variance = self._objective.split(self._theta(result.x))[1]
        remarks = _remarks(self._kernel, result, self.bounds, self._learn_noise, self._most_steps < MOST_STEPS)
        kernel = self._kernel.clone_with_theta(result.x[: self._amplitude.size])
        return Optimum(kernel, noise_variance, -self.value(result.x), remarks)


def most_steps(n_rows: int, n_inputs: int) -> int:
    """Most steps of a search.

    >>> most_steps(1000, 50), most_steps(100, 200), most_steps(1000, 300)
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
    for name, value, (low, high) in zip(names, result.x, bounds, strict=False):  # coefficients have no bounds
        for side, bound in (("lower", low), ("upper", high)):
            harmless = (
                (name == "noise_variance") if side == "lower" else name.partition("[")[0].endswith(HARMLESS_ABOVE)
            )
            if abs(value - bound) < 1e-6 and low < high and not harmless:
                remarks.append(f"{name} ended on its {side} bound; a wider bound may fit better.")
    return remarks


def _names(kernel: Kernel) -> list[str]:
    """Name of each entry of ``kernel.theta``, elements of a vector with their number."""
    names, number = hyperparameter_names(kernel)
    place = np.arange(number.size) - np.searchsorted(number, number)
    return [f"{name}[{i}]" if names.count(name) > 1 else name for name, i in zip(names, place, strict=True)]
