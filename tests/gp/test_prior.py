"""The prior on length scales."""

import numpy as np
import pytest
from scipy.optimize import approx_fprime
from sklearn.gaussian_process.kernels import RBF, ConstantKernel, Matern, WhiteKernel

from conformal_gp.gp.hyperparameters import LengthScalePrior
from conformal_gp.kernels import is_amplitude, is_length

KERNEL = ConstantKernel(2.0) * RBF([1.0, 2.0, 3.0]) + Matern([1.0, 5.0], nu=1.5) + RBF(1.0) + WhiteKernel(0.1)


def test_the_start_and_all_that_moves_together_cost_nothing():
    prior = LengthScalePrior(KERNEL, 0.5, 100)
    lengths = is_length(KERNEL)
    for theta in (KERNEL.theta, KERNEL.theta + 1.3 * lengths, KERNEL.theta + 2.0 * ~lengths):
        value, gradient = prior(theta)
        assert value == pytest.approx(0.0, abs=1e-12)
        np.testing.assert_allclose(gradient, 0.0, atol=1e-12)


@pytest.mark.parametrize("seed", range(5))
def test_the_gradient_is_that_of_the_value(seed):
    prior = LengthScalePrior(KERNEL, 0.7, 4)
    theta = KERNEL.theta + np.random.default_rng(seed).normal(size=KERNEL.n_dims)
    value, gradient = prior(theta)
    assert value > 0.0
    np.testing.assert_allclose(gradient, approx_fprime(theta, lambda t: prior(t)[0], 1e-6), rtol=1e-3, atol=1e-3)
    assert not gradient[~is_length(KERNEL)].any()


def test_a_smaller_deviation_and_fewer_rows_make_it_stronger():
    kernel = RBF(np.ones(6))
    theta = np.linspace(-1.0, 1.0, 6)

    def value(deviation, n_rows):
        return LengthScalePrior(kernel, deviation, n_rows)(theta)[0]

    assert value(0.25, 100) > value(0.5, 100) > value(1.0, 100) > 0.0
    assert value(0.5, 12) == value(0.5, 1000)  # two for each input are enough
    assert value(0.5, 6) > value(0.5, 12)
    assert value(None, 6) == 0.0


def test_each_kernel_has_the_strength_of_its_own_inputs():
    alone, beside = RBF(np.ones(6)), RBF(1.0) + RBF(np.ones(6))
    theta = np.linspace(-1.0, 1.0, 6)
    expected = LengthScalePrior(alone, 0.5, 6)(theta)[0]
    assert LengthScalePrior(beside, 0.5, 6)(np.append(0.0, theta))[0] == pytest.approx(expected)


def test_the_order_of_inputs_does_not_matter():
    theta = np.random.default_rng(0).normal(size=5)
    prior = LengthScalePrior(RBF(np.ones(5)), 0.5, 50)
    assert prior(theta)[0] == pytest.approx(prior(theta[::-1])[0])


def test_amplitudes_are_factors_of_the_whole_kernel():
    assert is_amplitude(ConstantKernel() * (ConstantKernel() * RBF())).tolist() == [True, True, False]
    assert is_amplitude(ConstantKernel(1.0, "fixed") * RBF()).tolist() == [False]
    assert not is_amplitude(KERNEL).any()
