"""The verdict on coverage, and the range that chance allows."""

from fractions import Fraction

import numpy as np
import pytest
from scipy.stats import binom

from conformal_gp.evaluation import (
    Finding,
    Judgement,
    chance_range,
    supported_levels,
    verdict,
)

LEVEL = Fraction(9, 10)


def finding(level="0.9", misses=10, n=100, infinite=0, above=None):
    above = misses // 2 if above is None else above
    return Finding("ours", Fraction(level), n, misses - above, above, 1.0, infinite)


@pytest.mark.parametrize(("n", "level"), [(392, "0.99"), (100, "0.9"), (45, "0.9"), (57, "0.5"), (2000, "0.95")])
def test_judgement_is_a_binomial_test(n, level):
    delta = float(1 - Fraction(level))
    for misses in range(n + 1):
        as_many, as_few = binom.sf(misses - 1, n, delta), binom.cdf(misses, n, delta)
        expected = (
            Judgement.TOO_NARROW
            if as_many < 0.005
            else Judgement.IN_DOUBT
            if as_many < 0.025
            else Judgement.TOO_WIDE
            if as_few < 0.005
            else Judgement.TOO_FEW
            if n < 10 / (1 - Fraction(level))
            else Judgement.WITHIN
        )
        assert finding(level=level, misses=misses, n=n).judgement == expected


def test_few_rows_cannot_tell():
    assert finding(misses=9, n=45).judgement == "too few rows to tell"
    said = "ours: 90% intervals covered 80.0%, too few rows to tell; median width 1."
    assert verdict([finding(misses=9, n=45)]) == [said]
    assert finding(misses=15, n=45).judgement == "too narrow"


def test_without_a_finite_interval_nothing_is_judged():
    assert finding(misses=0, infinite=100).judgement == Judgement.INFINITE
    assert finding(misses=10, infinite=99).judgement == Judgement.WITHIN
    assert verdict([finding(infinite=100)]) == ["ours: 90%: infinite (too few rows)."]


def test_findings_count_rows_outside():
    found = Finding.of("m", 0.9, np.arange(4.0), np.array([[0, 1], [2, 3], [1, 2], [-np.inf, np.inf]]))
    assert (found.level, found.n_below, found.n_above, found.n_infinite) == (LEVEL, 1, 0, 1)
    assert (found.median_width, found.miscoverage) == (1.0, 0.25)


def test_chance_range_holds_what_it_says():
    levels = [0.5, 0.9, 0.99]
    for (low, high), level in zip(chance_range(levels, 200, 0.8), levels, strict=True):
        least, most = round(200 * low), round(200 * high)
        assert binom.cdf(least, 200, level) >= 0.1 > binom.cdf(least - 1, 200, level)
        assert binom.sf(most - 1, 200, level) >= 0.1 > binom.sf(most, 200, level)
    with pytest.raises(ValueError, match="probability must lie strictly between 0 and 1, got 95"):
        chance_range(0.9, 100, 95)


@pytest.mark.parametrize(("n", "levels"), [(99, [90, 95, 99]), (98, [90, 95]), (9, [90]), (8, [80]), (3, [50])])
def test_levels_that_rows_support(n, levels):
    assert supported_levels(n) == [Fraction(level, 100) for level in levels]
