"""The default with few rows: hyperparameters averaged over the augmented set."""

import warnings

import numpy as np
import pytest
from sklearn.gaussian_process.kernels import RBF, ConstantKernel, WhiteKernel
from sklearn.linear_model import LinearRegression

import bags
from conformal_gp import ConformalGPRegressor
from conformal_gp.models.draws import ROWS_FOR_PRIOR
from conformal_gp.models.settings import ROWS_FOR_INTEGRATED


def rows(n, d=2, seed=0, noise=0.1, shift=0.0):
    rng = np.random.default_rng(seed)
    X = rng.uniform(-2, 2, size=(n, d))
    return X, shift + np.sin(2.0 * X[:, 0]) + 0.5 * X[:, -1] + noise * rng.normal(size=n)


def relative(a, b):
    """Median ratio of the widths of intervals, whichever are wider."""
    ratio = (a[:, 1] - a[:, 0]) / (b[:, 1] - b[:, 0])
    return float(np.median(np.maximum(ratio, 1.0 / ratio)))


@pytest.mark.parametrize("known", ["all", "one"])
def test_each_row_in_turn_with_known_noise(known):
    """Draws of a chain: one row more may be missed."""
    rng = np.random.default_rng(8)
    X = rng.normal(size=(8, 1))
    variances = {"all": rng.uniform(0.01, 1.0, 8), "one": np.eye(8)[3]}[known]
    y = np.sin(X[:, 0]) + np.sqrt(variances + 0.01) * rng.normal(size=8)
    found = bags.in_turn(X, y, {"tuning": "integrated"}, variances=variances, valid="Valid up to Monte Carlo error:")
    bags.check_misses(found, more=1)


# ---------------------------------------------------------------------------------------------------- the default
def test_which_way_the_default_takes():
    X, y = rows(40)
    assert ConformalGPRegressor().fit(X, y).tuning_ == "integrated"
    for other in (
        {"gamma": np.inf},
        {"tuning_rows": 20},
        {"kernel": ["se", "matern52"]},
        {"target_transform": "yeo-johnson"},
    ):
        assert ConformalGPRegressor(random_state=0, **other).fit(X, y).tuning_ == "holdout"
    assert ROWS_FOR_PRIOR < 40 < ROWS_FOR_INTEGRATED


@pytest.mark.parametrize(
    ("parameters", "words"),
    [
        ({"gamma": 1.0}, "gamma must be 2"),
        ({"kernel": ["se", "matern52"]}, "kernel must be one"),
        ({"tuning_rows": 5}, "tuning_rows is used with"),
        ({"difficulty": LinearRegression()}, "difficulty"),
        ({"target_transform": "yeo-johnson"}, "yeo-johnson"),
        ({"target_transform": "log"}, "row"),
    ],
)
def test_errors_name_the_argument(parameters, words):
    X, y = rows(20)
    model = ConformalGPRegressor(tuning="integrated", **parameters)
    with pytest.raises(ValueError, match=words):
        model.fit(X, y)
    assert not hasattr(model, "kernel_")


def test_guarantee():
    X, y = rows(14)
    assert ConformalGPRegressor().fit(X[:12], y[:12]).guarantee_.startswith("Valid: ")
    assert ConformalGPRegressor().fit(X, y).guarantee_.startswith("Valid up to Monte Carlo error: ")


def test_seeds():
    X, y = rows(60)
    new = rows(20, seed=1)[0]
    first = ConformalGPRegressor().fit(X, y).predict_interval(new)
    assert (first == ConformalGPRegressor().fit(X, y).predict_interval(new)).all()
    for seed in (1, 2):
        assert relative(first, ConformalGPRegressor(random_state=seed).fit(X, y).predict_interval(new)) < 1.15


def test_order_and_units_change_little():
    X, y = rows(50)
    new = rows(20, seed=1)[0]
    first = ConformalGPRegressor().fit(X, y).predict_interval(new)
    order = np.random.default_rng(0).permutation(50)
    assert relative(first, ConformalGPRegressor().fit(X[order], y[order]).predict_interval(new)) < 1.15
    units = np.array([1e3, 1e-3])
    assert relative(first, ConformalGPRegressor().fit(X * units, y).predict_interval(new * units)) < 1.15
    for size in (1e-150, 1e150):
        assert relative(first, ConformalGPRegressor().fit(X, size * y).predict_interval(new) / size) < 1.15


