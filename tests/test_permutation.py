"""The guarantee itself: each row of a bag in turn is the test row, and the p-values are 1/n, ..., 1 in some order."""

import numpy as np
import pytest

import bags
from conformal_gp import ConformalGPRegressor
from conformal_gp.predictors import selectors
from conformal_gp.predictors.segments import Segments

ROWS = 8
NASTY_BAGS = 2


def refused(name, bag):
    """Whether a model may refuse a bag: a far-out input in a linear low-rank model, or too little noise for rows."""
    return bag is bags.nasty or (name in ("sparse, linear mean",) and bag is bags.far_out_input)


@pytest.mark.parametrize("bag", bags.BAGS)
@pytest.mark.parametrize("name", bags.MODELS)
def test_p_values_of_a_bag_are_a_permutation(name, bag):
    rng = np.random.default_rng(sum(map(ord, name + bag.__name__)))
    first = bags.n_design(name)
    X, y = bag(rng, ROWS + first)
    found = bags.p_values(X, y, name, first)
    if found is None:
        assert refused(name, bag)
        return
    bags.check(X, y, found, name, first)


@pytest.mark.parametrize("seed", range(NASTY_BAGS))
@pytest.mark.parametrize("name", bags.MODELS)
def test_nasty_bags(name, seed):
    rng = np.random.default_rng([seed, sum(map(ord, name))])
    first = bags.n_design(name)
    X, y = bags.nasty(rng, int(rng.integers(5, 10)) + first)
    found = bags.p_values(X, y, name, first)
    if found is not None:
        bags.check(X, y, found, name, first)


def selected(X, y, **options):
    """What the bag selects, with each row in turn as the test row."""
    found = []
    for i in range(len(y)):
        rest = np.arange(len(y)) != i
        model = ConformalGPRegressor(**options).fit(X[rest], y[rest])
        ((_, scaled),) = model._predictor._blocks(X[~rest])
        found.append(tuple(scaled.select(X[~rest], Segments.labels(y[~rest]))[1]))
    return found


@pytest.mark.parametrize("seed", range(3))
def test_a_rare_category_among_the_rows_that_coarse_steps_look_at(monkeypatch, seed):
    """A row that is alone in its category there has no say in what is selected, whether it is the test row or not."""
    monkeypatch.setattr(selectors, "COARSE_ROWS", 9)
    rng = np.random.default_rng(seed)
    X, y = bags.smooth(rng, 14)
    coarse = np.arange(14)
    while X[coarse, 1].sum() != 1.0:  # two rows of the category, one of them among the nine
        X[:, 1] = 0.0
        X[rng.choice(14, 2, replace=False), 1] = 1.0
        coarse = selectors.CoarseRows.of(X).without
    y[coarse[X[coarse, 1] == 0.0][0]] += 100.0  # stands out
    assert len(set(selected(X, y, mean="linear"))) == 1


def test_a_row_of_large_prior_variance_does_not_hide_which_row_stands_out():
    """Under a kernel that grows with its inputs, one far-out input is no reason to call other rows' scores tied."""
    X = np.array(
        [[1, -1], [0, -1], [0, 1], [0, 0], [-1, 1], [2, 2], [0, 0], [0, 2], [0, 2], [0, -1892800]], dtype=float
    )
    y = np.array([2, 1, 3, 1, -2, 2, -1, 3, 2, -2], dtype=float)
    assert sorted(bags.p_values(X, y, "sum")) == list(range(1, 11))


@pytest.mark.parametrize("name", ["linear mean", "candidates, linear mean", "fixed, linear mean"])
def test_smoothed_p_values_of_a_bag_with_rows_alone_in_their_category(name):
    """Each row in turn the test row: on average p-values are uniform, rows whose mean nothing determines included."""
    rng = np.random.default_rng(0)
    X, y = bags.noisy(rng, 14)
    X = np.column_stack([X, np.eye(14)[:, :3]])  # each of three rows alone has a 1 in a column
    n = y.size
    low, high = np.empty((2, n))
    for i in range(n):
        rest = np.arange(n) != i
        predictor = ConformalGPRegressor(**bags.MODELS[name]).fit(X[rest], y[rest])._predictor
        (at_least,), (higher,) = predictor.counts(X[~rest], y[~rest], signed=False)
        low[i], high[i] = higher / n, (at_least + 1) / n
    for delta in np.linspace(0.02, 0.98, 25):
        assert np.mean(np.clip((delta - low) / (high - low), 0.0, 1.0)) == pytest.approx(delta)


def test_labels_that_are_alike_but_for_the_row_that_stands_out_and_the_test_row():
    """What the mean function explains without the test row, it does not with it: slopes are those of the whole bag."""
    X = np.array([[-1.7869561], [1.9879401], [0.1884781], [-1.7869573], [0.764731]])
    y = np.array([1.0, 0.0, 0.0, 0.0, 1.0])
    assert len(set(selected(X, y))) == 1
    assert sorted(bags.p_values(X, y, "default")) == list(range(1, 6))
