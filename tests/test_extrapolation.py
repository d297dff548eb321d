"""Test rows that are unlike the training rows: far outside their range, or between the levels of a design."""

import warnings
from itertools import combinations, product

import numpy as np
import pandas as pd
import pytest
from scipy.stats import qmc

from conformal_gp import ConformalGPRegressor, ExtrapolationWarning, datasets
from conformal_gp.extrapolation import Grid, beyond, columns_of, input_box
from conformal_gp.metrics import coverage

FRAME = pd.DataFrame({"a": np.linspace(0, 10, 30), "b": np.arange(30) % 4 * 1.0, "same": 2.0})
LABELS = np.sin(FRAME["a"])
MODELS = [
    ConformalGPRegressor("se", tuning="holdout", random_state=0),
    ConformalGPRegressor("se", tuning_rows=10, low_rank=5, random_state=0),
]


@pytest.fixture(scope="module", params=MODELS, ids=["exact", "low rank"])
def model(request):
    return request.param.fit(FRAME, LABELS)


@pytest.mark.parametrize(
    ("row", "beyond"),
    [
        ((19.0, 3.2, 2.0), []),
        ((30.0, 3.2, 2.0), ["a"]),
        ((-20.0, 9.0, 2.0), ["a", "b"]),
        ((5.0, 1.5, 2.0000001), ["same"]),  # any other value than the one that all rows have
    ],
)
def test_far_outside_the_range_is_what_counts(model, row, beyond):
    rows = pd.DataFrame([(5.0, 1.0, 2.0), row], columns=FRAME.columns)
    found = model.beyond_training(rows)
    assert not found[0].any()
    assert FRAME.columns[found[1]].tolist() == beyond


@pytest.mark.parametrize("method", ["predict", "predict_interval", "predict_set", "predict_quantiles", "predict_bound"])
def test_predictions_warn(model, method):
    call = getattr(model, method)
    rest = (0.5,) if method == "predict_quantiles" else ()
    far = FRAME.iloc[:3].assign(a=[0.0, 99.0, -99.0])
    with pytest.warns(
        ExtrapolationWarning, match="2 of 3 rows lie far outside the training range, in column 'a'"
    ) as caught:
        call(far, *rest)
    assert caught[0].filename == __file__
    with warnings.catch_warnings():
        warnings.simplefilter("error", ExtrapolationWarning)
        call(FRAME, *rest)


DRAWN = {
    "uniform": lambda rng, shape: rng.uniform(size=shape),
    "normal": lambda rng, shape: rng.standard_normal(shape),
    "t": lambda rng, shape: rng.standard_t(3, shape),
    "lognormal": lambda rng, shape: rng.lognormal(size=shape),
    "cauchy": lambda rng, shape: rng.standard_cauchy(shape),
}


@pytest.mark.parametrize("kind", DRAWN)
@pytest.mark.parametrize("n_inputs", [1, 3, 10])
@pytest.mark.parametrize("n_rows", [20, 50, 200])
def test_fewer_than_one_in_a_hundred_exchangeable_rows_are_pointed_out(n_rows, n_inputs, kind):
    rng = np.random.default_rng(n_rows + n_inputs)
    shares = []
    for _ in range(300):
        X = DRAWN[kind](rng, (n_rows, n_inputs))
        box = input_box(np.stack([X.min(axis=0), X.max(axis=0)]), X, n_rows)
        shares.append(beyond(DRAWN[kind](rng, (100, n_inputs)), box).any(axis=1).mean())
    assert np.mean(shares) < (0.03 if kind == "cauchy" else 0.01)  # of tails without a mean three


@pytest.mark.parametrize("kind", ["uniform", "normal"])
@pytest.mark.parametrize("n_rows", [3, 5, 8, 12])
def test_few_rows_tell_little_about_tails(n_rows, kind):
    rng = np.random.default_rng(n_rows)
    shares = []
    for _ in range(300):
        X = DRAWN[kind](rng, (n_rows, 3))
        box = input_box(np.stack([X.min(axis=0), X.max(axis=0)]), X, n_rows)
        shares.append(beyond(DRAWN[kind](rng, (100, 3)), box).any(axis=1).mean())
    assert np.mean(shares) < 0.01


@pytest.mark.parametrize(("n_rows", "distance"), [(50, 3.0), (200, 1.3), (5000, 1.3)])
def test_rows_far_outside_are_pointed_out(n_rows, distance):
    """In units of half the range of uniform inputs."""
    X = np.random.default_rng(0).uniform(-1.0, 1.0, size=(n_rows, 2))
    box = input_box(np.stack([X.min(axis=0), X.max(axis=0)]), X, n_rows)
    assert beyond(np.array([[distance, 0.0], [0.0, -distance]]), box).any(axis=1).all()


def test_levels_and_zeros_beside_few_other_values():
    X = np.column_stack([np.arange(60) % 2, np.where(np.arange(60) < 50, 0.0, np.arange(60))])
    box = input_box(np.stack([X.min(axis=0), X.max(axis=0)]), X, 60)
    assert beyond(np.array([[2.0, 0.0], [0.0, 500.0], [1.0, 55.0]]), box).any(axis=1).tolist() == [True, True, False]


