"""One-sided bounds and signed counts from lines, against direct counting in exact arithmetic."""

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from cases import lines_of
from conformal_gp.conformal.levels import Needed
from conformal_gp.conformal.lines import COVERS_ALL, Lines, counts, mirrored, upper_bounds

NEEDED = Needed.of_ranks

INF = np.inf

# Quarters make many ties, slopes of exactly 1, and points that floats hold exactly.
offsets = st.integers(-8, 8).map(lambda i: i / 4)
any_slope = st.sampled_from([-3.0, -1.0, -0.5, 0.0, 0.5, 1.0, 1.5, 2.0, 3.0])
below_one = st.sampled_from([-3.0, -1.0, -0.5, 0.0, 0.5])
any_rows = st.lists(st.tuples(offsets, any_slope), min_size=1, max_size=9)
monotone_rows = st.lists(st.tuples(offsets, below_one), min_size=1, max_size=9)


def at_least(rows, t):
    """How many rows score at least as high as the test row, in exact arithmetic."""
    t = Fraction(t)
    return sum(Fraction(p) + Fraction(q) * t >= t for p, q in rows)


def bounds(lines, below, above):
    """Lower bounds, then upper bounds."""
    return np.concatenate([-upper_bounds(mirrored(lines), below), upper_bounds(lines, above)], axis=1)


def supremum(rows, k):
    """Of the labels where at least k rows score at least as high, by looking at every place where the count changes."""
    ends = sorted({Fraction(p) / (1 - Fraction(q)) for p, q in rows if q != 1})
    beyond = (ends[-1] if ends else Fraction(0)) + 1
    if at_least(rows, beyond) >= k:
        return INF
    return max((float(end) for end in ends if at_least(rows, end) >= k), default=-INF)


@settings(deadline=None, max_examples=400)
@given(any_rows)
@example([(0.0, 1.0)])
@example([(1.0, 1.0), (-1.0, 1.0)])
@example([(1.0, 0.5), (-1.0, 2.0)])
@example([(-1.0, 3.0), (-1.0, 0.0)])
def test_bounds_are_suprema(rows):
    ranks = list(range(1, len(rows) + 1))
    found = upper_bounds(lines_of(rows), NEEDED(ranks))
    np.testing.assert_allclose(found[0], [supremum(rows, k) for k in ranks], rtol=1e-9, atol=1e-14)


@settings(deadline=None, max_examples=200)
@given(any_rows)
def test_lower_bounds_are_upper_bounds_of_the_negative(rows):
    ranks = list(range(len(rows) + 1))
    found = bounds(lines_of(rows, 3.0), NEEDED(ranks), NEEDED(ranks))
    turned = bounds(mirrored(lines_of(rows, 3.0)), NEEDED(ranks), NEEDED(ranks))
    np.testing.assert_array_equal(found, -np.roll(turned, len(ranks), axis=1))
    np.testing.assert_array_equal(found[:, [0, len(ranks)]], [[-INF, INF]])  # rank 0


@settings(deadline=None, max_examples=200)
@given(monotone_rows)
def test_thresholds_below_a_slope_of_one_are_a_distribution(rows):
    n = len(rows)
    ranks = list(range(1, n + 1))
    found = bounds(lines_of(rows), NEEDED(ranks), NEEDED(ranks[::-1]))[0]
    np.testing.assert_allclose(found[:n], found[n:], rtol=1e-9)  # the k-th smallest is the (n + 1 - k)-th largest
    assert (np.diff(found[:n]) >= 0).all()
    labels = np.linspace(-20, 20, 41)
    share = [at_least(rows, t) for t in labels]
    assert (np.diff(share) <= 0).all()
    assert (share[0], share[-1]) == (n, 0)


@settings(deadline=None, max_examples=200)
@given(any_rows, offsets)
def test_signed_counts(rows, t):
    found, greater = counts(lines_of(rows, 2.0), np.array([2.0 + t]), signed=True)
    assert found[0] == at_least(rows, t)
    assert greater[0] == len(rows) - at_least([(-p, q) for p, q in rows], -t)


def test_all_rows_tie_where_nothing_is_known():
    lines = Lines(np.zeros(2), np.zeros((2, 3)), np.full((2, 3), COVERS_ALL))
    found = counts(lines, np.array([-1.0, 1.0]), signed=True)
    np.testing.assert_array_equal(found, [[3, 3], [0, 0]])
    np.testing.assert_array_equal(bounds(lines, NEEDED([1, 3]), NEEDED([1, 3])), [[-INF, -INF, INF, INF]] * 2)


@pytest.mark.parametrize("ranks", [[], [1], [3, 1, 2, 1]])
def test_ranks_in_any_order(ranks):
    lines = lines_of([(1.0, 0.0), (2.0, 0.5), (-1.0, 0.0)], centre=10.0)
    np.testing.assert_allclose(
        upper_bounds(lines, NEEDED(ranks)), [[[14.0, 11.0, 9.0][k - 1] for k in ranks]], rtol=1e-9
    )
