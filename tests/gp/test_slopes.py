"""Slopes of a bag's likelihood, against scikit-learn's gradients over explicit inverses of the rows that are kept."""

import numpy as np
import pytest
from sklearn.gaussian_process.kernels import RBF, ConstantKernel, Matern

from conformal_gp.gp.covariance import stationary_shape
from conformal_gp.gp.slopes import Slopes

rng = np.random.default_rng(0)
X, y = rng.standard_normal((13, 3)), rng.standard_normal(13)
KERNELS = [RBF([1.0, 2.0, 0.7]), Matern([1.0, 2.0, 0.7], nu=1.5), Matern([1.0, 2.0, 0.7], nu=2.5), RBF(1.3)]


def projected_inverse(kernel, noise, X, H):
    C = np.linalg.inv(kernel(X) + noise * np.eye(len(X)))
    return C - C @ H @ np.linalg.solve(H.T @ C @ H, H.T @ C)


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
    slopes = Slopes(stationary_shape(kernel, scale), noise, X[:-1], P, P @ y[:-1])
    labels = y[:-1].copy()
    if aside >= 0:
        labels[aside] -= (P @ labels)[aside] / P[aside, aside]
    aa, ab, bb, trace = slopes.beside(X[-1:], weights[None], np.array([variance]), np.array([aside]), labels[None])[0]

    kept = np.array([i for i in range(13) if i != aside])
    P = projected_inverse(amplified, noise, X[kept], H[kept])
    labels = y[kept]
    labels[-1] += t - (P @ labels)[-1] / P[-1, -1]
    w = P @ labels
    _, gradient = amplified(X[kept], eval_gradient=True)
    gradient = np.concatenate([gradient, noise * np.eye(kept.size)[:, :, None]], axis=2)
    np.testing.assert_allclose(aa + 2.0 * ab * t + bb * t**2, np.einsum("i,ijk,j->k", w, gradient, w), rtol=1e-9)
    np.testing.assert_allclose(trace, np.einsum("ij,ijk->k", P, gradient), rtol=1e-9)


def test_a_row_that_is_set_aside_takes_no_digits_from_the_others_however_far_out_its_label_is():
    kernel, noise, none = KERNELS[2], 1e-6, np.zeros((13, 0))
    P = projected_inverse(kernel, noise, X, none)
    answers = []
    for label in (0.0, 1e12):
        labels = y.copy()
        labels[4] = label
        replaced = labels.copy()
        replaced[4] = y[4] - (P @ y)[4] / P[4, 4]
        slopes = Slopes(stationary_shape(kernel, 1.0), noise, X, P, P @ labels)
        answers.append(slopes.beside(X[:1], np.zeros((1, 13)), np.array([np.inf]), np.array([4]), replaced[None]))
    np.testing.assert_array_equal(*answers)


def test_slopes_of_training_rows_alone():
    """No test row, none set aside."""
    kernel, noise, H = KERNELS[2], 0.1, np.ones((13, 1))
    P = projected_inverse(kernel, noise, X, H)
    squares, _, _, trace = Slopes(stationary_shape(kernel, 1.0), noise, X, P, P @ y).training
    _, gradient = kernel(X, eval_gradient=True)
    np.testing.assert_allclose(squares[:-1], np.einsum("i,ijk,j->k", P @ y, gradient, P @ y), rtol=1e-9)
    np.testing.assert_allclose(trace[:-1], np.einsum("ij,ijk->k", P, gradient), rtol=1e-9)
    assert trace[-1] == pytest.approx(noise * np.trace(P))


def test_kernels_of_which_slopes_are_not_known_have_no_shape():
    """Their steps are all tried."""
    assert stationary_shape(Matern(1.0, nu=0.5), 1.0) is None
