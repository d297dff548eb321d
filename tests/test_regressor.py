"""What the front door says and gives, apart from the regions themselves."""

import pickle
import warnings
from fractions import Fraction

import numpy as np
import pytest
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF, ConstantKernel, WhiteKernel

from cases import GAMMAS, INF, fixed_model, make_basis, make_data
from conformal_gp import ConformalGPRegressor, SparseConformalGPRegressor

INPUTS = np.array([[0.1, 0.2], [1.0, -1.0], [9.0, 9.0]])


def test_fixed_hyperparameters_are_used_as_they_are():
    X, y = make_data(1, 20)
    kernel = ConstantKernel(2.0) * RBF([0.5, 1.5])
    model = fixed_model(kernel, 0.3).fit(X, y)
    assert model.kernel_ == kernel
    assert model.kernel_ is not kernel
    assert model.noise_variance_ == 0.3
    assert model.mean_coef_.shape == (0,)


def test_fixed_names_stand_for_unit_hyperparameters():
    X, y = make_data(1, 20)
    assert fixed_model("se").fit(X, y).kernel_ == ConstantKernel(1.0, (1e-6, 1e6)) * RBF(1.0, (1e-3, 1e4))


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


def test_predict_with_a_flat_prior_is_universal_kriging():
    X, y = make_data(3, 15)
    model = fixed_model(RBF(0.8), 0.2, mean="linear").fit(X, y)
    H, H_new = make_basis("linear", X), make_basis("linear", INPUTS)
    C = np.linalg.inv(RBF(0.8)(X) + 0.2 * np.eye(15))
    information = H.T @ C @ H
    beta = np.linalg.solve(information, H.T @ C @ y)
    k = RBF(0.8)(X, INPUTS)
    gap = H_new.T - H.T @ C @ k
    variance = 1.2 - np.diag(k.T @ C @ k) + np.diag(gap.T @ np.linalg.solve(information, gap))
    mean, std = model.predict(INPUTS, return_std=True)
    np.testing.assert_allclose(model.mean_coef_, beta, rtol=1e-9)
    np.testing.assert_allclose(mean, H_new @ beta + k.T @ C @ (y - H @ beta), rtol=1e-9)
    np.testing.assert_allclose(std, np.sqrt(variance), rtol=1e-9)


def test_learnt_model_agrees_with_scikit_learn_at_its_hyperparameters():
    X, y = make_data(4, 50)
    model = ConformalGPRegressor("se", tuning="train", mean="zero", scale_inputs=False, n_restarts=0).fit(X, y)
    gp = GaussianProcessRegressor(model.kernel_ + WhiteKernel(model.noise_variance_), alpha=0.0, optimizer=None)
    gp.fit(X, y)
    assert model.log_marginal_likelihood_ == pytest.approx(gp.log_marginal_likelihood_value_, rel=1e-9)
    mean, std = model.predict(INPUTS, return_std=True)
    np.testing.assert_allclose(mean, gp.predict(INPUTS), rtol=1e-8, atol=1e-10)
    np.testing.assert_allclose(std, gp.predict(INPUTS, return_std=True)[1], rtol=1e-8)


def test_learning_finds_what_made_the_data():
    rng = np.random.default_rng(0)
    X = rng.uniform(-3, 3, (300, 1))
    K = 4.0 * RBF(0.8)(X)
    y = 10.0 + 2.0 * X[:, 0] + np.linalg.cholesky(K + 1e-10 * np.eye(300)) @ rng.normal(size=300)
    y += rng.normal(0, 0.5, 300)
    model = ConformalGPRegressor("se", tuning="train", scale_inputs=False, random_state=0).fit(X, y)
    assert model.noise_variance_ == pytest.approx(0.25, rel=0.25)
    assert model.kernel_.k2.length_scale == pytest.approx(0.8, rel=0.25)
    assert model.mean_coef_ == pytest.approx([10.0, 2.0], abs=2.5)


def test_the_same_seed_gives_the_same_bits_whatever_n_jobs():
    X, y = make_data(5, 60)
    models = [
        ConformalGPRegressor("rq", tuning="train", random_state=3, n_jobs=n_jobs).fit(X, y)
        for n_jobs in (1, 2, 4, None, -1)
    ]
    for model in models[1:]:
        np.testing.assert_array_equal(model.kernel_.theta, models[0].kernel_.theta)
        assert model.noise_variance_ == models[0].noise_variance_
        np.testing.assert_array_equal(
            model.predict_interval(INPUTS, [0.8, 0.9]), models[0].predict_interval(INPUTS, [0.8, 0.9])
        )


@pytest.mark.parametrize("mean", ["zero", "constant", "linear"])
def test_gamma_two_always_gives_one_bounded_interval(mean):
    for seed in range(10):
        X, y = make_data(seed, 20)
        model = fixed_model("se", 0.001, mean=mean).fit(X, y)
        for region in model.predict_set(np.vstack([INPUTS, 100 * INPUTS, X[:3]]), 0.9):
            assert region.shape == (1, 2)
            assert np.isfinite(region).all()


