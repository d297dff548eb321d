"""The guarantee itself: each row of a bag in turn is the test row.

p-values are 1/n, ..., 1 in some order; intervals, sets and bounds of level 1 - delta miss at most delta n labels.
"""

import numpy as np
import pytest
from sklearn.neighbors import KNeighborsRegressor

import bags
import noisy_rows
from conformal_gp import ConformalGPRegressor
from conformal_gp.rows import Rows

ROWS = 8
NASTY_BAGS = 1


def seeded(*names):
    """A generator for a case."""
    return np.random.default_rng(sum(map(ord, "".join(names))))


# Each model with a bag, each bag with two models; tests/slow/test_many_bags.py has all pairs.
PAIRS = [
    (name, bags.BAGS[i % len(bags.BAGS)] if name != "box-cox" else bags.positive) for i, name in enumerate(bags.MODELS)
]


def refused(name, bag):
    """Whether a model may refuse a bag: where variances grow with a far-out input, or too little noise for rows."""
    return bag is bags.nasty or (name in ("low rank, linear mean", "sum") and bag is bags.far_out_input)


@pytest.mark.parametrize(("name", "bag"), PAIRS)
def test_a_bag(name, bag):
    first = bags.n_tuning(bags.MODELS[name])
    X, y = bag(seeded(name, bag.__name__), ROWS + first)
    found = bags.in_turn(X, y, bags.MODELS[name], first)
    if found is None:
        assert refused(name, bag)
        return
    bags.check(X, y, found, name, first)


AVERAGED = [
    ("default", bags.one_negative),
    ("linear mean", bags.positive),
    ("box-cox", bags.positive),
    pytest.param("default", bags.one_zero, marks=pytest.mark.slow),
    pytest.param("default", bags.two_zeros, marks=pytest.mark.slow),
    pytest.param("unscaled", bags.far_out_label, marks=pytest.mark.slow),
]


@pytest.mark.parametrize(("name", "bag"), AVERAGED)
def test_averages_over_draws_of_the_prior_up_to_the_most_rows_that_have_them(name, bag):
    X, y = bag(seeded(name, bag.__name__), 13)
    bags.check(X, y, bags.in_turn(X, y, bags.MODELS[name]), name)


WAYS = ["default", "fixed", "holdout", "low rank"]
KINDS = {
    "transformation": {"target_transform": "sqrt"},
    "learnt transformation": {"target_transform": "yeo-johnson"},
    "bounds": {"y_bounds": (0.0, None)},
    "transformation and bounds": {"target_transform": (np.log, np.exp), "y_bounds": (0.0, 1e3)},
    "difficulty": {"difficulty": KNeighborsRegressor(3), "y_bounds": (0.0, None), "gamma": np.inf},
}
TARGETS = [
    pytest.param(way, kind, marks=[pytest.mark.slow] if way == "low rank" and kind != "difficulty" else [])
    for way in WAYS
    for kind in KINDS
    if way in ("holdout", "low rank") or kind not in ("learnt transformation", "difficulty")
]


@pytest.mark.parametrize(("way", "kind"), TARGETS)
def test_transformations_bounds_and_difficulty(way, kind):
    options = {**bags.MODELS[way], **KINDS[kind]}
    first = bags.n_tuning(options)
    X, y = bags.positive(seeded(way, kind), ROWS + first)
    found = bags.in_turn(X, y, options, first)
    np.testing.assert_allclose(np.sort(found.ranks), np.arange(1, ROWS + 1))
    bags.check_misses(found)


@pytest.mark.parametrize(
    ("way", "kind"),
    [*((way, None) for way in [*WAYS, "low rank, fixed"]), *((way, "transformation and bounds") for way in WAYS)],
)
def test_groups(way, kind):
    options = {**bags.MODELS[way], **KINDS.get(kind, {})}
    first = bags.n_tuning(options)
    X, y = bags.positive(seeded(way), 9 + first)
    groups = np.array(list("a" * first + "aaaaabbbb"))
    found = bags.in_turn(X, y, options, first, groups=groups)
    np.testing.assert_allclose(np.sort(found.ranks[:5]), np.arange(1, 6))
    np.testing.assert_allclose(np.sort(found.ranks[5:]), np.arange(1, 5))
    bags.check_misses(found)


@pytest.mark.parametrize("grouped", [False, pytest.param(True, marks=pytest.mark.slow)])
@pytest.mark.parametrize("name", noisy_rows.EXACT)
def test_known_noise(name, grouped):
    options = noisy_rows.EXACT[name]
    first = 15 if bags.n_tuning(options) else 0
    X, y, v = noisy_rows.rows(len(name), 8 + first)
    v[-1] = 1e3  # one row that says nothing
    groups = np.array(list("a" * first + "aaaabbbb")) if grouped else None
    found = bags.in_turn(X, y, options, first, variances=v, groups=groups)
    assert all(bags.is_permutation(found.ranks[found.groups == group]) for group in np.unique(found.groups))
    bags.check_misses(found)


