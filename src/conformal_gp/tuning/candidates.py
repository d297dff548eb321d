"""The list of candidates inside the bag: a lattice of a common factor of the length scales and of the noise."""

from __future__ import annotations

import os
from itertools import product

import numpy as np
from sklearn.gaussian_process.kernels import Kernel

from conformal_gp.kernels import is_length
from conformal_gp.predictors.bag import Candidate

# Length scales, in units of the root of the number of inputs, and noise variances relative to the kernel's.
LENGTHS = np.geomspace(0.2, 12.0, 8)
NOISES = (1e-9, 1e-6, 1e-4, 1e-3, 1e-2, 0.05, 0.25, 1.0)
P = os.environ.get("CGP_P", "")
R = float(os.environ.get("CGP_R", "4"))


def lattice(kernel: Kernel, n_inputs: int, learns_noise: bool) -> list[Candidate]:
    """Candidates with one kernel."""
    theta = kernel.theta
    lengths = is_length(kernel)
    factors = np.sqrt(n_inputs) * LENGTHS if lengths.any() else np.ones(1)
    found = []
    pats = [np.zeros(n_inputs)]
    d = n_inputs
    if "1" in P and d == 2:
        pats = [np.array([0.0, 0.0]), np.array([1.0, -1.0]) * np.log(R) / 2, np.array([-1.0, 1.0]) * np.log(R) / 2]
        if "x" in P:
            pats += [np.array([1.0, -1.0]) * np.log(R), np.array([-1.0, 1.0]) * np.log(R)]
    if "1" in P and d == 3:
        pats = [np.array(p) * np.log(R) for p in product((0.0, 1.0), repeat=3) if sum(p) < 3]
    if "2" in P and d > 3:
        pats = [np.zeros(d), *(np.eye(d) * np.log(R))]
    if "3" in P and d > 3:
        pats = [np.zeros(d), *(-np.eye(d) * np.log(R))]
    for factor in factors:
        for p in pats:
            x = theta.copy()
            x[lengths] += np.log(factor)
            if lengths.sum() == d:
                x[lengths] += p - p.mean()
            shape = kernel.clone_with_theta(x)
            for noise in NOISES if learns_noise else NOISES[:1]:
                found.append(Candidate(shape, float(noise)))
    return found
