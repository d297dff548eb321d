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


class ExtrapolationWarning(UserWarning):
    """Some test rows lie far outside the training rows, where intervals are as good as the model is there.

    Examples
    --------
    >>> import warnings
    >>> from conformal_gp import ConformalGPRegressor, ExtrapolationWarning
    >>> model = ConformalGPRegressor("se", tuning="fixed", noise_variance=0.1).fit([[0.0], [1.0], [2.0]], [0, 1, 0])
    >>> with warnings.catch_warnings(action="error", category=ExtrapolationWarning):
    ...     _ = model.predict([[300.0]])
    Traceback (most recent call last):
    ...
    conformal_gp.validation.ExtrapolationWarning: 1 of 1 rows lie far outside the training rows, in column 0: ...
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
    check_numbers(checked, getattr(estimator, "feature_names_in_", None), missing)
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


def check_numbers(values: Array, feature_names: NDArray[Any] | None = None, missing: bool = False) -> None:
    """Raise a ValueError if inputs are not finite, or too large to be squared; NaN may be allowed as ``missing``."""
    if missing:
        values = np.where(np.isnan(values), 0.0, values)
    check_finite("X", values, feature_names)
    check_squares("X", values, feature_names)


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


def holds_numbers(dtype: Any) -> bool:
    """Whether a column of this type holds numbers; booleans are none."""
    if hasattr(dtype, "is_numeric"):  # of polars
        return bool(dtype.is_numeric())
    return getattr(dtype, "kind", "") in "iuf" and not holds_categories(dtype)


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
    _refuse_text(X)
    try:
        return convert()
    except (TypeError, ValueError) as error:
        dates = [str(name) for name, _ in _columns(X) if any(isinstance(value, date | time) for value in X[name])]
        if dates:
            raise _no_dates(f"X has columns of dates or times: {_listed(dates)}") from error
        _refuse_others("X", X, "inputs", error)
        raise


def _refuse_others(name: str, values: Any, what: str, error: Exception) -> None:
    """Raise the error with the name of the first value that is no number, if that is why a conversion failed."""
    if "Complex data" in str(error):  # scikit-learn's words
        raise ValueError(f"Complex data not supported: {name} must hold real numbers.") from error
    try:
        held = np.asarray(values, dtype=object)
    except ValueError:
        return
    for place in np.ndindex(held.shape):
        value = held[place]
        if isinstance(value, list | tuple | np.ndarray):  # rows of different lengths, of which NumPy says more
            return
        if value is None or type(value).__name__ == "NAType":  # missing, which may be allowed
            continue
        try:
            float(value)
        except (TypeError, ValueError):
            where = ""
            if place:
                where = f" in row {place[0]}" + "".join(f", column {j}" for j in place[1:])
            raise type(error)(f"{name} holds {value!r}{where}; {what} must be numbers: {error}") from error


def _refuse_text(X: Any) -> None:
    """Raise a ValueError that names columns of text, or the first text of an array: also "1.5" is no number."""
    if is_frame(X):
        text = [
            str(name)
            for name, dtype in _columns(X)
            if _may_hold_text(dtype) and any(isinstance(value, str | bytes) for value in X[name])
        ]
        if text:
            raise ValueError(
                f"X has columns of text: {_listed(text)}; inputs must be numbers, booleans, or categories by dtype: "
                f"X.astype({{{text[0]!r}: 'category'}}) in pandas, Categorical or Enum in polars. {ENCODE} Numerals in "
                "text become numbers by pandas.to_numeric."
            )
        return
    place = first_text(X)
    if place is not None:
        row, *column = place
        where = f"row {row}" + "".join(f", column {j}" for j in column)
        raise ValueError(
            f"X holds text in {where}; inputs must be numbers. Numerals in text become numbers by X.astype(float). "
            f"{ENCODE}"
        )


def _may_hold_text(dtype: Any) -> bool:
    """Return whether a column of this type of pandas or polars may hold text."""
    if holds_categories(dtype):
        return False
    if hasattr(dtype, "is_numeric"):  # of polars
        return not dtype.is_numeric()
    return getattr(dtype, "kind", "O") in "OUST"


def first_text(values: Any) -> tuple[int, ...] | None:
    """Place of the first text in an array or nested list; None if there is none.

    >>> first_text([[1.0, 2.0], [3.0, "4"]]), first_text(np.ones(3))
    ((1, 1), None)
    """
    if isinstance(values, list | tuple):
        try:
            values = np.asarray(values, dtype=object)
        except ValueError:  # rows of different lengths, of which scikit-learn says more
            return None
    if not _may_hold_text(getattr(values, "dtype", None if is_frame(values) else np.dtype(float))):
        return None
    held = np.asarray(values, dtype=object)
    for place in np.ndindex(held.shape):
        if isinstance(held[place], str | bytes):
            return place
    return None


def _is_date(dtype: Any) -> bool:
    return getattr(dtype, "kind", "") in ("m", "M") or type(dtype).__name__ in DATES


def _no_dates(what: str) -> ValueError:
    return ValueError(f"{what}; inputs must be numbers. Use parts of them (year, month, weekday), or days since one.")


def input_box(ends: Array, X: Array | None, n_rows: int) -> Array:
    r"""Least and greatest value of each input, (2, d), outside which a row is far outside the training rows.

    With n rows and d inputs, a new row exceeds the range of some input in up to 2 d / n of all cases, and heavy tails
    exceed it by far. So distances from the median are multiplied by :math:`T^a`. T is the ratio of the largest to the
    upper quartile, about :math:`(n / 4)^{1 / \alpha}` for a tail of index :math:`\alpha`. The chance to exceed the
    range by a factor c is :math:`c^{-\alpha}` of that to exceed it, so :math:`(n / 4)^a = 2 d / (n \epsilon)` leaves a
    share of :math:`\epsilon`, whatever the index. (Measured with 20, 50 and 200 rows of uniform, normal, t, log-normal
    and Cauchy inputs: tests/test_extrapolation.py.) In addition, a tenth of the range is allowed; with fewer than 20
    rows, from whose quartiles no tail can be told, it is :math:`(20 / n)^3` times that.

    Parameters
    ----------
    ends : ndarray of shape (2, d)
        Least and greatest value of each input in the training rows.
    X : ndarray of shape (n, d) or None
        The training rows; None where they are not in memory, and many.
    n_rows : int
        Their number.
    """
    low, high = ends
    room = 0.1 * max(1.0, 20.0 / n_rows) ** 3 * (high - low)
    room = room + 1e-12 * np.maximum(np.abs(low), np.abs(high))  # rounding is no extrapolation
    # a = log(2 d / (n epsilon)) / log(n / 4), with epsilon of 0.005, and no more than 3
    exponent = np.log(2.0 * low.size / (0.005 * n_rows)) / np.log(max(n_rows / 4.0, 1.5))
    exponent = float(np.clip(exponent, 0.0, 3.0))
    if X is None or exponent == 0.0:
        return np.stack([low - room, high + room])
    middle = np.nanmedian(X, axis=0)
    below = (middle - low) * _tail(middle - X) ** exponent
    above = (high - middle) * _tail(X - middle) ** exponent
    return np.stack([np.minimum(middle - below, low - room), np.maximum(middle + above, high + room)])


def _tail(deviation: Array) -> Array:
    """Ratio of the largest deviation to its upper quartile, or to the median of positive ones; 1 if there are none."""
    largest = np.nanmax(deviation, axis=0)
    typical = np.nanquantile(deviation, 0.75, axis=0)
    for j in np.flatnonzero((typical <= 0.0) & (largest > 0.0)):
        typical[j] = np.median(deviation[deviation[:, j] > 0.0, j])
    return np.where(largest > 0.0, largest / np.where(typical > 0.0, typical, 1.0), 1.0)


# One channel in a hundred of a spectrum that is out of its range says nothing: extrapolation shows in many.
FEW_INPUTS = 0.01


def beyond(X: Array, box: Array) -> Mask:
    """Inputs outside a box, (m, d); of more than 100 inputs, as of spectra, only where more than one in a hundred is.

    >>> beyond(np.array([[1.1, 5.0], [1.2, 6.0]]), np.array([[0.0, 5.0], [1.15, 5.0]])).tolist()
    [[False, False], [True, True]]
    """
    outside = np.asarray((box[0] > X) | (box[1] < X))
    few = outside.mean(axis=1, keepdims=True) <= FEW_INPUTS
    if X.shape[1] > 1.0 / FEW_INPUTS:
        outside &= ~few
    return outside


def warn_beyond(model: Any, X: Array, box: Array, stacklevel: int) -> None:
    """Warn of test rows that lie far outside the training rows."""
    outside = beyond(X, box)
    n_rows = int(outside.any(axis=1).sum())
    if not n_rows:
        return
    columns = np.flatnonzero(outside.any(axis=0))
    named = [f"column {j}" for j in columns[:5]]
    if hasattr(model, "feature_names_in_"):
        named = [repr(name) for name in input_names(model)[columns[:5]]]
    more = f" and {columns.size - 5} more" if columns.size > 5 else ""
    warnings.warn(
        f"{n_rows} of {len(X)} rows lie far outside the training rows, in {', '.join(named)}{more}: the model "
        "extrapolates, and intervals of these rows are as good as the model is there. beyond_training(X) says which "
        "rows, and input_range_ has the range of the training rows.",
        ExtrapolationWarning,
        stacklevel=stacklevel + 1,
    )


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


def real_numbers(name: str, values: Any) -> Array:
    """``values`` as a float64 array; a ValueError that names the first one if it is text, a date or complex."""
    held = np.asarray(values)
    if held.dtype.kind in "cmM" or first_text(held) is not None:
        raise ValueError(f"{name} must hold numbers, got {held.flat[0]!r}.")
    try:
        return np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise ValueError(f"{name} must hold numbers, got {held.flat[0]!r}.") from error


def check_labels(y: Any, X: Array) -> Array:
    """``y`` as a finite float64 vector, one target for each row of ``X``."""
    check_unmasked("y", y)
    if _is_date(getattr(y, "dtype", None)):
        raise ValueError("y holds dates or times; targets must be numbers, say days since a date.")
    place = first_text(y)
    if place is not None:
        held = np.asarray(y, dtype=object)[place]
        raise ValueError(f"y holds {held!r} in row {place[0]}; targets must be numbers, not text.")
    try:
        y = column_or_1d(y, warn=True, dtype=np.float64)
    except (TypeError, ValueError) as error:
        if "shape" not in str(error):
            _refuse_others("y", y, "targets", error)
        raise
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
