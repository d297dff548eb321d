"""Intervals for rows of new batches: ``fit(X, y, batches=...)``."""

import warnings
from fractions import Fraction

import numpy as np
import pandas as pd
import pytest

from conformal_gp import ConformalGPRegressor, saving
from conformal_gp.evaluation import cross_validate_intervals, leave_one_out
from conformal_gp.models.tuning_rows import batches_needed, calibration_batches

FIXED = {"tuning": "fixed", "noise_variance": 0.1, "scale_inputs": False}


def table(rng, n_batches, size, spread=0.7):
    """Rows whose batches have an offset each, which a second input gives away within a batch."""
    lot = np.repeat(np.arange(n_batches), size)
    X = np.column_stack([rng.normal(size=lot.size), rng.normal(size=n_batches)[lot]])
    y = np.sin(X[:, 0]) + (spread * rng.normal(size=n_batches))[lot] + 0.1 * rng.normal(size=lot.size)
    return X, y, lot


def frame(rng, n_batches, size):
    X, y, lot = table(rng, n_batches, size)
    return pd.DataFrame({"x": X[:, 0], "reading": X[:, 1], "lot": [f"L{code}" for code in lot]}), y


def held_out(**options):
    return ConformalGPRegressor("se", tuning="holdout", n_restarts=0, random_state=0, **options)


def covered(model, batches, n_tables=60):
    """Coverage of 80% intervals of rows of new batches, over tables of 9 batches."""
    shares = []
    for seed in range(n_tables):
        rng = np.random.default_rng(seed)
        X, y, lot = table(rng, 9, 6)
        X_new, y_new, _ = table(rng, 30, 1)
        model.fit(X, y, batches=lot if batches else None)
        with warnings.catch_warnings(action="ignore"):
            low, high = model.predict_interval(X_new, 0.8).T
        shares.append(np.mean((low <= y_new) & (y_new <= high)))
    return np.mean(shares), np.std(shares) / np.sqrt(n_tables)


def test_rows_of_new_batches_are_covered_at_the_level():
    """Nominally 80%: rank 8 of 9 calibration rows and the new one; without batches far fewer."""
    share, error = covered(ConformalGPRegressor(**FIXED), True)
    assert abs(share - 0.8) < 3 * error
    share, error = covered(ConformalGPRegressor(**FIXED), False)
    assert share < 0.8 - 3 * error


@pytest.mark.slow
def test_rows_of_new_batches_are_covered_with_tuning():
    """Nominally 80%: four calibration batches of nine."""
    share, error = covered(held_out(), True, 200)
    assert abs(share - 0.8) < 3 * error
    share, error = covered(held_out(), False, 50)
    assert share < 0.8 - 3 * error


def test_whole_batches_are_tuned_on_and_one_row_of_each_other_calibrates():
    X, y, lot = table(np.random.default_rng(0), 12, 5)
    model = held_out().fit(X, y, batches=lot)
    tuned = np.unique(lot[model.tuning_rows_])
    assert model.tuning_ == "holdout"
    assert model.n_calibration_ == 9 == calibration_batches(12)
    assert tuned.size == 3
    np.testing.assert_array_equal(model.tuning_rows_, np.flatnonzero(np.isin(lot, tuned)))
    used = leave_one_out(model).rows
    assert np.unique(lot[used]).size == used.size == 9
    assert not np.isin(lot[used], tuned).any()
    explained = model.explain_interval(X[:4], 0.8)
    assert set(explained.row.ravel()) <= set(used)
    assert set(explained.nearest.ravel()) <= {*used, *model.tuning_rows_}
    assert "Valid: everything was tuned on the 15 rows of 3 batches" in model.guarantee_
    assert "The highest level is 90%; 95% takes 29 batches." in model.guarantee_


def test_neither_order_nor_names_matter():
    rng = np.random.default_rng(1)
    X, y, lot = table(rng, 12, 5)
    order = rng.permutation(y.size)
    model = held_out().fit(X, y, batches=lot)
    other = held_out().fit(X[order], y[order], batches=[f"lot {code}" for code in lot[order]])
    np.testing.assert_allclose(model.predict_interval(X, 0.8), other.predict_interval(X, 0.8), rtol=1e-9)
    another = held_out().set_params(random_state=1).fit(X, y, batches=lot)
    assert set(another.tuning_rows_) != set(model.tuning_rows_)


def test_a_column_of_batches_is_no_input():
    X, y = frame(np.random.default_rng(2), 12, 5)
    model = held_out().fit(X, y, batches="lot")
    assert model.feature_names_in_.tolist() == ["x", "reading"]
    new = pd.DataFrame({"x": [0.0, 1.0], "reading": [0.5, 0.1], "lot": ["new", "L3"]})
    without = new.drop(columns="lot")
    np.testing.assert_array_equal(model.predict_interval(new, 0.8), model.predict_interval(without, 0.8))
    as_category = X.assign(lot=X["lot"].astype("category"))
    with pytest.raises(ValueError, match=r"if 'lot' names batches, fit\(..., batches='lot'\) is for rows of new ones"):
        held_out().fit(as_category, y).predict(new.assign(lot=new["lot"].astype("category")))


