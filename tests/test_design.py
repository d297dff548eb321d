"""Designs on a grid are recognised, and tables that are none are not."""

from itertools import combinations, product

import numpy as np
import pandas as pd
import pytest
from scipy.stats import qmc

from conformal_gp import ConformalGPRegressor, datasets
from conformal_gp.extrapolation import Grid, columns_of
from conformal_gp.metrics import coverage

RNG = np.random.default_rng(0)
CORNERS = np.array(list(product([-1.0, 1.0], repeat=3)))
AXES = 1.682 * np.vstack([np.eye(3), -np.eye(3)])
CENTRES = np.zeros((4, 3))
EDGES = np.array([[*pair] for pair in product([-1.0, 1.0], repeat=2)])
L9 = np.array([(a, b, (a + b) % 3, (a + 2 * b) % 3) for a, b in product(range(3), repeat=2)], dtype=float)


def box_behnken():
    runs = []
    for i, j in combinations(range(3), 2):
        for pair in EDGES:
            run = np.zeros(3)
            run[[i, j]] = pair
            runs.append(run)
    return np.vstack([runs, CENTRES])


DESIGNS = {
    "3^4": np.array(list(product([0.0, 1.0, 5.0], repeat=4))),
    "3^4 without six runs": np.delete(
        np.array(list(product(range(3), repeat=4)), dtype=float), RNG.permutation(81)[:6], 0
    ),
    "20 x 20": np.array(list(product(np.linspace(0, 1, 20), repeat=2))),
    "replicated 2 x 3": np.array(list(product([1.0, 2.0], [0.1, 0.2, 0.4]))).repeat(3, axis=0),
    "corners of a box": CORNERS * [1.0, 10.0, 0.1],
    "corners with centre points": np.vstack([CORNERS, CENTRES]),
    "half fraction": np.column_stack([CORNERS, CORNERS.prod(axis=1)]),
    "central composite": np.vstack([CORNERS, AXES, CENTRES]),
    "Box-Behnken": box_behnken(),
    "orthogonal array": L9,
}
OTHERS = {
    "uniform": RNG.uniform(size=(81, 4)),
    "Latin hypercube": qmc.LatinHypercube(4, rng=np.random.default_rng(0)).random(64),
    "Sobol": qmc.Sobol(3, rng=np.random.default_rng(0)).random(64),
    "ratings": RNG.integers(1, 6, size=(200, 6)).astype(float),
    "one column of levels": np.arange(5.0).repeat(6)[:, None],
    "grid and a measured column": np.column_stack([DESIGNS["3^4"], RNG.uniform(size=81)]),
    "constant": np.ones((30, 2)),
}


@pytest.mark.parametrize("name", DESIGNS)
def test_designs_are_recognised_in_any_order(name):
    runs = RNG.permutation(DESIGNS[name])
    grid = Grid.find(columns_of(runs))
    assert grid is not None
    assert not grid.between(columns_of(runs)).any()
    assert grid.between(columns_of(runs[:-1] + 0.4 * (runs[1:] - runs[:-1]))).any()
    middle = np.tile(0.5 * (runs.max(axis=0) - runs.min(axis=0)) * 0.97 + runs.min(axis=0), (2, 1))
    assert grid.between(columns_of(middle)).all()


@pytest.mark.parametrize("name", OTHERS)
def test_other_tables_are_no_grid(name):
    assert Grid.find(columns_of(OTHERS[name])) is None


@pytest.mark.parametrize("name", ["servo", "cpu", "auto_mpg", "boston"])
def test_real_tables_are_no_grid(name):
    X, _ = getattr(datasets, f"load_{name}")(return_X_y=True, as_frame=True)
    assert Grid.find(columns_of(X)) is None


def test_random_tables_of_few_levels_are_rarely_taken_for_a_fraction():
    found = [Grid.find(columns_of(RNG.integers(0, 3, size=(30, 4)).astype(float))) for _ in range(500)]
    assert sum(grid is not None for grid in found) <= 1


def test_categories_are_part_of_a_grid():
    runs = pd.DataFrame(list(product([1.0, 2.0, 3.0], ["steel", "brass"])), columns=["load", "alloy"])
    frame = runs.astype({"alloy": "category"})
    grid = Grid.find(columns_of(frame))
    assert str(grid) == "3 levels of 'load'; 6 of 6 combinations"
    assert grid.between(columns_of(frame.assign(load=[1.0, 1.5, 2.0, 2.5, 3.0, 3.0]))).tolist() == [
        False, True, False, True, False, False,
    ]  # fmt: skip
    assert Grid.find(columns_of(frame[["alloy"]])) is None


def test_words_name_columns_and_counts():
    grid = Grid.find(columns_of(DESIGNS["central composite"]))
    assert "5 levels of 'x0', 5 of 'x1', 5 of 'x2'; 15 of 125 combinations" in grid.condition
    wide = Grid.find(columns_of(np.array(list(product([0.0, 1.0], repeat=8)))))
    assert str(wide).endswith("2 of 'x5' and so on for 2 more; 256 of 256 combinations")


def response(X):
    """Deflection of a cantilever beam, by width, thickness and two loads that are scaled to (0, 1)."""
    width, thickness, across, down = (X * [1.5, 1.5, 400, 400] + [2.0, 2.0, 300, 800]).T
    return np.sqrt((down / thickness**2) ** 2 + (across / width**2) ** 2) / (width * thickness)


@pytest.mark.slow
def test_random_runs_as_calibration_rows_make_intervals_valid_between_levels():
    """A grid alone may cover few points between its levels; with 19 random calibration rows it is 90% or more."""
    rng = np.random.default_rng(0)
    grid = np.array(list(product(np.linspace(0, 1, 3), repeat=4)))
    alone, with_random_runs = [], []
    for seed in range(60):
        X = np.vstack([grid, rng.uniform(size=(19, 4))])
        new = rng.uniform(size=(50, 4))
        y = response(new)
        if seed < 5:
            model = ConformalGPRegressor(tuning="holdout", random_state=seed).fit(grid, response(grid))
            alone.append(coverage(y, model.predict_interval(new, 0.9)))
        remedied = ConformalGPRegressor(tuning="holdout", tuning_rows=np.arange(81), random_state=seed)
        with_random_runs.append(coverage(y, remedied.fit(X, response(X)).predict_interval(new, 0.9)))
    assert min(alone) < 0.5
    assert np.mean(with_random_runs) > 0.9 - 3 * np.std(with_random_runs) / np.sqrt(60)


def test_spectra_are_no_design():
    """Very many channels of few rows: more combinations than floats count."""
    assert Grid.find(columns_of(np.random.default_rng(1).normal(size=(18, 1047)))) is None
