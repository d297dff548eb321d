"""Data frames with categories and booleans, in both regressors; dates and text where numbers belong."""

import datetime

import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn.base import clone
from sklearn.model_selection import cross_val_score

from bags import MODELS, few_draws, is_permutation, n_tuning
from cases import fixed_model, make_data
from conformal_gp import ConformalGPRegressor
from conformal_gp.validation import input_names

X, Y = make_data(1, 40)
KINDS = np.array(["u", "v", "w"])[np.arange(40) % 3]
FLAGS = X[:, 1] > 0.0
PLAIN = np.column_stack([X[:, 0], np.eye(3)[np.arange(40) % 3], FLAGS, X[:, 1]])
LOW_RANK = {"low_rank": 10, "tuning_rows": 20, "n_restarts": 0, "random_state": 0}


def columns(kinds):
    return {"a": X[:, 0], "kind": kinds, "flag": FLAGS, "b": X[:, 1]}


FRAMES = {
    "pandas": pd.DataFrame(columns(pd.Categorical(KINDS))),
    "pandas, nullable": pd.DataFrame(columns(pd.Categorical(KINDS))).convert_dtypes(),
    "polars": pl.DataFrame(columns(pl.Series(KINDS, dtype=pl.Categorical))),
    "polars, enum": pl.DataFrame(columns(pl.Series(KINDS, dtype=pl.Enum(["u", "v", "w"])))),
}


def regressors():
    return [
        fixed_model(),
        ConformalGPRegressor(tuning="holdout", n_restarts=0, random_state=0),
        ConformalGPRegressor(**LOW_RANK),
    ]


@pytest.mark.parametrize("model", regressors(), ids=["fixed", "holdout", "low rank"])
@pytest.mark.parametrize("name", FRAMES)
def test_categories_and_booleans_are_inputs(name, model):
    frame = FRAMES[name]
    fitted, plain = clone(model).fit(frame, Y), clone(model).fit(PLAIN, Y)
    assert list(fitted.feature_names_in_) == ["a", "kind", "flag", "b"]
    assert fitted.n_features_in_ == 4
    np.testing.assert_array_equal(fitted.predict(frame[:5]), plain.predict(PLAIN[:5]))
    np.testing.assert_array_equal(fitted.predict_interval(frame[:5], 0.8), plain.predict_interval(PLAIN[:5], 0.8))
    np.testing.assert_array_equal(fitted.predict_p(frame[:5], Y[:5]), plain.predict_p(PLAIN[:5], Y[:5]))
    np.testing.assert_array_equal(fitted.predict_bound(frame[:5], 0.8), plain.predict_bound(PLAIN[:5], 0.8))
    assert fitted.guarantee_ == plain.guarantee_


def test_categories_are_those_of_the_dtype_in_its_order():
    frame = pd.DataFrame({"kind": pd.Categorical(KINDS, ["w", "x", "u", "v"])})
    fitted = fixed_model().fit(frame, Y)
    np.testing.assert_array_equal(fitted._source.rows.X, KINDS[:, None] == ["w", "x", "u", "v"])
    new = pd.DataFrame({"kind": ["x", "u"]})  # text is taken where fit had categories
    expected = fixed_model().fit((KINDS[:, None] == ["w", "x", "u", "v"]).astype(float), Y)
    np.testing.assert_array_equal(fitted.predict(new), expected.predict([[0, 1, 0, 0], [0, 0, 1, 0]]))


def test_two_categories_make_one_input():
    two = pd.DataFrame({"kind": pd.Categorical(np.where(FLAGS, "v", "u"))})
    np.testing.assert_array_equal(fixed_model().fit(two, Y)._source.rows.X[:, 0], FLAGS)


def test_categories_of_numbers_are_categories():
    frame = pd.DataFrame({"year": pd.Categorical(2000 + np.arange(40) % 3)})
    np.testing.assert_array_equal(fixed_model().fit(frame, Y)._source.rows.X, np.eye(3)[np.arange(40) % 3])


@pytest.mark.parametrize("model", regressors()[::2], ids=["fixed", "low rank"])
@pytest.mark.parametrize("name", ["pandas", "polars"])
def test_an_unseen_category_is_an_error(name, model):
    frame = FRAMES[name]
    new = type(frame)({"a": [0.1], "kind": ["z"], "flag": [True], "b": [0.2]})
    with pytest.raises(ValueError, match=r"fit did not see, 'z' in row 0, column 'kind'; it saw 'u', 'v', 'w'"):
        clone(model).fit(frame, Y).predict_interval(new)


