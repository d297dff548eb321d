"""The low-rank regressor against a dense inverse over all rows, and against the exact process."""

from fractions import Fraction

import numpy as np
import pytest
from sklearn.gaussian_process.kernels import RBF, ConstantKernel, DotProduct, Matern, WhiteKernel

import dense_lowrank as dense
from cases import INF, MEANS, latin_square, make_basis, make_data
from conformal_gp import ConformalGPRegressor
from signed_oracle import check_against_lines

KERNELS = {
    "matern": ConstantKernel(1.5) * Matern(0.9, nu=1.5),
    "ard": ConstantKernel(2.0) * RBF([0.6, 1.5]),
    "white": ConstantKernel(0.8) * RBF(0.9) + WhiteKernel(0.05),
    "not stationary": Matern(0.7, nu=2.5) + 0.3 * DotProduct(0.5),
}
LEVELS = [Fraction(1, 2), Fraction(3, 4), Fraction(9, 10), Fraction(19, 20)]
INPUTS = np.array([[0.2, -0.4], [0.0, 0.0], [2.0, 1.0], [-4.0, 6.0]])
TUNING = np.arange(3, 60, 4)


def low_rank_of(kernel, mean="linear", gamma=2.0, noise_variance=0.1, **options):
    settings = {"tuning": "fixed", "scale_inputs": False, "tuning_rows": TUNING, "low_rank": 12, **options}
    return ConformalGPRegressor(kernel, mean=mean, gamma=gamma, noise_variance=noise_variance, **settings)


@pytest.mark.parametrize(("name", "gamma", "mean"), latin_square(KERNELS, [1.0, 2.0, 3.0, INF], MEANS))
def test_regions_intervals_p_values_and_distributions_equal_brute_force(name, gamma, mean):
    X, y = make_data(1, 60)
    model = low_rank_of(KERNELS[name], mean, gamma).fit(X, y)
    calibration = np.setdiff1d(np.arange(60), TUNING)
    found = {level: model.predict_set(INPUTS, level) for level in LEVELS}
    hulls = model.predict_interval(INPUTS, LEVELS)
    means, stds = model.predict(INPUTS, return_std=True)
    for j, x in enumerate(INPUTS):
        model_of = (KERNELS[name], 0.1, model.inducing_, X, y, x, lambda bag: make_basis(mean, bag))
        a, b = dense.lines(*model_of, gamma)
        tolerance = {"rtol": 1e-8, "atol": 1e-8 * np.abs(y).max()}
        for i, level in enumerate(LEVELS):
            pieces = dense.region(a, b, 1 - level, calibration, y)
            assert found[level][j].shape == pieces.shape
            np.testing.assert_allclose(found[level][j], pieces, **tolerance)
            np.testing.assert_allclose(hulls[j, :, i], [pieces[0, 0], pieces[-1, 1]], **tolerance)
        for label in (-4.0, 0.0, 0.5, 3.0):
            assert model.predict_p([x], [label])[0] == pytest.approx(dense.p_value(a, b, label, calibration), abs=1e-12)
        check_against_lines(model, x, a, b, calibration, y)
        mean_there, variance = dense.mean_and_variance(*model_of)
        np.testing.assert_allclose([means[j], stds[j] ** 2], [mean_there, variance], rtol=1e-8)


@pytest.mark.parametrize(("gamma", "mean"), latin_square([1.0, 2.0, 3.0, INF], MEANS))
def test_with_training_inputs_as_inducing_inputs_it_is_the_exact_process(gamma, mean):
    X, y = make_data(2, 80)
    kernel = ConstantKernel(1.5, "fixed") * Matern(0.5, "fixed", nu=1.5) + WhiteKernel(0.1, "fixed")
    tuning_rows = np.arange(0, 80, 4)
    options = {"mean": mean, "gamma": gamma, "noise_variance": 0.0, "n_restarts": 0}
    exact = ConformalGPRegressor(kernel, tuning="holdout", tuning_rows=tuning_rows, **options).fit(X, y)
    low_rank = ConformalGPRegressor(kernel, tuning_rows=tuning_rows, low_rank=X, **options).fit(X, y)
    assert low_rank.inducing_.shape == X.shape
    inputs = np.vstack([X[:5], INPUTS])
    np.testing.assert_allclose(low_rank.predict(inputs), exact.predict(inputs), rtol=1e-9, atol=1e-10)
    np.testing.assert_allclose(
        low_rank.predict(inputs, return_std=True)[1], exact.predict(inputs, return_std=True)[1], rtol=1e-9
    )
    np.testing.assert_allclose(
        low_rank.predict_interval(inputs, LEVELS), exact.predict_interval(inputs, LEVELS), rtol=1e-8, atol=1e-9
    )
    for found, expected in zip(low_rank.predict_set(inputs, 0.8), exact.predict_set(inputs, 0.8), strict=True):
        np.testing.assert_allclose(found, expected, rtol=1e-8, atol=1e-9)
    labels = np.linspace(-3, 3, len(inputs))
    np.testing.assert_allclose(low_rank.predict_p(inputs, labels), exact.predict_p(inputs, labels), rtol=1e-14)
    assert low_rank.log_marginal_likelihood_ == pytest.approx(exact.log_marginal_likelihood_, rel=1e-10)
    np.testing.assert_allclose(low_rank.mean_coef_, exact.mean_coef_, rtol=1e-9, atol=1e-10)


def test_tuning_rows_teach_as_they_teach_the_exact_process():
    X, y = make_data(3, 90)
    tuning_rows = np.arange(0, 90, 3)
    exact = ConformalGPRegressor("se", tuning="holdout", tuning_rows=tuning_rows, n_restarts=1, random_state=0).fit(
        X, y
    )
    low_rank = ConformalGPRegressor("se", low_rank=30, tuning_rows=tuning_rows, n_restarts=1, random_state=0).fit(X, y)
    np.testing.assert_allclose(low_rank.kernel_.theta, exact.kernel_.theta, atol=1e-2)
    assert low_rank.noise_variance_ == pytest.approx(exact.noise_variance_, rel=1e-2)


@pytest.mark.parametrize("offset", [0.0, 1e6])
def test_labels_far_from_zero_lose_no_digits(offset):
    X, y = make_data(4, 200)
    near, far = (low_rank_of(KERNELS["matern"], tuning_rows=40).set_params(random_state=0) for _ in range(2))
    expected = near.fit(X, y).predict_interval(INPUTS, 0.9) + offset
    np.testing.assert_allclose(far.fit(X, y + offset).predict_interval(INPUTS, 0.9), expected, atol=1e-8)
