"""Draws of hyperparameters from their posterior given training rows, by Hamiltonian Monte Carlo.

The likelihood is equation (2) of docs/theory_averaging.md. The chains (Neal, "MCMC using Hamiltonian dynamics", 2011)
run in parallel, so that one matrix product serves all of them. They start at the mode, with the inverse curvature there
as metric, which is then estimated from their own draws. Without noise the mode may lie in a narrow neck, where that
metric is far too small: chains that hardly move burn in again. Bounds of hyperparameters reflect.
"""

from __future__ import annotations

import ctypes
import warnings
from collections.abc import Callable

import numpy as np
from scipy.linalg import blas, cython_lapack, lapack
from scipy.optimize import minimize

from conformal_gp.arrays import Array
from conformal_gp.gp.mixture import EXPLAINED, TrainingRows
from conformal_gp.targets.transformation import power, power_slope
from conformal_gp.threads import map_threads, stopping_point

# Starts of the search for the mode: shifts of the log length scales, noise ratios, exponents.
STARTS = ((0.5, 1e-3, 1.0), (1.5, 1e-4, 0.3), (1.0, 0.3, 0.5))
SEARCH_STEPS = 50
# Curvatures at the mode below this are raised to it: directions of which the rows say little.
LEAST_CURVATURE = 0.15
DIFFERENCE = 1e-2
# Steps of each chain before the first draw is kept. After each of these parts of the burn-in the metric is estimated
# again; the last metric counts as this many draws.
BURN_IN = (12, 8, 8)
METRIC_WEIGHT = 10.0
# Length of a trajectory in standard deviations of the posterior, and the acceptance rate that the step is adapted to.
TRAJECTORY = 1.6
ACCEPTANCE = 0.75
MOST_LEAPS = 8
# Chains burn in again, so many times in all, while their metric is so wrong that they hardly move: trajectories of
# less than this share of their length, or an acceptance rate below this.
MOST_BURN_INS = 4
LEAST_TRAJECTORY = 0.5
LEAST_ACCEPTANCE = 0.3
IMMOBILE = (
    f"the Markov chain of hyperparameters hardly moves after {MOST_BURN_INS} burn-ins: widths may change with "
    "random_state, and the Monte Carlo error of coverage may be larger than measured; tuning='holdout' has no chain."
)
# Hyperparameter vectors are taken in blocks of so many pairs of rows, which stay in the cache.
BLOCK_PAIRS = 40_000
# With fewer rows a second thread costs more than it gains.
ROWS_FOR_THREADS = 80


# SciPy's wrappers of some LAPACK routines hold the interpreter's lock: threads over matrices would wait for each other.
# Routines that SciPy exports for Cython are called by their addresses, as Numba does: the lock is released meanwhile.
def _routine(name: str) -> Callable[..., None]:
    """A routine of LAPACK with the addresses of uplo, n, A, lda and info as arguments."""
    capsule = cython_lapack.__pyx_capi__[name]
    signature = ctypes.pythonapi.PyCapsule_GetName
    signature.restype = ctypes.c_char_p
    signature.argtypes = [ctypes.py_object]
    address = ctypes.pythonapi.PyCapsule_GetPointer
    address.restype = ctypes.c_void_p
    address.argtypes = [ctypes.py_object, ctypes.c_char_p]
    prototype = ctypes.CFUNCTYPE(None, *[ctypes.c_void_p] * 5)
    return prototype(address(capsule, signature(capsule)))


FACTORISE = _routine("dpotrf")
INVERT = _routine("dpotri")


