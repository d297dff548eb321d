"""Intervals of every row from models that have not seen it."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from numbers import Integral
from typing import Any

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
from conformal_gp.evaluation.findings import USUAL, Finding, Level, number, one_set_range, percent, supported_levels
from conformal_gp.evaluation.parts import columns_of
from conformal_gp.validation import ExtrapolationWarning

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
    """Labels, (n,)."""
    levels: list[Fraction]
    prediction: dict[str, Array]
    """Predicted labels of each method, (n,)."""
    intervals: dict[str, Array]
    """Lower and upper ends of each method, (n, 2, levels)."""
    importance: dict[str, float] = field(default_factory=dict)
    """Growth of the first method's mean absolute error when a column is shuffled, the greatest first: 0.5 is 50%."""
    beyond: Mask = field(default_factory=lambda: np.zeros(0, dtype=bool))
    """Rows that lay beyond the rows that they were predicted from, (n,)."""
    rows: Indices = field(default_factory=lambda: np.zeros(0, dtype=np.int64))
    """Which rows of the data were held out, (n,)."""
    n_calibration: int = 0
    """How many rows the first method's intervals were ranked among, in the last fold; 0 if that is not known."""
    groups: NDArray[Any] | None = None
    """Groups of the rows, (n,), if intervals are to keep their level in each."""
    before: Array | None = None
    """Intervals of the first method without map of labels and difficulty, (n, 2, levels); None if it has neither."""

    def one_set(self) -> str:
        """How far coverage of one set of training rows may lie from the level, in a sentence; empty if not known."""
        level = next((level for level in self.levels if level >= USUAL[0]), self.levels[-1])
        if rows_needed(level) > self.n_calibration:
            return ""
        low, high = 100.0 * one_set_range(level, self.n_calibration)
        held = f"{percent(level)} intervals from one such table hold {low:.0f} to {high:.0f}% of new labels"
        return f"A level is an average over training tables: {held}, in nine tables of ten."

    def error(self) -> str:
        """How far the first method's predictions miss, in a sentence: medians, as one row may be far off."""
        miss = np.median(np.abs(self.y - next(iter(self.prediction.values()))))
        scatter = np.median(np.abs(self.y - np.median(self.y)))
        labels = f"half of the labels lie within {number(scatter)} of their median"
        return f"Half of the predictions miss by less than {number(miss)}; {labels}."

    def findings(self, confidence_level: Iterable[Level] | None = None) -> list[Finding]:
        """How each method did at each level, or each of those given."""
        return [
            Finding.of(name, level, self.y, intervals[:, :, self.levels.index(level)])
            for level in (self.levels if confidence_level is None else read_levels(confidence_level)[0])
            for name, intervals in self.intervals.items()
        ]

    def by_group(self, confidence_level: Iterable[Level] | None = None) -> list[Finding]:
        """How the first method did in each group, at each level or each of those given; empty without groups."""
        labels = [] if self.groups is None else list(dict.fromkeys(self.groups))
        (name, intervals), *_ = self.intervals.items()
        found = []
        for level in self.levels if confidence_level is None else read_levels(confidence_level)[0]:
            for label in labels:
                rows = self.groups == label
                ends = intervals[rows, :, self.levels.index(level)]
                found.append(Finding.of(name, level, self.y[rows], ends, f"group {label}", len(labels)))
        return found


