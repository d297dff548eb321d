"""The sparse process of GP-Beta, against dense formulas."""

import numpy as np
from numpy.testing import assert_allclose

from reproduction.comparators.latent_process import (
    JITTER,
    Moments,
    Posterior,
    Projection,
    cholesky_backward,
    covariance,
)


def process(seed=0, inducing=4):
    rng = np.random.default_rng(seed)
    return Posterior(
        log_length=np.array([-0.2]),
        means=rng.normal(size=inducing),
        stds=rng.uniform(0.5, 1.5, inducing),
        centre=rng.normal(size=(inducing, 3)),
        spread=np.tril(rng.normal(size=(3 * inducing, 3 * inducing))),
    )


def rows(seed=1, n=5):
    rng = np.random.default_rng(seed)
    return rng.normal(size=n), rng.uniform(0.2, 1.0, n)


def test_covariance_is_the_mean_of_a_squared_exponential_over_both_gaussians():
    first, second, length = (np.array([0.3]), np.array([0.4])), (np.array([-0.5]), np.array([0.9])), 0.7
    a, b = np.random.default_rng(0).normal(size=(2, 400_000))
    values = np.exp(-((0.3 + 0.4 * a + 0.5 - 0.9 * b) ** 2) / (2 * length**2))
    assert abs(covariance(first, second, length)[0, 0] - values.mean()) < 5 * values.std() / np.sqrt(values.size)


def test_moments_are_those_of_the_dense_formulas():
    posterior, (mean, std) = process(), rows()
    length, inducing = np.exp(-0.2), (posterior.means, posterior.stds)
    between = covariance(inducing, inducing, length) + JITTER * np.eye(4)
    root = np.kron(np.linalg.cholesky(between), np.eye(3))
    moments = Projection(posterior, mean, std).moments
    for i in range(mean.size):
        row = mean[i : i + 1], std[i : i + 1]
        cross = np.kron(covariance(row, inducing, length), np.eye(3))
        own = covariance(row, row, length)[0, 0] + JITTER
        gain = cross @ np.linalg.inv(root @ root.T)
        values_cov = root @ posterior.spread @ posterior.spread.T @ root.T
        assert_allclose(moments.mean[i], gain @ root @ posterior.centre.ravel())
        expected = own * np.eye(3) + gain @ (values_cov - root @ root.T) @ gain.T
        assert_allclose(moments.factor[i] @ moments.factor[i].T, expected, atol=1e-12)


def test_a_posterior_equal_to_the_prior_gives_prior_moments():
    posterior, (mean, std) = process(), rows()
    prior = posterior._replace(centre=np.zeros((4, 3)), spread=np.eye(12))
    moments = Projection(prior, mean, std).moments
    variance = np.exp(-0.2) / np.sqrt(2 * std**2 + np.exp(-0.4)) + JITTER
    assert_allclose(moments.mean, 0)
    assert_allclose(moments.factor, np.sqrt(variance)[:, None, None] * np.eye(3), atol=1e-12)


def test_gradient_through_the_moments():
    posterior, (mean, std) = process(), rows()
    rng = np.random.default_rng(2)
    slope = Moments(rng.normal(size=(5, 3)), np.tril(rng.normal(size=(5, 3, 3))))

    def function(changed):
        moments = Projection(changed, mean, std).moments
        return (slope.mean * moments.mean).sum() + (slope.factor * moments.factor).sum()

    gradient = Projection(posterior, mean, std).backward(slope)
    for name in Posterior._fields:
        value = getattr(posterior, name)
        direction = rng.normal(size=value.shape)
        if name == "spread":
            direction = np.tril(direction)
        ahead, behind = (function(posterior._replace(**{name: value + h * direction})) for h in (1e-6, -1e-6))
        assert_allclose((getattr(gradient, name) * direction).sum(), (ahead - behind) / 2e-6, rtol=1e-6, atol=1e-7)


def test_gradient_through_a_cholesky_factor():
    rng = np.random.default_rng(3)
    half, slope, direction = rng.normal(size=(3, 4, 4))
    matrix, direction = half @ half.T + np.eye(4), direction + direction.T
    ahead, behind = (np.tril(slope) * np.linalg.cholesky(matrix + h * direction) for h in (1e-6, -1e-6))
    gradient = cholesky_backward(np.linalg.cholesky(matrix), slope)
    assert_allclose((gradient * direction).sum(), (ahead - behind).sum() / 2e-6, rtol=1e-6)
