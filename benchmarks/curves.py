"""How the cost grows with training rows l and test rows m."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence

from sklearn.exceptions import ConvergenceWarning

from benchmarks.drawing import Curve
from benchmarks.fitting import count_evaluations
from benchmarks.problems import KERNELS, LEVELS, START_NOISE, Array, Rows, draw, ours, scikit_learn
from benchmarks.results import Row, Section
from benchmarks.timing import in_turns

# scikit-learn holds two arrays of l x m: 1.6 GB at l = 1000 and 100,000 test rows.
MOST_FOR_SCIKIT_LEARN = 10_000


def run(quick: bool) -> Section:
    section = Section(
        "Cost against size",
        "Exponent of the cost over the three largest sizes. Squared exponential with one length scale, all cores; fits "
        "without restarts, intervals at three levels. Small sizes lie above the power law, where what does not grow "
        "still counts. A fit takes the likelihoods that its search needs, more or fewer from size to size; the cost of "
        "one is drawn too.",
    )
    if quick:
        curves = [fit((50, 100, 200)), intervals_by_l((125, 250, 500)), intervals_by_m((100, 1000, 4000))]
    else:
        curves = [
            fit((125, 250, 500, 1000, 2000)),
            intervals_by_l((125, 250, 500, 1000, 2000, 4000)),
            intervals_by_m((100, 300, 1000, 3000, 10_000, 30_000, 100_000)),
        ]
    for curve in curves:
        for who in curve.seconds:
            law = f"about {curve.power}" if who.startswith("ours") else "-"
            what = f"{curve.title}, exponent in {curve.axis}: {who}"
            section.add(Row(what, f"{curve.exponent(who):.2f}", target=law))
    section.curves = curves
    return section


def fit(sizes: Sequence[int]) -> Curve:
    kernel = next(iter(KERNELS.values()))
    seconds: dict[str, dict[int, float]] = {"ours": {}, "ours, one likelihood": {}, "scikit-learn": {}}
    ours(kernel, START_NOISE).fit(*draw(50))  # what is loaded or compiled at first use is not part of the curve
    for l in sizes:
        rows = draw(l)
        turns = 3 if l < 1000 else 1
        functions = {
            "ours": lambda rows=rows: ours(kernel, START_NOISE).fit(*rows),
            "scikit-learn": lambda rows=rows: scikit_learn(kernel, START_NOISE).fit(*rows),
        }
        with warnings.catch_warnings(), count_evaluations() as evaluations:
            warnings.simplefilter("ignore", ConvergenceWarning)
            times = in_turns(functions, turns=turns, cold=functions)
        for who, time in times.items():
            seconds[who][l] = time.median
        seconds["ours, one likelihood"][l] = times["ours"].median * turns / evaluations["ours"]
    return Curve("fit", "Fit", "l", seconds, power=3)


def intervals_by_l(sizes: Sequence[int]) -> Curve:
    X_test = draw(1000, seed=1).X
    points = {l: predictions(draw(l), X_test) for l in sizes}
    return Curve("predict-l", "Intervals for 1,000 test rows", "l", by_name(points), power=2)


def intervals_by_m(sizes: Sequence[int]) -> Curve:
    rows = draw(1000)
    points = {m: predictions(rows, draw(m, seed=1).X) for m in sizes}
    return Curve("predict-m", "Intervals at l = 1000", "m", by_name(points), power=1)


def predictions(rows: Rows, X_test: Array) -> dict[str, float]:
    """Seconds of either library."""
    our_model = ours(tuning="fixed").fit(*rows)
    functions: dict[str, Callable] = {"ours": lambda: our_model.predict_interval(X_test, LEVELS)}
    if len(X_test) <= MOST_FOR_SCIKIT_LEARN:
        their_model = scikit_learn(optimizer=None).fit(*rows)
        functions["scikit-learn"] = lambda: their_model.predict(X_test, return_std=True)
    return {who: time.median for who, time in in_turns(functions, turns=3).items()}


def by_name(points: dict[int, dict[str, float]]) -> dict[str, dict[int, float]]:
    """Curves by name from points by size."""
    names = dict.fromkeys(who for seconds in points.values() for who in seconds)
    return {who: {n: seconds[who] for n, seconds in points.items() if who in seconds} for who in names}
