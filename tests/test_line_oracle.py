"""Algorithm 1 of the oracle, from lines to regions, against results by hand."""

from fractions import Fraction

import numpy as np
import pytest

from line_oracle import INF, hull, region_from_lines


@pytest.mark.parametrize(
    ("a", "b", "expected"),
    [
        ([0.0, 0.0], [0.5, 1.0], [(0.0, 0.0)]),  # a point
        ([2.0, 0.0], [0.0, 1.0], [(-2.0, 2.0)]),  # an interval
        ([-2.0, 0.0], [-0.5, 1.0], [(-4.0 / 3, 4.0)]),  # an interval, with signs to turn
        ([-3.0, 0.0], [2.0, 1.0], [(-INF, 1.0), (3.0, INF)]),  # two rays
        ([0.0, 0.0], [2.0, 1.0], [(-INF, INF)]),  # two rays that touch
        ([1.0, 0.0], [1.0, 1.0], [(-0.5, INF)]),  # a ray upwards
        ([-1.0, 0.0], [1.0, 1.0], [(-INF, 0.5)]),  # a ray downwards
        ([1.0, 0.0], [-1.0, 1.0], [(-INF, 0.5)]),  # the same, with signs to turn
        ([1.0, 1.0], [1.0, 1.0], [(-INF, INF)]),  # the real line
        ([-1.0, 1.0], [-1.0, 1.0], [(-INF, INF)]),  # the same, with signs to turn
        ([-2.0, 1.0], [0.0, 0.0], [(-INF, INF)]),  # no slopes
        ([0.5, 1.0], [0.0, 0.0], []),  # no slopes, and empty
    ],
)
def test_one_row_conforms_where_its_line_is_above(a, b, expected):
    pieces = region_from_lines(a, b, Fraction(1, 2))
    np.testing.assert_allclose(np.reshape(pieces, (-1, 2)), np.reshape(expected, (-1, 2)), atol=1e-15)


def test_an_isolated_point_is_a_piece():
    # |1| >= |t| in [-1, 1], and |2t - 1| >= |t| outside the open interval from 1/3 to 1.
    pieces = region_from_lines([1.0, -1.0, 0.0], [0.0, 2.0, 1.0], Fraction(2, 3))
    assert pieces == [(-1.0, pytest.approx(1 / 3)), (1.0, 1.0)]


def test_the_level_is_compared_exactly():
    a, b = [2.0, 0.0], [0.0, 1.0]
    assert region_from_lines(a, b, Fraction(1, 2)) == [(-2.0, 2.0)]
    assert region_from_lines(a, b, Fraction(10**30 - 1, 2 * 10**30)) == [(-INF, INF)]
    assert region_from_lines(a, b, Fraction(10**30 - 1, 10**30)) == [(-2.0, 2.0)]
    assert region_from_lines(a, b, 1) == []
    ten_a, ten_b = [2.0] * 2 + [1.0] * 7 + [0.0], [0.0] * 9 + [1.0]
    assert region_from_lines(ten_a, ten_b, Fraction(3, 10)) == [(-1.0, 1.0)]
    assert region_from_lines(ten_a, ten_b, 0.3) == [(-2.0, 2.0)]  # 0.3 is less than three tenths


def test_points_equal_up_to_rounding_are_one():
    # As above on a scale of 0.3, where the interval ends one rounding error below the start of the ray.
    above = 0.1 + 0.2
    assert above > 0.3
    a, b = [0.3, -above, 0.0], [0.0, 2.0, 1.0]
    exact = region_from_lines(a, b, Fraction(2, 3), tolerance=0.0)
    assert exact == [(-0.3, pytest.approx(0.1))]
    tolerant = region_from_lines(a, b, Fraction(2, 3))
    assert tolerant == [(-0.3, pytest.approx(0.1)), (pytest.approx(0.3), pytest.approx(0.3))]


def test_hull():
    assert hull([[-2.0, -1.0], [0.5, 3.0]]) == (-2.0, 3.0)
    assert hull([[-INF, -1.0], [0.5, 3.0]]) == (-INF, 3.0)
    assert np.isnan(hull(np.empty((0, 2)))).all()