@pytest.mark.parametrize("name", ["pandas", "polars"])
def test_columns_are_checked(name):
    frame = FRAMES[name]
    model = fixed_model().fit(frame, Y)
    with pytest.raises(ValueError, match=r"(?s)missing.*flag"):
        model.predict(frame[["a", "kind", "b"]])
    with pytest.raises(ValueError, match="same order"):
        model.predict(frame[["kind", "a", "flag", "b"]])
    with pytest.raises(ValueError, match=r"X must be a data frame with the columns of fit.*got ndarray"):
        model.predict(PLAIN)
    lacking = type(frame)({"a": [0.1, 0.2], "kind": ["u", None], "flag": [True, False], "b": [0.2, 0.3]})
    with pytest.raises(ValueError, match="X has no value in row 1, column 'kind'"):
        model.predict(lacking)
    gap = type(frame)({"a": [0.1, None], "kind": ["u", "v"], "flag": [True, False], "b": [0.2, 0.3]})
    with pytest.raises(ValueError, match=r"X has no value \(NaN\) in row 1, column 'a'"):
        model.predict(gap)
    with pytest.raises(ValueError, match="requires y to be passed"):
        fixed_model().fit(frame, None)


def test_a_lazy_frame_is_named():
    lazy, model = FRAMES["polars"].lazy(), fixed_model().fit(FRAMES["polars"], Y)
    for call in (fixed_model().fit, model.predict_p):
        with pytest.raises(ValueError, match=r"X is a lazy frame.*give X\.collect\(\)"):
            call(lazy, Y)


def test_inputs_are_named_by_column_and_category():
    model = fixed_model().fit(FRAMES["pandas"], Y)
    assert list(input_names(model)) == ["a", "kind = u", "kind = v", "kind = w", "flag", "b"]


def test_a_model_fitted_again_forgets_categories():
    for model in (fixed_model(), ConformalGPRegressor(**LOW_RANK)):
        model.fit(FRAMES["pandas"], Y).fit(X, Y)
        assert model.predict(X).shape == (40,)


def test_rows_may_be_divided():
    scores = cross_val_score(fixed_model(), FRAMES["pandas"], Y, cv=4)
    np.testing.assert_allclose(scores, cross_val_score(fixed_model(), PLAIN, Y, cv=4))


def test_inducing_inputs_in_a_frame():
    frame = FRAMES["pandas"]
    model = ConformalGPRegressor(**LOW_RANK | {"low_rank": frame[:8]}).fit(frame, Y)
    plain = ConformalGPRegressor(**LOW_RANK | {"low_rank": PLAIN[:8]}).fit(PLAIN, Y)
    np.testing.assert_array_equal(model.predict_interval(frame, 0.8), plain.predict_interval(PLAIN, 0.8))


# The guarantee: each row of a bag in turn is the test row


def p_values(frame, y, name, first, **options):
    """p-values times the number of rows; infinity where the model refuses the test row, which breaches nothing."""
    options = {**MODELS[name], **options}
    if first:
        options["tuning_rows"] = np.arange(first)
    n = len(y) - first
    found = np.full(n, np.inf)
    for i in range(n):
        rest = np.delete(np.arange(len(y)), first + i)
        train = frame[rest] if isinstance(frame, pl.DataFrame) else frame.iloc[rest]
        try:
            with few_draws():
                model = ConformalGPRegressor(**options).fit(train, y[rest])
            found[i] = model.predict_p(frame[first + i : first + i + 1], y[first + i : first + i + 1])[0] * n
        except ValueError as error:
            if "did not see" not in str(error):
                raise
    return found


def bag(seed, n):
    """Rows with a category that one row alone has, and one that no row has."""
    rng = np.random.default_rng(seed)
    a, kinds = rng.uniform(-2, 2, n), rng.integers(0, 2, n)
    kinds[-1] = 2
    y = np.sin(2 * a) + kinds + 0.2 * rng.standard_normal(n)
    return a, np.array(["u", "v", "w"])[kinds], y


@pytest.mark.parametrize("name", ["default", "linear mean", "holdout", "low rank"])
def test_categories_listed_beforehand_treat_all_rows_alike(name):
    first = n_tuning(MODELS[name])
    a, kinds, y = bag(0, 8 + first)
    frame = pd.DataFrame({"a": a, "kind": pd.Categorical(kinds, ["u", "v", "w", "x"])})
    found = p_values(frame, y, name, first)
    assert is_permutation(found)


