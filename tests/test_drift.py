"""Drift: p-values of rows as they come are uniform, and the martingale is that of other libraries."""

from itertools import permutations

import numpy as np
import pytest
from crepes.martingales import SimpleJumper
from sklearn.exceptions import NotFittedError
from sklearn.neighbors import KNeighborsRegressor

import bags
from cases import fixed_model, make_data
from conformal_gp import ConformalGPRegressor, drift

X, Y = make_data(5, 120)
HOLDOUT = {"tuning": "holdout", "n_restarts": 0, "random_state": 0}


class Accounts:
    """The six bets, as crepes takes them."""

    def apply(self, p):
        powers = [e * p ** (e - 1) for e in (0.25, 0.5, 0.75, 1.0)]
        return np.column_stack([*powers, 1.5 - p, 0.5 + p])


@pytest.mark.parametrize("share", [1.0, 0.1])
def test_the_martingale_is_that_of_crepes(share):
    p = share * np.random.default_rng(0).uniform(size=200)
    expected = SimpleJumper(J=drift.JUMPS, bf=Accounts()).apply(p)
    np.testing.assert_allclose(drift.Drift(p).path, np.log10(expected), rtol=1e-9, atol=1e-12)


def test_bets_are_fair():
    """Over all equally likely ranks of four rows, in steps of a fine grid, the capital is 1 on average."""
    grid = np.random.default_rng(1).uniform(size=(20000, 3))
    grid[:, 0] = (np.arange(20000) + 0.5) / 20000
    capital = np.array([10 ** drift.Drift(p).path[-1] for p in grid])
    assert capital.mean() == pytest.approx(1.0, abs=4 * capital.std() / 141)


def test_very_many_very_small_p_values_do_not_overflow():
    path = drift.Drift(np.r_[np.full(5000, 1e-9), 0.0]).path
    assert np.isfinite(path).all()
    assert path[-2] > 5000


MODELS = {
    "fixed, zero mean": fixed_model(),
    "fixed, linear mean": fixed_model(mean="linear"),
    "holdout": ConformalGPRegressor(**HOLDOUT),
    "gamma 1": ConformalGPRegressor(gamma=1.0, mean="linear", **HOLDOUT),
    "gamma inf": ConformalGPRegressor(gamma=np.inf, **HOLDOUT),
    "difficulty": ConformalGPRegressor(difficulty=KNeighborsRegressor(5), **HOLDOUT),
    "transformation, bounds": ConformalGPRegressor(target_transform="log", y_bounds=(0.0, None), **HOLDOUT),
    "next to no noise": fixed_model(noise_variance=1e-7),
    "low rank": ConformalGPRegressor(low_rank=9, n_restarts=0, random_state=0),
}
# A mean direction that the first rows do not determine; equal rows; labels that are large beside their differences.
ROWS = {
    "ordinary": (X, Y),
    "a new direction": (np.column_stack([X, np.arange(120) >= 75]), Y),
    "equal rows": (np.round(X), np.round(Y)),
    "offset": (X, Y + 1e6),
}


@pytest.mark.parametrize("rows", ROWS)
@pytest.mark.parametrize("name", MODELS)
def test_p_values_are_those_of_one_row_after_the_other(name, rows):
    inputs, labels = ROWS[rows]
    labels = np.exp(0.3 * (labels - labels.min())) if "transformation" in name else labels
    model = MODELS[name].fit(inputs[:70], labels[:70])
    before = dict(vars(model))
    n = 85
    found = drift.watch(model, inputs[70:n], labels[70:n], random_state=3).p_values
    assert vars(model) == before
    ties = np.random.RandomState(3)
    for i in range(70, n):
        row = inputs[i : i + 1], labels[i : i + 1]
        assert found[i - 70] == pytest.approx(model.predict_p(*row, smoothing=True, random_state=ties)[0], rel=1e-12)
        model.partial_fit(*row)


def test_rows_of_groups_are_ranked_among_rows_of_their_group():
    groups = np.where(X[:, 0] > 0, "a", "b")
    groups[[80, 90]] = "c"  # which the model did not see: nothing is known of its first row
    model = fixed_model().fit(X[:70], Y[:70], groups=groups[:70])
    found = drift.watch(model, X[70:95], Y[70:95], groups=groups[70:95], random_state=3).p_values
    ties = np.random.RandomState(3)
    for i in range(70, 95):
        row, own = (X[i : i + 1], Y[i : i + 1]), ties.uniform()
        if i == 80:
            assert found[10] == own
        else:
            counts = model._test_rows(row[0], None, groups[i : i + 1], None)
            assert found[i - 70] == counts.shares(row[1], np.array([own]))[0]
        model.partial_fit(*row, groups=groups[i : i + 1])


