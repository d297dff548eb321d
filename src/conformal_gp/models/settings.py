"""Parameters and training rows of a regressor, checked, and the tuning method that the number of rows calls for.

============  ======================================================  ==================================
rows          method                                                  calibration rows
============  ======================================================  ==================================
up to 500     "integrated": average over hyperparameters              all
up to 2000    "holdout" with an exact GP                              those that are not tuning rows
more          "holdout" with a low-rank GP, if there is enough noise  those that are not tuning rows
============  ======================================================  ==================================
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from numbers import Integral
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.gaussian_process.kernels import Kernel
from sklearn.utils.validation import validate_data

from conformal_gp.arrays import Array, Indices
from conformal_gp.encoding import NO_GAPS, encoded_inputs
from conformal_gp.gp.inputs import Inputs, Scaling, filled, label_variance, medians
from conformal_gp.gp.kernels import KERNEL_NAMES, kernel_from_name
from conformal_gp.rows import ArrayRows, RowSource, mapped_gaps
from conformal_gp.targets.target import Bounds, check_within
from conformal_gp.targets.transformation import BoxCox, Functions, Transformation
from conformal_gp.validation import (
    check_finite,
    check_inputs,
    check_known_noise,
    check_labels,
    check_squares,
    check_unmasked,
)

TransformChoice = str | tuple[Callable[[Array], Any], Callable[[Array], Any]] | None

# Rows for each coefficient from which on mean="auto" is linear.
ROWS_FOR_LINEAR_MEAN = 20
# Transformations of the target that are learnt from rows, and those of one exponent.
LEARNT_TRANSFORMS = ("box-cox", "yeo-johnson", "auto")
EXPONENTS = {"log": 0.0, "sqrt": 0.5}
# Transformations whose exponent tuning="integrated" averages over.
AVERAGED_TRANSFORMS = ("auto", "box-cox")
# Beyond so many rows the low-rank GP takes over from the exact one, whose time grows with their cube. On noisy
# rows its intervals are as narrow.
ROWS_FOR_EXACT = 2000
# Of noise-free functions, many of which are smooth, the likelihood of tuning rows tells how smooth.
SMOOTH_KERNELS = ("matern52", "se")
# Up to so many rows hyperparameters are averaged over; the time of that grows with their cube. On real tables the
# interval score is 0.84 of that of "holdout" with up to 200 rows, and 0.93 with 200 to 500 (python -m
# benchmarks.real.few_rows).
ROWS_FOR_INTEGRATED = 500


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
    tuning: str = "auto"
    """The tuning method, once it is resolved."""
    n_inputs: int = 0
    """Number of inputs; categories have one each."""
    tuning_rows: int | Indices | None = None
    """Number of tuning rows, or their row numbers."""
    ard: bool = True
    """Whether named kernels have a length scale for each input."""
    target_transform: TransformChoice = None
    """Monotone transformation of the targets: by name, or a pair of functions."""
    difficulty: Any = None
    """None, "auto" or a regressor to fit to the size of standardised residuals."""
    bounds: Bounds | None = None
    """Bounds of the target that are given."""
    learns_bounds: bool = False
    """Whether tuning rows suggest bounds of the target."""
    known_noise: bool = False
    """Whether the noise of each row is known."""
    inducing: int | Array | bool | None = False
    """Inducing inputs of a low-rank GP, unscaled, or their number; None lets tuning rows choose, False is none."""

    @property
    def learns_transform(self) -> bool:
        """Whether the transformation of the target is learnt from rows."""
        return self.target_transform in LEARNT_TRANSFORMS

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

    def resolved(self, tuning: str, n_rows: int) -> Settings:
        """Settings for a tuning method, "auto" as None without tuning rows; a ValueError names what goes unused."""
        if self.tuning_rows is not None and tuning not in ("holdout", "fixed"):
            raise ValueError(
                f"tuning_rows is used with tuning='holdout' or 'fixed', not with tuning={tuning!r}; leave it at None."
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
            mean = resolved_mean(mean, n_rows, self.n_inputs)
        difficulty = self.difficulty if tuning == "holdout" else None
        kernels = self.kernels
        if tuning == "holdout" and self.noise_variance == 0.0 and kernels == ["matern52"]:
            kernels = list(SMOOTH_KERNELS)
        known: dict[str, Any] = {"tuning": tuning, "mean": mean, "difficulty": difficulty}
        return replace(self, kernels=kernels, target_transform=target_transform, **known)

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
        self.only_kernel("integrated")
        if self.gamma != 2.0:
            raise ValueError(f"gamma must be 2 with tuning='integrated', got {self.gamma}; use tuning='holdout'.")
        if self.learns_transform and self.target_transform not in AVERAGED_TRANSFORMS:
            raise ValueError(
                f"target_transform={self.target_transform!r} is learnt from tuning rows; use tuning='holdout'."
            )

    def scaling(self, X: Array) -> Scaling:
        """Scaling by some rows, if inputs are to be scaled; missing values are filled by their medians.

        Inputs of heavy tails are compressed with "holdout", for kernels of a name: others may mean the inputs as they
        are.
        """
        fill = medians(X)
        scaling = Scaling.none(X)
        if self.scale_inputs and self.tuning == "holdout" and self.named:
            scaling = Scaling.robust(filled(X, fill))
        elif self.scale_inputs:
            scaling = Scaling.standard(filled(X, fill))
        return replace(scaling, fill=fill)


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


def explained(inputs: Inputs, y: Array, mean: str) -> list[str]:
    """A warning if the mean function reproduces the targets."""
    if label_variance(inputs, y) > 0.0:
        return []
    return [f"y is reproduced exactly by mean={mean!r}: the intervals have no width."]


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


def given_transform(settings: Settings, y: Array) -> Transformation | None:
    """The transformation that is given beforehand; None if there is none, or rows have a part in it."""
    target_transform = settings.target_transform
    if target_transform is None or settings.learns_transform:
        return None
    if isinstance(target_transform, str):
        return BoxCox(EXPONENTS[target_transform])
    return Functions(target_transform, y)


def _check_domain(settings: Settings, y: Array) -> None:
    """Raise a ValueError that names the first target which a transformation does not take, whatever its exponent."""
    transformation = given_transform(settings, y)
    if settings.target_transform == "box-cox":
        transformation = BoxCox(0.0)
    if transformation is not None:
        transformation.forward(y)


def automatic(settings: Settings, n_rows: int) -> str:
    """The tuning method that ``tuning="auto"`` stands for."""
    if n_rows <= ROWS_FOR_INTEGRATED and settings.can_integrate:
        return "integrated"
    return "holdout"


def read_settings(model: Any, source: RowSource) -> Settings:
    """A regressor's parameters as one checked value, with the tuning method for these rows."""
    settings = _checked(model, source.n_rows)
    inducing = _inducing(model, source)
    tuning = model.tuning
    if tuning == "auto" and (inducing is not False or model._batches is not None):
        tuning = "holdout"
    elif tuning == "auto":
        tuning = automatic(settings, source.n_rows)
    settings = settings.resolved(tuning, source.n_rows)
    is_auto = isinstance(model.low_rank, str)
    if inducing is False and is_auto and tuning == "holdout" and source.n_rows > ROWS_FOR_EXACT:
        inducing = None
    if inducing is not False and tuning not in ("holdout", "fixed"):
        raise ValueError(f"low_rank is for tuning='holdout' or 'fixed', not for tuning={tuning!r}.")
    if isinstance(source, ArrayRows):
        _check_domain(settings, source.y)
    return replace(settings, inducing=inducing)


