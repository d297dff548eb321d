"""Quantiles of a Gaussian process's own distribution."""

import numpy as np
import pytest
from scipy.stats import norm
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF, WhiteKernel
from sklearn.linear_model import BayesianRidge

from cases import fixed_model, make_data
from conformal_gp.metrics import coverage
from reproduction.comparators import GaussianIntervals

LEVELS = [0.5, 0.9, 0.99]


@pytest.mark.parametrize("base", [fixed_model("matern32"), GaussianProcessRegressor(RBF() + WhiteKernel(0.2))])
def test_ends_are_quantiles(base):
    X, y = make_data(1, 40)
    new, _ = make_data(2, 5)
    model = GaussianIntervals(base).fit(X, y)
    mean, std = base.fit(X, y).predict(new, return_std=True)
    intervals = model.predict_interval(new, LEVELS)
    np.testing.assert_array_equal(model.predict(new), mean)
    for j, level in enumerate(LEVELS):
        expected = norm(mean[:, None], std[:, None]).ppf([(1 - level) / 2, (1 + level) / 2])
        np.testing.assert_allclose(intervals[:, :, j], expected, rtol=1e-12)


def test_the_noise_belongs_to_a_new_label():
    X, y = make_data(3, 10)
    wide, narrow = (GaussianIntervals(fixed_model(noise_variance=noise)).fit(X, y) for noise in (4.0, 0.01))
    far = np.full((1, 2), 50.0)  # where the signal's variance is 1
    assert np.ptp(wide.predict_interval(far, 0.9)) == pytest.approx(2 * 1.6448536 * 5**0.5, rel=1e-6)
    assert np.ptp(narrow.predict_interval(far, 0.9)) == pytest.approx(2 * 1.6448536 * 1.01**0.5, rel=1e-6)


def test_a_right_model_covers():
    rng = np.random.default_rng(4)
    X = rng.normal(size=(2000, 1))
    y = 3 * X[:, 0] + rng.normal(size=2000)
    model = GaussianIntervals(BayesianRidge()).fit(X, y)
    # the standard error of the coverage is 0.007
    assert coverage(y, model.predict_interval(X, 0.9)) == pytest.approx(0.9, abs=0.025)


@pytest.mark.filterwarnings("ignore:.*learns 6 numbers:UserWarning")
def test_default_base_is_reproducible():
    X, y = make_data(6, 60)
    first, second = (GaussianIntervals().fit(X, y).predict_interval(X[:3]) for _ in range(2))
    np.testing.assert_array_equal(first, second)
