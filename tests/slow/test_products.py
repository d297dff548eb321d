"""Brute force over whole products of kernels, means and gammas, of which the fast lane has Latin squares."""

import sys
from itertools import product
from pathlib import Path

import pytest

from cases import GAMMAS, MEANS

sys.path.append(str(Path(__file__).parents[1] / "models"))
import test_exact as exact
import test_low_rank as low_rank

pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings("ignore:confidence_level=.* needs at least:UserWarning")]


@pytest.mark.parametrize("mean", MEANS)
@pytest.mark.parametrize("gamma", GAMMAS)
def test_exact_processes(gamma, mean):
    for name in exact.NAMES:
        exact.test_named_kernels(name, gamma, mean)
    for name in exact.KERNELS:
        exact.test_scikit_learn_kernels(name, gamma, mean)
    exact.test_any_number_of_rows(gamma, mean)
    exact.test_duplicate_rows(gamma, mean)


@pytest.mark.parametrize("name", low_rank.KERNELS)
def test_low_rank_processes(name):
    for mean, gamma in product(MEANS, [1.0, 2.0, 3.0, exact.INF]):
        case = {"gamma": gamma, "mean": mean}
        low_rank.test_regions_intervals_p_values_and_distributions_equal_brute_force(name=name, **case)
        low_rank.test_with_training_inputs_as_inducing_inputs_it_is_the_exact_process(**case)
