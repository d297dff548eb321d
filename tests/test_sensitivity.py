"""Sobol indices of the mean, on Ishigami's function, whose indices are known."""

import numpy as np
import pytest

from conformal_gp import ConformalGPRegressor

pytest.importorskip("SALib", reason="the extra 'sensitivity' is not installed")

from conformal_gp.sensitivity import sobol_indices

A, B = 7.0, 0.1
BOUNDS = [[-np.pi, np.pi]] * 3


def ishigami(X):
    return np.sin(X[:, 0]) + A * np.sin(X[:, 1]) ** 2 + B * X[:, 2] ** 4 * np.sin(X[:, 0])


@pytest.fixture(scope="module")
def model():
    X = np.random.default_rng(0).uniform(-np.pi, np.pi, (400, 3))
    return ConformalGPRegressor("se", tuning="train", noise_variance=0, n_restarts=1, random_state=0).fit(
        X, ishigami(X)
    )


def test_indices_of_ishigami(model):
    found = sobol_indices(model, BOUNDS, n_points=4096)
    one, two = 0.5 * (1 + B * np.pi**4 / 5) ** 2, A**2 / 8
    both = 8 * B**2 * np.pi**8 / 225
    variance = one + two + both
    np.testing.assert_allclose(found.first, np.array([one, two, 0.0]) / variance, atol=0.03)
    np.testing.assert_allclose(found.total, np.array([one + both, two, both]) / variance, atol=0.03)
    assert found.names == ["x0", "x1", "x2"]
    assert (found.first_error < 0.15).all()


def test_the_range_of_the_training_rows_is_the_default(model):
    given = sobol_indices(model, model.input_range_.T, n_points=64)
    np.testing.assert_array_equal(sobol_indices(model, n_points=64).total, given.total)


@pytest.mark.parametrize("bounds", [[[0, 1]] * 2, [[0, 1], [1, 1], [0, 1]]])
def test_bounds_are_checked(model, bounds):
    with pytest.raises(ValueError, match="bounds must be 3 pairs"):
        sobol_indices(model, bounds)


def test_categories_are_refused():
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame({"kind": pandas.Categorical(list("ab") * 6), "x": np.arange(12.0)})
    model = ConformalGPRegressor(tuning="holdout", n_restarts=0, random_state=0).fit(frame, np.arange(12.0) ** 2)
    with pytest.raises(ValueError, match="categories"):
        sobol_indices(model)
