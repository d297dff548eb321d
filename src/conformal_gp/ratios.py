"""Known covariate shift: likelihood ratios of test inputs over training inputs, as weights of rows."""

from __future__ import annotations

import warnings
from importlib import import_module
from typing import Any

import numpy as np
from numpy.typing import NDArray

from conformal_gp.types import Array
from conformal_gp.validation import check_finite

# With fewer effective rows, one row more or less moves intervals much.
FEW_EFFECTIVE_ROWS = 20


def split_ratio(likelihood_ratio: Any) -> tuple[Any, Any]:
    """A function for training rows and one for test rows, or the arrays of both."""
    if callable(likelihood_ratio):
        return likelihood_ratio, likelihood_ratio
    if not isinstance(likelihood_ratio, tuple | list) or len(likelihood_ratio) != 2:
        raise ValueError(
            "likelihood_ratio must be a function of X, or a pair of arrays, for the training rows and for the test "
            f"rows; got {type(likelihood_ratio).__name__}."
        )
    training, test = likelihood_ratio
    return training, test


def check_ratios(ratios: Any, n_rows: int, of: str) -> Array:
    """Likelihood ratios as one finite number for each row, not negative."""
    try:
        values = np.asarray(ratios, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise ValueError(f"likelihood_ratio of {of} rows must be numbers, got {ratios!r}.") from error
    if values.shape != (n_rows,):
        got = f"an array of shape {values.shape}"
        raise ValueError(f"likelihood_ratio must hold one number for each of the {n_rows} {of} rows, got {got}.")
    check_finite(f"likelihood_ratio of {of} rows", values)
    if (values < 0.0).any():
        row = int(np.argmax(values < 0.0))
        raise ValueError(f"likelihood_ratio of {of} rows is {values[row]} in row {row}; it must not be negative.")
    return values


def effective_rows(ratios: Array) -> float:
    r"""How many rows of equal weight would do as well: :math:`(\sum w)^2 / \sum w^2`.

    >>> effective_rows(np.ones(5)), effective_rows(np.array([1.0, 0.0, 0.0]))
    (5.0, 1.0)
    """
    scaled = ratios / max(float(ratios.max(initial=0.0)), np.finfo(float).tiny)
    return float(scaled.sum() ** 2 / max(float((scaled**2).sum()), np.finfo(float).tiny))


def warn_if_few(n_effective: float, n_ranked: int, of: str, stacklevel: int) -> None:
    """Warn if weights leave few effective rows of many more."""
    if n_effective < min(FEW_EFFECTIVE_ROWS, n_ranked / 2):
        warnings.warn(
            f"likelihood_ratio leaves {n_effective:.1f} effective rows of the {n_ranked} ranked rows of {of}: "
            "intervals are wide, or infinite, and depend on few rows.",
            UserWarning,
            stacklevel=stacklevel + 1,
        )


def as_given(inputs: Array, names: NDArray[Any] | None, library: str | None) -> Any:
    """Training inputs as they were given to fit: an array, or a frame of pandas or polars."""
    if library is None or names is None:
        return inputs
    return import_module(library).DataFrame(dict(zip(names, inputs.T, strict=True)))
