"""Prior, posterior density, its gradient, and the chain."""

from itertools import pairwise

import mpmath
import numpy as np
import pytest
from scipy.integrate import quad
from scipy.optimize import approx_fprime
from scipy.stats import kstest
from sklearn.gaussian_process.kernels import RBF, ConstantKernel, Matern, WhiteKernel

from conformal_gp.gp import sampling
from conformal_gp.gp.hyperparameters import AnyFamily, HyperPrior, StationaryFamily
from conformal_gp.gp.mixture import Mixture, TrainingRows
from conformal_gp.gp.sampling import LogPosterior, sample_posterior
from integrated_oracle import box_cox, covariance, restricted_log_likelihood


def data(n=16, d=2, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d))
    return X, np.sin(X[:, 0]) + 0.2 * rng.normal(size=n)


def target_of(X, y, kernel=None, mean=True, **free):
    if kernel is None:
        options = {name: free.get(name, False) for name in ("blended", "sloped")}
        family = StationaryFamily(Matern(nu=2.5), X, np.arange(X.shape[1]), **options)
    else:
        family = AnyFamily(kernel, X)
    known = np.linspace(0.01, 0.1, len(y)) if free.get("amplitude") else None
    H = np.full((len(y), 1), len(y) ** -0.5) if mean else np.zeros((len(y), 0))
    prior = HyperPrior(family, **{name: value for name, value in free.items() if name not in ("blended", "sloped")})
    return LogPosterior(TrainingRows(prior, H, y, known))


SETTINGS = [
    {},
    {"linear": False},
    {"exponent": True},
    {"amplitude": True},
    {"fixed_noise": 1e-3},
    {"blended": True},
    {"sloped": True},
    {"blended": True, "sloped": True},
]


@pytest.mark.parametrize("free", SETTINGS)
@pytest.mark.parametrize("mean", [True, False])
def test_gradient(free, mean):
    target = target_of(*data(), mean=mean, **free)
    theta = target.prior.start(np.array([0.3, 0.8]), 0.05, 0.6)
    expected = approx_fprime(theta, lambda t: target(t[None])[0][0], 1e-6)
    assert np.allclose(target(theta[None])[1][0], expected, rtol=1e-3, atol=1e-3)


def test_blended_and_sloped_kernel():
    X, _ = data()
    family = StationaryFamily(Matern(nu=2.5), X, np.arange(2), blended=True, sloped=True)
    theta = np.array([[0.3, 0.8, -1.0, 0.4], [0.1, 0.2, 2.0, 0.7]])
    linear = np.array([0.0, 0.5])
    pairs, variances, _ = family.matrices(theta, linear)
    cross, new_variances = family.cross(theta, linear, X[:3])
    i, j = np.tril_indices(len(X), -1)
    for draw, (first, second, log_odds, power) in enumerate(theta):
        lengths = np.exp([first, second])
        share = 1.0 / (1.0 + np.exp(-log_odds))
        expected = (1.0 - share) * Matern(lengths, nu=2.5)(X) + share * RBF(lengths)(X)
        sloped = X / lengths ** (1.0 / (1.0 + np.exp(-power)))
        expected += linear[draw] * sloped @ sloped.T
        assert np.allclose(pairs[draw], expected[i, j])
        assert np.allclose(variances[draw], np.diagonal(expected))
        assert np.allclose(cross[draw], expected[:, :3])
        assert np.allclose(new_variances[draw], np.diagonal(expected)[:3])
    assert np.allclose(family.kernel(theta[0], 0.0)(X)[i, j], pairs[0])


@pytest.mark.parametrize(
    "kernel", [RBF([1.0, 2.0]), ConstantKernel() * RBF() + ConstantKernel() * RBF(3.0) + WhiteKernel()]
)
def test_gradient_of_other_kernels(kernel):
    target = target_of(*data(), kernel=kernel)
    theta = target.prior.start(target.prior.family.start, 0.05, 0.6)
    expected = approx_fprime(theta, lambda t: target(t[None])[0][0], 1e-6)
    assert np.allclose(target(theta[None])[1][0], expected, rtol=1e-3, atol=1e-3)


