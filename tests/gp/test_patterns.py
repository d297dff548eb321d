"""Patterns of length scales."""

from itertools import combinations, product

import numpy as np
import pytest
from sklearn.gaussian_process.kernels import RBF, ConstantKernel, DotProduct, ExpSineSquared, Matern, WhiteKernel

from conformal_gp.gp.candidates import LENGTH_SCALES
from conformal_gp.gp.patterns import FACTORS, MORE, NOT, PLAIN, Pattern, Patterns, has_patterns

ALL = [Pattern(common, inputs) for common in (0, 5, 11) for inputs in product((MORE, PLAIN, NOT), repeat=3)]


def test_numbers_name_patterns():
    patterns = Patterns(RBF([1.0, 1.0, 1.0]))
    assert len({pattern.number for pattern in ALL}) == len(ALL)
    assert [patterns.pattern(pattern.number) for pattern in ALL] == ALL


def test_steps_can_be_taken_back_and_change_one_thing():
    for pattern in ALL:
        for neighbour in pattern.neighbours(most=3):
            assert pattern in neighbour.neighbours(most=3)
            changes = abs(neighbour.common - pattern.common)
            changes += sum(abs(a - b) for a, b in zip(neighbour.inputs, pattern.inputs, strict=True))
            assert changes == 1
            assert 0 <= neighbour.common < LENGTH_SCALES.size
            assert set(neighbour.inputs) <= {MORE, PLAIN, NOT}


def test_every_pattern_can_be_reached():
    reached, edge = set(), {Pattern(5, (PLAIN,) * 3)}
    while edge:
        reached |= edge
        edge = {neighbour for pattern in edge for neighbour in pattern.neighbours(most=3)} - reached
    assert len(reached) == LENGTH_SCALES.size * 3**3


@pytest.mark.parametrize("most", [1, 2])
def test_no_more_inputs_matter_than_may(most):
    few = [pattern for pattern in ALL if pattern.n_mattering <= most]
    assert few
    assert max(neighbour.n_mattering for pattern in few for neighbour in pattern.neighbours(most)) == most


@pytest.mark.parametrize("d", [2, 3, 6])
def test_handicaps_bet_one_to_one_on_no_differences(d):
    odds = {inputs: np.exp(-Pattern(0, inputs).handicap) for inputs in product((PLAIN, NOT), repeat=d)}
    assert odds.pop((PLAIN,) * d) == 1.0
    assert sum(odds.values()) == pytest.approx(1.0)
    by_number = [sum(o for inputs, o in odds.items() if inputs.count(NOT) == k) for k in range(1, d + 1)]
    np.testing.assert_allclose(by_number, 1.0 / d)
    more = {inputs: np.exp(-Pattern(0, (*inputs, NOT)).handicap) for inputs in product((PLAIN, MORE), repeat=d)}
    plain = more.pop((PLAIN,) * d)
    assert sum(more.values()) == pytest.approx(plain)


def test_kernels_have_the_length_scales_of_their_patterns():
    given = ConstantKernel(3.0) * Matern([1.0, 2.0, 4.0], (1e-3, 1e9), nu=1.5)
    kernel = Patterns(given).kernel(Pattern(4, (NOT, PLAIN, MORE)))
    np.testing.assert_allclose(kernel.k2.length_scale, LENGTH_SCALES[4] * np.array([1.0, 2.0, 4.0]) * FACTORS[::-1])
    assert kernel.k1.constant_value == pytest.approx(3.0)
    assert kernel.k2.nu == 1.5


def test_kernels_stay_within_their_bounds():
    given = ConstantKernel(3.0) * Matern([1.0, 2.0], (0.9, 2.5))
    for pattern in (Pattern(0, (PLAIN, PLAIN)), Pattern(11, (NOT, MORE))):
        lengths = Patterns(given).kernel(pattern).k2.length_scale
        assert (lengths >= 0.9 - 1e-12).all()
        assert (lengths <= 2.5 + 1e-12).all()


def test_starts():
    patterns = Patterns(RBF(np.ones(5)))
    assert [pattern.handicap for pattern in patterns.alike] == [0.0] * LENGTH_SCALES.size
    assert {pattern.n_mattering for pattern in patterns.few} == {1, 2}
    mattering = {tuple(i for i, level in enumerate(pattern.inputs) if level == PLAIN) for pattern in patterns.few}
    assert mattering == {*combinations(range(5), 1), *combinations(range(5), 2)}
    assert patterns.most_at_first == 2
    assert {pattern.n_mattering for pattern in Patterns(RBF(np.ones(3))).few} == {1}


@pytest.mark.parametrize(
    ("kernel", "expected"),
    [
        (RBF([1.0, 1.0]), True),
        (ConstantKernel() * RBF([1.0, 1.0]), True),
        (Matern([1.0, 1.0]) * ConstantKernel(2.0, "fixed"), True),
        (RBF(1.0), False),
        (RBF([1.0, 1.0], "fixed"), False),
        (ConstantKernel() * RBF([1.0, 1.0]) + WhiteKernel(), False),
        (RBF([1.0, 1.0]) * Matern([1.0, 1.0]), False),
        (RBF([1.0, 1.0]) * ExpSineSquared(), False),
        (DotProduct(), False),
    ],
)
def test_which_kernels_have_patterns(kernel, expected):
    assert has_patterns(kernel) is expected
