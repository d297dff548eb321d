"""A process given by kernel, noise, mean and rows, and scikit-learn's: answers, guarantee, what is refused."""

from __future__ import annotations

import io

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF, ConstantKernel, Matern, WhiteKernel

import bags
import oracle
from cases import make_data
from conformal_gp import ConformalGPRegressor
from conformal_gp.adapters import from_process, from_sklearn
from conformal_gp.persistence import load_model, save_model

KERNEL = ConstantKernel(0.7) * Matern([0.8, 1.5], nu=2.5)
NOISE = 0.05
MEAN = np.array([40.0, 3.0, -2.0])
X, residual = make_data(5, 50)
Y = residual + MEAN[0] + X @ MEAN[1:]
NEW, new_residual = make_data(6, 12)
LABELS = new_residual + MEAN[0] + NEW @ MEAN[1:]


def adapted(**options):
    return from_process(KERNEL, X, Y, **{"noise_variance": NOISE, "mean": MEAN, "design": [], **options})


def test_answers_are_those_of_labels_less_the_mean_function():
    model = adapted()
    ours = ConformalGPRegressor(KERNEL, noise_variance=NOISE, mean="zero", tuning="fixed", scale_inputs=False)
    ours.fit(X, Y - MEAN[0] - X @ MEAN[1:])
    shift = MEAN[0] + NEW @ MEAN[1:]
    mean, std = model.predict(NEW, return_std=True)
    np.testing.assert_allclose(mean, ours.predict(NEW) + shift, atol=1e-10)
    np.testing.assert_allclose(std, ours.predict(NEW, return_std=True)[1], atol=1e-12)
    expected = ours.predict_interval(NEW, [0.7, 0.9]) + shift[:, None, None]
    np.testing.assert_allclose(model.predict_interval(NEW, [0.7, 0.9]), expected, atol=1e-8)
    np.testing.assert_allclose(model.predict_bound(NEW, 0.9), ours.predict_bound(NEW, 0.9) + shift, atol=1e-8)
    np.testing.assert_array_equal(model.predict_p(NEW, LABELS), ours.predict_p(NEW, LABELS - shift))
    np.testing.assert_array_equal(model.predict_cdf(NEW, LABELS), ours.predict_cdf(NEW, LABELS - shift))
    assert model.log_marginal_likelihood_ == pytest.approx(ours.log_marginal_likelihood_)
    np.testing.assert_array_equal(model.mean_coef_, MEAN)


@pytest.mark.parametrize("gamma", [2.0, 1.0, np.inf])
def test_regions_and_p_values_are_those_of_the_definition(gamma):
    model = adapted(gamma=gamma, design=[0, 3, 7])
    ranked = np.setdiff1d(np.arange(len(Y)), [0, 3, 7])
    less = Y - MEAN[0] - X @ MEAN[1:]
    for row, label, p in zip(NEW[:4], LABELS, model.predict_p(NEW[:4], LABELS[:4]), strict=False):
        shift = MEAN[0] + row @ MEAN[1:]
        expected = oracle.p_value(KERNEL, NOISE, X, less, row, label - shift, gamma, ranked=ranked)
        assert p == pytest.approx(float(expected))
        (region,) = model.predict_set(row[None], 0.9)
        found = oracle.region(KERNEL, NOISE, X, less, row, 0.1, gamma, ranked=ranked)
        np.testing.assert_allclose(region, found + shift, atol=1e-8)


@pytest.mark.parametrize("n_design", [0, 4])
def test_p_values_of_a_bag_are_a_permutation(n_design):
    rows, labels = bags.noisy(np.random.default_rng(n_design), 9 + n_design)
    n, found = len(labels) - n_design, []
    for i in range(n_design, len(labels)):
        rest = np.arange(len(labels)) != i
        options = {"noise_variance": 0.1, "mean": [0.5, 1.0, 0.3], "design": np.arange(n_design)}
        model = from_process(RBF(1.0), rows[rest], labels[rest], **options)
        assert model.guarantee_.startswith("Exact")
        found.append(n * model.predict_p(rows[~rest], labels[~rest])[0])
    np.testing.assert_allclose(np.sort(found), np.arange(1, n + 1))


def test_the_mean_holds_where_a_column_was_constant_in_training():
    rows = np.column_stack([X[:, 0], np.ones(len(X))])
    model = from_process(RBF(1.0), rows, residual + 5.0, noise_variance=NOISE, mean=[0.0, 0.0, 5.0])
    far = model.predict([[100.0, 3.0]])  # far off, where the mean function is all that is known
    assert far == pytest.approx(15.0)


