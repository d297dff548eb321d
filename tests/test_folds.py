"""Rows that are held out together: replicates, and whole batches."""

import numpy as np
import pandas as pd
import pytest
from sklearn.model_selection import KFold, TimeSeriesSplit

from conformal_gp import ConformalGPRegressor
from conformal_gp.evaluation import cross_validate_intervals, verdict
from conformal_gp.evaluation.cross_validation import make_folds

FIXED = {"kernel": "se", "tuning": "fixed", "noise_variance": 0.1, "mean": "zero", "scale_inputs": False}


def held(X, y, **options):
    model = ConformalGPRegressor(**FIXED)
    return cross_validate_intervals({"mine": model}, X, y, 0.8, cv=options.pop("cv", 5), **options)


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
    error = np.abs(found.prediction["mine"] - found.y).mean()
    assert error > 1.3 * np.abs(alone.prediction["mine"] - alone.y).mean()


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
        ([1, 2], r"groups_out must hold one label for each of the 6 rows, got \(2,\)"),
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
    found = held(X, recorded, censoring=-(y <= limit).astype(int), standard_gp="standard GP")
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
        cross_validate_intervals({"plain": Plain()}, X, recorded, 0.8, censoring=-(y <= limit).astype(int))


class Plain(ConformalGPRegressor):
    """A regressor that takes no limits."""

    def fit(self, X, y):
        """Fit."""
        return super().fit(X, y)
