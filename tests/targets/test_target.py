"""Limits of detection: sets, intervals, bounds and p-values about true values."""

import numpy as np
import pytest

from conformal_gp import ConformalGPRegressor
from conformal_gp.drift import watch
from conformal_gp.targets.target import Limits, Target, union
from conformal_gp.testing import check_validity

FIXED = {"kernel": "se", "tuning": "fixed", "noise_variance": 0.1, "scale_inputs": False}
SETS = 24
METHODS = {
    "fixed": FIXED,
    "unnormalised": FIXED | {"gamma": np.inf},
    "holdout": {"tuning": "holdout", "tuning_rows": np.arange(20), "n_restarts": 0, "random_state": 0},
    "integrated": {"tuning": "integrated"},
    "low rank": FIXED | {"low_rank": np.linspace(-1, 2, 5)[:, None], "tuning_rows": np.arange(5)},
}


def measured(n, seed=0, share=0.3, several=False):
    """Inputs, true values, limits, recorded values and codes."""
    rng = np.random.default_rng(seed)
    X = rng.uniform(0, 3, size=(n, 1))
    y = np.exp(-1.5 * X[:, 0] + 0.4 * rng.standard_normal(n))
    limits = np.full(n, np.quantile(y, share))
    if several:
        limits = limits * rng.choice([0.5, 1.0, 1.5], size=n)
    return X, y, limits, np.maximum(y, limits), -(y <= limits).astype(int)


def test_sets_join_what_reaches_a_limit():
    both = Limits(low=1.0, high=3.0, least=0.0)
    assert union(both.extend(np.array([[0.5, 0.7], [0.9, 1.2], [2.0, 2.5], [2.9, 3.1]]))).tolist() == [
        [0.0, 1.2],
        [2.0, 2.5],
        [2.9, np.inf],
    ]
    assert union(both.extend(np.array([[1.0, 3.0]]))).tolist() == [[0.0, np.inf]]
    assert union(both.extend(np.array([[1.1, 2.9]]))).tolist() == [[1.1, 2.9]]
    assert union(both.extend(np.empty((0, 2)))).shape == (0, 2)
    several = Limits(low=1.0, least_low=0.4, high=3.0, greatest_high=5.0)
    assert union(several.extend(np.array([[0.1, 0.2], [6.0, 7.0]]))).tolist() == [[-np.inf, 0.4], [5.0, np.inf]]
    assert union(several.extend(np.array([[0.1, 0.6], [4.0, 7.0]]))).tolist() == [[-np.inf, 0.6], [4.0, np.inf]]
    assert union(both.extend(np.array([[3.5, 4.0]]))).tolist() == [[3.0, np.inf]]
    crossing = Limits(low=2.0, high=1.0)
    assert union(crossing.extend(np.array([[0.1, 0.2], [1.4, 1.6]]))).tolist() == [[-np.inf, np.inf]]


@pytest.mark.parametrize("name", METHODS)
@pytest.mark.parametrize("sign", [1, -1])
@pytest.mark.filterwarnings("ignore:confidence_level")
def test_answers_agree(name, sign):
    """Sets, intervals, bounds, quantiles and p-values of every method, with lower limits and with upper ones."""
    X, _, limits, recorded, codes = measured(45, several=True)
    limit = sign * limits[codes != 0].max()
    model = ConformalGPRegressor(**METHODS[name]).fit(X, sign * recorded, censoring=sign * codes)
    new = np.linspace(0, 3, 7)[:, None]
    plain = ConformalGPRegressor(**METHODS[name]).fit(X, sign * recorded)
    assert "True values" in model.guarantee_ or not model.guarantee_.startswith("Valid")
    end = 0 if sign > 0 else 1
    before = plain.predict_interval(new, 0.8)
    after = model.predict_interval(new, 0.8)
    reaches = sign * before[:, end] <= sign * limit
    assert reaches.any()
    assert (~reaches).any()
    assert (after[reaches, end] == -sign * np.inf).all()
    assert np.array_equal(after[~reaches], before[~reaches])
    assert np.array_equal(after[:, 1 - end], before[:, 1 - end])
    for interval, pieces in zip(after, model.predict_set(new, 0.8), strict=True):
        assert np.allclose(interval, [pieces[0, 0], pieces[-1, 1]], rtol=1e-3)
    side = ("lower", "upper")[end]
    bounds = model.predict_bound(new, [0.6, 0.9], side)
    expected = plain.predict_bound(new, [0.6, 0.9], side)
    assert np.array_equal(bounds, np.where(sign * expected <= sign * limit, -sign * np.inf, expected))
    beyond = np.full(7, limit - sign * 0.01)
    p = model.predict_p(new, beyond)
    assert (p >= plain.predict_p(new, np.full(7, limit))).all()
    sets = model.predict_set(new, 0.8)
    inside = np.array([((pieces[:, 0] <= beyond[0]) & (beyond[0] <= pieces[:, 1])).any() for pieces in sets])
    assert ((p > 0.2 + 1e-9) == inside).all()
    assert np.array_equal(model.predict_cdf(new, beyond), plain.predict_cdf(new, np.full(7, limit)))


