"""Predictions and intervals of every row, by models that were not fitted to it."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
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
from conformal_gp.calibration import check_length, group_labels
from conformal_gp.conformal.levels import read_levels, rows_needed
from conformal_gp.design import Grid, columns_of
from conformal_gp.evaluation.findings import USUAL, Finding, Level, one_set_range, supported_levels
from conformal_gp.formatting import number, percent
from conformal_gp.validation import ExtrapolationWarning, is_frame

Progress = Callable[[int, int], None]


@dataclass(frozen=True)
class HeldOut:
    """Predictions of n rows that were held out, by one or several methods; made by :func:`cross_validate_intervals`.

    Examples
    --------
    >>> import numpy as np
    >>> from conformal_gp.evaluation import HeldOut
    >>> intervals = {"mine": np.array([[[0.0], [2.0]], [[1.0], [3.0]]])}
    >>> HeldOut(np.array([1.0, 9.0]), [0.5], {"mine": np.array([1.0, 2.0])}, intervals).findings()[0].n_outside
    1
    """

    y: Array
    """True values of the target, (n,)."""
    levels: list[Fraction]
    prediction: dict[str, Array]
    """Predictions of each method, (n,)."""
    intervals: dict[str, Array]
    """Lower and upper bounds of each method, (n, 2, levels)."""
    importance: dict[str, float] = field(default_factory=dict)
    """Permutation importance: relative increase of the first method's mean absolute error, the greatest first."""
    beyond: Mask = field(default_factory=lambda: np.zeros(0, dtype=bool))
    """Rows outside the range of the training rows of their fold, (n,)."""
    rows: Indices = field(default_factory=lambda: np.zeros(0, dtype=np.int64))
    """Row numbers of the held-out rows in the data, (n,)."""
    n_calibration: int = 0
    """Calibration rows of the first method, in the last fold; 0 if unknown."""
    groups: NDArray[Any] | None = None
    """Groups of the rows, (n,), if coverage is guaranteed within each."""
    p_values: Array = field(default_factory=lambda: np.zeros(0))
    """Conformal p-values of the true values under the first method, (n,); empty if it has none."""
    grid: Grid | None = None
    """The designed grid that the rows of the data are, if they are one."""

    def one_set(self) -> str:
        """Describe the variability of coverage over training sets, in a sentence; empty if it is unknown."""
        level = next((level for level in self.levels if level >= USUAL[0]), self.levels[-1])
        if rows_needed(level) > self.n_calibration:
            return ""
        low, high = 100.0 * one_set_range(level, self.n_calibration)
        return (
            "The guarantee is an average over training sets. With a training set of this size, actual coverage of "
            f"{percent(level)} intervals is between {low:.0f}% and {high:.0f}% in nine cases out of ten."
        )

    def error(self) -> str:
        """Describe the errors of the first method's predictions, in a sentence: medians, as one row may be far off."""
        miss = np.median(np.abs(self.y - next(iter(self.prediction.values()))))
        scatter = np.median(np.abs(self.y - np.median(self.y)))
        return f"Median absolute error {number(miss)} (always predicting the median: {number(scatter)})."

    def at(self, levels: Sequence[Fraction]) -> HeldOut:
        """Return the same at some of the levels."""
        places = [self.levels.index(level) for level in levels]
        intervals = {name: every[:, :, places] for name, every in self.intervals.items()}
        return replace(self, levels=list(levels), intervals=intervals)

    def findings(self, confidence_level: Iterable[Level] | None = None) -> list[Finding]:
        """Findings on each method at each level, or at each of those given."""
        return [
            Finding.of(name, level, self.y, intervals[:, :, self.levels.index(level)], on_grid=self.grid is not None)
            for level in self._read(confidence_level)
            for name, intervals in self.intervals.items()
        ]

    def by_group(self, confidence_level: Iterable[Level] | None = None) -> list[Finding]:
        """Findings on the first method in each group, at each level or each of those given; empty without groups."""
        if self.groups is None:
            return []
        name, intervals = next(iter(self.intervals.items()))
        labels = dict.fromkeys(self.groups)
        described = {"n_parts": len(labels), "on_grid": self.grid is not None}
        found = []
        for level in self._read(confidence_level):
            ends = intervals[:, :, self.levels.index(level)]
            for label in labels:
                rows = self.groups == label
                found.append(Finding.of(name, level, self.y[rows], ends[rows], among=f"group {label}", **described))
        return found

    def _read(self, confidence_level: Iterable[Level] | None) -> list[Fraction]:
        if confidence_level is None:
            return self.levels
        return read_levels(confidence_level)[0]


