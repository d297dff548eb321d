"""The guarantee itself: each row of a bag in turn is the test row, and the p-values are 1/n, ..., 1 in some order."""

from fractions import Fraction

import numpy as np
import pytest

import bags
from conformal_gp import ConformalGPRegressor
from conformal_gp.gp.inputs import Rows

ROWS = 8
NASTY_BAGS = 1


# Each model with three bags; tests/slow/test_many_bags.py has all pairs.
SQUARE = [
    (name, bag)
    for i, name in enumerate(bags.MODELS)
    for bag in (bags.BAGS[(i + step) % len(bags.BAGS)] for step in (0, 4, 9))
    if name != "box-cox" or bag is bags.positive
] + [("box-cox", bags.positive)]


def refused(name, bag):
    """Whether a model may refuse a bag: where variances grow with a far-out input, or too little noise for rows."""
    return bag is bags.nasty or (name in ("sparse, linear mean", "sum") and bag is bags.far_out_input)


@pytest.mark.parametrize(("name", "bag"), SQUARE)
def test_p_values_of_a_bag_are_a_permutation(name, bag):
    rng = np.random.default_rng(sum(map(ord, name + bag.__name__)))
    first = bags.n_tuning(name)
    X, y = bag(rng, ROWS + first)
    found = bags.p_values(X, y, name, first)
    if found is None:
        assert refused(name, bag)
        return
    bags.check(X, y, found, name, first)


# With 13 rows: levels whose share of them is whole, and others.
LEVELS = [Fraction(k, 13) for k in (1, 4, 8, 11, 12)] + [Fraction(1, 2), Fraction(4, 5), Fraction(9, 10)]
AVERAGED = [
    ("default", bags.noisy),
    ("default", bags.positive),
    ("default", bags.one_zero),
    ("default", bags.two_zeros),
    ("default", bags.one_negative),
    ("no transformation", bags.few_values),
    ("linear mean", bags.positive),
    ("unscaled", bags.far_out_label),
    ("unscaled", bags.offsets),
    ("zero mean", bags.binary),
    ("no noise", bags.smooth),
    ("box-cox", bags.positive),
]


@pytest.mark.parametrize(("name", "bag"), AVERAGED)
def test_p_values_intervals_and_sets_of_averages_miss_as_few_rows_as_the_theorem_says(name, bag):
    """Each of n + 1 rows in turn is the test row: at level 1 - delta, at most delta (n + 1) rows miss their label."""
    X, y = bag(np.random.default_rng(sum(map(ord, name + bag.__name__))), 13)
    found = bags.misses(X, y, bags.MODELS[name], LEVELS)
    allowed = [int((1 - level) * 13) for level in LEVELS]
    assert (found.sum(axis=1) <= allowed).all(), found.sum(axis=1)
    by_p, by_interval, by_set = found
    assert not (by_interval & ~by_set).any()
    # ends are rounded outwards
    assert not (by_set & ~by_p).any()


@pytest.mark.parametrize("name", [name for name in bags.MODELS if name.startswith(("fix", "hold", "spa", "def", "ow"))])
def test_rows_that_come_later_are_ranked_like_others(name):
    first = bags.n_tuning(name)
    X, y = bags.noisy(np.random.default_rng(sum(map(ord, name))), ROWS + first)
    found = bags.p_values(X, y, name, first, later=3)
    np.testing.assert_allclose(np.sort(found), np.arange(1, ROWS + 1))


@pytest.mark.parametrize("seed", range(NASTY_BAGS))
@pytest.mark.parametrize("name", bags.ANY_LABELS)
def test_nasty_bags(name, seed):
    rng = np.random.default_rng([seed, sum(map(ord, name))])
    first = bags.n_tuning(name)
    X, y = bags.nasty(rng, int(rng.integers(5, 10)) + first)
    found = bags.p_values(X, y, name, first)
    if found is not None:
        bags.check(X, y, found, name, first)


@pytest.mark.parametrize("seed", [27, 102])
def test_a_row_that_alone_determines_a_coefficient_by_little_is_seen_as_such(seed):
    """What tells it from the other rows is 1e-4 of an input, so rounding is 1e4 times as large beside it."""
    name = "linear mean"
    rng = np.random.default_rng([seed, sum(map(ord, name))])
    X, y = bags.nasty(rng, int(rng.integers(5, 12)))
    bags.check(X, y, bags.p_values(X, y, name), name)


@pytest.mark.parametrize(
    ("name", "bag"),
    [
        ("default", bags.far_out_input),
        ("default", bags.positive),
        ("linear mean", bags.positive),
        ("own noise", bags.positive),
        ("unscaled", bags.offsets),
    ],
)
def test_averaged_scores_are_the_same_whichever_row_is_the_test_row(name, bag):
    X, y = bag(np.random.default_rng(5), 8)
    found = []
    for i in range(8):
        last = np.r_[np.delete(np.arange(8), i), i]
        found.append(bags.averaged_scores(X[last], y[last], name)[np.argsort(last)])
    np.testing.assert_allclose(found, np.tile(found[0], (8, 1)), rtol=1e-7, atol=1e-8)


@pytest.mark.parametrize("offset", [1e6, -1e9, 1e13])
@pytest.mark.parametrize("name", ["no transformation", "fixed"])
def test_an_offset_of_the_labels_takes_no_digits(name, offset):
    """Labels are multiples of a power of two, so that all of them are exact with the offset."""
    rng = np.random.default_rng(3)
    X, y = bags.smooth(rng, 16)
    y = np.round(128.0 * (y + 0.3 * rng.standard_normal(16))) / 128.0
    train, test = np.arange(12), np.arange(12, 16)
    plain, shifted = (ConformalGPRegressor(**bags.MODELS[name]).fit(X[train], y[train] + by) for by in (0.0, offset))
    np.testing.assert_array_equal(shifted.predict_p(X[test], y[test] + offset), plain.predict_p(X[test], y[test]))
    ends, exact = shifted.predict_interval(X[test], 0.8), plain.predict_interval(X[test], 0.8) + offset
    assert (np.abs(ends - exact) <= 2.0 * np.spacing(abs(offset))).all()
    delta = 1.0 - 0.8
    if name == "fixed":  # others put ends outwards
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


@pytest.mark.parametrize("name", ["linear mean", "fixed, linear mean"])
def test_smoothed_p_values_of_a_bag_with_rows_alone_in_their_category(name):
    """Each row in turn the test row: on average p-values are uniform, rows whose mean nothing determines included."""
    rng = np.random.default_rng(0)
    X, y = bags.noisy(rng, 13)
    X = np.column_stack([X, np.eye(13)[:, :3]])  # each of three rows alone has a 1 in a column
    n = y.size
    low, high = np.empty((2, n))
    for i in range(n):
        rest = np.arange(n) != i
        with bags.few_draws():
            predictor = ConformalGPRegressor(**bags.MODELS[name]).fit(X[rest], y[rest])._predictor
        (at_least,), (higher,) = predictor.counts(Rows(X[~rest]), y[~rest], signed=False)
        low[i], high[i] = higher / n, (at_least + 1) / n
    for delta in np.linspace(0.02, 0.98, 25):
        assert np.mean(np.clip((delta - low) / (high - low), 0.0, 1.0)) == pytest.approx(delta)
