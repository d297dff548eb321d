"""Coverage of the default with few rows: eight kinds of data, 15 to 200 training rows.

``python -m reproduction.studies.few_rows [--sets N]``. Every training set is written as soon as it is done, so an
interrupted run resumes. Coverage at a level is the share of p-values of true targets above delta.
"""

from __future__ import annotations

import warnings
from collections import defaultdict
from collections.abc import Callable
from pathlib import Path

import numpy as np
from threadpoolctl import threadpool_limits

from conformal_gp import ConformalGPRegressor
from conformal_gp.arrays import Array
from conformal_gp.conformal.levels import rank, read_levels
from reproduction.experiments.runner import finished, run
from reproduction.studies import common

SIZES = (15, 25, 40, 60, 100, 200)
LEVELS = (0.5, 0.8, 0.9, 0.95)
N_TEST = 25


Draw = Callable[[int, int, np.random.Generator], tuple[Array, Array]]


def _waves(X: Array, rng: np.random.Generator) -> Array:
    """A random smooth function: three waves in random directions."""
    d = X.shape[1]
    directions = rng.normal(size=(3, d)) * 3.75 / np.sqrt(d)
    phases = rng.uniform(0.0, 6.0, 3)
    return np.sin(X @ directions.T + phases).sum(axis=1)


def _noisy(n_inputs: int, noise: float, exponential: bool = False, heavy: bool = False, uneven: bool = False) -> Draw:
    """Waves of uniform inputs with noise relative to their standard deviation."""

    def draw(n: int, l: int, rng: np.random.Generator) -> tuple[Array, Array]:
        X = rng.uniform(size=(n, n_inputs))
        f = _waves(X, rng)
        errors = rng.standard_t(3, n) if heavy else rng.standard_normal(n)
        if uneven:
            errors = errors * np.exp(3.0 * X[:, 0] - 1.5)
        y = f + noise * f.std() * errors
        return X, np.exp(y) if exponential else y

    return draw


def _replicates(n: int, l: int, rng: np.random.Generator) -> tuple[Array, Array]:
    """Three rows at each of some inputs, on average."""
    places = rng.uniform(size=(max(4, l // 3), 2))
    X = places[rng.integers(len(places), size=n)]
    return X, np.sin(5.0 * X[:, 0]) + X[:, 1] ** 2 + 0.1 * rng.standard_normal(n)


def _categories(n: int, l: int, rng: np.random.Generator) -> tuple[Array, Array]:
    """Two numbers and a category of four, as indicators."""
    category = rng.integers(4, size=n)
    x = rng.uniform(size=(n, 2))
    f = np.sin(4.0 * x[:, 0] + category) + 0.5 * category * x[:, 1]
    return np.column_stack([x, np.eye(4)[category]]), f + 0.1 * rng.standard_normal(n)


def _ten(n: int, l: int, rng: np.random.Generator) -> tuple[Array, Array]:
    """Friedman's function of five of ten inputs."""
    X = rng.uniform(size=(n, 10))
    f = 10.0 * np.sin(np.pi * X[:, 0] * X[:, 1]) + 20.0 * (X[:, 2] - 0.5) ** 2 + 10.0 * X[:, 3] + 5.0 * X[:, 4]
    return X, f + 0.5 * rng.standard_normal(n)


KINDS: dict[str, Draw] = {
    "no noise": _noisy(3, 0.0),
    "1% noise": _noisy(4, 0.01),
    "20% noise, skewed": _noisy(5, 0.2, exponential=True),
    "heavy tails": _noisy(2, 0.2, exponential=True, heavy=True),
    "uneven noise": _noisy(3, 0.1, uneven=True),
    "replicates": _replicates,
    "categories": _categories,
    "ten inputs": _ten,
}


def one_set(kind: str, l: int, seed: int) -> dict:
    """How many test rows each level covers, for one training set."""
    rng = np.random.default_rng([seed, l, list(KINDS).index(kind)])
    X, y = KINDS[kind](l + N_TEST, l, rng)
    with threadpool_limits(1), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = ConformalGPRegressor(tuning="integrated", random_state=seed, n_jobs=1).fit(X[:l], y[:l])
        p = model.predict_p(X[l:], y[l:])
    covered = [int((p > 1.0 - level + 1e-12).sum()) for level in LEVELS]
    return {"kind": kind, "l": l, "covered": covered}


def nominal(l: int) -> Array:
    """Coverage that the ranks of the levels promise, in percent."""
    return np.array([100.0 * (1.0 - rank(level, l) / (l + 1)) for level in read_levels(LEVELS)[0]])


def write(found: list[dict], out: Path) -> None:
    """CSV of all figures and a page."""
    sets: dict[tuple[int, str], list[list[int]]] = defaultdict(list)
    for task in found:
        sets[task["l"], task["kind"]].append(task["covered"])
    rows, sizes, kinds = [], [], []
    for l in SIZES:
        by_kind = {kind: 100.0 * np.array(sets[l, kind]) / N_TEST for kind in KINDS if sets[l, kind]}
        every = np.concatenate(list(by_kind.values()))
        for name, own in [*by_kind.items(), ("all", every)]:
            error = own.std(axis=0, ddof=1) / np.sqrt(len(own))
            for level, expected, mean, se in zip(LEVELS, nominal(l), own.mean(axis=0), error, strict=True):
                row = {"rows": l, "kind": name, "sets": len(own), "level": level, "nominal": expected}
                rows.append(row | {"coverage": mean, "se": se})
        difference = every.mean(axis=0) - nominal(l)
        error = every.std(axis=0, ddof=1) / np.sqrt(len(every))
        sizes.append([l, len(every), *(f"{d:+.2f} ({e:.2f})" for d, e in zip(difference, error, strict=True))])
        kinds.append([l, *(f"{by_kind[kind].mean(axis=0)[2] - nominal(l)[2]:+.1f}" for kind in KINDS)])
    common.write_csv(out / "few_rows.csv", rows)
    most = max(map(len, sets.values()))
    lines = [
        "# Coverage with few rows",
        "",
        f"`python -m reproduction.studies.few_rows --sets {most}`: `tuning='integrated'`, the default. Coverage less",
        f"that which the rank of each level promises, in percentage points; {N_TEST} test rows a training set,",
        "standard errors over training sets in brackets.",
        "",
        *common.markdown(["rows", "training sets", *(f"{level:.0%}" for level in LEVELS)], sizes),
        "",
        "By kind of data, at 90%:",
        "",
        *common.markdown(["rows", *KINDS], kinds),
    ]
    common.write_page(out / "few_rows.md", lines)


def main() -> None:
    """Run what is missing, then write the page."""
    given = common.options("few_rows", __doc__, sets=(250, "training sets of each kind and size")).parse_args()
    keys = [(kind, l, seed) for seed in range(given.sets) for l in SIZES for kind in KINDS]
    run(given.raw, [("/".join(map(str, key)), key) for key in keys], one_set, given.jobs)
    write(finished(given.raw), given.out)


if __name__ == "__main__":
    main()
