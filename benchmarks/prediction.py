"""Intervals and quantiles for a thousand test rows."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from scipy.linalg import cho_factor, cho_solve

from benchmarks.machine import thread_counts, threads
from benchmarks.peers import gpytorch_prediction, installed
from benchmarks.problems import LEVELS, TUNED_KERNEL, TUNED_NOISE, Array, draw, ours, scikit_learn
from benchmarks.results import Section, cost
from benchmarks.timing import in_turns

N_TEST = 1000
AT_MOST_SCIKIT_LEARN = 1.3
AT_MOST_PRODUCT = 1.7
QUANTILES = (0.05, 0.25, 0.5, 0.75, 0.95)
AT_MOST_INTERVALS = 1.5


def bare_product(X: Array, X_test: Array) -> Callable[[], Array]:
    """C K*, the one matrix product that weights for all test rows need."""
    A = TUNED_KERNEL(X) + TUNED_NOISE * np.eye(X.shape[0])
    C = cho_solve(cho_factor(A), np.eye(X.shape[0]))
    K = TUNED_KERNEL(X, X_test)
    return lambda: C @ K


def run(quick: bool) -> Section:
    section = Section(
        "Intervals for 1,000 test rows at three levels",
        "`predict_interval` against scikit-learn's `predict(return_std=True)`, GPyTorch's mean and standard deviation, "
        "and the bare product C K* in NumPy; fitted models, same hyperparameters, same number of threads. Five "
        "quantiles are compared with the intervals.",
    )
    X_test = draw(N_TEST, seed=1).X
    with_gpytorch = installed(section, "gpytorch")
    differences = {}
    for l in (500, 1000) if quick else (1000, 2000):
        rows = draw(l)
        our_model = ours(tuning="fixed").fit(*rows)
        their_model = scikit_learn(optimizer=None).fit(*rows)
        functions: dict[str, Callable] = {
            "ours": lambda model=our_model: model.predict_interval(X_test, LEVELS),
            "quantiles": lambda model=our_model: model.predict_quantiles(X_test, QUANTILES),
            "bare": bare_product(rows.X, X_test),
            "scikit-learn": lambda model=their_model: model.predict(X_test, return_std=True),
        }
        if with_gpytorch:
            functions["GPyTorch"] = gpytorch_prediction(rows, TUNED_KERNEL, TUNED_NOISE, X_test)
        plain = np.concatenate(our_model.predict(X_test, return_std=True))
        for peer in functions.keys() - {"ours", "quantiles", "bare"}:
            difference = np.abs(np.concatenate(functions[peer]()) - plain).max()
            differences[peer] = max(differences.get(peer, 0.0), difference)

        wanted = l >= 1000
        for n, called in thread_counts().items():
            with threads(n):
                times = in_turns(functions, turns=5 if quick else 9)
            what = f"l = {l}, {called}"
            mine = times["ours"]
            section.add(
                cost(what, mine, "scikit-learn", times["scikit-learn"], AT_MOST_SCIKIT_LEARN if wanted else None),
                cost(what, mine, "C K*", times["bare"], AT_MOST_PRODUCT if wanted else None),
                cost(
                    f"{what}: five quantiles",
                    times["quantiles"],
                    "our intervals",
                    mine,
                    AT_MOST_INTERVALS if wanted else None,
                ),
            )
            if with_gpytorch:
                section.add(cost(what, mine, "GPyTorch", times["GPyTorch"]))
    section.remark(
        "Largest difference between our plain mean or standard deviation and a peer's: "
        + ", ".join(f"{peer} {difference:.0e}" for peer, difference in sorted(differences.items()))
        + "."
    )
    return section
