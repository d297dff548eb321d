"""A trained exact process of GPflow."""

from __future__ import annotations

from functools import reduce
from operator import add, mul
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from sklearn.gaussian_process.kernels import (
    RBF,
    ConstantKernel,
    DotProduct,
    Kernel,
    Matern,
    RationalQuadratic,
    WhiteKernel,
)

from conformal_gp.adapters.foreign import COMPARED, checked, convert, lengths, numbers, one
from conformal_gp.adapters.process import from_process
from conformal_gp.regressor import ConformalGPRegressor


def _variance(kernel: Any) -> Kernel:
    return ConstantKernel(one(f"variance of {type(kernel).__name__}", kernel.variance))


_KERNELS = {
    "SquaredExponential": lambda k: _variance(k) * RBF(lengths(k.lengthscales)),
    "Matern12": lambda k: _variance(k) * Matern(lengths(k.lengthscales), nu=0.5),
    "Matern32": lambda k: _variance(k) * Matern(lengths(k.lengthscales), nu=1.5),
    "Matern52": lambda k: _variance(k) * Matern(lengths(k.lengthscales), nu=2.5),
    "RationalQuadratic": lambda k: (
        _variance(k)
        * RationalQuadratic(one("lengthscales of RationalQuadratic", k.lengthscales), one("alpha", k.alpha))
    ),
    "Linear": lambda k: _variance(k) * DotProduct(0.0, sigma_0_bounds="fixed"),
    "Constant": _variance,
    "White": lambda k: WhiteKernel(one("variance of White", k.variance)),
    "Sum": lambda k: reduce(add, map(_kernel, k.kernels)),
    "Product": lambda k: reduce(mul, map(_kernel, k.kernels)),
}
_MEANS = {
    "Zero": lambda m: 0.0,
    "Constant": lambda m: one("c of the mean function", m.c),
    "Linear": lambda m: np.r_[one("b of the mean function", m.b), numbers(m.A).ravel()],
}
_NOISES = {
    "Gaussian": lambda likelihood: (
        one("variance of the likelihood", likelihood.variance)
        if likelihood.scale is None
        else one("scale of the likelihood", likelihood.scale) ** 2
    )
}


def from_gpflow(model: Any, *, design: ArrayLike | None = None, gamma: float = 2.0) -> ConformalGPRegressor:
    """Full conformal regressor of a trained ``GPR`` of GPflow, with the hyperparameters that it learnt.

    Parameters
    ----------
    model : gpflow.models.GPR
        With a kernel made of ``SquaredExponential``, ``Matern12``, ``Matern32``, ``Matern52``,
        ``RationalQuadratic``, ``Linear``, ``Constant`` and ``White``, their sums and products, a Gaussian likelihood
        of one variance, and no mean function, or ``Constant`` or ``Linear``, which is kept at the coefficients that
        were learnt (see :func:`from_process`). That nothing was lost is checked on some of the rows.
    design, gamma
        As in :func:`from_process`. Rows to rank are added after training by ``model.data = (X, Y)``.

    Returns
    -------
    model : ConformalGPRegressor
        Fitted to the training rows of the model; ``guarantee_`` says what holds.

    Examples
    --------
    With ``model`` as in :doc:`/guides/own-process`:

    >>> from conformal_gp.adapters import from_gpflow
    >>> conformal = from_gpflow(model)  # doctest: +SKIP
    >>> conformal.predict_interval(X_test, confidence_level=0.9)  # doctest: +SKIP
    """
    kind = type(model)
    if kind.__module__.partition(".")[0] != "gpflow" or kind.__name__ != "GPR":
        raise ValueError(f"model must be an exact process, gpflow.models.GPR; got {kind.__module__}.{kind.__name__}.")
    X, Y = map(numbers, model.data)
    if Y.ndim != 2 or Y.shape[1] != 1:
        raise ValueError(f"model must have one label a row, got labels of shape {Y.shape}; train one model for each.")
    conformal = from_process(
        _kernel(model.kernel),
        X,
        Y[:, 0],
        noise_variance=convert(model.likelihood, _NOISES, "gpflow", "likelihood"),
        mean=convert(model.mean_function, _MEANS, "gpflow", "mean function"),
        design=design,
        gamma=gamma,
    )
    some = model.data[0][:COMPARED]
    single = "32" in str(some.dtype)
    return checked(conformal, single, model.kernel(some), model.mean_function(some))


def _kernel(kernel: Any) -> Kernel:
    """As a kernel of scikit-learn."""
    if getattr(kernel, "active_dims", slice(None)) != slice(None):
        raise ValueError(f"kernel {type(kernel).__name__} has active_dims, which is not supported.")
    return convert(kernel, _KERNELS, "gpflow", "kernel")
