"""Rows that stand out, against direct evaluation."""

import itertools

import numpy as np
import pytest

from conformal_gp.conformal.lines import Lines
from conformal_gp.conformal.regions import regions
from conformal_gp.conformal.upper_envelope import outstanding, outstanding_at


def random_lines(seed):
    rng = np.random.default_rng(seed)
    n = rng.integers(1, 12)
    offset, slope = rng.normal(size=n), rng.uniform(-0.95, 0.95, size=n)
    if seed % 4 == 0:
        slope *= 2.0  # rows that stand out far away
    if seed % 5 == 0 and n > 2:
        offset[1], slope[1] = -offset[0], -slope[0]  # a tie everywhere
    return offset, slope


@pytest.mark.parametrize("seed", range(100))
def test_parts_and_their_rows(seed):
    offset, slope = random_lines(seed)
    parts = outstanding(offset, slope, -30.0, 30.0)
    assert all(low <= high for low, high, _ in parts)
    assert all(high <= low for (_, high, _), (low, _, _) in itertools.pairwise(parts))
    t = np.linspace(-29.9, 29.9, 4001)
    scores = np.abs(offset[:, None] + slope[:, None] * t)
    for j in np.flatnonzero(np.abs(scores.max(axis=0) - np.abs(t)) > 1e-9):
        inside = [rows for low, high, rows in parts if low <= t[j] <= high]
        assert bool(inside) == (scores[:, j].max() > abs(t[j]))
        for rows in inside:
            np.testing.assert_allclose(scores[list(rows), j], scores[:, j].max(), atol=1e-9)


@pytest.mark.parametrize("seed", range(40))
def test_together_they_are_the_region_of_rank_one(seed):
    offset, slope = random_lines(seed)
    parts = outstanding(offset, slope, -np.inf, np.inf)
    joined = [list(parts[0][:2])]
    for low, high, _ in parts[1:]:
        if low <= joined[-1][1] + 1e-12:
            joined[-1][1] = high
        else:
            joined.append([low, high])
    (region,) = regions(Lines(np.zeros(1), offset[None, :], slope[None, :]), 1)
    np.testing.assert_allclose(joined, region, atol=1e-9)


def test_rows_that_tie_stand_out_together():
    offset, slope = np.array([1.0, -1.0, 0.5]), np.array([0.3, -0.3, 0.0])
    ((low, high, rows),) = outstanding(offset, slope, -np.inf, np.inf)
    assert rows == (0, 1)
    assert (low, high) == pytest.approx((-1.0 / 1.3, 1.0 / 0.7))


def test_one_label():
    lines = Lines(np.array([2.0, 2.0, 2.0]), np.tile([1.0, -1.0, 0.5], (3, 1)), np.zeros((3, 3)))
    assert outstanding_at(lines, np.array([2.5, 3.0, 3.1])) == [(0, 1), (0, 1), ()]