def cross_validate_intervals(
    models: Mapping[str, Any],
    X: Any,
    y: ArrayLike,
    confidence_level: Level | Iterable[Level] | None = None,
    *,
    cv: Any = 10,
    random_state: int | None = 0,
    standard_gp: str | None = None,
    tails: str = "joint",
    importance: bool = False,
    y_variance: ArrayLike | None = None,
    groups: ArrayLike | None = None,
    progress: Progress | None = None,
) -> HeldOut:
    """Predict rows by models that are fitted to the other folds.

    Parameters
    ----------
    models : mapping of str to regressors with ``predict_interval``
        Models under their names; they are cloned. Warnings of all but the first are ignored.
    X, y
        Inputs and target, as models take them.
    confidence_level : float, sequence of floats or None, default=None
        None takes those of 90, 95 and 99% that the rows support (:func:`supported_levels`).
    cv : int or splitter, default=10
        Number of shuffled folds, or a scikit-learn splitter that holds out every row at most once.
    random_state : int or None, default=0
        Seed of the folds and of shuffled columns.
    standard_gp : str or None, default=None
        Name under which to add the intervals of the first model's Gaussian process: mean and normal quantiles.
    tails : {"joint", "equal"}, default="joint"
        Which intervals to take of models that have both: those with ``predict_distribution``.
    importance : bool, default=False
        Whether to measure permutation importance: each column is shuffled among held-out rows.
    y_variance : array-like of shape (n_samples,) or None, default=None
        Known noise variance of each observation, for models whose ``fit`` takes it. The first model must.
    groups : array-like of shape (n_samples,) or None, default=None
        Groups of the rows, for models whose ``fit`` takes them. The first model must. Intervals of rows whose group
        the other folds do not have are infinite.
    progress : callable or None, default=None
        Called after each fit with the numbers of fits done and of all fits.

    Returns
    -------
    held_out : HeldOut
        Predictions and intervals of the rows that were held out, in their order.

    Examples
    --------
    >>> from conformal_gp import ConformalGPRegressor
    >>> from conformal_gp.datasets import load_servo
    >>> from conformal_gp.evaluation import cross_validate_intervals, verdict
    >>> X, y = load_servo(return_X_y=True)
    >>> models = {"ours": ConformalGPRegressor("se", tuning="fixed", noise_variance=0.1)}
    >>> held_out = cross_validate_intervals(models, X, y, 0.8, cv=5)
    >>> print(verdict(held_out.findings())[0])
    ours: 80% intervals covered 80.8% (expected 73.7 to 85.6%): within the expected range.
    """
    if not models or standard_gp in models:
        raise ValueError(f"models must not be empty nor have the name that standard_gp has, got {list(models)}.")
    target = column_or_1d(y, dtype=np.float64)
    known = _known(models, X, target, y_variance, groups)
    splits = _splits(cv, X, target, random_state)
    rows = np.concatenate([test for _, test in splits])
    order = np.argsort(rows)
    first, *others = models
    levels: list[Fraction] = []
    if confidence_level is not None:
        levels = read_levels(confidence_level)[0]
    found: dict[str, list[_Predicted]] = {first: []}
    if standard_gp is not None:
        found[standard_gp] = []
    found |= {name: [] for name in others}
    extras: list[_Extras] = []
    done = 0
    for train, test in splits:
        for name, model in models.items():
            ignored = ExtrapolationWarning if name == first else UserWarning
            fold = _Fold(model, X, target, known, train, test)
            with warnings.catch_warnings(action="ignore", category=ignored):
                fitted = fold.fit()
                levels = levels or supported_levels(_calibration_rows(fitted))
                asked = [float(level) for level in levels]
                found[name].append(fold.predicted(fitted, asked, tails))
                if name == first:
                    extras.append(fold.extras(fitted, importance, random_state))
                    if standard_gp is not None:
                        found[standard_gp].append(fold.standard(fitted, asked))
            done += 1
            if progress is not None:
                progress(done, len(splits) * len(models))
    prediction = {name: np.concatenate([part.prediction for part in parts])[order] for name, parts in found.items()}
    intervals = {name: np.concatenate([part.intervals for part in parts])[order] for name, parts in found.items()}
    held = target[rows[order]]
    shares: dict[str, float] = {}
    if importance:
        added = np.sum([extra.added_errors for extra in extras], axis=0)
        shares = _shares(columns_of(X), added, float(np.abs(held - prediction[first]).sum()))
    by_group = None
    n_calibration = extras[-1].n_calibration
    if groups is not None:
        by_group = known["groups"][rows[order]]
        n_calibration = 0  # it differs between groups
    p_values = np.concatenate([extra.p_values for extra in extras])
    if p_values.size:
        p_values = p_values[order]
    return HeldOut(
        held,
        levels,
        prediction,
        intervals,
        importance=shares,
        beyond=np.concatenate([extra.beyond for extra in extras])[order],
        rows=rows[order],
        n_calibration=n_calibration,
        groups=by_group,
        p_values=p_values,
        grid=_grid(X),
    )


