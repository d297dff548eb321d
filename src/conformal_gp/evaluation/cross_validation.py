"""Predictions and intervals of every row, by models that were not fitted to it.

Rows that are left out one by one are predicted from their replicates and from the rest of their batch. New rows may
have neither. So rows with equal inputs are held out together, and so are whole batches, if they are given.
"""

from __future__ import annotations

import warnings
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from fractions import Fraction
from numbers import Integral
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.stats import norm
from sklearn.base import clone
from sklearn.model_selection import KFold, check_cv
from sklearn.utils import _safe_indexing, check_consistent_length, column_or_1d
from sklearn.utils.validation import has_fit_parameter

from conformal_gp.arrays import Array, Indices, Mask
from conformal_gp.conformal.levels import read_levels
from conformal_gp.evaluation.findings import Level, supported_levels
from conformal_gp.evaluation.held_out import HeldOut
from conformal_gp.extrapolation import ExtrapolationWarning, Grid, columns_of
from conformal_gp.formatting import CONFORMAL, STANDARD, number
from conformal_gp.groups import check_length, group_labels, without
from conformal_gp.targets.target import check_censoring
from conformal_gp.validation import is_frame

Progress = Callable[[int, int], None]
# What may be known of rows in addition to inputs and target, by the methods that take it.
FOR_PREDICTION = ("y_variance", "groups")
FOR_FIT = (*FOR_PREDICTION, "censoring", "batches")


