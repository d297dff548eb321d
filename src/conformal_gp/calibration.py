"""Calibration rows that test rows are compared with: all, or those of their group, weighted for a covariate shift."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from conformal_gp.answers import Part, TestRows
from conformal_gp.arrays import Array
from conformal_gp.rows import Rows
from conformal_gp.validation import check_finite, real_numbers, warn_caller

GroupsLike = ArrayLike | str | Callable[[Any], ArrayLike] | None
RatioLike = Callable[[Any], ArrayLike] | tuple[ArrayLike, ArrayLike] | None


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
    values = real_numbers(f"likelihood_ratio of {of} rows", ratios)
    if values.shape != (n_rows,):
        got = f"an array of shape {values.shape}"
        raise ValueError(f"likelihood_ratio must hold one number for each of the {n_rows} {of} rows, got {got}.")
    check_finite(f"likelihood_ratio of {of} rows", values)
    if (values < 0.0).any():
        row = int(np.argmax(values < 0.0))
        raise ValueError(f"likelihood_ratio of {of} rows is {values[row]} in row {row}; it must not be negative.")
    return values


def effective_rows(ratios: Array) -> float:
    r"""Number of rows of equal weight that would do as well: :math:`(\sum w)^2 / \sum w^2`.

    >>> effective_rows(np.ones(5)), effective_rows(np.array([1.0, 0.0, 0.0]))
    (5.0, 1.0)
    """
    scaled = ratios / max(float(ratios.max(initial=0.0)), np.finfo(float).tiny)
    return float(scaled.sum() ** 2 / max(float((scaled**2).sum()), np.finfo(float).tiny))


def compared(model: Any, X: Any, new: Rows, groups: GroupsLike, likelihood_ratio: RatioLike) -> TestRows:
    """Test rows with the calibration rows of their groups, weighted by a likelihood ratio."""
    check_groups(model, groups)
    parts = model._answers.about(new).parts
    if model._groups is not None:
        codes = model._groups.of(X, groups, len(new.X))
        parts = []
        for code in np.unique(codes):
            rows = np.flatnonzero(codes == code)
            name = f"group {model._groups.labels[code]!r}"
            parts.append(Part(new.take(rows), model._group_answers[code], rows, name))
    if likelihood_ratio is None:
        return TestRows(new, parts)
    training, test = split_ratio(likelihood_ratio)
    weights = training_ratios(model, training)
    if callable(test):
        test = test(X)
    own = check_ratios(test, len(new.X), "test")
    # ratios that are equal become 1, without rounding
    unit = max(weights[model._answers.model.calibration].max(), own.max())
    return TestRows(new, [_weighted(part, weights / unit, own / unit) for part in parts])


def _weighted(part: Part, training: Array, test: Array) -> Part:
    """The same with weights of all training rows and all test rows."""
    weights = training[part.answers.model.calibration]
    own = test[part.places]
    n_effective = effective_rows(weights)
    if n_effective < min(20, weights.size / 2):  # one row more or less moves intervals much
        warn_caller(
            f"likelihood_ratio leaves {n_effective:.1f} effective rows of the {weights.size} calibration rows "
            f"of {part.name}: intervals are wide, or infinite, and depend on few rows."
        )
    # nothing is known of a row without weights
    return part._replace(weights=weights, own=np.where(weights.sum() + own > 0.0, own, 1.0))


def check_groups(model: Any, groups: GroupsLike) -> None:
    """Raise a ValueError if groups of other rows are given where the training rows have none."""
    if model._groups is None and groups is not None:
        raise ValueError("groups was given, but fit was called without groups.")


def training_ratios(model: Any, ratio: Any) -> Array:
    """Likelihood ratios of all training rows, from a function of X or as they are given."""
    if model._batches is not None:
        raise ValueError("likelihood_ratio was given, and fit was called with batches: leave one of them out.")
    if not callable(ratio):
        ratios = check_ratios(ratio, model._source.n_rows, "training")
    elif (
        model._encoding is not None
        or model._gaps.size
        or (model._groups is not None and model._groups.left_out is not None)
    ):
        raise ValueError(
            "likelihood_ratio must be a pair of arrays, for the training rows and for the test rows, as fit was "
            "given missing values, or a frame with columns that are not numbers, which the model does not keep."
        )
    else:
        names = getattr(model, "feature_names_in_", None)
        ratios = model._source.each(_ratios_of(ratio, names, model._frame), "likelihood ratios")
    if not ratios[model._answers.model.calibration].any():
        raise ValueError(
            "likelihood_ratio is 0 for all calibration rows: training and test distributions do not overlap."
        )
    return ratios


def _ratios_of(ratio: Callable[[Any], Any], names: Any, frame: str | None) -> Callable[[Rows, Array], Array]:
    """A function of training rows that a cluster can get without the model."""

    def ratios(rows: Rows, y: Array) -> Array:
        X: Any = rows.X
        if frame is not None and names is not None:  # as it was given to fit, to pandas or polars
            X = import_module(frame).DataFrame(dict(zip(names, rows.X.T, strict=True)))
        return check_ratios(ratio(X), y.size, "training")

    return ratios
