"""Units of targets and inputs, origins of inputs and the order of rows change no interval."""

import warnings

import numpy as np
import pytest

from bags import few_draws
from conformal_gp import ConformalGPRegressor

FIXED = {"kernel": "se", "tuning": "fixed", "noise_variance": 0.1}
MODELS = {
    "draws from the prior": (12, {}),
    "draws from the prior, nn": (12, {"kernel": "nn"}),
    "chain": (40, {}),
    "holdout": (150, {"tuning": "holdout", "target_transform": None, "difficulty": None}),
    "holdout, all chosen": (420, {"tuning": "holdout"}),
    "holdout, box-cox": (150, {"tuning": "holdout", "target_transform": "box-cox"}),
    "holdout, yeo-johnson": (150, {"tuning": "holdout", "target_transform": "yeo-johnson"}),
    "low rank": (420, {"tuning": "holdout", "low_rank": 40}),
    "train": (60, {"tuning": "train"}),
    "fixed": (60, FIXED),
    "fixed, by tuning rows": (60, {**FIXED, "tuning_rows": 30}),
}
CHANGES = {
    "tiny targets": {"target": 1e-170},
    "small targets": {"target": 1e-32},
    "huge targets": {"target": 1e150},
    "targets": {"target": 1000.0},
    "inputs": {"factor": np.array([1e-3, 7.0, 1e5])},
    "origins": {"factor": 1.8, "shift": 32.0},
    "order": {"order": 5},
}


def intervals(name, target=1.0, factor=1.0, shift=0.0, order=None):
    """In the units of a first fit."""
    n, options = MODELS[name]
    rng = np.random.default_rng(1)
    X = rng.uniform(size=(n + 20, 3))
    noise = 0.3 * (0.2 + X[:, 2]) * rng.standard_normal(n + 20)
    y = target * np.exp(1.0 + np.sin(4.0 * X[:, 0]) + X[:, 1] + noise)
    X = X * factor + shift
    rows = np.arange(n) if order is None else np.random.default_rng(order).permutation(n)
    with warnings.catch_warnings(action="ignore", category=UserWarning), few_draws():
        model = ConformalGPRegressor(random_state=0, **options).fit(X[rows], y[rows])
        return model.predict_interval(X[n:], 0.8) / target


@pytest.mark.parametrize("name", MODELS)
def test_widths_are_the_same(name):
    expected = intervals(name)
    width = np.diff(expected)[:, 0]
    for change, options in CHANGES.items():
        found = intervals(name, **options)
        np.testing.assert_allclose(np.diff(found)[:, 0], width, rtol=1e-6, err_msg=change)
        assert (np.abs(found - expected).max(axis=1) <= 1e-6 * width).all(), change


def test_extreme_targets_are_saved():
    from conformal_gp.saving import dumps, loads

    X = np.random.default_rng(0).uniform(size=(60, 2))
    model = ConformalGPRegressor(tuning="holdout", n_restarts=0, random_state=0).fit(X, 1e-170 * X[:, 0])
    np.testing.assert_array_equal(loads(dumps(model)).predict(X), model.predict(X))