def test_known_noise_and_errors():
    noise = np.random.default_rng(0).uniform(0.1, 0.5, 120)
    model = ConformalGPRegressor(**HOLDOUT).fit(X[:70], Y[:70], noise[:70])
    p = drift.watch(model, X[70:], Y[70:], noise[70:], random_state=0).p_values
    at_first = model.predict_p(X[70:71], Y[70:71], smoothing=True, random_state=0, y_variance=noise[70:71])
    assert p[0] == pytest.approx(at_first[0])
    with pytest.raises(ValueError, match="y_variance is needed"):
        drift.watch(model, X, Y)
    with pytest.raises(NotFittedError):
        drift.watch(ConformalGPRegressor(), X, Y)
    with pytest.raises(ValueError, match="call fit with all rows"):
        drift.watch(ConformalGPRegressor(**HOLDOUT | {"tuning": "train"}).fit(X, Y), X, Y)
    for wrong in ([], [0.5, 1.2], [np.nan], [[0.5]]):
        with pytest.raises(ValueError, match="p_values must be a list of numbers from 0 to 1"):
            drift.Drift(wrong)


def test_rows_that_change_are_found_and_drawn():
    pyplot = pytest.importorskip("matplotlib.pyplot")
    inputs, labels = make_data(6, 260)
    model = ConformalGPRegressor(**HOLDOUT).fit(inputs[:120], labels[:120])
    change = 4.0 * (np.arange(120, 260) >= 200)
    alike, shifted = (drift.watch(model, inputs[120:], labels[120:] + by * change, random_state=0) for by in (0, 1))
    assert not alike.alarm
    assert "No evidence of drift" in str(alike)
    assert shifted.alarm
    assert 75 <= shifted.start <= 85
    assert f"From about row {shifted.start} on, rows differ from those before" in str(shifted)
    assert f"is 10^{shifted.maximum:.1f} to 1" in str(shifted)
    np.testing.assert_array_equal(shifted.plot().line_.get_ydata(), shifted.path)
    pyplot.close("all")


def test_ranks_of_later_rows_are_uniform_and_independent():
    """Of five rows, the last two in every order have each pair of ranks, among four and among five, equally often."""
    inputs, labels = bags.noisy(np.random.default_rng(2), 5)
    found = []
    for last in permutations(range(5), 2):
        first, later = np.delete(np.arange(5), last), list(last)
        model = fixed_model().fit(inputs[first], labels[first])
        p = drift.watch(model, inputs[later], labels[later], random_state=0).p_values
        found.append(tuple(np.ceil(p * [4, 5]).astype(int).tolist()))
    assert sorted(found) == [(i, j) for i in range(1, 5) for j in range(1, 6)]


# Errors in the order of their rows


def test_the_shift_test_has_its_level():
    """Errors of exchangeable rows, heavy-tailed, skewed or with ties, are called shifted in at most 1 of 100 tables."""
    rng = np.random.default_rng(0)
    p_values = []
    for draw in (rng.standard_cauchy, rng.standard_exponential, lambda size: rng.integers(0, 3, size).astype(float)):
        p_values += [drift.shift_test(draw(size=40), random_state=seed).p_value for seed in range(120)]
    for level in (0.05, 0.2, 0.5):
        assert np.mean(np.array(p_values) <= level) <= level + 3 * np.sqrt(level * (1 - level) / 360)
    assert np.mean(p_values) == pytest.approx(0.5, abs=0.06)


@pytest.mark.parametrize("n", [100, 400])
@pytest.mark.parametrize("change", [lambda t: t >= 0.5, lambda t: 2 * t], ids=["shift", "trend"])
def test_the_shift_test_finds_what_it_says(n, change):
    rng = np.random.default_rng(1)
    moved = drift.FOUND_SHIFT / np.sqrt(n) * change(np.arange(n) / n)
    found = [drift.shift_test(rng.standard_normal(n) + moved, random_state=seed).alarm for seed in range(60)]
    assert np.mean(found) >= 0.8 - 2 * np.sqrt(0.8 * 0.2 / 60)


def test_the_shift_test_finds_what_the_martingale_does_not():
    """A lasting shift by half a standard deviation: a t-test has p = 1e-6 here."""
    errors = np.random.default_rng(3).standard_normal(400) + 0.5 * (np.arange(400) >= 250)
    found = drift.shift_test(errors, np.arange(1001, 1401), random_state=0)
    assert found.p_value == 1 / (1 + drift.PERMUTATIONS)
    assert abs(int(found.start) - 1251) <= 15
    assert f"From about row {found.start} on, errors of predictions average 0." in str(found)
    p_values = 1 - (np.argsort(np.argsort(np.abs(errors))) + 1) / 401
    assert not drift.Drift(p_values).alarm
    for wrong in ([1.0], [np.nan, 1.0], [[1.0, 2.0]]):
        with pytest.raises(ValueError, match="errors must be a list of at least two finite numbers"):
            drift.shift_test(wrong)


def test_the_shift_test_finds_a_change_of_spread():
    errors = np.random.default_rng(3).standard_normal(300) * np.where(np.arange(300) < 180, 1.0, 2.0)
    found = drift.shift_test(errors, random_state=0)
    assert found.alarm
    assert abs(int(found.start) - 181) <= 15
    assert f"From about row {found.start} on, half of the errors of predictions exceed 1." in str(found)


def test_the_shift_test_says_what_it_would_have_found():
    said = str(drift.shift_test(np.random.default_rng(0).normal(size=289), random_state=0))
    assert said.startswith("No shift, trend or change of spread in the errors of predictions in the order of 289 rows")
    assert "a shift half-way of 0.53 standard deviations" in said
