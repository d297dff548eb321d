"""Missing values of inputs: filled so that no row is treated differently."""

import re

import numpy as np
import pandas as pd
import polars as pl
import pytest
import scipy.sparse
from sklearn.base import clone
from sklearn.utils import get_tags
from sklearn.utils.validation import has_fit_parameter

from bags import MODELS, check_misses, in_turn, is_permutation, n_tuning
from cases import fixed_model, make_data
from conformal_gp import ConformalGPRegressor
from conformal_gp.gp.inputs import SymmetricFill, medians
from conformal_gp.testing import check_validity
from conformal_gp.validation import input_names

HOLDOUT = {"tuning": "holdout", "n_restarts": 0, "random_state": 0}
LOW_RANK = {"low_rank": 10, "tuning_rows": 60, "n_restarts": 0, "random_state": 0}
REGRESSORS = {
    "integrated": ConformalGPRegressor(random_state=0),
    "holdout": ConformalGPRegressor(**HOLDOUT),
    "holdout, unscaled": ConformalGPRegressor(scale_inputs=False, **HOLDOUT),
    "low rank": ConformalGPRegressor(**LOW_RANK),
    "train": ConformalGPRegressor(tuning="train", n_restarts=0),
    "fixed": fixed_model(),
}


def gappy(seed, n, first=0):
    """Rows of which several lack a value, far from 0, in two of three columns."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 3)) * [1.0, 10.0, 0.1] + [0.0, 100.0, -3.0]
    y = np.sin(X[:, 0]) + (X[:, 1] - 100.0) / 10.0 + 0.2 * rng.normal(size=n)
    X[first : first + 3, 1] = np.nan
    X[first + 2 : first + 4, 2] = np.nan
    X[rng.uniform(size=n) < 0.2, 1] = np.nan
    return X, y


# The guarantee: each row of a bag in turn is the test row


@pytest.mark.parametrize("seed", range(2))
@pytest.mark.parametrize(
    "name",
    ["default", "linear mean", "nn", "unscaled", "fixed", "holdout", "holdout, difficulty", "low rank", "no noise"],
)
def test_missing_values_treat_all_rows_alike(name, seed):
    first = n_tuning(MODELS[name])
    X, y = gappy(seed, 8 + first, first)
    X[:first:3, 1] = np.nan
    found = in_turn(X, y, MODELS[name], first)
    assert is_permutation(found.ranks)
    check_misses(found)


def test_rows_that_come_later():
    X, y = gappy(3, 8)
    found = in_turn(X, y, {}, later=2)
    assert is_permutation(found.ranks)


@pytest.mark.parametrize("options", [{}, {"noise_variance": 0.1, "tuning": "fixed", "scale_inputs": False}])
def test_validity_of_frames_with_missing_categories(options):
    X, y = gappy(4, 9)
    kinds = np.array(["u", "v", None])[np.arange(9) % 3]
    frame = pd.DataFrame({"a": X[:, 1], "kind": pd.Categorical(kinds, ["u", "v"]), "b": X[:, 0]})
    check_validity(ConformalGPRegressor(**options), frame, y, confidence_levels=[0.5, 0.8])


# Fills


def test_the_symmetric_fill_is_that_of_training_and_test_row_together():
    rng = np.random.default_rng(0)
    for n in (2, 3, 4, 7, 20):
        X = rng.normal(size=(n, 2)) * [1.0, 1e4]
        X[rng.uniform(size=n) < 0.3, 0] = np.nan
        X[0] = np.nan, 3.0
        X[1] = 0.5, np.nan
        whole = SymmetricFill(X).training()
        for row in range(n):
            rest = np.delete(X, row, axis=0)
            if not np.isnan(rest).any(axis=0).all() or np.isnan(rest).all(axis=0).any():
                continue
            np.testing.assert_array_equal(SymmetricFill(rest).rows(X[[row]])[0], whole)


def test_one_fill_serves_nearly_all_test_rows():
    rng = np.random.default_rng(1)
    X = rng.normal(size=(200, 4))
    X[::5] = np.nan
    fills = SymmetricFill(X).rows(rng.normal(size=(1000, 4)))
    assert len(np.unique(fills, axis=0)) <= 4
    assert np.abs(fills).max() < 0.3


def test_medians_of_observed_values():
    np.testing.assert_array_equal(medians(np.array([[1.0, np.nan, 5.0], [2.0, np.nan, np.nan]])), [1.5, 0.0, 5.0])


@pytest.mark.parametrize("name", ["holdout", "low rank"])
def test_tuning_rows_alone_determine_the_fill(name):
    X, y = gappy(5, 120)
    model = clone(REGRESSORS[name]).set_params(tuning_rows=np.arange(60)).fit(X, y)
    other = X.copy()
    other[60:119, 1] += 1000.0
    assert np.isnan(other[0, 1])
    again = clone(model).fit(other, y)
    np.testing.assert_array_equal(model._tuned.scaling.fill, again._tuned.scaling.fill)
    if name == "holdout":  # of a low-rank GP some of the tuning rows are enough
        np.testing.assert_array_equal(model._tuned.scaling.fill[:3], np.nanmedian(X[:60], axis=0))


@pytest.mark.parametrize("name", REGRESSORS)
def test_predictions_are_finite_and_inside_and_indicators_inputs(name):
    X, y = gappy(6, 90)
    model = clone(REGRESSORS[name]).fit(X[:80], y[:80])
    low, high = model.predict_interval(X, 0.8).T
    prediction, std = model.predict(X, return_std=True)
    assert np.isfinite([low, high, std]).all()
    assert ((low <= prediction) & (prediction <= high)).all()
    assert model.n_features_in_ == 3
    assert list(input_names(model)) == ["x0", "x1", "x2", "x1 is missing", "x2 is missing"]
    assert model.sample_y(X[:2], 3, random_state=0).shape == (2, 3)
    assert np.isfinite(model.explain_interval(X[:3], 0.8).distance).all()


def test_a_missing_value_that_means_something_is_learnt():
    rng = np.random.default_rng(7)
    X = rng.uniform(50, 60, (300, 2))
    lacking = rng.uniform(size=300) < 0.3
    y = X[:, 0] + 20.0 * lacking + rng.normal(size=300)
    X[lacking, 1] = np.nan
    model = ConformalGPRegressor(**HOLDOUT).fit(X[:200], y[:200])
    assert model.score(X[200:], y[200:]) > 0.95


def test_the_order_of_rows_does_not_matter():
    X, y = gappy(8, 120)
    order = np.random.default_rng(0).permutation(120)
    for name in ("holdout", "low rank"):
        model, other = clone(REGRESSORS[name]).fit(X, y), clone(REGRESSORS[name]).fit(X[order], y[order])
        np.testing.assert_allclose(model.predict_interval(X, 0.8), other.predict_interval(X, 0.8), rtol=1e-6)


# Kinds of missing values, and errors


def test_frames_say_missing_in_many_ways():
    X, y = gappy(9, 40)
    expected = fixed_model().fit(X, y).predict_interval(X, 0.8)
    pandas = pd.DataFrame(X, columns=["a", "b", "c"])
    for frame in (pandas, pandas.convert_dtypes(), pl.DataFrame(pandas.to_dict("list"), nan_to_null=True)):
        np.testing.assert_array_equal(fixed_model().fit(frame, y).predict_interval(frame, 0.8), expected)


def test_missing_categories_are_a_category():
    X, y = make_data(1, 40)
    kinds = np.array(["u", "v", None])[np.arange(40) % 3]
    expected = (
        fixed_model().fit(np.column_stack([X[:, 0], np.eye(3)[np.arange(40) % 3]]), y).predict([[0.1, 0.0, 0.0, 1.0]])
    )
    frames = [
        pd.DataFrame({"a": X[:, 0], "kind": pd.Categorical(kinds)}),
        pl.DataFrame({"a": X[:, 0], "kind": pl.Series(kinds.tolist(), dtype=pl.Categorical)}),
    ]
    for frame in frames:
        model = fixed_model().fit(frame, y)
        assert list(input_names(model)) == ["a", "kind = u", "kind = v", "kind is missing"]
        new = type(frame)({"a": [0.1], "kind": [None]})
        np.testing.assert_array_equal(model.predict(new), expected)
        with pytest.raises(ValueError, match="X has no value in row 2, column 'kind'; fill it in"):
            fixed_model(missing="error").fit(frame, y)
        complete = fixed_model().fit(frame[:2], y[:2])
        with pytest.raises(ValueError, match="X has no value in row 0, column 'kind', and no training row lacks one"):
            complete.predict(new)


def test_ordered_categories_are_their_places():
    X, y = make_data(2, 40)
    sizes = np.array(["small", "middle", "large"])
    places = np.arange(40) % 3
    size = pd.Categorical(sizes[places], sizes, ordered=True)
    frame = pd.DataFrame({"a": X[:, 0], "size": size})
    model = fixed_model().fit(frame, y)
    plain = fixed_model().fit(np.column_stack([X[:, 0], places]), y)
    assert list(input_names(model)) == ["a", "size"]
    np.testing.assert_array_equal(model.predict(frame[:5]), plain.predict(np.column_stack([X[:5, 0], places[:5]])))
    with pytest.raises(ValueError, match="did not see, 'huge' in row 0, column 'size'"):
        model.predict(pd.DataFrame({"a": [0.1], "size": ["huge"]}))
    frame.loc[3, "size"] = None
    gap = fixed_model().fit(frame, y)
    assert list(input_names(gap)) == ["a", "size", "size is missing"]
    assert np.isfinite(gap.predict(frame)).all()


@pytest.mark.parametrize("name", REGRESSORS)
def test_a_column_that_no_training_row_lacks(name):
    X, y = gappy(10, 60)
    model = clone(REGRESSORS[name]).set_params(**{"tuning_rows": 30} if name == "low rank" else {}).fit(X, y)
    new = np.array([[np.nan, 100.0, -3.0]])
    for answer in (model.predict, model.predict_interval):
        with pytest.raises(ValueError, match=r"no value \(NaN\) in row 0, column 0, and no training row lacks one"):
            answer(new)


def test_a_column_without_values():
    X, y = gappy(11, 20)
    X[:, 1] = np.nan
    with pytest.raises(ValueError, match=r"no value \(NaN\) in any row of column 1; leave the column out"):
        ConformalGPRegressor().fit(X, y)


def test_missing_values_may_be_errors():
    X, y = gappy(12, 20)
    with pytest.raises(ValueError, match="X contains NaN in row 0, column 1"):
        ConformalGPRegressor(missing="error").fit(X, y)
    assert not get_tags(ConformalGPRegressor(missing="error")).input_tags.allow_nan
    assert get_tags(ConformalGPRegressor()).input_tags.allow_nan
    with pytest.raises(ValueError, match="'missing' parameter"):
        ConformalGPRegressor(missing="drop").fit(X, y)
    y[3] = np.nan
    with pytest.raises(ValueError, match="y contains NaN in row 3"):
        ConformalGPRegressor().fit(X, y)
    X[5, 0] = np.inf
    with pytest.raises(ValueError, match=r"X contains infinity \(inf\) in row 5, column 0"):
        ConformalGPRegressor().fit(X, np.zeros(20))


def test_a_model_fitted_again_forgets_missing_values():
    X, y = gappy(13, 30)
    model = fixed_model().fit(X, y)
    model.fit(np.nan_to_num(X), y)
    assert list(input_names(model)) == ["x0", "x1", "x2"]


def test_functions_of_training_rows_are_refused():
    X, y = gappy(14, 30)
    model = fixed_model().fit(X, y)
    with pytest.raises(ValueError, match=r"likelihood_ratio must be a pair of arrays.*given missing values"):
        model.predict_interval(X, 0.8, likelihood_ratio=lambda X: X[:, 0])
    assert np.isfinite(model.predict_interval(X, 0.8, likelihood_ratio=(np.ones(30), np.ones(30)))).all()


def test_weights_of_rows_are_refused_with_a_sentence():
    X, y = make_data(3, 20)
    with pytest.raises(TypeError, match=r"unexpected keyword argument 'sample_weight': .*y_variance.*likelihood_ratio"):
        ConformalGPRegressor().fit(X, y, sample_weight=np.ones(20))
    with pytest.raises(TypeError, match=r"unexpected keyword argument 'weight'\.$"):
        ConformalGPRegressor().fit(X, y, weight=np.ones(20))
    assert not has_fit_parameter(ConformalGPRegressor(), "sample_weight")


@pytest.mark.parametrize("name", REGRESSORS)
def test_stages_of_a_fit_are_named(name, capsys):
    X, y = make_data(4, 80)
    model = clone(REGRESSORS[name]).fit(X, y)
    assert capsys.readouterr().err == ""
    model.set_params(verbose=True).fit(X, y)
    shown = capsys.readouterr().err
    assert shown.startswith(f"tuning 80 rows by '{model.tuning_}' ...\n")
    assert re.search(r"(?m)^tuning 80 rows .*: \d+\.\d s$", shown)
    assert re.search(r"(?m)^calibration \.\.\.$(.|\n)*^calibration: \d+\.\d s$", shown)


def test_sparse_matrices_are_refused_with_the_cure():
    for matrix in (scipy.sparse.csr_matrix(np.eye(20)), scipy.sparse.coo_array(np.eye(20))):
        with pytest.raises(ValueError, match=r"sparse matrix.*X\.toarray\(\).*OneHotEncoder\(sparse_output=False\)"):
            ConformalGPRegressor().fit(matrix, np.arange(20.0))
        with pytest.raises(ValueError, match="X is a sparse matrix"):
            fixed_model().fit(np.eye(20), np.arange(20.0)).predict(matrix)