def _checked(model: Any, n_rows: int) -> Settings:
    """Parameters as one checked value, "auto" among them."""
    bounds = None
    if isinstance(model.y_bounds, tuple | list):
        bounds = Bounds.of(model.y_bounds)
    noise_variance = None
    if model.noise_variance is not None:
        noise_variance = float(model.noise_variance)
    n_inputs = model.n_features_in_
    if model._encoding is not None:
        n_inputs = model._encoding.n_inputs
    n_inputs += len(model._gaps)
    return Settings(
        check_kernels(model.kernel),
        model.mean,
        noise_variance,
        float(model.gamma),
        model.scale_inputs,
        model.n_restarts,
        model.n_jobs,
        n_inputs=n_inputs,
        tuning_rows=check_tuning_rows(model.tuning_rows, n_rows),
        ard=model.ard,
        target_transform=check_transform(model.target_transform),
        difficulty=model.difficulty,
        bounds=bounds,
        learns_bounds=model.y_bounds == "auto",
        known_noise=model._has_y_variance,
    )


def _inducing(model: Any, source: RowSource) -> Any:
    """Inducing inputs as ``low_rank`` asks for them: False for none, None for a default, a number or inputs."""
    given = model.low_rank
    if isinstance(given, str):
        in_memory = isinstance(source, ArrayRows) and source.in_memory
        return False if in_memory else None
    if isinstance(given, bool | np.bool_):
        if given:
            raise ValueError("low_rank must be 'auto', False, a number of inducing inputs or these inputs, got True.")
        return False
    if isinstance(given, Integral):
        return int(given)
    if model._encoding is not None or model._gaps.size:
        return encoded_inputs(model, given, reset=False)
    check_unmasked("low_rank", given)
    try:
        inputs = validate_data(model, given, reset=False, dtype=np.float64, ensure_all_finite=False)
    except (TypeError, ValueError) as error:
        raise ValueError(f"low_rank does not hold inducing inputs: {error}") from error
    check_finite("low_rank", inputs)
    check_squares("low_rank", inputs)
    return inputs


def read_rows(model: Any, X: Any, y: Any, y_variance: Any) -> RowSource:
    """Checked training rows; arrays are copied, as the caller may change theirs."""
    model._encoding = None
    model._gaps = NO_GAPS
    model._frame = None
    model._has_y_variance = y_variance is not None
    if hasattr(X, "__dask_graph__"):
        from conformal_gp.dask_rows import dask_rows

        return dask_rows(model, X, y, y_variance, bool(model.verbose))
    gaps = None
    if isinstance(X, np.memmap):  # not read as a whole: only the first rows are checked here
        missing = model.missing == "auto"
        check_inputs(model, X[:2], reset=True, y=y, missing=missing)
        inputs: Any = X
        if missing:
            gaps = model._gaps = mapped_gaps(X)
    else:
        inputs = encoded_inputs(model, X, reset=True, y=y).copy()
    targets = check_labels(y, inputs).copy()
    check_within(model.y_bounds, targets)
    if y_variance is not None:
        y_variance = check_known_noise(y_variance, inputs).copy()
    names = getattr(model, "feature_names_in_", None)
    return ArrayRows(inputs, targets, y_variance, model.n_jobs, bool(model.verbose), names, gaps)
