"""Maximum likelihood by L-BFGS-B from several starts."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np
from numpy.linalg import LinAlgError
from scipy.optimize import OptimizeResult, minimize
from sklearn.gaussian_process.kernels import Kernel

from conformal_gp.gp.hyperparameters import LengthScalePrior
from conformal_gp.gp.likelihood import NegativeLogLikelihood
from conformal_gp.gp.posterior import noise_floor
from conformal_gp.kernels import hyperparameter_names, is_amplitude
from conformal_gp.threads import map_threads, stopping_point
from conformal_gp.types import Array

Objective = Callable[[Array], tuple[float, Array]]

# Noise variance that is searched, relative to the amplitude of the kernel (of the labels, if it has none). Below the
# lower end a covariance matrix in double precision can hardly tell the noise from rounding.
NOISE_RANGE = (1e-10, 1e2)

# Relative change of the likelihood, about one nat a row, at which a search stops: some 1e-5 nats.
TOLERANCE = 1e-8

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
    noise_variance: float
    log_marginal_likelihood: float
    remarks: list[str] = field(default_factory=list)
    """What to warn of."""


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
    n_rows: int = 0,
) -> Optimum:
    """Learn kernel hyperparameters and noise variance from the rows (X, y).

    Parameters
    ----------
    kernel : sklearn.gaussian_process.kernels.Kernel
        The start, and the bounds.
    noise_variance : float
        Where the noise variance starts; 0 means that there is none and none is learnt.
    X, y, H : ndarray of shape (l, d), (l,) and (l, p)
        Inputs, labels, mean basis with independent columns.
    label_variance : float
        Mean square of the labels about their mean function, to which the noise is scaled.
    restricted : bool
        Whether the coefficients of the mean are integrated out, under a flat prior, or maximised over.
    n_restarts : int
        Random starts besides the given one.
    random_state : numpy.random.RandomState
        Draws all starts before any is followed, so the result does not depend on ``n_jobs``.
    n_jobs : int or None
        Threads over starts.
    deviation : float or None, default=None
        Standard deviation of the prior on the length scales of different inputs; None is a flat prior.
    n_rows : int, default=0
        Rows of the model that is made with what is learnt, if more than these: its noise must not be lost in rounding.

    Returns
    -------
    optimum : Optimum
        The best of the starts.
    """
    learn_noise = noise_variance > 0.0
    objective = NegativeLogLikelihood(kernel, X, y, H, None if learn_noise else noise_variance, restricted)
    prior = LengthScalePrior(kernel, deviation, y.size)
    bounds = np.asarray(kernel.bounds).reshape(-1, 2)
    start = kernel.theta
    # The noise is searched relative to the amplitude: log noise = log ratio + log amplitude (or log label variance).
    amplitude = is_amplitude(kernel).astype(float)
    unit = 0.0 if amplitude.any() else np.log(label_variance)
    if learn_noise:
        ratios = np.log([max(NOISE_RANGE[0], noise_floor(max(n_rows, y.size))), NOISE_RANGE[1]])
        bounds = np.vstack([bounds, ratios])
        start = np.append(start, np.clip(np.log(noise_variance) - amplitude @ start - unit, *ratios))

    def hyperparameters(x: Array) -> Array:
        return np.append(x[:-1], x[-1] + amplitude @ x[:-1] + unit) if learn_noise else x

    def penalised(x: Array) -> tuple[float, Array]:
        value, gradient = objective(hyperparameters(x))
        by_kernel = gradient[: amplitude.size] + (gradient[-1] * amplitude if learn_noise else 0.0)
        penalty, slope = prior(x[: amplitude.size])
        return value + penalty, np.append(by_kernel + slope, gradient[amplitude.size :])

    if start.size == 0:
        return Optimum(kernel, noise_variance, _value(objective, start), [])

    drawn = start + START_SPREAD * random_state.standard_normal((n_restarts, start.size))
    starts = [start, *np.clip(drawn, bounds[:, 0], bounds[:, 1])]
    # Measured in units of the labels the likelihood is free of their scale, and so is the stopping rule.
    offset = 0.5 * y.shape[0] * np.log(label_variance)

    def climb(start: Array) -> OptimizeResult:
        return _minimise(penalised, start, bounds, offset)

    # A single start leaves the threads to BLAS.
    results = [climb(start)] if len(starts) == 1 else list(map_threads(climb, starts, n_jobs))
    best = min(results, key=lambda result: result.fun)
    if not np.isfinite(best.fun):
        raise LinAlgError(
            "the covariance matrix was not positive definite at any start; give a larger noise_variance, "
            "other bounds or another kernel."
        )
    theta = hyperparameters(best.x)
    tuned, noise_variance = objective.split(theta)
    return Optimum(tuned, noise_variance, _value(objective, theta), _remarks(kernel, best, bounds, learn_noise))


def _value(objective: NegativeLogLikelihood, theta: Array) -> float:
    """Log likelihood; -inf where the covariance matrix is singular, which the posterior will say more about."""
    try:
        return -objective(theta)[0]
    except LinAlgError:
        return -np.inf


def _minimise(objective: Objective, start: Array, bounds: Array, offset: float) -> OptimizeResult:
    def value_and_gradient(theta: Array) -> tuple[float, Array]:
        stopping_point()
        try:
            value, gradient = objective(theta)
        except LinAlgError:
            return np.inf, np.zeros_like(theta)
        return value - offset, gradient

    return minimize(value_and_gradient, start, jac=True, method="L-BFGS-B", bounds=bounds, options={"ftol": TOLERANCE})


def _remarks(kernel: Kernel, result: OptimizeResult, bounds: Array, learn_noise: bool) -> list[str]:
    """Warnings about how the search ended.

    There is none for a length scale on its upper bound, as of an input that does not matter, for an amplitude on its
    upper bound, as of a very smooth function, or for noise on its lower bound.
    """
    remarks = []
    # a line search that rounding ends after some steps is no failure
    if not result.success and (result.status == OUT_OF_STEPS or result.nit == 0):
        remarks.append(
            f"The likelihood was not maximised to tolerance ({result.message}); more n_restarts or "
            "inputs of comparable scale may help."
        )
    names = _names(kernel) + ["noise_variance"] * learn_noise
    for name, value, (low, high) in zip(names, result.x, bounds, strict=True):
        for side, bound in (("lower", low), ("upper", high)):
            harmless = (
                (name == "noise_variance") if side == "lower" else name.partition("[")[0].endswith(HARMLESS_ABOVE)
            )
            if abs(value - bound) < 1e-6 and not harmless:
                remarks.append(f"{name} ended on its {side} bound; a wider bound may fit better.")
    return remarks


def _names(kernel: Kernel) -> list[str]:
    """Name of each entry of ``kernel.theta``, elements of a vector with their number."""
    names, number = hyperparameter_names(kernel)
    place = np.arange(number.size) - np.searchsorted(number, number)
    return [f"{name}[{i}]" if names.count(name) > 1 else name for name, i in zip(names, place, strict=True)]
