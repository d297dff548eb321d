"""Lower envelopes against direct evaluation."""

from itertools import pairwise

import numpy as np
import pytest

from conformal_gp.conformal.envelope import lower_envelope, select


def random_parabolas(seed):
    rng = np.random.default_rng(seed)
    n = rng.integers(1, 9)
    base, curvature, vertex = rng.uniform(0, 3, n), rng.uniform(0.1, 2, n), rng.normal(size=n)
    if seed % 3 == 0:
        curvature[:] = 1.0  # differences are lines
    if seed % 5 == 0:
        vertex[:] = 0.3  # parabolas that touch or never meet
    return base, curvature, vertex


@pytest.mark.parametrize("seed", range(200))
def test_the_owner_of_a_stretch_is_lowest_on_it(seed):
    base, curvature, vertex = random_parabolas(seed)
    breaks, owner = lower_envelope(base, curvature, vertex)
    assert breaks[0] == -np.inf
    assert breaks[-1] == np.inf
    assert (np.diff(breaks) > 0).all()
    inner = np.clip(
        breaks, breaks[np.isfinite(breaks)].min(initial=0.0) - 9.0, breaks[np.isfinite(breaks)].max(initial=0.0) + 9.0
    )
    y = np.concatenate([np.linspace(low, high, 9)[1:-1] for low, high in pairwise(inner)])
    values = base[:, None] + curvature[:, None] * (y - vertex[:, None]) ** 2
    of_owner = values[np.repeat(owner, 7), np.arange(y.size)]
    np.testing.assert_allclose(of_owner, values.min(axis=0), rtol=1e-9)


def test_neighbouring_stretches_have_different_owners():
    for seed in range(200):
        owner = lower_envelope(*random_parabolas(seed)).owner
        assert (owner[1:] != owner[:-1]).all()


def test_equal_parabolas_are_one_stretch():
    twice = np.array([1.0, 1.0])
    assert lower_envelope(twice, twice, twice).owner.size == 1


def test_select_gives_the_lowest_and_the_first_of_equals():
    base, curvature, vertex = np.array([[1.0], [0.0], [0.0]]), np.ones((3, 1)), np.zeros((3, 1))
    np.testing.assert_array_equal(select(base, curvature, vertex, np.array([0.4])), [1])
