"""Maximum likelihood on some of the rows, in units of the data, and the choice of gamma."""

from __future__ import annotations

from functools import partial
from typing import NamedTuple

import numpy as np
from numpy.linalg import LinAlgError
from sklearn.gaussian_process.kernels import Kernel

from conformal_gp.conformal.gamma_choice import narrowest_gamma
from conformal_gp.conformal.levels import read_level
from conformal_gp.gp.covariance import covariance
from conformal_gp.gp.factor import Factor, norm_of_lower
from conformal_gp.gp.inputs import Inputs
from conformal_gp.gp.maximum_likelihood import Optimum, maximise_likelihood
from conformal_gp.gp.noise import Trend, VaryingNoise
from conformal_gp.gp.posterior import SMALLEST_CONDITION, Posterior, noise_floor
from conformal_gp.gp.shared_lengths import MANY_INPUTS, for_each_input, variables
from conformal_gp.kernels import is_amplitude, is_length, multiplied
from conformal_gp.tuning.settings import Settings, check_kernel, explained, label_variance
from conformal_gp.types import Array, Rows

# Most rows that the trend of varying noise is predicted from: each row's noise costs as many covariances.
TREND_ROWS = 300
# How much better the condition of the matrix has to be than the worst that is trusted: it is of fewer rows.
INVERSE_MARGIN = 3.0


class Hyperparameters(NamedTuple):
    """Hyperparameters, learnt or given, in units of the labels."""

    kernel: Kernel
    noise_variance: float
    warnings: list[str]
    n_learnt: int
    """Number of hyperparameters of the kernel that were learnt; inputs may share a length scale."""
    varying: VaryingNoise | None = None
    """How noise depends on scaled inputs; None is constant noise."""


def learn(
    settings: Settings,
    inputs: Inputs,
    y: Array,
    n_rows: int,
    rng: np.random.RandomState,
    *,
    restricted: bool,
    least_ratio: float = 0.0,
    low_rank: bool = False,
) -> Hyperparameters:
    """Maximum likelihood, for a model of ``n_rows`` rows; the best of several kernels when there are several.

    Noise is at least ``least_ratio`` times the amplitude, and as much as the covariance matrix of so many rows needs;
    in a ``low_rank`` model that matrix is not factorised.

    Labels are learnt from in units of their own standard deviation, and starts are at the scale of the inputs, so the
    units of neither matter, whatever starts and bounds a kernel object has for its amplitude. With many inputs,
    categories of one variable share a length scale of kernels that are given by name.
    """
    variance = label_variance(inputs, y)
    X = inputs.pairs.X
    shared = variables(X) if X.shape[1] > MANY_INPUTS and settings.named and settings.each_length_scale else None
    starts = [_start(settings, kernel, X, shared) for kernel in settings.kernels]
    noise = 0.1 if settings.noise_variance is None else settings.noise_variance / (variance or 1.0)
    if variance == 0.0:
        found = explained(inputs, y, settings.mean)
        return Hyperparameters(for_each_input(starts[0], shared), noise, found, starts[0].n_dims)
    optima = [
        maximise_likelihood(
            start,
            noise,
            X,
            y / np.sqrt(variance),
            inputs.H,
            label_variance=1.0,
            restricted=restricted,
            n_restarts=settings.n_restarts,
            random_state=rng,
            n_jobs=settings.n_jobs,
            deviation=settings.deviation,
            least_ratio=max(least_ratio, noise_floor(n_rows)),
            known=inputs.noise.known / variance,
            shape=partial(_shape, inputs=inputs, y=y, variance=variance, shared=shared)
            if settings.varying_noise
            else None,
            variables=shared,
        )
        for start in starts
    ]
    best = max(optima, key=lambda optimum: optimum.log_marginal_likelihood)
    kernel = for_each_input(best.kernel, shared)
    raised = _resolved(kernel, best.noise_variance, inputs, n_rows)
    if not low_rank:
        raised = _inverted(kernel, raised, inputs, n_rows)
    return Hyperparameters(
        multiplied(kernel, variance), raised * variance, best.remarks, best.kernel.n_dims, best.varying
    )


