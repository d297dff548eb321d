"""Designs on a grid: the guarantee is for rows at its levels, and rows between them come with a warning."""

import warnings

import numpy as np
import pandas as pd
import pytest

from conformal_gp import ConformalGPRegressor, ExtrapolationWarning

LEVELS = np.stack(np.meshgrid(*[[0.0, 0.5, 1.0]] * 3), axis=-1).reshape(-1, 3)
RANDOM = np.random.default_rng(0).uniform(size=(25, 3))


def response(X):
    return X[:, 0] ** 2 + np.sin(3.0 * X[:, 1]) + X[:, 2]


def fitted(X, **options):
    return ConformalGPRegressor(kernel="se", tuning="fixed", noise_variance=1e-6, **options).fit(X, response(X))


def test_a_full_factorial_design():
    model = fitted(LEVELS, scale_inputs=False)
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
    model = ConformalGPRegressor("se", tuning="fixed", noise_variance=0.1).fit(frame, response(LEVELS))
    assert "27 of 27 combinations" in model.guarantee_
    with pytest.warns(ExtrapolationWarning, match="1 of 1 rows lie between the levels"):
        model.predict(frame.iloc[:1].assign(a=0.3))


def test_a_central_composite_design_with_repeated_centre_runs():
    corners = 2.0 * LEVELS[(LEVELS != 0.5).all(axis=1)] - 1.0
    star = 2.0**0.75 * np.vstack([np.eye(3), -np.eye(3)])
    model = fitted(np.vstack([corners, star, np.zeros((6, 3))]))
    assert "are a grid (5 levels of 'x0', 5 of 'x1', 5 of 'x2'; 15 of 125 combinations)" in model.guarantee_
    with pytest.warns(ExtrapolationWarning, match="1 of 1 rows lie between the levels"):
        model.predict([[0.5, 0.5, 0.5]])


@pytest.mark.parametrize("X", [RANDOM, np.vstack([LEVELS, RANDOM]), np.vstack([LEVELS, LEVELS])])
def test_other_rows(X):
    """Random rows, random rows beside a grid, and runs that are repeated."""
    assert "grid" not in fitted(X).guarantee_


def test_random_rows_that_come_later():
    model = fitted(LEVELS, scale_inputs=False).partial_fit(RANDOM, response(RANDOM))
    assert "grid" not in model.guarantee_
    with warnings.catch_warnings(action="error", category=ExtrapolationWarning):
        model.predict(RANDOM)


def test_it_is_saved():
    from conformal_gp.saving import dumps, loads

    model = loads(dumps(fitted(LEVELS)))
    with pytest.warns(ExtrapolationWarning, match="lie between the levels"):
        model.predict(RANDOM)
