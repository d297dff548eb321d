"""Noise that differs from row to row: coverage where it is strong and where it is weak, and widths.

``python -m studies.noise [--draws N]`` writes docs/noise/results.csv, goes on where it stopped, and prints the tables
of ``docs/labels_and_noise.md``. No constant of the package was chosen on these draws.
"""

from __future__ import annotations

import argparse
import csv
import os
import warnings
from collections import defaultdict
from collections.abc import Callable, Sequence
from itertools import product
from pathlib import Path
from unittest.mock import patch

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import numpy as np

from conformal_gp import ConformalGPRegressor, SparseConformalGPRegressor
from conformal_gp.gp.likelihood import NegativeLogLikelihood
from conformal_gp.metrics import interval_score
from conformal_gp.types import Array
from studies.functions import FUNCTIONS

FIRST_SEED = 9100
LEVEL = 0.9
TRAINING_ROWS = 199
TEST_ROWS = 500
FIFTHS = 5
RESULTS = Path("docs/noise/results.csv")

SIGNALS: dict[int, Callable[[Array], Array]] = {
    1: lambda X: np.sin(8.0 * X[:, 0]),
    2: FUNCTIONS["Branin"].value,
    5: FUNCTIONS["Friedman"].value,
}
# Standard deviations of the noise, in units of the signal's, from the first input and the signal.
NOISES: dict[str, Callable[[Array, Array], Array]] = {
    "log-linear": lambda x, f: 0.1 * 10.0**x,
    "in the middle": lambda x, f: 0.1 * 10.0 ** (4.0 * x * (1.0 - x)),
    "a step": lambda x, f: np.where(x < 0.5, 0.1, 0.8),
    "with the signal": lambda x, f: 0.1 + 0.25 * (f - f.min()),
    "constant": lambda x, f: np.full(x.size, 0.3),
}
MODELS: dict[str, Callable[[int], ConformalGPRegressor | SparseConformalGPRegressor]] = {
    "default": lambda seed: ConformalGPRegressor(random_state=seed),
    "constant": lambda seed: ConformalGPRegressor(tuning="holdout", random_state=seed),
    "varying": lambda seed: ConformalGPRegressor(noise="varying", random_state=seed),
    "known": lambda seed: ConformalGPRegressor(random_state=seed),
    "low rank, constant": lambda seed: SparseConformalGPRegressor(random_state=seed),
    "low rank, varying": lambda seed: SparseConformalGPRegressor(noise="varying", random_state=seed),
}
KEY = ("noise", "inputs", "seed", "model")
FIELDS = (*KEY, "width", "score", "evaluations", "varies", *(f"fifth_{i}" for i in range(1, FIFTHS + 1)))


def draw(noise: str, n_inputs: int, seed: int) -> tuple[Array, Array, Array]:
    """Inputs, labels and standard deviations of the noise, training rows first."""
    rng = np.random.default_rng([seed, n_inputs, list(NOISES).index(noise)])
    X = rng.uniform(size=(TRAINING_ROWS + TEST_ROWS, n_inputs))
    signal = SIGNALS[n_inputs](X)
    signal = (signal - signal.mean()) / signal.std()
    sd = NOISES[noise](X[:, 0], signal)
    return X, signal + sd * rng.standard_normal(sd.size), sd


def run(noise: str, n_inputs: int, seed: int, name: str) -> dict[str, str | int | float]:
    """Coverage in fifths of the noise, width and score of one model on one draw, and what its fit cost."""
    X, y, sd = draw(noise, n_inputs, seed)
    train, test = slice(TRAINING_ROWS), slice(TRAINING_ROWS, None)
    of_train, of_test = ({"noise_variance": sd[rows] ** 2} if name == "known" else {} for rows in (train, test))
    with (
        warnings.catch_warnings(),
        patch.object(
            NegativeLogLikelihood, "__call__", autospec=True, side_effect=NegativeLogLikelihood.__call__
        ) as likelihood,
    ):
        warnings.simplefilter("ignore", UserWarning)
        model = MODELS[name](seed).fit(X[train], y[train], **of_train)
        ends = model.predict_interval(X[test], LEVEL, **of_test)
    inside = (ends[:, 0] <= y[test]) & (y[test] <= ends[:, 1])
    by = sd[test] if noise != "constant" else X[test, 0]  # of constant noise all fifths are alike: of the first input
    fifths = np.array_split(np.argsort(by, kind="stable"), FIFTHS)
    return {
        **dict(zip(KEY, (noise, n_inputs, seed, name), strict=True)),
        "width": float(np.diff(ends, axis=1).mean()),
        "score": float(interval_score(y[test], ends, LEVEL)),
        "evaluations": likelihood.call_count,
        "varies": int(model.noise_coef_.size > 0),
        **{f"fifth_{i}": float(inside[rows].mean()) for i, rows in enumerate(fifths, 1)},
    }


