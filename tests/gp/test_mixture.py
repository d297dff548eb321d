"""Likelihoods and predictions of many draws, against explicit ones."""

import mpmath
import numpy as np
import pytest
from test_sampling import data, target_of

from conformal_gp.gp.mixture import Mixture
from integrated_oracle import box_cox, covariance, restricted_log_likelihood


@pytest.mark.parametrize("exponent", [False, True])
def test_likelihood_is_the_explicit_one(exponent):
    X, y = data()
    target = target_of(X, y, exponent=exponent, blended=True, sloped=True)
    theta = target.prior.sample(5, np.random.RandomState(1))
    mixture = Mixture(target.rows, theta)
    density = target.prior.log_density(theta)[0]
    expected = []
    for draw in theta:
        A = covariance(X, np.exp(draw[:2]), draw[2], draw[3], np.exp(draw[4])) + np.exp(draw[5]) * np.eye(len(y))
        z, slope = y, 0.0
        if exponent:
            z, slope = box_cox(np.exp(y), draw[6]), (draw[6] - 1.0) * y.sum() - draw[6] * y.mean()
        expected.append(restricted_log_likelihood(A, np.ones((len(y), 1)), z, False)[0] + slope)
    for found in (target(theta)[0] - density, mixture.log_likelihood):
        difference = found - expected  # H has orthonormal columns here, ones there: a constant
        assert np.allclose(difference, difference[0], atol=1e-6)


def test_joint_covariance():
    """The diagonal of the joint covariance is the predictive variance, and its mean the predictive mean."""
    X, y = data()
    target = target_of(X, y)
    theta = target.prior.sample(2, np.random.RandomState(2))
    mixture = Mixture(target.rows, theta)
    new = np.random.default_rng(4).normal(size=(5, 2))
    H = np.full((5, 1), len(y) ** -0.5)
    prediction = mixture.predict(new, H, None)
    mean, joint = mixture.joint(new, H, None, 1)
    assert np.allclose(np.diagonal(joint), mixture.scale[1] * prediction.variance[1])
    assert np.allclose(mean, prediction.mean[1])
    assert np.linalg.eigvalsh(joint).min() > 0.0


def test_far_out_inputs_leave_other_rows_their_digits():
    """Two rows that are equal but for their noise, far out: against 50-digit arithmetic."""
    X, y = data(8)
    X[-2:, 0] = 2.0**27
    X[-2:, 1] = 0.5
    target = target_of(X, y, fixed_noise=1e-3)
    theta = np.array([[0.1, 0.3, 0.0]])
    mixture = Mixture(target.rows, theta)
    with mpmath.workdps(50):
        A = mpmath.matrix(covariance(X, np.exp(theta[0, :2]), -np.inf, np.inf, 0.0).tolist()) + 1e-3 * mpmath.eye(8)
        Z = mpmath.matrix((X / np.exp(theta[0, :2])).tolist())
        C = (A + Z * Z.T) ** -1
        H = mpmath.ones(8, 1)
        P = C - C * H * (H.T * C * H) ** -1 * H.T * C
        alpha = np.array((P * mpmath.matrix(y.tolist())).tolist(), dtype=float).ravel()
        diagonal = np.array([P[i, i] for i in range(8)], dtype=float)
    np.testing.assert_allclose(mixture.alpha[0], alpha, rtol=1e-6)
    np.testing.assert_allclose(mixture.diagonal[0], diagonal, rtol=1e-6)
