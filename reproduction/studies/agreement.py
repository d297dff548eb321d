"""Whether everything that users read agrees: p-values, intervals, sets, bounds, quantiles, distributions, predictions.

``python -m reproduction.studies.agreement [--seeds N]``: models of every kind on random rows, ordinary and odd, and
many test rows for each. Each model is written as soon as it is done, so an interrupted run goes on where it stopped.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterable
from fractions import Fraction
from itertools import product
from typing import Any

import numpy as np
from sklearn.neighbors import KNeighborsRegressor

from conformal_gp import ConformalGPRegressor
from conformal_gp.threads import one_blas_thread
from reproduction.experiments.runner import run
from reproduction.studies import common

Array = np.ndarray
LEVELS = (0.5, 0.8, 0.9, 0.95)
CANDIDATES = 6
"""Values of the target that are compared with the sets of each test row."""
NEAR_END = 1e-3
"""Values nearer to an end, in widths of the interval, may be on either side of it."""
NEAR_VALUE = 1e-8
"""And so may values nearer than this share of their size: without noise, ends are known to few digits."""
ROUNDING = 1e-9

FIXED: dict[str, Any] = {"tuning": "fixed", "noise_variance": 0.05, "scale_inputs": False}
HOLDOUT: dict[str, Any] = {"tuning": "holdout", "n_restarts": 0}
MODELS: dict[str, tuple[int, int, dict[str, Any]]] = {
    "draws from the prior": (11, 12, {}),
    "chain": (40, 60, {}),
    "chain, known noise": (40, 60, {"target_transform": None}),
    "fixed": (60, 600, FIXED),
    "fixed, groups": (60, 600, FIXED),
    "fixed, likelihood ratio": (60, 600, FIXED),
    "fixed, known noise": (60, 600, FIXED),
    "fixed, linear mean": (60, 600, {**FIXED, "mean": "linear"}),
    "fixed, bounds": (60, 600, {**FIXED, "y_bounds": (-1e6, 1e6)}),
    "fixed, gamma 1": (60, 400, {**FIXED, "gamma": 1.0}),
    "fixed, gamma 3": (60, 400, {**FIXED, "gamma": 3.0}),
    "fixed, gamma inf": (60, 400, {**FIXED, "gamma": np.inf}),
    "fixed, (arcsinh, sinh)": (60, 600, {**FIXED, "target_transform": (np.arcsinh, np.sinh)}),
    "holdout": (150, 600, HOLDOUT),
    "holdout, no noise": (150, 600, {**HOLDOUT, "noise_variance": 0}),
    "holdout, difficulty": (150, 400, {**HOLDOUT, "difficulty": KNeighborsRegressor(5)}),
    "holdout, yeo-johnson": (150, 600, {**HOLDOUT, "target_transform": "yeo-johnson"}),
    "low rank": (200, 600, {"low_rank": 20, "tuning_rows": 120, "n_restarts": 0}),
    "low rank, difficulty": (200, 400, {"low_rank": 20, "tuning_rows": 120, "difficulty": KNeighborsRegressor(5)}),
}
ROWS = ("smooth", "noisy", "heavy tails", "few values", "many zeros", "offset")


def draw(kind: str, n: int, rng: np.random.Generator) -> tuple[Array, Array]:
    """Rows of a kind."""
    X = rng.uniform(-2.0, 2.0, size=(n, 2))
    y = np.sin(2.0 * X[:, 0]) + 0.5 * X[:, 1]
    if kind == "smooth":
        return X, y
    if kind == "heavy tails":
        return X, y + 0.3 * rng.standard_t(1.5, n)
    y = y + 0.3 * rng.standard_normal(n)
    if kind == "few values":
        return np.round(X), np.round(2.0 * y)
    if kind == "many zeros":
        return X, np.maximum(y, 0.0)
    if kind == "offset":
        return X + 1e3, 1e5 + y
    return X, y


class Checks:
    """Numbers of checks and of failures, by name, and the first failure of each."""

    def __init__(self) -> None:
        self.counts: dict[str, list[int]] = {}
        self.first: dict[str, str] = {}

    def add(self, name: str, right: Any, *shown: Any) -> None:
        """Count checks; ``shown`` holds arrays that explain a failure."""
        right = np.asarray(right)
        count = self.counts.setdefault(name, [0, 0])
        count[0] += right.size
        count[1] += int((~right).sum())
        if not right.all() and name not in self.first:
            place = tuple(np.argwhere(~right)[0])
            values = [repr(np.broadcast_to(np.asarray(one), right.shape)[place]) for one in shown]
            self.first[name] = f"{tuple(map(int, place))}: {', '.join(values)}"


def one_model(name: str, kind: str, seed: int) -> dict:
    """Fit a model and check everything that it says of its test rows."""
    n, n_new, options = MODELS[name]
    rng = np.random.default_rng([seed, *name.encode(), *kind.encode()])
    X, y = draw(kind, n + n_new, rng)
    of_rows: dict[str, Array] = {}
    extra: dict[str, Any] = {}
    if "known noise" in name:
        of_rows["y_variance"] = rng.uniform(0.0, 0.1, n + n_new)
    if "groups" in name:
        of_rows["groups"] = rng.integers(0, 2, n + n_new)
    if "ratio" in name:
        extra["likelihood_ratio"] = _ratio
    checks = Checks()
    with one_blas_thread(), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = ConformalGPRegressor(random_state=seed, **options)
        model.fit(X[:n], y[:n], **{key: values[:n] for key, values in of_rows.items()})
        given = {key: values[n:] for key, values in of_rows.items()} | extra
        check(model, X[n:], y[:n], given, rng, checks)
    return {"model": name, "rows": kind, "counts": checks.counts, "first": checks.first}


def _ratio(X: Array) -> Array:
    return np.exp(0.3 * (X[:, 0] - np.median(X[:, 0])))


def check(
    model: ConformalGPRegressor, X: Array, y: Array, given: dict[str, Any], rng: np.random.Generator, checks: Checks
) -> None:
    """Count the checks of a fitted model on test rows."""
    noise = {key: values for key, values in given.items() if key == "y_variance"}
    prediction = model.predict(X, **noise)
    checks.add("predictions are finite", np.isfinite(prediction), prediction)
    intervals = model.predict_interval(X, LEVELS, **given)
    low = intervals[:, 0]
    high = intervals[:, 1]
    checks.add("no answer is not a number", ~np.isnan(intervals))
    checks.add("intervals are in order", low <= high, low, high)
    checks.add("levels nest", (low[:, 1:] <= low[:, :-1]) & (high[:, 1:] >= high[:, :-1]), low[:, 1:], high[:, 1:])
    inside = (low <= prediction[:, None]) & (prediction[:, None] <= high)
    checks.add("predictions are in every interval", inside, low, prediction[:, None], high)
    if model.gamma_ == 2.0 and model.difficulty_ is None and "likelihood_ratio" not in given and "groups" not in given:
        enough = np.array([(1 - Fraction(str(level))) * (model.n_calibration_ + 1) >= 2 for level in LEVELS])
        checks.add("intervals are finite where rows suffice", np.isfinite(intervals[:, :, enough]))
    _check_sets(model, X, y, intervals, given, rng, checks)
    _check_bounds(model, X, given, checks)
    _check_distribution(model, X, y, given, checks)


def _scale(low: Array, high: Array, y: Array) -> Array:
    """Width of intervals; of those that are infinite, the spread of the targets."""
    width = high - low
    return np.where(np.isfinite(width), width, np.ptp(y) + 1.0)


def _check_sets(
    model: ConformalGPRegressor,
    X: Array,
    y: Array,
    intervals: Array,
    given: dict[str, Any],
    rng: np.random.Generator,
    checks: Checks,
) -> None:
    """Sets against intervals and p-values."""
    low = intervals[:, 0, -2]
    high = intervals[:, 1, -2]
    width = _scale(low, high, y)
    middle = np.clip(np.where(np.isfinite(low + high), (low + high) / 2.0, np.median(y)), -1e300, 1e300)
    candidates = middle[:, None] + width[:, None] * rng.uniform(-1.2, 1.2, size=(len(X), CANDIDATES))
    repeated = {
        key: values if callable(values) else np.repeat(values, CANDIDATES, axis=0) for key, values in given.items()
    }
    p = model.predict_p(np.repeat(X, CANDIDATES, axis=0), candidates.ravel(), **repeated).reshape(candidates.shape)
    checks.add("p-values are from 0 to 1", (p > 0.0) & (p <= 1.0), p)
    searched = model.tuning_ == "integrated"
    for place, level in enumerate(LEVELS):
        sets = model.predict_set(X, level, **given)
        some = np.array([len(pieces) > 0 for pieces in sets])
        ends = np.array([pieces.ravel()[[0, -1]] if len(pieces) else (0.0, 0.0) for pieces in sets])
        hull = intervals[:, :, place]
        slack = ROUNDING * (np.abs(np.where(np.isfinite(hull), hull, 0.0)).max(axis=1) + width)[:, None]
        with np.errstate(invalid="ignore"):
            same = (ends == hull) | (np.abs(ends - hull) <= slack)
        if searched:  # and contain the prediction, where that is outside the set
            contained = (hull[:, 0] <= ends[:, 0] + slack[:, 0]) & (ends[:, 1] <= hull[:, 1] + slack[:, 0])
            checks.add("intervals contain sets, which are searched", contained[some])
        else:
            checks.add("intervals are the hulls of sets", same[some], ends[some], hull[some])
        ordered = [
            bool((pieces[:, 0] <= pieces[:, 1]).all() and (pieces[1:, 0] > pieces[:-1, 1]).all()) for pieces in sets
        ]
        checks.add("pieces are sorted and disjoint", ordered)
        member = np.zeros(p.shape, dtype=bool)
        near = np.zeros(p.shape, dtype=bool)
        for row, pieces in enumerate(sets):
            value = candidates[row][:, None]
            member[row] = ((pieces[:, 0] <= value) & (value <= pieces[:, 1])).any(axis=1)
            gap = np.abs(value[:, :, None] - pieces[None])
            near[row] = (gap <= NEAR_END * width[row] + NEAR_VALUE * np.abs(value[:, :, None])).any(axis=(1, 2))
        exceeds = p > 1.0 - level + 1e-12
        name = "values whose p-value exceeds delta are in the set"
        if searched:  # on a grid: smaller pieces are not found, as the docstring says
            name += ", which is searched"
        checks.add(name, (member | ~exceeds | near), candidates, p)
        if not searched:
            checks.add("values in the set have a p-value above delta", (exceeds | ~member | near), candidates, p)


def _check_bounds(model: ConformalGPRegressor, X: Array, given: dict[str, Any], checks: Checks) -> None:
    """One-sided bounds against quantiles and intervals of equal tails."""
    upper = model.predict_bound(X, LEVELS, **given)
    lower = model.predict_bound(X, LEVELS, side="lower", **given)
    checks.add("bounds nest", (upper[:, 1:] >= upper[:, :-1]) & (lower[:, 1:] <= lower[:, :-1]))
    if model.gamma_ == 2.0 and model.difficulty_ is None:
        # at 50% both may be the median, rounded inwards
        right = (lower <= upper) | _same(lower, upper)
        checks.add("lower bounds are below upper ones", right, lower, upper)
    levels = [0.1, 0.2, 0.5, 0.8, 0.9]
    quantiles = model.predict_quantiles(X, levels, **given)
    with np.errstate(invalid="ignore"):
        falls = np.diff(quantiles, axis=1) < -ROUNDING * np.abs(quantiles[:, 1:])
    checks.add("quantiles rise", ~falls, quantiles[:, :-1], quantiles[:, 1:])
    checks.add("quantiles are bounds", _same(quantiles[:, 3:], upper[:, 1:3]), quantiles[:, 3:], upper[:, 1:3])
    equal = model.predict_interval(X, 0.8, tails="equal", **given)
    pairs = np.column_stack([quantiles[:, 0], quantiles[:, 4]])
    checks.add("intervals of equal tails are bounds", _same(equal, pairs), equal, pairs)


def _same(found: Array, expected: Array) -> Array:
    """Equal up to rounding."""
    with np.errstate(invalid="ignore"):
        return (found == expected) | (np.abs(found - expected) <= ROUNDING * (1.0 + np.abs(expected)))


def _check_distribution(model: ConformalGPRegressor, X: Array, y: Array, given: dict[str, Any], checks: Checks) -> None:
    """Distribution functions rise from 0 to 1."""
    grid = np.quantile(y, [0.05, 0.3, 0.5, 0.7, 0.95])
    found = np.column_stack([model.predict_cdf(X, np.full(len(X), value), **given) for value in grid])
    checks.add("distribution functions are from 0 to 1", (found >= 0.0) & (found <= 1.0), found)
    if model.gamma_ == 2.0:
        rises = np.diff(found, axis=1) >= -ROUNDING
        checks.add("distribution functions rise", rises, found[:, :-1], found[:, 1:])


def totals(results: Iterable[dict]) -> dict[str, list[int]]:
    """Checks and failures by name, over all models."""
    found: dict[str, list[int]] = {}
    for result in results:
        for name, (n, failures) in result["counts"].items():
            count = found.setdefault(name, [0, 0])
            count[0] += n
            count[1] += failures
    return found


def main() -> None:
    """Run the study and write its page."""
    given = common.options("agreement", __doc__, seeds=(1, "of rows of each kind")).parse_args()
    keys = list(product(range(given.seeds), MODELS, ROWS))
    tasks = [(f"{name}/{kind}/{seed}", (name, kind, seed)) for seed, name, kind in keys]
    results = run(given.raw, tasks, one_model, given.jobs)
    found = totals(results)
    n = sum(count for count, _ in found.values())
    failures = sum(count for _, count in found.values())
    lines = [
        "# Whether answers agree",
        "",
        f"Made by `python -m reproduction.studies.agreement --seeds {given.seeds}`: {len(results)} models of "
        f"{len(MODELS)} kinds on {len(ROWS)} kinds of rows, {n:,} checks of what users read, {failures:,} failures.",
        "",
        *common.markdown(
            ["check", "checks", "failures"],
            [[name, f"{count:,}", str(wrong)] for name, (count, wrong) in found.items()],
        ),
    ]
    wrong = [
        f"- {result['model']}, {result['rows']}, {name}: {result['counts'][name][1]} of {result['counts'][name][0]}"
        for result in results
        for name in result["first"]
    ]
    if wrong:
        lines += ["", "Failures:", "", *wrong]
    common.write_page(given.out / "agreement.md", lines)


if __name__ == "__main__":
    main()
