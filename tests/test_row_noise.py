"""Noise that rows have of their own, known beforehand."""

import warnings

import numpy as np
import pytest
from numpy.linalg import LinAlgError
from sklearn import config_context
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import oracle
from conformal_gp import ConformalGPRegressor, pipeline
from noisy_rows import FIXED, HOLDOUT, KERNEL, WithNoise, rows


@pytest.mark.parametrize("gamma", [1.5, 2.0, np.inf])
@pytest.mark.parametrize("mean", ["zero", "constant"])
def test_known_noise_by_brute_force(gamma, mean):
    X, y, v = rows(7, 14)
    X_new, y_new, v_new = rows(8, 5)
    model = ConformalGPRegressor(KERNEL, mean=mean, gamma=gamma, **FIXED).fit(X, y, y_variance=v)
    ours = model.predict_p(X_new, y_new, y_variance=v_new)
    ones = None if mean == "zero" else np.ones((14, 1))
    for i in range(5):
        bag = (np.column_stack([X, v]), y, [*X_new[i], v_new[i]], y_new[i])
        bases = (ones, None if mean == "zero" else [1.0])
        brute = oracle.p_value(WithNoise(KERNEL), FIXED["noise_variance"], *bag, gamma, *bases)
        assert ours[i] == pytest.approx(float(brute))


def test_low_rank_with_all_inputs_as_inducing_inputs_is_the_exact_process():
    X, y, v = rows(5, 30)
    X_new, _, v_new = rows(6, 6)
    exact = ConformalGPRegressor(KERNEL, mean="zero", **FIXED).fit(X, y, y_variance=v)
    low_rank = ConformalGPRegressor(KERNEL, mean="zero", low_rank=X, tuning_rows=[0, 1, 2], **FIXED)
    low_rank.fit(X, y, y_variance=v)
    ours, theirs = (each.predict(X_new, return_std=True, y_variance=v_new) for each in (low_rank, exact))
    np.testing.assert_allclose(ours, theirs, rtol=1e-6)


@pytest.mark.parametrize("options", [{}, {"low_rank": 40}])
def test_units_of_the_labels_do_not_matter(options):
    X, y, v = rows(9, 80)
    X_new, _, v_new = rows(10, 10)
    small = ConformalGPRegressor(n_restarts=0, random_state=0, **options).fit(X, y, y_variance=v)
    large = ConformalGPRegressor(n_restarts=0, random_state=0, **options).fit(X, 1e3 * y, y_variance=1e6 * v)
    ends = small.predict_interval(X_new, 0.8, y_variance=v_new)
    np.testing.assert_allclose(large.predict_interval(X_new, 0.8, y_variance=1e6 * v_new), 1e3 * ends, rtol=1e-5)


def test_learnt_noise_is_on_top_of_what_is_known():
    X, y, v = rows(12, 150)
    rng = np.random.default_rng(0)
    precise = ConformalGPRegressor(**HOLDOUT).fit(X, y, y_variance=v)
    vague = ConformalGPRegressor(**HOLDOUT).fit(X, y + rng.standard_normal(150), y_variance=v)
    assert precise.noise_variance_ < 0.05
    assert 0.2 < vague.noise_variance_ < 1.6
    ends = precise.predict_interval(X[[0, 0]], 0.9, y_variance=[0.01, 1.0])
    assert 2 * np.diff(ends[0]) < np.diff(ends[1])


