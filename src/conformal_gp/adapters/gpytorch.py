"""A trained exact process of GPyTorch."""

from __future__ import annotations

from functools import reduce
from operator import add, mul
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from sklearn.gaussian_process.kernels import RBF, ConstantKernel, DotProduct, Kernel, Matern, RationalQuadratic

from conformal_gp.adapters.foreign import COMPARED, checked, convert, lengths, numbers, one
from conformal_gp.adapters.process import from_process
from conformal_gp.regressor import ConformalGPRegressor

_KERNELS = {
    "ScaleKernel": lambda k: ConstantKernel(one("outputscale", k.outputscale)) * _kernel(k.base_kernel),
    "RBFKernel": lambda k: RBF(lengths(k.lengthscale)),
    "MaternKernel": lambda k: Matern(lengths(k.lengthscale), nu=k.nu),
    "RQKernel": lambda k: RationalQuadratic(one("lengthscale of RQKernel", k.lengthscale), one("alpha", k.alpha)),
    "LinearKernel": lambda k: (
        ConstantKernel(one("variance of LinearKernel", k.variance)) * DotProduct(0.0, sigma_0_bounds="fixed")
    ),
    "AdditiveKernel": lambda k: reduce(add, map(_kernel, k.kernels)),
    "ProductKernel": lambda k: reduce(mul, map(_kernel, k.kernels)),
}
_MEANS = {
    "ZeroMean": lambda m: 0.0,
    "ConstantMean": lambda m: one("constant of ConstantMean", m.constant),
    "LinearMean": lambda m: np.r_[0.0 if m.bias is None else numbers(m.bias), numbers(m.weights).ravel()],
}
_NOISES = {"GaussianLikelihood": lambda likelihood: one("noise", likelihood.noise)}


def from_gpytorch(
    model: Any, likelihood: Any, *, design: ArrayLike | None = None, gamma: float = 2.0
) -> ConformalGPRegressor:
    """Full conformal regressor of a trained ``ExactGP`` of GPyTorch, with the hyperparameters that it learnt.

    Parameters
    ----------
    model : gpytorch.models.ExactGP
        With a ``covar_module`` made of ``ScaleKernel``, ``RBFKernel``, ``MaternKernel``, ``RQKernel``,
        ``LinearKernel``, their sums and products, and a ``mean_module`` that is ``ZeroMean``, ``ConstantMean`` or
        ``LinearMean``, which is kept at the coefficients that were learnt (see :func:`from_process`). That its
        ``forward`` does nothing else is checked on some of the rows. Single precision is taken over; all that follows
        is computed in double precision.
    likelihood : gpytorch.likelihoods.GaussianLikelihood
        With one noise for all rows.
    design, gamma
        As in :func:`from_process`. Rows to rank are added after training, by
        ``model.set_train_data(X, y, strict=False)``.

    Returns
    -------
    model : ConformalGPRegressor
        Fitted to the training rows of the model; ``guarantee_`` says what holds.

    Examples
    --------
    With ``model`` and ``likelihood`` as in :doc:`/guides/gpytorch`:

    >>> from conformal_gp.adapters import from_gpytorch
    >>> conformal = from_gpytorch(model, likelihood)  # doctest: +SKIP
    >>> conformal.predict_interval(X_test, confidence_level=0.9)  # doctest: +SKIP
    """
    for name in ("train_inputs", "train_targets", "covar_module", "mean_module"):
        if getattr(model, name, None) is None:
            raise ValueError(f"model must be an ExactGP of GPyTorch with training rows; it has no {name}.")
    for name in ("input_transform", "outcome_transform"):
        if hasattr(model, name):
            raise ValueError(f"model has an {name}; transform inputs and labels before the model instead.")
    (X, *others), y = model.train_inputs, model.train_targets
    if others or X.ndim != 2 or y.ndim != 1:
        raise ValueError("model must have one matrix of inputs and one label a row, no batches and no tasks.")
    conformal = from_process(
        _kernel(model.covar_module),
        numbers(X),
        numbers(y),
        noise_variance=convert(likelihood, _NOISES, "gpytorch", "likelihood"),
        mean=convert(model.mean_module, _MEANS, "gpytorch", "mean"),
        design=design,
        gamma=gamma,
    )
    theirs = model.forward(X[:COMPARED])
    return checked(conformal, "32" in str(X.dtype), theirs.covariance_matrix, theirs.mean)


def _kernel(kernel: Any) -> Kernel:
    """As a kernel of scikit-learn."""
    if getattr(kernel, "active_dims", None) is not None:
        raise ValueError(f"kernel {type(kernel).__name__} has active_dims, which is not supported.")
    return convert(kernel, _KERNELS, "gpytorch", "kernel")