class _Predicted(NamedTuple):
    """Predictions (m,) and intervals (m, 2, levels) of the rows of a fold."""

    prediction: Array
    intervals: Array


class _Extras(NamedTuple):
    """Further results of the first model in a fold."""

    n_calibration: int
    beyond: Mask
    added_errors: Array
    p_values: Array


class _Fold(NamedTuple):
    """A model, the data, and the rows that it is fitted to and tested on."""

    model: Any
    X: Any
    y: Array
    known: dict[str, NDArray[Any]]
    train: Indices
    test: Indices

    def fit(self) -> Any:
        """Fit the model to the training rows."""
        return clone(self.model).fit(
            _safe_indexing(self.X, self.train), self.y[self.train], **self._known_of(self.train)
        )

    def predicted(self, fitted: Any, levels: list[float], tails: str) -> _Predicted:
        """Predict the test rows."""
        new = _safe_indexing(self.X, self.test)
        options = self._known_of(self.test)
        if hasattr(fitted, "predict_distribution"):
            options["tails"] = tails
        return _Predicted(fitted.predict(new), _intervals(fitted, new, levels, options))

    def standard(self, fitted: Any, levels: list[float]) -> _Predicted:
        """Predict the test rows by the Gaussian process alone."""
        noise = {name: values[self.test] for name, values in self.known.items() if name == "y_variance"}
        mean, std = fitted.predict(_safe_indexing(self.X, self.test), return_std=True, **noise)
        return _Predicted(mean, error_bars(mean, std, levels))

    def extras(self, fitted: Any, importance: bool, random_state: int | None) -> _Extras:
        """Measure what is asked of the first model in addition to its predictions."""
        new = _safe_indexing(self.X, self.test)
        beyond = np.zeros(self.test.size, dtype=bool)
        if hasattr(fitted, "beyond_training"):
            beyond = fitted.beyond_training(new).any(axis=1)
        added = np.zeros(0)
        if importance:
            added = self.test.size * _added_errors(fitted, new, self.y[self.test], random_state)
        return _Extras(_calibration_rows(fitted), beyond, added, self._p_values(fitted))

    def _p_values(self, fitted: Any) -> Array:
        """P-values of the true values of the test rows; 1 in groups without calibration rows."""
        if not hasattr(fitted, "predict_p"):
            return np.zeros(0)
        seen = _seen(fitted, self.test.size, self._known_of(self.test))
        rows = self.test[seen]
        p_values = np.ones(self.test.size)
        if rows.size:
            new = _safe_indexing(self.X, rows)
            p_values[seen] = fitted.predict_p(new, self.y[rows], **self._known_of(rows))
        return p_values

    def _known_of(self, rows: Indices) -> dict[str, Any]:
        """Noise variances and groups of some rows, as far as the model takes them."""
        return {name: values[rows] for name, values in self.known.items() if has_fit_parameter(self.model, name)}