def test_noise_of_the_test_row_left_out_breaks_the_permutation():
    """The other way round: what the test above would see if test rows were treated unlike training rows."""
    X, y, v = noisy_rows.rows(3, 12, spread=2.0)
    ranks = np.empty(12)
    for i in range(12):
        rest = np.arange(12) != i
        model = ConformalGPRegressor(noisy_rows.KERNEL, mean="zero", **noisy_rows.FIXED)
        model.fit(X[rest], y[rest], y_variance=v[rest])
        ranks[i] = model.predict_p(X[~rest], y[~rest], y_variance=[0.0])[0] * 12
    assert not bags.is_permutation(ranks)


N_TUNING = 200


def skewed(seed, n):
    """Labels that are not negative, whose skewed noise grows with an input; many of them are 0."""
    rng = np.random.default_rng(seed)
    X = rng.uniform(-1, 1, size=(n, 2))
    y = np.exp(X[:, 0]) + (1.2 + X[:, 1]) ** 4 * (rng.exponential(size=n) - 0.7)
    return X, np.maximum(y, 0.0)


@pytest.mark.slow
@pytest.mark.parametrize(("way", "outside"), [("holdout", 0), ("holdout", 1), ("holdout", 2), ("low rank", 1)])
def test_bounds_transformation_and_difficulty_that_tuning_rows_choose(way, outside):
    """Bounds may be wrong: labels of some calibration rows are beyond them."""
    X, y = skewed(1, N_TUNING + ROWS)
    y[len(y) - outside :] = -2.0 - np.arange(outside)
    options = {**bags.MODELS[way], "target_transform": "yeo-johnson"}
    model = ConformalGPRegressor(tuning_rows=np.arange(N_TUNING), **options).fit(X, y)
    assert len(model.difficulty_) == 2  # quantiles below and above
    assert model.y_bounds_ == (0.0, np.inf)
    assert model.target_transform_.exponent != 1.0
    found = bags.in_turn(X, y, options, N_TUNING)
    assert bags.is_permutation(found.ranks)
    bags.check_misses(found)


LATER = [
    "default",
    "own noise",
    "fixed, linear mean",
    "holdout",
    "holdout, difficulty",
    "low rank",
    "low rank, difficulty",
]


@pytest.mark.parametrize("name", LATER)
def test_rows_that_come_later_are_ranked_like_others(name):
    options = bags.MODELS[name]
    first = bags.n_tuning(options)
    X, y = bags.noisy(seeded(name), ROWS + first)
    found = bags.in_turn(X, y, options, first, later=3)
    np.testing.assert_allclose(np.sort(found.ranks), np.arange(1, ROWS + 1))
    bags.check_misses(found)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(NASTY_BAGS))
@pytest.mark.parametrize("name", bags.ANY_LABELS)
def test_nasty_bags(name, seed):
    rng = np.random.default_rng([seed, sum(map(ord, name))])
    first = bags.n_tuning(bags.MODELS[name])
    X, y = bags.nasty(rng, int(rng.integers(5, 10)) + first)
    found = bags.in_turn(X, y, bags.MODELS[name], first)
    if found is not None:
        bags.check(X, y, found, name, first)


@pytest.mark.parametrize(("name", "seed"), [("unscaled", 3), ("se", 91), ("no transformation", 64)])
def test_a_far_out_input_of_averaged_models_rounds_no_other_row_away(name, seed):
    """The linear term has a variance of 1e16 there, beside noise of less than 1."""
    rng = np.random.default_rng([seed, sum(map(ord, name))])
    X, y = bags.nasty(rng, int(rng.integers(5, 12)))
    bags.check(X, y, bags.in_turn(X, y, bags.MODELS[name]), name)


@pytest.mark.parametrize("seed", [27, 102])
def test_a_row_that_alone_determines_a_coefficient_by_little_is_seen_as_such(seed):
    """What tells it from the other rows is 1e-4 of an input, so rounding is 1e4 times as large beside it."""
    name = "linear mean"
    rng = np.random.default_rng([seed, sum(map(ord, name))])
    X, y = bags.nasty(rng, int(rng.integers(5, 12)))
    bags.check(X, y, bags.in_turn(X, y, bags.MODELS[name]), name)


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
    assert sorted(bags.in_turn(X, y, bags.MODELS["sum"]).ranks) == list(range(1, 11))


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
            answers = ConformalGPRegressor(**bags.MODELS[name]).fit(X[rest], y[rest])._answers
        (at_least,), (higher,) = answers.about(Rows(X[~rest])).parts[0].counts(y[~rest], signed=False)
        low[i], high[i] = higher / n, (at_least + 1) / n
    for delta in np.linspace(0.02, 0.98, 25):
        assert np.mean(np.clip((delta - low) / (high - low), 0.0, 1.0)) == pytest.approx(delta)
