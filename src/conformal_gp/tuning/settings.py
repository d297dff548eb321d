"""The regressors' parameters, checked."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeVar

import numpy as np
from sklearn.base import clone
from sklearn.gaussian_process.kernels import Kernel

from conformal_gp.gp.inputs import Inputs
from conformal_gp.gp.prior import DEVIATION
from conformal_gp.gp.scaling import Scaling
from conformal_gp.kernels import kernel_from_name
from conformal_gp.tuning.plan import Candidate
from conformal_gp.types import Array, Rows

T = TypeVar("T")

# Rows for each coefficient from which on mean="auto" is linear.
ROWS_FOR_LINEAR_MEAN = 20


@dataclass(frozen=True)
class Settings:
    """Parameters of a regressor, checked, for rows of a certain number and width."""

    kernels: list[str | Kernel]
    mean: str
    noise_variance: float | None
    gammas: list[float]
    scale_inputs: bool
    n_restarts: int
    n_jobs: int | None
    design: float | Rows | None = None
    candidates: list[Candidate] | None = None
    each_length_scale: bool = True
    """Whether named kernels have a length scale for each input."""
    deviation: float | None = None
    """Standard deviation of the prior on length scales; None is a flat prior."""

    @property
    def named(self) -> bool:
        """Whether all kernels are given by name."""
        return all(isinstance(kernel, str) for kernel in self.kernels)

    def kernel(self, given: str | Kernel, n_inputs: int, length_scale: float = 1.0) -> Kernel:
        """A kernel as an object, at some length scale if it is given by name."""
        if isinstance(given, str):
            n_lengths = n_inputs if self.each_length_scale else None
            return kernel_from_name(given, length_scale=length_scale, n_inputs=n_lengths)
        return clone(given)

    def only(self, values: list[T], name: str, tuning: str) -> T:
        """The only one of some values, where a way of tuning does not choose."""
        if len(values) > 1:
            raise ValueError(f"{name} must be a single value with tuning={tuning!r}, got {len(values)} to choose from.")
        return values[0]

    def scaling(self, X: Array) -> Scaling:
        """Scaling by some rows, if inputs are to be scaled."""
        return Scaling.standard(X) if self.scale_inputs else Scaling.none(X)


def resolved_mean(mean: str, n_rows: int, n_inputs: int) -> str:
    """The mean function in use: "auto" is linear where there are many rows for its coefficients.

    >>> resolved_mean("auto", 200, 5), resolved_mean("auto", 60, 5)
    ('linear', 'constant')
    """
    if mean != "auto":
        return mean
    return "linear" if n_rows >= ROWS_FOR_LINEAR_MEAN * (n_inputs + 1) else "constant"


def prior_deviation(given: float | str | None, tuning: str) -> float | None:
    """Standard deviation of the prior on length scales: "auto" has one except where the paper has none."""
    if given == "auto":
        return None if tuning == "train" else DEVIATION
    return None if given is None else float(given)


def check_kernel(kernel: Kernel, X: Array) -> None:
    """Raise an error that names the argument if a kernel does not take these inputs."""
    try:
        kernel(X[:1])
    except ValueError as error:
        raise ValueError(f"kernel {kernel} does not take {X.shape[1]} inputs: {error}") from error


def label_variance(inputs: Inputs, y: Array) -> float:
    """Mean square of the labels about their mean function; 0 when that is rounding."""
    residual = y - inputs.H @ (inputs.H.T @ y)  # H has orthonormal columns
    variance, size = float(np.mean(residual**2)), float(np.mean(y**2))
    return variance if variance > 1e-26 * size else 0.0


def explained(inputs: Inputs, y: Array, mean: str) -> list[str]:
    """A warning if the mean function leaves nothing of the labels."""
    if label_variance(inputs, y) > 0.0:
        return []
    return [f"y is reproduced exactly by mean={mean!r}: the intervals have no width."]
