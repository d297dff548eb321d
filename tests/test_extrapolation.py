"""Test rows far outside the training rows are pointed out, and rows like the training rows are not."""

import warnings

import numpy as np
import pandas as pd
import pytest

from conformal_gp import ConformalGPRegressor, ExtrapolationWarning
from conformal_gp.extrapolation import beyond, input_box

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
    with pytest.warns(ExtrapolationWarning, match="2 of 3 rows lie far outside the training rows, in 'a'") as caught:
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
