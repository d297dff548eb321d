"""Finite sets of hyperparameters to choose among, made without looking at the rows that are ranked."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.gaussian_process.kernels import Kernel

from conformal_gp.kernels import kernel_from_name

Array = NDArray[np.float64]

# Length scales relative to the square root of the number of (scaled) inputs, and noise variances relative to the
# signal's. The amplitude itself is no candidate: it is profiled out.
LENGTH_SCALES = np.geomspace(0.1, 20.0, 12)
NOISE_RATIOS = np.geomspace(1e-3, 10.0, 12)
MIXTURE_SHAPES = (0.3, 2.0)  # alpha of the rational quadratic


class Candidate(NamedTuple):
    """One setting of the hyperparameters, up to a common factor of signal and noise."""

    kernel: Kernel
    noise_variance: float


def lattice(name: str, n_features: int) -> list[Candidate]:
    """Lattice of length scales and noise ratios for a named kernel; it depends on nothing but its arguments.

    >>> len(lattice("se", n_features=5))
    144
    """
    kernels = [kernel_from_name(name, length_scale=float(ell)) for ell in LENGTH_SCALES * np.sqrt(n_features)]
    if name == "rq":
        kernels = [kernel.clone_with_theta(kernel.theta) for kernel in kernels for _ in MIXTURE_SHAPES]
        for kernel, alpha in zip(kernels, np.resize(MIXTURE_SHAPES, len(kernels)), strict=True):
            kernel.set_params(k2__alpha=float(alpha))
    return [Candidate(kernel, float(ratio)) for kernel in kernels for ratio in NOISE_RATIOS]


def stretched(kernel: Kernel, X: Array) -> list[Candidate]:
    """A kernel as given, with all its length scales multiplied by common factors, on inputs like ``X``.

    Where design rows are too few to tell length scales apart, candidates that keep their proportions are the better
    ones; the likelihood of all rows decides.
    """
    free = [h for h in kernel.hyperparameters if not h.fixed]
    is_length = np.repeat([h.name.endswith("length_scale") for h in free], [h.n_elements for h in free])
    factors = LENGTH_SCALES if is_length.any() else np.ones(1)
    return [
        Candidate(scaled, float(noise))
        for scaled in (kernel.clone_with_theta(kernel.theta + is_length * np.log(factor)) for factor in factors)
        for noise in NOISE_RATIOS * scaled.diag(X).mean()
    ]


def around(kernel: Kernel, X: Array, rng: np.random.RandomState) -> list[Candidate]:
    """Candidates scattered about one kernel, on inputs like ``X``.

    The kernel and 15 others, within a factor of about two in each hyperparameter, each with the lattice's noise ratios
    (noise learnt from few rows is too uncertain to narrow them down).
    """
    bounds = np.asarray(kernel.bounds).reshape(-1, 2)
    steps = np.vstack([np.zeros(kernel.n_dims), 0.7 * rng.standard_normal((15, kernel.n_dims))])
    thetas = np.clip(kernel.theta + steps, bounds[:, 0], bounds[:, 1])
    return [
        Candidate(scattered, float(noise))
        for scattered in map(kernel.clone_with_theta, thetas)
        for noise in NOISE_RATIOS * scattered.diag(X).mean()
    ]
