"""The guarantee itself: each row of a bag in turn is the test row, and the p-values are 1/n, ..., 1 in some order."""

import numpy as np
import pytest

import bags
from conformal_gp import ConformalGPRegressor
from conformal_gp.gp.inputs import points
from conformal_gp.predictors.transformed import ShiftedPredictor

ROWS = 8
NASTY_BAGS = 1


# Each model with three bags, each bag with eight models; tests/slow/test_many_bags.py has all pairs.
SQUARE = [(name, bags.BAGS[(i + step) % len(bags.BAGS)]) for i, name in enumerate(bags.MODELS) for step in (0, 4, 7)]


def refused(name, bag):
    """Whether a model may refuse a bag: where variances grow with a far-out input, or too little noise for rows."""
    return bag is bags.nasty or (name in ("sparse, linear mean", "sum") and bag is bags.far_out_input)


@pytest.mark.parametrize(("name", "bag"), SQUARE)
def test_p_values_of_a_bag_are_a_permutation(name, bag):
    rng = np.random.default_rng(sum(map(ord, name + bag.__name__)))
    first = bags.n_design(name)
    X, y = bag(rng, ROWS + first)
    found = bags.p_values(X, y, name, first)
    if found is None:
        assert refused(name, bag)
        return
    bags.check(X, y, found, name, first)


@pytest.mark.parametrize("name", [name for name in bags.MODELS if name.startswith(("fix", "hold", "spa", "def", "ow"))])
def test_rows_that_come_later_are_ranked_like_others(name):
    first = bags.n_design(name)
    X, y = bags.noisy(np.random.default_rng(sum(map(ord, name))), ROWS + first)
    found = bags.p_values(X, y, name, first, later=3)
    np.testing.assert_allclose(np.sort(found), np.arange(1, ROWS + 1))


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
        predictor, label = model._predictor, y[~rest]
        if isinstance(predictor, ShiftedPredictor):  # labels that are large beside their differences
            label, predictor = label - predictor.shift, predictor.unshifted
        ((_, bag, new),) = predictor._bags(points(X[~rest]), np.arange(1))
        found.append(int(bag.parabolas(new).least_at(label)[0]))
    return found


@pytest.mark.parametrize("name", ["default", "se", "linear mean", "one length scale"])
def test_a_bag_at_the_least_noise_selects_alike_whichever_row_is_the_test_row(name):
    """A function so smooth that noise goes down to the least: scores tie that rounding cannot tell apart, a few."""
    rng = np.random.default_rng(sum(map(ord, name)))
    X = rng.uniform(-1.0, 1.0, (30, 2))
    y = np.exp(X[:, 0] + 0.5 * X[:, 1])
    assert len(set(selected(X, y, **bags.MODELS[name]))) == 1
    excess = np.sort(bags.p_values(X, y, name)) - np.arange(1, 31)
    assert excess.min() > -1e-9
    assert excess.mean() < 0.5


def test_rows_that_nearly_coincide_stand_out_alike():
    """Two rows a rounding error apart with different labels: whether they tie does not depend on the test row."""
    name = "gamma 3"
    X, y = bags.near_duplicates(np.random.default_rng([1, sum(map(ord, name + "near_duplicates"))]), 19)
    assert len(set(selected(X, y, gamma=3.0))) == 1


@pytest.mark.parametrize(("name", "seed"), [("rq", 65), ("linear mean", 71), ("own noise", 96)])
def test_bags_that_lost_digits_once(name, seed):
    """Labels ten thousand million times as large as their differences."""
    rng = np.random.default_rng([seed, sum(map(ord, name))])
    X, y = bags.nasty(rng, int(rng.integers(5, 12)))
    bags.check(X, y, bags.p_values(X, y, name), name)
    assert len(set(selected(X, y, **bags.MODELS[name]))) == 1


@pytest.mark.parametrize("seed", [27, 102])
def test_a_row_that_alone_determines_a_coefficient_by_little_is_seen_as_such(seed):
    """What tells it from the other rows is 1e-4 of an input, so rounding is 1e4 times as large beside it."""
    name = "linear mean"
    rng = np.random.default_rng([seed, sum(map(ord, name))])
    X, y = bags.nasty(rng, int(rng.integers(5, 12)))
    bags.check(X, y, bags.p_values(X, y, name), name)


@pytest.mark.parametrize("offset", [1e6, -1e9, 1e13])
def test_an_offset_of_the_labels_takes_no_digits(offset):
    """Labels are multiples of a power of two, so that all of them are exact with the offset."""
    rng = np.random.default_rng(3)
    X, y = bags.smooth(rng, 24)
    y = np.round(128.0 * (y + 0.3 * rng.standard_normal(24))) / 128.0
    train, test = np.arange(20), np.arange(20, 24)
    plain, shifted = (ConformalGPRegressor().fit(X[train], y[train] + by) for by in (0.0, offset))
    assert shifted._predictor is not plain._predictor
    np.testing.assert_array_equal(shifted.predict_p(X[test], y[test] + offset), plain.predict_p(X[test], y[test]))
    ends, exact = shifted.predict_interval(X[test], 0.8), plain.predict_interval(X[test], 0.8) + offset
    assert (np.abs(ends - exact) <= 2.0 * np.spacing(abs(offset))).all()
    delta = 1.0 - 0.8
    for side, out in ((0, -np.inf), (1, np.inf)):  # the floating-point numbers between the ends, and no others
        assert (shifted.predict_p(X[test], ends[:, side]) > delta).all()
        if abs(offset) > 1e8:  # then numbers are farther apart than what counts as a tie
            assert (shifted.predict_p(X[test], np.nextafter(ends[:, side], out)) <= delta).all()
    shift = shifted.mean_coef_ - plain.mean_coef_
    np.testing.assert_allclose(shift, offset * np.eye(shift.size)[0], rtol=1e-9, atol=1e-9 * abs(offset))


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
        (at_least,), (higher,) = predictor.counts(points(X[~rest]), y[~rest], signed=False)
        low[i], high[i] = higher / n, (at_least + 1) / n
    for delta in np.linspace(0.02, 0.98, 25):
        assert np.mean(np.clip((delta - low) / (high - low), 0.0, 1.0)) == pytest.approx(delta)


def test_labels_that_are_alike_but_for_the_row_that_stands_out_and_the_test_row():
    """What the mean function explains without the test row, it does not with it: slopes are those of the whole bag."""
    X = np.array([[-1.7869561], [1.9879401], [0.1884781], [-1.7869573], [0.764731]])
    y = np.array([1.0, 0.0, 0.0, 0.0, 1.0])
    assert len(set(selected(X, y))) == 1
    assert sorted(bags.p_values(X, y, "default")) == list(range(1, 6))