@pytest.mark.parametrize("name", ["default", "holdout"])
def test_categories_learnt_from_training_rows_cover_those_that_are_not_refused(name):
    first = n_tuning(MODELS[name])
    a, kinds, y = bag(1, 8 + first)
    found = p_values(pl.DataFrame({"a": a, "kind": pl.Series(kinds, dtype=pl.Categorical)}), y, name, first)
    assert np.isinf(found[-1])
    assert (np.sort(found) >= np.arange(1, found.size + 1) - 1e-9).all()


# What is not a number


@pytest.mark.parametrize("regressor", [fixed_model(), ConformalGPRegressor(**LOW_RANK)])
def test_dates_are_named(regressor):
    days = pd.date_range("2020-01-01", periods=40)
    frames = [
        pd.DataFrame({"a": X[:, 0], "when": days}),
        pd.DataFrame({"when": days}),
        pd.DataFrame({"a": X[:, 0], "when": days.tz_localize("UTC")}),
        pd.DataFrame({"a": X[:, 0], "when": days - days[0]}),
        pd.DataFrame({"a": X[:, 0], "when": days.to_period("D")}),
        pd.DataFrame({"a": X[:, 0], "when": [datetime.date(2020, 1, 1)] * 40}),
        pd.DataFrame({"kind": pd.Categorical(KINDS), "when": days}),
        pl.DataFrame({"a": X[:, 0], "when": days.to_numpy()}),
        pl.DataFrame({"a": X[:, 0], "when": [datetime.date(2020, 1, 1)] * 40}),
    ]
    for frame in frames:
        with pytest.raises(ValueError, match=r"dates or times: 'when'; inputs must be numbers\. Use parts"):
            regressor.fit(frame, Y)
    with pytest.raises(ValueError, match="X holds dates or times"):
        regressor.fit(days.to_numpy()[:, None], Y)


@pytest.mark.parametrize("regressor", [fixed_model(), ConformalGPRegressor(**LOW_RANK)])
def test_labels_that_are_no_numbers_are_named(regressor):
    days = pd.date_range("2020-01-01", periods=40)
    for labels in (days, days.to_numpy(), pd.Series(days), pl.Series(days.to_numpy())):
        with pytest.raises(ValueError, match="y holds dates or times; targets must be numbers"):
            regressor.fit(X, labels)
    for labels in (KINDS, KINDS.tolist(), pd.Series(KINDS), pl.Series(KINDS), pd.Series(pd.Categorical(KINDS))):
        with pytest.raises(ValueError, match="y holds 'u' in row 0; targets must be numbers"):
            regressor.fit(X, labels)


def test_text_is_named():
    with pytest.raises(ValueError, match=r"columns of text: 'kind'.*X\.astype\(\{'kind': 'category'\}\)"):
        fixed_model().fit(pd.DataFrame(columns(KINDS)), Y)


NUMERALS = [["1.5", "2"], ["3", "4"], ["5", "7"]]


@pytest.mark.parametrize(
    "X",
    [NUMERALS, np.array(NUMERALS), np.array(NUMERALS, dtype=object), np.array(NUMERALS, dtype="S"), [[1, "2"]] * 3],
    ids=["list", "text", "object", "bytes", "mixed"],
)
def test_numerals_in_text_are_no_numbers(X):
    model = ConformalGPRegressor("se", tuning="fixed", noise_variance=0.1)
    with pytest.raises(ValueError, match=r"X holds b?'[12].*' in row 0, column [01]; inputs must be numbers, not text"):
        model.fit(X, [1.0, 2.0, 4.0])
    model.fit(np.array(NUMERALS, dtype=float).astype(object), [1.0, 2.0, 4.0])  # objects that are numbers
    with pytest.raises(ValueError, match=r"X holds b?'[12].*' in row 0, column [01]; inputs must be numbers"):
        model.predict(X)


@pytest.mark.parametrize("dtype", [object, "string", None], ids=str)
def test_columns_of_numerals_in_text_are_named(dtype):
    frame = pd.DataFrame({"a": [1.0, 2.0, 3.0], "b": pd.Series(["1", "2", "4"], dtype=dtype)})
    model = ConformalGPRegressor("se", tuning="fixed", noise_variance=0.1)
    with pytest.raises(ValueError, match=r"columns of text: 'b'.*pandas\.to_numeric"):
        model.fit(frame, [1.0, 2.0, 4.0])
    model.fit(frame.assign(b=[1, 2, 4]), [1.0, 2.0, 4.0])
    with pytest.raises(ValueError, match="columns of text: 'b'"):
        model.predict(frame)
    for y in (frame["b"], frame["b"].tolist(), frame["b"].to_numpy()):
        with pytest.raises(ValueError, match="y holds '1' in row 0; targets must be numbers, not text"):
            model.fit(frame[["a"]], y)
