"""Peers that may not be installed: GPyTorch and gpyconform, with the kernels of ``problems``."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from importlib.util import find_spec
from typing import Any

import numpy as np
from sklearn.gaussian_process.kernels import Kernel, Matern

from benchmarks.problems import Array, Rows
from benchmarks.results import Section


def installed(section: Section, package: str) -> bool:
    """Whether ``package`` can be imported; if not, the section says how to get it."""
    if find_spec(package) is None:
        section.remark(f"{package} is not installed, so it was left out: `pip install conformal-gp[bench]`.")
        return False
    return True


def exact_model(base: Any, rows: Rows, kernel: Kernel, noise: float) -> Any:
    """Exact Gaussian process in GPyTorch, in double precision, zero mean; a kernel is an amplitude times a shape.

    ``base`` is ``gpytorch.models.ExactGP``, or gpyconform's ``ExactGPCP``.
    """
    import gpytorch
    import torch

    amplitude, shape = kernel.k1.constant_value, kernel.k2
    ard = {"ard_num_dims": rows.X.shape[1]} if shape.anisotropic else {}

    class Model(base):
        def __init__(self, X: Any, y: Any, likelihood: Any):
            super().__init__(X, y, likelihood)
            self.mean_module = gpytorch.means.ZeroMean()
            if isinstance(shape, Matern):
                stationary = gpytorch.kernels.MaternKernel(nu=shape.nu, **ard)
            else:
                stationary = gpytorch.kernels.RBFKernel(**ard)
            self.covar_module = gpytorch.kernels.ScaleKernel(stationary)

        def forward(self, X: Any) -> Any:
            return gpytorch.distributions.MultivariateNormal(self.mean_module(X), self.covar_module(X))

    likelihood = gpytorch.likelihoods.GaussianLikelihood()
    model = Model(torch.from_numpy(rows.X), torch.from_numpy(rows.y), likelihood).double()
    double = partial(torch.as_tensor, dtype=torch.float64)  # a bare float would be rounded to single precision
    model.covar_module.outputscale = double(amplitude)
    model.covar_module.base_kernel.lengthscale = double(shape.length_scale)
    model.likelihood.noise = double(noise)
    return model


@contextmanager
def exact_arithmetic() -> Iterator[None]:
    """Cholesky factors of any size, where GPyTorch would go over to approximations above 800 rows."""
    from gpytorch import settings

    with settings.max_cholesky_size(10**6), settings.fast_computations(False, False, False):
        yield


def gpytorch_likelihood(rows: Rows, kernel: Kernel, noise: float) -> Callable[[], float]:
    """One negative log likelihood with all its gradients, by GPyTorch."""
    import gpytorch

    model = exact_model(gpytorch.models.ExactGP, rows, kernel, noise)
    objective = gpytorch.mlls.ExactMarginalLogLikelihood(model.likelihood, model)
    model.train()

    def likelihood() -> float:
        model.zero_grad()
        with exact_arithmetic():
            # GPyTorch divides by the number of rows.
            value = -objective(model(*model.train_inputs), model.train_targets) * rows.y.size
            value.backward()
        return value.item()

    return likelihood


def gpytorch_prediction(rows: Rows, kernel: Kernel, noise: float, X: Array) -> Callable[[], tuple[Array, Array]]:
    """Means and standard deviations of new labels, by GPyTorch; its factorisation is kept between calls."""
    import gpytorch
    import torch

    model = exact_model(gpytorch.models.ExactGP, rows, kernel, noise)
    model.eval()
    inputs = torch.from_numpy(X)

    def predict() -> tuple[Array, Array]:
        with torch.no_grad(), exact_arithmetic():
            output = model.likelihood(model(inputs))
            return output.mean.numpy(), np.sqrt(output.variance.numpy())

    return predict


def gpyconform_intervals(
    rows: Rows, kernel: Kernel, noise: float, X: Array, levels: tuple[float, ...]
) -> Callable[[], Array]:
    """Full conformal intervals by gpyconform, of shape (m, 2, levels); ``cpmode="symmetric"`` is the paper's score."""
    import gpyconform
    import torch

    model = exact_model(gpyconform.ExactGPCP, rows, kernel, noise)
    model.eval()
    inputs = torch.from_numpy(X)

    def intervals() -> Array:
        with torch.no_grad(), exact_arithmetic():
            found = model(inputs, gamma=2.0, confs=list(levels))
        return np.stack([found(level).numpy() for level in levels], axis=-1)

    return intervals
