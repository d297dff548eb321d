"""Rows are predicted by models of the other folds; replicates and batches are held out together."""

from fractions import Fraction

import numpy as np
import pandas as pd
import pytest
from scipy.stats import norm
from sklearn.base import BaseEstimator, RegressorMixin
from sklearn.model_selection import KFold, RepeatedKFold, ShuffleSplit, TimeSeriesSplit

from cases import fixed_model
from conformal_gp import ConformalGPRegressor
from conformal_gp.evaluation import (
    cross_validate_intervals,
    verdict,
)
from conformal_gp.evaluation.cross_validation import make_folds

LEVEL = Fraction(9, 10)


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


def test_default_levels_give_finite_intervals(rows):
    found = cross_validate_intervals(fixed_model(), *rows, cv=3)
    assert found.levels == [Fraction(9, 10), Fraction(19, 20)]  # 20 rows are ranked
    assert np.isfinite(found.intervals["conformal"]).all()


def test_rows_are_predicted_by_the_other_folds(rows):
    X, y = rows
    heard = []
    asked = {"standard_gp": True, "progress": lambda *fits: heard.append(fits)}
    found = cross_validate_intervals(fixed_model(), X, y, [0.5, 0.9], cv=KFold(3), **asked)
    assert list(found.intervals) == ["conformal", "standard GP"]
    assert [found.level for found in found.at([0.9]).findings()] == [LEVEL] * 2
    assert heard == [(done, 3) for done in range(1, 4)]
    for train, test in KFold(3).split(X):
        model = fixed_model().fit(X[train], y[train])
        mean, std = model.predict(X[test], return_std=True)
        for name in ("conformal", "standard GP"):
            np.testing.assert_array_equal(found.prediction[name][test], mean)
        expected = model.predict_interval(X[test], [0.5, 0.9])
        np.testing.assert_array_equal(found.intervals["conformal"][test], expected)
        np.testing.assert_allclose(found.intervals["standard GP"][test, 1, 1], mean + norm.ppf(0.95) * std)
    frame = cross_validate_intervals(fixed_model(), pd.DataFrame(X, columns=["a", "b"]), y, 0.5, cv=KFold(3))
    np.testing.assert_array_equal(frame.intervals["conformal"][:, :, 0], found.intervals["conformal"][:, :, 0])


def test_some_rows_are_held_out_once(rows):
    X, y = rows
    cv = ShuffleSplit(1, test_size=8, random_state=0)
    found = cross_validate_intervals(fixed_model(y_bounds=(-9, 0.5)), X, np.minimum(y, 0.5), 0.5, cv=cv)
    np.testing.assert_array_equal(found.rows, np.sort(next(cv.split(X))[1]))
    np.testing.assert_array_equal(found.y, np.minimum(y, 0.5)[found.rows])
    assert found.intervals["conformal"].max() == 0.5


def test_known_noise_goes_to_models_that_take_it(rows):
    X, y = rows
    noise = np.tile([0.01, 2.0], 15)
    found = cross_validate_intervals(fixed_model(), X, y, 0.5, cv=KFold(3), standard_gp=True, y_variance=noise)
    for train, test in KFold(3).split(X):
        model = fixed_model().fit(X[train], y[train], y_variance=noise[train])
        of_test = {"y_variance": noise[test]}
        expected = model.predict_interval(X[test], 0.5, **of_test)
        np.testing.assert_allclose(found.intervals["conformal"][test, :, 0], expected)
        mean, std = model.predict(X[test], return_std=True, **of_test)
        np.testing.assert_allclose(found.intervals["standard GP"][test, 0, 0], mean - norm.ppf(0.75) * std)
    with pytest.raises(ValueError, match="y_variance was given, but fit of Given does not take it"):
        cross_validate_intervals(Given(), X, y, y_variance=noise)
    with pytest.raises(ValueError, match="inconsistent numbers of samples"):
        cross_validate_intervals(fixed_model(), X, y, y_variance=noise[1:])


