"""Regions and hulls from lines, against direct counting and Algorithm 1."""

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

import oracle
from cases import lines_of
from conformal_gp.conformal.levels import Needed
from conformal_gp.conformal.lines import Lines, hulls, regions

NEEDED = Needed.of_ranks

INF = np.inf

# Halves and quarters make many ties, slopes of exactly 1, and points that floats hold exactly.
offsets = st.integers(-8, 8).map(lambda i: i / 4)
slopes = st.sampled_from([-3.0, -2.0, -1.5, -1.0, -0.5, -0.25, 0.0, 0.25, 0.5, 1.0, 1.5, 2.0, 3.0])
one_sided = st.sampled_from([-0.75, -0.5, -0.25, 0.0, 0.25, 0.5, 0.75])
tied_rows = st.lists(st.tuples(offsets, slopes), min_size=1, max_size=9)
real_rows = st.lists(
    st.tuples(st.floats(-5, 5).map(lambda x: round(x, 3)), st.floats(-2.5, 2.5).map(lambda x: round(x, 3))),
    min_size=1,
    max_size=12,
)


def algorithm_1(rows, k):
    p, q = ([row[i] for row in rows] for i in (0, 1))
    return np.array(oracle.region_from_lines([*p, 0.0], [*q, 1.0], Fraction(k, len(rows) + 1)))


def covered(rows, t):
    """How many rows cover t, in exact arithmetic."""
    t = Fraction(t)
    return sum(abs(Fraction(p) + Fraction(q) * t) >= abs(t) for p, q in rows)


@settings(deadline=None, max_examples=400)
@given(tied_rows, st.data())
@example([(0.0, 1.0)], None)
@example([(0.0, -1.0), (0.0, 2.0), (0.0, 0.5)], None)
@example([(1.0, 1.0), (1.0, -1.0)], None)
@example([(-1.0, 1.0), (0.0, -3.0)], None)
@example([(1.0, 0.0), (-1.0, 2.0)], None)  # covers 1 alone: a piece that is a point
def test_rows_with_ties_and_slopes_of_one(rows, data):
    ranks = range(1, len(rows) + 1) if data is None else [data.draw(st.integers(1, len(rows)))]
    for k in ranks:
        (found,) = regions(lines_of(rows), NEEDED([k]))
        np.testing.assert_allclose(found, algorithm_1(rows, k), rtol=1e-9, atol=1e-9)


@settings(deadline=None, max_examples=200)
@given(tied_rows, st.data())
def test_a_dense_scan_finds_the_same_region(rows, data):
    k = data.draw(st.integers(1, len(rows)))
    (found,) = regions(lines_of(rows), NEEDED([k]))
    points = np.arange(-40, 41) / 8
    for t in [*points, *found[np.isfinite(found)], -1000.0, 1000.0]:
        inside = bool(((found[:, 0] <= t) & (t <= found[:, 1])).any())
        near_an_end = np.abs(found - t).min() < 1e-9
        assert inside or not near_an_end
        if not near_an_end:
            assert inside == (covered(rows, t) >= k), (t, found)
    for end in found[np.isfinite(found)]:  # closed, and beyond each end there is something else
        assert covered(rows, Fraction(float(end)).limit_denominator(1000)) >= k


@settings(deadline=None, max_examples=200)
@given(real_rows, st.data())
def test_rows_of_any_slope(rows, data):
    k = data.draw(st.integers(1, len(rows)))
    (found,) = regions(lines_of(rows), NEEDED([k]))
    # what counts as a tie is up to a thousand times larger at the ends of rows of a slope of 0.999
    np.testing.assert_allclose(found, algorithm_1(rows, k), rtol=1e-7, atol=1e-8)


@settings(deadline=None, max_examples=200)
@given(tied_rows | real_rows, st.floats(-100, 100))
def test_hulls_are_the_outermost_ends_of_regions(rows, centre):
    lines = lines_of(rows, centre)
    ranks = list(range(len(rows) + 1))
    found = hulls(lines, NEEDED(ranks))
    for k in ranks:
        (region,) = regions(lines, NEEDED([k]))
        np.testing.assert_allclose(found[0, :, k], [region[0, 0], region[-1, 1]], rtol=1e-9, atol=1e-9)