def cross_validate_intervals(
    models: Mapping[str, Any],
    X: Any,
    y: ArrayLike,
    confidence_level: Level | Iterable[Level] | None = None,
    *,
    cv: Any = 10,
    random_state: int | None = 0,
    plain: str | None = None,
    tails: str = "joint",
    importance: bool = False,
    before: bool = False,
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
        Inputs and labels, as models take them.
    confidence_level : float, sequence of floats or None, default=None
        None takes those of 90, 95 and 99% that the rows support (:func:`supported_levels`).
    cv : int or splitter, default=10
        Number of shuffled folds, or a scikit-learn splitter that holds out every row at most once.
    random_state : int or None, default=0
        Seed of the folds and of shuffled columns.
    plain : str or None, default=None
        Name under which to add the first model's own error bars: mean and normal quantiles.
    tails : {"joint", "equal"}, default="joint"
        Which intervals to take of models that have both: those with ``predict_distribution``.
    importance : bool, default=False
        Whether to shuffle each column among held-out rows, which shows how much predictions rest on it.
    before : bool, default=False
        Whether to fit the first model also with ``target_transform=None`` and ``difficulty=None``, in folds where it
        has one.
    y_variance : array-like of shape (n_samples,) or None, default=None
        Known variance of the noise on each label, for models whose ``fit`` takes it, of which the first must be one.
    groups : array-like of shape (n_samples,) or None, default=None
        Groups of the rows, for models whose ``fit`` takes them, of which the first must be one. A row of a group that
        the other folds do not have is ranked among all rows.
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
    ours: 80% kept (19.2% outside; chance allows 14.4 to 26.3%).
    """
    if not models or plain in models:
        raise ValueError(f"models must not be empty nor have the name that plain has, got {list(models)}.")
    labels = column_or_1d(y, dtype=np.float64)
    check_consistent_length(X, labels, y_variance)
    first = next(iter(models))
    known: dict[str, NDArray[Any]] = {}
    if y_variance is not None:
        known["y_variance"] = np.asarray(y_variance, dtype=np.float64)
    if groups is not None:
        known["groups"] = np.fromiter(group_labels(X, groups), dtype=object)
        check_length(known["groups"], labels.size)
    for name in known:
        if not has_fit_parameter(models[first], name):
            raise ValueError(f"{name} is given, and fit of {type(models[first]).__name__} does not take it.")
    splitter = KFold(cv, shuffle=True, random_state=random_state) if isinstance(cv, Integral) else check_cv(cv)
    splits = list(splitter.split(X, labels))
    rows = np.concatenate([test for _, test in splits])
    if np.unique(rows).size < rows.size:
        raise ValueError(f"cv must hold out every row at most once, and holds out some repeatedly: {cv!r}.")
    levels = None if confidence_level is None else read_levels(confidence_level)[0]
    found: dict[str, list[tuple[Array, Array]]] = {name: [] for name in (first, *filter(None, [plain]), *models)}
    beyond: list[Mask] = []
    plainer: list[Array] = []
    adapted = False
    added, done, n_calibration = np.zeros(len(columns_of(X))), 0, 0

    def of_rows(model: Any, which: Indices) -> dict[str, Any]:
        """What is known of some rows besides inputs and labels, as far as a model takes it."""
        return {name: values[which] for name, values in known.items() if has_fit_parameter(model, name)}

    for train, test in splits:
        new = _safe_indexing(X, test)
        for name, model in models.items():
            ignored = ExtrapolationWarning if name == first else UserWarning
            with warnings.catch_warnings(action="ignore", category=ignored):
                own = of_rows(model, train)
                fitted = clone(model).fit(_safe_indexing(X, train), labels[train], **own)
                if name == first:
                    n_calibration = fitted._most_calibration if hasattr(fitted, "guarantee_") else 0
                levels = levels or supported_levels(n_calibration)
                asked = [float(level) for level in levels]
                which = of_rows(model, test) | ({"tails": tails} if hasattr(fitted, "predict_distribution") else {})
                found[name].append((fitted.predict(new), _intervals(fitted, new, asked, which)))
                if name == first and plain is not None:
                    noise = {name: value for name, value in which.items() if name == "y_variance"}
                    mean, std = fitted.predict(new, return_std=True, **noise)
                    found[plain].append((mean, error_bars(mean, std, asked)))
                if name == first and hasattr(fitted, "beyond_training"):
                    beyond.append(fitted.beyond_training(new).any(axis=1))
                if name == first and before:
                    ends = found[name][-1][1]
                    if fitted.target_transform_ is not None or fitted.difficulty_ is not None:
                        simple, adapted = clone(model).set_params(target_transform=None, difficulty=None), True
                        simple.fit(_safe_indexing(X, train), labels[train], **own)
                        ends = _intervals(simple, new, asked, which)
                    plainer.append(ends)
                if name == first and importance:
                    added += test.size * _added_errors(fitted, new, labels[test], random_state)
            done += 1
            if progress is not None:
                progress(done, len(splits) * len(models))
    order = np.argsort(rows)

    def joined(place: int) -> dict[str, Array]:
        """Predictions (0) or intervals (1) of each method, in the order of the rows."""
        return {name: np.concatenate([part[place] for part in parts])[order] for name, parts in found.items()}

    held, prediction = labels[rows[order]], joined(0)
    error = np.abs(held - prediction[first]).sum()
    share = added / error if error > 0.0 else np.where(added > 0.0, np.inf, 0.0)
    growth = dict(zip(columns_of(X), share.tolist(), strict=True)) if importance else {}
    growth = {name: growth[name] for name in sorted(growth, key=lambda name: -growth[name])}
    outside = np.concatenate(beyond)[order] if beyond else np.zeros(rows.size, dtype=bool)
    by_group = None if groups is None else known["groups"][rows[order]]
    n_calibration = n_calibration if groups is None else 0  # it differs between groups
    one_width = np.concatenate(plainer)[order] if adapted else None
    details = growth, outside, rows[order], n_calibration, by_group, one_width
    return HeldOut(held, levels or [], prediction, joined(1), *details)


def _intervals(model: Any, X: Any, levels: list[float], options: dict[str, Any]) -> Array:
    """Intervals of test rows, infinite for those of groups that have no calibration rows."""
    seen = np.ones(len(X), dtype=bool)
    if "groups" in options:
        seen = np.array([group in model._groups.labels for group in options["groups"]])
    ends = np.tile([[-np.inf], [np.inf]], (len(X), 1, len(levels)))
    if seen.any():
        own = {name: value[seen] if isinstance(value, np.ndarray) else value for name, value in options.items()}
        ends[seen] = model.predict_interval(_safe_indexing(X, np.flatnonzero(seen)), levels, **own)
    return ends


def error_bars(mean: Array, std: Array, levels: Sequence[float]) -> Array:
    r"""Central intervals of normal distributions, :math:`\mu \pm \Phi^{-1}((1 + level)/2)\, \sigma`, (n, 2, levels)."""
    z = norm.ppf((1.0 + np.asarray(levels, dtype=np.float64)) / 2.0)
    return np.stack([mean[:, None] - std[:, None] * z, mean[:, None] + std[:, None] * z], axis=1)


def _added_errors(model: Any, X: Any, y: Array, random_state: int | None) -> Array:
    """By how much the mean absolute error grows when each column is shuffled among the rows."""
    from sklearn.inspection import permutation_importance  # imports ensembles: only where it is asked for

    options = {"scoring": "neg_mean_absolute_error", "n_repeats": 5, "random_state": random_state}
    return np.asarray(permutation_importance(model, X, y, **options).importances_mean)