def cross_validate_intervals(
    model: Any,
    X: Any,
    y: ArrayLike,
    confidence_level: Level | Iterable[Level] | None = None,
    *,
    cv: Any = 10,
    random_state: int | None = 0,
    standard_gp: bool = False,
    y_variance: ArrayLike | None = None,
    groups: ArrayLike | None = None,
    censoring: ArrayLike | None = None,
    groups_out: ArrayLike | None = None,
    batches: ArrayLike | None = None,
    progress: Progress | None = None,
) -> HeldOut:
    """Predict rows by a model that is fitted to the other folds.

    Parameters
    ----------
    model : regressor with ``predict_interval``
        It is cloned for every fold.
    X, y
        Inputs and target, as the model takes them.
    confidence_level : float, sequence of floats or None, default=None
        None takes those of 90, 95 and 99% that the rows support (:func:`supported_levels`).
    cv : int or splitter, default=10
        Number of shuffled folds, or a scikit-learn splitter that holds out every row at most once. With a number, rows
        with equal inputs (replicates) are held out together, as new rows have new inputs; ``together`` says so.
    random_state : int or None, default=0
        Seed of the folds.
    standard_gp : bool, default=False
        Whether to add the intervals of the model's Gaussian process, mean and normal quantiles, as "standard GP".
    y_variance : array-like of shape (n_samples,) or None, default=None
        Known noise variance of each observation,, if ``fit`` of the model takes it.
    groups : array-like of shape (n_samples,) or None, default=None
        Groups of the rows, if ``fit`` of the model takes them. Intervals of rows whose group the other folds do not
        have are infinite.
    censoring : array-like of shape (n_samples,) or None, default=None
        Limits of detection as ``fit`` takes them. A row beyond a limit counts as covered if its interval contains the
        limit; it then contains what lies beyond.
    groups_out : array-like of shape (n_samples,) or None, default=None
        Batches of the rows: whole batches are held out, so that coverage is that of rows of new batches. ``cv`` then
        splits batches. Rows of a batch may be missed together, so expected ranges are those of as many batches.
    batches : array-like of shape (n_samples,), str or None, default=None
        The same for a model whose ``fit`` takes ``batches``, and whose intervals are for new batches. A column of that
        name is no input.
    progress : callable or None, default=None
        Called after each fit with the numbers of fits done and of all fits.

    Returns
    -------
    held_out : HeldOut
        Predictions and intervals of the rows that were held out, in their order; the model is called "conformal".

    Examples
    --------
    >>> from conformal_gp import ConformalGPRegressor
    >>> from conformal_gp.datasets import load_servo
    >>> from conformal_gp.evaluation import cross_validate_intervals, verdict
    >>> X, y = load_servo(return_X_y=True)
    >>> model = ConformalGPRegressor("se", tuning="fixed", noise_variance=0.1)
    >>> held_out = cross_validate_intervals(model, X, y, 0.8, cv=5)
    >>> print(verdict(held_out.findings())[0])
    conformal: 80% intervals covered 80.8%, as expected; median width ...
    """
    target = column_or_1d(y, dtype=np.float64)
    known = _known(model, X, target, y_variance, groups, censoring, batches)
    if batches is not None:
        if groups_out is not None:
            raise ValueError("give groups_out or batches, not both: with batches, whole batches are held out.")
        groups_out = known["batches"]
    if isinstance(batches, str):
        X = without(X, batches)
    columns = {}
    if is_frame(X) or (np.ndim(X) == 2 and np.asarray(X).dtype.kind in "biuf"):
        columns = columns_of(X)
    splits, together = make_folds(cv, columns, target.size, random_state, groups_out)
    rows = np.sort(np.concatenate([test for _, test in splits]))
    levels: list[Fraction] = []
    if confidence_level is not None:
        levels = read_levels(confidence_level)[0]
    prediction: dict[str, Array] = defaultdict(lambda: np.empty(target.size))
    intervals: dict[str, Array] = defaultdict(lambda: np.empty((target.size, 2, len(levels))))
    beyond = np.zeros(target.size, dtype=bool)
    p_values = np.empty(target.size)
    noise: list[float] = []
    for done, (train, test) in enumerate(splits, 1):
        fold = _Fold(model, X, target, known, train, test)
        with warnings.catch_warnings(action="ignore", category=ExtrapolationWarning):
            fitted = fold.fit()
            n_calibration = getattr(fitted, "_most_calibration", 0)
            levels = levels or supported_levels(n_calibration)
            prediction[CONFORMAL][test] = fitted.predict(fold.new)
            intervals[CONFORMAL][test] = fold.intervals(fitted, levels)
            beyond[test] = fold.beyond(fitted)
            p_values[test] = fold.p_values(fitted)
            noise.append(_noise(fitted))
            if standard_gp:
                prediction[STANDARD][test], intervals[STANDARD][test] = fold.standard(fitted, levels)
        if progress is not None:
            progress(done, len(splits))
    of_rows: dict[str, NDArray[Any]] = {name: known[name][rows] for name in ("groups", "censoring") if name in known}
    if groups_out is not None:
        of_rows["batches"] = np.asarray(groups_out)[rows].astype(str)
    return HeldOut(
        target[rows],
        levels,
        {name: values[rows] for name, values in prediction.items()},
        {name: ends[rows] for name, ends in intervals.items()},
        beyond=beyond[rows],
        rows=rows,
        n_calibration=0 if "groups" in known else n_calibration,  # it differs between groups
        p_values=p_values[rows],
        grid=Grid.find(columns),
        together=together,
        calibration="rows" if batches is None else "batches",
        replicates=_replicates(columns, target, known.get("censoring"), noise),
        **of_rows,
    )


def _noise(fitted: Any) -> float:
    """Standard deviation of the noise of a model of this package in units of the target; NaN if it is not constant."""
    if not hasattr(fitted, "_tuned") or fitted._has_y_variance or fitted._tuned.target.transformation is not None:
        return np.nan
    return float(np.sqrt(fitted.noise_variance_))


def _replicates(columns: Mapping[str, NDArray[Any]], y: Array, censoring: Indices | None, noise: list[float]) -> str:
    """Compare the scatter of replicates with the noise of the models, in a sentence; empty without replicates.

    Limits of detection do not tell how much replicates differ.
    """
    if censoring is not None:
        seen = np.flatnonzero(censoring == 0)
        columns = {name: values[seen] for name, values in columns.items()}
        y = y[seen]
    if not columns or not y.size:
        return ""
    deviation, degrees = pure_error(columns, y)
    if degrees == 0:
        return ""
    freedom = "1 degree" if degrees == 1 else f"{degrees} degrees"
    said = f"Replicates differ by a standard deviation of {number(deviation, 3)} ({freedom} of freedom"
    typical = float(np.median(noise))
    if np.isnan(typical):
        return f"{said}); an interval is for a single new measurement, its noise included."
    return (
        f"{said}), the model's noise is {number(typical, 3)}; an interval is for a single new measurement, with noise."
    )