def test_groups_go_to_models_that_take_them(rows):
    X, y = rows
    groups = np.array([*["a", "b"] * 14, "b", "c"], dtype=object)  # "c" has one row: no other to compare it with
    found = cross_validate_intervals(fixed_model(), X, y, 0.5, cv=KFold(3), groups=groups)
    assert np.isinf(found.intervals["conformal"][-1]).all()
    assert np.isfinite(found.intervals["conformal"][:-1]).all()
    train, test = next(KFold(3).split(X))
    expected = (
        fixed_model().fit(X[train], y[train], groups=groups[train]).predict_interval(X[test], 0.5, groups=groups[test])
    )
    np.testing.assert_array_equal(found.intervals["conformal"][test, :, 0], expected)
    parts = found.by_group()
    assert [(part.among, part.n_rows) for part in parts] == [("group a", 14), ("group b", 15), ("group c", 1)]
    assert sum(part.n_outside for part in parts) == found.findings()[0].n_outside
    with pytest.raises(ValueError, match="groups was given, but fit of Given does not take it"):
        cross_validate_intervals(Given(), X, y, groups=groups)


def test_levels_that_rows_do_not_support_are_warned_of(rows):
    with pytest.warns(UserWarning, match="needs at least 99 calibration rows"):
        cross_validate_intervals(fixed_model(), *rows, 0.99, cv=2)


@pytest.mark.parametrize("cv", [1, 31, "ten", RepeatedKFold(n_splits=3, n_repeats=2)])
def test_bad_folds(rows, cv):
    with pytest.raises(ValueError, match=r"n_splits|`cv`|cv must hold out every row at most once"):
        cross_validate_intervals(Given(), *rows, 0.5, cv=cv)


def test_misses_of_conformal_intervals_scatter_no_more_than_the_verdict_assumes():
    """Otherwise the verdict would call right intervals wrong too often."""
    levels, n = [0.8, 0.9], 59
    misses = []
    for seed in range(40):
        rng = np.random.default_rng(seed)
        X = rng.normal(size=(n, 1))
        y = np.sin(X[:, 0]) + 0.3 * rng.standard_t(4, size=n)
        found = cross_validate_intervals(fixed_model(), X, y, levels, cv=5, random_state=seed)
        misses.append([finding.n_outside for finding in found.findings()])
    for level, spread in zip(levels, np.std(misses, axis=0), strict=True):
        assert spread < 0.85 * np.sqrt(n * level * (1 - level))


def test_replicates_beside_the_noise_of_the_model():
    rng = np.random.default_rng(0)
    X = np.repeat(rng.uniform(size=(12, 1)), 3, axis=0)
    y = 0.2 * rng.normal(size=36)
    found = cross_validate_intervals(fixed_model(), X, y, 0.8, cv=2)
    deviation = np.sqrt(y.reshape(12, 3).var(axis=1, ddof=1).mean())
    assert f"Replicates differ by a standard deviation of {deviation:.3g} (24 degrees of freedom" in found.replicates
    assert "a single new measurement" in found.replicates
    assert found.replicates in found.conditions().values()
    assert cross_validate_intervals(fixed_model(), X[::3], y[::3], 0.8, cv=2).replicates == ""
    limits = np.repeat([0, 0, 1], 12)  # which hide how much replicates differ
    limited = cross_validate_intervals(fixed_model(), X, y, 0.8, cv=2, censoring=limits)
    assert "(16 degrees of freedom)" in limited.replicates
    limits[1:] = 1
    limits[2] = 0
    limited = cross_validate_intervals(fixed_model(), X, y, 0.8, cv=2, censoring=limits)
    assert "(1 degree of freedom)" in limited.replicates


FIXED = {"kernel": "se", "tuning": "fixed", "noise_variance": 0.1, "mean": "zero", "scale_inputs": False}


def held(X, y, **options):
    model = ConformalGPRegressor(**FIXED)
    return cross_validate_intervals(model, X, y, 0.8, cv=options.pop("cv", 5), **options)


def test_distinct_rows_are_split_as_scikit_learn_does():
    X = np.random.default_rng(0).normal(size=(30, 2))
    splits, together = make_folds(4, {"a": X[:, 0], "b": X[:, 1]}, 30, 7, None)
    expected = KFold(4, shuffle=True, random_state=7).split(X)
    for (train, test), (expected_train, expected_test) in zip(splits, expected, strict=True):
        np.testing.assert_array_equal(train, expected_train)
        np.testing.assert_array_equal(test, expected_test)
    assert together == ""


