"""The list of candidates inside the bag: a lattice of a common factor of the length scales and of the noise."""

from __future__ import annotations

import os

import numpy as np
from sklearn.gaussian_process.kernels import Kernel

from conformal_gp.kernels import is_length
from conformal_gp.predictors.bag import Candidate

LENGTHS = np.geomspace(
    float(os.environ.get("CGP_L0", "0.15")), float(os.environ.get("CGP_L1", "15")), int(os.environ.get("CGP_NL", "11"))
)
NOISES = eval(os.environ.get("CGP_NOISES", "(1e-10, 1e-8, 1e-6, 1e-4, 1e-3, 1e-2, 0.03, 0.1, 0.3, 1.0, 3.0)"))


def lattice(kernel: Kernel, n_inputs: int, learns_noise: bool) -> list[Candidate]:
    theta = kernel.theta
    lengths = is_length(kernel)
    factors = np.sqrt(n_inputs) * LENGTHS if lengths.any() else np.ones(1)
    found = []
    for factor in factors:
        x = theta.copy()
        x[lengths] += np.log(factor)
        shape = kernel.clone_with_theta(x)
        for noise in NOISES if learns_noise else NOISES[:1]:
            found.append(Candidate(shape, float(noise)))
    return found
