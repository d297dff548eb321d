"""Levels are the fractions that a person meant, and ranks are exact."""

import math
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from conformal_gp.conformal.levels import Needed, rank, read_level, read_levels, rows_needed


def test_every_decimal_of_four_places_is_read_as_itself():
    for numerator in range(1, 10_000):
        exact = Fraction(numerator, 10_000)
        assert read_level(numerator / 10_000) == exact
        assert read_level(1 - (10_000 - numerator) / 10_000) == exact


@pytest.mark.parametrize(
    ("level", "expected"),
    [
        (1 - 0.1, Fraction(9, 10)),
        (1 - 0.05, Fraction(19, 20)),
        (0.1 + 0.2, Fraction(3, 10)),
        (1 / 3, Fraction(1, 3)),
        (1 - 1 / 7, Fraction(6, 7)),
        (499 / 500, Fraction(499, 500)),
        (np.float64(0.9), Fraction(9, 10)),
        (np.float32(0.9), Fraction(9, 10)),
        (np.float16(0.9), Fraction(9, 10)),
        (np.array(0.95)[()], Fraction(19, 20)),
        (Decimal("0.99"), Fraction(99, 100)),
        (Fraction(17, 19), Fraction(17, 19)),
        (0.999999, Fraction(999_999, 1_000_000)),
        (1e-9, Fraction(1, 10**9)),
        (0.1234567891, Fraction(1234567891, 10**10)),
    ],
)
def test_levels_are_read_as_meant(level, expected):
    assert read_level(level) == expected


@pytest.mark.parametrize(
    "level",
    [0, 1, 0.0, 1.0, 95, 1.5, -0.1, math.nan, math.inf, -math.inf, Decimal("NaN"), Decimal("1"), Fraction(3, 2)],
)
def test_levels_outside_zero_and_one_are_refused_by_name(level):
    with pytest.raises(ValueError, match=r"confidence_level.*strictly between 0 and 1") as error:
        read_level(level)
    assert repr(level) in str(error.value)


@pytest.mark.parametrize("level", ["0.9", None, True, False, np.True_, 0.9 + 0j, [0.9], {}])
def test_what_is_no_number_is_refused_by_name(level):
    with pytest.raises(ValueError, match=r"confidence_level must be a number strictly between 0 and 1") as error:
        read_level(level)
    assert repr(level) in str(error.value)


def test_a_percentage_is_answered_with_its_fraction():
    with pytest.raises(ValueError, match=r"95% is 0\.95"):
        read_level(95)


def test_a_single_level_is_told_from_a_sequence_of_one():
    assert read_levels(0.9) == ([Fraction(9, 10)], True)
    assert read_levels(np.array(0.9)) == ([Fraction(9, 10)], True)
    assert read_levels([0.9]) == ([Fraction(9, 10)], False)


@pytest.mark.parametrize("levels", [(0.9, 0.5), np.array([0.9, 0.5]), iter([0.9, 0.5]), np.float32([0.9, 0.5])])
def test_sequences_keep_their_order(levels):
    assert read_levels(levels) == ([Fraction(9, 10), Fraction(1, 2)], False)


@pytest.mark.parametrize("levels", [[], (), np.array([])])
def test_no_level_at_all_is_refused(levels):
    with pytest.raises(ValueError, match=r"confidence_level.*at least one.*empty"):
        read_levels(levels)


@pytest.mark.parametrize("levels", [[0.9, 1.0], [0.9, None], [[0.9, 0.5]], np.array([[0.9]]), "0.9", [0.5, math.nan]])
def test_one_bad_level_spoils_a_sequence(levels):
    with pytest.raises(ValueError, match="confidence_level"):
        read_levels(levels)


@settings(deadline=None, max_examples=300)
@given(st.integers(1, 500), st.fractions(Fraction(1, 1000), Fraction(999, 1000), max_denominator=1000))
def test_rank_is_the_fewest_rows_that_make_the_p_value_exceed_delta(n_rows, level):
    k = rank(level, n_rows)
    assert Fraction(k + 1, n_rows + 1) > 1 - level
    assert k == 0 or Fraction(k, n_rows + 1) <= 1 - level


def test_rank_is_free_of_rounding():
    assert math.floor((1 - 0.9) * 500) == 49  # what floats would say
    assert rank(read_level(0.9), 499) == 50
    for n_rows in range(9, 2000, 10):
        assert rank(read_level(0.9), n_rows) == (n_rows + 1) // 10
    for n_rows in range(19, 2000, 20):
        assert rank(read_level(1 - 0.05), n_rows) == (n_rows + 1) // 20


@settings(deadline=None, max_examples=300)
@given(st.fractions(Fraction(1, 1000), Fraction(999, 1000), max_denominator=1000))
def test_rows_needed_is_where_the_rank_becomes_positive(level):
    n_rows = rows_needed(level)
    assert rank(level, n_rows) >= 1
    assert n_rows == 1 or rank(level, n_rows - 1) == 0
    assert n_rows >= 1


@pytest.mark.parametrize("weight", [1.0, 0.3])
def test_equal_weights_ask_for_the_rank(weight):
    levels = [Fraction(percents, 100) for percents in range(1, 100)]
    for n in (1, 9, 19, 99, 199):
        least = Needed.of_weights(levels, np.full(n, weight), np.array([weight])).least[0]
        too_few = weight * np.arange(n + 1) <= least[:, None]  # numbers of rows that cover
        assert too_few.sum(axis=1).tolist() == [rank(level, n) for level in levels]
