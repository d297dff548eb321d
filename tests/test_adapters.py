"""Processes of other libraries: their own predictions, intervals by the definition, guarantee, what is refused."""

from __future__ import annotations

import pickle
import re

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF, ConstantKernel, Matern, WhiteKernel

import oracle
from cases import fixed_model, make_data
from conformal_gp import ConformalGPRegressor
from conformal_gp.adapters import from_gpytorch, from_process, from_sklearn
from conformal_gp.saving import dumps, loads

KERNEL = ConstantKernel(0.7) * Matern([0.8, 1.5], nu=2.5)
X, Y = make_data(5, 40)
NEW, LABELS = make_data(6, 10)
MEAN = 40.0


def adapted(**options):
    return from_process(KERNEL, X, Y + MEAN, **{"noise_variance": 0.05, "mean": MEAN, "tuning_rows": [], **options})


def test_answers_are_those_of_labels_less_the_mean():
    model, ours = adapted(), fixed_model(KERNEL, 0.05).fit(X, Y)
    mean, std = model.predict(NEW, return_std=True)
    np.testing.assert_allclose(mean, ours.predict(NEW) + MEAN, atol=1e-10)
    np.testing.assert_allclose(std, ours.predict(NEW, return_std=True)[1], atol=1e-12)
    expected = ours.predict_interval(NEW, [0.7, 0.9]) + MEAN
    np.testing.assert_allclose(model.predict_interval(NEW, [0.7, 0.9]), expected, atol=1e-8)
    np.testing.assert_allclose(model.predict_bound(NEW, 0.9), ours.predict_bound(NEW, 0.9) + MEAN, atol=1e-8)
    np.testing.assert_array_equal(model.predict_p(NEW, LABELS + MEAN), ours.predict_p(NEW, LABELS))
    for again in (pickle.loads(pickle.dumps(model)), loads(dumps(model))):
        np.testing.assert_array_equal(again.predict_interval(NEW, 0.9), model.predict_interval(NEW, 0.9))
        assert again.guarantee_ == model.guarantee_


@pytest.mark.parametrize("gamma", [2.0, 1.0, np.inf])
def test_regions_and_p_values_are_those_of_the_definition(gamma):
    model = adapted(gamma=gamma, tuning_rows=[0, 3, 7])
    calibration = np.setdiff1d(np.arange(len(Y)), [0, 3, 7])
    for row, label, p in zip(NEW[:4], LABELS, model.predict_p(NEW[:4], LABELS[:4] + MEAN), strict=False):
        assert p == pytest.approx(float(oracle.p_value(KERNEL, 0.05, X, Y, row, label, gamma, calibration=calibration)))
        found = oracle.region(KERNEL, 0.05, X, Y, row, 0.1, gamma, calibration=calibration)
        np.testing.assert_allclose(model.predict_set(row[None], 0.9)[0], found + MEAN, atol=1e-8)


@pytest.mark.parametrize(
    ("tuning_rows", "sentence"),
    [
        (None, "Not valid in general: hyperparameters and mean function were tuned on the calibration rows"),
        ([], "Valid: kernel and noise were fixed beforehand"),
        pytest.param(np.arange(10), "Valid: .*10 tuning rows, and the other 30 are calibration rows"),
    ],
)
def test_what_is_guaranteed(tuning_rows, sentence):
    model = adapted(tuning_rows=tuning_rows)
    np.testing.assert_array_equal(model.tuning_rows_, [] if tuning_rows is None else tuning_rows)
    assert re.match(sentence, model.guarantee_)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"mean": [1.0, 2.0]}, r"mean must be a finite number, got \[1\.0, 2\.0\]; of a function m, give y - m\(X\)"),
        ({"mean": np.nan}, "mean must be a finite number"),
        ({"tuning_rows": 5}, "tuning_rows must be a list of row numbers"),
        ({"noise_variance": -1.0}, "noise_variance"),
        ({"noise_variance": None}, "noise_variance must be a number"),
        ({"gamma": 0.5}, "gamma"),
    ],
)
def test_what_is_refused(options, message):
    with pytest.raises(ValueError, match=message):
        adapted(**options)


# scikit-learn


