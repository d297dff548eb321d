"""Candidate sets."""

import numpy as np
import pytest
from sklearn.gaussian_process.kernels import RBF, ConstantKernel, Matern

from conformal_gp.gp.candidates import (
    HANDICAP,
    LENGTH_SCALES,
    MIXTURE_SHAPES,
    NOISE_RATIOS,
    lattice,
    proposed,
    stretched,
)
from conformal_gp.kernels import KERNEL_NAMES


@pytest.mark.parametrize("name", KERNEL_NAMES)
def test_a_lattice_holds_every_length_scale_with_every_noise(name):
    candidates = lattice(name, 4)
    settings = {(c.kernel.k2.length_scale, getattr(c.kernel.k2, "alpha", None), c.noise_variance) for c in candidates}
    shapes = len(MIXTURE_SHAPES) if name == "rq" else 1
    assert len(settings) == len(candidates) == shapes * LENGTH_SCALES.size * NOISE_RATIOS.size


def test_length_scales_grow_with_the_square_root_of_the_number_of_inputs():
    assert lattice("se", 9)[0].kernel.k2.length_scale == pytest.approx(3 * lattice("se", 1)[0].kernel.k2.length_scale)


def test_proposals_start_with_the_kernel_itself_and_stay_within_its_bounds():
    kernel = ConstantKernel(2.0) * Matern([1.0, 3.0], (0.9, 3.1)) + RBF(1.0, "fixed")
    X = np.random.default_rng(0).normal(size=(10, 2))
    candidates = proposed(kernel, X, np.random.RandomState(0)) + stretched(kernel, X)
    np.testing.assert_allclose(candidates[0].kernel.theta, kernel.theta)
    for candidate in candidates:
        assert (candidate.kernel.theta >= candidate.kernel.bounds[:, 0] - 1e-12).all()
        assert (candidate.kernel.theta <= candidate.kernel.bounds[:, 1] + 1e-12).all()
    assert len({tuple(c.kernel.theta) for c in candidates}) >= 32


def test_proposals_between_equal_and_learnt_length_scales():
    kernel = ConstantKernel(2.0) * Matern([0.5, 4.0], (1e-3, 1e3))
    between = proposed(kernel, np.zeros((4, 2)), np.random.RandomState(0))[32 * NOISE_RATIOS.size :]
    ratios = {round(float(np.divide(*c.kernel.k2.length_scale[::-1])), 9) for c in between}
    assert ratios == {round(8.0**share, 9) for share in (0.3, 0.6)}
    one_length = proposed(ConstantKernel(2.0) * Matern(0.5), np.zeros((4, 2)), np.random.RandomState(0))
    assert len(one_length) == 32 * NOISE_RATIOS.size


def test_proposals_have_a_handicap_and_given_proportions_have_none():
    kernel, X = ConstantKernel(2.0) * Matern([0.5, 4.0]), np.zeros((4, 2))
    assert {c.handicap for c in proposed(kernel, X, np.random.RandomState(0))} == {HANDICAP}
    assert {c.handicap for c in stretched(kernel, X) + lattice("se", 2)} == {0.0}


def test_stretched_kernels_keep_the_proportions_of_their_length_scales():
    kernel = ConstantKernel(2.0) * Matern([1.0, 3.0]) + RBF(0.5, "fixed")
    candidates = stretched(kernel, np.zeros((4, 2)))
    assert len(candidates) == LENGTH_SCALES.size * NOISE_RATIOS.size
    for candidate, factor in zip(candidates[:: NOISE_RATIOS.size], LENGTH_SCALES, strict=True):
        np.testing.assert_allclose(candidate.kernel.k1.k2.length_scale, [factor, 3.0 * factor])
        assert candidate.kernel.k1.k1.constant_value == pytest.approx(2.0)
        assert candidate.kernel.k2.length_scale == 0.5


def test_kernels_without_length_scales_vary_their_noise_only():
    candidates = stretched(ConstantKernel(2.0), np.zeros((4, 2)))
    assert len(candidates) == NOISE_RATIOS.size
