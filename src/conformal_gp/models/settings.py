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

from conformal_gp.arrays import Array, Indices
from conformal_gp.gp.inputs import Inputs, Scaling, filled, label_variance, medians
from conformal_gp.gp.kernels import KERNEL_NAMES, kernel_from_name
from conformal_gp.rows import ArrayRows, RowSource, check_map
from conformal_gp.targets.target import Bounds, check_within
from conformal_gp.targets.transformation import BoxCox, Functions, Transformation
from conformal_gp.validation import (
    check_known_noise,
    check_labels,
    input_names,
    learn_gaps,
    learn_inputs,
    read_inputs,
    with_indicators,
)

TransformChoice = str | tuple[Callable[[Array], Any], Callable[[Array], Any]] | None

# Rows for each coefficient from which on mean="auto" is linear.
ROWS_FOR_LINEAR_MEAN = 20
# Transformations of the target that are learnt from rows, and those of one exponent.
LEARNT_TRANSFORMS = ("box-cox", "yeo-johnson", "auto")
EXPONENTS = {"log": 0.0, "sqrt": 0.5}
# Beyond so many rows the low-rank GP takes over from the exact one, whose time grows with their cube. On noisy
# rows its intervals are as narrow.
ROWS_FOR_EXACT = 2000
# Of noise-free functions, many of which are smooth, the likelihood of tuning rows tells how smooth.
SMOOTH_KERNELS = ["matern52", "se"]
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
    low_rank: bool = False
    """Whether the GP has inducing inputs."""
    inducing: int | Array | None = None
    """Inducing inputs, unscaled, or their number; None lets tuning rows choose."""

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

    def scaling(self, X: Array) -> Scaling:
        """Scaling by some rows, if inputs are to be scaled; missing values are filled by their medians.

        Inputs of heavy tails are compressed with "holdout", for kernels of a name: others may mean the inputs as they
        are.
        """
        fill = medians(X)
        if not self.scale_inputs:
            return Scaling(fill=fill)
        compress = self.tuning == "holdout" and self.named
        return replace(Scaling.standard(filled(X, fill), compress), fill=fill)


def read_settings(model: Any, source: RowSource) -> Settings:
    """A regressor's parameters as one checked value for these rows."""
    low_rank, inducing = _inducing(model, source)
    given = Settings(
        kernels=check_kernels(model.kernel),
        mean=model.mean,
        noise_variance=None if model.noise_variance is None else float(model.noise_variance),
        gamma=float(model.gamma),
        scale_inputs=model.scale_inputs,
        n_restarts=model.n_restarts,
        n_jobs=model.n_jobs,
        tuning=model.tuning,
        n_inputs=len(input_names(model)),
        tuning_rows=check_tuning_rows(model.tuning_rows, source.n_rows),
        ard=model.ard,
        target_transform=check_transform(model.target_transform),
        difficulty=model.difficulty,
        bounds=Bounds.of(model.y_bounds) if isinstance(model.y_bounds, tuple | list) else None,
        learns_bounds=model.y_bounds == "auto",
        known_noise=model._has_y_variance,
        low_rank=low_rank,
        inducing=inducing,
    )
    by_rows = isinstance(model.low_rank, str)
    settings = automatic(given, source.n_rows, by_rows, batches=model._batches is not None)
    _check_together(settings)
    if isinstance(source, ArrayRows):  # an error names the first target that is out of the domain
        transformation = given_transform(settings, source.y)
        if settings.target_transform == "box-cox":
            transformation = BoxCox(0.0)
        if transformation is not None:
            transformation.forward(source.y)
    return settings


def automatic(given: Settings, n_rows: int, by_rows: bool = True, batches: bool = False) -> Settings:
    """Settings with what "auto" stands for; ``by_rows`` lets the number of rows choose a low-rank GP.

    >>> settings = Settings(["se"], "auto", None, 2.0, True, 3, None)
    >>> automatic(settings, 500).tuning, automatic(settings, 501).tuning
    ('integrated', 'holdout')
    """
    changed: dict[str, Any] = {}
    tuning = given.tuning
    if tuning == "auto":
        tuning = "integrated"
        needs_tuning_rows = given.low_rank or batches or given.tuning_rows is not None or _has_regressor(given)
        if n_rows > ROWS_FOR_INTEGRATED or needs_tuning_rows or _not_integrated(given):
            tuning = "holdout"
    if tuning == "holdout" and by_rows and n_rows > ROWS_FOR_EXACT:
        changed["low_rank"] = True
    if tuning == "holdout" and given.noise_variance == 0.0 and given.kernels == ["matern52"]:
        changed["kernels"] = SMOOTH_KERNELS
    if tuning != "holdout" and given.difficulty == "auto":
        changed["difficulty"] = None
    if given.target_transform == "auto" and (given.known_noise or tuning not in ("integrated", "holdout")):
        changed["target_transform"] = None
    if given.mean == "auto" and tuning != "integrated":
        few = n_rows < ROWS_FOR_LINEAR_MEAN * (given.n_inputs + 1)
        changed["mean"] = "constant" if few else "linear"
    return replace(given, tuning=tuning, **changed)


