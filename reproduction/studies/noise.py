"""Noise that differs from row to row: coverage where it is strong and where it is weak, and widths.

``python -m reproduction.studies.noise [--rows L] [--draws N]`` writes reproduction/results/noise/results.csv, or results-L.csv with other numbers
of training rows than 199, goes on where it stopped, and prints the tables of ``docs/labels_and_noise.md``. No constant
of the package was chosen on these draws.
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
from reproduction.studies.functions import FUNCTIONS

FIRST_SEED = 9100
LEVEL = 0.9
TRAINING_ROWS = 199
TEST_ROWS = 500
FIFTHS = 5
RESULTS = Path("reproduction/results/noise")

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
    "varying": lambda seed: ConformalGPRegressor(noise="varying", tuning="holdout", random_state=seed),
    "varying inside": lambda seed: ConformalGPRegressor(noise="varying", tuning="augmented", random_state=seed),
    "known": lambda seed: ConformalGPRegressor(random_state=seed),
    "low rank, constant": lambda seed: SparseConformalGPRegressor(random_state=seed),
    "low rank, varying": lambda seed: SparseConformalGPRegressor(noise="varying", random_state=seed),
}
# Noise may vary inside the bag where "auto" lets it; a low-rank model is for many rows.
ONLY_FEW_ROWS = ("varying inside",)
ONLY_MANY_ROWS = ("low rank, constant", "low rank, varying")
KEY = ("noise", "inputs", "seed", "model")
FIELDS = (*KEY, "width", "score", "evaluations", "varies", *(f"fifth_{i}" for i in range(1, FIFTHS + 1)))


def draw(noise: str, n_inputs: int, seed: int, n_rows: int = TRAINING_ROWS) -> tuple[Array, Array, Array]:
    """Inputs, labels and standard deviations of the noise, training rows first."""
    rng = np.random.default_rng([seed, n_inputs, list(NOISES).index(noise)])
    X = rng.uniform(size=(n_rows + TEST_ROWS, n_inputs))
    signal = SIGNALS[n_inputs](X)
    signal = (signal - signal.mean()) / signal.std()
    sd = NOISES[noise](X[:, 0], signal)
    return X, signal + sd * rng.standard_normal(sd.size), sd


def run(noise: str, n_inputs: int, seed: int, name: str, n_rows: int = TRAINING_ROWS) -> dict[str, str | int | float]:
    """Coverage in fifths of the noise, width and score of one model on one draw, and what its fit cost."""
    X, y, sd = draw(noise, n_inputs, seed, n_rows)
    train, test = slice(n_rows), slice(n_rows, None)
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


def models_for(n_rows: int) -> list[str]:
    """Models to compare with so many training rows."""
    return [name for name in MODELS if name not in (ONLY_FEW_ROWS if n_rows > 100 else ONLY_MANY_ROWS)]


def results_file(n_rows: int) -> Path:
    """Where results with so many training rows are kept."""
    return RESULTS / ("results.csv" if n_rows == TRAINING_ROWS else f"results-{n_rows}.csv")


def read(path: Path) -> list[dict[str, str]]:
    """Results so far."""
    if not path.exists():
        return []
    with path.open() as file:
        return list(csv.DictReader(file))


def cells(results: Sequence[dict[str, str]]) -> dict[tuple[str, int], dict[str, Array]]:
    """Numbers by kind of data and model, (draws, numbers), of draws that all models have."""
    every = {row["model"] for row in results}
    by_draw: dict[tuple[str, int, str], dict[str, list[float]]] = defaultdict(dict)
    for row in results:
        numbers = [float(row[name]) for name in FIELDS[len(KEY) :]]
        by_draw[row["noise"], int(row["inputs"]), row["seed"]][row["model"]] = numbers
    found: dict[tuple[str, int], dict[str, list[list[float]]]] = defaultdict(lambda: defaultdict(list))
    for (noise, n_inputs, _), models in by_draw.items():
        if models.keys() == every:
            for name, numbers in models.items():
                found[noise, n_inputs][name].append(numbers)
    return {kind: {name: np.array(rows) for name, rows in models.items()} for kind, models in found.items()}


def table(found: dict[tuple[str, int], dict[str, Array]]) -> list[str]:
    """Coverage in the worst fifth, and widths over those of the default."""
    names = _names(found)
    lines = [f"| noise | inputs | {' | '.join(names)} | varies |", "|---" * (len(names) + 3) + "|"]
    for (noise, n_inputs), models in found.items():
        entries = []
        for numbers in (models[name] for name in names):
            by_fifth = numbers[:, -FIFTHS:].mean(axis=0)
            width = float(np.exp(np.mean(np.log(numbers[:, 0] / models["default"][:, 0]))))
            entries.append(f"{by_fifth.min():.0%}, {width:.2f}")
        varies = models[_last_varying(names)][:, 3].mean()
        lines.append(f"| {noise} | {n_inputs} | {' | '.join(entries)} | {varies:.0%} |")
    return lines


def _names(found: dict[tuple[str, int], dict[str, Array]]) -> list[str]:
    """Models in the results, in order."""
    return [name for name in MODELS if all(name in models for models in found.values())]


def _last_varying(names: list[str]) -> str:
    """The model whose choice between constant and varying noise is told."""
    return "varying inside" if "varying inside" in names else "varying"


def summary(found: dict[tuple[str, int], dict[str, Array]]) -> list[str]:
    """What the table comes to: coverage in standard errors, scores, widths under constant noise, the price of a fit."""
    lines, names = [], _names(found)
    for name in names:
        inside = [models[name][:, -FIFTHS:].mean(axis=1) for models in found.values()]
        variance = np.mean([draws.var(ddof=1) for draws in inside])  # within kinds of data, of which each has few draws
        away = [(draws.mean() - LEVEL) / np.sqrt(variance / draws.size) for draws in inside]
        in_all = np.concatenate(inside)
        lines.append(
            f"{name}: coverage {in_all.mean():.1%} with a standard error of {np.sqrt(variance / in_all.size):.1%} "
            f"in all, at least {min(away):+.1f} standard errors from {LEVEL:.0%} for each kind of data"
        )
    differing = [models for (noise, _), models in found.items() if noise != "constant"]
    for name in names:
        worst = [models[name][:, -FIFTHS:].mean(axis=0).min() for models in differing]
        score = np.exp(np.mean([np.log(models[name][:, 1] / models["default"][:, 1]).mean() for models in differing]))
        lines.append(
            f"{name}, where noise differs: worst fifth {np.mean(worst):.0%} in the mean, {min(worst):.0%} at least; "
            f"interval score {score:.2f} of the default's"
        )
    same = [models for (noise, _), models in found.items() if noise == "constant"]
    for one, other in (
        ("varying", "constant"), ("varying inside", "default"), ("low rank, varying", "low rank, constant")
    ):  # fmt: skip
        if one not in names:
            continue
        wider = [np.mean(models[one][:, 0] / models[other][:, 0]) for models in same]
        told = f"{one} beside {other}: widths under constant noise {min(wider):.3f} to {max(wider):.3f} times"
        evaluations = [sum(models[name][:, 2].sum() for models in found.values()) for name in (one, other)]
        if evaluations[1] > 0:
            told += f", likelihoods {evaluations[0] / evaluations[1]:.2f} times as many"
        lines.append(told)
    return lines


def main() -> None:
    """Run what is missing, then print the tables."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--draws", type=int, default=12)
    parser.add_argument("--rows", type=int, default=TRAINING_ROWS, help="training rows")
    given = parser.parse_args()
    path = results_file(given.rows)
    results = read(path)
    done = {tuple(row[name] for name in KEY) for row in results}
    seeds = range(FIRST_SEED, FIRST_SEED + given.draws)
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("a", newline="") as file:
        writer = csv.DictWriter(file, FIELDS, lineterminator="\n")
        if not results:
            writer.writeheader()
        for seed, noise, n_inputs, name in product(seeds, NOISES, SIGNALS, models_for(given.rows)):
            if (noise, str(n_inputs), str(seed), name) not in done:
                numbers = run(noise, n_inputs, seed, name, given.rows)
                writer.writerow({key: round(v, 5) if isinstance(v, float) else v for key, v in numbers.items()})
                file.flush()
    found = cells(read(path))
    print("\n".join([*table(found), "", *summary(found)]))


if __name__ == "__main__":
    main()
