"""Rows that stand out, against direct evaluation."""

import itertools

import numpy as np
import pytest

from conformal_gp.conformal.lines import Lines
from conformal_gp.conformal.regions import regions
from conformal_gp.conformal.upper_envelope import TEST_ROW, TIED, outstanding


def random_lines(seed):
    rng = np.random.default_rng(seed)
    n = rng.integers(1, 12)
    offset, slope = rng.normal(size=n), rng.uniform(-0.95, 0.95, size=n)
    if seed % 4 == 0:
        slope *= 2.0  # rows that stand out far away
    if seed % 5 == 0 and n > 2:
        offset[1], slope[1] = -offset[0], -slope[0]  # a tie everywhere
    return Lines(np.array([0.3]), offset[None], slope[None])


def divide(lines, low, high):
    _, *parts = outstanding(lines, np.array([0]), np.array([low]), np.array([high]))
    return list(zip(*parts, strict=True))


@pytest.mark.parametrize("seed", range(100))
def test_parts_and_their_rows(seed):
    lines = random_lines(seed)
    parts = divide(lines, -30.0, 30.0)
    assert parts[0][0] == -30.0
    assert parts[-1][1] == 30.0
    assert all(one[1] == other[0] for one, other in itertools.pairwise(parts))
    for y in np.linspace(-29.9, 29.9, 2001):
        scores, own = np.abs(lines.offset[0] + lines.slope[0] * (y - 0.3)), abs(y - 0.3)
        (row,) = [row for low, high, row in parts if low <= y <= high][:1]
        if abs(scores.max() - own) < 1e-9:
            continue
        if scores.max() < own:
            assert row == TEST_ROW
        elif row == TIED:
            assert np.sum(scores > scores.max() - 1e-9) > 1
        else:
            assert scores[row] == pytest.approx(scores.max(), abs=1e-9)


@pytest.mark.parametrize("seed", range(100))
def test_a_single_label_is_like_a_segment(seed):
    lines = random_lines(seed)
    for low, high, row in divide(lines, -30.0, 30.0):
        if high - low > 1e-6:
            middle = 0.5 * (low + high)
            assert divide(lines, middle, middle) == [(middle, middle, row)]


@pytest.mark.parametrize("seed", range(40))
def test_where_ranked_rows_stand_out_is_the_region_of_rank_one(seed):
    lines = random_lines(seed)
    joined = []
    for low, high, row in divide(lines, -np.inf, np.inf):
        if row == TEST_ROW:
            continue
        if joined and low <= joined[-1][1] + 1e-12:
            joined[-1][1] = high
        else:
            joined.append([low, high])
    (region,) = regions(lines, 1)
    np.testing.assert_allclose(joined, region, atol=1e-9)


def test_rows_that_tie_are_not_told_apart():
    lines = Lines(np.zeros(1), np.array([[1.0, -1.0, 0.5]]), np.array([[0.3, -0.3, 0.0]]))
    parts = divide(lines, -np.inf, np.inf)
    assert [row for _, _, row in parts] == [TEST_ROW, TIED, TEST_ROW]
    assert parts[1][:2] == pytest.approx((-1.0 / 1.3, 1.0 / 0.7))
    assert divide(lines, 0.0, 0.0) == [(0.0, 0.0, TIED)]


def test_a_test_row_that_ties_with_the_highest_is_not_told_apart():
    lines = Lines(np.zeros(1), np.array([[1.0, 0.5]]), np.zeros((1, 2)))
    assert [divide(lines, t, t)[0][2] for t in (0.9, 1.0, 1.1)] == [0, TIED, TEST_ROW]
