"""Inputs and targets as arrays, checked, with errors that name the row and the column."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable, Iterable
from datetime import date, time, timedelta
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import issparse
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_consistent_length, column_or_1d, validate_data

from conformal_gp.arrays import Array, Indices
from conformal_gp.encoding import UNSEEN_GAP, Encoding, holds_categories

NO_GAPS: Indices = np.empty(0, dtype=np.int64)
ENCODE = "Or encode them first, say with scikit-learn's OneHotEncoder in a pipeline."

# Packages whose frames stand between a warning and the line that it is about.
INTERNAL = ("conformal_gp", "sklearn")


def warn_caller(message: str, category: type[Warning] = UserWarning) -> None:
    """Warn at the line that called this package, directly or through scikit-learn."""
    level = 2
    frame = sys._getframe(1)
    while frame.f_back is not None and frame.f_globals.get("__name__", "").partition(".")[0] in INTERNAL:
        frame = frame.f_back
        level += 1
    warnings.warn(message, category, stacklevel=level)


# Numbers


def _column(j: int, names: Any = None) -> str:
    return f"column {j}" if names is None else f"column {names[j]!r}"


def _place(place: tuple[int, ...], names: Any = None, first_row: int = 0) -> str:
    return ", ".join([f"row {first_row + place[0]}", *(_column(j, names) for j in place[1:])])


def check_finite(name: str, values: NDArray[Any], names: Any = None, first_row: int = 0) -> None:
    """Raise a ValueError that names the first NaN or infinite entry; ``first_row`` is the number of the first row."""
    wrong = np.argwhere(~np.isfinite(values))
    if wrong.size == 0:
        return
    place = tuple(wrong[0].tolist())
    kind = "NaN" if np.isnan(values[place]) else "infinity (inf)"
    raise ValueError(f"{name} contains {kind} in {_place(place, names, first_row)}; all values must be finite.")


def check_squares(name: str, values: Array, names: Any = None) -> None:
    """Raise a ValueError if squares of the values, of which distances and likelihoods are made, overflow."""
    with np.errstate(over="ignore"):
        if values.size == 0 or np.isfinite(np.sum(values**2)):
            return
    largest = np.unravel_index(int(np.argmax(np.abs(values))), values.shape)
    what = _column(int(largest[1]), names) if len(largest) > 1 else name
    most = np.abs(values[largest])
    raise ValueError(f"{name} reaches {most:.1e}, whose square overflows; divide {what} by a constant.")


def check_numbers(name: str, values: Array, names: Any = None, missing: bool = False, first_row: int = 0) -> None:
    """Raise a ValueError if values are not finite, or too large to be squared; NaN may be allowed as ``missing``."""
    if missing:
        values = np.where(np.isnan(values), 0.0, values)
    check_finite(name, values, names, first_row)
    check_squares(name, values, names)


def check_unmasked(name: str, values: Any) -> None:
    """Raise a ValueError if entries of a masked array are masked: what is under a mask is no data."""
    if isinstance(values, np.ma.MaskedArray) and np.ma.is_masked(values):
        count = np.ma.count_masked(values)
        raise ValueError(f"{name} has masked entries ({count}); fill them in or leave these rows out.")


def real_numbers(name: str, values: Any) -> Array:
    """``values`` as a float64 array; a ValueError that names the first one if it is text, a date or complex."""
    odd = _first_odd(values)
    if odd is not None:
        raise ValueError(f"{name} must hold numbers, got {odd[2]!r}.")
    return np.asarray(values, dtype=np.float64)


def _first_odd(values: Any) -> tuple[str, tuple[int, ...], Any] | None:
    """Kind, place and value of the first entry that is no real number; numerals in text are none."""
    if getattr(getattr(values, "dtype", None), "kind", "O") in "biuf":  # also of pandas' types with missing values
        return None
    try:
        held = np.asarray(values)
        kind = held.dtype.kind
        if kind not in "biufcmM":
            held = np.asarray(values, dtype=object)  # text and numbers together have become text
    except ValueError:  # rows of different lengths, of which scikit-learn says more
        return None
    if kind in "biuf" or held.size == 0:
        return None
    if kind in "cmM":
        return "complex" if kind == "c" else "date", (0,) * held.ndim, held.flat[0]
    for place in np.ndindex(held.shape):
        value = held[place]
        if isinstance(value, str | bytes):
            return "text", place, value
        if isinstance(value, date | time | timedelta) or hasattr(value, "to_timestamp"):
            return "date", place, value
        if isinstance(value, complex):
            return "complex", place, value
        if value is None or type(value).__name__ == "NAType":  # missing, which may be allowed
            continue
        try:
            float(value)
        except (TypeError, ValueError):
            return "object", place, value
    return None


def _refuse(name: str, values: Any, what: str, advice: dict[str, str]) -> None:
    """Raise an error that names the first entry that is no number, with advice by its kind."""
    odd = _first_odd(values)
    if odd is None:
        return
    kind, place, value = odd
    if kind == "complex":  # scikit-learn's words
        raise ValueError(f"Complex data not supported: {name} must hold real numbers.")
    if kind == "date":
        raise ValueError(f"{name} holds dates or times; {what} must be numbers{advice[kind]}")
    where = f" in {_place(place)}" if place else ""
    if kind == "text":
        raise ValueError(f"{name} holds {value!r}{where}; {what} must be numbers{advice[kind]}")
    try:
        float(value)
    except (TypeError, ValueError) as error:
        raise type(error)(f"{name} holds {value!r}{where}; {what} must be numbers: {error}") from error


# Inputs


def is_frame(X: Any) -> bool:
    """Whether X is a data frame of pandas or polars, in memory; a lazy frame is a ValueError."""
    if type(X).__name__ == "LazyFrame":
        raise ValueError("X is a lazy frame, whose rows are not there yet; give X.collect().")
    return hasattr(X, "columns") and hasattr(X, "dtypes") and not hasattr(X, "__dask_graph__")


DATE_PARTS = ". Use parts of them (year, month, weekday), or days since one."
ADVICE = {"text": f", not text: numerals become numbers by X.astype(float). {ENCODE}", "date": DATE_PARTS}
COLUMNS = {
    "date": f"dates or times: {{names}}; inputs must be numbers{DATE_PARTS}",
    "categories": f"categories: {{names}}; here inputs must be numbers. {ENCODE}",
    "text": (
        "text: {names}; inputs must be numbers, booleans, or categories by dtype: X.astype({{{first}: 'category'}}) in "
        f"pandas, Categorical or Enum in polars. {ENCODE} Numerals in text become numbers by pandas.to_numeric."
    ),
}


def check_types(X: Any, encoding: Encoding | None = None) -> None:
    """Raise an error that names what is no number, in columns that are not encoded."""
    if not is_frame(X):
        _refuse("X", X, "inputs", ADVICE)
        return
    found: dict[str, list[str]] = {kind: [] for kind in COLUMNS}
    for j, (name, dtype) in enumerate(zip(X.columns, X.dtypes, strict=True)):
        if encoding is not None and encoding.categories[j] is not None:
            continue
        if holds_categories(dtype):
            found["categories"].append(repr(str(name)))
            continue
        odd = _first_odd(X[name])
        if odd is not None and odd[0] in found:
            found[odd[0]].append(repr(str(name)))
        elif odd is not None:
            _refuse(f"X[{str(name)!r}]", X[name], "inputs", ADVICE)
    for kind, names in found.items():
        if names:
            raise ValueError("X has columns of " + COLUMNS[kind].format(names=", ".join(names), first=names[0]))


def need_labels(estimator: BaseEstimator, y: Any) -> None:
    """Raise a ValueError if there are no targets to fit to."""
    if y is None:
        raise ValueError(f"{type(estimator).__name__} requires y to be passed, but the target y is None.")


def learn_inputs(estimator: Any, X: Any, y: Any) -> Array:
    """Inputs of training rows, NaN where a value is missing, without indicators; the estimator learns the columns."""
    need_labels(estimator, y)
    estimator._frame = None
    estimator._encoding = None
    estimator._gaps = NO_GAPS
    if is_frame(X):
        estimator._frame = type(X).__module__.partition(".")[0]
        estimator._encoding = Encoding.learn(X, estimator.missing == "auto")
    return _numbers(estimator, X, reset=True)


def read_inputs(estimator: Any, X: Any) -> Array:
    """Inputs of rows with the columns of ``fit``, as the model has them, indicators of missing values included."""
    if estimator._encoding is not None and not is_frame(X):
        raise ValueError(
            f"X must be a data frame with the columns of fit, some of which hold categories; got {type(X).__name__}."
        )
    return with_indicators(_numbers(estimator, X, reset=False), estimator._gaps, column_in_words(estimator))


def _numbers(estimator: Any, X: Any, reset: bool) -> Array:
    """``X`` as an (n, d) float64 array, encoded, NaN where a value is missing."""
    if issparse(X):
        raise ValueError(
            "X is a sparse matrix, and inputs must be dense: give X.toarray(), encode by "
            "OneHotEncoder(sparse_output=False), or give a data frame with columns of categories."
        )
    check_unmasked("X", X)
    encoding = estimator._encoding
    if encoding is None:
        check_types(X)
        values = validate_data(estimator, X, reset=reset, dtype=np.float64, ensure_all_finite=False)
    else:
        validate_data(estimator, X, reset=reset, skip_check_array=True)
        check_types(X, encoding)
        values = encoding.encode(X)
    names = None
    if hasattr(estimator, "feature_names_in_"):
        names = input_names(estimator)
    check_numbers("X", values, names, estimator.missing == "auto")
    return values


def input_names(model: Any) -> NDArray[Any]:
    """Names of a fitted model's inputs: of its columns, or of columns and categories, and of what is missing."""
    names = getattr(model, "feature_names_in_", [f"x{j}" for j in range(model.n_features_in_)])
    if model._encoding is not None:
        names = model._encoding.names(names)
    indicators = [f"{names[column]} is missing" for column in model._gaps]
    return np.array([*names, *indicators], dtype=object)


