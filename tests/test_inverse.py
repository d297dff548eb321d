"""Inverse prediction: values of one input that agree with an observation."""

import warnings

import numpy as np
import pandas as pd
import polars as pl
import pytest

from conformal_gp import ConformalGPRegressor, ExtrapolationWarning
from conformal_gp.inverse import GRID

FIXED = {"kernel": "se", "tuning": "fixed", "noise_variance": 0.01, "scale_inputs": False, "mean": "zero"}
METHODS = {
    "fixed": FIXED,
    "unnormalised": FIXED | {"gamma": np.inf},
    "holdout": {"tuning": "holdout", "tuning_rows": np.arange(15), "n_restarts": 0, "random_state": 0},
    "integrated": {"tuning": "integrated"},
}
UNKNOWN = [[np.nan]]


def curve(n, seed=0, noise=0.1):
    """A curve that rises and falls."""
    rng = np.random.default_rng(seed)
    X = np.sort(rng.uniform(0, 3, size=(n, 1)), axis=0)
    return X, np.sin(np.pi / 3 * X[:, 0]) + noise * rng.standard_normal(n)


def contains(pieces, x):
    return bool(((pieces[:, 0] <= x) & (x <= pieces[:, 1])).any())


@pytest.mark.parametrize("name", METHODS)
def test_sets_are_where_p_values_exceed_delta(name):
    X, y = curve(30)
    model = ConformalGPRegressor(**METHODS[name]).fit(X, y)
    fine = np.linspace(0, 3, 601)[:, None]
    observed = np.array([0.5, 0.8, 1.0, 3.0])
    sets = model.predict_input(observed, np.full((4, 1), np.nan), 0, (0, 3), 0.8)
    for value, pieces in zip(observed, sets, strict=True):
        p = model.predict_p(fine, np.full(601, value))
        inside = np.array([contains(pieces, x) for x in fine[:, 0]])
        assert (inside >= (p > 0.2 * (1 + 1e-12))).all()
        assert (inside != (p > 0.2 * (1 + 1e-12))).sum() <= 1
        assert (pieces[:, 0] < pieces[:, 1]).all()
        assert (pieces[1:, 0] > pieces[:-1, 1]).all()
        ends = pieces[(pieces > 0) & (pieces < 3)]
        if ends.size:  # rounded outwards, and not far
            assert (model.predict_p(ends[:, None], np.full(ends.size, value)) <= 0.2 * (1 + 1e-12)).all()
            near = np.concatenate([pieces[:, :1] + 4e-6, pieces[:, 1:] - 4e-6]).ravel()
            near = near[(near > 1e-5) & (near < 3 - 1e-5)]
            assert (model.predict_p(near[:, None], np.full(near.size, value)) > 0.2).all()
    assert len(sets[0]) == 2
    assert sets[3].shape == (0, 2)


@pytest.mark.parametrize("name", ["fixed", "unnormalised"])
def test_each_standard_in_turn_is_the_unknown(name):
    """At most one in five of the inputs is outside its 80% set, with certainty."""
    X, y = curve(15, seed=1)
    missed = 0
    for row in range(15):
        rest = np.delete(np.arange(15), row)
        model = ConformalGPRegressor(**METHODS[name]).fit(X[rest], y[rest])
        missed += not contains(model.predict_input(y[[row]], UNKNOWN, 0, (0, 3), 0.8)[0], X[row, 0])
    assert missed <= 3


def test_sets_narrower_than_the_grid_are_found():
    X = np.linspace(0, 3, 40)[:, None]
    model = ConformalGPRegressor(**FIXED | {"noise_variance": 1e-10}).fit(X, np.exp(X[:, 0]))
    sets, estimates = model.predict_input([2.0, 9.0], 2 * UNKNOWN, 0, (0, 3), 0.8, return_estimate=True)
    np.testing.assert_allclose(estimates, np.log([2.0, 9.0]), atol=1e-4)
    for pieces, estimate in zip(sets, estimates, strict=True):
        assert pieces.shape == (1, 2)
        assert np.ptp(pieces) < 3 / GRID
        assert contains(pieces, estimate)


def test_estimates_where_no_prediction_is_the_observation():
    X, y = curve(30)
    model = ConformalGPRegressor(**FIXED).fit(X, y)
    _, estimates = model.predict_input([3.0, -3.0], 2 * UNKNOWN, 0, (0, 2), return_estimate=True)
    grid = np.linspace(0, 2, GRID)
    predicted = model.predict(grid[:, None])
    np.testing.assert_allclose(estimates, grid[[predicted.argmax(), predicted.argmin()]])


