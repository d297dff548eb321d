"""Pieces of lines of labels, point by point."""

import itertools

import numpy as np
import pytest

from conformal_gp.predictors.pieces import Piece, divide, join, overlay


def cut(rng, row, names, n):
    """A line cut at random, with a name on each piece."""
    ends = np.concatenate([[-np.inf], np.sort(rng.normal(size=n)), [np.inf]])
    return [(Piece(row, low, high), str(rng.choice(names))) for low, high in itertools.pairwise(ends)]


def name_at(pieces, row, y):
    (found,) = [name for piece, name in pieces if piece.row == row and piece.low < y < piece.high]
    return found


@pytest.mark.parametrize("seed", range(20))
def test_overlay_and_join_say_the_same_at_every_label(seed):
    rng = np.random.default_rng(seed)
    first = [piece for row in (0, 1) for piece in cut(rng, row, ["a", "b"], rng.integers(0, 5))]
    second = [piece for row in (1, 0) for piece in cut(rng, row, ["c", "d"], rng.integers(0, 5))]
    rng.shuffle(second)
    both, joined = list(overlay(first, second)), list(join(first))
    for row in (0, 1):
        for y in rng.normal(size=30):
            assert name_at(both, row, y) == (name_at(first, row, y), name_at(second, row, y))
            assert name_at(joined, row, y) == name_at(first, row, y)
    assert all((a.row, a.high) != (b.row, b.low) or one != other for (a, one), (b, other) in itertools.pairwise(joined))


def test_pieces_of_one_label_stay():
    point = Piece(3, 1.0, 1.0)
    assert list(overlay([(point, "a")], [(point, "b")])) == [(point, ("a", "b"))]
    assert list(divide(point, np.array([0.0, 0.5]), np.array([2.0, 1.0]), np.zeros(2))) == [(point, 1)]


@pytest.mark.parametrize(("low", "high"), [(-np.inf, np.inf), (-np.inf, 3.0), (-3.0, np.inf), (1.0, 2.0), (5.0, 5.0)])
def test_the_label_inside_is_inside(low, high):
    inside = Piece(0, low, high).inside
    assert low < inside < high or low == inside == high
    assert np.isfinite(inside)