@settings(deadline=None, max_examples=100)
@given(st.lists(st.tuples(offsets, one_sided), min_size=1, max_size=9))
def test_slopes_below_one_give_one_bounded_interval_around_the_centre(rows):
    for k in range(1, len(rows) + 1):
        (region,) = regions(lines_of(rows, 3.0), NEEDED([k]))
        assert region.shape == (1, 2)
        assert np.isfinite(region).all()
        assert region[0, 0] <= 3.0 <= region[0, 1]


def test_rank_zero_is_the_whole_line():
    lines = lines_of([(1.0, 0.5), (0.0, 3.0)])
    np.testing.assert_array_equal(regions(lines, NEEDED([0]))[0], [[-INF, INF]])
    np.testing.assert_array_equal(hulls(lines, NEEDED([0])), [[[-INF], [INF]]])
    np.testing.assert_array_equal(hulls(lines_of([(1.0, 0.5)]), NEEDED([0])), [[[-INF], [INF]]])


def test_each_test_row_has_its_own_lines():
    rng = np.random.default_rng(0)
    lines = Lines(rng.normal(size=6), rng.normal(size=(6, 8)), rng.uniform(-1.5, 1.5, (6, 8)))
    together, hulls_together = regions(lines, NEEDED([3])), hulls(lines, NEEDED([3, 1]))
    for j in range(6):
        alone = Lines(lines.centre[j : j + 1], lines.offset[j : j + 1], lines.slope[j : j + 1])
        np.testing.assert_array_equal(regions(alone, NEEDED([3]))[0], together[j])
        np.testing.assert_array_equal(hulls(alone, NEEDED([3, 1]))[0], hulls_together[j])


# Offsets that a selection by sampling may stumble over.
SPREADS = {
    "random": lambda n, rng: rng.normal(size=n),
    "ascending": lambda n, rng: np.arange(n, dtype=float),
    "descending": lambda n, rng: np.arange(n, 0, -1.0),
    "equal": lambda n, rng: np.ones(n),
    "few values": lambda n, rng: rng.integers(0, 3, n).astype(float),
    "large where the sample looks": lambda n, rng: (
        np.where(np.arange(n) % (n // 64) == 0, 100.0, 1.0) + rng.uniform(0, 1, n)
    ),
    "small where the sample looks": lambda n, rng: (
        np.where(np.arange(n) % (n // 64) == 0, 0.0, 50.0) + rng.uniform(0, 1, n)
    ),
    "heavy tails": lambda n, rng: rng.standard_cauchy(n),
    "all zero but one": lambda n, rng: np.eye(1, n, n // 2)[0],
}


@pytest.mark.parametrize("n", [511, 512, 513, 640, 1000, 4096])
@pytest.mark.parametrize("kind", SPREADS)
def test_selection_among_many_rows_equals_sorting(kind, n):
    rng = np.random.default_rng(n)
    p, q = SPREADS[kind](n, rng), rng.uniform(-0.9, 0.9, n) * rng.integers(0, 2)
    above = np.sort(np.maximum(p / (1 - q), -p / (1 + q)))[::-1]
    below = np.sort(np.maximum(p / (1 + q), -p / (1 - q)))[::-1]
    ranks = [1, 2, n // 100 + 1, n // 20, n // 10, n // 10, n // 3, n // 2, n - 1, n, 0]
    order = rng.permutation(len(ranks))
    found = hulls(Lines(np.array([0.5]), p[None, :], q[None, :]), NEEDED([ranks[i] for i in order]))
    for place, i in enumerate(order):
        k = ranks[i]
        expected = [0.5 - below[k - 1], 0.5 + above[k - 1]] if k else [-INF, INF]
        np.testing.assert_allclose(found[0, :, place], expected, rtol=1e-9)
        if k:
            np.testing.assert_allclose(
                hulls(Lines(np.array([0.5]), p[None, :], q[None, :]), NEEDED([k]))[0, :, 0], expected, rtol=1e-9
            )


def test_lines_are_not_written_to():
    rng = np.random.default_rng(1)
    for limit in (0.9, 1.5):
        lines = Lines(rng.normal(size=3), rng.normal(size=(3, 700)), rng.uniform(-limit, limit, (3, 700)))
        copies = [part.copy() for part in lines[:3]]
        hulls(lines, NEEDED([5, 70]))
        regions(lines, NEEDED([5]))
        for part, copy in zip(lines[:3], copies, strict=True):
            np.testing.assert_array_equal(part, copy)
