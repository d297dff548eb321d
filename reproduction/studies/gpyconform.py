"""gpyconform, the paper's own package, trained as its documentation shows: a peer in studies and benchmarks."""

from __future__ import annotations

import warnings
from collections.abc import Sequence

import numpy as np

from conformal_gp.arrays import Array


def gpyconform_intervals(
    X: Array, y: Array, X_test: Array, levels: Sequence[float], each: bool, seed: int = 0
) -> Array:
    """Ends of gpyconform's intervals, (m, 2, levels): Matérn 5/2, a length scale for each input or one."""
    import gpytorch
    import torch
    from gpyconform import ExactGPCP

    torch.manual_seed(seed)
    torch.set_num_threads(1)
    scale = lambda Z: (Z - X.mean(axis=0)) / X.std(axis=0)  # noqa: E731
    tensor = lambda a: torch.as_tensor(a, dtype=torch.float64)  # noqa: E731
    ard = X.shape[1] if each else None

    class Process(ExactGPCP):
        def __init__(self, train_x: torch.Tensor, train_y: torch.Tensor, likelihood: gpytorch.likelihoods.Likelihood):
            super().__init__(train_x, train_y, likelihood, cpmode="symmetric")
            self.mean_module = gpytorch.means.ConstantMean()
            self.covar_module = gpytorch.kernels.ScaleKernel(gpytorch.kernels.MaternKernel(nu=2.5, ard_num_dims=ard))

        def forward(self, x: torch.Tensor) -> gpytorch.distributions.MultivariateNormal:
            return gpytorch.distributions.MultivariateNormal(self.mean_module(x), self.covar_module(x))

    likelihood = gpytorch.likelihoods.GaussianLikelihood()
    process = Process(tensor(scale(X)), tensor(y), likelihood).double()
    likelihood.double()
    process.train()
    likelihood.train()
    optimiser = torch.optim.Adam(process.parameters(), lr=0.1)
    objective = gpytorch.mlls.ExactMarginalLogLikelihood(likelihood, process)
    for _ in range(100):
        optimiser.zero_grad()
        loss = -objective(process(*process.train_inputs), process.train_targets)
        loss.backward()
        optimiser.step()
    process.eval()
    likelihood.eval()
    with torch.no_grad(), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = process(tensor(scale(X_test)), gamma=2, confs=levels)
    return np.stack([np.asarray(found(level)) for level in levels], axis=-1)
