"""GP-Beta recalibration, and its sparse process against dense formulas."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from rows import calibration
from scipy.special import expit, log_ndtr, logit
from scipy.stats import norm

from reproduction.comparators.beta import (
    BetaRecalibration,
    Parameters,
    Rows,
    distribution,
    divergence,
    link,
    log_density,
    objective,
    quantiles,
    start,
)
from reproduction.comparators.latent_process import (
    JITTER,
    Moments,
    Posterior,
    Projection,
    cholesky_backward,
    covariance,
)

LEVELS = [0.9, 0.95, 0.99]
IDENTITY = np.zeros((1, 3, 1))
GRID = np.linspace(-16.0, 16.0, 201)


def small(**settings):
    return BetaRecalibration(**{"n_inducing": 5, "n_samples": 64, "max_steps": 200, "random_state": 0, **settings})


def some_rows(seed=0, n=6):
    rng = np.random.default_rng(seed)
    residuals = 2 * rng.normal(size=n)
    return Rows(rng.normal(size=n), rng.uniform(0.2, 1.0, n), log_ndtr(residuals), log_ndtr(-residuals))


def some_parameters(rows, n_inducing=3, seed=1):
    parameters = start(rows, n_inducing)
    vector = parameters.vector()
    parameters = Parameters.of(vector + 0.3 * np.random.default_rng(seed).normal(size=vector.size), n_inducing)
    parameters.mixing[:] = np.tril(parameters.mixing)
    parameters.posterior.spread[:] = np.tril(parameters.posterior.spread)
    return parameters


def test_the_link_with_unit_parameters_is_the_identity():
    links = np.broadcast_to(IDENTITY, (GRID.size, 3, 1))
    assert_allclose(distribution(links, GRID), norm.cdf(GRID), rtol=1e-12)
    assert_allclose(quantiles(IDENTITY, 0.975, 16.0), norm.ppf(0.975), rtol=1e-12)


def test_the_link_worked_out_by_hand():
    parameters = np.array([np.log(0.6), np.log(0.8), 0.2]).reshape(1, 3, 1)
    below, above = norm.logcdf([[1.3]]), norm.logsf([[1.3]])
    assert_allclose(expit(link(below, above, parameters)), 0.8815296106, atol=1e-10)
    value, _ = log_density(below, above, parameters)
    assert_allclose(value + norm.logpdf(1.3), -1.8338536734, atol=1e-10)


@pytest.mark.parametrize("ratio", [0.3, 0.5, 1.0, 2.0])
@pytest.mark.parametrize("level", [0.005, 0.3, 0.975])
def test_quantiles_of_equal_shapes_are_closed(ratio, level):
    links = np.array([np.log(ratio), np.log(ratio), 0.0]).reshape(1, 3, 1)
    assert_allclose(quantiles(links, level, 40.0), norm.ppf(expit(logit(level) / ratio)), rtol=1e-10)


@pytest.mark.parametrize(("shape", "finite"), [(0.0398, False), (0.0405, True)])
def test_ends_are_infinite_where_the_tail_does_not_reach_the_level(shape, finite):
    """ln Phi(-16) = -131.7, so level 0.005 is reached within 16 standard deviations only if a > 5.29 / 131.7."""
    links = np.array([np.log(shape), np.log(shape), 0.0]).reshape(1, 3, 1)
    low, high = quantiles(links, 0.005, 16.0), quantiles(links, 0.995, 16.0)
    assert np.isfinite([low, high]).all() == finite
    assert low < 0 < high


def test_the_density_is_the_slope_of_the_distribution():
    links = np.array([[-0.4, 0.3, 0.2], [0.5, -0.7, -0.1]]).T[None]
    z = np.linspace(-5, 5, 21)
    many = np.broadcast_to(links, (z.size, 3, 2))
    value, _ = log_density(log_ndtr(z)[:, None], log_ndtr(-z)[:, None], many)
    slope = (distribution(many, z + 1e-5) - distribution(many, z - 1e-5)) / 2e-5
    assert_allclose(np.exp(value + norm.logpdf(z)[:, None]).mean(axis=1), slope, rtol=1e-6, atol=1e-10)


def test_log_density_is_finite_far_out_and_its_gradient_right():
    residuals = np.array([-39.0, -8.0, -1.0, 0.0, 2.0, 9.0, 39.0])
    below, above = log_ndtr(residuals)[:, None], log_ndtr(-residuals)[:, None]
    parameters = np.random.default_rng(0).normal(size=(7, 3, 4))
    value, gradient = log_density(below, above, parameters)
    assert np.isfinite(value).all()
    for k in range(3):
        step = 1e-6 * np.eye(3)[k][:, None]
        ahead, behind = (log_density(below, above, parameters + sign * step)[0] for sign in (1, -1))
        assert_allclose(gradient[:, k], (ahead - behind) / 2e-6, rtol=1e-5, atol=1e-7)


def test_gradient_is_that_of_the_objective():
    rows = some_rows()
    parameters = some_parameters(rows)
    draws = np.random.default_rng(2).normal(size=(6, 3, 8))
    vector = parameters.vector()
    gradient = objective(parameters, rows, draws, weight=2.5)[1].vector()
    free = Parameters.of(np.ones_like(vector), 3)
    free = free._replace(mixing=np.tri(3), posterior=free.posterior._replace(spread=np.tri(9)))
    for index in np.flatnonzero(free.vector()):
        step = np.zeros_like(vector)
        step[index] = 1e-6
        ahead, behind = (objective(Parameters.of(vector + s * step, 3), rows, draws, 2.5)[0] for s in (1, -1))
        assert_allclose(gradient[index], (ahead - behind) / 2e-6, rtol=1e-5, atol=1e-6)
    assert not gradient[free.vector() == 0].any()


def test_divergence_is_that_of_two_gaussians():
    posterior = some_parameters(some_rows()).posterior
    cov = posterior.spread @ posterior.spread.T
    expected = np.trace(cov) + (posterior.centre**2).sum() - 9 - np.linalg.slogdet(cov)[1]
    assert_allclose(divergence(posterior), expected / 2)
    assert divergence(start(some_rows(), 3).posterior) == 0


def test_training_lowers_the_objective():
    mean, std, y = calibration(spread=2.0)
    residuals = (y - mean) / std
    rows = Rows(mean, std, log_ndtr(residuals), log_ndtr(-residuals))
    method = small().calibrate(mean, std, y)
    draws = np.random.default_rng(9).normal(size=(40, 3, 200))
    assert objective(method.parameters_, rows, draws)[0] < objective(start(rows, 5), rows, draws)[0] - 1


def test_errors_twice_as_large_as_stated_are_learnt():
    """1,000 calibration rows whose errors are twice the stated size: 90% widths within a tenth of the true ones."""
    rng = np.random.default_rng(4)
    mean = rng.normal(size=1000)
    method = small(max_steps=600).calibrate(mean, np.ones(1000), mean + 2 * rng.normal(size=1000))
    ends = method.intervals(mean[:50], np.ones(50), 0.9)
    assert_allclose(np.diff(ends).mean(), 2 * 1.6449 * 2, rtol=0.1)


def test_parameters_follow_the_base_prediction():
    """Errors grow with the mean, which the stated size does not tell."""
    rng = np.random.default_rng(5)
    mean = rng.uniform(-2, 2, 400)
    method = small(max_steps=600).calibrate(mean, np.ones(400), mean + np.exp(mean / 2) * rng.normal(size=400))
    widths = np.diff(method.intervals([-1.5, 1.5], [1.0, 1.0], 0.9)).ravel()
    truth = 2 * 1.6449 * np.exp(np.array([-0.75, 0.75]))
    assert_allclose(widths, truth, rtol=0.35)


def test_same_seed_same_intervals_whatever_rows_are_beside():
    first, second, other = (small(random_state=seed).calibrate(*calibration()) for seed in (1, 1, 2))
    ends = first.intervals([0.0, 1.0], [1.0, 2.0], LEVELS)
    assert_array_equal(ends, second.intervals([0.0, 1.0], [1.0, 2.0], LEVELS))
    assert_allclose(ends[1:], second.intervals([1.0], [2.0], LEVELS))
    assert not np.allclose(ends, other.intervals([0.0, 1.0], [1.0, 2.0], LEVELS), rtol=1e-6)


def test_affine_change_of_labels():
    mean, std, y = calibration()
    plain = small().calibrate(mean, std, y).intervals(mean, std, LEVELS)
    moved = small().calibrate(8 * mean - 3, 8 * std, 8 * y - 3).intervals(8 * mean - 3, 8 * std, LEVELS)
    assert_allclose(moved, 8 * plain - 3, rtol=1e-5)


@pytest.mark.parametrize("rows", [1, 2, 30])
def test_few_or_equal_labels_are_no_obstacle(rows):
    ends = small().calibrate(np.zeros(rows), np.ones(rows), np.full(rows, 0.5)).intervals([0.0], [1.0], 0.5)
    assert np.isfinite(ends).all()
    assert ends[0, 0] < 0.5 < ends[0, 1]


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
