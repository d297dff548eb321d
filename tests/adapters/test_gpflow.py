"""Processes of GPflow: the same predictions, and intervals of equal hyperparameters."""

from __future__ import annotations

import os

import numpy as np
import pytest

from cases import make_data
from conformal_gp import ConformalGPRegressor
from conformal_gp.adapters import from_gpflow

os.environ.setdefault("TF_USE_LEGACY_KERAS", "1")
gpflow = pytest.importorskip("gpflow", reason="needs the extra gpflow")
kernels, functions = gpflow.kernels, gpflow.functions

X, Y = make_data(5, 40)
NEW, _ = make_data(6, 10)
KERNELS = {
    "rbf, each input": lambda: kernels.SquaredExponential(2.0, [0.7, 1.5]),
    "matern12": lambda: kernels.Matern12(0.5, 1.3),
    "matern52 and others": lambda: (
        kernels.Matern52() + kernels.Linear(0.2) + kernels.Constant(0.3) + kernels.White(0.1)
    ),
    "product": lambda: kernels.Matern32(lengthscales=[0.7, 1.5]) * kernels.RationalQuadratic(alpha=2.0),
}
MEANS = {
    "none": lambda: None,
    "constant": lambda: functions.Constant(3.0),
    "linear": lambda: functions.Linear(A=[[1.0], [-2.0]], b=0.5),
}


def process(kernel, mean=None, likelihood=None, labels=Y[:, None]):
    return gpflow.models.GPR(
        (X, labels), kernel, mean_function=mean, likelihood=likelihood or gpflow.likelihoods.Gaussian(0.1)
    )


@pytest.mark.parametrize("mean", MEANS)
@pytest.mark.parametrize("kernel", KERNELS)
def test_predictions_and_intervals_are_those_of_the_process(kernel, mean):
    model = process(KERNELS[kernel](), MEANS[mean]())
    conformal = from_gpflow(model, design=[])
    theirs, variance = (part.numpy()[:, 0] for part in model.predict_y(NEW))
    found, std = conformal.predict(NEW, return_std=True)
    np.testing.assert_allclose(found, theirs, atol=1e-8)
    np.testing.assert_allclose(std**2, variance, atol=1e-8)
    shift = [model.mean_function(inputs).numpy()[:, 0] for inputs in (X, NEW)]
    ours = ConformalGPRegressor(conformal.kernel_, noise_variance=0.1, mean="zero", tuning="fixed", scale_inputs=False)
    expected = ours.fit(X, Y - shift[0]).predict_interval(NEW, 0.9) + shift[1][:, None]
    np.testing.assert_allclose(conformal.predict_interval(NEW, 0.9), expected, atol=1e-8)


def test_rows_added_after_training_and_a_scale():
    model = gpflow.models.GPR(
        (X[:20], Y[:20, None]), kernels.Matern52(), likelihood=gpflow.likelihoods.Gaussian(scale=0.3)
    )
    gpflow.optimizers.Scipy().minimize(model.training_loss, model.trainable_variables, options={"maxiter": 5})
    whole = gpflow.models.GPR((X, Y[:, None]), model.kernel, likelihood=model.likelihood)
    conformal = from_gpflow(whole, design=np.arange(20))
    assert conformal.guarantee_.startswith("Exact")
    np.testing.assert_allclose(conformal.predict(NEW), whole.predict_y(NEW)[0].numpy()[:, 0], atol=1e-8)
    assert from_gpflow(model).guarantee_.startswith("Not exact")


class Own(kernels.Matern52):
    """A kernel of the user's own."""


@pytest.mark.parametrize(
    ("model", "message"),
    [
        (lambda: process(kernels.Cosine()), "kernel gpflow.*Cosine is not supported; known are SquaredExponential"),
        (lambda: process(Own()), "kernel test_gpflow.Own is not supported"),
        (lambda: process(kernels.Matern52(active_dims=[0])), "Matern52 has active_dims"),
        (lambda: process(kernels.Linear([1.0, 2.0])), "variance of Linear must be one number"),
        (lambda: process(kernels.Matern52(), functions.Polynomial(2)), "mean function gpflow.*Polynomial is not"),
        (
            lambda: process(kernels.Matern52(), likelihood=gpflow.likelihoods.Gaussian(functions.Constant(0.1))),
            "variance of the likelihood must be one number",
        ),
        (lambda: process(kernels.Matern52(), labels=np.column_stack([Y, Y])), r"one label a row, got .*\(40, 2\)"),
        (lambda: gpflow.models.SGPR((X, Y[:, None]), kernels.Matern52(), X[:5]), "must be an exact process"),
        (lambda: 5, "must be an exact process, gpflow.models.GPR; got builtins.int"),
    ],
)
def test_what_is_refused(model, message):
    with pytest.raises(ValueError, match=message):
        from_gpflow(model())
