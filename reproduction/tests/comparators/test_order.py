"""Order statistics by exact ranks."""

from fractions import Fraction

import numpy as np
import pytest

from conformal_gp.conformal.levels import read_levels
from reproduction.comparators.order import lower_end, one_sided, scaled, upper_end


@pytest.mark.parametrize(
    ("n", "level", "k"),
    [
        (19, 0.9, 2),
        (19, 0.95, 1),
        (18, 0.95, 0),
        (9, 0.8, 2),
        (59, 0.95, 3),
        (499, 0.9, 50),
        (99, 0.99, 1),
        (1, 0.4, 1),
    ],
)
def test_ranks_are_exact_at_whole_multiples(n, level, k):
    levels, _ = read_levels([level])
    values = np.random.default_rng(0).permutation(np.arange(1.0, n + 1))
    assert lower_end(values, levels)[0] == (k if k else -np.inf)
    assert upper_end(values, levels)[0] == (n + 1 - k if k else np.inf)


def test_many_rows_and_levels_at_once():
    values = np.random.default_rng(1).normal(size=(4, 29))
    levels, _ = read_levels([0.5, 0.9, 0.99])
    for row, low, high in zip(values, lower_end(values, levels), upper_end(values, levels), strict=True):
        np.testing.assert_array_equal(low, [np.sort(row)[14], np.sort(row)[2], -np.inf])
        np.testing.assert_array_equal(high, [np.sort(row)[14], np.sort(row)[26], np.inf])


def test_two_sides_share_what_is_left_out():
    assert one_sided([Fraction(9, 10)]) == [Fraction(19, 20)]


def test_an_infinite_end_stays_infinite_at_any_scale():
    ends = scaled(np.array([-np.inf, 2.0, np.inf]), np.array([[0.0], [3.0]]))
    np.testing.assert_array_equal(ends, [[-np.inf, 0.0, np.inf], [-np.inf, 6.0, np.inf]])
