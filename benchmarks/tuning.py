"""What exactness costs in time: tuning inside the bag beside maximum likelihood on the training rows."""

from __future__ import annotations

import warnings
from collections.abc import Callable

import numpy as np
from studies.functions import draw
from threadpoolctl import threadpool_limits

from benchmarks.results import Row, Section, cost
from benchmarks.timing import in_turns
from conformal_gp import ConformalGPRegressor

# Test function, training rows, noise over the labels' standard deviation, test rows.
CASES = [
    ("Branin", 60, 0.0, 100),
    ("Friedman", 60, 0.2, 100),
    ("Friedman", 60, 0.0, 100),
    ("borehole", 60, 0.0, 100),
    ("Hartmann 6", 150, 0.0, 100),
    ("Friedman", 150, 0.2, 100),
    ("borehole", 150, 0.0, 100),
    ("borehole", 400, 0.0, 100),
    ("Friedman", 1000, 0.2, 1000),
    ("borehole", 1000, 0.0, 1000),
]
SEED = 9000
AT_MOST = 4.0
AT_MOST_BELOW_100_ROWS = 8.0
AT_MOST_SECONDS = 5.0


def run(quick: bool) -> Section:
    section = Section(
        "Exact tuning",
        "`fit` and `predict_interval` at the default settings (hyperparameters chosen inside the bag) beside "
        '`tuning="train"` (maximum likelihood on the training rows, three restarts), Matérn 5/2 with a length scale '
        "for each input, one BLAS thread, on test functions of computer experiments. The last case is a table with "
        "more inputs than are tuned inside the bag by default.",
    )
    with threadpool_limits(1), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for name, n_rows, noise, n_test in CASES[:2] if quick else CASES:
            X, y = draw(name, n_rows, noise, SEED)
            X_new, _ = draw(name, n_test, noise, SEED + 1)
            what = f"{name}, {X.shape[1]} inputs, {n_rows} rows, noise {noise:g}, {n_test} test rows"
            _compare(section, what, X, y, X_new, turns=1 if quick else 3)
        rng = np.random.default_rng(SEED)
        X = rng.standard_normal((297, 19))
        y = X[:, 0] + np.sin(2.0 * X[:, 1]) + 0.3 * rng.standard_normal(297)
        _compare(section, "Sine and line, 19 inputs, 197 rows, 100 test rows", X[:197], y[:197], X[197:], turns=1)
    return section


def _compare(section: Section, what: str, X: np.ndarray, y: np.ndarray, X_new: np.ndarray, turns: int) -> None:
    functions = {tuning: _call(tuning, X, y, X_new) for tuning in ("auto", "train")}
    times = in_turns(functions, turns=turns, cold=["auto"])
    at_most = AT_MOST_BELOW_100_ROWS if y.size < 100 else AT_MOST
    section.add(cost(what, times["auto"], 'tuning="train"', times["train"], at_most))
    if X_new.shape[0] >= 1000:
        median = times["auto"].median
        target = f"at most {AT_MOST_SECONDS:g} s"
        section.add(Row(f"{what}: seconds", f"{median:.1f}", target=target, reached=median <= AT_MOST_SECONDS))


def _call(tuning: str, X: np.ndarray, y: np.ndarray, X_new: np.ndarray) -> Callable[[], object]:
    return lambda: (
        ConformalGPRegressor(tuning=tuning, n_restarts=3, random_state=0).fit(X, y).predict_interval(X_new, 0.9)
    )
