"""The regressors' parameters, checked."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, TypeVar

import numpy as np
from sklearn.base import clone
from sklearn.gaussian_process.kernels import CompoundKernel, Hyperparameter, Kernel

from conformal_gp.arrays import Array, Indices
from conformal_gp.gp.covariance import covariance
from conformal_gp.gp.inputs import Inputs, Scaling
from conformal_gp.gp.kernels import KERNEL_NAMES, kernel_from_name
from conformal_gp.targets.target import Bounds

T = TypeVar("T")
TransformChoice = str | tuple[Callable[[Array], Any], Callable[[Array], Any]] | None

# Rows for each coefficient from which on mean="auto" is linear.
ROWS_FOR_LINEAR_MEAN = 20
# Maps of labels that are learnt from rows.
LEARNT_TRANSFORMS = ("box-cox", "yeo-johnson", "auto")
# Tuning methods that use a setting which is None where it is not given.
USED_BY = {"tuning_rows": ("holdout", "fixed")}
# Maps of labels whose exponent tuning="integrated" averages over.
AVERAGED_TRANSFORMS = ("auto", "box-cox")


@dataclass(frozen=True)
class Settings:
    """Parameters of a regressor, checked, for rows of a certain number and width."""

    kernels: list[str | Kernel]
    mean: str
    noise_variance: float | None
    gamma: float
    scale_inputs: bool
    n_restarts: int
    n_jobs: int | None
    tuning_rows: int | Indices | None = None
    """How many tuning rows, or which."""
    ard: bool = True
    """Whether named kernels have a length scale for each input."""
    target_transform: TransformChoice = None
    """Monotone transformation of the labels: by name, or a pair of functions."""
    difficulty: Any = None
    """None, "auto" or a regressor to fit to the size of standardised residuals."""
    bounds: Bounds | None = None
    """Bounds of the target that are given."""
    learns_bounds: bool = False
    """Whether tuning rows suggest bounds of the target."""
    known_noise: bool = False
    """Whether the noise of each row is known."""

    @property
    def learns_transform(self) -> bool:
        """Whether rows have a part in the map of labels."""
        return self.target_transform in LEARNT_TRANSFORMS

    @property
    def has_given_transform(self) -> bool:
        """Whether the map of labels is given beforehand."""
        return self.target_transform is not None and not self.learns_transform

    @property
    def named(self) -> bool:
        """Whether all kernels are given by name."""
        return all(isinstance(kernel, str) for kernel in self.kernels)

    def kernel(self, given: str | Kernel, n_inputs: int, length_scale: float = 1.0) -> Kernel:
        """A kernel as an object, at some length scale if it is given by name."""
        if isinstance(given, str):
            n_lengths = n_inputs if self.ard else None
            return kernel_from_name(given, length_scale=length_scale, n_inputs=n_lengths)
        return clone(given)

    def only_kernel(self, tuning: str) -> str | Kernel:
        """The single kernel, for a tuning method that does not choose."""
        if len(self.kernels) > 1:
            raise ValueError(
                f"kernel must be one kernel with tuning={tuning!r}, got {len(self.kernels)} to choose from."
            )
        return self.kernels[0]

    def resolved(self, tuning: str, n_rows: int, n_inputs: int) -> Settings:
        """Settings for a tuning method, "auto" as None without tuning rows; a ValueError names what goes unused."""
        for name, methods in USED_BY.items():
            if getattr(self, name) is not None and tuning not in methods:
                raise ValueError(
                    f"{name} is used with tuning={' or '.join(map(repr, methods))}, not with tuning={tuning!r}; "
                    "leave it at None."
                )
        if tuning == "integrated":
            self._check_integrated()
        target_transform = self.target_transform
        if target_transform == "auto" and (self.known_noise or tuning not in ("integrated", "holdout")):
            target_transform = None
        if self.known_noise and target_transform is not None:
            raise ValueError(
                "y_variance is in units of the target, and of a transformed target it would depend on the value; got "
                f"target_transform={self.target_transform!r}, use target_transform=None or leave y_variance out."
            )
        if tuning != "holdout" and self.difficulty not in (None, "auto"):
            raise ValueError(
                f"difficulty is learnt from tuning rows, and tuning={tuning!r} has none that learn; use "
                "tuning='holdout', or leave difficulty at 'auto'."
            )
        mean = self.mean
        if tuning != "integrated":
            mean = resolved_mean(mean, n_rows, n_inputs)
        difficulty = self.difficulty if tuning == "holdout" else None
        return replace(self, mean=mean, target_transform=target_transform, difficulty=difficulty)

    @property
    def can_integrate(self) -> bool:
        """Whether hyperparameters can be averaged over with these settings."""
        return (
            self.tuning_rows is None
            and len(self.kernels) == 1
            and self.gamma == 2.0
            and (self.difficulty is None or isinstance(self.difficulty, str))
            and (not self.learns_transform or self.target_transform in AVERAGED_TRANSFORMS)
        )

    def _check_integrated(self) -> None:
        """Raise a ValueError that names what tuning="integrated" does not take."""
        if len(self.kernels) > 1:
            raise ValueError(f"kernel must be one kernel with tuning='integrated', got {len(self.kernels)}.")
        if self.gamma != 2.0:
            raise ValueError(f"gamma must be 2 with tuning='integrated', got {self.gamma}; use tuning='holdout'.")
        if self.learns_transform and self.target_transform not in AVERAGED_TRANSFORMS:
            raise ValueError(
                f"target_transform={self.target_transform!r} is learnt from tuning rows; use tuning='holdout'."
            )

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


def check_tuning_rows(tuning_rows: Any, n_rows: int) -> int | Indices | None:
    """``tuning_rows`` as a number or as sorted row numbers; None where it is not given.

    >>> check_tuning_rows(15, 60), check_tuning_rows([5, 1], 60)
    (15, array([1, 5]))
    """
    if tuning_rows is None:
        return None
    if np.ndim(tuning_rows) == 0:
        size = int(tuning_rows)
        if size >= n_rows:
            raise ValueError(f"tuning_rows must leave calibration rows: got {size} of n_samples={n_rows} rows.")
        return size
    rows = np.asarray(tuning_rows)
    if rows.ndim != 1 or rows.dtype.kind not in "iu" or rows.size == 0:
        raise ValueError(f"tuning_rows must be a number of rows or a list of row numbers, got {tuning_rows!r}.")
    if rows.min() < 0 or rows.max() >= n_rows or np.unique(rows).size < rows.size:
        raise ValueError(f"tuning_rows must hold distinct row numbers from 0 to {n_rows - 1}, got {tuning_rows!r}.")
    if rows.size == n_rows:
        raise ValueError(f"tuning_rows holds all {n_rows} rows; some must be left as calibration rows.")
    return np.sort(rows).astype(np.int64)


def check_transform(target_transform: Any) -> TransformChoice:
    """``target_transform`` as None, a name or a pair of functions."""
    if target_transform is None or isinstance(target_transform, str):
        return target_transform
    if len(target_transform) != 2 or not all(map(callable, target_transform)):
        raise ValueError(
            f"target_transform must be a name or a pair of functions (forward, backward), got {target_transform!r}."
        )
    return target_transform[0], target_transform[1]


def label_variance(inputs: Inputs, y: Array) -> float:
    """Mean square of the labels about their mean function; 0 when that is rounding."""
    residual = y - inputs.H @ (inputs.H.T @ y)  # H has orthonormal columns
    variance, size = float(np.mean(residual**2)), float(np.mean(y**2))
    return variance if variance > 1e-26 * size else 0.0


def explained(inputs: Inputs, y: Array, mean: str) -> list[str]:
    """A warning if the mean function reproduces the labels."""
    if label_variance(inputs, y) > 0.0:
        return []
    return [f"y is reproduced exactly by mean={mean!r}: the intervals have no width."]


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
            values = covariance(kernel, X[:3], X[:3])[0]
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


def check_kernels(kernel: Any) -> list[str | Kernel]:
    """``kernel`` as a list of names and kernel objects."""
    kernels = list(kernel) if isinstance(kernel, list | tuple) else [kernel]
    for one in kernels:
        if not isinstance(one, Kernel) and one not in KERNEL_NAMES:
            raise ValueError(
                f"kernel must be one of {', '.join(KERNEL_NAMES)}, a scikit-learn kernel, or a list of these; "
                f"got {one!r}."
            )
    if not kernels:
        raise ValueError("kernel must not be an empty list.")
    return kernels
