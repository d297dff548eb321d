"""Test rows far from the training rows: what they cost beside ordinary ones."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from sklearn.gaussian_process.kernels import RBF

from benchmarks.problems import Array, Rows
from benchmarks.results import Row, Section
from benchmarks.timing import Timing, duration, in_turns
from conformal_gp import ConformalGPRegressor

N_INPUTS = 20
N_TEST = 100
SPREADS = (30.0, 1000.0)
CANDIDATES = [(RBF(length), noise) for length in (3.0, 6.0, 12.0) for noise in (0.01, 0.1)]
MODELS = {"six candidates": {"candidates": CANDIDATES}, "descent, one length scale": {"length_scales": "one"}}
# A scaling of its own for each such row once made them 400 times as expensive.
AT_MOST_ORDINARY = 10.0


def draw(n_rows: int, seed: int) -> Rows:
    """Rows of a function of two of twenty normal inputs, with noise of standard deviation 0.1."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n_rows, N_INPUTS))
    return Rows(X, np.sin(X[:, 0]) + X[:, 1] + 0.1 * rng.standard_normal(n_rows))


def a_row(timing: Timing, n_rows: int) -> Timing:
    """Time for each of some rows."""
    return Timing(tuple(seconds / n_rows for seconds in timing.seconds))


def run(quick: bool) -> Section:
    l, n_test = (300, 20) if quick else (1000, N_TEST)
    section = Section(
        "Test rows far from the training rows",
        f"Intervals for {n_test} test rows, tuned inside the bag, with l = {l} training rows of {N_INPUTS} normal "
        "inputs: time a row where the test inputs are spread more widely than the training inputs, against time a row "
        "where they are spread alike. Inputs are scaled by training rows and test row together.",
    )
    X_test = draw(n_test, 1).X
    for name, options in MODELS.items():
        model = ConformalGPRegressor(**options).fit(*draw(l, 0))
        functions: dict[str, Callable[[], Array]] = {
            f"{spread:g}": lambda model=model, spread=spread: model.predict_interval(spread * X_test, 0.9)
            for spread in (1.0, *SPREADS)
        }
        times = in_turns(functions, turns=3, seconds_a_turn=0.0)
        ordinary = a_row(times["1"], n_test)
        for spread in SPREADS:
            far = a_row(times[f"{spread:g}"], n_test)
            ratio = far.median / ordinary.median
            section.add(
                Row(
                    f"{name}, {spread:g} times as wide",
                    str(far),
                    f"spread alike: {duration(ordinary.median)}",
                    f"far/ordinary {ratio:.2f}",
                    f"at most {AT_MOST_ORDINARY:g}",
                    ratio <= AT_MOST_ORDINARY,
                )
            )
    return section
