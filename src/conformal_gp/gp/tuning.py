"""Maximum likelihood by L-BFGS-B from several starts."""

from __future__ import annotations

import warnings
from dataclasses import dataclass

import numpy as np
from numpy.linalg import LinAlgError
from numpy.typing import NDArray
from scipy.optimize import OptimizeResult, minimize
from sklearn.exceptions import ConvergenceWarning
from sklearn.gaussian_process.kernels import Kernel

from conformal_gp.gp.likelihood import NegativeLogLikelihood
from conformal_gp.threads import map_threads

Array = NDArray[np.float64]

# Noise variance that is searched, relative to the mean square of the labels about their mean function. Below the lower
# end a covariance matrix in double precision can no longer tell the noise from rounding.
NOISE_RANGE = (1e-8, 1e2)

# Relative change of the likelihood, about one nat a row, at which a search stops: some 1e-5 nats.
TOLERANCE = 1e-8

# Random starts are log-normal about the given start: a factor of 3 either way is within one standard deviation.
START_SPREAD = 1.1


@dataclass(frozen=True)
class Optimum:
    """Hyperparameters found, and what they reached."""

    kernel: Kernel
    noise_variance: float
    log_marginal_likelihood: float


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
    warn: bool = True,
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
    warn : bool, default=True
        Whether to say that a hyperparameter ended on a bound or that the optimiser did not converge.

    Returns
    -------
    optimum : Optimum
        The best of the starts.
    """
    learn_noise = noise_variance > 0.0
    objective = NegativeLogLikelihood(kernel, X, y, H, None if learn_noise else noise_variance, restricted)
    bounds = np.asarray(kernel.bounds).reshape(-1, 2)
    start = kernel.theta
    if learn_noise:
        noise_bounds = np.log(np.multiply(NOISE_RANGE, label_variance))
        bounds = np.vstack([bounds, noise_bounds])
        start = np.append(start, np.clip(np.log(noise_variance), *noise_bounds))
    if start.size == 0:
        return Optimum(kernel, noise_variance, _value(objective, start))

    drawn = start + START_SPREAD * random_state.standard_normal((n_restarts, start.size))
    starts = [start, *np.clip(drawn, bounds[:, 0], bounds[:, 1])]
    # Measured in units of the labels the likelihood is free of their scale, and so is the stopping rule.
    offset = 0.5 * y.shape[0] * np.log(label_variance)

    def climb(start: Array) -> OptimizeResult:
        return _minimise(objective, start, bounds, offset)

    # A single start leaves the threads to BLAS.
    results = [climb(start)] if len(starts) == 1 else list(map_threads(climb, starts, n_jobs))
    best = min(results, key=lambda result: result.fun)
    if not np.isfinite(best.fun):
        raise LinAlgError(
            "the covariance matrix was not positive definite at any start; give a larger noise_variance, "
            "other bounds or another kernel."
        )
    if warn:
        _warn(kernel, best, bounds, learn_noise)
    tuned, noise_variance = objective.split(best.x)
    return Optimum(tuned, noise_variance, -(best.fun + offset))


def _value(objective: NegativeLogLikelihood, theta: Array) -> float:
    """Log likelihood; -inf where the covariance matrix is singular, which the posterior will say more about."""
    try:
        return -objective(theta)[0]
    except LinAlgError:
        return -np.inf


def _minimise(objective: NegativeLogLikelihood, start: Array, bounds: Array, offset: float) -> OptimizeResult:
    def value_and_gradient(theta: Array) -> tuple[float, Array]:
        try:
            value, gradient = objective(theta)
        except LinAlgError:
            return np.inf, np.zeros_like(theta)
        return value - offset, gradient

    return minimize(value_and_gradient, start, jac=True, method="L-BFGS-B", bounds=bounds, options={"ftol": TOLERANCE})


def _warn(kernel: Kernel, result: OptimizeResult, bounds: Array, learn_noise: bool) -> None:
    if not result.success:
        warnings.warn(
            f"The likelihood was not maximised to tolerance ({result.message}); more n_restarts or "
            "inputs of comparable scale may help.",
            ConvergenceWarning,
            stacklevel=7,
        )
    names = _names(kernel) + ["noise_variance"] * learn_noise
    for name, value, (low, high) in zip(names, result.x, bounds, strict=True):
        for side, bound in (("lower", low), ("upper", high)):
            if abs(value - bound) < 1e-6:
                warnings.warn(
                    f"{name} ended on its {side} bound {np.exp(bound):.3g}; a wider bound may fit better.",
                    ConvergenceWarning,
                    stacklevel=7,
                )


def _names(kernel: Kernel) -> list[str]:
    """Name of each entry of ``kernel.theta``."""
    names = []
    for hyperparameter in kernel.hyperparameters:
        if hyperparameter.fixed:
            continue
        n = hyperparameter.n_elements
        names += [hyperparameter.name] if n == 1 else [f"{hyperparameter.name}[{i}]" for i in range(n)]
    return names
