"""The extended list of scores, and the rules that choose an interval."""

from fractions import Fraction

import numpy as np
import pytest
from scipy.stats import beta, norm

from reproduction.comparators.recalibration import extended_scores, interval_levels

DELTAS = [Fraction(1, 10), Fraction(1, 20), Fraction(1, 100)]


def test_scores_are_extended_by_their_mean_gap():
    scores = np.array([3.0, -1.0, 0.0, 0.0])
    np.testing.assert_allclose(extended_scores(scores), [-1 - 4 / 3, -1, 0, 0, 3, 3 + 4 / 3])


def test_one_score_has_no_gap():
    with pytest.raises(ValueError, match=r"at least 2.*got 1"):
        extended_scores(np.array([0.5]))


@pytest.mark.parametrize("delta", DELTAS)
def test_central_levels_are_exact(delta):
    assert interval_levels(norm.ppf, delta, "central") == (float(delta / 2), float(1 - delta / 2))


@pytest.mark.parametrize("delta", DELTAS)
def test_shortest_interval_of_a_symmetric_distribution_is_central(delta):
    low, high = interval_levels(norm.ppf, delta, "shortest")
    assert low == pytest.approx(float(delta) / 2, abs=2 * float(delta) / 99**2)
    assert high - low == pytest.approx(float(1 - delta), abs=1e-15)


@pytest.mark.parametrize("delta", DELTAS)
def test_shortest_interval_of_a_skew_distribution_has_equal_densities_at_its_ends(delta):
    low, high = interval_levels(beta(2, 5).ppf, delta, "shortest")
    densities = beta(2, 5).pdf(beta(2, 5).ppf([low, high]))
    assert densities[0] == pytest.approx(densities[1], rel=0.01)


def test_shortest_interval_at_the_edge_takes_the_middle_of_the_last_bracket():
    low, high = interval_levels(lambda u: u**2, Fraction(1, 10), "shortest")  # the shortest starts at level 0
    step = 0.1 / 99 / 99
    assert low == pytest.approx(step / 2)
    assert high == pytest.approx(0.9 + step / 2)


def test_levels_do_not_pass_one():
    for delta in (Fraction(1, 3), Fraction(7, 10), Fraction(1, 7)):
        assert interval_levels(np.sqrt, delta, "shortest")[1] <= 1.0


def test_where_every_interval_is_infinite_none_is_shorter():
    def quantile(u):
        return np.where(u < 0.2, -np.inf, np.where(u > 0.8, np.inf, u))

    assert interval_levels(quantile, Fraction(1, 10), "shortest") == (0.05, 0.95)
    low, high = interval_levels(quantile, Fraction(1, 2), "shortest")
    assert 0.2 <= low < high <= 0.8
