"""Scalings; above all, that the symmetric one is symmetric."""

import numpy as np
import pytest

from conformal_gp.gp.scaling import STEP, Scaling, SymmetricScaling


def test_standard_scaling_gives_zero_mean_and_unit_deviation():
    X = np.random.default_rng(0).normal(size=(50, 3)) * [1, 100, 1e-3] + [5, 0, 2]
    scaled = Scaling.standard(X).transform(X)
    np.testing.assert_allclose(scaled.mean(axis=0), 0.0, atol=1e-10)
    np.testing.assert_allclose(scaled.std(axis=0), 1.0)


def test_constant_columns_are_only_shifted():
    X = np.column_stack([np.full(5, 7.0), np.arange(5.0)])
    np.testing.assert_array_equal(Scaling.standard(X).transform(X)[:, 0], 0.0)


@pytest.mark.parametrize("stationary", [True, False])
@pytest.mark.parametrize("seed", range(20))
def test_any_row_of_the_bag_may_be_the_test_row(seed, stationary):
    """Exchangeability hangs on it: the key depends on the bag, not on which row is left for last."""
    rng = np.random.default_rng(seed)
    bag = rng.normal(size=(8, 3)) * [1, 50, 0.02] + [0, 300, 1]
    bag[rng.integers(8)] *= 4  # an outlier, so that some keys change
    keys = []
    for last in range(8):
        rest = np.delete(bag, last, axis=0)
        keys.append(SymmetricScaling(rest, stationary).keys(bag[last : last + 1])[0])
    assert (np.array(keys) == keys[0]).all()


def test_scales_are_within_half_a_step_of_the_standard_deviation():
    X = np.random.default_rng(1).lognormal(sigma=2, size=(40, 6)) * np.geomspace(1e-4, 1e4, 6)
    scaling = SymmetricScaling(X, True)
    deviation = scaling.scaling(scaling.training_key()).transform(X).std(axis=0)
    assert (np.abs(np.log(deviation)) <= 0.5 * np.log(STEP) + 1e-12).all()


def test_most_test_rows_share_the_training_key():
    rng = np.random.default_rng(2)
    X = rng.normal(size=(200, 5))
    scaling = SymmetricScaling(X, True)
    same = (scaling.keys(rng.normal(size=(500, 5))) == scaling.training_key()).all(axis=1)
    assert same.mean() > 0.8


def test_a_column_constant_in_the_bag_keeps_its_scale():
    X = np.column_stack([np.full(9, 3.7), np.arange(9.0)])
    scaling = SymmetricScaling(X, True)
    assert scaling.training_key()[0] == 0
    assert scaling.keys(np.array([[3.7, 2.0]]))[0, 0] == 0
    assert scaling.keys(np.array([[1e6, 2.0]]))[0, 0] != 0