def column_in_words(model: Any) -> Callable[[int], str]:
    """The name of an input by its number, in words."""
    names = input_names(model) if hasattr(model, "feature_names_in_") else None
    return lambda column: _column(column, names)


def learn_gaps(estimator: Any, some: NDArray[np.bool_], every: NDArray[np.bool_]) -> None:
    """Keep which inputs are missing in some training rows; a ValueError names one that is missing in every row."""
    if every.any():
        empty = column_in_words(estimator)(int(np.argmax(every)))
        raise ValueError(f"X has no value (NaN) in any row of {empty}; leave the column out.")
    estimator._gaps = np.flatnonzero(some)


def with_indicators(X: Array, gaps: Indices, named: Callable[[int], str] = _column) -> Array:
    """Inputs and an indicator for each of ``gaps``; a value that is missing elsewhere is a ValueError."""
    missing = np.isnan(X)
    unseen = missing.copy()
    unseen[:, gaps] = False
    if unseen.any():
        row, column = np.argwhere(unseen)[0].tolist()
        raise ValueError(f"X has no value (NaN) in row {row}, {named(column)}, {UNSEEN_GAP}")
    if gaps.size == 0:
        return X
    return np.hstack([X, missing[:, gaps]])


# Targets and their noise


def check_labels(y: Any, X: Array) -> Array:
    """``y`` as a finite float64 vector, one target for each row of ``X``."""
    check_unmasked("y", y)
    _refuse("y", y, "targets", {"text": ", not text.", "date": ", say days since a date."})
    y = column_or_1d(y, warn=True, dtype=np.float64)
    check_consistent_length(X, y)
    check_numbers("y", y)
    return y


def check_known_noise(y_variance: Any, X: Array, first_row: int = 0) -> Array:
    """``y_variance`` as one finite variance for each row of ``X``."""
    check_unmasked("y_variance", y_variance)
    if np.ndim(y_variance) != 1 or len(y_variance) != len(X):
        got = f"an array of shape {np.shape(y_variance)}"
        raise ValueError(f"y_variance must hold one number for each of the {len(X)} rows, got {got}.")
    variances = real_numbers("y_variance", y_variance)
    check_finite("y_variance", variances, first_row=first_row)
    if (variances < 0.0).any():
        row = int(np.argmax(variances < 0.0))
        raise ValueError(f"y_variance is {variances[row]} in row {first_row + row}; variances must not be negative.")
    return variances


def refuse_keywords(given: Iterable[str]) -> None:
    """Raise a TypeError that names a keyword which ``fit`` does not take."""
    for name in given:
        advice = "."
        if name == "sample_weight":
            advice = (
                ": weights would treat rows differently, and the guarantee is for rows that are treated alike. Give "
                "y_variance where some observations are more precise than others, and likelihood_ratio to predict "
                "methods where new inputs are distributed differently."
            )
        raise TypeError(f"fit() got an unexpected keyword argument {name!r}{advice}")
