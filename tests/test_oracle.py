"""The brute-force oracle against results by hand; the package is compared with it elsewhere."""

import numpy as np
import pytest
from sklearn.gaussian_process.kernels import ConstantKernel, DotProduct

import odd_regions
import oracle

INF = np.inf


def test_scores_of_two_rows_by_hand():
    # K + I = [[2, 2], [2, 5]], with inverse [[5, -2], [-2, 2]] / 6.
    kernel, X, y = DotProduct(0.0), [[1.0], [2.0]], [1.0, 1.0]
    np.testing.assert_allclose(oracle.scores(kernel, 1.0, X, y, 1.0), [3 / 6, 0.0], atol=1e-15)
    # Left out: mean 2/5 with variance 6/5 at the first row, mean 1 with variance 3 at the second.
    np.testing.assert_allclose(oracle.scores(kernel, 1.0, X, y, INF), [3 / 5, 0.0], atol=1e-15)
    np.testing.assert_allclose(oracle.scores(kernel, 1.0, X, [1.0, 2.0], INF), [1 / 5, 1.0])
    np.testing.assert_allclose(oracle.scores(kernel, 1.0, X, [1.0, 2.0], 2.0), [1 / 5 / np.sqrt(6 / 5), 1 / np.sqrt(3)])


def test_a_constant_mean_with_a_vanishing_kernel_is_the_sample_mean():
    y = np.array([1.0, 2.0, 4.0, 9.0])
    X, H = np.zeros((4, 1)), np.ones((4, 1))
    kernel, noise = ConstantKernel(1e-14), 0.5
    np.testing.assert_allclose(oracle.scores(kernel, noise, X, y, 1.0, H), np.abs(y - 4.0))
    rest = (16.0 - y) / 3
    np.testing.assert_allclose(oracle.scores(kernel, noise, X, y, INF, H), np.abs(y - rest))
    variance = noise * (1 + 1 / 3)
    np.testing.assert_allclose(oracle.scores(kernel, noise, X, y, 2.0, H), np.abs(y - rest) / np.sqrt(variance))


@pytest.mark.parametrize(("gamma", "end"), [(1.0, 7 / 4), (INF, 7 / 10)])
def test_a_region_that_is_one_ray_by_hand(gamma, end):
    *problem, _, delta = odd_regions.with_single_ray(gamma)
    np.testing.assert_allclose(oracle.region(*problem, delta, gamma), [[-INF, end]])