class _Fold(NamedTuple):
    """A model, the data, and the rows that it is fitted to and tested on."""

    model: Any
    X: Any
    y: Array
    known: dict[str, NDArray[Any]]
    train: Indices
    test: Indices

    @property
    def new(self) -> Any:
        """Inputs of the test rows."""
        return _safe_indexing(self.X, self.test)

    def fit(self) -> Any:
        """Fit the model to the training rows."""
        rows = _safe_indexing(self.X, self.train)
        return clone(self.model).fit(rows, self.y[self.train], **self._known_of(self.train, FOR_FIT))

    def intervals(self, fitted: Any, levels: list[Fraction]) -> Array:
        """Intervals of the test rows, infinite for those of groups that have no calibration rows."""
        seen = self._seen(fitted)
        rows = self.test[seen]
        ends = np.tile([[-np.inf], [np.inf]], (self.test.size, 1, len(levels)))
        if rows.size:
            new = _safe_indexing(self.X, rows)
            ends[seen] = fitted.predict_interval(new, [*map(float, levels)], **self._known_of(rows))
        return ends

    def standard(self, fitted: Any, levels: list[Fraction]) -> tuple[Array, Array]:
        """Predictions and central intervals of the test rows by the Gaussian process alone."""
        noise = {name: values[self.test] for name, values in self.known.items() if name == "y_variance"}
        mean, std = fitted.predict(self.new, return_std=True, **noise)
        ends = np.stack(norm.interval([*map(float, levels)], mean[:, None], std[:, None]), axis=1)
        return mean, fitted._tuned.target.limits.extend(ends)

    def beyond(self, fitted: Any) -> Mask:
        """Test rows outside the training range; none of a model that does not tell."""
        if not hasattr(fitted, "beyond_training"):
            return np.zeros(self.test.size, dtype=bool)
        found: Mask = fitted.beyond_training(self.new).any(axis=1)
        return found

    def p_values(self, fitted: Any) -> Array:
        """P-values of the true values of the test rows; 1 in groups without calibration rows, NaN if it has none."""
        if not hasattr(fitted, "predict_p"):
            return np.full(self.test.size, np.nan)
        seen = self._seen(fitted)
        rows = self.test[seen]
        p_values = np.ones(self.test.size)
        if rows.size:
            p_values[seen] = fitted.predict_p(_safe_indexing(self.X, rows), self.y[rows], **self._known_of(rows))
        return p_values

    def _seen(self, fitted: Any) -> Mask:
        """Test rows of groups that have calibration rows; all without groups."""
        groups = self._known_of(self.test).get("groups")
        if groups is None:
            return np.ones(self.test.size, dtype=bool)
        return np.array([group in fitted._groups.labels for group in groups])

    def _known_of(self, rows: Indices, names: tuple[str, ...] = FOR_PREDICTION) -> dict[str, Any]:
        return {name: self.known[name][rows] for name in names if name in self.known}


def _known(
    model: Any,
    X: Any,
    y: Array,
    y_variance: ArrayLike | None,
    groups: ArrayLike | None,
    censoring: ArrayLike | None,
    batches: ArrayLike | None,
) -> dict[str, NDArray[Any]]:
    """Check noise variances, groups and limits of the rows."""
    check_consistent_length(X, y, y_variance)
    known: dict[str, NDArray[Any]] = {}
    if y_variance is not None:
        known["y_variance"] = np.asarray(y_variance, dtype=np.float64)
    if groups is not None:
        known["groups"] = np.fromiter(group_labels(X, groups), dtype=object)
        check_length(known["groups"], y.size)
    if batches is not None:
        known["batches"] = np.array([str(label) for label in group_labels(X, batches, "batches")])
        check_length(known["batches"], y.size, "batches")
    codes = None
    if censoring is not None:
        codes = check_censoring(censoring, y.size)
    if codes is not None:
        known["censoring"] = codes
    for name in known:
        if not has_fit_parameter(model, name):
            raise ValueError(f"{name} was given, but fit of {type(model).__name__} does not take it.")
    return known


# Folds