def test_one_channel_of_a_spectrum_says_nothing():
    box = np.tile([[0.0], [1.0]], 200)
    rows = np.full((3, 200), 0.5)
    rows[1, 7] = 9.0
    rows[2, 7:20] = 9.0
    assert beyond(rows, box).any(axis=1).tolist() == [False, False, True]
    assert beyond(rows[:, :20], box[:, :20]).any(axis=1).tolist() == [False, True, True]


# Designs on a grid are recognised, and tables that are none are not

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


def deflection(X):
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
        y = deflection(new)
        if seed < 5:
            model = ConformalGPRegressor(tuning="holdout", random_state=seed).fit(grid, deflection(grid))
            alone.append(coverage(y, model.predict_interval(new, 0.9)))
        remedied = ConformalGPRegressor(tuning="holdout", tuning_rows=np.arange(81), random_state=seed)
        with_random_runs.append(coverage(y, remedied.fit(X, deflection(X)).predict_interval(new, 0.9)))
    assert min(alone) < 0.5
    assert np.mean(with_random_runs) > 0.9 - 3 * np.std(with_random_runs) / np.sqrt(60)


def test_spectra_are_no_design():
    """Very many channels of few rows: more combinations than floats count."""
    assert Grid.find(columns_of(np.random.default_rng(1).normal(size=(18, 1047)))) is None


# The guarantee of a grid is for rows at its levels, and rows between them come with a warning

LEVELS = np.stack(np.meshgrid(*[[0.0, 0.5, 1.0]] * 3), axis=-1).reshape(-1, 3)
RANDOM = np.random.default_rng(0).uniform(size=(25, 3))


def quadratic(X):
    return X[:, 0] ** 2 + np.sin(3.0 * X[:, 1]) + X[:, 2]


def fitted_to(X, **options):
    return ConformalGPRegressor(kernel="se", tuning="fixed", noise_variance=1e-6, **options).fit(X, quadratic(X))


def test_a_full_factorial_design():
    model = fitted_to(LEVELS, scale_inputs=False)
    assert model.guarantee_.startswith("Valid")
    assert "are a grid (3 levels of 'x0', 3 of 'x1', 3 of 'x2'; 27 of 27 combinations)" in model.guarantee_
    assert "not between them" in model.guarantee_
    for call in (model.predict, model.predict_interval, model.predict_set):
        with pytest.warns(ExtrapolationWarning, match="25 of 26 rows lie between the levels.*19 additional") as caught:
            call(np.vstack([LEVELS[:1], RANDOM]))
        assert [warning.filename for warning in caught] == [__file__]
    with warnings.catch_warnings(action="error", category=ExtrapolationWarning):
        model.predict(LEVELS)


def test_categories_are_levels_too():
    frame = pd.DataFrame(LEVELS, columns=["a", "b", "c"])
    frame["c"] = pd.Categorical(frame["c"].map({0.0: "x", 0.5: "y", 1.0: "z"}))
    model = ConformalGPRegressor("se", tuning="fixed", noise_variance=0.1).fit(frame, quadratic(LEVELS))
    assert "27 of 27 combinations" in model.guarantee_
    with pytest.warns(ExtrapolationWarning, match="1 of 1 rows lie between the levels"):
        model.predict(frame.iloc[:1].assign(a=0.3))


def test_a_central_composite_design_with_repeated_centre_runs():
    corners = 2.0 * LEVELS[(LEVELS != 0.5).all(axis=1)] - 1.0
    star = 2.0**0.75 * np.vstack([np.eye(3), -np.eye(3)])
    model = fitted_to(np.vstack([corners, star, np.zeros((6, 3))]))
    assert "are a grid (5 levels of 'x0', 5 of 'x1', 5 of 'x2'; 15 of 125 combinations)" in model.guarantee_
    with pytest.warns(ExtrapolationWarning, match="1 of 1 rows lie between the levels"):
        model.predict([[0.5, 0.5, 0.5]])


@pytest.mark.parametrize("X", [RANDOM, np.vstack([LEVELS, RANDOM]), np.vstack([LEVELS, LEVELS])])
def test_other_rows(X):
    """Random rows, random rows beside a grid, and runs that are repeated."""
    assert "grid" not in fitted_to(X).guarantee_


def test_random_rows_that_come_later():
    model = fitted_to(LEVELS, scale_inputs=False).partial_fit(RANDOM, quadratic(RANDOM))
    assert "grid" not in model.guarantee_
    with warnings.catch_warnings(action="error", category=ExtrapolationWarning):
        model.predict(RANDOM)


def test_it_is_saved():
    from conformal_gp.saving import dumps, loads

    model = loads(dumps(fitted_to(LEVELS)))
    with pytest.warns(ExtrapolationWarning, match="lie between the levels"):
        model.predict(RANDOM)
