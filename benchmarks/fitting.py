"""A whole fit, from the same start to the same optimum."""

from __future__ import annotations

import warnings
from collections.abc import Callable

from sklearn.exceptions import ConvergenceWarning
from sklearn.gaussian_process.kernels import Kernel

from benchmarks.problems import KERNELS, START_NOISE, Rows, draw, ours, scikit_learn
from benchmarks.results import Row, Section, speed_up
from benchmarks.timing import in_turns

AT_LEAST = {1000: 3.0, 2000: 2.5}
AT_LEAST_RESTARTS = {1000: 4.0}
WORSE_BY = 1e-3


def run(quick: bool) -> Section:
    section = Section(
        "A whole fit",
        "`fit` of both from the same start (amplitude 1, length scales 2, noise variance 0.1) inside scikit-learn's "
        "default bounds, zero mean, all cores. The optima are compared by their negative log likelihoods (NLL). Random "
        "restarts are each library's own.",
    )
    first, second, third = KERNELS
    cases = [(first, 1000, 0), (first, 2000, 0), (second, 1000, 0), (third, 1000, 0), (first, 1000, 3)]
    if quick:
        cases = [(first, 500, 0), (third, 300, 0), (first, 300, 3)]
    for name, l, restarts in cases:
        _compare(section, name, l, restarts, turns=1 if quick else 3)
    return section


def _compare(section: Section, name: str, l: int, restarts: int, turns: int) -> None:
    fit_ours, fit_theirs, likelihoods = _fits(KERNELS[name], draw(l), restarts)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        functions = {"ours": fit_ours, "scikit-learn": fit_theirs}
        times = in_turns(functions, turns=turns, cold=functions)
    what = f"{name}, l = {l}, {restarts} restarts"
    at_least = AT_LEAST_RESTARTS if restarts else AT_LEAST
    section.add(speed_up(what, times["ours"], "scikit-learn", times["scikit-learn"], at_least.get(l)))
    mine, theirs = likelihoods["ours"], likelihoods["scikit-learn"]
    section.add(
        Row(
            f"{what}: NLL",
            f"{mine:.4f}",
            f"scikit-learn: {theirs:.4f}",
            f"{mine - theirs:+.1e}",
            f"at most +{WORSE_BY:g}",
            mine - theirs <= WORSE_BY,
        ),
    )


def _fits(kernel: Kernel, rows: Rows, restarts: int) -> tuple[Callable[[], None], Callable[[], None], dict[str, float]]:
    """Our fit, scikit-learn's fit, and where they leave the negative log likelihoods that they reach."""
    reached: dict[str, float] = {}

    def fit_ours() -> None:
        model = ours(kernel, START_NOISE, n_restarts=restarts).fit(*rows)
        reached["ours"] = -model.log_marginal_likelihood_

    def fit_theirs() -> None:
        model = scikit_learn(kernel, START_NOISE, n_restarts_optimizer=restarts).fit(*rows)
        reached["scikit-learn"] = -model.log_marginal_likelihood_value_

    return fit_ours, fit_theirs, reached
