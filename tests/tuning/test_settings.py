"""Settings, and what they decide."""

import numpy as np
import pytest
from sklearn.gaussian_process.kernels import RBF, ConstantKernel

from conformal_gp.gp.inputs import Inputs, Scaling, points
from conformal_gp.tuning.settings import (
    Settings,
    explained,
    label_variance,
)


def settings(**options):
    """Settings of a default regressor, but for these."""
    given = {
        "kernels": ["se"],
        "mean": "zero",
        "noise_variance": None,
        "gammas": [2.0],
        "scale_inputs": True,
        "n_restarts": 0,
        "n_jobs": 1,
    }
    return Settings(**{**given, **options})


def test_names_become_kernels_with_a_length_for_each_input_or_one():
    np.testing.assert_array_equal(settings().kernel("se", 3, 2.0).k2.length_scale, [2.0, 2.0, 2.0])
    assert settings(each_length_scale=False).kernel("se", 3, 2.0).k2.length_scale == 2.0
    own = ConstantKernel(3.0) * RBF(0.2)
    found = settings().kernel(own, 3, 2.0)
    assert found == own
    assert found is not own


def test_only_one_value_where_nothing_chooses():
    assert settings().only([3.0], "gamma", "train") == 3.0
    with pytest.raises(ValueError, match="gamma must be a single value with tuning='train', got 2"):
        settings().only([1.0, 2.0], "gamma", "train")


def test_labels_that_the_mean_explains_have_no_variance_and_a_warning():
    X = np.random.default_rng(0).normal(size=(30, 2))
    y = 1e5 + X @ [2.0, -1.0]
    linear, constant = (Inputs(points(X), Scaling.none(X), mean) for mean in ("linear", "constant"))
    assert label_variance(linear, y) == 0.0
    assert label_variance(constant, y) == pytest.approx(np.var(y))
    (warning,) = explained(linear, y, "linear")
    assert "mean='linear'" in warning
    assert explained(constant, y, "constant") == []