def test_rows_that_inducing_inputs_come_from_are_not_counted():
    X, y, lot = table(np.random.default_rng(4), 45, 2)
    model = ConformalGPRegressor(tuning="fixed", noise_variance=0.1, scale_inputs=False, low_rank=15, random_state=0)
    model.fit(X, y, batches=lot)
    assert model.n_calibration_ == 19
    assert "on the 26 rows of 26 batches, and one row of each of the other 19 batches" in model.guarantee_
    with pytest.warns(UserWarning, match="needs at least 39 calibration batches.* there are 19 of 45"):
        model.predict_interval(X[:1], 0.975)


def test_few_batches_support_low_levels_only():
    assert [calibration_batches(n) for n in (2, 5, 9, 10, 28, 29, 40, 200)] == [1, 4, 4, 9, 9, 19, 19, 59]
    assert [batches_needed(level) for level in (Fraction(1, 2), Fraction(4, 5), Fraction(19, 20))] == [2, 5, 29]
    X, y, lot = table(np.random.default_rng(3), 8, 5)
    model = held_out().fit(X, y, batches=lot)
    with pytest.warns(UserWarning, match="needs at least 9 calibration batches, by default of 10 batches, there are 4"):
        assert np.isinf(model.predict_interval(X, 0.9)).all()
    assert np.isfinite(model.predict_interval(X, 0.8)).all()
    assert "The highest level is 80%; 90% takes 10 batches." in model.guarantee_
    more = held_out(tuning_rows=1).fit(X, y, batches=lot)
    assert more.n_calibration_ == 7
    assert more.tuning_rows_.size == 5


def test_given_tuning_rows_are_whole_batches():
    X, y, lot = table(np.random.default_rng(4), 6, 5)
    model = held_out(tuning_rows=np.flatnonzero(lot < 2)).fit(X, y, batches=lot)
    assert model.tuning_rows_.tolist() == list(range(10))
    with pytest.raises(ValueError, match="tuning_rows must be all rows of some batches"):
        held_out(tuning_rows=np.arange(7)).fit(X, y, batches=lot)
    assert ConformalGPRegressor(**FIXED).fit(X, y, batches=lot).n_calibration_ == 6


def test_groups_limits_and_known_noise_go_with_the_rows():
    rng = np.random.default_rng(5)
    X, y, lot = table(rng, 24, 4)
    groups = np.where(lot % 2 == 0, "even", "odd")
    below = np.where(y <= -1.0, -1, 0)
    options = {"y_variance": np.full(y.size, 0.01), "groups": groups, "censoring": below, "batches": lot}
    model = held_out(target_transform=None).fit(X, np.maximum(y, -1.0), **options)
    ends = model.predict_interval(X[:5], 0.5, y_variance=np.full(5, 0.01), groups=groups[:5])
    assert np.isfinite(ends[:, 1]).all()
    with pytest.raises(ValueError, match="censoring must hold one number for each of the 96 rows"):
        held_out().fit(X, y, batches=lot, censoring=below[:5])


def test_saved_models(tmp_path):
    X, y = frame(np.random.default_rng(6), 10, 4)
    model = held_out().fit(X, y, batches="lot")
    saving.save(model, tmp_path / "model")
    again = saving.load(tmp_path / "model")
    np.testing.assert_array_equal(again.predict_interval(X, 0.8), model.predict_interval(X, 0.8))


def test_mistakes():
    X, y, lot = table(np.random.default_rng(7), 6, 4)
    for wrong, said in [
        (lot[:5], "batches must hold one value for each of the 24 rows, got 5"),
        (np.zeros(24), "batches must hold at least two batches"),
        ("lot", "batches is 'lot', and X must be a data frame"),
        ([None, *lot[1:]], "batches has no value in row 0"),
    ]:
        with pytest.raises(ValueError, match=said):
            held_out().fit(X, y, batches=wrong)
    for tuning in ("integrated", "train"):
        with pytest.raises(ValueError, match="tuning must be 'auto', 'holdout' or 'fixed'"):
            ConformalGPRegressor(tuning=tuning).fit(X, y, batches=lot)
    model = held_out().fit(X, y, batches=lot)
    with pytest.raises(ValueError, match="partial_fit is not for a model that was fitted with batches"):
        model.partial_fit(X, y)
    with pytest.raises(ValueError, match="likelihood_ratio was given, and fit was called with batches"):
        model.predict_interval(X, 0.5, likelihood_ratio=lambda X: np.ones(len(X)))
    with pytest.raises(ValueError, match="tuning takes at least 23 rows of whole batches, which leaves no calibration"):
        held_out(tuning_rows=23).fit(X, y, batches=lot)


def test_cross_validation_holds_out_whole_batches():
    X, y = frame(np.random.default_rng(8), 20, 4)
    found = cross_validate_intervals(held_out(), X, y, 0.8, cv=5, batches="lot")
    finding = found.findings()[0]
    assert found.together == "Whole batches are held out together: 20 batches in 80 rows."
    assert finding.n_batches == 20
    np.testing.assert_allclose(finding.expected(), [0.6, 0.95])
    with warnings.catch_warnings(action="ignore"), pytest.raises(ValueError, match="give groups_out or batches"):
        cross_validate_intervals(held_out(), X, y, 0.8, batches="lot", groups_out=X["lot"])
