"""Centred lines against the vectors a and b of the paper."""

import numpy as np
import pytest
from sklearn.gaussian_process.kernels import RBF

import oracle
from cases import GAMMAS, INF, make_data
from conformal_gp.conformal.lines import normalised_residual_lines

NOISE = 0.2


def posterior_parts(kernel, X, y, inputs):
    """alpha, diag C, weights, means and variances of a zero-mean process, with dense matrices."""
    C = np.linalg.inv(kernel(X) + NOISE * np.eye(len(X)))
    K = kernel(inputs, X)
    weights = K @ C
    variance = kernel.diag(inputs) + NOISE - (K * weights).sum(axis=1)
    return C @ y, np.diag(C).copy(), weights, weights @ y, variance


@pytest.mark.parametrize("gamma", GAMMAS)
def test_normalised_residuals_are_the_lines_of_the_paper(gamma):
    X, y = make_data(1, 10)
    inputs, kernel = np.array([[0.2, 0.4], [-1.0, 1.0], [6.0, 6.0]]), RBF(0.9)
    found = normalised_residual_lines(*posterior_parts(kernel, X, y, inputs), gamma=gamma)
    a, b = (np.array(part) for part in zip(*(oracle.lines(kernel, NOISE, X, y, x, gamma) for x in inputs), strict=True))
    centre, unit = -a[:, -1] / b[:, -1], b[:, -1:]  # the test row's score is 0 there, and its slope is 1
    np.testing.assert_allclose(found.centre, centre, rtol=1e-9)
    np.testing.assert_allclose(found.offset, (a + b * centre[:, None])[:, :-1] / unit, rtol=1e-8, atol=1e-12)
    np.testing.assert_allclose(found.slope, b[:, :-1] / unit, rtol=1e-8, atol=1e-12)


def test_gamma_two_keeps_every_slope_below_one():
    rng = np.random.default_rng(3)
    diagonal, weights = rng.uniform(1e-6, 10, 200), rng.normal(0, 100, (20, 200))
    lines = normalised_residual_lines(
        rng.normal(size=200), diagonal, weights, np.zeros(20), rng.uniform(1e-3, 10, 20), gamma=2.0
    )
    assert (np.abs(lines.slope) < 1).all()


@pytest.mark.parametrize("gamma", GAMMAS)
def test_an_infinite_variance_lets_every_row_cover_every_label(gamma):
    lines = normalised_residual_lines(
        np.array([1.0, -2.0]), np.array([0.5, 0.7]), np.array([[0.3, 0.1]]), np.zeros(1), np.array([INF]), gamma=gamma
    )
    for t in (-1e9, -1.0, 0.0, 2.0, 1e9):
        assert (np.abs(lines.offset + lines.slope * t) >= abs(t)).all()
