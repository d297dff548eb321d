"""p-values by counting, with ties as full conformal prediction counts them."""

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cases import lines_of
from conformal_gp.conformal import levels
from conformal_gp.conformal.lines import Lines
from conformal_gp.conformal.lines import counts as weights_of_rows

quarters = st.integers(-8, 8).map(lambda i: i / 4)
rows = st.lists(st.tuples(quarters, quarters), min_size=1, max_size=9)


def p_values(lines, y, tie_breaks=1.0):
    """As predictors put them together."""
    return levels.shares(*weights_of_rows(lines, y), lines.offset.shape[1], tie_breaks)


def counts(some_rows, t):
    """Rows with a larger score than the test row's, and rows with one at least as large, exactly."""
    t = Fraction(t)
    differences = [abs(Fraction(p) + Fraction(q) * t) - abs(t) for p, q in some_rows]
    return sum(d > 0 for d in differences), sum(d >= 0 for d in differences)


@settings(deadline=None, max_examples=300)
@given(rows, quarters, st.sampled_from([0.0, 3.0, -1000.0]))
def test_ties_count_in_full(some_rows, t, centre):
    _, at_least = counts(some_rows, t)
    p = p_values(lines_of(some_rows, centre), np.array([centre + t]))
    assert p[0] == (at_least + 1) / (len(some_rows) + 1)


@settings(deadline=None, max_examples=300)
@given(rows, quarters, st.floats(0, 1))
def test_tie_breaks_take_a_share_of_the_ties_and_of_the_test_row_itself(some_rows, t, share):
    greater, at_least = counts(some_rows, t)
    p = p_values(lines_of(some_rows), np.array([t]), np.array([share]))
    assert p[0] == pytest.approx((greater + share * (at_least - greater + 1)) / (len(some_rows) + 1), abs=1e-15)


def test_scores_that_differ_by_rounding_are_tied():
    lines = lines_of([(0.3, 0.0)])
    assert p_values(lines, np.array([0.1 + 0.2]))[0] == 1.0  # one rounding error above 0.3
    assert p_values(lines, np.array([0.3 + 1e-8]))[0] == 0.5


def test_each_test_row_is_counted_on_its_own():
    rng = np.random.default_rng(0)
    lines = Lines(rng.normal(size=50), rng.normal(size=(50, 30)), rng.uniform(-1.2, 1.2, (50, 30)))
    y = rng.normal(0, 2, 50)
    t = y - lines.centre
    scores = np.abs(lines.offset + lines.slope * t[:, None])
    expected = (1 + (scores >= np.abs(t)[:, None]).sum(axis=1)) / 31
    np.testing.assert_array_equal(p_values(lines, y), expected)
