"""Learning by maximum likelihood, at the scale of the data; and what settings decide."""

import warnings
from dataclasses import replace

import numpy as np
import pytest
from scipy.optimize import OptimizeResult
from sklearn.gaussian_process.kernels import RBF, ConstantKernel

from cases import make_data
from conformal_gp import ConformalGPRegressor
from conformal_gp.gp.inputs import Inputs, Scaling, label_variance
from conformal_gp.gp.maximum_likelihood import NOISE_RATIOS, LearningRows, Search, Space
from conformal_gp.gp.posterior import noise_floor
from conformal_gp.models.learning import learn
from conformal_gp.models.settings import Settings, explained
from conformal_gp.rows import Rows

SETTINGS = Settings(["se"], "constant", None, 2.0, False, 1, 1)


def learnt(X, y, settings=SETTINGS, n_rows=None, **options):
    """What unscaled inputs teach."""
    return learn(settings, Rows(X), Scaling(), y, n_rows or y.size, np.random.RandomState(0), **options)


def test_the_start_of_a_kernel_object_does_not_matter():
    X, y = make_data(2, 40)
    settings = replace(SETTINGS, n_restarts=0)
    found = [
        learnt(X, y, replace(settings, kernels=[ConstantKernel(a) * RBF(l)])) for a, l in ((1.0, 1.0), (1e4, 1e-4))
    ]
    np.testing.assert_allclose(found[0].kernel.theta, found[1].kernel.theta, rtol=1e-6)


def test_the_likelier_of_several_kernels_is_taken():
    rng = np.random.default_rng(0)
    X = rng.uniform(-3, 3, (40, 1))
    slow, fast = ConstantKernel(1.0) * RBF(100.0, (90.0, 110.0)), ConstantKernel(1.0) * RBF(0.3, (0.1, 1.0))
    for kernels in ([slow, fast], [fast, slow]):
        assert learnt(X, np.sin(6 * X[:, 0]), replace(SETTINGS, kernels=kernels)).kernel.k2.length_scale <= 1.0


def test_noise_grows_with_the_rows_of_the_model():
    X = np.linspace(0, 1, 40)[:, None]
    y = np.sin(3 * X[:, 0])
    few, many = (learnt(X, y, n_rows=n, low_rank=True) for n in (40, 10**6))
    ratios = [found.noise_variance / found.kernel.k1.constant_value for found in (few, many)]
    assert ratios[0] == pytest.approx(max(NOISE_RATIOS[0], noise_floor(40)), rel=0.1)
    assert ratios[1] == pytest.approx(noise_floor(10**6), rel=0.1)


@pytest.mark.parametrize(("n_rows", "n_inputs"), [(300, 12), (400, 30), (300, 60)])
@pytest.mark.parametrize("tuning", ["holdout", "train"])
def test_labels_that_are_a_mean_of_inputs_leave_noise_that_the_matrix_bears(n_rows, n_inputs, tuning):
    # the search ends at the least noise, at length scales so long that the matrix has hardly any rank
    rng = np.random.default_rng(0)
    X = rng.standard_normal((n_rows, 3)) @ rng.standard_normal((3, n_inputs))
    X += 0.3 * rng.standard_normal(X.shape)
    y = X[:, :6].mean(axis=1)
    with warnings.catch_warnings(action="ignore", category=UserWarning):  # of "train": with few rows it is not valid
        model = ConformalGPRegressor(tuning=tuning, mean="constant", n_restarts=0, random_state=0).fit(X, y)
    assert np.sqrt(np.mean((model.predict(X) - y) ** 2)) < 1e-3 * y.std()
    assert np.isfinite(model.predict_interval(X[:5], 0.9)).all()


def test_inputs_have_length_scales_of_their_own_unless_they_share_one():
    X = np.random.default_rng(1).uniform(-1, 1, (60, 2))
    y = np.sin(6.0 * X[:, 0])
    first, second = learnt(X, y).kernel.k2.length_scale
    assert second > 2.0 * first
    assert np.ndim(learnt(X, y, replace(SETTINGS, ard=False)).kernel.k2.length_scale) == 0


def test_labels_that_the_mean_explains_have_no_variance_and_a_warning():
    X = np.random.default_rng(0).normal(size=(30, 2))
    y = 1e5 + X @ [2.0, -1.0]
    linear, constant = (Inputs(Rows(X), Scaling(), mean) for mean in ("linear", "constant"))
    assert label_variance(linear, y) == 0.0
    assert label_variance(constant, y) == pytest.approx(np.var(y))
    (warning,) = explained(linear, y, "linear")
    assert "mean='linear'" in warning
    assert explained(constant, y, "constant") == []


def reach(X):
    """Distance of the end of an arm of four segments from its origin."""
    angles = np.cumsum(2.0 * np.pi * X[:, :4], axis=1)
    return np.hypot((X[:, 4:] * np.cos(angles)).sum(axis=1), (X[:, 4:] * np.sin(angles)).sum(axis=1))


@pytest.mark.parametrize(("kernel", "seed"), [("matern52", 8), ("se", 5)])
def test_white_noise_is_not_taken_for_a_function_without_noise(kernel, seed):
    """Of optima, one that is much worse than others by leave-one-out errors is not accepted."""
    X = np.random.default_rng([seed, 1320]).uniform(size=(1320, 8))
    y = reach(X)
    model = ConformalGPRegressor(kernel, tuning="holdout", noise_variance=0, random_state=seed)
    model.fit(X[:320], y[:320])
    error = np.sqrt(np.mean((model.predict(X[320:]) - y[320:]) ** 2))
    assert error < 0.6 * y.std()  # 0.9 with white noise, which is that of the mean


def test_the_best_optimum_is_accepted_unless_it_is_clearly_worse(monkeypatch):
    rng = np.random.default_rng(0)
    X = rng.uniform(size=(60, 1))
    rows = LearningRows(X, np.sin(9.0 * X[:, 0]) + 0.1 * rng.standard_normal(60), np.ones((60, 1)) / 60**0.5, None)
    search = Search(Space(ConstantKernel(1.0) * RBF(0.3), 0.01, 1e-8), [rows])
    usual, white, singular, near = (
        OptimizeResult(x=search.start + np.array(step), fun=0.0)
        for step in ([0.0] * 3, [0.0, np.log(1e-4), 0.0], [0.0, 0.0, np.log(1e-20)], [0.05] * 3)
    )
    left_out = search.left_out
    values = {white.x.tobytes(): 0.0, usual.x.tobytes(): 1.0, near.x.tobytes(): 0.5}
    monkeypatch.setattr(search, "left_out", lambda x: (values.get(x.tobytes(), np.inf), *left_out(x)[1:]))
    assert search.accepted([white, usual, singular]) is usual
    assert search.accepted([usual, near]) is near
