"""Lines against the vectors a and b of the paper, and sets, bounds and p-values from them in exact arithmetic."""

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from sklearn.gaussian_process.kernels import RBF

import oracle
from cases import GAMMAS, INF, lines_of, make_data
from conformal_gp.conformal import levels
from conformal_gp.conformal.levels import Needed
from conformal_gp.conformal.lines import (
    COVERS_ALL,
    Lines,
    counts,
    hulls,
    mirrored,
    normalised_residual_lines,
    regions,
    upper_bounds,
)

NOISE = 0.2


def posterior_parts(kernel, X, y, inputs):
    """alpha, diag C, weights, means and variances of a zero-mean process, with dense matrices."""
    C = np.linalg.inv(kernel(X) + NOISE * np.eye(len(X)))
    K = kernel(inputs, X)
    weights = K @ C
    variance = kernel.diag(inputs) + NOISE - (K * weights).sum(axis=1)
    return C @ y, np.diag(C).copy(), weights, weights @ y, variance


@pytest.mark.parametrize("gamma", GAMMAS)
def test_normalised_residuals_are_the_lines_of_the_paper(gamma):
    X, y = make_data(1, 10)
    inputs, kernel = np.array([[0.2, 0.4], [-1.0, 1.0], [6.0, 6.0]]), RBF(0.9)
    found = normalised_residual_lines(*posterior_parts(kernel, X, y, inputs), gamma=gamma)
    a, b = (np.array(part) for part in zip(*(oracle.lines(kernel, NOISE, X, y, x, gamma) for x in inputs), strict=True))
    centre, unit = -a[:, -1] / b[:, -1], b[:, -1:]  # the test row's score is 0 there, and its slope is 1
    np.testing.assert_allclose(found.centre, centre, rtol=1e-9)
    np.testing.assert_allclose(found.offset, (a + b * centre[:, None])[:, :-1] / unit, rtol=1e-8, atol=1e-12)
    np.testing.assert_allclose(found.slope, b[:, :-1] / unit, rtol=1e-8, atol=1e-12)


def test_gamma_two_keeps_every_slope_below_one():
    rng = np.random.default_rng(3)
    diagonal, weights = rng.uniform(1e-6, 10, 200), rng.normal(0, 100, (20, 200))
    lines = normalised_residual_lines(
        rng.normal(size=200), diagonal, weights, np.zeros(20), rng.uniform(1e-3, 10, 20), gamma=2.0
    )
    assert (np.abs(lines.slope) < 1).all()


@pytest.mark.parametrize("gamma", GAMMAS)
def test_an_infinite_variance_lets_every_row_cover_every_label(gamma):
    lines = normalised_residual_lines(
        np.array([1.0, -2.0]), np.array([0.5, 0.7]), np.array([[0.3, 0.1]]), np.zeros(1), np.array([INF]), gamma=gamma
    )
    for t in (-1e9, -1.0, 0.0, 2.0, 1e9):
        assert (np.abs(lines.offset + lines.slope * t) >= abs(t)).all()


NEEDED = Needed.of_ranks


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


quarter_rows = st.lists(st.tuples(offsets, offsets), min_size=1, max_size=9)


def p_values(lines, y, tie_breaks=1.0):
    """As predictors put them together."""
    return levels.shares(*counts(lines, y), lines.offset.shape[1], tie_breaks)


def exact_counts(some_rows, t):
    """Rows with a larger score than the test row's, and rows with one at least as large, exactly."""
    t = Fraction(t)
    differences = [abs(Fraction(p) + Fraction(q) * t) - abs(t) for p, q in some_rows]
    return sum(d > 0 for d in differences), sum(d >= 0 for d in differences)


@settings(deadline=None, max_examples=300)
@given(quarter_rows, offsets, st.sampled_from([0.0, 3.0, -1000.0]))
def test_ties_count_in_full(some_rows, t, centre):
    _, at_least = exact_counts(some_rows, t)
    p = p_values(lines_of(some_rows, centre), np.array([centre + t]))
    assert p[0] == (at_least + 1) / (len(some_rows) + 1)


@settings(deadline=None, max_examples=300)
@given(quarter_rows, offsets, st.floats(0, 1))
def test_tie_breaks_take_a_share_of_the_ties_and_of_the_test_row_itself(some_rows, t, share):
    greater, at_least = exact_counts(some_rows, t)
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
