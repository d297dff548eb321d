"""What the front door says and gives, apart from the regions themselves."""

import pickle
import warnings

import numpy as np
import pytest
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF, ConstantKernel, WhiteKernel

from cases import GAMMAS, INF, fixed_model, make_data
from conformal_gp import ConformalGPRegressor

INPUTS = np.array([[0.1, 0.2], [1.0, -1.0], [9.0, 9.0]])


def test_predict_is_plain_gaussian_process_regression():
    X, y = make_data(2, 20)
    gp = GaussianProcessRegressor(RBF(0.8), alpha=0.2, optimizer=None).fit(X, y)
    model = fixed_model(RBF(0.8), 0.2).fit(X, y)
    mean, std = model.predict(INPUTS, return_std=True)
    expected, expected_std = gp.predict(INPUTS, return_std=True)
    np.testing.assert_allclose(mean, expected, rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(std, np.sqrt(expected_std**2 + 0.2), rtol=1e-9)  # of a label
    np.testing.assert_allclose(model.predict(INPUTS), mean, rtol=1e-12, atol=1e-15)
    assert model.log_marginal_likelihood_ == pytest.approx(gp.log_marginal_likelihood_value_)


@pytest.mark.parametrize("gamma", GAMMAS)
def test_too_few_rows_for_a_level_give_the_whole_line_and_a_warning(gamma):
    X, y = make_data(8, 18)
    model = fixed_model(gamma=gamma).fit(X, y)
    with pytest.warns(UserWarning, match=r"confidence_level=0\.95 needs at least 19 calibration rows.*18"):
        intervals = model.predict_interval(INPUTS, [0.95, 0.9])
    assert (intervals[:, 0, 0] == -INF).all()
    assert (intervals[:, 1, 0] == INF).all()
    for region in model.predict_set(INPUTS, 0.95):
        np.testing.assert_array_equal(region, [[-INF, INF]])
    with warnings.catch_warnings(action="error"):  # one row more is enough
        assert np.isfinite(fixed_model().fit(*make_data(8, 19)).predict_interval(X, 0.95)).all()


def test_warnings_point_at_the_line_of_the_user():
    X, y = make_data(9, 12)
    tight = ConstantKernel(1.0) * RBF(1.0, (0.99, 1.01))
    calls = [
        lambda: ConformalGPRegressor(tight, tuning="train", scale_inputs=False, n_restarts=0).fit(X, y),
        lambda: ConformalGPRegressor(tight, tuning="train", scale_inputs=False, n_restarts=2).fit(X, y),
        lambda: ConformalGPRegressor().fit(X, np.ones(12)),
        lambda: fixed_model().fit(X, y).predict_interval(X, 0.99),
    ]
    for call in calls:
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            call()
        assert caught
        assert {warning.filename for warning in caught} == {__file__}


@pytest.mark.filterwarnings("ignore:.*learns 4 numbers:UserWarning", "ignore:noise_variance ended:UserWarning")
def test_warnings_of_learning_name_the_hyperparameter():
    X, _ = make_data(9, 30)
    tight = ConstantKernel(1.0) * RBF(1.2, (1.0, 1.5))
    with pytest.warns(UserWarning, match="k2__length_scale ended on its lower bound"):
        ConformalGPRegressor(tight, tuning="train", random_state=0).fit(X, np.sin(5 * X[:, 0]))


def test_the_mean_function_is_linear_if_there_are_rows_enough_for_it():
    X, y = make_data(10, 60)  # 20 for each of 3 coefficients
    model = ConformalGPRegressor("se", tuning="fixed", noise_variance=0.1)
    assert model.fit(X, y).mean_ == "linear"
    assert model.mean_coef_.shape == (3,)
    assert model.fit(X[:59], y[:59]).mean_ == "constant"
    assert model.mean_coef_.shape == (1,)
    assert model.set_params(mean="linear").fit(X[:9], y[:9]).mean_ == "linear"


@pytest.mark.parametrize("tuning", ["train", "holdout"])
def test_each_input_has_a_length_scale_of_its_own_unless_one_is_asked_for(tuning):
    rng = np.random.default_rng(1)
    X = rng.uniform(-1, 1, (60, 2))
    y = np.sin(6 * X[:, 0])
    model = ConformalGPRegressor("se", tuning=tuning, mean="constant", n_restarts=0, random_state=0).fit(X, y)
    relevant, idle = model.kernel_.k2.length_scale
    assert idle > 3 * relevant
    one = ConformalGPRegressor("se", tuning=tuning, mean="constant", ard=False, n_restarts=0, random_state=0)
    assert np.ndim(one.fit(X, y).kernel_.k2.length_scale) == 0


def test_the_guarantee_is_stated():
    X, y = make_data(10, 30)
    exact = fixed_model().fit(X, y).guarantee_
    assert exact.startswith("Valid:")
    assert "nothing else was fitted to the calibration rows" in exact  # nor a scaler of a pipeline, to their inputs
    scaled = fixed_model(scale_inputs=True).fit(X, y).guarantee_
    assert scaled.startswith("Not valid in general:")
    assert "scale" in scaled
    for low_rank in (False, 5):
        given = fixed_model(tuning_rows=20, low_rank=low_rank).fit(X, y).guarantee_
        assert given.startswith("Valid: kernel and noise were fixed beforehand or on 20 tuning rows, and the other 10")
    learnt = ConformalGPRegressor("se", tuning="train", n_restarts=0).fit(X, y).guarantee_
    assert learnt.startswith("Not valid in general:")
    assert "calibration rows" in learnt


@pytest.mark.parametrize(
    ("settings", "l", "way"),
    [
        ({}, 10, "integrated"),
        ({"kernel": RBF(1.0)}, 10, "integrated"),
        ({"kernel": RBF(1.0) + WhiteKernel(0.1), "noise_variance": 0.0}, 10, "integrated"),
        ({"kernel": ["se", "nn"]}, 30, "holdout"),
        ({"kernel": "se", "n_restarts": 0, "ard": False}, 1001, "holdout"),
    ],
)
def test_the_default_is_exact_and_its_rule_looks_at_rows_and_kernel_alone(settings, l, way):
    X, y = make_data(11, l)
    model = ConformalGPRegressor(random_state=0, **settings).fit(X, y)
    assert model.tuning_ == way
    assert model.guarantee_.startswith("Valid:")


def test_training_row_tuning_says_what_coverage_to_expect_from_few_rows():
    X, y = make_data(18, 20)
    with pytest.warns(UserWarning, match=r"learns 6 numbers from 20 rows.*about 76%.*tuning='auto'"):
        ConformalGPRegressor("se", mean="linear", ard=False, tuning="train", n_restarts=0).fit(X, y)
    with warnings.catch_warnings(action="error"):
        ConformalGPRegressor("se", tuning="train", n_restarts=0).fit(*make_data(18, 120))


def test_many_rows_are_given_to_a_low_rank_process(monkeypatch):
    monkeypatch.setattr("conformal_gp.models.settings.ROWS_FOR_EXACT", 50)
    X, y = make_data(19, 120)
    monkeypatch.setattr("conformal_gp.models.settings.ROWS_FOR_INTEGRATED", 50)
    options = {"n_restarts": 0, "random_state": 0}
    model = ConformalGPRegressor(**options).fit(X, y)
    assert model.tuning_ == "holdout"
    low_rank = ConformalGPRegressor(low_rank=512, **options).fit(X, y)
    np.testing.assert_allclose(model.predict_interval(INPUTS, 0.8), low_rank.predict_interval(INPUTS, 0.8), rtol=1e-9)
    again = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(again.predict_interval(INPUTS, 0.8), model.predict_interval(INPUTS, 0.8))
    exact = ConformalGPRegressor(tuning="holdout", low_rank=False, **options).fit(X, y)
    assert not np.allclose(exact.predict_interval(INPUTS, 0.8), model.predict_interval(INPUTS, 0.8), rtol=1e-9)


@pytest.mark.parametrize(
    "options", [{}, {"tuning": "holdout", "n_restarts": 0}, {"target_transform": (np.sqrt, np.square)}]
)
def test_bounds_of_labels_cut_intervals(options):
    X, y = make_data(20, 30)
    y = np.maximum(y, 0.0)
    plain = ConformalGPRegressor(random_state=0, y_bounds=None, **options).fit(X, y)
    bounded = ConformalGPRegressor(random_state=0, y_bounds=(0, None), **options).fit(X, y)
    for model in (bounded, pickle.loads(pickle.dumps(bounded))):
        intervals = model.predict_interval(INPUTS, 0.8)
        np.testing.assert_allclose(intervals, np.maximum(plain.predict_interval(INPUTS, 0.8), 0.0))
        assert (intervals[:, 0] == 0.0).any()
        np.testing.assert_array_equal(model.predict_p(INPUTS, np.ones(3)), plain.predict_p(INPUTS, np.ones(3)))
        assert (model.predict_p(INPUTS, np.full(3, -1.0)) == 1.0 / (model._answers.n_calibration + 1)).all()
    with pytest.raises(ValueError, match=r"y has .* in row \d+, outside y_bounds=\(0, 1\)"):
        ConformalGPRegressor(y_bounds=(0, 1)).fit(X, y)
    with pytest.raises(ValueError, match=r"y_bounds must be .* a pair \(low, high\)"):
        ConformalGPRegressor(y_bounds=(1, 0)).fit(X, y)


def test_a_prediction_at_a_bound_is_in_its_interval_though_its_set_is_elsewhere():
    """The piece around the mean is beyond the bound, another is within."""
    X = np.array([1.1, -0.9, -1.3, 1.5, 1.2])[:, None]
    y = [1.9, 1.3, 1.4, -0.6, -0.7]
    model = ConformalGPRegressor(
        "se", tuning="fixed", noise_variance=0.01, scale_inputs=False, gamma=1.0, mean="zero", y_bounds=(-0.7, None)
    )
    model.fit(X, y)
    assert model.predict([[2.0]]) == [-0.7]
    assert model.predict_set([[2.0]], 0.4)[0][0, 0] > 0.6
    np.testing.assert_allclose(model.predict_interval([[2.0]], 0.4), [[-0.7, 7.545]], atol=1e-3)


def test_an_offset_of_labels_shifts_means_and_leaves_covariances():
    X, y = make_data(21, 30)
    near, far = (fixed_model(mean="constant").fit(X, y + by) for by in (0.0, 1e6))
    mean, cov = far.predict(INPUTS, return_cov=True)
    np.testing.assert_allclose(mean, near.predict(INPUTS) + 1e6, rtol=1e-12)
    np.testing.assert_allclose(cov, near.predict(INPUTS, return_cov=True)[1], rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(far.predict(INPUTS, return_std=True)[1] ** 2, np.diagonal(cov), rtol=1e-9)
