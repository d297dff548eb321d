"""Kernel names, and the neural network covariance as a scikit-learn kernel."""

import mpmath
import numpy as np
import pytest
from sklearn.base import clone
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import ConstantKernel

from cases import ArcSine, make_data, written_out
from conformal_gp import NeuralNetwork
from conformal_gp.gp.kernels import KERNEL_NAMES, kernel_from_name

# GPML's values at x, z with length scale 0.7, signal standard deviation 1.3 and alpha 2, and the derivative in the
# logarithm of the length scale.
X_KNOWN, Z_KNOWN = np.array([[0.3, -1.2]]), np.array([[1.1, 0.4]])
KNOWN = {
    "se": (0.0645330622, 0.42144041),
    "rq": (0.2438369088, 0.60486675),
    "matern32": (0.1096691919, 0.39596670),
    "matern52": (0.0981031709, 0.40738630),
    "nn": (0.4958709737, -0.17032909),
}
RQ_KNOWN_BY_ALPHA = -0.16963103
NN_KNOWN_VARIANCE = 1.6784177536


@pytest.mark.parametrize("name", KNOWN)
def test_a_name_is_an_amplitude_times_a_shape(name):
    assert set(KERNEL_NAMES) == {*KNOWN, "rbf"}
    kernel, (value, slope) = kernel_from_name(name, amplitude=1.3**2, length_scale=0.7), KNOWN[name]
    assert isinstance(kernel.k1, ConstantKernel)
    np.testing.assert_allclose(np.exp(kernel.bounds[[0, -1]]), [[1.69e-6, 1.69e6], [7e-4, 7e3]])
    X, _ = make_data(0, 6)
    np.testing.assert_allclose(kernel(X), written_out(name, 1.69, 0.7)(X), rtol=1e-12)
    if name == "rq":
        kernel.k2.alpha = 2.0
    assert kernel(X_KNOWN, Z_KNOWN)[0, 0] == pytest.approx(value, abs=1e-10)
    _, gradient = kernel(np.vstack([X_KNOWN, Z_KNOWN]), eval_gradient=True)
    assert gradient[0, 1, 0] == pytest.approx(value, abs=1e-10)  # the amplitude's
    assert gradient[0, 1, -1] == pytest.approx(slope, abs=1e-8)
    if name == "rq":
        assert gradient[0, 1, 1] == pytest.approx(RQ_KNOWN_BY_ALPHA, abs=1e-8)
    if name == "nn":
        assert kernel.diag(X_KNOWN)[0] == pytest.approx(NN_KNOWN_VARIANCE, abs=1e-10)
    several = kernel_from_name(name, n_inputs=2)
    assert np.size(several.k2.length_scale) == (1 if name in ("rq", "nn") else 2)


def test_an_unknown_name_is_answered_with_the_known_ones():
    with pytest.raises(ValueError, match=r"'gauss'.*se, rbf, rq, nn, matern32, matern52"):
        kernel_from_name("gauss")


@pytest.mark.parametrize("length_scale", [1e-3, 0.2, 30.0])
def test_neural_network_is_the_arc_sine_of_its_definition(length_scale):
    X, _ = make_data(1, 30, 3)
    Z, _ = make_data(2, 4, 3)
    kernel, definition = NeuralNetwork(length_scale), ArcSine(length_scale)
    np.testing.assert_allclose(kernel(X, Z), definition(X, Z), rtol=1e-12)
    np.testing.assert_allclose(kernel.diag(X), np.diag(kernel(X)), rtol=1e-12)
    assert np.linalg.eigvalsh(kernel(X)).min() > -1e-12
    step = 1e-6
    above, below = (NeuralNetwork(length_scale * np.exp(sign * step))(X) for sign in (1, -1))
    _, gradient = kernel(X, eval_gradient=True)
    np.testing.assert_allclose(gradient[:, :, 0], (above - below) / (2 * step), atol=1e-8)


def test_neural_network_is_accurate_where_its_sine_is_nearly_one():
    x, z, ell = [300.0, -4.0], [299.0, -4.5], "1e-4"
    with mpmath.workdps(50):
        L = mpmath.mpf(ell) ** 2
        dot = [
            1 + mpmath.fsum(mpmath.mpf(a) * b for a, b in zip(u, w, strict=True)) for u, w in ((x, z), (x, x), (z, z))
        ]
        exact = float(mpmath.asin(dot[0] / mpmath.sqrt((L + dot[1]) * (L + dot[2]))))
        exact_variance = float(mpmath.asin(dot[1] / (L + dot[1])))
    kernel = NeuralNetwork(1e-4)
    assert kernel([x], [z])[0, 0] == pytest.approx(exact, rel=1e-14)
    assert kernel.diag([x])[0] == pytest.approx(exact_variance, rel=1e-15)


def test_neural_network_is_a_kernel_of_scikit_learn():
    kernel = NeuralNetwork(0.5, (0.1, 10.0))
    assert [h.name for h in kernel.hyperparameters] == ["length_scale"]
    np.testing.assert_allclose(kernel.bounds, np.log([[0.1, 10.0]]))
    assert kernel.clone_with_theta([np.log(2.0)]).length_scale == pytest.approx(2.0)
    assert clone(kernel).get_params() == {"length_scale": 0.5, "length_scale_bounds": (0.1, 10.0)}
    assert repr(kernel) == "NeuralNetwork(length_scale=0.5)"
    X, y = make_data(6, 30)
    np.testing.assert_allclose((2.0 * kernel + kernel**2)(X), 2 * kernel(X) + kernel(X) ** 2)
    _, gradient = NeuralNetwork(0.5, "fixed")(X, eval_gradient=True)
    assert gradient.shape == (30, 30, 0)
    with pytest.raises(ValueError, match=r"eval_gradient.*Y=None"):
        kernel(X, X, eval_gradient=True)
    gp = GaussianProcessRegressor(ConstantKernel(1.0) * NeuralNetwork(1.0), alpha=0.25).fit(X, y)
    _, gradient = gp.log_marginal_likelihood(gp.kernel_.theta, eval_gradient=True)
    inside = np.abs(gp.kernel_.theta[:, None] - gp.kernel_.bounds).min(axis=1) > 1e-3
    assert inside.any()
    np.testing.assert_allclose(gradient[inside], 0, atol=1e-2)
