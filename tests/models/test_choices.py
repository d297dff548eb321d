"""Transformations that tuning rows choose: by likelihood, and by intervals in units of the target."""

import numpy as np
import pytest

from conformal_gp.gp.inputs import Scaling
from conformal_gp.models.choices import TOP
from conformal_gp.models.learning import learn
from conformal_gp.models.settings import Settings
from conformal_gp.rows import Rows


def transformation(X, y):
    settings = Settings(["matern52"], "constant", None, 2.0, False, 1, 1, target_transform="auto")
    return learn(settings, Rows(X), Scaling(), y, y.size, np.random.RandomState(0)).transformation


@pytest.mark.parametrize("seed", range(3))
def test_an_exponent_of_huge_intervals_is_not_taken(seed):
    """Logarithms are likelier, and their intervals far too wide where targets are large."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((800, 3)) * np.exp(rng.standard_normal((800, 1)))
    y = (np.abs(np.sin(X[:, 0]) + X[:, 1] * X[:, 2]) + 0.2) ** 2 * np.exp(0.2 * rng.standard_normal(800))
    assert getattr(transformation(X, y), "exponent", 1.0) >= 0.3


def test_transformed_back_far_beyond_the_tuning_targets_is_linear():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((200, 2))
    y = np.exp(X[:, 0] + 0.3 * rng.standard_normal(200))
    learnt = transformation(X, y)
    z = learnt.forward(np.array([TOP * y.max()]))
    np.testing.assert_allclose(learnt.backward(z + 5.0), 6.0 * TOP * y.max(), rtol=0.1)
