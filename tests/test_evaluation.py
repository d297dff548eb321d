"""Cross-validation of intervals, the verdict on them, where they fail and what would help."""

from dataclasses import replace
from fractions import Fraction

import numpy as np
import pandas as pd
import pytest
from scipy.stats import binom, norm
from sklearn.base import BaseEstimator, RegressorMixin
from sklearn.model_selection import KFold, RepeatedKFold, ShuffleSplit

from cases import fixed_model
from conformal_gp.evaluation import (
    Finding,
    HeldOut,
    Judgement,
    chance_range,
    cross_validate_intervals,
    supported_levels,
    verdict,
)
from conformal_gp.evaluation.findings import one_set_range
from conformal_gp.evaluation.held_out import bought
from conformal_gp.extrapolation import Grid

LEVEL = Fraction(9, 10)


def finding(level="0.9", misses=10, n=100, infinite=0, above=None):
    above = misses // 2 if above is None else above
    return Finding("ours", Fraction(level), n, misses - above, above, 1.0, infinite)


def held_out(y, half, prediction=None, levels=(LEVEL,)):
    """Intervals of one method about 0, of half widths that are the same in all rows."""
    ends = np.tile(np.outer([-1.0, 1.0], np.atleast_1d(half)), (y.size, 1, 1))
    return HeldOut(y, list(levels), {"a": np.zeros(y.size) if prediction is None else prediction}, {"a": ends})


@pytest.fixture(scope="module")
def rows():
    rng = np.random.default_rng(1)
    X = rng.normal(size=(30, 2))
    return X, X[:, 0] + rng.normal(size=30)


class Given(RegressorMixin, BaseEstimator):
    """Intervals that do not depend on the training rows: the first input plus or minus 1."""

    def fit(self, X, y):
        return self

    def predict(self, X):
        return np.asarray(X)[:, 0]

    def predict_interval(self, X, confidence_level):
        X = np.asarray(X)
        return np.stack([X[:, :1] - 1.0, X[:, :1] + 1.0], axis=1).repeat(len(confidence_level), axis=2)


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


def test_what_the_guarantee_bought():
    """The sentence is on the level at which the standard GP is worst, and follows both verdicts."""

    def said(ours, standard, n=200, infinite=0, grid=None):
        levels = [LEVEL, Fraction(99, 100)]
        ends = {
            name: np.stack([[(0.0, 2.0 * (i >= misses[k])) for k in range(2)] for i in range(n)]).swapaxes(1, 2)
            for name, misses in (("conformal", ours), ("standard GP", standard))
        }
        ends["conformal"][:infinite] = [[-np.inf], [np.inf]]
        return bought(HeldOut(np.ones(n), levels, {}, ends, grid=grid), "conformal", "standard GP")

    assert said((20, 2), (25, 12)) == (
        "The guarantee raised coverage: at 99% the standard GP covered 94.0%, conformal 99.0%, with intervals as wide."
    )
    assert said((20, 2), (30, 2)).startswith("The guarantee raised coverage, if not by chance: at 90%")
    assert said((20, 2), (1, 0)).startswith("The guarantee lowered coverage to its level: at 90%")
    assert said((20, 2), (19, 2)).startswith("On this table the guarantee bought assurance, not coverage: at 90%")
    assert said((2, 0), (2, 0), n=20).startswith("So few rows cannot tell what the guarantee bought: at 90%")
    assert said((60, 2), (70, 2)).startswith("The guarantee needs exchangeable rows, and these seem not to be: at 90%")
    assert said((0, 0), (70, 2), infinite=200) == "At 90% there are too few rows for the guarantee."
    assert said((20, 2), (20, 2), grid=Grid({}, 4, 4)).startswith(
        "These rows cannot tell what the guarantee buys between"
    )


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


def test_default_levels_give_finite_intervals(rows):
    found = cross_validate_intervals({"m": fixed_model()}, *rows, cv=3)
    assert found.levels == [Fraction(9, 10), Fraction(19, 20)]  # 20 rows are ranked
    assert np.isfinite(found.intervals["m"]).all()