def test_few_rows_do_not_depend_on_order_or_powers_of_two():
    X, y = rows(11)
    new = rows(5, seed=1)[0]
    first = ConformalGPRegressor().fit(X, y).predict_interval(new, 0.8)
    order = np.random.default_rng(0).permutation(11)
    assert np.allclose(first, ConformalGPRegressor().fit(X[order], y[order]).predict_interval(new, 0.8), rtol=1e-6)
    assert np.allclose(first, ConformalGPRegressor().fit(4.0 * X, y).predict_interval(4.0 * new, 0.8), rtol=1e-6)


# ---------------------------------------------------------------------------------------------------- kinds of rows
@pytest.mark.parametrize("distinct", [8, 12])
def test_replicates(distinct):
    """Width at new inputs is like that of as many distinct rows."""
    X, _ = rows(distinct)
    twice = np.vstack([X, X])
    rng = np.random.default_rng(5)
    y = np.sin(twice[:, 0]) + 0.1 * rng.normal(size=2 * distinct)
    other, _ = rows(2 * distinct, seed=9)
    y_other = np.sin(other[:, 0]) + 0.1 * rng.normal(size=2 * distinct)
    new = rows(30, seed=1)[0]
    found = ConformalGPRegressor().fit(twice, y).predict_interval(new, 0.9)
    distinct_rows = ConformalGPRegressor().fit(other, y_other).predict_interval(new, 0.9)
    assert np.median(found[:, 1] - found[:, 0]) < 3.0 * np.median(distinct_rows[:, 1] - distinct_rows[:, 0])


def test_constant_targets_and_columns():
    X, y = rows(20)
    with pytest.warns(UserWarning, match="no width"):
        model = ConformalGPRegressor().fit(X, np.full(20, 3.0))
    assert np.allclose(model.predict_interval(X[:3], 0.9), 3.0)
    X[:, 1] = 5.0
    both = np.column_stack([X, X[:, 0]])
    assert np.isfinite(ConformalGPRegressor().fit(both, y).predict_interval(both, 0.9)).all()


def test_two_rows():
    model = ConformalGPRegressor().fit([[0.0], [1.0]], [0.0, 1.0])
    assert model.predict_p([[0.5]], [0.5])[0] > 0.0
    with pytest.raises(ValueError, match="n_samples=1"):
        ConformalGPRegressor().fit([[0.0]], [0.0])


def test_many_inputs_share_a_length_scale():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(30, 60))
    model = ConformalGPRegressor().fit(X, X[:, 0])
    assert (
        model._tuned.averaging.theta.shape[1] == 5
    )  # a length scale, smoothness, power and variance of the linear term, noise
    lengths = [value for name, value in model.kernel_.get_params().items() if name.endswith("length_scale")]
    assert [np.size(each) for each in lengths] == [60, 60]


@pytest.mark.parametrize("kernel", ["rq", RBF([1.0, 1.0]) + WhiteKernel(0.1), RBF(1.0) + ConstantKernel() * RBF(3.0)])
def test_kernels(kernel):
    X, y = rows(25)
    model = ConformalGPRegressor(kernel).fit(X, y)
    assert model.tuning_ == "integrated"
    new, y_new = rows(60, seed=2)
    intervals = model.predict_interval(new, 0.9)
    assert np.mean((intervals[:, 0] <= y_new) & (y_new <= intervals[:, 1])) > 0.7


def test_fixed_hyperparameters_stay():
    X, y = rows(15)
    model = ConformalGPRegressor(RBF(0.7, "fixed")).fit(X, y)
    assert model.kernel_.get_params()["k2__k1__length_scale"] == 0.7


def test_no_noise():
    X, y = rows(30, noise=0.0)
    model = ConformalGPRegressor(noise_variance=0.0).fit(X, y)
    assert model.noise_variance_ < 1e-6
    new, y_new = rows(30, seed=2, noise=0.0)
    assert np.mean((model.predict(new) - y_new) ** 2) < 0.05


def test_given_transformation():
    X, y = rows(25, shift=5.0)
    model = ConformalGPRegressor(target_transform="log").fit(X, y)
    assert model.tuning_ == "integrated"
    assert (model.predict_interval(X, 0.9) > 0.0).all()


