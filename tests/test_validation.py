"""Bad rows meet clear errors or right answers: never a silent wrong interval, never a silent NaN."""

import warnings
from functools import cache

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.exceptions import NotFittedError

from cases import INF, MEANS, fixed_model, make_data
from conformal_gp import ConformalGPRegressor

X, Y = make_data(1, 30)
PREDICTIONS = {
    "predict": lambda model, inputs: model.predict(inputs),
    "predict_interval": lambda model, inputs: model.predict_interval(inputs, 0.8),
    "predict_set": lambda model, inputs: model.predict_set(inputs, 0.8),
    "predict_p": lambda model, inputs: model.predict_p(inputs, np.zeros(len(inputs))),
}
REGRESSORS = [
    fixed_model(mean="linear"),
    ConformalGPRegressor(tuning="holdout", n_restarts=0),
    ConformalGPRegressor(tuning="integrated"),
    ConformalGPRegressor("se", tuning="fixed", noise_variance=0.1, low_rank=10, tuning_rows=10),
]
regressors = pytest.mark.parametrize("model", REGRESSORS, ids=["fixed", "holdout", "integrated", "sparse"])


@cache
def fitted(model):
    return clone(model).fit(X, Y)


def changed(array, place, value):
    array = array.copy()
    array[place] = value
    return array


MASKED, MASKED_LABELS = np.ma.masked_greater(X, 1.4), np.ma.masked_less(Y, np.sort(Y)[2])
ROWS = {
    "infinite": (changed(X, (13, 1), -INF), Y, r"X contains infinity \(inf\) in row 13, column 1"),
    "NaN label": (X, changed(Y, 7, np.nan), "y contains NaN in row 7; all values must be finite"),
    "infinite label": (X, changed(Y, 7, INF), r"y contains infinity \(inf\) in row 7"),
    "huge": (
        changed(X, (3, 1), -1e155),
        Y,
        r"X reaches 1\.0e\+155, whose square overflows; divide column 1 by a constant",
    ),
    "huge label": (X, changed(Y, 0, 1e200), r"y reaches 1\.0e\+200, whose square overflows; divide y by a constant"),
    "masked": (MASKED, Y, rf"X has masked entries \({MASKED.mask.sum()}\); fill them in or leave these rows out"),
    "masked label": (X, MASKED_LABELS, r"y has masked entries \(2\)"),
    "one dimension": (X[:, 0], Y, "(?i)expected 2D"),
    "three dimensions": (X[:, :, None], Y, "dim 3|<= 2"),
    "no rows": (X[:0], Y[:0], "0 sample"),
    "another length": (X, Y[:-1], r"30.*29"),
    "two columns of labels": (X, np.column_stack([Y, Y]), r"y should be a 1d array.*\(30, 2\)"),
    "complex": (X + 1j, Y, "Complex data not supported: X must hold real numbers"),
    "complex label": (X, Y + 1j, "Complex data not supported: y must hold real numbers"),
    "generator as label": (X, (value for value in Y), "y holds <generator .*>; targets must be numbers"),
    "dictionary": ({"a": 1}, Y, "X holds {'a': 1}; inputs must be numbers"),
    "objects": ([[1.0, object()], *X[1:]], Y, "X holds <object .*> in row 0, column 1; inputs must be numbers"),
    "text as label": (X, ["a", *Y[1:]], "y holds 'a' in row 0; targets must be numbers"),
}


@pytest.mark.parametrize("name", ROWS)
@regressors
def test_rows_are_refused_in_fit_and_prediction(model, name):
    inputs, labels, message = ROWS[name]
    error = (ValueError, TypeError)  # of objects that are no numbers, as scikit-learn has it
    with pytest.raises(error, match=message):
        clone(model).fit(inputs, labels)
    with pytest.raises(error, match=message):
        fitted(model).predict_p(inputs, labels)
    if "label" not in name and "length" not in name:
        for predict in PREDICTIONS.values():
            with pytest.raises(error, match=message):
                predict(fitted(model), inputs)