@pytest.mark.parametrize("frame", [False, True])
def test_replicates_are_held_out_together(frame):
    rng = np.random.default_rng(0)
    X = np.repeat(rng.normal(size=(12, 2)), 3, axis=0)
    y = rng.normal(size=36) + np.repeat(10.0 * rng.normal(size=12), 3)
    kept = np.random.default_rng(1).permutation(36)
    if frame:
        X = pd.DataFrame({"a": X[:, 0], "kind": pd.Categorical(np.where(X[:, 1] > 0, "u", "v"))})
    taken = X.iloc[kept] if frame else X[kept]
    found = held(taken, y[kept])
    assert found.together == "Rows with equal inputs are held out together: 12 distinct inputs in 36 rows."
    assert found.together in found.conditions().values()
    alone = held(taken, y[kept], cv=KFold(5, shuffle=True, random_state=0))
    assert alone.together == ""
    # the noise of a triple is common: replicates give it away
    error = np.abs(found.prediction["conformal"] - found.y).mean()
    assert error > 1.3 * np.abs(alone.prediction["conformal"] - alone.y).mean()


def test_whole_batches_are_held_out():
    rng = np.random.default_rng(0)
    batch = np.repeat(list("abcdefghijkl"), 10)
    X = rng.normal(size=(120, 1))
    y = X[:, 0] + np.repeat(2.0 * rng.normal(size=12), 10) + 0.1 * rng.normal(size=120)
    inputs = np.column_stack([X, np.repeat(rng.normal(size=12), 10)])  # a reading that tells batches apart
    together = held(inputs, y, groups_out=batch, cv=12)
    alone = held(inputs, y)
    assert together.together == "Whole batches are held out together: 12 batches in 120 rows."
    assert alone.together == ""
    assert alone.findings()[0].coverage > 0.7
    assert together.findings()[0].coverage < 0.65
    assert "too few batches to tell" in verdict(together.findings())[0]
    for splitter in (3, TimeSeriesSplit(3)):
        for train, test in make_folds(splitter, {}, 120, 0, batch)[0]:
            assert not set(batch[train]) & set(batch[test])
    assert set(batch[make_folds(TimeSeriesSplit(3), {}, 120, 0, batch)[0][0][0]]) == set("abc")
    assert len(make_folds(50, {}, 120, 0, batch)[0]) == 12


@pytest.mark.parametrize(
    ("groups", "message"),
    [
        ([1, 2], r"groups_out must hold one value for each of the 6 rows, got \(2,\)"),
        ([1] * 6, "groups_out must have at least two groups, got '1' alone"),
    ],
)
def test_wrong_batches(groups, message):
    with pytest.raises(ValueError, match=message):
        held(np.arange(6.0)[:, None], np.arange(6.0), groups_out=groups)


def test_limits_of_detection_count_as_covered_where_the_interval_contains_them():
    rng = np.random.default_rng(0)
    X = rng.uniform(0, 3, size=(150, 1))
    y = np.exp(-X[:, 0] + 0.3 * rng.standard_normal(150))
    limit = np.quantile(y, 0.3)
    recorded = np.maximum(y, limit)
    found = held(X, recorded, censoring=-(y <= limit).astype(int), standard_gp=True)
    for ends in found.intervals.values():
        low, high = ends[:, :, 0].T
        assert np.isinf(low[found.y == limit]).mean() > 0.8
        assert (np.isinf(low) | (low > limit)).all()
        # what is counted is what holds for true values
        np.testing.assert_array_equal((low <= found.y) & (found.y <= high), (low <= y) & (y <= high))
    finding = found.findings()[0]
    assert finding.n_infinite == 0
    assert 0.7 < finding.coverage < 0.95
    said = found.conditions()["Limits of detection"]
    assert said.startswith("45 of 150 rows are beyond a limit of detection, and count as covered where")
    assert "More rows, or a lower level" not in found.advice(X)
    assert "Limits of detection" not in held(X, recorded).conditions()
    with pytest.raises(ValueError, match="censoring was given, but fit of Plain does not take it"):
        cross_validate_intervals(Plain(), X, recorded, 0.8, censoring=-(y <= limit).astype(int))


class Plain(ConformalGPRegressor):
    """A regressor that takes no limits."""

    def fit(self, X, y):
        """Fit."""
        return super().fit(X, y)