def test_shapes_of_intervals_follow_the_levels():
    X, y = make_data(6, 30)
    model = fixed_model().fit(X, y)
    assert model.predict_interval(INPUTS).shape == (3, 2)
    assert model.predict_interval(INPUTS, 0.9).shape == (3, 2)
    assert model.predict_interval(INPUTS, [0.9]).shape == (3, 2, 1)
    assert model.predict_interval(INPUTS, (0.9, 0.5)).shape == (3, 2, 2)
    np.testing.assert_array_equal(model.predict_interval(INPUTS), model.predict_interval(INPUTS, 0.95))
    assert [region.shape[1] for region in model.predict_set(INPUTS)] == [2, 2, 2]
    assert model.predict_p(INPUTS, [0.0, 1.0, 2.0]).shape == (3,)


def test_levels_are_read_as_exact_fractions():
    X, y = make_data(7, 19)
    model = fixed_model().fit(X, y)
    exact = model.predict_interval(INPUTS, Fraction(9, 10))
    for level in (0.9, 1 - 0.1, np.float32(0.9)):
        np.testing.assert_array_equal(model.predict_interval(INPUTS, level), exact)


@pytest.mark.parametrize("gamma", GAMMAS)
def test_too_few_rows_for_a_level_give_the_whole_line_and_a_warning(gamma):
    X, y = make_data(8, 18)
    model = fixed_model(gamma=gamma).fit(X, y)
    with pytest.warns(UserWarning, match=r"confidence_level=0\.95 needs at least 19 rows to rank.*18"):
        intervals = model.predict_interval(INPUTS, [0.95, 0.9])
    assert (intervals[:, 0, 0] == -INF).all()
    assert (intervals[:, 1, 0] == INF).all()
    for region in model.predict_set(INPUTS, 0.95):
        np.testing.assert_array_equal(region, [[-INF, INF]])


def test_enough_rows_for_a_level_give_no_warning():
    X, y = make_data(8, 19)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert np.isfinite(fixed_model().fit(X, y).predict_interval(X, 0.95)).all()


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


@pytest.mark.parametrize("tuning", ["train", "holdout", "augmented"])
def test_labels_without_noise_leave_a_matrix_that_is_not_singular(tuning):
    X = np.linspace(0, 1, 40)[:, None]
    model = ConformalGPRegressor("se", tuning=tuning, mean="zero", noise_variance=1e-14, n_restarts=0, random_state=0)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model.fit(X, 1e-4 * np.sin(9 * X[:, 0]))
        intervals = model.predict_interval([[0.51], [0.3]], 0.8)
    assert np.isfinite(intervals).all()
    assert 0 < model.noise_variance_ < 1e-10


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
    one = ConformalGPRegressor("se", tuning=tuning, mean="constant", length_scales="one", n_restarts=0, random_state=0)
    assert np.ndim(one.fit(X, y).kernel_.k2.length_scale) == 0


def test_the_guarantee_is_stated():
    X, y = make_data(10, 30)
    exact = fixed_model().fit(X, y).guarantee_
    assert exact.startswith("Exact")
    scaled = fixed_model(scale_inputs=True).fit(X, y).guarantee_
    assert scaled.startswith("Not exact")
    assert "scale" in scaled
    learnt = ConformalGPRegressor("se", tuning="train", n_restarts=0).fit(X, y).guarantee_
    assert learnt.startswith("Not exact")
    assert "training rows" in learnt


@pytest.mark.parametrize(
    ("settings", "l", "way"),
    [
        ({}, 30, "augmented"),
        ({"kernel": ["se", "nn"]}, 30, "augmented"),
        ({"kernel": RBF(1.0)}, 30, "augmented"),
        ({"kernel": RBF(1.0) + WhiteKernel(0.1), "noise_variance": 0.0}, 30, "augmented"),
        ({"kernel": RBF(1.0), "candidates": [(RBF(1.0), 0.1)]}, 30, "augmented"),
        ({"kernel": "se", "n_restarts": 0, "length_scales": "one"}, 1001, "holdout"),
    ],
)
def test_the_default_is_exact_and_its_rule_looks_at_rows_and_kernel_alone(settings, l, way):
    X, y = make_data(11, l)
    model = ConformalGPRegressor(random_state=0, **settings).fit(X, y)
    assert model.tuning_ == way
    assert model.guarantee_.startswith("Exact")


def test_collinear_and_constant_inputs_do_not_matter_to_the_linear_mean():
    X, y = make_data(12, 30)
    wide = np.column_stack([X, X[:, 0] + X[:, 1], np.full(30, 4.0)])
    wide_inputs = np.column_stack([INPUTS, INPUTS.sum(axis=1), np.full(3, 4.0)])
    kernel, wide_kernel = RBF([0.8, 1.2]), RBF([0.8, 1.2, 1e9, 1e9])
    found = fixed_model(wide_kernel, mean="linear").fit(wide, y).predict_interval(wide_inputs, 0.8)
    expected = fixed_model(kernel, mean="linear").fit(X, y).predict_interval(INPUTS, 0.8)
    np.testing.assert_allclose(found, expected, rtol=1e-6)


