"""Cross-conformal prediction and CV+: p-values by definition, holes, empty regions, MAPIE."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF, ConstantKernel, WhiteKernel
from sklearn.model_selection import KFold, LeaveOneOut, ShuffleSplit

from cases import INF, contains, fixed_model, make_data
from conformal_gp.conformal.levels import read_level
from reproduction.comparators import CrossConformal, JackknifePlus
from reproduction.comparators.cross_conformal import hull, pieces, sweep

LEVELS = [0.5, 0.8, 0.9, 0.95, 0.99]
NEW, _ = make_data(99, 5)
SCIKIT_LEARN = GaussianProcessRegressor(ConstantKernel(1.0) * RBF(1.0) + WhiteKernel(0.1), alpha=0.0, optimizer=None)


def counts_by_definition(X, y, X_new, labels, splits, gamma):
    """How many training rows conform no better than each label, (rows, labels), by fitting scikit-learn's models."""
    found = np.zeros((len(X_new), labels.size), dtype=int)
    for train, held in splits:
        model = SCIKIT_LEARN.fit(X[train], y[train])
        mean, std = model.predict(X[held], return_std=True)
        scores = np.abs(y[held] - mean) / std ** (2 / gamma)
        mean, std = model.predict(X_new, return_std=True)
        new_scores = np.abs(labels - mean[:, None]) / std[:, None] ** (2 / gamma)
        found += (new_scores[:, :, None] <= scores).sum(axis=2)
    return found


@pytest.mark.parametrize("gamma", [1.0, 2.0, INF])
@pytest.mark.parametrize("refit", [False, True])
def test_regions_hold_the_labels_of_large_p_value(gamma, refit):
    X, y = make_data(1, 39)
    cv = KFold(5, shuffle=True, random_state=0)
    labels = np.linspace(-8, 8, 1601)
    count = counts_by_definition(X, y, NEW, labels, cv.split(X), gamma)
    model = CrossConformal(fixed_model(), cv=cv, gamma=gamma, refit=refit).fit(X, y)
    intervals = model.predict_interval(NEW, LEVELS)
    for j, level in enumerate(LEVELS):
        inside = (1 + count) > (1 - read_level(level)) * 40
        regions = model.predict_set(NEW, level)
        for row, region in enumerate(regions):
            found = np.array([contains(region, label) for label in labels])
            np.testing.assert_array_equal(found, inside[row])
            np.testing.assert_array_equal(intervals[row, :, j], [region[0, 0], region[-1, 1]])


def test_leave_one_out_folds_and_no_folds_to_choose():
    X, y = make_data(2, 25)
    one = CrossConformal(fixed_model(), cv=LeaveOneOut(), gamma=INF, method="plus").fit(X, y)
    other = JackknifePlus(fixed_model()).fit(X, y)
    np.testing.assert_array_equal(one.predict_interval(NEW, LEVELS), other.predict_interval(NEW, LEVELS))


@pytest.mark.parametrize("n_folds", [2, 5, 10])
def test_cv_plus_equals_mapie(n_folds):
    mapie = pytest.importorskip("mapie.regression", reason="mapie is not installed")
    X, y = make_data(3, 40)
    cv = KFold(n_folds, shuffle=True, random_state=1)
    theirs = mapie.CrossConformalRegressor(SCIKIT_LEARN, confidence_level=[0.8, 0.9], method="plus", cv=cv)
    _, expected = theirs.fit_conformalize(X, y).predict_interval(NEW)
    model = CrossConformal(fixed_model("se", 0.1), cv=cv, gamma=INF, method="plus").fit(X, y)
    np.testing.assert_allclose(model.predict_interval(NEW, [0.8, 0.9]), expected, rtol=1e-8)


