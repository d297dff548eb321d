"""Cross-validation: every row predicted by a model that has not seen it, at every whole percent."""

import numpy as np
import pytest
from scipy.stats import norm
from sklearn.model_selection import KFold, ShuffleSplit

from cases import fixed_model
from conformal_gp.metrics import coverage
from conformal_gp.report.held_out import LEVELS, PERCENTS, cross_validate


@pytest.fixture(scope="module")
def rows():
    rng = np.random.default_rng(1)
    X = rng.normal(size=(30, 2))
    return X, X[:, 0] + rng.normal(size=30)


def test_rows_are_predicted_by_the_other_folds(rows):
    X, y = rows
    found = cross_validate(fixed_model(), X, y, cv=KFold(3))
    model = fixed_model().fit(X[10:], y[10:])
    mean, std = model.predict(X[:10], return_std=True)
    np.testing.assert_array_equal(found.prediction[:10], mean)
    np.testing.assert_array_equal(found.p_values[:10], model.predict_p(X[:10], y[:10]))
    with pytest.warns(UserWarning, match="needs at least"):
        np.testing.assert_array_equal(found.intervals[:10], model.predict_interval(X[:10], LEVELS))
    np.testing.assert_allclose(found.plain[:10, 1, PERCENTS.index(90)], mean + norm.ppf(0.95) * std)


def test_inside_from_tells_the_coverage_of_every_level(report):
    inside_from = report.held_out.inside_from()
    shares = [(inside_from <= percent).mean() for percent in PERCENTS]
    np.testing.assert_allclose(shares, coverage(report.y, report.held_out.intervals))
    assert inside_from.min() == 50
    assert len(set(inside_from)) > 10


def test_inside_from_without_an_interval_that_holds(rows):
    X, y = rows
    found = cross_validate(fixed_model(), X, y, cv=3)
    found.intervals[0] = np.array([[y[0] + 1], [y[0] + 2]])
    assert found.inside_from()[0] == 100


def test_progress(rows):
    heard = []
    cross_validate(fixed_model(), *rows, cv=3, progress=lambda done, total: heard.append((done, total)))
    assert heard == [(1, 3), (2, 3), (3, 3)]


@pytest.mark.parametrize(
    ("cv", "message"),
    [
        (1, "cv must lie between 2 and the number of rows, 30; got 1"),
        (31, "got 31"),
        ("ten", "cv must be a number of folds or a scikit-learn splitter, got 'ten'"),
        (ShuffleSplit(1, test_size=10, random_state=0), "20 rows were never held out"),
    ],
)
def test_bad_folds(rows, cv, message):
    with pytest.raises(ValueError, match=message):
        cross_validate(fixed_model(), *rows, cv=cv)
