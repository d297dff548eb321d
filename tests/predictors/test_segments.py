"""Segments of candidate labels."""

import numpy as np
import pytest

from conformal_gp.predictors.segments import NOTHING, Segments, cut

INF = np.inf


def segments(*parts):
    """From (row, low, high), nothing set aside."""
    row, low, high = (np.array(column) for column in zip(*parts, strict=True))
    return Segments(row, low.astype(float), high.astype(float), np.full(row.size, NOTHING))


def holds(found, row, label):
    """How many segments hold a label of a row, ends left out."""
    return int(((found.row == row) & (found.low < label) & (label < found.high)).sum())


def where_negative(start, a, b, c, centre):
    """Parts of segments on which a quadratic is negative, and the others."""
    n = 3 * start.size
    which, sign = np.empty(n, dtype=np.int64), np.empty(n, dtype=bool)
    low, high = np.empty((2, n))
    count = 0
    for k in range(start.size):
        quadratic = a[k], b[k], c[k], centre[k]
        count = cut(k, start.low[k], start.high[k], *quadratic, which, low, high, sign, count)
    return start.divided(which[:count], low[:count], high[:count], sign[:count])


def check(start, a, b, c, centre):
    """Every label of a grid is in exactly one of both results, the right one."""
    negative, others = where_negative(start, a, b, c, centre)
    for i in range(start.size):
        inside = np.linspace(max(start.low[i], -50.0), min(start.high[i], 50.0), 1003)[1:-1]
        t = inside - centre[i]
        value = t * (a[i] * t + b[i]) + c[i]
        for label, v in zip(inside, value, strict=True):
            if abs(v) > 1e-9 * (abs(a[i] * t).max() * 50 + abs(b[i]) * 50 + abs(c[i])):
                assert (holds(negative, start.row[i], label), holds(others, start.row[i], label)) == (v < 0, v > 0)
    assert (negative.low < negative.high).all()
    assert (others.low < others.high).all()


@pytest.mark.parametrize("seed", range(40))
def test_negative_parts_are_those_of_a_grid(seed):
    rng = np.random.default_rng(seed)
    n = 6
    ends = np.sort(rng.normal(0, 5, (n, 2)), axis=1)
    ends[0] = -INF, INF
    ends[1, 1] = INF
    ends[2, 0] = -INF
    start = segments(*((i, *ends[i]) for i in range(n)))
    check(start, *rng.normal(size=(3, n)), rng.normal(size=n))


@pytest.mark.parametrize(
    ("a", "b", "c"),
    [
        (0, 0, 0),
        (0, 0, 1),
        (0, 0, -1),
        (0, 2, 1),
        (0, -2, 1),
        (1, 0, 0),
        (-1, 0, 0),
        (1, -2, 1),
        (-1, 2, -1),
        (1, 0, 4),
        (-1, 0, -4),
        (1, 0, -4),
        (-1, 0, 4),
        (1, 3, 0),
        (1, -3, 0),
        (-1, 3, 0),
        (1e-18, 1, -2),
        (1e-18, -1, -2),
    ],
)
@pytest.mark.parametrize(("low", "high"), [(-INF, INF), (-1, INF), (-INF, 2.5), (-3, 1.5)])
def test_quadratics_that_degenerate(a, b, c, low, high):
    check(segments((0, low, high)), *(np.array([float(v)]) for v in (a, b, c, 0.25)))


def test_single_labels_are_told_by_their_value():
    start = segments((0, 1, 1), (1, 3, 3), (2, 2, 2))
    one = np.ones(3)
    negative, others = where_negative(start, one, 0 * one, -4 * one, 0 * one)  # |t| < 2
    assert negative.row.tolist() == [0]
    assert others.row.tolist() == [1, 2]


def test_what_is_set_aside_stays_with_its_parts():
    start = segments((0, -5, 5))._replace(aside=np.array([7]))
    negative, others = where_negative(start, *(np.array([v]) for v in (1.0, 0.0, -1.0, 0.0)))
    assert negative.aside.tolist() == [7]
    assert others.aside.tolist() == [7, 7]
    assert others.low.tolist() == [-5, 1]


def test_neighbours_are_joined_only_within_a_row_and_with_the_same_aside():
    parts = segments((1, 2, 3), (0, 0, 1), (0, 1, 2), (1, 0, 2), (0, 4, 5))
    joined = parts.joined()
    assert list(zip(joined.row, joined.low, joined.high, strict=True)) == [(0, 0, 2), (0, 4, 5), (1, 0, 3)]
    aside = parts._replace(aside=np.array([0, 0, 1, 0, 0]))
    assert aside.joined().size == 4
    assert aside.forget().size == 3


def test_common_labels():
    found = segments((0, -INF, 1), (1, 0, 4)).common(segments((0, 0, 9), (1, 5, 6), (1, 1, 2), (2, 0, 1)))
    assert list(zip(found.row, found.low, found.high, strict=True)) == [(0, 0, 1), (1, 1, 2)]
    touching = segments((0, 0, 1)).common(segments((0, 1, 2)))
    assert touching.size == 0
    single = Segments.labels(np.array([3.0])).common(Segments.whole_lines(1))
    assert (single.low[0], single.high[0]) == (3.0, 3.0)
