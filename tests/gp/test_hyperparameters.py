"""Covariances at many hyperparameters, and the prior."""

from itertools import pairwise

import numpy as np
from scipy.integrate import quad
from scipy.stats import kstest
from sklearn.gaussian_process.kernels import RBF, Matern
from test_sampling import data

from conformal_gp.gp.hyperparameters import HyperPrior, StationaryFamily


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