def make_folds(
    cv: Any, columns: Mapping[str, NDArray[Any]], n_rows: int, random_state: int | None, groups_out: ArrayLike | None
) -> tuple[list[tuple[Indices, Indices]], str]:
    """Split rows by a number of folds or by a splitter of scikit-learn; each row is tested at most once.

    With a number, rows with equal inputs are held out together. With ``groups_out`` whole groups are split, in order of
    their first rows. A sentence says what is held out together; it is empty if nothing is.

    Examples
    --------
    >>> doses = np.repeat([1.0, 2.0, 3.0], 2)
    >>> splits, together = make_folds(3, {"dose": doses}, 6, 0, None)
    >>> [test.tolist() for _, test in splits], together
    ([[4, 5], [2, 3], [0, 1]], 'Rows with equal inputs are held out together: 3 distinct inputs in 6 rows.')
    >>> [test.tolist() for _, test in make_folds(2, {"dose": doses}, 6, 0, ["a", "b", "b", "c", "c", "c"])[0]]
    [[1, 2, 3, 4, 5], [0]]
    """
    is_number = isinstance(cv, Integral)
    splitter = check_cv(cv)
    together = ""
    if groups_out is not None:
        units = _numbered(_checked(groups_out, n_rows))
        n_units = int(units.max()) + 1
        together = f"Whole batches are held out together: {n_units} batches in {n_rows} rows."
    else:
        units = distinct_inputs(columns, n_rows)
        n_units = int(units.max()) + 1
        if not is_number:
            units = np.arange(n_rows)
            n_units = n_rows
        elif n_units < n_rows:
            together = f"Rows with equal inputs are held out together: {n_units} distinct inputs in {n_rows} rows."
    if is_number:
        n_folds = int(cv)
        if n_units < n_rows:
            n_folds = min(n_folds, n_units)
        splitter = KFold(n_folds, shuffle=True, random_state=random_state)
    splits = [
        (np.flatnonzero(np.isin(units, train)), np.flatnonzero(np.isin(units, test)))
        for train, test in splitter.split(np.zeros(n_units))
    ]
    rows = np.concatenate([test for _, test in splits])
    if np.unique(rows).size < rows.size:
        raise ValueError(f"cv must hold out every row at most once, and holds out some repeatedly: {cv!r}.")
    return splits, together


def distinct_inputs(columns: Mapping[str, NDArray[Any]], n_rows: int) -> Indices:
    """Number of each row's inputs among the distinct ones, in order of their first rows.

    >>> distinct_inputs({"dose": np.array([5.0, 1.0, 5.0]), "kind": np.array(["a", "a", "a"])}, 3)
    array([0, 1, 0])
    """
    codes = [np.unique(values, return_inverse=True)[1] for values in columns.values()]
    return _numbered(np.column_stack([np.zeros(n_rows, dtype=np.int64), *codes]))


def pure_error(columns: Mapping[str, NDArray[Any]], y: Array) -> tuple[float, int]:
    """Standard deviation of replicates about their means, and its degrees of freedom; 0 and 0 without replicates.

    >>> pure_error({"dose": np.array([5.0, 1.0, 5.0])}, np.array([2.0, 9.0, 4.0]))
    (1.4142135623730951, 1)
    """
    numbers = distinct_inputs(columns, y.size)
    degrees = y.size - int(numbers.max()) - 1
    if degrees == 0:
        return 0.0, 0
    means = np.bincount(numbers, y) / np.bincount(numbers)
    return float(np.sqrt(((y - means[numbers]) ** 2).sum() / degrees)), degrees


def _numbered(values: NDArray[Any]) -> Indices:
    """Number rows of values, (n,) or (n, k), in order of their first appearance."""
    _, first, inverse = np.unique(values, axis=0, return_index=True, return_inverse=True)
    return np.argsort(np.argsort(first))[inverse.ravel()]


def _checked(groups_out: Any, n_rows: int) -> NDArray[Any]:
    """Labels of groups, one for each row, of at least two groups."""
    labels = np.asarray(groups_out)
    if labels.dtype.kind == "O":
        labels = labels.astype(str)
    if labels.shape != (n_rows,):
        raise ValueError(f"groups_out must hold one value for each of the {n_rows} rows, got {labels.shape}.")
    if (labels == labels[0]).all():
        raise ValueError(f"groups_out must have at least two groups, got '{labels[0]}' alone.")
    return labels
