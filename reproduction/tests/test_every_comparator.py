"""What holds for every comparator."""

import numpy as np
import pytest
from rows import fixed_model, make_data
from scipy.stats import norm
from sklearn.base import clone
from sklearn.exceptions import NotFittedError

from reproduction.comparators import (
    BetaRecalibration,
    ConformalNeighbours,
    ConformalRidge,
    CrossConformal,
    FlowRecalibration,
    IsotonicRecalibration,
    Jackknife,
    JackknifePlus,
    SplitConformal,
    SplitPredictiveSystem,
    gaussian_intervals,
)

BASE = fixed_model(mean="constant")
LEVELS = [0.5, 0.8, 0.9, 0.95, 0.99]
CONFORMAL = [
    SplitPredictiveSystem(BASE, random_state=0),
    SplitConformal(BASE, gamma=np.inf, calibration_size=0.5, random_state=0),
    CrossConformal(BASE, n_folds=3, random_state=0),
    Jackknife(BASE),
    JackknifePlus(BASE, gamma=2.0),
    ConformalRidge(),
    ConformalNeighbours(3, random_state=0),
]
RECALIBRATED = [
    IsotonicRecalibration(BASE, random_state=0),
    FlowRecalibration(BASE, units=5, max_steps=50, random_state=0),
    BetaRecalibration(BASE, n_inducing=4, n_samples=32, max_steps=10, random_state=0),
]


@pytest.mark.filterwarnings("ignore:.*needs at least:UserWarning")
@pytest.mark.parametrize("model", CONFORMAL + RECALIBRATED, ids=lambda model: type(model).__name__)
def test_shapes_shifts_and_bad_input(model):
    X, y = make_data(1, 64)
    X, y, new = X[:60], y[:60], X[60:]
    with pytest.raises(NotFittedError):
        model.predict_interval(new)
    fitted = clone(model).fit(X, y)
    all_levels = fitted.predict_interval(new, LEVELS)
    assert all_levels.shape == (4, 2, 5)
    assert (all_levels[:, 0] <= all_levels[:, 1]).all()
    assert fitted.predict(new).shape == (4,)
    np.testing.assert_array_equal(fitted.predict_interval(new, 0.8), all_levels[:, :, 1])
    np.testing.assert_allclose(fitted.predict_interval(new[2:3], LEVELS), all_levels[2:3], rtol=1e-9)
    with pytest.raises(ValueError, match="must lie strictly between 0 and 1"):
        fitted.predict_interval(new, 95)
    with pytest.raises(ValueError, match="2 features"):
        fitted.predict_interval(new[:, :1])
    with pytest.raises(ValueError, match="NaN"):
        clone(model).fit(X, np.where(y > 0, y, np.nan))
    shifted = clone(model).fit(X, 7.0 + y).predict_interval(new, LEVELS)
    np.testing.assert_allclose(shifted, 7.0 + all_levels, rtol=1e-6)


@pytest.mark.filterwarnings("ignore:.*needs at least:UserWarning")
@pytest.mark.parametrize("model", CONFORMAL, ids=lambda model: type(model).__name__)
def test_conformal_intervals_are_nested_and_infinite_where_rows_are_too_few(model):
    X, y = make_data(1, 60)
    intervals = clone(model).fit(X, y).predict_interval(X[:4], np.round(np.linspace(0.05, 0.99, 48), 3))
    with np.errstate(invalid="ignore"):
        assert not (np.diff(intervals[:, 0]) > 1e-9).any()
        assert not (np.diff(intervals[:, 1]) < -1e-9).any()
    few = clone(model).fit(X[:9], y[:9]).predict_interval(X[:2], 0.95)
    np.testing.assert_array_equal(few, np.tile([-np.inf, np.inf], (2, 1)))


def test_gaussian_intervals():
    found = gaussian_intervals(np.array([0.0, 5.0]), np.array([1.0, 2.0]), [0.5, 0.9])
    z = norm.ppf([0.75, 0.95])
    np.testing.assert_allclose(found, [[-z, z], [5 - 2 * z, 5 + 2 * z]])