@pytest.mark.parametrize("library", ["pandas", "polars"])
def test_frames_with_categories_groups_and_known_noise(library):
    """Other inputs, categories, groups and variances are those of each row."""
    rng = np.random.default_rng(0)
    kind = np.array(["a", "b"] * 20)
    dose = rng.uniform(0, 3, 40)
    signal = dose + (kind == "b") + 0.1 * rng.standard_normal(40)
    data = {"kind": kind, "dose": dose}
    new = {"kind": ["a", "b"], "dose": [None, None]}
    if library == "pandas":
        X = pd.DataFrame(data).astype({"kind": "category"})
        unknown = pd.DataFrame(new).astype({"kind": X["kind"].dtype})
    else:
        X = pl.DataFrame(data, schema_overrides={"kind": pl.Categorical})
        unknown = pl.DataFrame(new, schema_overrides={"kind": pl.Categorical})
    variance = np.full(40, 0.01)
    model = ConformalGPRegressor(**FIXED | {"noise_variance": 0.001})
    model.fit(X, signal, variance, groups="kind")
    options = {"confidence_level": 0.8, "y_variance": [0.01, 0.01]}
    by_name, estimates = model.predict_input([2.0, 2.0], unknown, "dose", (0, 3), return_estimate=True, **options)
    np.testing.assert_allclose(estimates, [2.0, 1.0], atol=0.1)
    by_number = model.predict_input([2.0, 2.0], unknown, 1, (0, 3), groups=["a", "b"], **options)
    weighted = model.predict_input(
        [2.0, 2.0], unknown, 1, (0, 3), likelihood_ratio=(np.ones(40), np.ones(2)), **options
    )
    for one, two, three in zip(by_name, by_number, weighted, strict=True):
        np.testing.assert_array_equal(one, two)
        np.testing.assert_allclose(one, three)
    with pytest.raises(ValueError, match="feature must hold numbers, and 'kind' holds categories"):
        model.predict_input([2.0, 2.0], unknown, "kind", (0, 3), **options)
    with pytest.raises(ValueError, match="feature must be the name or number of an input, 'kind', 'dose', or 0 to 1"):
        model.predict_input([2.0, 2.0], unknown, "dos", (0, 3), **options)
    assert unknown["dose"][0] is None or np.isnan(unknown["dose"][0])


def test_one_warning():
    X, y = curve(30)
    model = ConformalGPRegressor(**FIXED).fit(X, y)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        model.predict_input(np.full(5, 0.5), np.full((5, 1), np.nan), 0, (0, 9))
    assert [warning.category for warning in caught] == [ExtrapolationWarning]
    assert caught[0].filename == __file__
    with pytest.warns(UserWarning, match="needs at least 99 calibration rows.*its sets of inputs are all of bounds"):
        sets = model.predict_input([0.5], UNKNOWN, 0, (0, 3), 0.99)
    assert sets[0].tolist() == [[0.0, 3.0]]
    with pytest.warns(UserWarning, match="leaves 3.0 effective rows") as caught:
        model.predict_input([0.5], UNKNOWN, 0, (0, 3), likelihood_ratio=(np.arange(30) < 3, np.ones(1)))
    assert {warning.filename for warning in caught} == {__file__}


def test_groups_of_any_kind():
    X, y = curve(30)
    kinds = ["a", 1] * 15
    model = ConformalGPRegressor(**FIXED).fit(X, y, groups=kinds)
    found = model.predict_input([0.5, 0.5], 2 * UNKNOWN, 0, (0, 3), 0.8, groups=["a", 1])
    alone = [model.predict_input([0.5], UNKNOWN, 0, (0, 3), 0.8, groups=[kind])[0] for kind in ("a", 1)]
    for one, two in zip(found, alone, strict=True):
        np.testing.assert_array_equal(one, two)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"feature": 1}, "feature must be the name or number of an input, 0 to 0; got 1"),
        ({"feature": "dose"}, "feature must be the name or number of an input, 0 to 0; got 'dose'"),
        ({"feature": True}, "feature must be the name or number"),
        ({"bounds": (3, 0)}, r"bounds must be a pair \(low, high\) of finite numbers, low below high, got \(3, 0\)"),
        ({"bounds": (0, np.inf)}, "bounds must be a pair"),
        ({"bounds": 3}, "bounds must be a pair"),
        ({"bounds": (0, 1, 2)}, "bounds must be a pair"),
        ({"confidence_level": [0.8, 0.9]}, "confidence_level must be one number for predict_input"),
        ({"y": [0.1, 0.2]}, "inconsistent numbers of samples"),
        ({"y": [np.nan]}, "y contains NaN in row 0"),
        ({"X": None}, "Expected 2D array"),
        ({"X": [np.nan]}, "Expected 2D array"),
        ({"X": [[0.0, 1.0]]}, "X has 2 features, but .* is expecting 1"),
        ({"X": [["0.5"]]}, "X holds '0.5' in row 0, column 0; inputs must be numbers"),
        ({"bounds": ("0", "3")}, "bounds must be a pair"),
        ({"groups": ["a"]}, "groups was given, but fit was called without groups"),
        ({"groups": ["a", "b"]}, "groups must hold one value for each of the 1 rows, got 2"),
        ({"likelihood_ratio": (np.ones(30), np.ones(2))}, "one number for each of the 1 test rows"),
    ],
)
def test_wrong_arguments(arguments, message):
    X, y = curve(30)
    model = ConformalGPRegressor(**FIXED).fit(X, y)
    with pytest.raises(ValueError, match=message):
        model.predict_input(**{"y": [0.5], "X": UNKNOWN, "feature": 0, "bounds": (0, 3)} | arguments)