def read() -> list[dict[str, str]]:
    """Results so far."""
    if not RESULTS.exists():
        return []
    with RESULTS.open() as file:
        return list(csv.DictReader(file))


def cells(results: Sequence[dict[str, str]]) -> dict[tuple[str, int], dict[str, Array]]:
    """Numbers by kind of data and model, (draws, numbers), of draws that all models have."""
    by_draw: dict[tuple[str, int, str], dict[str, list[float]]] = defaultdict(dict)
    for row in results:
        numbers = [float(row[name]) for name in FIELDS[len(KEY) :]]
        by_draw[row["noise"], int(row["inputs"]), row["seed"]][row["model"]] = numbers
    found: dict[tuple[str, int], dict[str, list[list[float]]]] = defaultdict(lambda: defaultdict(list))
    for (noise, n_inputs, _), models in by_draw.items():
        if len(models) == len(MODELS):
            for name, numbers in models.items():
                found[noise, n_inputs][name].append(numbers)
    return {kind: {name: np.array(rows) for name, rows in models.items()} for kind, models in found.items()}


def table(found: dict[tuple[str, int], dict[str, Array]]) -> list[str]:
    """Coverage in the worst fifth, and widths over those of the default."""
    lines = [f"| noise | inputs | {' | '.join(MODELS)} | varies |", "|---" * (len(MODELS) + 3) + "|"]
    for (noise, n_inputs), models in found.items():
        entries = []
        for numbers in (models[name] for name in MODELS):
            by_fifth = numbers[:, -FIFTHS:].mean(axis=0)
            width = float(np.exp(np.mean(np.log(numbers[:, 0] / models["default"][:, 0]))))
            entries.append(f"{by_fifth.min():.0%}, {width:.2f}")
        varies = models["varying"][:, 3].mean()
        lines.append(f"| {noise} | {n_inputs} | {' | '.join(entries)} | {varies:.0%} |")
    return lines


def summary(found: dict[tuple[str, int], dict[str, Array]]) -> list[str]:
    """What the table comes to: coverage in standard errors, scores, widths under constant noise, the price of a fit."""
    lines = []
    for name in MODELS:
        inside = [models[name][:, -FIFTHS:].mean(axis=1) for models in found.values()]
        variance = np.mean([draws.var(ddof=1) for draws in inside])  # within kinds of data, of which each has few draws
        away = [(draws.mean() - LEVEL) / np.sqrt(variance / draws.size) for draws in inside]
        in_all = np.concatenate(inside)
        lines.append(
            f"{name}: coverage {in_all.mean():.1%} with a standard error of {np.sqrt(variance / in_all.size):.1%} "
            f"in all, at least {min(away):+.1f} standard errors from {LEVEL:.0%} for each kind of data"
        )
    differing = [models for (noise, _), models in found.items() if noise != "constant"]
    for name in MODELS:
        worst = [models[name][:, -FIFTHS:].mean(axis=0).min() for models in differing]
        score = np.exp(np.mean([np.log(models[name][:, 1] / models["default"][:, 1]).mean() for models in differing]))
        lines.append(
            f"{name}, where noise differs: worst fifth {np.mean(worst):.0%} in the mean, {min(worst):.0%} at least; "
            f"interval score {score:.2f} of the default's"
        )
    for low_rank in ("", "low rank, "):
        pairs = [(models[f"{low_rank}varying"], models[f"{low_rank}constant"]) for models in found.values()]
        price = sum(one[:, 2].sum() for one, _ in pairs) / sum(other[:, 2].sum() for _, other in pairs)
        same = [models for (noise, _), models in found.items() if noise == "constant"]
        wider = [np.mean(models[f"{low_rank}varying"][:, 0] / models[f"{low_rank}constant"][:, 0]) for models in same]
        lines.append(
            f"{low_rank}varying beside constant: likelihoods {price:.2f} times as many, widths under constant noise "
            f"{min(wider):.3f} to {max(wider):.3f} times"
        )
    return lines


def main() -> None:
    """Run what is missing, then print the tables."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--draws", type=int, default=12)
    given = parser.parse_args()
    results = read()
    done = {tuple(row[name] for name in KEY) for row in results}
    seeds = range(FIRST_SEED, FIRST_SEED + given.draws)
    RESULTS.parent.mkdir(parents=True, exist_ok=True)
    with RESULTS.open("a", newline="") as file:
        writer = csv.DictWriter(file, FIELDS, lineterminator="\n")
        if not results:
            writer.writeheader()
        for seed, noise, n_inputs, name in product(seeds, NOISES, SIGNALS, MODELS):
            if (noise, str(n_inputs), str(seed), name) not in done:
                numbers = run(noise, n_inputs, seed, name)
                writer.writerow({key: round(v, 5) if isinstance(v, float) else v for key, v in numbers.items()})
                file.flush()
    found = cells(read())
    print("\n".join([*table(found), "", *summary(found)]))


if __name__ == "__main__":
    main()
