"""Bad input meets clear errors or right answers: never a silent wrong interval, never a silent NaN."""

import warnings
from fractions import Fraction

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.exceptions import DataConversionWarning, NotFittedError
from sklearn.gaussian_process.kernels import RBF, ConstantKernel, WhiteKernel

import oracle
from cases import GAMMAS, INF, MEANS, fixed_model, make_data, written_out
from conformal_gp import ConformalGPRegressor, SparseConformalGPRegressor
from conformal_gp.comparators import ConformalRidge

NAN = np.nan
PREDICTIONS = {
    "predict": lambda model, X: model.predict(X),
    "predict with std": lambda model, X: model.predict(X, return_std=True),
    "predict_interval": lambda model, X: model.predict_interval(X, 0.8),
    "predict_set": lambda model, X: model.predict_set(X, 0.8),
    "predict_p": lambda model, X: model.predict_p(X, np.zeros(len(X))),
}
ways = pytest.mark.parametrize("way", PREDICTIONS)


@pytest.fixture(scope="module")
def model():
    return fixed_model(mean="linear").fit(*make_data(1, 20))


# NaN and infinity, anywhere


@pytest.mark.parametrize(("value", "word"), [(NAN, "NaN"), (INF, "infinity"), (-INF, "infinity")])
@pytest.mark.parametrize("tuning", ["fixed", "train"])
def test_training_inputs_that_are_not_finite(tuning, value, word):
    X, y = make_data(1, 20)
    X[13, 1] = value
    with pytest.raises(ValueError, match=rf"X contains {word}.* in row 13, column 1.*must be finite"):
        ConformalGPRegressor(tuning=tuning, noise_variance=0.1).fit(X, y)


@pytest.mark.parametrize(("value", "word"), [(NAN, "NaN"), (INF, "infinity"), (-INF, "infinity")])
@pytest.mark.parametrize("tuning", ["fixed", "train"])
def test_labels_that_are_not_finite(tuning, value, word):
    X, y = make_data(1, 20)
    y[7] = value
    with pytest.raises(ValueError, match=rf"y contains {word}.* in row 7.*must be finite"):
        ConformalGPRegressor(tuning=tuning, noise_variance=0.1).fit(X, y)


@pytest.mark.parametrize(("value", "word"), [(NAN, "NaN"), (INF, "infinity"), (-INF, "infinity")])
@ways
def test_one_test_row_that_is_not_finite_is_named(model, way, value, word):
    X, _ = make_data(2, 300)
    X[271, 0] = value
    with pytest.raises(ValueError, match=rf"X contains {word}.* in row 271, column 0"):
        PREDICTIONS[way](model, X)


def test_candidate_labels_that_are_not_finite(model):
    X, y = make_data(2, 5)
    y[3] = NAN
    with pytest.raises(ValueError, match="y contains NaN in row 3"):
        model.predict_p(X, y)


def test_missing_values_that_are_not_floats():
    with pytest.raises(ValueError, match=r"X contains NaN in row 1, column 0"):
        fixed_model().fit([[0.0], [None], [2.0]], [0.0, 1.0, 2.0])


# Dimensions


@pytest.mark.parametrize("X", [np.zeros(5), 3.0, np.zeros((5, 2, 1))])
def test_inputs_of_wrong_dimension(model, X):
    with pytest.raises(ValueError, match=r"(?i)expected 2D|dim 3|<= 2"):
        fixed_model().fit(X, np.arange(5.0))
    with pytest.raises(ValueError, match=r"(?i)expected 2D|dim 3|<= 2"):
        model.predict_interval(X)


def test_a_column_of_labels_is_taken_with_a_warning():
    X, y = make_data(3, 20)
    with pytest.warns(DataConversionWarning, match="column-vector"):
        column = fixed_model().fit(X, y[:, None])
    np.testing.assert_array_equal(column.predict_interval(X), fixed_model().fit(X, y).predict_interval(X))


def test_two_columns_of_labels_are_refused():
    X, y = make_data(3, 20)
    with pytest.raises(ValueError, match=r"y should be a 1d array.*\(20, 2\)"):
        fixed_model().fit(X, np.column_stack([y, y]))