def test_coverage_of_one_set_scatters_as_said():
    """Coverage of new labels by the k-th largest of n scores, over many sets."""
    rng = np.random.default_rng(0)
    for level, n, k in ((0.9, 19, 18), (0.8, 59, 48)):
        held = np.sort(rng.uniform(size=(4000, n)), axis=1)[:, k - 1]  # of uniform scores
        np.testing.assert_allclose(one_set_range(level, n), np.quantile(held, [0.05, 0.95]), atol=0.01)
    assert held_out(np.zeros(3), 1.0).one_set() == ""


def test_rows_are_predicted_by_the_other_folds(rows):
    X, y = rows
    models = {"ours": fixed_model(), "other": Given()}
    heard = []
    asked = {"standard_gp": "its error bars", "progress": lambda *fits: heard.append(fits)}
    found = cross_validate_intervals(models, X, y, [0.5, 0.9], cv=KFold(3), **asked)
    assert list(found.intervals) == ["ours", "its error bars", "other"]
    assert [found.level for found in found.at([0.9]).findings()] == [LEVEL] * 3
    assert heard == [(done, 6) for done in range(1, 7)]
    for train, test in KFold(3).split(X):
        model = fixed_model().fit(X[train], y[train])
        mean, std = model.predict(X[test], return_std=True)
        for name in ("ours", "its error bars"):
            np.testing.assert_array_equal(found.prediction[name][test], mean)
        expected = model.predict_interval(X[test], [0.5, 0.9])
        np.testing.assert_array_equal(found.intervals["ours"][test], expected)
        np.testing.assert_allclose(found.intervals["its error bars"][test, 1, 1], mean + norm.ppf(0.95) * std)
    frame = cross_validate_intervals(models, pd.DataFrame(X, columns=["a", "b"]), y, 0.5, cv=KFold(3))
    np.testing.assert_array_equal(frame.intervals["ours"][:, :, 0], found.intervals["ours"][:, :, 0])


def test_some_rows_are_held_out_once(rows):
    X, y = rows
    cv = ShuffleSplit(1, test_size=8, random_state=0)
    found = cross_validate_intervals({"m": fixed_model(y_bounds=(-9, 0.5))}, X, np.minimum(y, 0.5), 0.5, cv=cv)
    np.testing.assert_array_equal(found.rows, np.sort(next(cv.split(X))[1]))
    np.testing.assert_array_equal(found.y, np.minimum(y, 0.5)[found.rows])
    assert found.intervals["m"].max() == 0.5


def test_known_noise_goes_to_models_that_take_it(rows):
    X, y = rows
    noise = np.tile([0.01, 2.0], 15)
    models = {"known": fixed_model(), "without": Given()}
    found = cross_validate_intervals(models, X, y, 0.5, cv=KFold(3), standard_gp="plain", y_variance=noise)
    for train, test in KFold(3).split(X):
        model = fixed_model().fit(X[train], y[train], y_variance=noise[train])
        of_test = {"y_variance": noise[test]}
        expected = model.predict_interval(X[test], 0.5, **of_test)
        np.testing.assert_allclose(found.intervals["known"][test, :, 0], expected)
        mean, std = model.predict(X[test], return_std=True, **of_test)
        np.testing.assert_allclose(found.intervals["plain"][test, 0, 0], mean - norm.ppf(0.75) * std)
    with pytest.raises(ValueError, match="y_variance was given, but fit of Given does not take it"):
        cross_validate_intervals({"a": Given()}, X, y, y_variance=noise)
    with pytest.raises(ValueError, match="inconsistent numbers of samples"):
        cross_validate_intervals(models, X, y, y_variance=noise[1:])