@pytest.mark.parametrize("name", METHODS)
@pytest.mark.parametrize("sign", [1, -1])
@pytest.mark.filterwarnings("ignore::conformal_gp.ExtrapolationWarning")
def test_sets_beyond_what_was_observed_reach_the_limit(name, sign):
    """A trend that goes on beyond an upper limit, or a lower one: nothing tells values beyond the limit apart."""
    rng = np.random.default_rng(0)
    X = rng.uniform(0, 3, size=(45, 1))
    y = 1.0 + X[:, 0] + 0.1 * rng.standard_normal(45)
    limit = np.sort(y)[-3]
    recorded = np.minimum(y, limit)
    options = METHODS[name] | {"mean": "linear"}
    plain = ConformalGPRegressor(**options).fit(X, sign * recorded)
    model = ConformalGPRegressor(**options).fit(X, sign * recorded, censoring=sign * (recorded == limit))
    new = np.linspace(2.0, 6.0, 9)[:, None]
    before = plain.predict_interval(new, 0.8)
    after = model.predict_interval(new, 0.8)
    sets = model.predict_set(new, 0.8)
    bounds = model.predict_bound(new, 0.8, side="lower" if sign > 0 else "upper")
    p = {place: model.predict_p(new, np.full(9, sign * place)) for place in (limit - 0.1, limit, limit + 0.1, 9.0)}
    end = 0 if sign > 0 else 1
    is_beyond = (sign * before[:, end] > limit) & np.isfinite(before[:, end])
    assert is_beyond.any()
    assert not is_beyond.all()
    assert (after[is_beyond, end] == sign * limit).all()
    assert (sign * bounds <= limit).all()
    assert (sign * after[is_beyond, 1 - end] == np.inf).all()
    for place, found in p.items():
        inside = [bool(((each[:, 0] <= sign * place) & (sign * place <= each[:, 1])).any()) for each in sets]
        assert ((found > 0.2 + 1e-9) == inside).all()


@pytest.mark.parametrize("several", [False, True])
@pytest.mark.parametrize("name", ["fixed", "unnormalised", "holdout"])
def test_each_row_in_turn(name, several):
    X, _, _, recorded, codes = measured(32 if name == "holdout" else 12, several=several)
    model = ConformalGPRegressor(**METHODS[name])
    check_validity(model, X, recorded, censoring=codes)
    check_validity(model, X, -recorded, censoring=-codes)


@pytest.mark.slow
def test_each_row_in_turn_averaged_over_draws_from_the_prior():
    X, _, _, recorded, codes = measured(11)
    check_validity(ConformalGPRegressor(), X, recorded, censoring=codes)