def test_labels_of_another_length(model):
    X, y = make_data(3, 20)
    with pytest.raises(ValueError, match=r"20.*19"):
        fixed_model().fit(X, y[:-1])
    with pytest.raises(ValueError, match=r"20.*19"):
        model.predict_p(X, y[:-1])
    with pytest.raises(ValueError, match="y"):
        model.predict_p(X, 0.5)


@pytest.mark.parametrize("labels", [["a", "b", "c"], [1j, 2.0, 3.0], [[1.0], [2.0, 3.0], [4.0]]])
def test_labels_that_are_no_numbers(labels):
    with pytest.raises((ValueError, TypeError)):
        fixed_model().fit([[0.0], [1.0], [2.0]], labels)


def test_no_rows(model):
    with pytest.raises(ValueError, match="0 sample"):
        fixed_model().fit(np.empty((0, 2)), np.empty(0))
    with pytest.raises(ValueError, match="0 sample"):
        model.predict_interval(np.empty((0, 2)))


def test_no_inputs():
    with pytest.raises(ValueError, match="0 feature"):
        fixed_model().fit(np.empty((5, 0)), np.arange(5.0))


@ways
def test_another_number_of_features(model, way):
    with pytest.raises(ValueError, match=r"X has 3 features.*expecting 2"):
        PREDICTIONS[way](model, np.zeros((4, 3)))


@ways
def test_predicting_before_fitting(way):
    with pytest.raises(NotFittedError, match="ConformalGPRegressor"):
        PREDICTIONS[way](ConformalGPRegressor(), np.zeros((4, 2)))


def test_no_labels_at_all():
    with pytest.raises(ValueError, match=r"requires y"):
        fixed_model().fit(np.zeros((3, 1)), None)


# Few rows


@pytest.mark.parametrize("gamma", GAMMAS)
def test_one_training_row_with_zero_mean_is_answered(gamma):
    model = fixed_model("se", gamma=gamma).fit([[0.3]], [1.5])
    for x in ([0.3], [0.8], [5.0]):
        expected = oracle.region(written_out("se"), 0.1, [[0.3]], [1.5], x, Fraction(1, 2), gamma)
        np.testing.assert_allclose(model.predict_set([x], 0.5)[0], expected, rtol=1e-8)


@pytest.mark.parametrize("tuning", ["fixed", "train"])
@pytest.mark.parametrize("mean", ["constant", "linear"])
def test_one_training_row_with_a_mean_to_estimate_is_refused(mean, tuning):
    with pytest.raises(ValueError, match=rf"mean='{mean}'.*n_samples=1.*mean='zero'"):
        ConformalGPRegressor(mean=mean, tuning=tuning, noise_variance=0.1).fit([[0.3]], [1.5])


def test_more_coefficients_than_rows_are_refused():
    X, y = make_data(4, 5, n_inputs=4)
    with pytest.raises(ValueError, match=r"mean='linear' has 5 coefficients.*n_samples=5.*mean='constant'"):
        fixed_model(mean="linear").fit(X, y)
    fixed_model(mean="constant").fit(X, y)


def test_one_training_row_can_be_learnt_from():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = ConformalGPRegressor(tuning="train", mean="zero", random_state=0).fit([[0.3]], [1.5])
    assert not np.isnan(model.predict_interval([[0.3], [4.0]], 0.5)).any()


# Labels with nothing in them


@pytest.mark.parametrize("value", [0.0, 5.0, -1e9, 1e-9])
@pytest.mark.parametrize("tuning", ["fixed", "train"])
@pytest.mark.parametrize("mean", ["constant", "linear"])
@pytest.mark.parametrize("gamma", [1.0, 2.0, INF])
def test_constant_labels_give_intervals_without_width_and_a_warning(gamma, mean, tuning, value):
    X, _ = make_data(5, 20)
    model = ConformalGPRegressor(mean=mean, gamma=gamma, tuning=tuning, noise_variance=0.1)
    with pytest.warns(UserWarning, match=rf"y is reproduced exactly by mean='{mean}'.*no width"):
        model.fit(X, np.full(20, value))
    inputs = np.array([[0.1, 0.2], [1.0, -0.5]])
    np.testing.assert_allclose(model.predict_interval(inputs, 0.9), value, rtol=1e-12, atol=1e-20)
    np.testing.assert_array_equal(model.predict_p(inputs, [value, value]), 1.0)
    np.testing.assert_array_equal(model.predict_p(inputs, np.full(2, value + 1e-3 * (1 + abs(value)))), 1 / 21)