def test_groups_go_to_models_that_take_them(rows):
    X, y = rows
    groups = np.array([*["a", "b"] * 14, "b", "c"], dtype=object)  # "c" has one row: no other to compare it with
    models = {"grouped": fixed_model(), "without": Given()}
    found = cross_validate_intervals(models, X, y, 0.5, cv=KFold(3), groups=groups)
    assert np.isinf(found.intervals["grouped"][-1]).all()
    assert np.isfinite(found.intervals["grouped"][:-1]).all()
    train, test = next(KFold(3).split(X))
    expected = (
        fixed_model().fit(X[train], y[train], groups=groups[train]).predict_interval(X[test], 0.5, groups=groups[test])
    )
    np.testing.assert_array_equal(found.intervals["grouped"][test, :, 0], expected)
    parts = found.by_group()
    assert [(part.among, part.n_rows) for part in parts] == [("group a", 14), ("group b", 15), ("group c", 1)]
    assert sum(part.n_outside for part in parts) == found.findings()[0].n_outside
    with pytest.raises(ValueError, match="groups was given, but fit of Given does not take it"):
        cross_validate_intervals({"a": Given()}, X, y, groups=groups)


def test_only_the_first_model_warns(rows, recwarn):
    cross_validate_intervals({"first": Given(), "second": fixed_model()}, *rows, 0.99, cv=2)
    assert not recwarn.list
    with pytest.warns(UserWarning, match="needs at least 99 calibration rows"):
        cross_validate_intervals({"first": fixed_model()}, *rows, 0.99, cv=2)


@pytest.mark.parametrize("cv", [1, 31, "ten", RepeatedKFold(n_splits=3, n_repeats=2)])
def test_bad_folds(rows, cv):
    with pytest.raises(ValueError, match=r"n_splits|`cv`|cv must hold out every row at most once"):
        cross_validate_intervals({"m": Given()}, *rows, 0.5, cv=cv)


@pytest.mark.parametrize(("models", "name"), [({}, None), ({"m": Given()}, "m")])
def test_bad_names(rows, models, name):
    with pytest.raises(ValueError, match="models must not be empty nor have the name that standard_gp has"):
        cross_validate_intervals(models, *rows, 0.5, standard_gp=name)


def test_misses_of_conformal_intervals_scatter_no_more_than_the_verdict_assumes():
    """Otherwise the verdict would call right intervals wrong too often."""
    levels, n = [0.8, 0.9], 59
    misses = []
    for seed in range(40):
        rng = np.random.default_rng(seed)
        X = rng.normal(size=(n, 1))
        y = np.sin(X[:, 0]) + 0.3 * rng.standard_t(4, size=n)
        found = cross_validate_intervals({"m": fixed_model()}, X, y, levels, cv=5, random_state=seed)
        misses.append([finding.n_outside for finding in found.findings()])
    for level, spread in zip(levels, np.std(misses, axis=0), strict=True):
        assert spread < 0.85 * np.sqrt(n * level * (1 - level))


@pytest.fixture
def uneven():
    """Noise that grows with the first input, and intervals that are right over all rows together."""
    rng = np.random.default_rng(0)
    x, side = rng.uniform(size=600), rng.integers(0, 2, size=600)
    X = pd.DataFrame({"x": x, "z": rng.normal(size=600), "side": pd.Categorical(np.array(["left", "right"])[side])})
    y = 3.0 * x * rng.standard_normal(600)
    return X, held_out(y, np.quantile(np.abs(y), 0.9), prediction=rng.normal(size=600))


def test_parts_hold_every_row_once_and_say_where_labels_gather_outside(uneven):
    X, found = uneven
    parts = found.by_part(X)
    for name, n_parts in (("prediction", 5), ("x", 5), ("z", 5), ("side", 2)):
        mine = [part for part in parts if part.among.startswith(f"{name} is")]
        assert len(mine) == n_parts
        assert sum(part.n_rows for part in mine) == 600
        assert sum(part.n_outside for part in mine) == 60
    assert [part.among for part in parts[-2:]] == ["side is left", "side is right"]
    wrong = [part for part in parts if part.judgement == Judgement.TOO_NARROW]
    assert {part.among.split()[0] for part in wrong} == {"x"}
    assert next(part for part in parts if part.among.startswith("x")).judgement == Judgement.TOO_WIDE
    assert found.by_part(None) == [part for part in found.by_part(None) if part.among.startswith("prediction")]
    assert held_out(np.arange(20.0), 1.0).by_part(np.ones((20, 1))) == []  # nothing varies


