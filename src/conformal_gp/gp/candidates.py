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


def around(kernel: Kernel, noise_variance: float, n_candidates: int, rng: np.random.RandomState) -> list[Candidate]:
    """Candidates scattered about one setting: it, and others within a factor of about two in each hyperparameter."""
    bounds = np.asarray(kernel.bounds).reshape(-1, 2)
    steps = 0.7 * rng.standard_normal((n_candidates - 1, kernel.n_dims + 1))
    scattered = [
        Candidate(
            kernel.clone_with_theta(np.clip(kernel.theta + step[:-1], bounds[:, 0], bounds[:, 1])),
            float(noise_variance * np.exp(step[-1])),
        )
        for step in steps
    ]
    return [Candidate(kernel, noise_variance), *scattered]