def test_a_lower_limit_above_an_upper_one():
    """As of instruments of different ranges: a value between may be recorded as either limit, or as any between."""
    X, y = np.random.default_rng(0).normal(size=(2, 12))
    y[:2] = 0.8, -0.7
    model = ConformalGPRegressor("se", tuning="fixed", noise_variance=0.1, scale_inputs=False)
    model.fit(X[:, None], y, censoring=[-1, 1] + [0] * 10)
    values = np.array([-5.0, -0.7, 0.1, 0.8, 5.0])
    for x in (-1.0, 0.3, 4.0):
        p = np.concatenate([model.predict_p([[x]], [value]) for value in values])
        for level in (0.1, 0.3, 0.6, 0.8):
            (pieces,) = model.predict_set([[x]], level)
            inside = ((pieces[:, :1] <= values) & (values <= pieces[:, 1:])).any(axis=0)
            np.testing.assert_array_equal(inside, p > 1.0 - level)


class Forgetful(ConformalGPRegressor):
    """A regressor that takes limits for observations."""

    def fit(self, X, y, censoring=None):
        """Fit without them."""
        return super().fit(X, y)


def test_forgotten_limits_are_found():
    X, _, _, recorded, codes = measured(12)
    with pytest.raises(AssertionError, match="not all values beyond"):
        check_validity(Forgetful(**FIXED), X, recorded, censoring=codes)


@pytest.mark.parametrize("several", [False, True])
@pytest.mark.parametrize("seed", range(4))
def test_true_values_are_covered(several, seed):
    """Each of 20 rows in turn is the new one: 90% sets, bounds and p-values miss at most two true values.

    Where limits differ, the row with the largest one may be missed as well: the other rows have not shown it.
    """
    X, y, _, recorded, codes = measured(20, seed, several=several)
    missed = np.zeros((4, 20), dtype=bool)
    for row in range(20):
        rest = np.delete(np.arange(20), row)
        model = ConformalGPRegressor(**FIXED).fit(X[rest], recorded[rest], censoring=codes[rest])
        low, high = model.predict_interval(X[[row]], 0.9)[0]
        missed[:, row] = (
            not low <= y[row] <= high,
            model.predict_bound(X[[row]], 0.9, side="lower")[0] > y[row],
            model.predict_bound(X[[row]], 0.9, side="upper")[0] < y[row],
            model.predict_p(X[[row]], y[[row]])[0] <= 0.1 * (1 - 1e-9),
        )
    assert (missed.sum(axis=1) <= 2 + several).all()


def test_dropped_rows_void_the_guarantee():
    """What the rule replaces: without censored rows, 90% intervals of new rows cover less."""
    covered = {"kept": [], "dropped": []}
    for seed in range(12):
        X, y, _, recorded, codes = measured(240, seed, share=0.4)
        model = ConformalGPRegressor(**FIXED | {"target_transform": "log"})
        own = slice(0, 40)
        kept = model.fit(X[own], recorded[own], censoring=codes[own]).predict_interval(X[40:], 0.9)
        seen = np.flatnonzero(codes[own] == 0)
        dropped = model.fit(X[seen], recorded[seen]).predict_interval(X[40:], 0.9)
        for name, ends in (("kept", kept), ("dropped", dropped)):
            covered[name].append(((ends[:, 0] <= y[40:]) & (y[40:] <= ends[:, 1])).mean())
    assert np.mean(covered["kept"]) > 0.88
    assert np.mean(covered["dropped"]) < 0.85


@pytest.mark.slow
@pytest.mark.parametrize("share", [0.1, 0.3])
def test_true_values_are_covered_by_default_on_average(share):
    """Mean coverage of 90% intervals over training sets of 80 rows is 90%."""
    covered = []
    for seed in range(SETS):
        rng = np.random.default_rng(1000 + seed)
        X = rng.uniform(0, 3, (400, 1))
        y = np.exp(-X[:, 0] + 0.3 * rng.standard_normal(400))
        many = np.exp(-rng.uniform(0, 3, 100_000) + 0.3 * rng.standard_normal(100_000))
        limit = np.quantile(many, share)
        model = ConformalGPRegressor(random_state=0)
        model.fit(X[:80], np.maximum(y, limit)[:80], censoring=-(y <= limit)[:80].astype(int))
        low, high = model.predict_interval(X[80:], 0.9).T
        covered.append(((low <= y[80:]) & (y[80:] <= high)).mean())
    error = np.std(covered) / np.sqrt(SETS)
    assert abs(np.mean(covered) - 0.9) < 3 * error


