"""The theorem on ten times as many bags as in the fast lane (tests/test_permutation.py), nasty ones above all."""

import numpy as np
import pytest

import bags
import test_permutation as fast

NASTY_BAGS = 10 * (len(bags.BAGS) + fast.NASTY_BAGS) - len(bags.BAGS)


@pytest.mark.slow
@pytest.mark.parametrize("bag", bags.BAGS)
@pytest.mark.parametrize("name", bags.ANY_LABELS)
def test_larger_bags(name, bag):
    rng = np.random.default_rng([1, sum(map(ord, name + bag.__name__))])
    first = bags.n_tuning(bags.MODELS[name])
    X, y = bag(rng, (13 if bags.averages(name) else 19) + first)
    found = bags.in_turn(X, y, bags.MODELS[name], first)
    if found is None:
        assert fast.refused(name, bag)
        return
    bags.check(X, y, found, name, first)


@pytest.mark.slow
@pytest.mark.parametrize("name", bags.ANY_LABELS)
def test_nasty_bags(name):
    refused = 0
    for seed in range(fast.NASTY_BAGS, NASTY_BAGS + fast.NASTY_BAGS):
        rng = np.random.default_rng([seed, sum(map(ord, name))])
        first = bags.n_tuning(bags.MODELS[name])
        X, y = bags.nasty(rng, int(rng.integers(5, 12)) + first)
        found = bags.in_turn(X, y, bags.MODELS[name], first)
        if found is None:
            refused += 1
            continue
        bags.check(X, y, found, name, first)
    assert refused <= NASTY_BAGS // 5