# ---------------------------------------------------------------------------------------------------- other answers
def test_partial_fit():
    X, y = rows(60, shift=5.0)
    new = rows(15, seed=1)[0]
    model = ConformalGPRegressor().fit(X[:50], y[:50])
    draws = model._tuned.averaging.theta
    model.partial_fit(X[50:52], y[50:52])
    assert model._tuned.averaging.theta is draws
    model.partial_fit(X[52:], y[52:])
    assert relative(model.predict_interval(new), ConformalGPRegressor().fit(X, y).predict_interval(new)) < 1.25
    model.partial_fit([[0.0, 0.0]], [-1.0])  # targets are no longer positive: no exponent, other draws
    assert not model._tuned.averaging.positive
    assert np.isfinite(model.predict_interval(new)).all()


def test_covariances_and_samples():
    X, y = rows(30)
    new = rows(4, seed=1)[0]
    model = ConformalGPRegressor(target_transform=None).fit(X, y)
    mean, covariance = model.predict(new, return_cov=True)
    _, deviation = model.predict(new, return_std=True)
    assert np.allclose(np.sqrt(np.diagonal(covariance)), deviation, rtol=0.1)
    samples = model.sample_y(new, 4000)
    assert np.allclose(samples.mean(axis=1), mean, atol=0.1 * deviation.max())
    assert np.allclose(samples.std(axis=1), deviation, rtol=0.15)
    positive = ConformalGPRegressor().fit(X, np.exp(y))
    assert (positive.sample_y(new, 10) > 0.0).all()
    with pytest.raises(ValueError, match="return_cov"):
        positive.predict(new, return_cov=True)


def test_groups_and_explanations():
    X, y = rows(40)
    group = np.arange(40) % 2
    model = ConformalGPRegressor().fit(X, y, groups=group)
    new = rows(6, seed=1)[0]
    intervals = model.predict_interval(new, 0.9, groups=np.arange(6) % 2)
    found = model.explain_interval(new, 0.9, groups=np.arange(6) % 2)
    assert np.allclose(found.interval, intervals)
    assert (group[found.row[found.row >= 0]] == (np.arange(6) % 2).repeat(2)[found.row.ravel() >= 0]).all()
    assert (found.decided_by == "row").any()


def test_intervals_of_empty_sets_are_the_prediction():
    """Of many zeros the centre may be below 0: no value conforms at a low level, and intervals have no width."""
    rng = np.random.default_rng(3)
    X = rng.uniform(-2.0, 2.0, size=(100, 2))
    y = np.maximum(np.sin(2.0 * X[:, 0]) + 0.5 * X[:, 1] + 0.3 * rng.standard_normal(100), 0.0)
    with warnings.catch_warnings(action="ignore", category=UserWarning):
        model = ConformalGPRegressor(random_state=0).fit(X[:40], y[:40])
    levels = [0.3, 0.4, 0.5, 0.8]
    low, high = np.moveaxis(model.predict_interval(X[40:], levels), 1, 0)
    sets = model.predict_set(X[40:], 0.3)
    empty = np.array([len(pieces) == 0 for pieces in sets])
    assert empty.any()
    prediction = model.predict(X[40:])
    np.testing.assert_array_equal(low[empty, 0], prediction[empty])
    np.testing.assert_array_equal(high[empty, 0], prediction[empty])
    assert (np.diff(high, axis=1) >= 0.0).all()
    assert (np.diff(low, axis=1) <= 0.0).all()


def test_intervals_of_several_levels_nest():
    """Also where the search misses a piece of one level's set that it finds for another."""
    X = [[0.386997, 0.010148], [1.0, 0.103101], [0.314861, 0.592186], [0.437509, 0.438766]]
    model = ConformalGPRegressor().fit(X, [6.21684, 0.707742, 0.607439, 1.028067])
    new = [[0.096338, 0.361082], [0.64252, -0.036722]]
    ascending = model.predict_interval(new, [0.7, 0.1, 0.5, 0.3])[:, :, [1, 3, 2, 0]]
    assert (np.diff(ascending[:, 0], axis=1) <= 0.0).all()
    assert (np.diff(ascending[:, 1], axis=1) >= 0.0).all()


def test_the_target_0_is_in_intervals_that_begin_there():
    name = "nn"
    rng = np.random.default_rng([1, sum(map(ord, name + "two_zeros"))])
    X, y = bags.two_zeros(rng, 13)
    model = ConformalGPRegressor(name).fit(X[:12], y[:12])
    levels = [0.5, 0.8, 0.9]
    intervals = model.predict_interval(X[12:], levels)[0]
    assert model.predict_p(X[12:], [0.0])[0] > 0.5
    np.testing.assert_array_equal(intervals[0], 0.0)
    assert all(model.predict_set(X[12:], level)[0][0, 0] == 0.0 for level in levels)
