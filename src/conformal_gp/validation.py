"""Inputs and targets as arrays, checked, with errors that name the row and the column."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable
from datetime import date, time
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_consistent_length, column_or_1d, validate_data

from conformal_gp.arrays import Array, Mask

# Share of an input's range in the training rows by which a test row may exceed that range before it is pointed out.
ROOM = 0.1


class ExtrapolationWarning(UserWarning):
    """Some test rows lie beyond the training rows, where the guarantee says nothing.

    Examples
    --------
    >>> import warnings
    >>> from conformal_gp import ConformalGPRegressor, ExtrapolationWarning
    >>> model = ConformalGPRegressor("se", tuning="fixed", noise_variance=0.1).fit([[0.0], [1.0], [2.0]], [0, 1, 0])
    >>> with warnings.catch_warnings(action="error", category=ExtrapolationWarning):
    ...     _ = model.predict([[3.0]])
    Traceback (most recent call last):
    ...
    conformal_gp.validation.ExtrapolationWarning: 1 of 1 rows lie beyond the training rows, in column 0: ...
    """


def _named(column: int, feature_names: NDArray[Any] | None) -> str:
    return f"column {column}" if feature_names is None else f"column {feature_names[column]!r}"


def check_finite(
    name: str, values: NDArray[Any], feature_names: NDArray[Any] | None = None, first_row: int = 0
) -> None:
    """Raise a ValueError that names the first NaN or infinite entry; ``first_row`` is the number of the first row."""
    wrong = np.argwhere(~np.isfinite(values))
    if wrong.size == 0:
        return
    place = tuple(int(i) for i in wrong[0])
    kind = "NaN" if np.isnan(values[place]) else "infinity (inf)"
    where = f"row {first_row + place[0]}" + (f", {_named(place[1], feature_names)}" if len(place) > 1 else "")
    raise ValueError(f"{name} contains {kind} in {where}; all values must be finite.")


def check_squares(name: str, values: Array, feature_names: NDArray[Any] | None = None) -> None:
    """Raise a ValueError if squares of the values, of which distances and likelihoods are made, overflow."""
    with np.errstate(over="ignore"):
        if values.size == 0 or np.isfinite(np.sum(values**2)):
            return
    largest = np.unravel_index(int(np.argmax(np.abs(values))), values.shape)
    what = _named(int(largest[1]), feature_names) if len(largest) > 1 else name
    most = np.abs(values[largest])
    raise ValueError(f"{name} reaches {most:.1e}, whose square overflows; divide {what} by a constant.")


def check_unmasked(name: str, values: Any) -> None:
    """Raise a ValueError if entries of a masked array are masked: what is under a mask is no data."""
    if isinstance(values, np.ma.MaskedArray) and np.ma.is_masked(values):
        count = np.ma.count_masked(values)
        raise ValueError(f"{name} has masked entries ({count}); fill them in or leave these rows out.")


def check_inputs(
    estimator: BaseEstimator, X: Any, *, reset: bool, y: Any = "no_validation", missing: bool = False
) -> Array:
    """``X`` as an (n, d) float64 array that fits what the estimator was fitted to; ``y`` must not be None.

    Values are finite, or NaN where ``missing`` allows it.
    """
    if reset:
        need_labels(estimator, y)
    check_unmasked("X", X)
    categories = [str(name) for name, dtype in _columns(X) if holds_categories(dtype)]
    if categories:
        raise ValueError(f"X has columns of categories: {_listed(categories)}; here inputs must be numbers. {ENCODE}")
    checked = converted(X, lambda: validate_data(estimator, X, reset=reset, dtype=np.float64, ensure_all_finite=False))
    check_numbers("X", checked, getattr(estimator, "feature_names_in_", None), missing)
    return checked


def need_labels(estimator: BaseEstimator, y: Any) -> None:
    """Raise a ValueError if there are no targets to fit to."""
    if y is None:
        raise ValueError(f"{type(estimator).__name__} requires y to be passed, but the target y is None.")


def refuse_keywords(given: dict[str, Any]) -> None:
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


def check_numbers(name: str, values: Array, feature_names: NDArray[Any] | None = None, missing: bool = False) -> None:
    """Raise a ValueError if values are not finite, or too large to be squared; NaN may be allowed as ``missing``."""
    if missing:
        values = np.where(np.isnan(values), 0.0, values)
    check_finite(name, values, feature_names)
    check_squares(name, values, feature_names)


# Names of the types that columns of categories and of dates have in pandas and polars.
CATEGORIES = {"CategoricalDtype", "Categorical", "Enum"}
DATES = {"Date", "Datetime", "Duration", "Time", "DatetimeTZDtype", "PeriodDtype"}
ENCODE = "Or encode them first, say with scikit-learn's OneHotEncoder in a pipeline."


def is_frame(X: Any) -> bool:
    """Whether X is a data frame of pandas or polars, in memory; a lazy frame is a ValueError."""
    if type(X).__name__ == "LazyFrame":
        raise ValueError("X is a lazy frame, whose rows are not there yet; give X.collect().")
    return hasattr(X, "columns") and hasattr(X, "dtypes") and not hasattr(X, "__dask_graph__")


def holds_categories(dtype: Any) -> bool:
    """Whether a column of this type holds categories."""
    return type(dtype).__name__ in CATEGORIES


def _columns(X: Any) -> list[tuple[Any, Any]]:
    """Names and types of a frame's columns; none if X is no frame."""
    return list(zip(X.columns, X.dtypes, strict=True)) if is_frame(X) else []