@pytest.mark.parametrize(
    "wrong",
    [["1.5"] * 30, ["a"] * 30, np.full(30, 1j), np.full(30, "2020-01-01", dtype="M8[D]"), [{}] * 30],
    ids=["numerals", "text", "complex", "dates", "objects"],
)
def test_arguments_of_rows_are_numbers(wrong):
    message = "must hold numbers, got "
    model = fixed_model()
    with pytest.raises(ValueError, match=f"^y_variance {message}"):
        clone(model).fit(X, Y, wrong)
    with pytest.raises(ValueError, match=f"^y_variance {message}"):
        clone(model).fit(X, Y, np.ones(30)).predict_interval(X, 0.8, y_variance=wrong)
    for ratios, rows in (((wrong, np.ones(30)), "training"), ((np.ones(30), wrong), "test")):
        with pytest.raises(ValueError, match=f"^likelihood_ratio of {rows} rows {message}"):
            fitted(model).predict_interval(X, 0.8, likelihood_ratio=ratios)


@pytest.mark.parametrize("wrong", [np.full(30, True), np.zeros(30, dtype=complex)], ids=["booleans", "complex"])
def test_censoring_is_a_side(wrong):
    """True may be meant for a lower limit of detection, and would be taken for an upper one."""
    with pytest.raises(ValueError, match=r"^censoring has (True|0j) in row 0; it must be -1"):
        fixed_model().fit(X, Y, censoring=wrong)


@regressors
def test_models_and_labels_that_are_not_there(model):
    with pytest.raises(ValueError, match="requires y"):
        clone(model).fit(X, None)
    with pytest.raises(ValueError, match="0 feature"):
        clone(model).fit(X[:, :0], Y)
    for predict in PREDICTIONS.values():
        with pytest.raises(NotFittedError, match=type(model).__name__):
            predict(clone(model), X)
        with pytest.raises(ValueError, match=r"X has 3 features.*expecting 2"):
            predict(fitted(model), np.zeros((4, 3)))


@regressors
def test_missing_values_where_they_may_not_be(model):
    gap = changed(X, (13, 1), np.nan)
    with pytest.raises(ValueError, match="X contains NaN in row 13, column 1; all values must be finite"):
        clone(model).set_params(missing="error").fit(gap, Y)
    for predict in PREDICTIONS.values():
        with pytest.raises(ValueError, match=r"X has no value \(NaN\) in row 13, column 1, and no training row"):
            predict(fitted(model), gap)


def test_masks_that_hide_nothing():
    with pytest.raises(ValueError, match=r"X contains NaN in row 1, column 0"):
        fixed_model(missing="error").fit([[0.0], [None], [2.0]], [0.0, 1.0, 2.0])
    found = fixed_model().fit(np.ma.array(X), np.ma.array(Y)).predict_interval(np.ma.array(X[:2]), 0.8)
    np.testing.assert_array_equal(found, fixed_model().fit(X, Y).predict_interval(X[:2], 0.8))


@pytest.mark.parametrize("library", ["pandas", "polars"])
def test_columns_are_named(library):
    frame = pytest.importorskip(library).DataFrame
    with pytest.raises(ValueError, match=r"columns of text: 'colour'.*OneHotEncoder"):
        ConformalGPRegressor().fit(frame({"size": [1.0, 2.0, 3.0], "colour": ["red", "blue", "red"]}), Y[:3])
    model = fixed_model().fit(frame({"size": [1.0, 2.0, 3.0], "age": [5.0, 3.0, 1.0]}), Y[:3])
    with pytest.raises(ValueError, match=r"divide column 'age' by a constant"):
        model.predict(frame({"size": [1.0, 2.0, 3.0], "age": [5.0, 1e200, 1.0]}))


# Few rows


