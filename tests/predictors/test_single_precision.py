"""Intervals by way of single precision are those of double precision."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose
from sklearn.gaussian_process.kernels import RBF, ConstantKernel

from conformal_gp import ConformalGPRegressor
from conformal_gp.conformal.lines import normalised_residual_lines
from conformal_gp.conformal.regions import hulls
from conformal_gp.predictors import single_precision as rough


def problem(seed: int, n_rows: int = 60, n_new: int = 7, condition: float = 1.0):
    """A lower triangular root, residuals and test rows, of any scale."""
    rng = np.random.default_rng(seed)
    root = np.tril(rng.standard_normal((n_rows, n_rows))) * np.exp(condition * rng.standard_normal(n_rows))
    alpha = rng.standard_normal(n_rows) * np.exp(rng.standard_normal(n_rows))
    half = rng.standard_normal((n_new, n_rows)) * np.exp(rng.uniform(-3, 3, (n_new, 1)))
    variance = np.exp(rng.uniform(-2, 2, n_new))
    return np.asfortranarray(root), alpha, half, variance


def cosines_of(rows: rough.RoughRows, half: np.ndarray, error: np.ndarray | float = 0.0) -> np.ndarray:
    unit = half / np.linalg.norm(half, axis=1, keepdims=True)
    exact = unit @ (rows.root / np.linalg.norm(rows.root, axis=0))
    return (exact + error)[:, rows.numbers].astype(np.float32)


def by_lines(root, numbers, alpha, diagonal, half, variance, ranks):
    """The same in double precision throughout."""
    weights = (half @ root)[:, numbers]
    ends = hulls(normalised_residual_lines(alpha, diagonal, weights, np.zeros(variance.size), variance, 2.0), ranks)
    return np.stack([-ends[:, 0], ends[:, 1]])


@settings(max_examples=150, deadline=None)
@given(seed=st.integers(0, 10**6), some=st.booleans(), data=st.data())
def test_ends_are_those_of_double_precision(seed, some, data):
    root, alpha, half, variance = problem(seed, condition=data.draw(st.sampled_from([0.0, 1.0, 3.0])))
    numbers = np.arange(5, 45) if some else np.arange(60)
    diagonal = np.einsum("ij,ij->j", root, root)[numbers]
    ranks = data.draw(st.lists(st.integers(0, numbers.size), min_size=1, max_size=4))
    rows = rough.prepare(numbers, root, alpha[numbers], diagonal)
    found = rough.ends(rows, cosines_of(rows, half), half, np.sum(half**2, axis=1), variance, ranks)
    assert_allclose(found, by_lines(root, numbers, alpha[numbers], diagonal, half, variance, ranks), rtol=1e-9)


@pytest.mark.parametrize("seed", range(20))
def test_any_error_within_the_bound_is_made_good(seed):
    root, alpha, half, variance = problem(seed)
    diagonal = np.einsum("ij,ij->j", root, root)
    rows = rough.prepare(np.arange(60), root, alpha, diagonal)
    error = np.random.default_rng(seed).choice([-1.0, 1.0], (half.shape[0], 60)) * 63 * rough.ROUNDOFF
    ranks = [1, 6, 12, 30, 60]
    found = rough.ends(rows, cosines_of(rows, half, error), half, np.sum(half**2, axis=1), variance, ranks)
    assert_allclose(found, by_lines(root, np.arange(60), alpha, diagonal, half, variance, ranks), rtol=1e-9)


@pytest.mark.parametrize("seed", range(5))
def test_rows_closer_than_the_error_are_told_apart(seed):
    root, alpha, half, variance = problem(seed, n_new=1)
    diagonal = np.einsum("ij,ij->j", root, root)
    z = (half @ root)[0] / np.sqrt(variance * diagonal)
    closeness = 1.0 + 1e-7 * np.random.default_rng(seed).uniform(size=60)
    alpha = (
        np.sqrt(diagonal) * np.exp(np.arcsinh(z)) * closeness
    )  # all reach equally far above, but for a ten millionth
    rows = rough.prepare(np.arange(60), root, alpha, diagonal)
    error = np.random.default_rng(seed).uniform(-63, 63, (1, 60)) * rough.ROUNDOFF
    ranks = [1, 6, 12, 30, 60]
    found = rough.ends(rows, cosines_of(rows, half, error), half, np.sum(half**2, axis=1), variance, ranks)
    assert_allclose(found, by_lines(root, np.arange(60), alpha, diagonal, half, variance, ranks), rtol=1e-10)


def test_ties_and_residuals_of_zero():
    root, alpha, half, variance = problem(3)
    alpha[:50] = 0.0
    alpha[50:55] = 1e-200
    diagonal = np.einsum("ij,ij->j", root, root)
    rows = rough.prepare(np.arange(60), root, alpha, diagonal)
    ranks = [3, 5, 7, 10, 11, 60]
    found = rough.ends(rows, cosines_of(rows, half), half, np.sum(half**2, axis=1), variance, ranks)
    assert_allclose(found, by_lines(root, np.arange(60), alpha, diagonal, half, variance, ranks), rtol=1e-9)


def test_it_does_not_pay_where_single_precision_tells_too_little():
    root, alpha, half, variance = problem(0)
    rows = rough.prepare(np.arange(60), root, alpha, np.einsum("ij,ij->j", root, root))
    square = np.sum(half**2, axis=1)
    assert rough.pays(rows, square, variance)
    assert not rough.pays(rows, square * 1e12, variance)
    assert not rough.pays(rows, square, np.where(np.arange(variance.size) == 0, np.inf, variance))


@pytest.mark.parametrize("mean", ["zero", "constant", "linear"])
@pytest.mark.parametrize("tuning", ["fixed", "holdout"])
@pytest.mark.parametrize("unit", [1e-60, 1.0, 1e60])
def test_the_regressor_gives_the_same_intervals_either_way(monkeypatch, mean, tuning, unit):
    rng = np.random.default_rng(1)
    X = rng.uniform(-2, 2, (260, 3))
    y = unit * (np.sin(2.0 * X[:, 0]) + X[:, 1] + 0.1 * rng.standard_normal(260))
    X_new = rng.uniform(-4, 4, (50, 3))
    kernel = ConstantKernel(unit**2) * RBF(1.0)
    model = ConformalGPRegressor(kernel, mean=mean, tuning="fixed", noise_variance=0.02 * unit**2, scale_inputs=False)
    if tuning == "holdout":
        model = ConformalGPRegressor("se", mean=mean, tuning=tuning, design=0.4, n_restarts=0, random_state=0)
    model.fit(X, y)
    monkeypatch.setattr("conformal_gp.predictors.single.ROWS_FOR_SINGLE", 10)
    calls = []
    monkeypatch.setattr(rough, "ends", lambda *a, ends=rough.ends: calls.append(1) or ends(*a))
    quick = model.predict_interval(X_new, [0.5, 0.9, 0.95])
    assert calls
    monkeypatch.setattr("conformal_gp.predictors.single.ROWS_FOR_SINGLE", 10**9)
    assert_allclose(quick, model.predict_interval(X_new, [0.5, 0.9, 0.95]), rtol=1e-9, atol=1e-9 * unit)
