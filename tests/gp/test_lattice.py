"""The lattice of hyperparameters."""

import numpy as np
import pytest
from sklearn.gaussian_process.kernels import RBF, ConstantKernel, DotProduct, Matern, RationalQuadratic, WhiteKernel

from conformal_gp.gp.hyperparameters import MOST_STEPS, NOISE_RATIOS, Lattice
from conformal_gp.kernels import NeuralNetwork, is_length, kernel_from_name

KERNELS = [
    RBF(2.0),
    RBF([2.0, 0.5]),
    ConstantKernel(3.0) * Matern([1.0, 4.0], nu=1.5),
    ConstantKernel(3.0, "fixed") * RBF([2.0, 0.5]),
    ConstantKernel(2.0) * RBF(1.0) + WhiteKernel(0.3),
    ConstantKernel(2.0) * RationalQuadratic(1.5, 0.7),
    2.0 * NeuralNetwork(0.5),
    DotProduct(0.4) + RBF([1.0, 2.0]),
]


@pytest.mark.parametrize("kernel", KERNELS)
def test_the_start_is_the_kernel_itself_where_its_own_length_is_asked_for(kernel):
    lengths = kernel.theta[is_length(kernel)]
    lattice = Lattice(kernel, float(np.exp(lengths.mean())) if lengths.size else 1.0, 2, 50)
    np.testing.assert_allclose(lattice.kernel(lattice.start).theta, kernel.theta)
    X = np.random.default_rng(0).normal(size=(5, 2))
    np.testing.assert_allclose(lattice.kernel(lattice.start)(X), kernel(X))


@pytest.mark.parametrize("kernel", KERNELS)
def test_a_kernel_at_a_point_is_the_clone_with_its_hyperparameters(kernel):
    lattice = Lattice(kernel, 1.7, 2, 50)
    point = tuple(range(1, len(lattice.start) + 1))
    moved = lattice.kernel(point)
    clone = kernel.clone_with_theta(moved.theta)
    X = np.random.default_rng(1).normal(size=(5, 2))
    np.testing.assert_allclose(moved(X), clone(X))
    np.testing.assert_allclose(moved.diag(X), clone.diag(X))
    assert kernel.theta == pytest.approx(lattice._kernel.theta)  # the given one is left alone


def test_length_scales_start_at_the_size_asked_for_in_their_own_proportions():
    lattice = Lattice(ConstantKernel(3.0) * RBF([2.0, 0.5]), 10.0, 2, 50)
    np.testing.assert_allclose(lattice.kernel(lattice.start).k2.length_scale, [20.0, 5.0])


def test_four_steps_double_a_length_scale_and_two_a_noise():
    lattice = Lattice(kernel_from_name("se", n_inputs=2), 1.0, 2, 50)
    assert lattice.start == (0, 0, 0)  # two lengths and the noise: no amplitude
    np.testing.assert_allclose(lattice.kernel((4, -8, 0)).k2.length_scale, [2.0, 0.25])
    assert lattice.noise_variance((0, 0, 2)) == pytest.approx(2 * lattice.noise_variance((0, 0, 0)))


def test_noise_is_relative_to_the_variance_of_the_kernel():
    one, five = (Lattice(ConstantKernel(a) * RBF(1.0), 1.0, 1, 50) for a in (1.0, 5.0))
    assert five.noise_variance((3, 1)) == pytest.approx(5.0 * one.noise_variance((3, 1)))


def test_bounds_end_the_lattice():
    lattice = Lattice(RBF(1.0, (0.5, 4.0)), 1.0, 1, 50)
    assert [x for x in range(-60, 60) if lattice.inside((x, 0))] == list(range(-4, 9))
    noises = [lattice.noise_variance((0, x)) for x in range(-200, 200) if lattice.inside((0, x))]
    assert NOISE_RATIOS[0] <= min(noises) < 2 * NOISE_RATIOS[0]
    assert NOISE_RATIOS[1] / 2 < max(noises) <= NOISE_RATIOS[1]
    wide = Lattice(RBF(1.0, (1e-99, 1e99)), 1.0, 1, 50)
    assert [x for x in range(-60, 60) if wide.inside((x, 0))] == list(range(-MOST_STEPS, MOST_STEPS + 1))


def test_a_start_outside_the_bounds_is_brought_inside():
    lattice = Lattice(RBF(1.0, (0.5, 2.0)), 100.0, 1, 50)
    assert lattice.inside(lattice.start)
    assert lattice.kernel(lattice.start).length_scale == pytest.approx(2.0)


def test_noise_that_is_not_learnt_is_no_coordinate_and_hardly_any():
    lattice = Lattice(RBF([1.0, 1.0]) + WhiteKernel(0.1), 1.0, 2, 50, learns_noise=False)
    assert len(lattice.start) == 3
    assert 0.0 < lattice.noise_variance(lattice.start) < 2 * NOISE_RATIOS[0]


def test_directions_are_all_lengths_the_noise_both_and_each():
    lattice = Lattice(kernel_from_name("se", n_inputs=2), 1.0, 2, 50)
    joint = [(1, 1, 0), (0, 0, 1), (1, 1, -1)]
    assert lattice.directions() == [*joint, (1, 0, 0), (0, 1, 0)]
    assert lattice.directions(joint=True) == joint
    one = Lattice(kernel_from_name("se"), 1.0, 2, 50)
    assert one.directions() == [(1, 0), (0, 1), (1, -1)]  # none twice
    white = Lattice(WhiteKernel(0.1), 1.0, 1, 50, learns_noise=False)
    assert white.directions(joint=True) == [(1,)]  # without lengths each is tried always


def test_different_length_scales_are_penalised_unless_the_prior_is_flat():
    lattice = Lattice(kernel_from_name("se", n_inputs=2), 1.0, 2, 50)
    assert lattice.penalty((5, 5, 3)) == pytest.approx(0.0, abs=1e-12)
    assert lattice.penalty((8, 0, 0)) > lattice.penalty((4, 0, 0)) > 0.1
    flat = Lattice(kernel_from_name("se", n_inputs=2), 1.0, 2, 50, deviation=None)
    assert flat.penalty((8, 0, 0)) == 0.0
