"""One negative log likelihood with its gradient."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from scipy.linalg import lapack
from scipy.spatial.distance import cdist

from benchmarks.machine import thread_counts, threads
from benchmarks.peers import gpytorch_likelihood, installed
from benchmarks.problems import KERNELS, START_NOISE, Array, draw, scikit_learn
from benchmarks.results import Section, cost, speed_up
from benchmarks.timing import in_turns
from conformal_gp.gp.likelihood import NegativeLogLikelihood

ONE_LENGTH_SCALE = {1000: 3.0, 2000: 2.5}
EIGHT_LENGTH_SCALES = {1000: 5.0, 2000: 4.0}
BARE_TARGET = 1.6


def bare_operations(X: Array) -> Callable[[], Array]:
    """One exponential, Cholesky factor and inverse: the least that a likelihood with gradient needs."""
    exponents = -0.125 * cdist(X, X, "sqeuclidean")
    A = np.empty_like(exponents)

    def operations() -> Array:
        np.exp(exponents, out=A)
        A.flat[:: A.shape[0] + 1] += START_NOISE
        L, _ = lapack.dpotrf(A.T, lower=1, clean=0, overwrite_a=1)
        return lapack.dpotri(L, lower=1, overwrite_c=1)[0]

    return operations


def run(quick: bool) -> Section:
    section = Section(
        "One likelihood with its gradient",
        "`NegativeLogLikelihood.__call__` against LAPACK's potrf and potri with one elementwise exp of the same size "
        "(*bare*), scikit-learn's `log_marginal_likelihood(eval_gradient=True, clone_kernel=False)` and GPyTorch's "
        "exact likelihood with `backward()`, all with the same number of threads.",
    )
    sizes = (300, 1000) if quick else (500, 1000, 2000)
    with_gpytorch = installed(section, "gpytorch")
    differences = {}
    for l in sizes:
        rows = draw(l)
        for name, kernel in KERNELS.items():
            objective = NegativeLogLikelihood(kernel, rows.X, rows.y, np.empty((l, 0)))
            theta = np.append(kernel.theta, np.log(START_NOISE))
            sklearn_model = scikit_learn(kernel, START_NOISE, optimizer=None).fit(*rows)

            functions: dict[str, Callable] = {
                "ours": lambda objective=objective, theta=theta: objective(theta)[0],
                "bare": bare_operations(rows.X),
                "scikit-learn": lambda model=sklearn_model, theta=theta: (
                    -model.log_marginal_likelihood(theta, eval_gradient=True, clone_kernel=False)[0]
                ),
            }
            if with_gpytorch:
                functions["GPyTorch"] = gpytorch_likelihood(rows, kernel, START_NOISE)
            value = functions["ours"]()
            for peer in functions.keys() - {"ours", "bare"}:
                difference = abs(functions[peer]() / value - 1.0)
                differences[peer] = max(differences.get(peer, 0.0), difference)

            at_least = EIGHT_LENGTH_SCALES if kernel.k2.anisotropic else ONE_LENGTH_SCALE
            for n, called in thread_counts().items():
                with threads(n):
                    times = in_turns(functions, turns=3 if quick else 7)
                what = f"{name}, l = {l}, {called}"
                mine = times["ours"]
                section.add(
                    cost(what, mine, "bare", times["bare"], BARE_TARGET if l >= 1000 else None),
                    speed_up(what, mine, "scikit-learn", times["scikit-learn"], at_least.get(l)),
                )
                if with_gpytorch:
                    section.add(speed_up(what, mine, "GPyTorch", times["GPyTorch"]))
    section.remark(
        "Largest relative difference between our value and a peer's: "
        + ", ".join(f"{peer} {difference:.0e}" for peer, difference in sorted(differences.items()))
        + "."
    )
    return section