def test_several_vectors_at_once_and_in_threads():
    X, y = data(90)
    target = target_of(X, y)
    theta = target.prior.sample(7, np.random.RandomState(0))
    together = target(theta)
    target._n_jobs, target._block = 2, 2
    alone = [target(one[None]) for one in theta]
    assert np.allclose(together[0], [value[0] for value, _ in alone])
    assert np.allclose(target(theta)[0], together[0])
    assert np.allclose(target(theta)[1], together[1])


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


def test_singular_matrices_have_no_density():
    X, y = data()
    X[1] = X[0]
    target = target_of(X, y, fixed_noise=0.0)
    value, gradient = target(target.prior.start(np.zeros(2), 1.0, 1.0)[None])
    assert value[0] == -np.inf
    assert (gradient == 0.0).all()


def test_prior_samples_follow_its_density():
    family = StationaryFamily(Matern(nu=2.5), np.zeros((2, 3)), np.zeros(3, dtype=int))
    prior = HyperPrior(family, exponent=True, amplitude=True)
    draws = prior.sample(4000, np.random.RandomState(0))
    assert ((draws >= prior.bounds[:, 0]) & (draws <= prior.bounds[:, 1])).all()
    middle = prior.start(np.zeros(1), 1e-3, 0.5)
    for place in range(len(prior.bounds)):

        def density(value, place=place):
            theta = middle.copy()
            theta[place] = value
            return np.exp(prior.log_density(theta[None])[0][0])

        grid = np.linspace(*prior.bounds[place], 200)
        mass = np.array([quad(density, a, b)[0] for a, b in pairwise(grid)])
        distribution = np.append(0.0, np.cumsum(mass)) / mass.sum()
        assert kstest(draws[:, place], lambda x: np.interp(x, grid, distribution)).pvalue > 1e-3  # noqa: B023
    assert draws[:, 2].min() < np.log(1e-6)


def test_chain_has_the_moments_of_the_posterior():
    """Against importance sampling from the prior, which few hyperparameters allow."""
    X, y = data(12, d=1)
    target = target_of(X, y, linear=False)
    draws = sample_posterior(target, 1500, 6, 2, seed=3, n_jobs=1)
    wide = target.prior.sample(8_000, np.random.RandomState(5))
    log_weight = Mixture(target.rows, wide).log_likelihood
    weight = np.exp(log_weight - log_weight.max())
    weight /= weight.sum()
    mean = weight @ wide
    deviation = np.sqrt(weight @ (wide - mean) ** 2)
    assert (np.abs(draws.mean(axis=0) - mean) < 0.2 * deviation).all()
    assert np.allclose(draws.std(axis=0), deviation, rtol=0.2)


def test_chain_is_reproducible_whatever_the_threads():
    X, y = data(90)
    found = []
    for n_jobs in (1, 2):
        target = target_of(X, y)
        target._n_jobs = n_jobs
        found.append(sample_posterior(target, 12, 6, 1, seed=1, n_jobs=n_jobs))
    assert (found[0] == found[1]).all()


def noise_free_target(n=60):
    rng = np.random.default_rng(1)
    X = rng.uniform(-1.7, 1.7, size=(n, 2))
    y = np.sin(2.0 * X[:, 0]) * np.exp(0.4 * X[:, 1]) + X[:, 1] ** 2
    return target_of(X, (y - y.mean()) / y.std(), blended=True, sloped=True)


def test_chains_that_hardly_move_burn_in_again(monkeypatch):
    burn_ins = []
    burn_in = sampling._Chains.burn_in

    def counted(chains):
        burn_in(chains)
        burn_ins.append(chains.is_mobile)

    monkeypatch.setattr(sampling._Chains, "burn_in", counted)
    monkeypatch.setattr(sampling, "laplace_covariance", lambda target, mode: np.diag([1e4] + (mode.size - 1) * [1e-4]))
    draws = sample_posterior(noise_free_target(), 60, 6, 1, 0, 1)
    assert len(burn_ins) > 1
    assert not burn_ins[0]
    assert burn_ins[-1]
    assert np.unique(draws, axis=0).shape[0] > 30


def test_chains_that_never_move_well_are_reported(monkeypatch):
    monkeypatch.setattr(sampling, "LEAST_ACCEPTANCE", 1.1)
    with pytest.warns(UserWarning, match="hardly moves after 4 burn-ins"):
        sample_posterior(target_of(*data()), 12, 6, 1, 0, 1)


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
