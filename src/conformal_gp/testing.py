r"""A direct check of the guarantee on a small data set.

Full conformal prediction is valid because scores treat the calibration rows and the test row symmetrically. Then, if
each of n rows in turn is the test row and the others are the training rows, at most :math:`\lfloor \delta n \rfloor` of
the n p-values are at most :math:`\delta`, for *every* data set, with certainty. What users read must keep to it as
well: at most as many rows may be missed by their intervals, sets and one-sided bounds.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Sequence
from fractions import Fraction
from typing import Any, NamedTuple

import numpy as np
from sklearn.base import clone
from sklearn.utils import _safe_indexing

from conformal_gp.arrays import Array, Indices
from conformal_gp.targets.target import Bounds

__all__ = ["check_validity"]

# A value nearer to an end of a set than this share of the interval's width may be on either side of it: with next to no
# noise and equal inputs of different targets, ends are known to few digits. Intervals and sets that are computed apart
# agree to this share of their size.
END_TOLERANCE = 1e-2
AGREEMENT = 1e-9


class _Answers(NamedTuple):
    """What a model says of one row as a test row."""

    p: float
    prediction: float
    interval: Array
    """(2, levels)"""
    sets: list[Array]
    """Of each level, (pieces, 2)."""
    lower: Array
    """(levels,)"""
    upper: Array
    """(levels,)"""
    searched: bool
    """Whether sets are searched on a grid: gaps that are narrower than it are not found."""


def check_validity(
    estimator: Any,
    X: Any,
    y: Any,
    *,
    y_variance: Any = None,
    groups: Any = None,
    censoring: Any = None,
    confidence_levels: Sequence[Any] | None = None,
) -> None:
    """Check that no more rows miss their intervals, sets, bounds and levels of p-values than the theorem allows.

    Each row that is not a tuning row in turn is the test row, and the estimator is fitted to the others.

    Parameters
    ----------
    estimator : ConformalGPRegressor
        Unfitted. With ``tuning="holdout"`` it needs ``tuning_rows`` as row numbers of ``X``: the theorem is for given
        tuning rows. It is for given random numbers too, so 0 takes the place of ``random_state=None``. Averages over
        draws of a Markov chain are valid up to Monte Carlo error only, and may fail.
    X : array-like or data frame of shape (n_samples, n_features)
        Inputs of a few rows, some ten.
    y : array-like of shape (n_samples,)
        Target.
    y_variance, groups : array-like of shape (n_samples,) or None, default=None
        As in ``fit``; with groups the theorem is checked in each of them.
    censoring : array-like of shape (n_samples,) or None, default=None
        As in ``fit``; ``y`` has recorded values. A set that contains the limit of a censored row has to contain the
        values beyond it; not of the row with the largest limit, which the other rows have not shown.
    confidence_levels : sequence of numbers or None, default=None
        Levels to check; None takes those at which one row more may miss, and some between them.

    Raises
    ------
    AssertionError
        If more rows miss than the theorem allows; or a value is in a set and its p-value says otherwise, an interval is
        not the hull of its set, or an interval does not contain its prediction.

    Examples
    --------
    >>> import numpy as np
    >>> from conformal_gp import ConformalGPRegressor
    >>> from conformal_gp.testing import check_validity
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(9, 2))
    >>> model = ConformalGPRegressor("se", tuning="fixed", noise_variance=0.1, scale_inputs=False)
    >>> check_validity(model, X, X[:, 0] + rng.normal(size=9))
    """
    targets = np.asarray(y, dtype=np.float64)
    if getattr(estimator, "random_state", 0) is None:
        estimator = clone(estimator).set_params(random_state=0)
    tuning_rows = _tuning_rows(estimator)
    turns = np.setdiff1d(np.arange(targets.size), tuning_rows)
    if turns.size == 0:
        raise ValueError(f"tuning_rows must leave calibration rows: got all {targets.size} rows of X.")
    labels = np.zeros(turns.size, dtype=np.int64)
    if groups is not None:
        labels = np.unique(np.asarray(groups)[turns], return_inverse=True)[1]
    levels = _levels(confidence_levels, turns.size)
    known = {"y_variance": y_variance, "groups": groups, "censoring": censoring}
    known = {name: np.asarray(values) for name, values in known.items() if values is not None}
    with warnings.catch_warnings(action="ignore", category=UserWarning):  # of levels that few rows do not support
        found = [_as_test_row(estimator, X, targets, known, int(row), tuning_rows, levels) for row in turns]
    for row, answers in zip(turns, found, strict=True):
        _check_agreement(answers, float(targets[row]), int(row), levels)
        if censoring is not None:
            bounds = getattr(estimator, "y_bounds", None)
            _check_beyond_limit(answers, targets, np.asarray(censoring), int(row), levels, bounds)
    for label in np.unique(labels):
        members = np.flatnonzero(labels == label)
        _check_misses([found[place] for place in members], targets[turns[members]], turns[members], levels)


def _tuning_rows(estimator: Any) -> Indices:
    """Row numbers of tuning rows; none if there are none."""
    given = getattr(estimator, "tuning_rows", None)
    if given is None and getattr(estimator, "tuning", "") != "holdout":
        return np.empty(0, dtype=np.int64)
    if given is None or np.ndim(given) == 0:
        raise ValueError(f"check_validity needs tuning_rows as row numbers with tuning='holdout', got {given!r}.")
    return np.asarray(given, dtype=np.int64)


def _levels(given: Sequence[Any] | None, n: int) -> list[Fraction]:
    """Levels to check: those at which k of n rows may miss, and just below."""
    if given is not None:
        return [Fraction(str(level)) for level in given]
    few = sorted({1, 2, max(1, n // 4), max(1, n // 2), max(1, n - 1)})
    exact = [1 - Fraction(k, n) for k in few]
    return sorted({level for level in [*exact, Fraction(1, 2), Fraction(4, 5), Fraction(9, 10)] if 0 < level < 1})


def _as_test_row(
    estimator: Any,
    X: Any,
    y: Array,
    known: dict[str, Any],
    row: int,
    tuning_rows: Indices,
    levels: list[Fraction],
) -> _Answers:
    """Fit to all rows but one, and predict that one."""
    rest = np.delete(np.arange(y.size), row)
    model = clone(estimator)
    if tuning_rows.size:
        model.set_params(tuning_rows=tuning_rows - (tuning_rows > row))
    model.fit(_safe_indexing(X, rest), y[rest], **{name: values[rest] for name, values in known.items()})
    if tuning_rows.size == 0 and model.tuning_rows_.size:
        raise ValueError("check_validity needs tuning_rows as row numbers: the estimator tunes on some of its rows.")
    new = _safe_indexing(X, [row])
    own = {name: values[[row]] for name, values in known.items() if name != "censoring"}
    noise = {name: values for name, values in own.items() if name == "y_variance"}
    return _Answers(
        float(model.predict_p(new, y[[row]], **own)[0]),
        float(model.predict(new, **noise)[0]),
        model.predict_interval(new, levels, **own)[0],
        [model.predict_set(new, level, **own)[0] for level in levels],
        model.predict_bound(new, levels, side="lower", **own)[0],
        model.predict_bound(new, levels, side="upper", **own)[0],
        getattr(model, "tuning_", "") == "integrated",
    )


def _inside(pieces: Array, value: float) -> bool:
    return bool(((pieces[:, 0] <= value) & (value <= pieces[:, 1])).any())


def _check_agreement(answers: _Answers, y: float, row: int, levels: list[Fraction]) -> None:
    """p-value, set, interval and prediction of one test row agree."""
    for place, level in enumerate(levels):
        pieces = answers.sets[place]
        low, high = answers.interval[:, place]
        name = f"row {row} as the test row, level {float(level):.4g}"
        rounding = AGREEMENT * max(abs(end) if math.isfinite(end) else 0.0 for end in (low, high))
        if len(pieces) and not (low - rounding <= pieces[0, 0] and pieces[-1, 1] <= high + rounding):
            raise AssertionError(f"{name}: the interval [{low}, {high}] does not contain the set {pieces.tolist()}.")
        if not low <= answers.prediction <= high:
            raise AssertionError(f"{name}: the prediction {answers.prediction} is outside [{low}, {high}].")
        is_in_set = _inside(pieces, y)
        exceeds = answers.p > float(1 - level) * (1.0 + 1e-12)
        width = high - low if math.isfinite(high - low) else 0.0
        near = len(pieces) > 0 and bool((np.abs(pieces - y) <= END_TOLERANCE * width + 1e-9 * abs(y)).any())
        if exceeds and not is_in_set and not near:
            raise AssertionError(f"{name}: p = {answers.p}, and the value {y} is not in the set {pieces.tolist()}.")
        if is_in_set and not exceeds and not near and not answers.searched:
            raise AssertionError(f"{name}: p = {answers.p}, and the value {y} is in the set {pieces.tolist()}.")


def _check_beyond_limit(
    answers: _Answers, y: Array, censoring: Indices, row: int, levels: list[Fraction], y_bounds: Any
) -> None:
    """A set that contains the limit of a censored row contains everything beyond it that bounds allow."""
    side = censoring[row]
    others = np.delete(np.arange(y.size), row)
    shown = (side * y[others] <= side * y[row])[censoring[others] == side]
    if side == 0 or not shown.any():
        return
    beyond = float(y[row] + 0.5 * side * (abs(y[row]) or 1.0))
    if isinstance(y_bounds, tuple | list):
        beyond = float(Bounds.of(y_bounds).clip(np.array(beyond)))
    for pieces, level in zip(answers.sets, levels, strict=True):
        if _inside(pieces, float(y[row])) and not _inside(pieces, beyond):
            raise AssertionError(
                f"row {row} as the test row, level {float(level):.4g}: the set {pieces.tolist()} contains the limit "
                f"{y[row]}, and not all values beyond."
            )


def _check_misses(found: list[_Answers], y: Array, rows: Indices, levels: list[Fraction]) -> None:
    """No more rows miss than the theorem allows."""
    for place, level in enumerate(levels):
        delta = 1 - level
        allowed = math.floor(delta * len(found))
        missed = {
            "p-values": [answers.p <= float(delta) * (1.0 - 1e-12) for answers in found],
            "sets": [not _inside(answers.sets[place], value) for answers, value in zip(found, y, strict=True)],
            "intervals": [
                not answers.interval[0, place] <= value <= answers.interval[1, place]
                for answers, value in zip(found, y, strict=True)
            ],
            "lower bounds": [value < answers.lower[place] for answers, value in zip(found, y, strict=True)],
            "upper bounds": [value > answers.upper[place] for answers, value in zip(found, y, strict=True)],
        }
        for what, misses in missed.items():
            if sum(misses) > allowed:
                which = rows[np.flatnonzero(misses)].tolist()
                raise AssertionError(
                    f"{what} at level {float(level):.4g} miss {sum(misses)} of {len(found)} rows, each of them in turn "
                    f"the test row, and the theorem allows {allowed}: rows {which}."
                )
