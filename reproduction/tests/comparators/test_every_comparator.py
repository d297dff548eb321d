"""What holds for every comparator: a citizen of scikit-learn, with intervals that behave."""

import pickle

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.utils.estimator_checks import parametrize_with_checks

from cases import fixed_model, make_data
from reproduction.comparators import (
    BetaRecalibration,
    ConformalNeighbours,
    ConformalRidge,
    CrossConformal,
    FlowRecalibration,
    GaussianIntervals,
    IsotonicRecalibration,
    Jackknife,
    JackknifePlus,
    SplitConformal,
    SplitPredictiveSystem,
)

BASE = fixed_model(mean="constant")
LEVELS = [0.5, 0.8, 0.9, 0.95, 0.99]

# A comparator that is appended here, or below, has its tests.
CONFORMAL = [
    SplitPredictiveSystem(BASE, random_state=0),
    SplitConformal(BASE, random_state=0),
    SplitConformal(BASE, gamma=np.inf, calibration_size=0.5, random_state=0),
    CrossConformal(BASE, cv=3, random_state=0),
    CrossConformal(BASE, cv=2, method="plus", gamma=np.inf, random_state=0),
    Jackknife(BASE),
    JackknifePlus(BASE),
    JackknifePlus(BASE, gamma=2.0),
    CrossConformal(BASE, cv=2, refit=True, random_state=0),
    ConformalRidge(1.0, 0.1),
    ConformalNeighbours(3, random_state=0),
]
RECALIBRATED = [
    GaussianIntervals(BASE),
    IsotonicRecalibration(BASE, random_state=0),
    IsotonicRecalibration(BASE, calibration_size=0.5, interval="central", random_state=0),
    FlowRecalibration(BASE, units=5, max_steps=50, interval="central", random_state=0),
    BetaRecalibration(BASE, n_inducing=4, n_samples=32, max_steps=10, random_state=0),
]
COMPARATORS = CONFORMAL + RECALIBRATED
# The shortest interval of one level need not lie within that of another.
NESTED = [model for model in COMPARATORS if getattr(model, "interval", None) != "shortest"]


def names(models):
    """Models as parameters of a test, named by what sets them apart."""
    plain = [
        clone(model).set_params(**{"estimator": None} if "estimator" in model.get_params() else {}) for model in models
    ]
    return {"argvalues": models, "ids": [" ".join(str(model).split()) for model in plain]}


@parametrize_with_checks(
    [
        GaussianIntervals(BASE),
        IsotonicRecalibration(BASE, random_state=0),
        SplitPredictiveSystem(BASE, random_state=0),
        SplitConformal(BASE, random_state=0),
        CrossConformal(BASE, cv=3, random_state=0),
        CrossConformal(BASE, cv=2, method="plus", refit=True, random_state=0),
        Jackknife(BASE),
        JackknifePlus(BASE),
    ]
)  # the other comparators have theirs in files of their own
def test_estimator_checks(estimator, check):
    check(estimator)


@pytest.fixture(scope="module")
def rows():
    X, y = make_data(1, 64)
    return X[:60], y[:60], X[60:]


@pytest.mark.parametrize("model", **names(COMPARATORS))
def test_shapes(model, rows):
    X, y, new = rows
    model = clone(model).fit(X, y)
    all_levels = model.predict_interval(new, LEVELS)
    assert all_levels.shape == (4, 2, 5)
    assert (all_levels[:, 0] <= all_levels[:, 1]).all()
    assert model.predict(new).shape == (4,)
    for j, level in enumerate(LEVELS):
        np.testing.assert_array_equal(model.predict_interval(new, level), all_levels[:, :, j])
        np.testing.assert_allclose(model.predict_interval(new[2:3], level)[0], all_levels[2, :, j], rtol=1e-12)


@pytest.mark.parametrize("model", **names(NESTED))
def test_intervals_are_nested_in_the_level(model, rows):
    X, y, new = rows
    levels = np.round(np.linspace(0.05, 0.99, 48), 3)
    intervals = clone(model).fit(X, y).predict_interval(new, levels)
    lower, upper = intervals[:, 0], intervals[:, 1]
    assert (lower[:, 1:] <= lower[:, :-1] + 1e-12).all()
    assert (upper[:, 1:] >= upper[:, :-1] - 1e-12).all()


@pytest.mark.parametrize("model", **names(CONFORMAL))
@pytest.mark.parametrize("factor", [3.0, -0.01])
def test_labels_in_other_units_give_the_same_intervals_in_these_units(model, factor, rows):
    X, y, new = rows
    plain, moved = (clone(model).fit(X, labels).predict_interval(new, LEVELS) for labels in (y, 7.0 + factor * y))
    expected = 7.0 + factor * (plain if factor > 0 else plain[:, ::-1])
    np.testing.assert_allclose(moved, expected, rtol=1e-9)


@pytest.mark.parametrize("model", **names(RECALIBRATED))
def test_shifted_labels_shift_the_intervals(model, rows):
    X, y, new = rows
    plain, moved = (clone(model).fit(X, labels).predict_interval(new, LEVELS) for labels in (y, 7.0 + y))
    np.testing.assert_allclose(moved, 7.0 + plain, rtol=1e-9)


@pytest.mark.parametrize("model", **names(COMPARATORS))
def test_pickles(model, rows):
    X, y, new = rows
    model = clone(model).fit(X, y)
    again = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(again.predict_interval(new, LEVELS), model.predict_interval(new, LEVELS))


@pytest.mark.parametrize("model", **names(COMPARATORS))
def test_bad_input_is_named(model, rows):
    X, y, new = rows
    model = clone(model)
    with pytest.raises(NotFittedError):
        model.predict_interval(new)
    wrong = y.copy()
    wrong[3] = np.nan
    with pytest.raises(ValueError, match="y contains NaN in row 3"):
        model.fit(X, wrong)
    with pytest.raises(ValueError, match="inconsistent numbers of samples"):
        model.fit(X, y[:-1])
    model.fit(X, y)
    with pytest.raises(ValueError, match=r"confidence_level must lie strictly between 0 and 1, got 95; 95% is 0\.95"):
        model.predict_interval(new, 95)
    with pytest.raises(ValueError, match="2 features"):
        model.predict_interval(new[:, :1])
    new = new.copy()
    new[1, 0] = np.inf
    with pytest.raises(ValueError, match=r"X contains infinity .* row 1, column 0"):
        model.predict_interval(new)


@pytest.mark.parametrize(
    ("model", "parameter"),
    [
        (SplitConformal(gamma=0.5), "gamma"),
        (SplitConformal(calibration_size=1.0), "calibration_size"),
        (SplitConformal(estimator="se"), "estimator"),
        (IsotonicRecalibration(interval="short"), "interval"),
        (CrossConformal(cv=1), "cv"),
        (CrossConformal(method="minmax"), "method"),
        (Jackknife(gamma=0.0), "gamma"),
        (JackknifePlus(refit=2), "refit"),
        (GaussianIntervals(estimator=3), "estimator"),
    ],
)
def test_bad_parameters_are_named(model, parameter, rows):
    X, y, _ = rows
    with pytest.raises(ValueError, match=f"The '{parameter}' parameter"):
        model.fit(X, y)


@pytest.mark.parametrize("model", **names(CONFORMAL))
def test_too_few_rows_for_the_level_give_the_whole_line(model):
    X, y = make_data(2, 9)
    intervals = clone(model).fit(X, y).predict_interval(X[:2], 0.95)
    np.testing.assert_array_equal(intervals, np.tile([-np.inf, np.inf], (2, 1)))
