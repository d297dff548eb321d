"""Replicates and designs with centre points: widths beside those of as many distinct rows, ours and the standard GP's.

``python -m reproduction.studies.replicates [--draws N]``. Every draw is written as soon as it is done, so an
interrupted run resumes. The target is a smooth function with noise of a tenth of its range, and test rows are uniform.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from pathlib import Path

import numpy as np
from threadpoolctl import threadpool_limits

from conformal_gp import ConformalGPRegressor
from conformal_gp.arrays import Array
from conformal_gp.metrics import coverage
from reproduction.comparators import gaussian_intervals
from reproduction.experiments.runner import finished, run
from reproduction.studies import common
from reproduction.studies.simulators import kriging

LEVEL = 0.9
N_TEST = 100
NOISE = 0.4
CORNERS = np.array([[0.0, 0.0], [0.0, 1.0], [1.0, 0.0], [1.0, 1.0]])
FACES = np.array([[0.5, 0.0], [0.5, 1.0], [0.0, 0.5], [1.0, 0.5]])

Design = Callable[[np.random.Generator], Array]


def _doses(levels: int, each: int) -> Design:
    """Equally spaced levels of one input, with replicates."""
    return lambda rng: np.repeat(np.linspace(0.0, 1.0, levels), each)[:, None]


def _places(places: int, each: int, n_inputs: int) -> Design:
    """Random places with replicates."""
    return lambda rng: np.repeat(rng.uniform(size=(places, n_inputs)), each, axis=0)


def _central_composite(centres: int) -> Design:
    """Corners and faces of a square, twice each, and centre points."""
    points = np.vstack([CORNERS, FACES])
    return lambda rng: np.vstack([points, points, np.full((centres, 2), 0.5)])


DESIGNS: dict[str, Design] = {
    "6 doses x 2": _doses(6, 2),
    "12 doses x 2": _doses(12, 2),
    "8 doses x 3": _doses(8, 3),
    "20 doses x 5": _doses(20, 5),
    "central composite, 5 centres": _central_composite(5),
    "central composite, 14 centres": _central_composite(14),
    "12 places x 2, 2 inputs": _places(12, 2, 2),
    "20 places x 3, 2 inputs": _places(20, 3, 2),
    "50 places x 2, 2 inputs": _places(50, 2, 2),
    "12 places x 3, 3 inputs": _places(12, 3, 3),
    "30 places x 3, 3 inputs": _places(30, 3, 3),
    "25 places x 4, 3 inputs": _places(25, 4, 3),
}


def _target(X: Array, rng: np.random.Generator) -> Array:
    f = 4.0 * np.sin(3.0 * X[:, 0])
    if X.shape[1] > 1:
        f = f + 3.0 * X[:, 1] ** 2
    if X.shape[1] > 2:
        f = f + X[:, 2]
    return f + NOISE * rng.standard_normal(len(X))


def one_draw(name: str, seed: int) -> dict:
    """Median widths and coverage of the default and of the standard GP, by a design and by as many distinct rows."""
    rng = np.random.default_rng([seed, list(DESIGNS).index(name)])
    replicated = DESIGNS[name](rng)
    n, d = replicated.shape
    X_test = rng.uniform(size=(N_TEST, d))
    y_test = _target(X_test, rng)
    found: dict = {"design": name, "rows": n, "width": [], "covered": [], "standard width": [], "standard covered": []}
    for X in (replicated, rng.uniform(size=(n, d))):
        y = _target(X, rng)
        with threadpool_limits(1), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            model = ConformalGPRegressor(random_state=seed, n_jobs=1).fit(X, y)
            ends = model.predict_interval(X_test, LEVEL)
            standard = gaussian_intervals(*kriging(X, y, X_test), [LEVEL])[:, :, 0]
        found["width"].append(float(np.median(ends[:, 1] - ends[:, 0])))
        found["covered"].append(float(coverage(y_test, ends)))
        found["standard width"].append(float(np.median(standard[:, 1] - standard[:, 0])))
        found["standard covered"].append(float(coverage(y_test, standard)))
    return found


def write(found: list[dict], out: Path) -> None:
    """The page."""
    rows = []
    for name in DESIGNS:
        own = [draw for draw in found if draw["design"] == name]
        width = np.array([draw["width"] for draw in own])
        standard = np.array([draw["standard width"] for draw in own])
        covered = np.mean([draw["covered"] for draw in own], axis=0)
        standard_covered = np.mean([draw["standard covered"] for draw in own], axis=0)
        rows.append(
            [
                name,
                own[0]["rows"],
                f"{np.median(width[:, 0]):.2f}",
                f"{np.median(width[:, 0] / width[:, 1]):.2f}",
                f"{covered[0]:.1%}",
                f"{covered[1]:.1%}",
                f"{np.median(standard[:, 0] / standard[:, 1]):.2f}",
                f"{standard_covered[0]:.1%}",
                f"{standard_covered[1]:.1%}",
            ]
        )
    heads = ["design", "rows", "width", "over distinct rows", "coverage", "by distinct rows"]
    heads += ["standard GP: over distinct rows", "coverage", "by distinct rows"]
    n_draws = len(found) // len(DESIGNS)
    lines = [
        "# Replicates and designs with centre points",
        "",
        f"`python -m reproduction.studies.replicates --draws {n_draws}`: median width of 90%",
        "intervals of the default at new inputs, and its ratio to that of as many distinct uniform rows; medians over",
        f"{n_draws} draws. The same ratio of scikit-learn's GP is what replicates cost a model that is not calibrated.",
        f"Coverage is that of new observations at {N_TEST} uniform inputs a draw. Uniform inputs are not",
        "exchangeable with the levels of a design, and `guarantee_` says so of a grid.",
        "",
        *common.markdown(heads, rows),
    ]
    common.write_page(out / "replicates.md", lines)


def main() -> None:
    """Run what is missing, then write the page."""
    given = common.options("replicates", __doc__, draws=(10, "draws of each design")).parse_args()
    keys = [(name, seed) for seed in range(given.draws) for name in DESIGNS]
    run(given.raw, [("/".join(map(str, key)), key) for key in keys], one_draw, given.jobs)
    write(finished(given.raw), given.out)


if __name__ == "__main__":
    main()
