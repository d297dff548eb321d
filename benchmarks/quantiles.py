"""Five quantiles of a thousand test rows beside their intervals."""

from __future__ import annotations

from benchmarks.problems import LEVELS, draw, ours
from benchmarks.results import Section, cost
from benchmarks.threads import called, thread_counts, threads
from benchmarks.timing import in_turns

N_TEST = 1000
QUANTILES = (0.05, 0.25, 0.5, 0.75, 0.95)
AT_MOST_INTERVALS = 1.5


def run(quick: bool) -> Section:
    section = Section(
        "Five quantiles of 1,000 test rows",
        "`predict_quantiles` at 5, 25, 50, 75 and 95% against `predict_interval` at three levels; one fitted model.",
    )
    X_test = draw(N_TEST, seed=1).X
    for l in (500, 1000) if quick else (1000, 2000):
        model = ours(tuning="fixed").fit(*draw(l))
        functions = {
            "quantiles": lambda model=model: model.predict_quantiles(X_test, QUANTILES),
            "intervals": lambda model=model: model.predict_interval(X_test, LEVELS),
        }
        for n in thread_counts():
            with threads(n):
                times = in_turns(functions, turns=5 if quick else 9)
            section.add(
                cost(
                    f"l = {l}, {called(n)}",
                    times["quantiles"],
                    "three levels",
                    times["intervals"],
                    AT_MOST_INTERVALS if l >= 1000 else None,
                )
            )
    return section