def _shape(constant: Optimum, *, inputs: Inputs, y: Array, variance: float, shared: Rows | None) -> VaryingNoise:
    """How noise may vary: with the inputs, and with what the process with constant noise predicts from some rows."""
    n_rows = min(y.size, max(TREND_ROWS, 2 * inputs.H.shape[1]))
    some = np.linspace(0, y.size - 1, n_rows).round().astype(int)
    few = inputs.take(some)
    unit = for_each_input(constant.kernel, shared)
    kernel = multiplied(unit, variance)
    noise = _resolved(unit, constant.noise_variance, few, n_rows) * variance
    posterior = Posterior(kernel, noise, few, y[some], flat_prior=True)
    mean_coef = np.zeros(1 + few.pairs.X.shape[1])
    found = few.coefficients(posterior.coefficients)
    mean_coef[: found.size] = found
    return VaryingNoise.learn(inputs.pairs.X, Trend(kernel, few.pairs.X, posterior.alpha, mean_coef))


def _start(settings: Settings, given: str | Kernel, X: Array, shared: Rows | None) -> Kernel:
    """A kernel to start from, at the scale of the inputs and, in units of the labels, at amplitude 1.

    It has a length scale for each input, or for each variable that inputs ``shared`` belong to.
    """
    # the root mean square distance between rows, over the square root of two
    spread = float(np.sqrt(X.var(axis=0).sum())) or 1.0
    kernel = settings.kernel(given, X.shape[1] if shared is None else int(shared[-1]) + 1, spread)
    check_kernel(for_each_input(kernel, shared), X)
    theta = kernel.theta
    lengths = is_length(kernel)
    if lengths.any():
        theta[lengths] += np.log(spread) - theta[lengths].mean()
    theta[is_amplitude(kernel)] = 0.0
    return kernel.clone_with_theta(np.clip(theta, *np.reshape(kernel.bounds, (-1, 2)).T))


def _resolved(kernel: Kernel, noise: float, inputs: Inputs, n_rows: int) -> float:
    """Learnt noise, raised where the covariance matrix of ``n_rows`` rows would be numerically singular.

    The size of that matrix is estimated from the rows that hyperparameters were learnt from, so no other row matters.
    """
    if noise == 0.0 or noise >= noise_floor(n_rows * float(kernel.diag(inputs.pairs.X).max())):
        return noise  # 0: the kernel has noise of its own
    K = inputs.pairs.lower(covariance(kernel, inputs.pairs)[0])
    return max(noise, noise_floor(norm_of_lower(K) * n_rows / K.shape[0]))


def _inverted(kernel: Kernel, noise: float, inputs: Inputs, n_rows: int) -> float:
    """Noise, raised where the inverse is so large that the matrix would be judged to be singular all the same.

    In the 1-norm the inverse may exceed one over the noise by up to the root of the number of rows: where rows are many
    for the rank of the matrix without noise, as of labels that are a sum of inputs. By how much is seen on the rows
    that hyperparameters were learnt from.
    """
    largest = n_rows * float(kernel.diag(inputs.pairs.X).max())
    if noise == 0.0 or noise >= np.sqrt(n_rows) * SMALLEST_CONDITION * largest:
        return noise
    K = inputs.pairs.lower(covariance(kernel, inputs.pairs)[0])
    K.flat[:: K.shape[0] + 1] += noise
    norm = norm_of_lower(K)
    try:
        condition = Factor(K).reciprocal_condition(norm) * K.shape[0] / n_rows
    except LinAlgError:  # a kernel that is no covariance function: the posterior says more
        return noise
    return noise * max(1.0, INVERSE_MARGIN * SMALLEST_CONDITION / condition)


def choose_gamma(settings: Settings, learnt: Hyperparameters, inputs: Inputs, y: Array) -> float:
    """The gamma of narrowest intervals among some rows, which may not be ranked afterwards."""
    if len(settings.gammas) == 1:
        return settings.gammas[0]
    inputs = inputs.with_noise(learnt.varying)
    posterior = Posterior(learnt.kernel, learnt.noise_variance, inputs, y, flat_prior=True)
    return narrowest_gamma(posterior.residuals, posterior.diagonal, settings.gammas, read_level(0.9))
