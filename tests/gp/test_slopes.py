"""Slopes of a bag's likelihood, against scikit-learn's gradients over explicit inverses of the rows that are kept."""

import numpy as np
import pytest
from sklearn.gaussian_process.kernels import RBF, ConstantKernel, Matern

from conformal_gp.gp.covariance import stationary_shape
from conformal_gp.gp.slopes import beside, slopes_and_trace

rng = np.random.default_rng(0)
X, y = rng.standard_normal((13, 3)), rng.standard_normal(13)
KERNELS = [RBF([1.0, 2.0, 0.7]), Matern([1.0, 2.0, 0.7], nu=1.5), Matern([1.0, 2.0, 0.7], nu=2.5), RBF(1.3)]


def projected_inverse(kernel, noise, X, H):
    C = np.linalg.inv(kernel(X) + noise * np.eye(len(X)))
    return C - C @ H @ np.linalg.solve(H.T @ C @ H, H.T @ C)


def slopes(kernel, scale, noise, rows, P, x, weights, variance, aside, labels):
    """Slopes beside a test row with a training row set aside, whose label is replaced in ``labels``."""
    shape, _, lengths = stationary_shape(kernel, scale)
    columns, new = np.ascontiguousarray((rows / lengths).T), np.ascontiguousarray(x[None] / lengths)
    noise, none = np.full((2, len(rows)), noise), np.empty((len(rows), 0))
    S, trace = slopes_and_trace(columns, P, shape, scale, noise, none)
    own = P[aside] if aside >= 0 else np.zeros(len(rows))
    others = none, new, noise[:, 0].copy(), none[0], weights[None], np.array([variance]), np.array([aside])
    found = beside(columns, own[None], (P @ labels)[None], S, trace, shape, scale, noise, *others)[0]
    if np.ndim(lengths) == 0:  # the slope of one length scale is the sum over inputs
        return np.column_stack([found[:, :-1].sum(axis=1), found[:, -1]])
    return found


@pytest.mark.parametrize("kernel", KERNELS, ids=str)
@pytest.mark.parametrize("scale", [1.0, 2.5])
@pytest.mark.parametrize("aside", [-1, 0, 7, 11])
def test_slopes_beside_a_test_row_are_those_of_the_rows_that_are_kept(kernel, scale, aside):
    """The last row is the test row; its label is so far from what the others predict."""
    noise, t, H = 0.1, 0.8, np.hstack([np.ones((13, 1)), X])
    amplified = ConstantKernel(scale, "fixed") * kernel
    P = projected_inverse(amplified, noise, X[:-1], H[:-1])
    whole = projected_inverse(amplified, noise, X, H)
    variance = 1.0 / whole[-1, -1]
    weights = -whole[-1, :-1] * variance
    labels = y[:-1].copy()
    if aside >= 0:
        labels[aside] -= (P @ labels)[aside] / P[aside, aside]
    aa, ab, bb, trace = slopes(kernel, scale, noise, X[:-1], P, X[-1], weights, variance, aside, labels)

    kept = np.array([i for i in range(13) if i != aside])
    P = projected_inverse(amplified, noise, X[kept], H[kept])
    labels = y[kept]
    labels[-1] += t - (P @ labels)[-1] / P[-1, -1]
    w = P @ labels
    _, gradient = amplified(X[kept], eval_gradient=True)
    gradient = np.concatenate([gradient, noise * np.eye(kept.size)[:, :, None]], axis=2)
    np.testing.assert_allclose(aa + 2.0 * ab * t + bb * t**2, np.einsum("i,ijk,j->k", w, gradient, w), rtol=1e-9)
    np.testing.assert_allclose(trace, np.einsum("ij,ijk->k", P, gradient), rtol=1e-9)


def test_slopes_of_training_rows_alone():
    """No test row, none set aside."""
    kernel, noise, H = KERNELS[2], 0.1, np.ones((13, 1))
    P = projected_inverse(kernel, noise, X, H)
    squares, _, _, trace = slopes(kernel, 1.0, noise, X, P, X[0], np.zeros(13), np.inf, -1, y)
    _, gradient = kernel(X, eval_gradient=True)
    np.testing.assert_allclose(squares[:-1], np.einsum("i,ijk,j->k", P @ y, gradient, P @ y), rtol=1e-9)
    np.testing.assert_allclose(trace[:-1], np.einsum("ij,ijk->k", P, gradient), rtol=1e-9)
    assert trace[-1] == pytest.approx(noise * np.trace(P))


def test_kernels_of_which_slopes_are_not_known_have_no_shape():
    """Their steps are all tried."""
    assert stationary_shape(Matern(1.0, nu=0.5), 1.0) is None
