"""Processes at several noise levels through one eigendecomposition, against one posterior at a time."""

import numpy as np
import pytest
from sklearn.gaussian_process.kernels import DotProduct, Matern

from cases import MEANS, make_data
from conformal_gp.gp.inputs import Inputs, Scaling, points
from conformal_gp.gp.posterior import Posterior
from conformal_gp.gp.spectrum import Spectrum

KERNEL = Matern([0.8, 2.0], nu=1.5) + 0.2 * DotProduct(0.3)


@pytest.mark.parametrize("noises", [[1e-3, 0.1, 2.0], "known"])
@pytest.mark.parametrize("mean", MEANS)
def test_likelihoods_and_moments_are_those_of_posteriors(mean, noises):
    X, y = make_data(1, 20)
    new, _ = make_data(2, 6)
    known = np.linspace(0.0, 1.0, 20) if noises == "known" else np.zeros(20)
    levels = np.array([0.2] if noises == "known" else noises)
    inputs = Inputs(points(X, known), Scaling.none(X), mean)
    seen = inputs.new(points(new, known[:6]))
    spectrum = Spectrum(KERNEL, levels, inputs, y)
    means, variances = spectrum.moments(seen)
    for r, noise in enumerate(levels):
        posterior = Posterior(KERNEL, noise, inputs, y)
        assert spectrum.quadratic[r] == pytest.approx(posterior.quadratic, rel=1e-9)
        assert spectrum.log_determinant[r] == pytest.approx(posterior.log_determinant, rel=1e-9)
        expected = posterior.moments(seen)
        np.testing.assert_allclose(means[:, r], expected[0], rtol=1e-9, atol=1e-10)
        np.testing.assert_allclose(variances[:, r], expected[1], rtol=1e-9)


def test_a_row_whose_mean_nothing_determines_has_infinite_variance():
    X, y = make_data(3, 12)
    X[:, 1] = 2.0
    inputs = Inputs(points(X), Scaling.none(X), "linear")
    _, variances = Spectrum(KERNEL, np.array([0.1, 1.0]), inputs, y).moments(
        inputs.new(points(np.array([[0.0, 2.0], [0.0, 1.0]])))
    )
    np.testing.assert_array_equal(np.isinf(variances), [[False] * 2, [True] * 2])
