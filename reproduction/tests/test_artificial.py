"""Artificial draws from a Gaussian process."""

import numpy as np
import pytest
from scipy.linalg import cho_factor, cho_solve

from reproduction.experiments.artificial import make_gp_data

# The seeds are fixed. Tolerances are in standard errors: normal errors exceed five of them
# about once in two million draws.
SIGMAS = 5


def test_gp_data_is_reproducible():
    first, again, other = (make_gp_data(60, 2, random_state=seed) for seed in (3, 3, 4))
    assert first[0].shape == (60, 2)
    for a, b, c in zip(first, again, other, strict=True):
        np.testing.assert_array_equal(a, b)
        assert not np.isclose(a, c).any()


def test_gp_data_inputs_are_standard_normal():
    X, _ = make_gp_data(1000, 8, random_state=0)
    assert abs(X.mean()) < SIGMAS / np.sqrt(X.size)
    assert abs(X.var() - 1) < SIGMAS * np.sqrt(2 / X.size)
    assert abs((X**4).mean() - 3) < SIGMAS * np.sqrt(96 / X.size)


def chi_square_deviation(sets, noise, length_scale, signal):
    """How far the sum of y' C^-1 y is from its mean, in standard deviations, if C is the covariance of y."""
    total, n_rows = 0.0, 0
    for X, y in sets:
        squared = ((X[:, None, :] - X[None, :, :]) ** 2).sum(axis=2)
        covariance = signal**2 * np.exp(-squared / (2 * length_scale**2)) + noise**2 * np.eye(len(X))
        total += y @ cho_solve(cho_factor(covariance), y)
        n_rows += len(y)
    return (total - n_rows) / np.sqrt(2 * n_rows)


@pytest.mark.parametrize(("noise", "length_scale", "signal"), [(0.1, 1.0, 1.0), (0.5, 1.3, 3.0), (0.02, 0.7, 0.3)])
def test_gp_data_has_the_stated_covariance(noise, length_scale, signal):
    scales = {"noise": noise, "length_scale": length_scale, "signal": signal}
    sets = [make_gp_data(300, 3, **scales, random_state=seed) for seed in range(10)]
    assert abs(chi_square_deviation(sets, **scales)) < SIGMAS
    # The statistic can tell: it sees any one scale wrong by half, and a noise variance taken for its root.
    wrong = [scales | {name: factor * scales[name]} for name in scales for factor in (1.5, 1 / 1.5)]
    for other in [*wrong, scales | {"noise": np.sqrt(noise)}]:
        assert abs(chi_square_deviation(sets, **other)) > SIGMAS


def test_gp_data_outliers():
    options = {"n_samples": 2000, "random_state": 1}
    X, y = make_gp_data(**options)
    X_out, y_out = make_gp_data(**options, outlier_fraction=0.1)
    np.testing.assert_array_equal(X_out, X)
    share = (y_out != y).mean()
    assert abs(share - 0.1) < SIGMAS * np.sqrt(0.1 * 0.9 / 2000)
    # The noise of an outlier is multiplied, its sign and the function stay: 10 eps - eps = 9 eps.
    change = (y_out - y)[y_out != y]
    assert abs(change.std() / 0.9 - 1) < SIGMAS / np.sqrt(2 * len(change))
    more = make_gp_data(**options, outlier_fraction=0.3)[1] != y
    assert more[y_out != y].all()
    assert more.sum() > (y_out != y).sum()


@pytest.mark.parametrize("options", [{"length_scale": 1e-320}, {"length_scale": 1e300}, {"n_features": 1}])
def test_gp_data_where_the_covariance_is_extreme(options):
    _, y = make_gp_data(1500, noise=0, random_state=0, **options)
    assert np.isfinite(y).all()
    if options.get("length_scale") == 1e-320:  # no two rows are related
        assert abs(y.std() - 1) < SIGMAS / np.sqrt(2 * 1500)
    if options.get("length_scale") == 1e300:  # a constant
        assert np.ptp(y) < 1e-4
