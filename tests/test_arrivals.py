"""Rows that partial_fit adds: a warning where they do not look exchangeable with the calibration rows."""

import warnings

import numpy as np
import pytest

from conformal_gp import ConformalGPRegressor
from conformal_gp.arrivals import LEVEL, Arrivals


def rows(rng, n):
    X = rng.uniform(size=(n, 2))
    return X, np.sin(4.0 * X[:, 0]) + X[:, 1] + 0.1 * rng.standard_normal(n)


def fitted(n=60):
    X, y = rows(np.random.default_rng(0), n)
    options = {"tuning": "fixed", "noise_variance": 0.01, "scale_inputs": False}
    return ConformalGPRegressor("se", **options).fit(X, y)


def test_rows_like_the_others_are_added_in_silence():
    model = fitted()
    rng = np.random.default_rng(1)
    with warnings.catch_warnings(action="error"):
        model.partial_fit(*rows(rng, 30))
        for _ in range(10):
            model.partial_fit(*rows(rng, 1))


@pytest.mark.parametrize("one_by_one", [False, True])
def test_rows_near_one_place(one_by_one):
    model = fitted()
    near = 0.1 * rows(np.random.default_rng(2), 25)[0] + 0.85
    targets = np.sin(4.0 * near[:, 0]) + near[:, 1]

    def add():
        if not one_by_one:
            model.partial_fit(near, targets)
            return
        for row in range(25):
            model.partial_fit(near[[row]], targets[[row]])

    with pytest.warns(UserWarning, match="differ from the calibration rows, in .*input 'x[01]'") as caught:
        add()
    assert caught[0].filename == __file__


def test_rows_with_other_errors():
    model = fitted()
    X, y = rows(np.random.default_rng(3), 25)
    with pytest.warns(UserWarning, match="in their errors, by more"):
        model.partial_fit(X, y + 1.0)


def test_rows_in_the_middle_alone():
    model = fitted(200)
    X, y = rows(np.random.default_rng(4), 40)
    with pytest.warns(UserWarning, match="input 'x0'"):
        model.partial_fit(0.5 + 0.1 * (X - 0.5), y)


def test_the_level_is_kept():
    """Warnings of exchangeable rows are about as rare as the level, whichever way rows come."""
    rng = np.random.default_rng(5)
    alarms = []
    for _ in range(4000):
        calibration = rng.standard_normal((30, 3))
        X = rng.standard_normal((12, 3))
        found = Arrivals.none(3)
        for part in np.split(X, rng.choice([1, 3, 12])):
            scores = rng.uniform(size=len(part))
            found = found.extended(scores, part, calibration)
            calibration = np.vstack([calibration, part])
        alarms.append(found.departs().size > 0)
    assert np.mean(alarms) <= 2.0 * LEVEL
