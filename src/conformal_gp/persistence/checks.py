"""What comes out of a model file passes the checks that it would have passed at the front door.

Checksums tell of damage, not of forgery: a file with right checksums can hold any document. So parameters pass the
regressor's own validation, and everything that was learnt is checked by its name against the training rows.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import astuple, fields
from numbers import Real
from typing import Any

import numpy as np
from joblib import effective_n_jobs
from sklearn.gaussian_process.kernels import Kernel

from conformal_gp.constraints import validate_parameter_constraints
from conformal_gp.frames import UNSEEN, Encoding
from conformal_gp.gp.inputs import MEAN_NAMES, Scaling
from conformal_gp.gp.lowrank import APPROXIMATIONS
from conformal_gp.gp.warps import BoxCox
from conformal_gp.regressor import ConformalGPRegressor
from conformal_gp.sparse import SparseConformalGPRegressor
from conformal_gp.tuning.plan import Candidate
from conformal_gp.tuning.settings import check_design, check_kernel
from conformal_gp.types import Array
from conformal_gp.validation import check_finite


def check_parameters(model: ConformalGPRegressor | SparseConformalGPRegressor, n_rows: int, n_features: int) -> None:
    """Parameters as the regressor's own ``fit`` checks them."""
    model._validate_params()
    effective_n_jobs(model.n_jobs)
    if isinstance(model, ConformalGPRegressor):
        model._settings(n_rows, n_features)
        check_memory(n_rows)
        return
    model._kernels_and_gammas()
    check_design(model.design, n_rows)
    width = n_features if model._encoding is None else len(model._encoding.categories)
    if not isinstance(model.inducing, str) and np.shape(model.inducing)[1:] != (width,):
        raise ValueError(f"inducing has shape {np.shape(model.inducing)} for {width} inputs")


def check_rows(X: Array) -> None:
    """Inputs of training rows: numbers whose distances can be computed."""
    check_finite("X", X)
    with np.errstate(over="ignore"):
        if not np.isfinite(np.sum(X**2)):
            raise ValueError(f"X reaches {np.abs(X).max():.1e}, whose square overflows")


def check_known_noise(known: Any, X: Array) -> bool:
    """Whether the last column of the training rows holds known noise variances."""
    _must(isinstance(known, bool) and (not known or (X.shape[1] > 1 and bool((X[:, -1] >= 0.0).all()))), "noise", known)
    return bool(known)


def check_tuning(model: ConformalGPRegressor, tuning: Any) -> None:
    """The way of tuning that was taken."""
    constraints = {"tuning": model._parameter_constraints["tuning"]}
    validate_parameter_constraints(constraints, {"tuning": tuning}, caller_name=type(model).__name__)


def check_memory(size: int) -> None:
    """Refuse a model of which a single square matrix has no room in this machine."""
    try:
        memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, OSError, ValueError):  # not told on this system
        return
    needed = 8 * size**2
    if needed > memory > 0:
        raise ValueError(f"it needs at least {needed / 1e9:,.0f} GB of memory; this machine has {memory / 1e9:,.0f} GB")


def check_names(names: Any, n_features: int) -> None:
    """Names of the inputs."""
    if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
        raise ValueError(f"names of inputs are {names!r}")
    if len(names) != n_features:
        raise ValueError(f"{len(names)} names for {n_features} inputs")


def read_encoding(values: Any, n_inputs: int) -> Encoding | None:
    """How columns became inputs: categories of each column, and what to do with those that are unseen."""
    if values is None:
        return None
    categories, unseen = values
    _must(isinstance(categories, tuple) and unseen in UNSEEN, "encoding", values)
    for column in categories:
        if column is not None:
            _must(
                isinstance(column, tuple) and all(isinstance(value, str | int | float) for value in column),
                "encoding",
                column,
            )
            _must(len(set(column)) == len(column), "encoding", column)
    encoding = Encoding(categories, unseen)
    _must(encoding.n_inputs == n_inputs and any(column is not None for column in categories), "encoding", values)
    return encoding


def check_plan(plan: Any, X: Array, n_inputs: int) -> None:
    """All that a plan holds, by name; what has no rule of its own must at least be finite.

    The training rows ``X`` have so many inputs, and may have a column of known noise variances.
    """
    values = {field.name: getattr(plan, field.name) for field in fields(plan)}
    scaling = values.get("scaling")
    if scaling is None:
        _must(X.shape[1] == n_inputs, "noise", "known of each row")
    else:
        _check_scaling(scaling, n_inputs)
    if "kernels" in values:
        _must(bool(values["kernels"]) != bool(values["candidates"]), "kernels", values["kernels"])
    with np.errstate(all="ignore"):
        scaled = X if scaling is None else scaling.transform(X)
        _must(bool(np.isfinite(scaled).all()), "scaled inputs", "not finite")
        for name, value in values.items():
            if name in _CONDITIONS:
                _must(_CONDITIONS[name](value), name, value)
            else:
                _CHECKS.get(name, _check_any)(name, value, scaled)


def _must(condition: bool, name: str, value: Any) -> None:
    if not condition:
        raise ValueError(f"{name} is {value!r}"[:200])


def _is_number(value: Any) -> bool:
    return isinstance(value, Real) and not isinstance(value, bool)