def test_the_end_is_the_least_value_that_was_given():
    X, _, limits, recorded, codes = measured(40)
    new = [[2.9]]
    ends = {}
    for name, options in (
        ("none", {}),
        ("bounds", {"y_bounds": (0.0, None)}),
        ("log", {"target_transform": "log"}),
        ("suggested", {"tuning": "holdout", "target_transform": "auto", "random_state": 0}),
    ):
        model = ConformalGPRegressor(**options).fit(X, recorded, censoring=codes)
        ends[name] = model.predict_interval(new, 0.8)[0, 0]
    assert ends == {"none": -np.inf, "bounds": 0.0, "log": 0.0, "suggested": -np.inf}
    assert limits[0] > 0


def test_later_rows_and_copies():
    X, _, limits, recorded, codes = measured(40)
    fixed = FIXED | {"mean": "constant"}
    model = ConformalGPRegressor(**fixed).fit(X[:30], recorded[:30])
    assert np.isfinite(model.predict_interval([[2.9]], 0.8)).all()
    model.partial_fit(X[30:], recorded[30:], censoring=codes[30:])
    whole = ConformalGPRegressor(**fixed).fit(X, recorded, censoring=np.r_[np.zeros(30), codes[30:]])
    assert model._tuned.target.limits == whole._tuned.target.limits == Limits(low=limits[0], least_low=limits[0])
    assert np.allclose(model.predict_interval(X, 0.8), whole.predict_interval(X, 0.8), rtol=1e-7)


def test_p_values_of_rows_in_their_order_are_those_of_recorded_values():
    X, _, _, recorded, codes = measured(40, several=True)
    model = ConformalGPRegressor(**FIXED).fit(X[:20], recorded[:20], censoring=codes[:20])
    plain = ConformalGPRegressor(**FIXED).fit(X[:20], recorded[:20])
    expected = watch(plain, X[20:], recorded[20:], random_state=0).p_values
    assert np.array_equal(watch(model, X[20:], recorded[20:], random_state=0).p_values, expected)


def test_explanations_name_the_limit():
    X, _, _, recorded, codes = measured(40)
    model = ConformalGPRegressor(**FIXED).fit(X, recorded, censoring=codes)
    found = model.explain_interval([[2.9], [0.1]], 0.8)
    assert found.decided_by.tolist() == [["limit", "row"], ["row", "row"]]
    assert "reaches a limit of detection" in str(found)
    bounded = ConformalGPRegressor(**FIXED | {"y_bounds": (0.0, None)}).fit(X, recorded, censoring=codes)
    found = bounded.explain_interval(np.linspace(0, 3, 30)[:, None], 0.8)
    assert set(found.decided_by[:, 0]) == {"row", "limit", "bound"}
    assert "The lower bound is determined by a limit of detection, the upper one by row" in str(found)


@pytest.mark.parametrize(
    ("censoring", "message"),
    [
        ([0, 1], "censoring must hold one number for each of the 4 rows, got an array of shape"),
        ([0, 1, 2, 0], r"censoring has .*2.* in row 2; it must be -1 where the true value is at most y"),
        (["<", "", "", ""], "censoring has .*<.* in row 0"),
        ([0, np.nan, 0, 0], "censoring has .*nan.* in row 1"),
    ],
)
def test_wrong_codes(censoring, message):
    X, _, _, recorded, _ = measured(4)
    with pytest.raises(ValueError, match=message):
        ConformalGPRegressor(**FIXED).fit(X, recorded, censoring=censoring)


def test_a_prediction_of_zero_is_zero_like_the_end_of_an_interval():
    target = Target(origin=0.11627460066579384, unit=0.7227959793798135)
    zero = target.forward(np.array([0.0]))
    assert target.origin + target.unit * zero[0] < 0.0
    assert target.backward(zero)[0] == target.ends(zero, zero)[0][0] == 0.0