@pytest.mark.parametrize("gamma", [2.0, INF])
def test_cv_plus_contains_the_cross_conformal_region(gamma):
    for seed in range(10):
        X, y = make_data(seed, 30)
        cross, plus = (
            CrossConformal(fixed_model(), cv=3, method=method, gamma=gamma, random_state=0).fit(X, y)
            for method in ("cross", "plus")
        )
        inner, outer = (model.predict_interval(NEW, LEVELS) for model in (cross, plus))
        assert (outer[:, 0] <= inner[:, 0]).all()
        assert (outer[:, 1] >= inner[:, 1]).all()


def test_sweep_counts_closed_intervals():
    lower = np.array([[0.0, 1.0, 5.0, 1.0]])
    upper = np.array([[1.0, 3.0, 6.0, 1.0]])  # two touch in 1, where a third is a point
    labels, depth = sweep(lower, upper)
    np.testing.assert_array_equal(pieces(labels[0], depth[0], 1), [[0, 3], [5, 6]])
    np.testing.assert_array_equal(pieces(labels[0], depth[0], 2), [[1, 1]])
    np.testing.assert_array_equal(pieces(labels[0], depth[0], 3), [[1, 1]])
    assert pieces(labels[0], depth[0], 4).shape == (0, 2)
    np.testing.assert_array_equal(pieces(labels[0], depth[0], 0), [[-INF, INF]])
    np.testing.assert_array_equal(hull(labels, depth, 1), [[0, 6]])
    np.testing.assert_array_equal(hull(labels, depth, 3), [[1, 1]])
    np.testing.assert_array_equal(hull(labels, depth, 4), [[1, 1]])  # empty: the deepest label
    np.testing.assert_array_equal(hull(labels, depth, 0), [[-INF, INF]])


@settings(max_examples=200, deadline=None, derandomize=True)
@given(st.lists(st.tuples(st.integers(0, 6), st.integers(0, 3)), min_size=1, max_size=8), st.integers(1, 8))
def test_pieces_and_hull_by_counting(starts_and_lengths, k):
    lower, length = np.array(starts_and_lengths, dtype=float).T
    upper = lower + length  # many ties
    labels, depth = sweep(lower[None], upper[None])
    grid = np.arange(-2, 22) / 2
    count = ((lower <= grid[:, None]) & (grid[:, None] <= upper)).sum(axis=1)
    found = pieces(labels[0], depth[0], k)
    np.testing.assert_array_equal([contains(found, label) for label in grid], count >= k)
    assert (found[1:, 0] > found[:-1, 1]).all()  # disjoint, in order
    deepest = grid[count >= min(k, count.max())]
    np.testing.assert_array_equal(hull(labels, depth, k), [[deepest.min(), deepest.max()]])


def test_sweep_with_infinite_intervals():
    labels, depth = sweep(np.array([[-INF, 0.0, -INF]]), np.array([[INF, 1.0, INF]]))
    np.testing.assert_array_equal(hull(labels, depth, 2), [[-INF, INF]])
    np.testing.assert_array_equal(hull(labels, depth, 3), [[0, 1]])


def test_random_folds_part_the_rows_and_follow_the_seed():
    X, y = make_data(4, 23)
    one, same, other = (CrossConformal(fixed_model(), cv=4, random_state=seed).fit(X, y) for seed in (0, 0, 1))
    assert np.bincount(one.left_out_.fold).tolist() == [6, 6, 6, 5]
    np.testing.assert_array_equal(one.scores_, same.scores_)
    assert not np.array_equal(one.scores_, other.scores_)


def test_folds_that_do_not_part_the_rows():
    X, y = make_data(5, 20)
    with pytest.raises(ValueError, match="cv must hold out each of the 20 rows exactly once"):
        CrossConformal(fixed_model(), cv=ShuffleSplit(3, random_state=0)).fit(X, y)
    with pytest.raises(ValueError, match="Cannot have number of splits"):
        CrossConformal(fixed_model(), cv=21).fit(X, y)


def test_regions_have_one_level():
    X, y = make_data(6, 20)
    with pytest.raises(ValueError, match="one number for predict_set"):
        CrossConformal(fixed_model(), cv=4).fit(X, y).predict_set(NEW, LEVELS)
