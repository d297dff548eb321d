"""Models that are saved and loaded in memory, and what it means that they answer the same."""

import io

import numpy as np
from sklearn.gaussian_process.kernels import (
    RBF,
)

from conformal_gp import SparseConformalGPRegressor
from conformal_gp.persistence import load_model, save_model
from conformal_gp.persistence.model import Model
from conformal_gp.tables.columns import Columns

RNG = np.random.default_rng(5)
X = RNG.normal(size=(40, 2))
Y = np.sin(X[:, 0]) + 0.3 * X[:, 1] + 0.1 * RNG.normal(size=40)
NEW = 1.5 * RNG.normal(size=(12, 2))
LABELS = RNG.normal(size=12)


class Own(RBF):
    """A user's kernel."""


def small(**parameters) -> SparseConformalGPRegressor:
    """A low-rank model of few rows."""
    settings = {"n_inducing": 8, "design": 15, "n_restarts": 0, "random_state": 0}
    return SparseConformalGPRegressor(**settings | parameters)


def saved(model: Model, columns: Columns | None = None) -> bytes:
    file = io.BytesIO()
    save_model(model, file, columns=columns)
    return file.getvalue()


def loaded(content: bytes) -> Model:
    return load_model(io.BytesIO(content))


def assert_same_answers(one: Model, other: Model) -> None:
    assert type(one) is type(other)
    for ours, theirs in zip(one.predict(NEW, return_std=True), other.predict(NEW, return_std=True), strict=True):
        np.testing.assert_array_equal(ours, theirs)
    np.testing.assert_array_equal(one.predict_interval(NEW, [0.5, 0.9]), other.predict_interval(NEW, [0.5, 0.9]))
    for ours, theirs in zip(one.predict_set(NEW, 0.8), other.predict_set(NEW, 0.8), strict=True):
        np.testing.assert_array_equal(ours, theirs)
    np.testing.assert_array_equal(one.predict_p(NEW, LABELS), other.predict_p(NEW, LABELS))
    learnt = {name for name in vars(one) if name.endswith("_")}
    assert learnt == {name for name in vars(other) if name.endswith("_")}
    for name in learnt:
        np.testing.assert_array_equal(getattr(one, name), getattr(other, name), err_msg=name)