def in_place(routine: Callable[..., None], A: Array) -> bool:
    """Replace the lower triangle of A = L L' by that of L (FACTORISE), or of L by that of its inverse (INVERT).

    False if A is not positive definite. A is kept row by row.

    >>> A = np.array([[4.0, 0.0], [2.0, 5.0]])
    >>> in_place(FACTORISE, A), A.tolist(), in_place(INVERT, A), A.tolist()
    (True, [[2.0, 0.0], [1.0, 2.0]], True, [[0.3125, 0.0], [-0.125, 0.25]])
    """
    upper = ctypes.c_char(b"U")  # the lower triangle of a matrix kept row by row is the upper one to LAPACK
    n = ctypes.c_int(len(A))
    info = ctypes.c_int(0)
    size = ctypes.addressof(n)
    routine(ctypes.addressof(upper), size, A.ctypes.data, size, ctypes.addressof(info))
    return info.value == 0


class LogPosterior:
    """Logarithm of likelihood times prior, up to a constant, for several hyperparameter vectors at once."""

    def __init__(self, rows: TrainingRows, n_jobs: int | None = 1):
        self.prior = rows.prior
        self.rows = rows
        n, p = rows.H.shape
        self._degrees = n - p
        self._n_jobs = n_jobs if n >= ROWS_FOR_THREADS else 1
        self._block = max(1, 2 * BLOCK_PAIRS // (n * (n - 1)))

    def __call__(self, theta: Array) -> tuple[Array, Array]:
        """Values, (C,), and gradients, (C, p); minus infinity where a matrix is singular."""
        stopping_point()
        blocks = np.array_split(theta, -(-len(theta) // self._block))
        if len(blocks) == 1:
            return self._evaluate(theta)
        parts = map_threads(self._evaluate, blocks, self._n_jobs)
        return np.concatenate([value for value, _ in parts]), np.concatenate([gradient for _, gradient in parts])

    def _evaluate(self, theta: Array) -> tuple[Array, Array]:
        likelihood, gradient = self._likelihood(theta)
        density, density_gradient = self.prior.log_density(theta)
        value = likelihood + density
        gradient = np.where(np.isfinite(value)[:, None], gradient + density_gradient, 0.0)
        return value, gradient

    def _likelihood(self, theta: Array) -> tuple[Array, Array]:
        r"""Equation (2) of docs/theory_averaging.md, and its gradient.

        The gradient is :math:`\sum_{ij} W_{ij}\, \partial A_{ij}` with
        :math:`W = \tfrac12 (\tfrac{\nu}{Q} \alpha \alpha' - P)`.
        """
        H, y = self.rows.H, self.rows.y
        n, p = H.shape
        parts = self.prior.parts(theta)
        exponent = parts.exponent
        A, pullback = self.rows.covariances(parts)
        z = np.broadcast_to(y, (len(theta), n))
        if exponent is not None:
            z = power(y, exponent[:, None])
        if p:
            z = z - z.mean(axis=1, keepdims=True)
        value = np.full(len(theta), -np.inf)
        solved = np.zeros((len(theta), n, p + 1))
        for each in range(len(theta)):
            if not in_place(FACTORISE, A[each]):
                continue
            # -log |A| / 2
            value[each] = -np.log(np.diagonal(A[each])).sum()
            solved[each] = lapack.dpotrs(A[each].T, np.column_stack([H, z[each]]), lower=0)[0]
            in_place(INVERT, A[each])
        fine = np.isfinite(value)

        # V V' = C H (H'CH)^-1 H'C
        CH, alpha = solved[:, :, :p], solved[:, :, p]
        V = np.zeros((len(theta), n, 1 + p))
        if p and fine.any():
            R = np.linalg.cholesky(H.T @ CH[fine])
            V[fine, :, 1:] = np.linalg.solve(R, CH[fine].transpose(0, 2, 1)).transpose(0, 2, 1)
            # -log |H'CH| / 2
            value[fine] -= np.log(np.diagonal(R, axis1=1, axis2=2)).sum(axis=1)
            alpha = alpha - (V[:, :, 1:] @ (V[:, :, 1:].transpose(0, 2, 1) @ z[:, :, None]))[:, :, 0]
        Q = np.einsum("ci,ci->c", z, alpha)  # z'Pz
        fine &= EXPLAINED * np.einsum("ci,ci->c", z, z) < Q
        value[~fine] = -np.inf
        Q = np.where(fine, Q, 1.0)
        # -(nu / 2) log Q; with known noise the amplitude is a hyperparameter, and it is -Q / 2
        if self.rows.known is None:
            value -= 0.5 * self._degrees * np.log(Q)
            weight = self._degrees / Q
        else:
            value -= 0.5 * Q
            weight = np.ones(len(theta))
        by_exponent = np.zeros(len(theta))
        if exponent is not None:
            share = 1.0 - p / n  # see Mixture.slopes
            # the sum of log T'(y) = (lambda - 1) log y
            value += (share * exponent - 1.0) * y.sum()
            slope = power_slope(y, exponent[:, None])
            by_exponent = share * y.sum() - weight * np.einsum("ci,ci->c", alpha, slope)

        # W = (V V' - C) / 2, with the square root of ν / Q times α in the first column of V
        V[:, :, 0] = np.sqrt(weight)[:, None] * alpha
        for each in np.flatnonzero(fine).tolist():
            blas.dsyrk(0.5, V[each].T, beta=-0.5, c=A[each].T, trans=1, lower=0, overwrite_c=1)
        return value, self.prior.gradient(exponent=by_exponent, **pullback(A))


def find_mode(target: LogPosterior, n_jobs: int | None) -> Array:
    """Hyperparameters of the highest posterior density, by searches from several starts."""
    bounds = target.prior.bounds
    family = target.prior.family
    centre = 0.5 * np.log(family.X.shape[1])
    starts = [
        target.prior.start(family.start + (centre + step) * family.is_length, noise, exponent)
        for step, noise, exponent in STARTS
    ]

    def objective(theta: Array) -> tuple[float, Array]:
        value, gradient = target(theta[None])
        if not np.isfinite(value[0]):
            return np.inf, np.zeros(theta.size)
        return -value[0], -gradient[0]

    def search(start: Array) -> tuple[float, Array]:
        options = {"maxiter": SEARCH_STEPS}
        found = minimize(objective, start, jac=True, method="L-BFGS-B", bounds=bounds, options=options)
        return found.fun, found.x

    results = map_threads(search, starts, n_jobs if target.rows.y.size >= ROWS_FOR_THREADS else 1)
    return min(results, key=lambda found: found[0])[1]


def laplace_covariance(target: LogPosterior, mode: Array) -> Array:
    """Inverse of the posterior's curvature at its mode, bounded."""
    p = mode.size
    steps = DIFFERENCE * np.eye(p)
    ends = np.clip(np.concatenate([mode + steps, mode - steps]), *target.prior.bounds.T)
    gradients = target(ends)[1]
    length = np.diagonal(ends[:p] - ends[p:])
    # second derivatives by central differences of the gradient
    curvature = -(gradients[:p] - gradients[p:]) / length[:, None]
    values, vectors = np.linalg.eigh(0.5 * (curvature + curvature.T))
    return (vectors / np.maximum(values, LEAST_CURVATURE)) @ vectors.T


def sample_posterior(
    target: LogPosterior, n_draws: int, n_chains: int, thinning: int, seed: int, n_jobs: int | None
) -> Array:
    """Draws from the posterior, (n_draws, p), of several chains; they do not depend on ``n_jobs``.

    Of the draws of each chain after the burn-in, every ``thinning``-th is kept.
    """
    mode = find_mode(target, n_jobs)
    if mode.size == 0 or not np.isfinite(target(mode[None])[0][0]):  # nothing to draw; targets that the mean explains
        return np.tile(mode, (n_draws, 1))
    starts = np.tile(mode, (n_chains, 1))
    chains = _Chains(target, starts, laplace_covariance(target, mode), np.random.default_rng(seed))
    for _ in range(MOST_BURN_INS):
        chains.burn_in()
        if chains.is_mobile:
            break
    if not chains.is_mobile:
        warnings.warn(IMMOBILE, stacklevel=2)
    kept = []
    for number in range(1, thinning * -(-n_draws // n_chains) + 1):
        theta = chains.step(adapt=number <= 4)
        if number % thinning == 0:
            kept.append(theta)
    return np.concatenate(kept)[:n_draws]


class _Chains:
    """Positions of parallel chains, their metric and step size."""

    def __init__(self, target: LogPosterior, starts: Array, covariance: Array, rng: np.random.Generator):
        self._target = target
        self._rng = rng
        self._low, high = target.prior.bounds.T
        self._width = high - self._low
        self._covariance = covariance
        self._root = np.linalg.cholesky(covariance)
        self._step = 0.7 / starts.shape[1] ** 0.25
        self._acceptance = ACCEPTANCE  # a moving average over steps
        self._position = starts
        self._value, self._gradient = self._density(self._position)

    def _folded(self, position: Array) -> tuple[Array, Array]:
        """Hyperparameters of positions beyond bounds, which reflect, and the sign of the derivative."""
        beyond = np.mod(position - self._low, 2.0 * self._width)
        falling = beyond > self._width
        return self._low + np.where(falling, 2.0 * self._width - beyond, beyond), np.where(falling, -1.0, 1.0)

    def _density(self, position: Array) -> tuple[Array, Array]:
        theta, sign = self._folded(position)
        value, gradient = self._target(theta)
        return value, gradient * sign

    def burn_in(self) -> None:
        """Move towards the bulk of the posterior; step size and metric follow it."""
        for steps in BURN_IN:
            positions = [self.step(adapt=True) for _ in range(steps)]
            self._adapt_metric(np.concatenate(positions[steps // 3 :]))

    @property
    def is_mobile(self) -> bool:
        """Whether trajectories are about as long as they should be, and accepted."""
        reach = MOST_LEAPS * self._step
        return reach >= LEAST_TRAJECTORY * TRAJECTORY and self._acceptance >= LEAST_ACCEPTANCE

    def _adapt_metric(self, draws: Array) -> None:
        """Estimate the metric from draws of all chains; the last one counts as some draws."""
        weight = METRIC_WEIGHT / (METRIC_WEIGHT + len(draws))
        self._covariance = weight * self._covariance + (1.0 - weight) * np.cov(draws.T).reshape(self._root.shape)
        self._root = np.linalg.cholesky(self._covariance)

    def step(self, adapt: bool) -> Array:
        """Move each chain along a trajectory and accept or reject; hyperparameters of the chains, (C, p)."""
        rng = self._rng
        momentum = rng.standard_normal(self._position.shape)
        size = self._step * rng.uniform(0.8, 1.2)
        leaps = int(np.clip(round(TRAJECTORY * rng.uniform(0.6, 1.4) / size), 1, MOST_LEAPS))
        position, value, gradient, velocity = self._position, self._value, self._gradient, momentum
        # leapfrog: half a step of the velocity, one of the position, half a step of the velocity
        for _ in range(leaps):
            velocity = velocity + 0.5 * size * (gradient @ self._root)
            position = position + size * (velocity @ self._root.T)
            value, gradient = self._density(position)
            velocity = velocity + 0.5 * size * (gradient @ self._root)
        # Metropolis: accept with the ratio of exp(log density - kinetic energy)
        with np.errstate(invalid="ignore"):
            change = value - self._value - 0.5 * ((velocity**2).sum(axis=1) - (momentum**2).sum(axis=1))
        chance = np.exp(np.minimum(np.where(np.isnan(change), -np.inf, change), 0.0))
        accepted = rng.uniform(size=chance.size) < chance
        self._position = np.where(accepted[:, None], position, self._position)
        self._value = np.where(accepted, value, self._value)
        self._gradient = np.where(accepted[:, None], gradient, self._gradient)
        self._acceptance += 0.2 * (chance.mean() - self._acceptance)
        if adapt:
            self._step *= np.exp(0.4 * (chance.mean() - ACCEPTANCE))
        return self._folded(self._position)[0]
