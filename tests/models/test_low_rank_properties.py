"""Properties that hold for every low-rank model."""

from unittest import mock

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cases import INF, MEANS, contains, make_data
from conformal_gp import ConformalGPRegressor, rows
from conformal_gp.models import low_rank

N_ROWS = 120
TUNING = np.arange(0, N_ROWS, 5)
INPUTS, LABELS = make_data(99, 8)

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
        "tuning_rows": TUNING,
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
    n = N_ROWS - TUNING.size + 1
    for label in (-3.0, 0.0, 1.0):
        counts = np.round(model.predict_p(INPUTS, np.full(len(INPUTS), label)) * n)
        for region, count in zip(model.predict_set(INPUTS, level), counts, strict=True):
            assert contains(region, label) == (count > (1 - level) * n + 1e-9)


@settings(deadline=None, max_examples=25)
@given(problems)
def test_regions_nest_hulls_are_hulls_and_ends_belong(problem):
    model = fitted(problem)
    ends = model.predict_interval(INPUTS, [0.5, 0.8, 0.9])
    assert (np.diff(ends[:, 0], axis=1) <= 0).all()
    assert (np.diff(ends[:, 1], axis=1) >= 0).all()
    means = model.predict(INPUTS)
    for j, region in enumerate(model.predict_set(INPUTS, 0.8)):
        np.testing.assert_allclose(ends[j, :, 1], [region[0, 0], region[-1, 1]], rtol=1e-10, atol=1e-10)
        assert contains(region, means[j])
        for end in region[np.isfinite(region)]:
            assert model.predict_p(INPUTS[[j]], [end])[0] > 0.2 - 1e-12


@settings(deadline=None, max_examples=15)
@given(problems, st.randoms(use_true_random=False))
def test_the_order_of_ranked_rows_does_not_matter(problem, random):
    calibration = np.setdiff1d(np.arange(N_ROWS), TUNING).tolist()
    shuffled = random.sample(calibration, len(calibration))

    def shuffle(X, y):
        order = np.arange(N_ROWS)
        order[calibration] = shuffled
        return X[order], y[order]

    first, second = fitted(problem), fitted(problem, shuffle)
    np.testing.assert_allclose(
        second.predict_interval(INPUTS, [0.5, 0.9]), first.predict_interval(INPUTS, [0.5, 0.9]), rtol=1e-8, atol=1e-9
    )
    np.testing.assert_array_equal(second.predict_p(INPUTS, LABELS), first.predict_p(INPUTS, LABELS))


@settings(deadline=None, max_examples=15)
@given(problems, st.sampled_from([1, 7, 50, 10_000]), st.integers(1, 3))
def test_blocks_of_any_size_and_threads_give_the_same(problem, block_rows, n_jobs):
    model = fitted(problem)
    with mock.patch.object(rows, "BLOCK_ROWS", block_rows):
        other = fitted(problem, n_jobs=n_jobs)
    for call in (
        lambda m: m.predict(INPUTS),
        lambda m: m.predict_interval(INPUTS, [0.5, 0.9]),
        lambda m: np.concatenate(m.predict_set(INPUTS, 0.8)),
    ):
        np.testing.assert_allclose(call(other), call(model), rtol=1e-8, atol=1e-9)
    np.testing.assert_array_equal(other.predict_p(INPUTS, LABELS), model.predict_p(INPUTS, LABELS))


def test_threads_do_not_change_a_bit(monkeypatch):
    monkeypatch.setattr(rows, "BLOCK_ROWS", 100)
    X, y = make_data(3, 300)
    models = [
        ConformalGPRegressor(low_rank=20, n_restarts=1, random_state=0, n_jobs=n_jobs).fit(X, y) for n_jobs in (1, 3)
    ]
    first, second = (model.predict_interval(INPUTS, [0.5, 0.99]) for model in models)
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
