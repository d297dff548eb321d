"""The list of candidates inside the bag: a lattice of a common factor of the length scales and of the noise.

The list may not depend on the rows that are ranked: it is in units of inputs that are scaled alike for all rows of the
bag, and the amplitude is profiled out. Where noise is known, nothing can be profiled out: amplitudes are then part of
the lattice, in units of the known noise of the bag.
"""

from __future__ import annotations

from itertools import product

import numpy as np
from sklearn.gaussian_process.kernels import Kernel

from conformal_gp.kernels import is_length, multiplied
from conformal_gp.predictors.bag import Candidate

# Length scales, in units of the root of the number of inputs, and noise variances relative to the kernel's.
LENGTHS = tuple(np.geomspace(0.2, 12.0, 8))
NOISES = (1e-9, 1e-6, 1e-4, 1e-3, 1e-2, 0.05, 0.25, 1.0)
# Where noise is known: learnt noise besides it, relative to the kernel's variance, and that relative to known noise.
FEWER_NOISES = (1e-9, 1e-2, 0.25)
AMPLITUDES = tuple(4.0 ** np.arange(-1, 12))


def lattice(kernel: Kernel, n_inputs: int, learns_noise: bool, known_noise: bool) -> list[Candidate]:
    """Candidates with one kernel; the proportions of its length scales, and of its parts, stay as they are."""
    lengths = is_length(kernel)
    factors = np.sqrt(n_inputs) * np.array(LENGTHS) if lengths.any() else np.ones(1)
    shapes = [kernel.clone_with_theta(kernel.theta + np.log(factor) * lengths) for factor in factors]
    if not known_noise:
        return [Candidate(shape, noise) for shape, noise in product(shapes, NOISES if learns_noise else NOISES[:1])]
    ratios = FEWER_NOISES if learns_noise else (0.0,)
    return [
        Candidate(multiplied(shape, size), ratio * size) for shape, size, ratio in product(shapes, AMPLITUDES, ratios)
    ]