def _listed(names: Iterable[str]) -> str:
    return ", ".join(map(repr, names))


def converted(X: Any, convert: Callable[[], Array]) -> Array:
    """Result of ``convert``, or a ValueError that names columns of text or dates."""
    dates = [str(name) for name, dtype in _columns(X) if _is_date(dtype)]
    if dates or (isinstance(X, np.ndarray) and X.dtype.kind in "mM"):
        raise _no_dates(f"X has columns of dates or times: {_listed(dates)}" if dates else "X holds dates or times")
    try:
        return convert()
    except (TypeError, ValueError) as error:
        text, dates = (
            [str(name) for name, _ in _columns(X) if any(isinstance(value, kind) for value in X[name])]
            for kind in (str, (date, time))
        )
        if dates:
            raise _no_dates(f"X has columns of dates or times: {_listed(dates)}") from error
        if not text or "could not convert" not in str(error):
            raise
        raise ValueError(
            f"X has columns of text: {_listed(text)}; inputs must be numbers, booleans, or categories by dtype: "
            f"X.astype({{{text[0]!r}: 'category'}}) in pandas, Categorical or Enum in polars. {ENCODE}"
        ) from error


def _is_date(dtype: Any) -> bool:
    return getattr(dtype, "kind", "") in ("m", "M") or type(dtype).__name__ in DATES


def _no_dates(what: str) -> ValueError:
    return ValueError(f"{what}; inputs must be numbers. Use parts of them (year, month, weekday), or days since one.")


def beyond(X: Array, ends: Array) -> Mask:
    """Inputs that lie outside the training rows' range, (2, d), by more than a tenth of it.

    >>> beyond(np.array([[1.1, 5.0], [1.2, 6.0]]), np.array([[0.0, 5.0], [1.0, 5.0]])).tolist()
    [[False, False], [True, True]]
    """
    low, high = ends
    room = ROOM * (high - low)
    slack = 1e-12 * np.maximum(np.abs(low), np.abs(high))  # rounding is no extrapolation
    return np.asarray((low - room - slack > X) | (high + room + slack < X))


def warn_beyond(X: Array, ends: Array, feature_names: NDArray[Any] | None, stacklevel: int) -> None:
    """Warn of test rows that lie beyond the training rows."""
    outside = beyond(X, ends)
    n_rows = int(outside.any(axis=1).sum())
    if not n_rows:
        return
    columns = np.flatnonzero(outside.any(axis=0))
    named = [f"column {j}" if feature_names is None else repr(feature_names[j]) for j in columns[:5]]
    more = f" and {columns.size - 5} more" if columns.size > 5 else ""
    warnings.warn(
        f"{n_rows} of {len(X)} rows lie beyond the training rows, in {', '.join(named)}{more}: outside their range by "
        "more than a tenth of it. Intervals there rest on the model alone; the guarantee is for rows like the training "
        "rows. beyond_training(X) says which rows.",
        ExtrapolationWarning,
        stacklevel=stacklevel + 1,
    )


def check_known_noise(y_variance: Any, X: Array, first_row: int = 0) -> Array:
    """``y_variance`` as one finite variance for each row of ``X``."""
    check_unmasked("y_variance", y_variance)
    if np.ndim(y_variance) != 1 or len(y_variance) != len(X):
        got = f"an array of shape {np.shape(y_variance)}"
        raise ValueError(f"y_variance must hold one number for each of the {len(X)} rows, got {got}.")
    variances = np.asarray(y_variance, dtype=np.float64)
    check_finite("y_variance", variances, first_row=first_row)
    if (variances < 0.0).any():
        row = int(np.argmax(variances < 0.0))
        raise ValueError(f"y_variance is {variances[row]} in row {first_row + row}; variances must not be negative.")
    return variances


def check_labels(y: Any, X: Array) -> Array:
    """``y`` as a finite float64 vector, one target for each row of ``X``."""
    check_unmasked("y", y)
    if _is_date(getattr(y, "dtype", None)):
        raise ValueError("y holds dates or times; targets must be numbers, say days since a date.")
    try:
        y = column_or_1d(y, warn=True, dtype=np.float64)
    except (TypeError, ValueError) as error:
        held = np.ravel(np.asarray(y, dtype=object))
        wrong = next((i for i, value in enumerate(held) if isinstance(value, str | date)), None)
        if wrong is None or "shape" in str(error):
            raise
        raise ValueError(f"y holds {held[wrong]!r} in row {wrong}; targets must be numbers.") from error
    check_finite("y", y)
    check_consistent_length(X, y)
    check_squares("y", y)
    return y


def input_names(model: Any) -> NDArray[Any]:
    """Names of a fitted model's inputs: of its columns, or of columns and categories, and of what is missing."""
    names = getattr(model, "feature_names_in_", np.array([f"x{j}" for j in range(model.n_features_in_)], dtype=object))
    if model._encoding is not None:
        names = model._encoding.names(names)
    indicators = [f"{names[column]} is missing" for column in model._gaps]
    return np.array([*names, *indicators], dtype=object)