def test_every_method_takes_known_noise_and_asks_for_it():
    X, y, v = rows(13, 40)
    X_new, y_new, v_new = rows(14, 6)
    model = ConformalGPRegressor(KERNEL, **FIXED).fit(X, y, y_variance=v)
    calls = {
        "predict_interval": (),
        "predict_set": (),
        "predict_p": (y_new,),
        "predict_quantiles": ([0.2, 0.9],),
        "predict_bound": (0.8,),
        "predict_cdf": (y_new,),
        "predict_distribution": (),
    }
    for name, given in calls.items():
        method = getattr(model, name)
        with pytest.raises(ValueError, match="y_variance is needed, one for each row"):
            method(X_new, *given)
        method(X_new, *given, y_variance=v_new)
    expected = model.predict_interval(X_new, y_variance=v_new)
    np.testing.assert_array_equal(pipeline.predict_interval(model, X_new, y_variance=v_new), expected)
    with pytest.raises(ValueError, match="y_variance is needed"):
        model.predict(X_new, return_std=True)
    mean, std = model.predict(X_new, return_std=True, y_variance=v_new)
    np.testing.assert_array_equal(model.predict(X_new), mean)  # means do not need it
    more = model.predict(X_new, return_std=True, y_variance=v_new + 1.0)[1]
    np.testing.assert_allclose(more**2, std**2 + 1.0)
    assert model.score(X, y) > 0.0
    with pytest.raises(ValueError, match="y_variance was given, but fit was called without it"):
        ConformalGPRegressor(KERNEL, **FIXED).fit(X, y).predict_interval(X_new, y_variance=v_new)


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        (0.1, r"one number for each of the 40 rows, got an array of shape \(\)"),
        (np.ones(39), r"one number for each of the 40 rows, got an array of shape \(39,\)"),
        (np.ones((40, 1)), r"shape \(40, 1\)"),
        (np.r_[np.nan, np.ones(39)], "y_variance contains NaN in row 0"),
        (np.r_[np.ones(39), -1.0], "y_variance is -1.0 in row 39"),
        (np.ma.masked_less(np.arange(40.0), 3), "y_variance has masked entries"),
    ],
)
def test_wrong_noise_variances(wrong, message):
    X, y, _ = rows(15, 40)
    with pytest.raises(ValueError, match=message):
        ConformalGPRegressor(random_state=0).fit(X, y, y_variance=wrong)


def test_known_noise_does_not_go_with_a_map_of_labels():
    X, y, v = rows(16, 40)
    with pytest.raises(ValueError, match="got target_transform='sqrt', use target_transform=None"):
        ConformalGPRegressor(target_transform="sqrt").fit(X, y, y_variance=v)


@pytest.mark.parametrize(
    "options", [{"tuning": "integrated"}, {"tuning": "holdout", "n_restarts": 0, "tuning_rows": 12}]
)
def test_rows_that_only_their_variances_tell_apart(options):
    """The order of replicates of one observed value does not matter either."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(20, 1)).repeat(2, axis=0)
    y = np.sin(2.0 * X[:, 0])
    variance = rng.uniform(0.0, 0.5, size=40)
    order = rng.permutation(40)
    found, again = (
        ConformalGPRegressor(**options, random_state=0)
        .fit(X[rows], y[rows], variance[rows])
        .predict_interval(X[::8] + 0.1, 0.8, y_variance=np.full(5, 0.1))
        for rows in (np.arange(40), order)
    )
    np.testing.assert_allclose(found, again, atol=1e-9)


def test_metadata_routing_through_a_pipeline():
    X, y, v = rows(20, 60)
    X_new, _, v_new = rows(21, 5)
    with config_context(enable_metadata_routing=True):
        regressor = ConformalGPRegressor(KERNEL, **FIXED)
        regressor = regressor.set_fit_request(y_variance=True).set_predict_request(y_variance=True)
        piped = make_pipeline(StandardScaler(), regressor).fit(X, y, y_variance=v)
        scaler = StandardScaler().fit(X)
        direct = ConformalGPRegressor(KERNEL, **FIXED).fit(scaler.transform(X), y, y_variance=v)
        np.testing.assert_array_equal(
            pipeline.predict_interval(piped, X_new, y_variance=v_new),
            direct.predict_interval(scaler.transform(X_new), y_variance=v_new),
        )
        np.testing.assert_array_equal(piped.predict(X_new, y_variance=v_new), direct.predict(scaler.transform(X_new)))


WAYS = [{"tuning": "holdout", "n_restarts": 0}, {"tuning": "fixed", "scale_inputs": False}]


@pytest.mark.parametrize("kernel", ["nn", "se"])
@pytest.mark.parametrize("options", WAYS)
@pytest.mark.parametrize("size", [1.0, 1e8])
def test_noise_that_is_partly_none_far_out(kernel, options, size):
    """It is predicted, or refused in our words."""
    rng = np.random.default_rng(0)
    X = size * rng.uniform(size=(50, 2))
    y = rng.normal(size=50)
    variance = np.where(np.arange(50) % 2, 0.01, 0.0)
    model = ConformalGPRegressor(kernel, noise_variance=0, random_state=0, **options)
    said = "noise_variance"
    with warnings.catch_warnings(action="ignore", category=UserWarning):
        try:
            found = model.fit(X, y, variance).predict_interval(100.0 * X[:3], 0.5, y_variance=variance[:3])
        except LinAlgError as error:
            found = np.zeros(1)
            said = str(error)
    assert "noise_variance" in said
    assert not np.isnan(found).any()