def test_a_white_kernel_replaces_the_noise():
    X, y = make_data(13, 20)
    white = fixed_model(RBF(0.8) + WhiteKernel(0.2), 0.0).fit(X, y)
    plain = fixed_model(RBF(0.8), 0.2).fit(X, y)
    np.testing.assert_allclose(white.predict_interval(INPUTS, 0.8), plain.predict_interval(INPUTS, 0.8), rtol=1e-9)
    np.testing.assert_allclose(white.predict(INPUTS, True)[1], plain.predict(INPUTS, True)[1], rtol=1e-9)


def test_a_model_can_be_fitted_again():
    X, y = make_data(14, 20)
    model = fixed_model(mean="linear", scale_inputs=True)
    once = model.fit(X, y).predict_interval(INPUTS, 0.8)
    model.fit(X[:10, :1], y[:10])
    assert model.n_features_in_ == 1
    np.testing.assert_array_equal(model.fit(X, y).predict_interval(INPUTS, 0.8), once)


def test_fit_leaves_its_arguments_alone():
    X, y = make_data(15, 30)
    X_before, y_before, kernel = X.copy(), y.copy(), ConstantKernel(1.0) * RBF(1.0)
    theta = kernel.theta.copy()
    model = ConformalGPRegressor(kernel, tuning="train", n_restarts=0).fit(X, y)
    model.predict_interval(X)
    model.predict_p(X, y)
    np.testing.assert_array_equal(X, X_before)
    np.testing.assert_array_equal(y, y_before)
    np.testing.assert_array_equal(kernel.theta, theta)
    assert model.get_params()["kernel"] is kernel


def test_no_test_rows_in_the_last_block_are_lost():
    X, y = make_data(16, 5)
    inputs, labels = make_data(17, 60_000)
    model = fixed_model().fit(X, y)  # blocks of 52,428 rows
    intervals = model.predict_interval(inputs, 0.5)
    assert intervals.shape == (60_000, 2)
    np.testing.assert_allclose(intervals[-3:], model.predict_interval(inputs[-3:], 0.5), rtol=1e-9)
    np.testing.assert_array_equal(model.predict_p(inputs, labels)[-3:], model.predict_p(inputs[-3:], labels[-3:]))


def test_training_row_tuning_says_what_coverage_to_expect_from_few_rows():
    X, y = make_data(18, 20)
    with pytest.warns(UserWarning, match=r"learns 6 numbers from 20 rows.*about 76%.*tuning='auto'"):
        ConformalGPRegressor("se", mean="linear", length_scales="one", tuning="train", n_restarts=0).fit(X, y)


def test_training_row_tuning_with_many_rows_does_not_warn():
    X, y = make_data(18, 120)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        ConformalGPRegressor("se", tuning="train", n_restarts=0).fit(X, y)


def test_many_rows_are_given_to_a_low_rank_process(monkeypatch):
    monkeypatch.setattr("conformal_gp.regressor.ROWS_FOR_EXACT", 50)
    X, y = make_data(19, 120)
    options = {"n_restarts": 0, "random_state": 0}
    model = ConformalGPRegressor(**options).fit(X, y)
    assert model.tuning_ == "holdout"
    low_rank = SparseConformalGPRegressor(**options).fit(X, y)
    np.testing.assert_allclose(model.predict_interval(INPUTS, 0.8), low_rank.predict_interval(INPUTS, 0.8), rtol=1e-9)
    again = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(again.predict_interval(INPUTS, 0.8), model.predict_interval(INPUTS, 0.8))
    assert ConformalGPRegressor(candidates=[(RBF(1.0), 0.1)]).fit(X, y).tuning_ == "augmented"  # whatever their number
    exact = ConformalGPRegressor(tuning="holdout", **options).fit(X, y)
    assert not np.allclose(exact.predict_interval(INPUTS, 0.8), model.predict_interval(INPUTS, 0.8), rtol=1e-9)


@pytest.mark.parametrize("options", [{}, {"tuning": "holdout", "n_restarts": 0}, {"warp": "yeo-johnson"}])
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
        assert (model.predict_p(INPUTS, np.full(3, -1.0)) == 1.0 / (model._predictor.n_ranked + 1)).all()
    with pytest.raises(ValueError, match=r"y has .* in row \d+, outside y_bounds=\(0, 1\)"):
        ConformalGPRegressor(y_bounds=(0, 1)).fit(X, y)
    with pytest.raises(ValueError, match=r"y_bounds must be .* a pair \(low, high\)"):
        ConformalGPRegressor(y_bounds=(1, 0)).fit(X, y)


def test_an_offset_of_labels_shifts_means_and_leaves_covariances():
    X, y = make_data(21, 30)
    near, far = (fixed_model(mean="constant").fit(X, y + by) for by in (0.0, 1e6))
    mean, cov = far.predict(INPUTS, return_cov=True)
    np.testing.assert_allclose(mean, near.predict(INPUTS) + 1e6, rtol=1e-12)
    np.testing.assert_allclose(cov, near.predict(INPUTS, return_cov=True)[1], rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(far.predict(INPUTS, return_std=True)[1] ** 2, np.diagonal(cov), rtol=1e-9)