def test_the_verdict_names_a_subgroup_with_too_narrow_intervals(uneven):
    X, found = uneven
    (sentence,) = verdict(found.findings(), found.by_part(X))
    assert "90% intervals covered 90.0%" in sentence
    assert "as expected overall, but too narrow where x is 0.8" in sentence
    assert verdict(found.findings()) == verdict(found.findings(), found.by_part(None))
    assert "covered 90.0%, as expected; median width" in verdict(found.findings())[0]


def test_chance_rarely_accuses_a_part():
    rng = np.random.default_rng(1)
    suspect, accused = (Judgement.IN_DOUBT, Judgement.TOO_NARROW), 0
    for _ in range(100):
        found = held_out(rng.uniform(-1, 1, size=200), 0.9, prediction=rng.normal(size=200))
        accused += any(part.judgement in suspect for part in found.by_part(rng.normal(size=(200, 6))))
    assert accused <= 8  # at most 1 in 40 is expected


def test_advice_says_what_would_help(uneven):
    X, found = uneven
    rng = np.random.default_rng(3)
    normal = rng.standard_normal(400)
    assert "a difficulty model (difficulty=): where x is 0.8" in found.advice(X)
    levels = (LEVEL, Fraction(99, 100))
    assert (
        held_out(normal, [1.645, np.inf], levels=levels).advice().startswith("More rows, or a lower level: 99% needs")
    )
    skewed = rng.exponential(size=400) - 0.05
    assert (
        held_out(skewed, np.quantile(skewed, 0.9))
        .advice()
        .startswith("A target transformation (target_transform='yeo-johnson') or")
    )
    assert held_out(normal, 1.645).advice() == ""
    reaching_both_limits = replace(held_out(normal, np.inf), censoring=np.ones(400), n_calibration=40)
    assert reaching_both_limits.advice() == ""
    too_few_batches = replace(held_out(normal, np.inf), calibration="batches")
    assert "90% needs at least 9 calibration batches" in too_few_batches.advice()
    few = held_out(np.r_[np.zeros(41), 2.0, 2.0, -2.0, -2.0], 1.0).advice()
    assert few == "More rows: a verdict on 90% needs about 100, and there are 45."


def test_replicates_beside_the_noise_of_the_model():
    rng = np.random.default_rng(0)
    X = np.repeat(rng.uniform(size=(12, 1)), 3, axis=0)
    y = 0.2 * rng.normal(size=36)
    found = cross_validate_intervals({"ours": fixed_model()}, X, y, 0.8, cv=2)
    deviation = np.sqrt(y.reshape(12, 3).var(axis=1, ddof=1).mean())
    assert f"Replicates differ by a standard deviation of {deviation:.3g} (24 degrees of freedom" in found.replicates
    assert "a single new measurement" in found.replicates
    assert found.replicates in found.conditions().values()
    assert cross_validate_intervals({"ours": fixed_model()}, X[::3], y[::3], 0.8, cv=2).replicates == ""
    limits = np.repeat([0, 0, 1], 12)  # which hide how much replicates differ
    limited = cross_validate_intervals({"ours": fixed_model()}, X, y, 0.8, cv=2, censoring=limits)
    assert "(16 degrees of freedom)" in limited.replicates
    limits[1:] = 1
    limits[2] = 0
    limited = cross_validate_intervals({"ours": fixed_model()}, X, y, 0.8, cv=2, censoring=limits)
    assert "(1 degree of freedom)" in limited.replicates
