"""Maximum likelihood on some of the rows, in units of the data."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import NamedTuple

import numpy as np
from numpy.linalg import LinAlgError
from sklearn.gaussian_process.kernels import Kernel

from conformal_gp.arrays import Array, Indices
from conformal_gp.gp.covariance import covariance
from conformal_gp.gp.inputs import Inputs
from conformal_gp.gp.kernels import is_amplitude, is_length, multiplied
from conformal_gp.gp.linalg import Cholesky, one_norm
from conformal_gp.gp.maximum_likelihood import (
    MANY_INPUTS,
    NOISE_RATIOS,
    LearningRows,
    Optimum,
    for_each_input,
    has_noise,
    maximise_likelihood,
    variables,
)
from conformal_gp.gp.posterior import SMALLEST_CONDITION, noise_floor
from conformal_gp.models.settings import Settings, check_kernel, explained, label_variance

# Relative change of the likelihood at which a search stops: closer to the optimum, intervals of tuning rows' models are
# the same; the paper's are compared to five digits.
TUNING_TOLERANCE = 1e-6
PAPER_TOLERANCE = 1e-8
# Steps from hyperparameters of other labels of the same rows.
NEARBY_STEPS = 5
# How much better the condition of the matrix has to be than the worst that is trusted: it is of fewer rows.
CONDITION_MARGIN = 3.0


class Hyperparameters(NamedTuple):
    """Hyperparameters, learnt or given, in units of the labels."""

    kernel: Kernel
    noise_variance: float
    warnings: list[str]
    optimum: Optimum
    """The same in units of the labels' variance, with a length scale for each variable if inputs share them."""
    variables: Indices | None = None
    """Which of the optimum's length scales each input has; see LearningRows."""

    @property
    def n_learnt(self) -> int:
        """Number of hyperparameters of the kernel that were learnt; inputs may share a length scale."""
        return self.optimum.kernel.n_dims


@dataclass(frozen=True)
class Purpose:
    """The model that hyperparameters are learnt for."""

    n_rows: int
    """Its rows: noise must be as much as their covariance matrix needs."""
    restricted: bool = True
    """Whether the coefficients of the mean are integrated out and length scales shrunk towards each other; the paper's
    method does neither."""
    low_rank: bool = False
    """Whether the covariance matrix of all rows is never factorised."""
    least_ratio: float = 0.0
    """Least noise, relative to the amplitude."""


def learn(
    settings: Settings, inputs: Inputs, y: Array, purpose: Purpose, rng: np.random.RandomState
) -> Hyperparameters:
    """Maximum likelihood; of several kernels the one of best BIC.

    Labels are learnt from in units of their own standard deviation, and starts are at the scale of the inputs, so the
    units of neither matter, whatever starts and bounds a kernel object has for its amplitude. With many inputs,
    categories of one variable share a length scale of kernels that are given by name.
    """
    rows, variance = _learning_rows(settings, inputs, y)
    noise = 0.1 if settings.noise_variance is None else settings.noise_variance / (variance or 1.0)
    if variance == 0.0:
        start = _start(settings, settings.kernels[0], rows)
        least = 0.0 if has_noise(for_each_input(start, rows.variables), rows) else _least_ratio(purpose)
        found = Optimum(start, max(noise, least), 0.0, explained(inputs, y, settings.mean))
        return _in_units(found, 1.0, rows, inputs, purpose)
    search = _search(settings, purpose, rng)
    optima = []
    for given in settings.kernels:
        start = _start(settings, given, rows)
        if purpose.restricted and isinstance(given, str) and is_length(start).sum() > 1:
            # from the optimum with one length scale for all inputs
            alike = search(_start(replace(settings, ard=False), given, rows), noise, rows, n_restarts=1)
            theta = np.append(alike.kernel.theta, np.full(is_length(start).sum() - 1, alike.kernel.theta[-1]))
            start = start.clone_with_theta(theta)
        optima.append(search(start, noise, rows))
    best = max(optima, key=lambda found: found.log_marginal_likelihood - 0.5 * found.kernel.n_dims * np.log(y.size))
    return _in_units(best, variance, rows, inputs, purpose)