@pytest.mark.parametrize(("normalize_y", "white"), [(False, 0.02), (True, 0.0), (True, 0.02)])
def test_sklearn(normalize_y, white):
    kernel = ConstantKernel(0.7) * RBF([0.8, 1.5]) + (WhiteKernel(white) if white else ConstantKernel(0.1))
    gpr = GaussianProcessRegressor(kernel, alpha=0.03, normalize_y=normalize_y, optimizer=None).fit(X, Y + MEAN)
    model = from_sklearn(gpr)
    mean, std = gpr.predict(NEW, return_std=True)
    our_mean, our_std = model.predict(NEW, return_std=True)
    scale, centre = (np.std(Y), Y.mean() + MEAN) if normalize_y else (1.0, 0.0)
    np.testing.assert_allclose(our_mean, mean, rtol=1e-10)
    np.testing.assert_allclose(our_std**2, std**2 + 0.03 * scale**2, rtol=1e-8)
    ours = fixed_model(kernel, 0.03).fit(X, (Y + MEAN - centre) / scale)
    expected = centre + scale * ours.predict_interval(NEW, 0.9)
    np.testing.assert_allclose(model.predict_interval(NEW, 0.9), expected, atol=1e-8)
    assert model.guarantee_.startswith("Not valid in general: ")


def test_sklearn_with_tuning_rows_and_names():
    frame, names = (pd.DataFrame(rows, columns=["a", "b"]) for rows in (X, NEW))
    learnt = GaussianProcessRegressor(KERNEL + WhiteKernel(0.1)).fit(frame[:20], Y[:20])
    gpr = GaussianProcessRegressor(learnt.kernel_, optimizer=None).fit(frame, Y)
    model = from_sklearn(gpr, tuning_rows=np.arange(20))
    assert model.guarantee_.startswith("Valid: ")
    np.testing.assert_allclose(model.predict(names), gpr.predict(names), atol=1e-8)
    with pytest.raises(ValueError, match="feature names"):
        model.predict_interval(names[["b", "a"]])


def test_sklearn_that_is_refused():
    rows = GaussianProcessRegressor(optimizer=None)
    with pytest.raises(ValueError, match="gpr must be a GaussianProcessRegressor, got ConformalGPRegressor"):
        from_sklearn(ConformalGPRegressor())
    with pytest.raises(NotFittedError):
        from_sklearn(rows)
    with pytest.raises(ValueError, match="one target a row, got 2"):
        from_sklearn(clone(rows).fit(X, np.column_stack([Y, Y])))
    with pytest.raises(ValueError, match="an alpha for each row"):
        from_sklearn(clone(rows).set_params(alpha=np.linspace(0.1, 0.2, 40)).fit(X, Y))
    with pytest.raises(ValueError, match="tuning_rows must not be empty with normalize_y=True"):
        from_sklearn(clone(rows).set_params(alpha=0.1, normalize_y=True).fit(X, Y), tuning_rows=[])


def test_sklearn_with_normalize_y_takes_the_scale_of_the_tuning_rows():
    """Else the other rows would have a part in it, and the test row none."""
    own = np.arange(20)
    learnt = GaussianProcessRegressor(KERNEL + WhiteKernel(0.1), normalize_y=True).fit(X[own], Y[own])
    gpr = GaussianProcessRegressor(learnt.kernel_, optimizer=None, normalize_y=True)
    model = from_sklearn(gpr.fit(X, Y + MEAN), tuning_rows=own)
    assert model.guarantee_.startswith("Valid: ")
    centre = Y[own].mean()
    scale = Y[own].std()
    scaled = clone(gpr).set_params(normalize_y=False).fit(X, (Y - centre) / scale)
    mean, std = scaled.predict(NEW, return_std=True)
    found, our_std = model.predict(NEW, return_std=True)
    np.testing.assert_allclose(found, centre + MEAN + scale * mean, rtol=1e-8)
    np.testing.assert_allclose(our_std, scale * std, rtol=1e-6)


# GPyTorch


@pytest.fixture(scope="module")
def gpytorch():
    pytest.importorskip("torch", reason="needs the extra gpytorch")
    return pytest.importorskip("gpytorch", reason="needs the extra gpytorch")


def process(gpytorch, kernel, mean=None, dtype="float64", factor=1.0):
    """A model as GPyTorch's pages write it, at parameters other than the usual ones, and its likelihood."""
    torch = pytest.importorskip("torch")
    torch.manual_seed(0)

    class Process(gpytorch.models.ExactGP):
        def forward(self, x):
            return gpytorch.distributions.MultivariateNormal(self.mean_module(x), factor * self.covar_module(x))

    likelihood = gpytorch.likelihoods.GaussianLikelihood()
    rows = (torch.as_tensor(part, dtype=getattr(torch, dtype)) for part in (X, Y + 3.0))
    model = Process(*rows, likelihood)
    model.covar_module, model.mean_module = kernel, mean or gpytorch.means.ConstantMean()
    model.to(getattr(torch, dtype))
    for parameter in model.parameters():
        parameter.data += 0.3 * torch.rand_like(parameter)
    return model.eval(), likelihood.eval()


