"""The low-rank regressor against a dense inverse over all rows and the exact GP, and properties of every such model."""

from fractions import Fraction
from unittest import mock

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.gaussian_process.kernels import RBF, ConstantKernel, DotProduct, Matern, WhiteKernel

import dense_lowrank as dense
from cases import INF, MEANS, contains, latin_square, make_basis, make_data
from conformal_gp import ConformalGPRegressor, rows
from conformal_gp.models import low_rank
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


N_ROWS = 120
EVERY_FIFTH = np.arange(0, N_ROWS, 5)
SAMPLED, LABELS = make_data(99, 8)

problems = st.fixed_dictionaries(
    {
        "seed": st.integers(0, 1000),
        "kernel": st.sampled_from(["se", "rq", "nn", "matern32", "matern52"]),
        "mean": st.sampled_from(MEANS),
        "gamma": st.sampled_from([1.0, 2.0, 5.0, INF]),
        "noise_variance": st.sampled_from([0.01, 0.3]),
        "low_rank": st.integers(1, 30),
    }
)


def fitted(problem, change=lambda X, y: (X, y), **options):
    options = {
        "tuning": "fixed",
        "tuning_rows": EVERY_FIFTH,
        "scale_inputs": False,
        "n_jobs": 1,
        "random_state": 0,
        **options,
    }
    options |= {name: value for name, value in problem.items() if name != "seed"}
    return ConformalGPRegressor(**options).fit(*change(*make_data(problem["seed"], N_ROWS)))


@settings(deadline=None, max_examples=25)
@given(problems, st.sampled_from([0.5, 0.8, 0.9]))
def test_a_label_is_in_the_region_when_its_p_value_says_so(problem, level):
    model = fitted(problem)
    n = N_ROWS - EVERY_FIFTH.size + 1
    for label in (-3.0, 0.0, 1.0):
        counts = np.round(model.predict_p(SAMPLED, np.full(len(SAMPLED), label)) * n)
        for region, count in zip(model.predict_set(SAMPLED, level), counts, strict=True):
            assert contains(region, label) == (count > (1 - level) * n + 1e-9)


@settings(deadline=None, max_examples=25)
@given(problems)
def test_regions_nest_hulls_are_hulls_and_ends_belong(problem):
    model = fitted(problem)
    ends = model.predict_interval(SAMPLED, [0.5, 0.8, 0.9])
    assert (np.diff(ends[:, 0], axis=1) <= 0).all()
    assert (np.diff(ends[:, 1], axis=1) >= 0).all()
    means = model.predict(SAMPLED)
    for j, region in enumerate(model.predict_set(SAMPLED, 0.8)):
        np.testing.assert_allclose(ends[j, :, 1], [region[0, 0], region[-1, 1]], rtol=1e-10, atol=1e-10)
        assert contains(region, means[j])
        for end in region[np.isfinite(region)]:
            assert model.predict_p(SAMPLED[[j]], [end])[0] > 0.2 - 1e-12


@settings(deadline=None, max_examples=15)
@given(problems, st.randoms(use_true_random=False))
def test_the_order_of_ranked_rows_does_not_matter(problem, random):
    calibration = np.setdiff1d(np.arange(N_ROWS), EVERY_FIFTH).tolist()
    shuffled = random.sample(calibration, len(calibration))

    def shuffle(X, y):
        order = np.arange(N_ROWS)
        order[calibration] = shuffled
        return X[order], y[order]

    first, second = fitted(problem), fitted(problem, shuffle)
    np.testing.assert_allclose(
        second.predict_interval(SAMPLED, [0.5, 0.9]), first.predict_interval(SAMPLED, [0.5, 0.9]), rtol=1e-8, atol=1e-9
    )
    np.testing.assert_array_equal(second.predict_p(SAMPLED, LABELS), first.predict_p(SAMPLED, LABELS))