def learn_nearby(
    settings: Settings, near: Hyperparameters, inputs: Inputs, y: Array, purpose: Purpose, rng: np.random.RandomState
) -> Hyperparameters:
    """Hyperparameters after a few steps from those of the same rows, or of more, with other labels."""
    rows, variance = _learning_rows(settings, inputs, y)
    rows = rows._replace(variables=near.variables)  # some of the rows may not have all categories
    if variance == 0.0:
        return near
    search = _search(settings, purpose, rng)
    found = search(near.optimum.kernel, near.optimum.noise_variance, rows, n_restarts=0, most_steps=NEARBY_STEPS)
    return _in_units(found, variance, rows, inputs, purpose)


def _learning_rows(settings: Settings, inputs: Inputs, y: Array) -> tuple[LearningRows, float]:
    """Rows with labels in units of their standard deviation, and its square."""
    variance, X = label_variance(inputs, y), inputs.X
    many = X.shape[1] > MANY_INPUTS and settings.named and settings.ard
    unit = variance or 1.0
    y_variance = None if inputs.y_variance is None else inputs.y_variance / unit
    return LearningRows(X, y / np.sqrt(unit), inputs.H, y_variance, variables(X) if many else None), variance


def _least_ratio(purpose: Purpose) -> float:
    return max(purpose.least_ratio, noise_floor(purpose.n_rows), NOISE_RATIOS[0])


def _search(settings: Settings, purpose: Purpose, rng: np.random.RandomState) -> Callable[..., Optimum]:
    """A search from some kernel and noise."""
    return partial(
        maximise_likelihood,
        random_state=rng,
        n_jobs=settings.n_jobs,
        least_ratio=_least_ratio(purpose),
        restricted=purpose.restricted,
        shrinkage=purpose.restricted,
        tolerance=TUNING_TOLERANCE if purpose.restricted else PAPER_TOLERANCE,
        n_restarts=settings.n_restarts,
    )


def _in_units(found: Optimum, variance: float, rows: LearningRows, inputs: Inputs, purpose: Purpose) -> Hyperparameters:
    """Hyperparameters in units of the labels, noise raised as the model needs it."""
    kernel = for_each_input(found.kernel, rows.variables)
    noise = _raised(kernel, found.noise_variance, inputs, purpose) * variance
    return Hyperparameters(
        kernel if variance == 1.0 else multiplied(kernel, variance), noise, found.remarks, found, rows.variables
    )


def _start(settings: Settings, given: str | Kernel, rows: LearningRows) -> Kernel:
    """A kernel to start from, at the scale of the inputs and, in units of the labels, at amplitude 1.

    It has one length scale, or one for each input, or for each variable that inputs belong to.
    """
    # the root mean square distance between rows, over the square root of two
    spread = float(np.sqrt(rows.X.var(axis=0).sum())) or 1.0
    kernel = settings.kernel(given, rows.X.shape[1] if rows.variables is None else int(rows.variables[-1]) + 1, spread)
    check_kernel(for_each_input(kernel, rows.variables), rows.X)
    theta = kernel.theta
    lengths = is_length(kernel)
    if lengths.any():
        theta[lengths] += np.log(spread) - theta[lengths].mean()
    theta[is_amplitude(kernel)] = 0.0
    return kernel.clone_with_theta(np.clip(theta, *np.reshape(kernel.bounds, (-1, 2)).T))


def _raised(kernel: Kernel, noise: float, inputs: Inputs, purpose: Purpose) -> float:
    """Learnt noise, raised where the covariance matrix of all rows would be numerically singular.

    The size of that matrix, and of its inverse, are estimated from the rows that hyperparameters were learnt from, so
    no other row matters. In the 1-norm the inverse may exceed one over the noise by up to the root of the number of
    rows: where rows are many for the rank of the matrix without noise, as of labels that are a sum of inputs.
    """
    n_rows = purpose.n_rows
    largest = n_rows * float(kernel.diag(inputs.X).max())
    if noise == 0.0 or noise >= max(np.sqrt(n_rows) * SMALLEST_CONDITION * largest, noise_floor(largest)):
        return noise  # 0: the kernel has noise of its own
    K = np.asfortranarray(np.tril(covariance(kernel, inputs.X)[0]))
    noise = max(noise, noise_floor(one_norm(K) * n_rows / K.shape[0]))
    if purpose.low_rank:
        return noise
    K.flat[:: K.shape[0] + 1] += noise
    norm = one_norm(K)
    try:
        condition = Cholesky(K).reciprocal_condition(norm) * K.shape[0] / n_rows
    except LinAlgError:  # a kernel that is no covariance function: the posterior says more
        return noise
    return noise * max(1.0, CONDITION_MARGIN * SMALLEST_CONDITION / condition)