def test_constant_labels_with_zero_mean_are_ordinary_labels():
    X, _ = make_data(5, 20)
    y = np.full(20, 5.0)
    model = fixed_model().fit(X, y)
    expected = oracle.region(written_out("se"), 0.1, X, y, [0.1, 0.2], Fraction(1, 10), 2.0)
    np.testing.assert_allclose(model.predict_set([[0.1, 0.2]], 0.9)[0], expected, rtol=1e-8)


def test_labels_on_a_plane_are_explained_by_the_linear_mean():
    X, _ = make_data(6, 20)
    with pytest.warns(UserWarning, match="no width"):
        model = ConformalGPRegressor(mean="linear", tuning="train").fit(X, 3.0 + X @ [2.0, -1.0])
    np.testing.assert_allclose(model.predict_interval([[1.0, 1.0]], 0.9), [[4.0, 4.0]], rtol=1e-9)


def test_constant_inputs_leave_the_labels_to_noise():
    y = np.arange(20.0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = ConformalGPRegressor("se", tuning="train", random_state=0).fit(np.ones((20, 2)), y)
    low, high = model.predict_interval([[1.0, 1.0]], 0.9)[0]
    assert low == pytest.approx(0, abs=1.5)
    assert high == pytest.approx(19, abs=1.5)


# Duplicate rows


@pytest.mark.parametrize("tuning", ["fixed", "train"])
def test_duplicate_rows_with_different_labels_are_noise(tuning):
    X, y = make_data(7, 15)
    X, y = np.vstack([X, X]), np.append(y, y + 0.5)
    model = ConformalGPRegressor("se", tuning=tuning, noise_variance=0.1, n_restarts=0).fit(X, y)
    intervals = model.predict_interval(X[:3], 0.9)
    assert np.isfinite(intervals).all()
    assert (intervals[:, 1] - intervals[:, 0] > 0.3).all()


def test_duplicate_rows_without_noise_are_refused():
    kernel = ConstantKernel(1.0, "fixed") * RBF(1.0, "fixed")
    with pytest.raises(ValueError, match=r"noise_variance"):
        ConformalGPRegressor(kernel, mean="zero", tuning="fixed", noise_variance=0.0).fit(
            [[0.0], [0.0], [1.0]], [0.0, 1.0, 2.0]
        )


@pytest.mark.filterwarnings("ignore:tuning='train'")
def test_duplicate_rows_that_contradict_each_other_make_wide_intervals_in_the_deterministic_mode():
    """Where something is learnt, 0 is the least noise that the arithmetic bears."""
    model = ConformalGPRegressor(tuning="train", noise_variance=0.0).fit([[0.0], [0.0], [1.0]], [0.0, 1.0, 2.0])
    low, high = model.predict_interval([[0.5]], 0.5)[0]
    assert np.isfinite(high - low)
    assert high - low > 2.0


def test_a_test_row_on_top_of_a_training_row_without_noise_is_refused():
    X = np.arange(5.0)[:, None]
    model = fixed_model("se", 0.0).fit(X, np.sin(X[:, 0]))
    assert np.isfinite(model.predict_interval([[0.5]], 0.8)).all()
    with pytest.raises(ValueError, match=r"test row.*noise_variance"):
        model.predict_interval([[0.5], [3.0]], 0.8)


# Numbers at the edge of floats


def test_labels_whose_squares_overflow():
    X, y = make_data(9, 12)
    with pytest.raises(ValueError, match=r"y reaches 1\.0e\+200"):
        fixed_model().fit(X, np.sign(y) * 1e200)


@pytest.mark.parametrize("mean", MEANS)
@pytest.mark.parametrize("factor", [1e-100, 1e-12, 1e12, 1e100])
def test_labels_in_any_unit(factor, mean):
    X, y = make_data(9, 30)
    inputs = np.array([[0.1, 0.2], [1.0, 1.0]])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found, expected = (
            ConformalGPRegressor("se", tuning="train", mean=mean, n_restarts=0)
            .fit(X, c * y)
            .predict_interval(inputs, 0.8)
            / c
            for c in (factor, 1.0)
        )
    np.testing.assert_allclose(found, expected, atol=5e-3)


@pytest.mark.parametrize("factor", [1e-150, 1e150])
def test_inputs_at_the_edge_of_floats_give_no_nan(factor):
    X, y = make_data(10, 30)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        model = ConformalGPRegressor("se", tuning="train", n_restarts=0).fit(factor * X, y)
    assert np.isfinite(model.predict_interval(factor * X[:4], 0.8)).all()


def test_a_test_row_very_far_away():
    X, y = make_data(11, 20)
    for name in ("se", "rq", "nn", "matern32", "matern52"):
        model = fixed_model(name).fit(X, y)
        intervals = model.predict_interval([[1e8, -1e8], [1e150, 0.0]], 0.8)
        assert not np.isnan(intervals).any()


@pytest.mark.parametrize("kernel", [RBF(1e6), ConstantKernel(1.0) * RBF(1e6) + WhiteKernel(1e-14)])
def test_a_nearly_singular_kernel_is_refused(kernel):
    X, y = make_data(12, 12, n_inputs=1)
    with pytest.raises(ValueError, match=r"singular.*noise_variance of at least"):
        fixed_model(kernel, 1e-14).fit(X, y)


def test_a_poorly_conditioned_kernel_that_is_not_refused_is_right():
    X, y = make_data(12, 12, n_inputs=1)
    found = fixed_model(RBF(1e3), 1e-8).fit(X, y).predict_interval([[0.1]], 0.8)[0]
    exact = oracle.region_mpmath(X, y, [0.1], "1", "1e3", 1e-8, Fraction(1, 5), 2.0)
    assert tuple(found) == pytest.approx(oracle.hull(exact), rel=1e-6)


@pytest.mark.parametrize("library", ["pandas", "polars"])
def test_columns_of_text_are_named(library):
    frame = pytest.importorskip(library).DataFrame({"size": [1.0, 2.0, 3.0], "colour": ["red", "blue", "red"]})
    with pytest.raises(ValueError, match=r"columns of text: 'colour'.*OneHotEncoder"):
        ConformalGPRegressor().fit(frame, [1.0, 2.0, 3.0])


@pytest.mark.parametrize("model", [ConformalGPRegressor("se"), SparseConformalGPRegressor("se"), ConformalRidge()])
def test_inputs_whose_squares_overflow_are_refused_with_advice(model):
    X, y = make_data(13, 12)
    X[3, 1] = -1e160
    with pytest.raises(ValueError, match=r"X reaches 1\.0e\+160, whose square overflows; divide column 1 by"):
        clone(model).fit(X, y)


def test_test_inputs_whose_squares_overflow_are_refused_by_name():
    frame = pytest.importorskip("pandas").DataFrame({"size": [1.0, 2.0, 3.0], "age": [5.0, 3.0, 1.0]})
    model = fixed_model().fit(frame, [1.0, 2.0, 3.0])
    frame.loc[1, "age"] = 1e200
    with pytest.raises(ValueError, match=r"divide column 'age' by a constant"):
        model.predict(frame)


@pytest.mark.parametrize("model", [fixed_model(), SparseConformalGPRegressor("se"), ConformalRidge()])
def test_masked_entries_are_refused(model):
    X, y = make_data(13, 12)
    masked_X, masked_y = np.ma.masked_greater(X, 1.0), np.ma.masked_less(y, 0.0)
    assert masked_X.mask.any()
    assert masked_y.mask.any()
    with pytest.raises(ValueError, match=rf"X has masked entries \({masked_X.mask.sum()}\)"):
        clone(model).fit(masked_X, y)
    with pytest.raises(ValueError, match=rf"y has masked entries \({masked_y.mask.sum()}\)"):
        clone(model).fit(X, masked_y)


def test_masked_arrays_without_masked_entries_are_arrays():
    X, y = make_data(13, 12)
    found = fixed_model().fit(np.ma.array(X), np.ma.array(y)).predict_interval(np.ma.array(X[:2]), 0.8)
    np.testing.assert_array_equal(found, fixed_model().fit(X, y).predict_interval(X[:2], 0.8))
    with pytest.raises(ValueError, match=r"X has masked entries \(1\)"):
        fixed_model().fit(X, y).predict(np.ma.masked_equal(X[:2], X[1, 1]))
