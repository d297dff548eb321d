"""Groups of rows, and weights for a known covariate shift: the calibration rows that a test row is compared with."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass, replace
from importlib import import_module
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from conformal_gp.arrays import Array, Indices
from conformal_gp.comparison import Part, TestRows
from conformal_gp.gp.inputs import Rows
from conformal_gp.validation import check_finite, holds_categories

GroupsLike = ArrayLike | str | Callable[[Any], ArrayLike] | None
RatioLike = Callable[[Any], ArrayLike] | tuple[ArrayLike, ArrayLike] | None

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
    r"""Number of rows of equal weight that would do as well: :math:`(\sum w)^2 / \sum w^2`.

    >>> effective_rows(np.ones(5)), effective_rows(np.array([1.0, 0.0, 0.0]))
    (5.0, 1.0)
    """
    scaled = ratios / max(float(ratios.max(initial=0.0)), np.finfo(float).tiny)
    return float(scaled.sum() ** 2 / max(float((scaled**2).sum()), np.finfo(float).tiny))


def warn_if_few(n_effective: float, n_calibration: int, of: str, stacklevel: int) -> None:
    """Warn if weights leave few effective rows of many more."""
    if n_effective < min(FEW_EFFECTIVE_ROWS, n_calibration / 2):
        warnings.warn(
            f"likelihood_ratio leaves {n_effective:.1f} effective rows of the {n_calibration} calibration rows of "
            f"{of}: "
            "intervals are wide, or infinite, and depend on few rows.",
            UserWarning,
            stacklevel=stacklevel + 1,
        )


def as_given(inputs: Array, names: NDArray[Any] | None, library: str | None) -> Any:
    """Training inputs as they were given to fit: an array, or a frame of pandas or polars."""
    if library is None or names is None:
        return inputs
    return import_module(library).DataFrame(dict(zip(names, inputs.T, strict=True)))


@dataclass(frozen=True)
class Groups:
    """Groups of the training rows, and how those of test rows are found."""

    labels: list[Any]
    """Of the groups, in order of their first rows."""
    codes: Indices
    """(l,): the group of each training row, a place in ``labels``."""
    rule: str | Callable[[Any], Any] | None
    """The column or the function that gives groups; None where labels were given."""
    left_out: str | None = None
    """A column that gives groups and is no input, as it holds neither numbers nor categories."""

    @classmethod
    def learn(cls, X: Any, groups: Any) -> Groups:
        """From training rows as they were given."""
        given = group_labels(X, groups)
        labels = list(dict.fromkeys(given))
        rule = groups if isinstance(groups, str) or callable(groups) else None
        left_out = rule if isinstance(rule, str) and not _is_input(X[rule].dtype) else None
        return cls(labels, _codes(labels, given), rule, left_out)

    def extended(self, X: Any, groups: Any, n_rows: int) -> Groups:
        """With rows that come later; a group that is not among these is added."""
        given = self._given(X, groups, n_rows)
        labels = list(dict.fromkeys([*self.labels, *given]))
        return replace(self, labels=labels, codes=np.append(self.codes, _codes(labels, given)))

    def inputs(self, X: Any) -> Any:
        """X without a column that is no input."""
        return without(X, self.left_out)

    def of(self, X: Any, groups: Any, n_rows: int) -> Indices:
        """Groups of test rows, by ``groups`` or as ``fit`` was told; an error names one that ``fit`` did not see."""
        given = self._given(X, groups, n_rows)
        places = {label: place for place, label in enumerate(self.labels)}
        unseen = next((row for row, label in enumerate(given) if label not in places), None)
        if unseen is not None:
            known = ", ".join(map(repr, self.labels[:10])) + (", ..." if len(self.labels) > 10 else "")
            raise ValueError(
                f"groups has a group that fit did not see, {given[unseen]!r} in row {unseen}; it saw {known}. Fit "
                "without groups to predict such rows: coverage is then over all groups together."
            )
        return _codes(self.labels, given)

    def _given(self, X: Any, groups: Any, n_rows: int) -> list[Any]:
        """Labels of rows, by ``groups`` or as ``fit`` was told."""
        if groups is None and self.rule is None:
            raise ValueError("groups is needed, one for each row: fit was given those of the training rows.")
        given = group_labels(X, self.rule if groups is None else groups)
        check_length(given, n_rows)
        return given


def without(X: Any, column: str | None) -> Any:
    """X without a column, if it is a frame that has it."""
    if column is None or not hasattr(X, "columns") or column not in X.columns:
        return X
    return X[[name for name in X.columns if name != column]]


def _codes(labels: list[Any], given: list[Any]) -> Indices:
    """Places of labels among those of the groups."""
    places = {label: place for place, label in enumerate(labels)}
    return np.array([places[label] for label in given], dtype=np.int64)


def check_length(labels: Any, n_rows: int, name: str = "groups") -> None:
    """Raise a ValueError unless there is a label for each row."""
    if len(labels) != n_rows:
        raise ValueError(f"{name} must hold one label for each of the {n_rows} rows, got {len(labels)}.")


def group_labels(X: Any, groups: Any, name: str = "groups") -> list[Any]:
    """A label for each row, none of them missing; ``name`` is what errors call them."""
    if isinstance(groups, str):
        if not hasattr(X, "columns") or groups not in X.columns:
            of = f"; its columns are {', '.join(map(repr, X.columns))}" if hasattr(X, "columns") else ""
            raise ValueError(f"{name} is {groups!r}, and X must be a data frame with a column of that name{of}.")
        groups = X[groups]
    elif callable(groups):
        groups = groups(X)
    if hasattr(groups, "compute"):  # of Dask
        groups = groups.compute()
    as_list = next((getattr(groups, name) for name in ("tolist", "to_list") if hasattr(groups, name)), None)
    if getattr(groups, "ndim", 1) != 1 or not (as_list or hasattr(groups, "__iter__")):
        raise ValueError(f"{name} must hold one label for each row, got {groups!r}.")
    labels = as_list() if as_list else list(groups)
    for row, label in enumerate(labels):
        if _is_missing(label):
            raise ValueError(f"{name} has no label in row {row}: got {label!r}; give such rows one of their own.")
        if getattr(label, "__hash__", None) is None:
            raise ValueError(f"{name} must hold one label for each row, got {label!r} in row {row}.")
    return labels


def _is_missing(label: Any) -> bool:
    try:
        return label is None or bool(label != label)
    except (TypeError, ValueError):  # pandas.NA compares to nothing
        return type(label).__name__ == "NAType"


def _is_input(dtype: Any) -> bool:
    """Whether a column of this type is an input too."""
    numeric = dtype.is_numeric() if hasattr(dtype, "is_numeric") else getattr(dtype, "kind", "") in "iuf"
    return numeric or holds_categories(dtype) or "bool" in str(dtype).lower()


def compared(model: Any, X: Any, new: Rows, groups: GroupsLike, likelihood_ratio: RatioLike) -> TestRows:
    """Test rows with the calibration rows of their groups, weighted by a likelihood ratio."""
    check_groups(model, groups)
    parts = TestRows.of(new, model._answers).parts
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
    unit = max(weights[model._answers.calibration].max(), own.max())
    return TestRows(new, [_weighted(part, weights / unit, own[part.places] / unit) for part in parts])


def _weighted(part: Part, weights: Array, own: Array) -> Part:
    """The same test rows with weights of all training rows, and their own."""
    calibration = weights[part.answers.calibration]
    warn_if_few(effective_rows(calibration), calibration.size, part.name, stacklevel=5)
    # nothing is known of a row without weights
    own = np.where(calibration.sum() + own > 0.0, own, 1.0)
    return replace(part, weights=calibration, own=own)


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
    if not ratios[model._answers.calibration].any():
        raise ValueError(
            "likelihood_ratio is 0 for all calibration rows: training and test distributions do not overlap."
        )
    return ratios


def _ratios_of(ratio: Callable[[Any], Any], names: Any, frame: str | None) -> Callable[[Rows, Array], Array]:
    """A function of training rows that a cluster can get without the model."""

    def ratios(rows: Rows, y: Array) -> Array:
        return check_ratios(ratio(as_given(rows.X, names, frame)), y.size, "training")

    return ratios
