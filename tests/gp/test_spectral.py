"""One eigendecomposition for many noise variances equals one Cholesky factor for each."""

import numpy as np
import pytest
from numpy.linalg import LinAlgError

from conformal_gp.gp.inputs import Inputs
from conformal_gp.gp.posterior import Posterior
from conformal_gp.gp.scaling import Scaling
from conformal_gp.gp.spectral import SpectralPosterior
from conformal_gp.kernels import kernel_from_name

NOISES = np.array([0.01, 0.3, 5.0])


def rows(seed=0, l=25, d=3):
    rng = np.random.default_rng(seed)
    return rng.normal(size=(l, d)), rng.normal(size=l), rng.normal(size=(6, d)) * 2


@pytest.mark.parametrize("mean", ["zero", "constant", "linear"])
@pytest.mark.parametrize("name", ["se", "nn", "matern52"])
def test_equal_to_a_posterior_for_each_noise(name, mean):
    X, y, X_new = rows()
    inputs = Inputs(X, Scaling.standard(X), mean)
    kernel = kernel_from_name(name, amplitude=2.0, length_scale=1.3)
    spectral = SpectralPosterior(kernel, NOISES, inputs, y)
    new = inputs.new(X_new)
    moments = spectral.moments(new)
    for r, noise in enumerate(NOISES):
        single = Posterior(kernel, noise, inputs, y, flat_prior=True)
        block = single.predict(new)
        np.testing.assert_allclose(spectral.alpha[r], single.alpha, rtol=1e-9, atol=1e-11)
        np.testing.assert_allclose(spectral.diagonal[r], single.diagonal, rtol=1e-9)
        np.testing.assert_allclose(spectral.coefficients[r], single.coefficients, rtol=1e-8, atol=1e-11)
        np.testing.assert_allclose(spectral.quadratic[r], single.quadratic, rtol=1e-10)
        np.testing.assert_allclose(spectral.log_determinant[r], single.log_determinant, rtol=1e-10)
        np.testing.assert_allclose(moments.mean[r], block.mean, rtol=1e-9, atol=1e-11)
        np.testing.assert_allclose(moments.variance[r], block.variance, rtol=1e-9)
        np.testing.assert_allclose(spectral.weights(moments, r), block.weights, rtol=1e-8, atol=1e-10)
        assert spectral.degrees_of_freedom == single.degrees_of_freedom


def test_noise_that_rounding_would_swallow_is_refused():
    X, y, _ = rows()
    with pytest.raises(LinAlgError, match="must be at least"):
        SpectralPosterior(kernel_from_name("se"), np.array([1e-13, 1.0]), Inputs(X, Scaling.none(X), "zero"), y)


def test_labels_that_the_mean_explains_leave_no_residual():
    X, _, _ = rows()
    posterior = SpectralPosterior(kernel_from_name("se"), NOISES, Inputs(X, Scaling.none(X), "linear"), X[:, 0] + 7.0)
    assert (posterior.alpha == 0.0).all()
