"""Splits and seeds of the protocol."""

import numpy as np
import pytest

from conformal_gp.datasets import load_servo
from reproduction.experiments.folds import N_FOLDS, make_fold


def test_each_row_is_tested_once_a_run():
    _, y = load_servo(return_X_y=True)
    folds = [make_fold("servo", seed=0, run=2, fold=i) for i in range(N_FOLDS)]
    assert sorted(np.concatenate([fold.y_test for fold in folds])) == sorted(y)
    assert all(fold.y.size + fold.y_test.size == y.size for fold in folds)


def test_runs_and_seeds_split_differently():
    tests = [make_fold("servo", seed=seed, run=run, fold=0).y_test for seed in (0, 1) for run in (0, 1)]
    assert len({test.tobytes() for test in tests}) == 4


def test_the_same_numbers_give_the_same_fold():
    one, other = (make_fold("cpu", seed=3, run=1, fold=4) for _ in range(2))
    np.testing.assert_array_equal(one.X, other.X)
    assert one.seed == other.seed


def test_methods_draw_differently_on_each_fold():
    seeds = {make_fold("servo", 0, run, fold).seed for run in range(3) for fold in range(N_FOLDS)}
    assert len(seeds) == 3 * N_FOLDS


@pytest.mark.parametrize("data_set", ["artificial_well_specified", "artificial_outliers"])
def test_artificial_data_have_the_papers_size(data_set):
    fold = make_fold(data_set, seed=0, run=0, fold=0)
    assert (fold.X.shape, fold.X_test.shape) == ((500, 5), (1000, 5))


def test_outliers_are_added_to_the_same_function():
    plain, outliers = (make_fold(f"artificial_{kind}", 0, 0, 0) for kind in ("well_specified", "outliers"))
    np.testing.assert_array_equal(plain.X, outliers.X)
    share = np.mean(np.abs(plain.y - outliers.y) > 1e-9)
    assert 0.05 < share < 0.15
