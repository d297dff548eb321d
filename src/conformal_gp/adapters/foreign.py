"""Parts of other libraries' models as arrays and as scikit-learn's kernels, and a check that nothing was lost."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from conformal_gp.gp.inputs import basis
from conformal_gp.regressor import ConformalGPRegressor
from conformal_gp.types import Array

# Rows on which both sides are compared, and how far they may differ: distances are rounded differently.
COMPARED = 20
TOLERANCE, SINGLE_TOLERANCE = 1e-6, 1e-3


def numbers(value: Any) -> Array:
    """A tensor or a parameter as an array in double precision."""
    return np.asarray(value.detach().cpu() if hasattr(value, "detach") else value, dtype=np.float64)


def one(name: str, value: Any) -> float:
    """A parameter that must be a single number."""
    if not hasattr(value, "shape") or numbers(value).size != 1:
        raise ValueError(f"{name} must be one number, got {value!r}.")
    return float(numbers(value).ravel()[0])


def lengths(value: Any) -> Any:
    """A length scale, or one for each input."""
    found = numbers(value).ravel()
    return float(found[0]) if found.size == 1 else found


def convert(part: Any, known: Mapping[str, Callable[[Any], Any]], library: str, what: str) -> Any:
    """A part of a model, by the name of its class; a subclass may be anything, so it is not known."""
    kind = type(part)
    if kind.__module__.partition(".")[0] != library or kind.__name__ not in known:
        raise ValueError(
            f"{what} {kind.__module__}.{kind.__qualname__} is not supported; known are {', '.join(known)}. "
            "conformal_gp.adapters.from_process takes any kernel that is written for scikit-learn."
        )
    return known[kind.__name__](part)


def checked(model: ConformalGPRegressor, single: bool, covariance: Any, mean: Any) -> ConformalGPRegressor:
    """The model, if the first of its rows have the covariances and means of the other library, else a ValueError."""
    X = model._training_rows[0][:COMPARED]
    ours = {"covariances": model.kernel_(X), "means": basis(model.mean_, X) @ model.mean_coef_}
    tolerance = SINGLE_TOLERANCE if single else TOLERANCE
    for (what, here), there in zip(ours.items(), (covariance, mean), strict=True):
        off = np.abs(numbers(there).reshape(here.shape) - here).max()
        if not off <= tolerance * (np.abs(here).max() + (what == "means")):
            raise ValueError(f"model has other {what} than its kernel and mean have; they differ by {off:.1e}.")
    return model
