"""Inducing inputs."""

import numpy as np
import pytest
from sklearn.gaussian_process.kernels import RBF, ConstantKernel, DotProduct, Matern, WhiteKernel

from conformal_gp.gp.covariance import shared_variance
from conformal_gp.gp.lowrank import centres, independent, unexplained_variance


def conditional_variance(kernel, X, Z):
    """Variance at the rows of X given the values at Z."""
    cross = kernel(X, Z)
    return kernel.diag(X) - np.einsum("ij,ji->i", cross, np.linalg.solve(kernel(Z, Z), cross.T))


def test_each_choice_has_the_largest_variance_given_those_before():
    kernel = ConstantKernel(2.0) * Matern(0.8, nu=1.5) + 0.1 * DotProduct(1.0)
    X = np.random.default_rng(0).normal(size=(60, 2))
    chosen = independent(kernel, X)
    np.testing.assert_array_equal(chosen[0], X[np.argmax(kernel.diag(X))])
    for n in range(1, 12):
        np.testing.assert_array_equal(chosen[n], X[np.argmax(conditional_variance(kernel, X, chosen[:n]))])


def test_inputs_that_add_nothing_are_left_out():
    X = np.random.default_rng(1).normal(size=(20, 2))
    np.testing.assert_array_equal(np.unique(independent(RBF(0.3), np.vstack([X, X])), axis=0), np.unique(X, axis=0))
    smooth = independent(RBF(50.0), X)
    assert len(smooth) < 20
    assert np.linalg.cond(RBF(50.0)(smooth)) < 1e12


def test_there_are_as_many_centres_as_asked_for_and_inputs_allow():
    X = np.random.default_rng(2).normal(size=(100, 3))
    assert centres(RBF(0.5), X, 15, np.random.RandomState(0)).shape == (15, 3)
    assert centres(RBF(0.5), X[:6], 15, np.random.RandomState(0)).shape == (6, 3)
    repeated = np.repeat(X[:4], 10, axis=0)
    assert centres(RBF(0.5), repeated, 15, np.random.RandomState(0)).shape[0] <= 4


def test_centres_explain_more_than_random_inputs():
    X = np.random.default_rng(3).normal(size=(500, 4))
    kernel = RBF(1.5)
    by_centres = conditional_variance(kernel, X, centres(kernel, X, 60, np.random.RandomState(0)))
    by_others = conditional_variance(kernel, X, X[:60])
    assert by_centres.mean() < 0.9 * by_others.mean()
    assert unexplained_variance(kernel, X, X[:60]) == pytest.approx(by_others.mean(), rel=1e-6)


def test_near_duplicates_are_dropped():
    Z = np.array([[0.0], [1.0], [1.0 + 1e-9], [2.0]])
    assert len(independent(RBF(1.0), Z)) == 3


def test_shared_variance_is_the_covariance_with_an_equal_input():
    X = np.random.default_rng(4).normal(size=(5, 2))
    for kernel in (
        RBF(1.0),
        RBF(1.0) + WhiteKernel(0.3),
        (RBF(1.0) + WhiteKernel(0.3)) * DotProduct(1.0),
        (0.5 * DotProduct(1.0) + WhiteKernel(0.1)) ** 2,
    ):
        expected = [kernel(x[None], x[None])[0, 0] for x in X]
        np.testing.assert_allclose(shared_variance(kernel, X), expected)