def test_what_is_guaranteed():
    assert adapted(design=None).guarantee_.startswith("Not exact")
    assert adapted(design=[]).guarantee_.startswith("Exact: kernel and noise were fixed beforehand")
    some = adapted(design=np.arange(10))
    assert "10 design rows and the other 40 are ranked" in some.guarantee_
    np.testing.assert_array_equal(some.design_, np.arange(10))


def test_files_keep_the_mean_and_clones_can_be_fitted():
    model = adapted(design=[1, 2])
    file = io.BytesIO()
    save_model(model, file)
    again = load_model(io.BytesIO(file.getvalue()))
    np.testing.assert_array_equal(again.predict_interval(NEW, 0.9), model.predict_interval(NEW, 0.9))
    assert again.guarantee_ == model.guarantee_
    assert clone(model).fit(X, Y).mean_ == "linear"


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"mean": [1.0, 2.0]}, r"1 \+ n_features=3 coefficients; got 2"),
        ({"mean": [[1.0]]}, "mean must be a number"),
        ({"mean": np.nan}, "mean must be a number"),
        ({"design": 5}, "design must be a list of row numbers"),
        ({"design": [50]}, "distinct row numbers from 0 to 49"),
        ({"design": np.arange(50)}, "design holds all 50 rows"),
        ({"noise_variance": -1.0}, "noise_variance"),
        ({"noise_variance": None}, "noise_variance must be a number"),
        ({"gamma": 0.5}, "gamma"),
    ],
)
def test_what_is_refused(options, message):
    with pytest.raises(ValueError, match=message):
        adapted(**options)


@pytest.mark.parametrize("normalize_y", [False, True])
@pytest.mark.parametrize("white", [0.0, 0.02])
def test_sklearn(normalize_y, white):
    kernel = ConstantKernel(0.7) * RBF([0.8, 1.5]) + (WhiteKernel(white) if white else ConstantKernel(0.1))
    gpr = GaussianProcessRegressor(kernel, alpha=0.03, normalize_y=normalize_y, optimizer=None).fit(X, Y)
    model = from_sklearn(gpr)
    mean, std = gpr.predict(NEW, return_std=True)
    our_mean, our_std = model.predict(NEW, return_std=True)
    np.testing.assert_allclose(our_mean, mean, rtol=1e-10)
    np.testing.assert_allclose(our_std**2, std**2 + 0.03 * (np.var(Y) if normalize_y else 1.0), rtol=1e-8)
    scale = np.std(Y) if normalize_y else 1.0
    centre = Y.mean() if normalize_y else 0.0
    ours = ConformalGPRegressor(kernel, noise_variance=0.03, mean="zero", tuning="fixed", scale_inputs=False)
    expected = centre + scale * ours.fit(X, (Y - centre) / scale).predict_interval(NEW, 0.9)
    np.testing.assert_allclose(model.predict_interval(NEW, 0.9), expected, atol=1e-8)
    assert model.guarantee_.startswith("Not exact")


def test_sklearn_with_design_rows_and_names():
    frame = pd.DataFrame(X, columns=["a", "b"])
    learnt = GaussianProcessRegressor(KERNEL + WhiteKernel(0.1)).fit(frame[:20], Y[:20] - 40.0)
    gpr = GaussianProcessRegressor(learnt.kernel_, optimizer=None).fit(frame, Y - 40.0)
    model = from_sklearn(gpr, design=np.arange(20))
    assert model.guarantee_.startswith("Exact: ")
    names = pd.DataFrame(NEW, columns=["a", "b"])
    np.testing.assert_allclose(model.predict(names), gpr.predict(names), atol=1e-8)
    with pytest.raises(ValueError, match="feature names"):
        model.predict_interval(names[["b", "a"]])


def test_sklearn_that_is_refused():
    rows = GaussianProcessRegressor(optimizer=None)
    with pytest.raises(ValueError, match="gpr must be a GaussianProcessRegressor, got ConformalGPRegressor"):
        from_sklearn(ConformalGPRegressor())
    with pytest.raises(NotFittedError):
        from_sklearn(rows)
    with pytest.raises(ValueError, match="one label a row, got 2"):
        from_sklearn(clone(rows).fit(X, np.column_stack([Y, Y])))
    with pytest.raises(ValueError, match="an alpha for each row"):
        from_sklearn(clone(rows).set_params(alpha=np.linspace(0.1, 0.2, 50)).fit(X, Y))
    assert from_sklearn(clone(rows).set_params(alpha=np.full(50, 0.1)).fit(X, Y)).noise_variance_ == pytest.approx(0.1)
    with pytest.raises(ValueError, match="design must be None with normalize_y=True"):
        from_sklearn(clone(rows).set_params(alpha=0.1, normalize_y=True).fit(X, Y), design=[1])