def _has_regressor(settings: Settings) -> bool:
    return not (settings.difficulty is None or isinstance(settings.difficulty, str))


def _not_integrated(settings: Settings) -> str:
    """Why hyperparameters cannot be averaged over, in a sentence; empty if they can."""
    if len(settings.kernels) > 1:
        return f"kernel must be one kernel with tuning='integrated', got {len(settings.kernels)} to choose from."
    if settings.gamma != 2.0:
        return f"gamma must be 2 with tuning='integrated', got {settings.gamma}; use tuning='holdout'."
    if settings.target_transform == "yeo-johnson":
        return "target_transform='yeo-johnson' is learnt from tuning rows; use tuning='holdout'."
    return ""


def _check_together(settings: Settings) -> None:
    """Raise a ValueError that names parameters which do not go with the tuning method, or with known noise."""
    tuning = settings.tuning
    if settings.tuning_rows is not None and tuning not in ("holdout", "fixed"):
        raise ValueError(
            f"tuning_rows is used with tuning='holdout' or 'fixed', not with tuning={tuning!r}; leave it at None."
        )
    if tuning == "integrated" and _not_integrated(settings):
        raise ValueError(_not_integrated(settings))
    if tuning == "fixed" and len(settings.kernels) > 1:
        raise ValueError(f"kernel must be one kernel with tuning='fixed', got {len(settings.kernels)} to choose from.")
    if settings.known_noise and settings.target_transform is not None:
        raise ValueError(
            "y_variance is in units of the target, and of a transformed target it would depend on the value; got "
            f"target_transform={settings.target_transform!r}, use target_transform=None or leave y_variance out."
        )
    if tuning != "holdout" and _has_regressor(settings):
        raise ValueError(
            f"difficulty is learnt from tuning rows, and tuning={tuning!r} has none that learn; use "
            "tuning='holdout', or leave difficulty at 'auto'."
        )
    if settings.low_rank and tuning not in ("holdout", "fixed"):
        raise ValueError(f"low_rank is for tuning='holdout' or 'fixed', not for tuning={tuning!r}.")


def _inducing(model: Any, source: RowSource) -> tuple[bool, int | Array | None]:
    """Whether ``low_rank`` asks for a low-rank GP whatever the number of rows, and its inducing inputs."""
    given = model.low_rank
    if isinstance(given, str):
        in_memory = isinstance(source, ArrayRows) and source.in_memory
        return not in_memory, None
    if isinstance(given, bool | np.bool_):
        if given:
            raise ValueError("low_rank must be 'auto', False, a number of inducing inputs or these inputs, got True.")
        return False, None
    if isinstance(given, Integral):
        return True, int(given)
    try:
        return True, read_inputs(model, given)
    except (TypeError, ValueError) as error:
        raise ValueError(f"low_rank does not hold inducing inputs: {error}") from error


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
        raise ValueError(f"tuning_rows must leave calibration rows: got all {n_rows} rows.")
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


def explained(inputs: Inputs, y: Array, mean: str) -> list[str]:
    """A warning if the mean function reproduces the targets."""
    if label_variance(inputs, y) > 0.0:
        return []
    return [f"y is reproduced exactly by mean={mean!r}: the intervals have no width."]


def read_rows(model: Any, X: Any, y: Any, y_variance: Any) -> RowSource:
    """Checked training rows; arrays are copied, as the caller may change theirs."""
    model._has_y_variance = y_variance is not None
    if hasattr(X, "__dask_graph__"):
        from conformal_gp.dask_rows import dask_rows

        return dask_rows(model, X, y, y_variance, bool(model.verbose))
    inputs: Any = X
    in_memory = not isinstance(X, np.memmap)
    if in_memory:
        inputs = learn_inputs(model, X, y)
        missing = np.isnan(inputs)
        learn_gaps(model, missing.any(axis=0), missing.all(axis=0))
        inputs = with_indicators(inputs, model._gaps).copy()
    else:
        learn_inputs(model, X[:2], y)
        check_map(model, X)
    targets = check_labels(y, inputs).copy()
    check_within(model.y_bounds, targets)
    if y_variance is not None:
        y_variance = check_known_noise(y_variance, inputs).copy()
    return ArrayRows(inputs, targets, y_variance, model.n_jobs, bool(model.verbose), model._gaps, in_memory)