def _known(
    models: Mapping[str, Any], X: Any, y: Array, y_variance: ArrayLike | None, groups: ArrayLike | None
) -> dict[str, NDArray[Any]]:
    """Check noise variances and groups of the rows."""
    check_consistent_length(X, y, y_variance)
    known: dict[str, NDArray[Any]] = {}
    if y_variance is not None:
        known["y_variance"] = np.asarray(y_variance, dtype=np.float64)
    if groups is not None:
        known["groups"] = np.fromiter(group_labels(X, groups), dtype=object)
        check_length(known["groups"], y.size)
    first = next(iter(models.values()))
    for name in known:
        if not has_fit_parameter(first, name):
            raise ValueError(f"{name} was given, but fit of {type(first).__name__} does not take it.")
    return known


def _splits(cv: Any, X: Any, y: Array, random_state: int | None) -> list[tuple[Indices, Indices]]:
    """Split rows into training and test rows; each row is tested at most once."""
    splitter = check_cv(cv) if not isinstance(cv, Integral) else KFold(cv, shuffle=True, random_state=random_state)
    splits = list(splitter.split(X, y))
    rows = np.concatenate([test for _, test in splits])
    if np.unique(rows).size < rows.size:
        raise ValueError(f"cv must hold out every row at most once, and holds out some repeatedly: {cv!r}.")
    return splits


def _grid(X: Any) -> Grid | None:
    """Return the designed grid that inputs are; None if they are none, or not a table of numbers and categories."""
    if not is_frame(X):
        X = np.asarray(X)
        if X.ndim != 2 or X.dtype.kind not in "biuf":
            return None
    return Grid.find(columns_of(X))


def _calibration_rows(fitted: Any) -> int:
    """Number of calibration rows of a model of this package; 0 for others."""
    if not hasattr(fitted, "guarantee_"):
        return 0
    return int(fitted._most_calibration)


def _shares(names: Iterable[str], added: Array, error: float) -> dict[str, float]:
    """Relative increase of the error by columns, the greatest first."""
    share = np.where(added > 0.0, np.inf, 0.0)
    if error > 0.0:
        share = added / error
    pairs = zip(names, share.tolist(), strict=True)
    return dict(sorted(pairs, key=lambda pair: -pair[1]))


def _intervals(model: Any, X: Any, levels: list[float], options: dict[str, Any]) -> Array:
    """Intervals of test rows, infinite for those of groups that have no calibration rows."""
    seen = _seen(model, len(X), options)
    ends = np.tile([[-np.inf], [np.inf]], (len(X), 1, len(levels)))
    if seen.any():
        own = {name: value[seen] if isinstance(value, np.ndarray) else value for name, value in options.items()}
        ends[seen] = model.predict_interval(_safe_indexing(X, np.flatnonzero(seen)), levels, **own)
    return ends


def _seen(model: Any, n_rows: int, options: dict[str, Any]) -> Mask:
    """Rows of groups that have calibration rows; all without groups."""
    if "groups" not in options:
        return np.ones(n_rows, dtype=bool)
    return np.array([group in model._groups.labels for group in options["groups"]])


def error_bars(mean: Array, std: Array, levels: Sequence[float]) -> Array:
    r"""Central intervals of normal distributions, :math:`\mu \pm \Phi^{-1}((1 + level)/2)\, \sigma`, (n, 2, levels)."""
    z = norm.ppf((1.0 + np.asarray(levels, dtype=np.float64)) / 2.0)
    return np.stack([mean[:, None] - std[:, None] * z, mean[:, None] + std[:, None] * z], axis=1)


def _added_errors(model: Any, X: Any, y: Array, random_state: int | None) -> Array:
    """Increase of the mean absolute error when each column is shuffled among the rows."""
    from sklearn.inspection import permutation_importance  # imports ensembles: only where it is asked for

    options = {"scoring": "neg_mean_absolute_error", "n_repeats": 5, "random_state": random_state}
    return np.asarray(permutation_importance(model, X, y, **options).importances_mean)
