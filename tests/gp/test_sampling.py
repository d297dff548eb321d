"""Posterior density of hyperparameters, its gradient, and the chain."""

import numpy as np
import pytest
from scipy.optimize import approx_fprime
from sklearn.gaussian_process.kernels import RBF, ConstantKernel, Matern, WhiteKernel

from conformal_gp.gp import sampling
from conformal_gp.gp.hyperparameters import AnyFamily, HyperPrior, StationaryFamily
from conformal_gp.gp.mixture import Mixture, TrainingRows
from conformal_gp.gp.sampling import LogPosterior, sample_posterior


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


def test_singular_matrices_have_no_density():
    X, y = data()
    X[1] = X[0]
    target = target_of(X, y, fixed_noise=0.0)
    value, gradient = target(target.prior.start(np.zeros(2), 1.0, 1.0)[None])
    assert value[0] == -np.inf
    assert (gradient == 0.0).all()


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