@settings(deadline=None, max_examples=15)
@given(problems, st.sampled_from([1, 7, 50, 10_000]), st.integers(1, 3))
def test_blocks_of_any_size_and_threads_give_the_same(problem, block_rows, n_jobs):
    model = fitted(problem)
    with mock.patch.object(rows, "BLOCK_ROWS", block_rows):
        other = fitted(problem, n_jobs=n_jobs)
    for call in (
        lambda m: m.predict(SAMPLED),
        lambda m: m.predict_interval(SAMPLED, [0.5, 0.9]),
        lambda m: np.concatenate(m.predict_set(SAMPLED, 0.8)),
    ):
        np.testing.assert_allclose(call(other), call(model), rtol=1e-8, atol=1e-9)
    np.testing.assert_array_equal(other.predict_p(SAMPLED, LABELS), model.predict_p(SAMPLED, LABELS))


def test_threads_do_not_change_a_bit(monkeypatch):
    monkeypatch.setattr(rows, "BLOCK_ROWS", 100)
    X, y = make_data(3, 300)
    models = [
        ConformalGPRegressor(low_rank=20, n_restarts=1, random_state=0, n_jobs=n_jobs).fit(X, y) for n_jobs in (1, 3)
    ]
    first, second = (model.predict_interval(SAMPLED, [0.5, 0.99]) for model in models)
    np.testing.assert_array_equal(first, second)


@pytest.mark.parametrize("gamma", [1.0, 2.0, INF])
def test_test_rows_in_groups_and_batches_of_any_size_give_the_same(gamma, monkeypatch):
    X, y = make_data(4, 600)
    inputs, labels = make_data(5, 90)
    inputs[::9] *= 5.0  # some far outside, with wide windows
    model = ConformalGPRegressor("se", gamma=gamma, low_rank=15, n_restarts=0, random_state=0).fit(X, y)
    calls = (
        lambda: model.predict(inputs, return_std=True)[1],
        lambda: model.predict_interval(inputs, [0.5, 0.9]),
        lambda: np.concatenate(model.predict_set(inputs, 0.8)),
    )
    expected, p = [call() for call in calls], model.predict_p(inputs, labels)
    for name, value in (("BATCH_ROWS", 40), ("GROUP_ENTRIES", 3000), ("PIECE_ENTRIES", 500), ("CHUNK_ROWS", 64)):
        monkeypatch.setattr(low_rank, name, value)
    monkeypatch.setattr(low_rank, "GATHERED_ROWS", 10)
    for call, before in zip(calls, expected, strict=True):
        np.testing.assert_allclose(call(), before, rtol=1e-10, atol=1e-11)
    np.testing.assert_array_equal(model.predict_p(inputs, labels), p)
    smoothed = model.predict_p(inputs, labels, smoothing=True, random_state=1)
    assert (smoothed <= p).all()
    np.testing.assert_allclose(smoothed, p, atol=1.5 / model._answers.n_calibration)


def test_what_is_learnt_depends_on_the_tuning_rows_alone():
    X, y = make_data(6, 200)
    tuning_rows = np.arange(40)
    other_X, other_y = X.copy(), y.copy()
    other_X[40:] += 10.0
    other_y[40:] *= -5.0
    first, second = (
        ConformalGPRegressor(tuning_rows=tuning_rows, low_rank=20, random_state=0).fit(*bag)
        for bag in ((X, y), (other_X, other_y))
    )
    assert first.kernel_ == second.kernel_
    assert first.noise_variance_ == second.noise_variance_
    np.testing.assert_array_equal(first.inducing_, second.inducing_)


def test_a_category_that_no_tuning_row_has_is_answered():
    X, y = make_data(7, 200)
    rare = np.zeros((200, 1))
    rare[150:153] = 1.0
    X, y = np.hstack([X, rare]), y + 5.0 * rare[:, 0]
    model = ConformalGPRegressor(tuning_rows=np.arange(60), low_rank=20, random_state=0).fit(X, y)
    ends = model.predict_interval([[0.0, 0.0, 1.0], [0.0, 0.0, 0.0]], 0.9)
    assert np.isfinite(ends).all()