@pytest.mark.parametrize("tuning", ["fixed", "train"])
def test_more_coefficients_than_rows_are_refused(tuning):
    inputs, y = make_data(4, 5, n_inputs=4)
    options = {"tuning": tuning, "noise_variance": 0.1}
    with pytest.raises(ValueError, match=r"mean='linear' has 5 coefficients.*n_samples=5.*mean='constant'"):
        ConformalGPRegressor(mean="linear", **options).fit(inputs, y)
    with pytest.raises(ValueError, match=r"mean='constant'.*n_samples=1.*mean='zero'"):
        ConformalGPRegressor(mean="constant", **options).fit(inputs[:1], y[:1])


# Labels with nothing in them


@pytest.mark.parametrize(
    ("tuning", "mean", "gamma", "value"),
    [("fixed", "constant", 1.0, 0.0), ("fixed", "linear", INF, -1e9), ("train", "constant", 2.0, 1e-9)],
)
def test_constant_labels_give_intervals_without_width_and_a_warning(tuning, mean, gamma, value):
    model = ConformalGPRegressor(mean=mean, gamma=gamma, tuning=tuning, noise_variance=0.1)
    with pytest.warns(UserWarning, match=rf"y is reproduced exactly by mean='{mean}'.*no width"):
        model.fit(X[:20], np.full(20, value))
    inputs = np.array([[0.1, 0.2], [1.0, -0.5]])
    np.testing.assert_allclose(model.predict_interval(inputs, 0.9), value, rtol=1e-12, atol=1e-20)
    np.testing.assert_array_equal(model.predict_p(inputs, [value, value]), 1.0)
    np.testing.assert_array_equal(model.predict_p(inputs, np.full(2, value + 1e-3 * (1 + abs(value)))), 1 / 21)


def test_constant_inputs_leave_the_labels_to_noise():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = ConformalGPRegressor("se", tuning="train", random_state=0).fit(np.ones((20, 2)), np.arange(20.0))
    np.testing.assert_allclose(model.predict_interval([[1.0, 1.0]], 0.9), [[0.0, 19.0]], atol=1.5)


# Duplicate rows


def test_duplicate_rows_without_noise_are_refused_or_given_some():
    inputs, labels = np.vstack([X, X]), np.append(Y, Y + 0.5)
    with pytest.raises(ValueError, match="noise_variance"):
        fixed_model(noise_variance=0.0).fit(inputs, labels)
    with warnings.catch_warnings():  # where something is learnt, 0 is the smallest well-conditioned nugget
        warnings.simplefilter("ignore")
        model = ConformalGPRegressor(tuning="train", noise_variance=0.0).fit([[0.0], [0.0], [1.0]], [0.0, 1.0, 2.0])
    low, high = model.predict_interval([[0.5]], 0.5)[0]
    assert 2.0 < high - low < INF


# Numbers at the edge of floats


@pytest.mark.parametrize(("factor", "mean"), list(zip([1e-100, 1e-12, 1e100], MEANS, strict=True)))
def test_labels_in_any_unit(factor, mean):
    inputs = np.array([[0.1, 0.2], [1.0, 1.0]])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = ConformalGPRegressor("se", tuning="train", mean=mean, n_restarts=0)
        found, expected = (clone(model).fit(X, c * Y).predict_interval(inputs, 0.8) / c for c in (factor, 1.0))
    np.testing.assert_allclose(found, expected, atol=5e-3)


@pytest.mark.parametrize("factor", [1e-150, 1e150])
def test_inputs_at_the_edge_of_floats_give_no_nan(factor):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        model = ConformalGPRegressor("se", tuning="train", n_restarts=0).fit(factor * X, Y)
    assert np.isfinite(model.predict_interval(factor * X[:4], 0.8)).all()


@pytest.mark.parametrize("kernel", ["se", "rq", "nn", "matern32", "matern52"])
def test_a_test_row_very_far_away(kernel):
    model = fixed_model(kernel).fit(X, Y)
    assert not np.isnan(model.predict_interval([[1e8, -1e8], [1e150, 0.0]], 0.8)).any()
