"""The same intervals by gpyconform, which solves with an (l+1)-row factor for each test row."""

from __future__ import annotations

import numpy as np

from benchmarks.peers import gpyconform_intervals, installed
from benchmarks.problems import LEVELS, TUNED_KERNEL, TUNED_NOISE, Array, draw, ours
from benchmarks.results import Row, Section, speed_up
from benchmarks.timing import in_turns

AT_LEAST = 200.0
AGREEMENT = 1e-6


def run(quick: bool) -> Section:
    section = Section(
        "Full conformal prediction by gpyconform",
        "Intervals at 90, 95 and 99%, gamma = 2, same hyperparameters, double precision, all cores. gpyconform "
        "factorises the training covariance in each call; our time is given without and with that step.",
    )
    if not installed(section, "gpyconform"):
        return section
    l, m = (300, 20) if quick else (1000, 200)
    rows, X_test = draw(l), draw(m, seed=1).X
    model = ours(tuning="fixed").fit(*rows)

    def predict() -> Array:
        return model.predict_interval(X_test, LEVELS)

    def fit_and_predict() -> Array:
        return ours(tuning="fixed").fit(*rows).predict_interval(X_test, LEVELS)

    theirs = gpyconform_intervals(rows, TUNED_KERNEL, TUNED_NOISE, X_test, LEVELS)
    found: list[Array] = []
    functions = {"fitted": predict, "whole": fit_and_predict, "gpyconform": lambda: found.append(theirs())}
    times = in_turns(functions, turns=3, cold={"gpyconform"})
    what = f"l = {l}, {m} test rows"
    peer = times["gpyconform"]
    section.add(
        speed_up(what, times["fitted"], "gpyconform", peer, None if quick else AT_LEAST),
        speed_up(f"{what}, factorisation included", times["whole"], "gpyconform", peer),
    )
    difference = float(np.max(np.abs(predict() - found[0]) / np.abs(found[0])))
    section.add(
        Row(
            f"{what}: largest relative difference of an endpoint",
            f"{difference:.1e}",
            target=f"at most {AGREEMENT:g}",
            reached=difference <= AGREEMENT,
        )
    )
    return section