def _check_scaling(scaling: Any, n_features: int) -> None:
    _must(isinstance(scaling, Scaling), "scaling", scaling)
    for value in (scaling.location, scaling.scale):
        shaped = isinstance(value, np.ndarray) and value.dtype == np.float64 and value.shape == (n_features,)
        _must(shaped and bool(np.isfinite(value).all()), "scaling", value)
    _must(bool((scaling.scale > 0.0).all()), "scale", scaling.scale)


def _is_noise(value: Any) -> bool:
    return _is_number(value) and 0.0 <= value < np.inf


def _check_varying(name: str, value: Any, X: Array) -> None:
    if value is None:
        return
    (kernel, rows, *of_trend), *others = astuple(value)
    _check_kernel(name, kernel, X)
    n_inputs = X.shape[1]
    _must(isinstance(rows, np.ndarray) and rows.ndim == 2 and rows.size > 0, name, rows)
    shapes = [(len(rows), n_inputs), (len(rows),), (1 + n_inputs,)]
    shapes += [(times * (n_inputs + 1),) for times in (1, 1, 2, 2)]
    for part, shape in zip((rows, *of_trend, *others), shapes, strict=True):
        shaped = isinstance(part, np.ndarray) and part.dtype == np.float64 and part.shape == shape
        _must(shaped and bool(np.isfinite(part).all()), name, part)
    _must(bool((value.scale > 0.0).all()), name, value.scale)


def _check_design(name: str, value: Any, X: Array) -> None:
    _must(isinstance(value, np.ndarray) and value.dtype == np.int64 and value.ndim == 1, name, value)
    if value.size:
        _must(np.array_equal(np.asarray(check_design(value, X.shape[0])), value), name, value)


def _check_coefficients(name: str, value: Any, X: Array) -> None:
    """Of a mean function; its own length shows which it is, and the mean function is checked beside it."""
    if value is not None:
        _must(isinstance(value, np.ndarray) and value.dtype == np.float64 and value.ndim == 1, name, value)
        _must(value.size in (0, 1, 1 + X.shape[1]) and bool(np.isfinite(value).all()), name, value)


def _check_inducing(name: str, value: Any, X: Array) -> None:
    _must(isinstance(value, np.ndarray) and value.dtype == np.float64 and value.ndim == 2, name, value)
    _must(value.shape[0] > 0 and value.shape[1] == X.shape[1] and bool(np.isfinite(value).all()), name, value)
    check_memory(value.shape[0])


def _check_kernel(name: str, value: Any, X: Array) -> None:
    """A kernel that takes the inputs, and gives numbers for them."""
    _must(isinstance(value, Kernel), name, value)
    _must(value.n_dims == value.theta.size and not np.isnan(value.theta).any(), name, value.theta)
    _must(np.shape(value.bounds) in ((value.n_dims, 2), (0,)), name, value.bounds)
    check_kernel(value, X)
    covariances, variances = value(X[:3]), value.diag(X[:3])
    _must(np.isfinite(covariances).all() and np.isfinite(variances).all() and (variances >= 0.0).all(), name, value)


def _check_candidates(name: str, value: Any, X: Array) -> None:
    _must(isinstance(value, list), name, value)
    for candidate in value:
        _must(isinstance(candidate, Candidate) and _is_noise(candidate.noise_variance), name, candidate)
        _check_kernel(name, candidate.kernel, X)


def _check_kernels(name: str, value: Any, X: Array) -> None:
    _must(isinstance(value, list), name, value)
    for kernel in value:
        _check_kernel(name, kernel, X)


def _check_any(name: str, value: Any, X: Array) -> None:
    if isinstance(value, Kernel):
        _check_kernel(name, value, X)
    elif isinstance(value, list | tuple):
        for item in value:
            _check_any(name, item, X)
    elif isinstance(value, np.ndarray):
        _must(value.dtype.kind in "biuf" and bool(np.isfinite(value).all()), name, value)
    elif _is_number(value):
        _must(bool(np.isfinite(value)), name, value)


def _is_warp(value: Any) -> bool:
    """Whether a map of labels is one that a fit makes."""
    if value is None:
        return True
    numbers = astuple(value)
    if not all(_is_number(number) and np.isfinite(number) for number in numbers):
        return False
    exponent, other = numbers
    return -1.0 <= exponent <= 2.0 and (other >= 0.0 if isinstance(value, BoxCox) else exponent >= 0.0 and other > 0.0)


_CONDITIONS: dict[str, Callable[[Any], bool]] = {
    "approximation": lambda value: value in APPROXIMATIONS,
    "deviation": lambda value: value is None or (_is_number(value) and 0.0 < value < np.inf),
    "flat_prior": lambda value: isinstance(value, bool),
    "gamma": lambda value: _is_number(value) and value >= 1.0,
    "guarantee": lambda value: isinstance(value, str),
    "learns_noise": lambda value: isinstance(value, bool),
    "mean": lambda value: value in MEAN_NAMES,
    "noise_variance": _is_noise,
    "scale_inputs": lambda value: isinstance(value, bool),
    "varying_noise": lambda value: isinstance(value, bool),
    "warp": _is_warp,
}
"""What a value must fulfil, whatever the inputs are."""
_CHECKS: dict[str, Callable[[str, Any, Array], None]] = {
    "candidates": _check_candidates,
    "mean_coef": _check_coefficients,
    "design": _check_design,
    "inducing": _check_inducing,
    "kernel": _check_kernel,
    "kernels": _check_kernels,
    "varying": _check_varying,
}
"""Checks against the scaled inputs."""
