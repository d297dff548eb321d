"""Whether a kernel can be used with some inputs: errors that name it, before any work is done."""

from __future__ import annotations

import numpy as np
from sklearn.gaussian_process.kernels import CompoundKernel, Hyperparameter, Kernel

from conformal_gp.gp.covariance import Pairs, covariance
from conformal_gp.types import Array


def check_kernel(kernel: Kernel, X: Array) -> None:
    """Raise a ValueError that says what is wrong with a kernel, or that it does not take these inputs.

    >>> from sklearn.gaussian_process.kernels import RBF
    >>> check_kernel(RBF(-1.0), np.zeros((2, 1)))
    Traceback (most recent call last):
    ...
    ValueError: kernel RBF(length_scale=-1): length_scale must be positive and finite, got -1.0.
    """
    if any(isinstance(part, CompoundKernel) for part in _parts(kernel)):
        raise ValueError(
            f"kernel {kernel} holds a CompoundKernel, several kernels side by side, which is no covariance function; "
            "give a list of kernels to choose from, or their sum."
        )
    for hyperparameter in kernel.hyperparameters:
        _check_hyperparameter(kernel, hyperparameter)
    try:
        with np.errstate(all="ignore"):
            kernel(X[:1])
            values = covariance(kernel, Pairs(X[:3], X[:3]))[0]
    except ArithmeticError:
        values = np.array(np.nan)
    except ValueError as error:
        raise ValueError(f"kernel {kernel} does not take {X.shape[1]} inputs: {error}") from error
    if not np.isfinite(values).all():
        raise ValueError(f"kernel {kernel} has values that are not finite.")


def _parts(kernel: Kernel) -> list[Kernel]:
    """A kernel, and the kernels that it is made of."""
    return [kernel, *(value for value in kernel.get_params().values() if isinstance(value, Kernel))]


def _check_hyperparameter(kernel: Kernel, hyperparameter: Hyperparameter) -> None:
    """Values and bounds of what can be learnt, on a logarithmic scale."""
    if hyperparameter.fixed:
        return
    name = hyperparameter.name
    value = kernel.get_params()[name]
    size = np.asarray(value, dtype=float)
    if not ((size > 0.0) & (size < np.inf)).all():
        raise ValueError(f"kernel {kernel}: {name} must be positive and finite, got {value!r}.")
    bounds = np.asarray(hyperparameter.bounds)
    pairs = bounds.dtype.kind in "iuf" and bounds.shape[1:] == (2,)
    if not pairs or not ((bounds[:, 0] >= 0.0) & (bounds[:, 0] <= bounds[:, 1])).all():
        raise ValueError(
            f"kernel {kernel}: bounds of {name} must be a pair of numbers, 0 <= low <= high, got {bounds.tolist()}."
        )