KERNELS = {
    "rbf, each input": lambda k: k.ScaleKernel(k.RBFKernel(ard_num_dims=2)),
    "matern32": lambda k: k.ScaleKernel(k.MaternKernel(nu=1.5)),
    "sum": lambda k: k.ScaleKernel(k.MaternKernel(nu=0.5)) + k.LinearKernel(),
    "product": lambda k: k.RQKernel() * k.MaternKernel(nu=2.5, ard_num_dims=2),
}


@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_gpytorch(gpytorch, kernel, dtype):
    torch = pytest.importorskip("torch")
    mean = gpytorch.means.ZeroMean() if kernel == "sum" else gpytorch.means.ConstantMean()
    model, likelihood = process(gpytorch, KERNELS[kernel](gpytorch.kernels), mean, dtype)
    conformal = from_gpytorch(model, likelihood)
    assert conformal.guarantee_.startswith("Not valid in general: ")
    with torch.no_grad():
        rows = torch.as_tensor(np.vstack([X, NEW[:1]]), dtype=getattr(torch, dtype))
        theirs = likelihood(model(torch.as_tensor(NEW, dtype=rows.dtype)))
        K = model.covar_module(rows).to_dense().numpy() + likelihood.noise.item() * np.eye(len(rows))
        centre = float(model.mean_module(rows[:1]))
    found, std = conformal.predict(NEW, return_std=True)
    tolerance = 1e-8 if dtype == "float64" else 1e-3
    np.testing.assert_allclose(found, theirs.mean.numpy(), atol=tolerance)
    np.testing.assert_allclose(std, theirs.stddev.numpy(), atol=tolerance)
    C, label = np.linalg.inv(K.astype(float)), Y.mean() + 3.0
    scores = np.abs(C @ (np.append(Y + 3.0, label) - centre)) / np.sqrt(np.diag(C))  # by the definition
    assert conformal.predict_p(NEW[:1], [label]) == pytest.approx(np.mean(scores >= scores[-1]), abs=1e-12)


@pytest.mark.parametrize(
    ("kernel", "mean", "message"),
    [
        (lambda k: k.CosineKernel(), None, r"kernel gpytorch.*CosineKernel is not supported; known are ScaleKernel"),
        (lambda k: type("Own", (k.RBFKernel,), {})(), None, r"kernel .*Own is not supported"),
        (lambda k: k.RBFKernel(active_dims=[0]), None, "RBFKernel has active_dims"),
        (lambda k: k.RQKernel(ard_num_dims=2), None, "lengthscale of RQKernel must be one number"),
        (lambda k: k.RBFKernel(), lambda m: m.LinearMean(2), r"mean gpytorch.*LinearMean is not supported"),
    ],
)
def test_gpytorch_modules_that_are_refused(gpytorch, kernel, mean, message):
    with pytest.raises(ValueError, match=message):
        from_gpytorch(*process(gpytorch, kernel(gpytorch.kernels), mean and mean(gpytorch.means)))


def test_gpytorch_models_that_are_refused(gpytorch):
    torch = pytest.importorskip("torch")
    model, likelihood = process(gpytorch, gpytorch.kernels.RBFKernel())
    noises = gpytorch.likelihoods.FixedNoiseGaussianLikelihood(torch.full((40,), 0.1))
    with pytest.raises(ValueError, match="FixedNoiseGaussianLikelihood is not supported; known are GaussianLikelihood"):
        from_gpytorch(model, noises)
    with pytest.raises(ValueError, match="it has no train_inputs"):
        from_gpytorch(likelihood, likelihood)
    with pytest.raises(ValueError, match="model has other covariances than its kernel"):
        from_gpytorch(*process(gpytorch, gpytorch.kernels.RBFKernel(), factor=2.0))
    model.outcome_transform = torch.nn.Identity()
    with pytest.raises(ValueError, match="model has an outcome_transform of type Identity"):
        from_gpytorch(model, likelihood)


def test_single_task_gp():
    """BoTorch's default, with its own scale of the targets."""
    torch = pytest.importorskip("torch")
    models = pytest.importorskip("botorch.models", reason="botorch is not installed: pip install botorch")
    rows = torch.as_tensor(X), torch.as_tensor(Y[:, None] + MEAN)
    theirs = models.SingleTaskGP(*rows).eval()
    conformal = from_gpytorch(theirs, theirs.likelihood)
    with torch.no_grad():
        found = theirs.posterior(torch.as_tensor(NEW), observation_noise=True)
    mean, std = conformal.predict(NEW, return_std=True)
    np.testing.assert_allclose(mean, found.mean.numpy().ravel(), atol=1e-6)
    np.testing.assert_allclose(std**2, found.variance.numpy().ravel(), rtol=1e-5)
