"""Processes of GPyTorch: the same predictions, and intervals by the definition from its own matrices."""

from __future__ import annotations

import numpy as np
import pytest

from cases import make_data
from conformal_gp import ConformalGPRegressor
from conformal_gp.adapters import from_gpytorch

torch = pytest.importorskip("torch", reason="needs the extra gpytorch")
gpytorch = pytest.importorskip("gpytorch", reason="needs the extra gpytorch")
kernels, means = gpytorch.kernels, gpytorch.means

X, Y = make_data(5, 40)
NEW, _ = make_data(6, 10)
KERNELS = {
    "rbf, each input": lambda: kernels.ScaleKernel(kernels.RBFKernel(ard_num_dims=2)),
    "matern32": lambda: kernels.ScaleKernel(kernels.MaternKernel(nu=1.5)),
    "sum": lambda: kernels.ScaleKernel(kernels.MaternKernel(nu=0.5)) + kernels.LinearKernel(),
    "product": lambda: kernels.RQKernel() * kernels.MaternKernel(nu=2.5, ard_num_dims=2),
}
MEANS = {
    "zero": means.ZeroMean,
    "constant": means.ConstantMean,
    "linear": lambda: means.LinearMean(2),
    "no bias": lambda: means.LinearMean(2, bias=False),
}


class Process(gpytorch.models.ExactGP):
    """As GPyTorch's pages write it."""

    def __init__(self, likelihood, kernel, mean, inputs=X, labels=Y, dtype=torch.float64):
        super().__init__(torch.as_tensor(inputs, dtype=dtype), torch.as_tensor(labels, dtype=dtype), likelihood)
        self.covar_module, self.mean_module = kernel, mean
        self.to(dtype)

    def forward(self, x):
        return gpytorch.distributions.MultivariateNormal(self.mean_module(x), self.covar_module(x))


def process(kernel, mean, dtype=torch.float64, kind=Process):
    torch.manual_seed(0)
    likelihood = gpytorch.likelihoods.GaussianLikelihood()
    model = kind(likelihood, kernel, mean, dtype=dtype)
    for parameter in model.parameters():
        parameter.data += 0.3 * torch.rand_like(parameter)
    return model.eval(), likelihood.eval()


@pytest.mark.parametrize("mean", MEANS)
@pytest.mark.parametrize("kernel", KERNELS)
def test_predictions_and_intervals_are_those_of_the_process(kernel, mean):
    model, likelihood = process(KERNELS[kernel](), MEANS[mean]())
    conformal = from_gpytorch(model, likelihood, design=[])
    with torch.no_grad():
        theirs = likelihood(model(torch.as_tensor(NEW)))
        shift = [model.mean_module(torch.as_tensor(inputs)).numpy() for inputs in (X, NEW)]
    found, std = conformal.predict(NEW, return_std=True)
    np.testing.assert_allclose(found, theirs.mean.numpy(), atol=1e-8)
    np.testing.assert_allclose(std, theirs.stddev.numpy(), atol=1e-8)
    ours = ConformalGPRegressor(
        conformal.kernel_, noise_variance=likelihood.noise.item(), mean="zero", tuning="fixed", scale_inputs=False
    )
    expected = ours.fit(X, Y - shift[0]).predict_interval(NEW, 0.9) + shift[1][:, None]
    np.testing.assert_allclose(conformal.predict_interval(NEW, 0.9), expected, atol=1e-8)


def test_p_values_by_the_definition_from_their_own_matrix():
    model, likelihood = process(KERNELS["rbf, each input"](), means.ConstantMean())
    label = Y.mean()
    rows = torch.as_tensor(np.vstack([X, NEW[:1]]))
    with torch.no_grad():
        K = model.covar_module(rows).to_dense().numpy() + likelihood.noise.item() * np.eye(len(rows))
    C = np.linalg.inv(K)
    scores = np.abs(C @ (np.append(Y, label) - model.mean_module.constant.item())) / np.sqrt(np.diag(C))
    expected = np.mean(scores >= scores[-1])
    assert from_gpytorch(model, likelihood).predict_p(NEW[:1], [label]) == pytest.approx(expected)


def test_single_precision_and_rows_added_after_training():
    model, likelihood = process(KERNELS["matern32"](), means.ConstantMean(), torch.float32)
    model.set_train_data(torch.as_tensor(X[:30]).float(), torch.as_tensor(Y[:30]).float(), strict=False)
    model.set_train_data(torch.as_tensor(X).float(), torch.as_tensor(Y).float(), strict=False)
    conformal = from_gpytorch(model, likelihood, design=np.arange(30))
    assert conformal.guarantee_.startswith("Exact")
    with torch.no_grad():
        theirs = likelihood(model(torch.as_tensor(NEW).float())).mean.numpy()
    np.testing.assert_allclose(conformal.predict(NEW), theirs, atol=1e-3)


class Doubled(Process):
    """Whose forward does more than its modules say."""

    def forward(self, x):
        return gpytorch.distributions.MultivariateNormal(self.mean_module(x), 2.0 * self.covar_module(x))


class Own(kernels.RBFKernel):
    """A kernel of the user's own."""


@pytest.mark.parametrize(
    ("kernel", "mean", "message"),
    [
        (kernels.CosineKernel, means.ZeroMean, "kernel gpytorch.*CosineKernel is not supported; known are ScaleKernel"),
        (Own, means.ZeroMean, "kernel test_gpytorch.Own is not supported"),
        (lambda: kernels.RBFKernel(active_dims=[0]), means.ZeroMean, "RBFKernel has active_dims"),
        (lambda: kernels.RQKernel(ard_num_dims=2), means.ZeroMean, "lengthscale of RQKernel must be one number"),
        (kernels.RBFKernel, lambda: means.ConstantMean(batch_shape=torch.Size([2])), "constant of ConstantMean must"),
        (kernels.RBFKernel, means.ConstantMeanGrad, "mean gpytorch.*ConstantMeanGrad is not supported"),
    ],
)
def test_what_is_refused(kernel, mean, message):
    with pytest.raises(ValueError, match=message):
        from_gpytorch(*process(kernel(), mean()))


def test_models_that_are_refused():
    model, likelihood = process(kernels.RBFKernel(), means.ZeroMean())
    noises = gpytorch.likelihoods.FixedNoiseGaussianLikelihood(torch.full((40,), 0.1))
    with pytest.raises(ValueError, match="FixedNoiseGaussianLikelihood is not supported; known are GaussianLikelihood"):
        from_gpytorch(model, noises)
    with pytest.raises(ValueError, match="it has no train_inputs"):
        from_gpytorch(likelihood, likelihood)
    with pytest.raises(ValueError, match="model has other covariances than its kernel"):
        from_gpytorch(*process(kernels.RBFKernel(), means.ZeroMean(), kind=Doubled))
    model.outcome_transform = torch.nn.Identity()
    with pytest.raises(ValueError, match="model has an outcome_transform"):
        from_gpytorch(model, likelihood)
