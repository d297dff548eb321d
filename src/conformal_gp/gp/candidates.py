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
# Proposals of design rows: how many are scattered how far (standard deviations in the logarithm of a hyperparameter),
# and how far length scales go from equal ones to those learnt, with what common factors.
SCATTER = ((15, 0.7), (16, 1.4))
SHARES = (0.3, 0.6)
COMMON_FACTORS = (0.5, 1.0, 2.0)
# Length scales that differ less than they seem to: beyond these, relative to the inputs' scale, they do not matter.
LEAST_LENGTH, MOST_LENGTH = 0.2, 50.0
# Nats by which a proposal must be likelier than a kernel whose proportions were given, to be chosen: odds of twenty.
HANDICAP = 3.0


class Candidate(NamedTuple):
    """One setting of the hyperparameters, up to a common factor of signal and noise."""

    kernel: Kernel
    noise_variance: float
    handicap: float = 0.0
    """Nats by which it must be likelier than a candidate without one to be chosen."""


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
    """A kernel with all its length scales multiplied by common factors, within its bounds, on inputs like ``X``.

    Where design rows are too few to tell length scales apart, candidates that keep their proportions are the better
    ones; the likelihood of all rows decides.
    """
    lengths = is_length(kernel)
    factors = LENGTH_SCALES if lengths.any() else np.ones(1)
    return _with_noises([kernel.theta + lengths * np.log(factor) for factor in factors], kernel, X, 0.0)


def proposed(kernel: Kernel, X: Array, rng: np.random.RandomState) -> list[Candidate]:
    """Candidates about a kernel that few rows taught, on inputs like ``X``.

    The kernel itself, others scattered about it, and where it has several length scales, some between these and equal
    ones; each with the lattice's noise ratios (noise learnt from few rows is too uncertain to narrow them down). All
    have a handicap: what few rows seem to say of proportions is mostly chance.
    """
    steps = [spread * rng.standard_normal((count, kernel.n_dims)) for count, spread in SCATTER]
    thetas = list(kernel.theta + np.vstack([np.zeros(kernel.n_dims), *steps]))
    lengths = is_length(kernel)
    if lengths.sum() > 1:
        learnt = np.clip(kernel.theta[lengths], np.log(LEAST_LENGTH), np.log(MOST_LENGTH))
        for share in SHARES:
            for factor in COMMON_FACTORS:
                theta = kernel.theta.copy()
                theta[lengths] = np.median(learnt) + share * (learnt - np.median(learnt)) + np.log(factor)
                thetas.append(theta)
    return _with_noises(thetas, kernel, X, HANDICAP)


def is_length(kernel: Kernel) -> NDArray[np.bool_]:
    """Which of the free hyperparameters are length scales."""
    free = [h for h in kernel.hyperparameters if not h.fixed]
    return np.repeat([h.name.endswith("length_scale") for h in free], [h.n_elements for h in free]).astype(bool)


def _with_noises(thetas: list[Array], kernel: Kernel, X: Array, handicap: float) -> list[Candidate]:
    """A kernel with each of the given hyperparameters, within its bounds, and each noise ratio."""
    bounds = np.asarray(kernel.bounds).reshape(-1, 2)
    variants = [kernel.clone_with_theta(np.clip(theta, bounds[:, 0], bounds[:, 1])) for theta in thetas]
    return [
        Candidate(variant, float(noise), handicap)
        for variant in variants
        for noise in NOISE_RATIOS * variant.diag(X).mean()
    ]
