"""Intervals of every row from models that have not seen it."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import clone
from sklearn.model_selection import KFold
from sklearn.utils import _safe_indexing, check_consistent_length, column_or_1d
from sklearn.utils.validation import has_fit_parameter

from conformal_gp.conformal.levels import read_levels
from conformal_gp.evaluation.judgement import Finding, Level
from conformal_gp.gp.error_bars import error_bars, normal_scores
from conformal_gp.types import Array, Mask, Rows
from conformal_gp.validation import ExtrapolationWarning, with_known_noise

Progress = Callable[[int, int], None]

# Most steps of a predictive distribution that is scored.
CRPS_STEPS = 199


@dataclass(frozen=True)
class HeldOut:
    """Predictions of rows that were held out, by one or several methods; see :func:`cross_validate_intervals`.

    Parameters
    ----------
    y : ndarray of shape (n_samples,)
        Labels.
    levels : list of Fraction
        Confidence levels, in the order of the intervals' last axis.
    prediction : dict of str to ndarray of shape (n_samples,)
        Predicted labels, for each method.
    intervals : dict of str to ndarray of shape (n_samples, 2, n_levels)
        Lower and upper ends, for each method.
    p_values : dict of str to ndarray of shape (n_samples,)
        p-values of the labels, for methods that have them and if they were asked for.
    crps : dict of str to ndarray of shape (n_samples,)
        Continuous ranked probability scores of the labels, for methods with predictive distributions and if they were
        asked for.
    quantiles : dict of str to ndarray of shape (n_samples, n_quantiles)
        Quantiles, for models with ``predict_quantiles`` and if they were asked for.
    shuffled : dict of str to ndarray of shape (n_samples,)
        Predictions of the first method with the inputs of a group shuffled among the held-out rows, for each group.
    beyond : ndarray of bool of shape (n_samples,)
        Rows that lay beyond the rows that they were predicted from, where the first method has ``beyond_training``.
    rows : ndarray of int of shape (n_samples,)
        Which rows of the data were held out.

    Examples
    --------
    >>> import numpy as np
    >>> from conformal_gp.comparators import ConformalRidge
    >>> from conformal_gp.evaluation import cross_validate_intervals
    >>> X = np.arange(30.0)[:, None]
    >>> held_out = cross_validate_intervals({"ridge": ConformalRidge()}, X, np.sin(X[:, 0]), [0.5, 0.8], cv=3)
    >>> held_out.prediction["ridge"].shape, held_out.intervals["ridge"].shape
    ((30,), (30, 2, 2))
    """

    y: Array
    levels: list[Fraction]
    prediction: dict[str, Array]
    intervals: dict[str, Array]
    p_values: dict[str, Array] = field(default_factory=dict)
    crps: dict[str, Array] = field(default_factory=dict)
    quantiles: dict[str, Array] = field(default_factory=dict)
    shuffled: dict[str, Array] = field(default_factory=dict)
    beyond: Mask = field(default_factory=lambda: np.zeros(0, dtype=bool))
    rows: Rows = field(default_factory=lambda: np.zeros(0, dtype=np.int64))

    def findings(self, confidence_level: Iterable[Level] | None = None) -> list[Finding]:
        """How each method did.

        Parameters
        ----------
        confidence_level : sequence of floats or None, default=None
            Some of the levels; None is all.

        Returns
        -------
        findings : list of Finding
            For each level, one for each method.

        Examples
        --------
        >>> from fractions import Fraction
        >>> import numpy as np
        >>> from conformal_gp.evaluation import HeldOut
        >>> means, intervals = np.array([1.0, 2.0]), np.array([[[0.0], [2.0]], [[1.0], [3.0]]])
        >>> held_out = HeldOut(np.array([1.0, 9.0]), [Fraction(1, 2)], {"mine": means}, {"mine": intervals})
        >>> [(finding.method, finding.n_outside) for finding in held_out.findings()]
        [('mine', 1)]
        """
        chosen = self.levels if confidence_level is None else read_levels(confidence_level)[0]
        return [
            Finding.of(name, level, self.y, intervals[:, :, self.levels.index(level)])
            for level in chosen
            for name, intervals in self.intervals.items()
        ]


def cross_validate_intervals(
    models: Mapping[str, Any],
    X: Any,
    y: ArrayLike,
    confidence_level: Level | Iterable[Level] = (0.9, 0.95, 0.99),
    *,
    cv: Any = 10,
    random_state: int | None = 0,
    plain: str | None = None,
    p_values: bool = False,
    crps: bool = False,
    quantiles: Sequence[Level] = (),
    tails: str = "joint",
    groups: Mapping[str, Sequence[int]] | None = None,
    partial: bool = False,
    label_range: tuple[float, float] = (-np.inf, np.inf),
    noise_variance: ArrayLike | None = None,
    progress: Progress | None = None,
) -> HeldOut:
    """Predict every row by models that are fitted to the other folds.

    Parameters
    ----------
    models : mapping of str to regressors with ``predict_interval``
        Models under their names; they are cloned. Warnings of all but the first are ignored, and those of rows beyond
        the training rows.
    X : array-like or data frame of shape (n_samples, n_features)
        Inputs.
    y : array-like of shape (n_samples,)
        Labels.
    confidence_level : float or sequence of floats, default=(0.9, 0.95, 0.99)
        Level or levels, each strictly between 0 and 1.
    cv : int or splitter, default=10
        Number of shuffled folds, or a scikit-learn splitter that holds out every row once.
    random_state : int or None, default=0
        Seed of the folds.
    plain : str or None, default=None
        Name under which to add the first model's own error bars: mean plus or minus a normal quantile times the
        standard deviation. They need no fit of their own. None leaves them out.
    p_values : bool, default=False
        Whether to compute p-values of the labels too.
    crps : bool, default=False
        Whether to score predictive distributions too.
    quantiles : sequence of floats, default=()
        Quantiles to predict too.
    tails : {"joint", "equal"}, default="joint"
        Which intervals to take of models that have both: those with ``predict_distribution``.
    groups : mapping of str to sequence of int, or None, default=None
        Groups of columns of ``X`` to shuffle, one after the other, among the rows of each fold, which shows how much
        predictions rest on them (:func:`importance`).
    partial : bool, default=False
        Whether ``cv`` may leave rows that are never held out. The result is then of the others, in their order.
    label_range : pair of floats, default=(-inf, inf)
        Least and greatest possible label, at which predictions, intervals and quantiles are cut off. Fixed beforehand
        they keep the guarantee, if labels really are within.
    noise_variance : array-like of shape (n_samples,) or None, default=None
        Known variance of the noise on each label, for models whose ``fit`` takes it, of which the first must be one.
        The others do without.
    progress : callable or None, default=None
        Called after each fit with the number of fits done and of all fits.

    Returns
    -------
    held_out : HeldOut
        Predictions and intervals of all rows.

    Examples
    --------
    >>> from conformal_gp import ConformalGPRegressor
    >>> from conformal_gp.datasets import load_servo
    >>> from conformal_gp.evaluation import cross_validate_intervals, verdict
    >>> X, y = load_servo(return_X_y=True)
    >>> models = {"GPR-CP": ConformalGPRegressor(tuning="holdout", length_scales="one", random_state=0)}
    >>> held_out = cross_validate_intervals(models, X, y, [0.8, 0.95], cv=5, plain="plain GPR")
    >>> for finding in held_out.findings():
    ...     print(f"{finding.method:9} {float(finding.level):.2f} {finding.miscoverage:.1%} {finding.judgement}")
    GPR-CP    0.80 19.8% kept
    plain GPR 0.80 11.4% too wide
    GPR-CP    0.95 6.0% kept
    plain GPR 0.95 6.0% kept
    >>> print(verdict(held_out.findings())[0])
    GPR-CP: kept the promise at 80% and 95%.
    """
    if not models or plain in models:
        raise ValueError(f"models must not be empty nor have the name that plain has, got {list(models)}.")
    labels = column_or_1d(y, dtype=np.float64)
    check_consistent_length(X, labels)
    impossible = np.flatnonzero((labels < label_range[0]) | (labels > label_range[1]))
    if impossible.size:
        raise ValueError(
            f"y must be within label_range={label_range}, got {labels[impossible[0]]} in row {impossible[0]}."
        )
    levels = read_levels(confidence_level)[0]
    first = next(iter(models))
    known = _known(noise_variance, models, labels.size)
    names = [first, *([] if plain is None else [plain]), *list(models)[1:]]
    prediction = {name: np.empty(labels.size) for name in names}
    intervals = {name: np.empty((labels.size, 2, len(levels))) for name in names}
    with_p = [name for name, model in models.items() if p_values and hasattr(model, "predict_p")]
    found_p = {name: np.empty(labels.size) for name in with_p}
    with_crps = [name for name in names if name == plain or hasattr(models[name], "predict_distribution")]
    found_crps = {name: np.empty(labels.size) for name in with_crps if crps}
    with_quantiles = [name for name, model in models.items() if quantiles and hasattr(model, "predict_quantiles")]
    found_quantiles = {name: np.empty((labels.size, len(quantiles))) for name in with_quantiles}
    found_shuffled = {group: np.empty(labels.size) for group in groups or {}}
    splits = _splits(cv, X, labels, random_state, partial)
    rng = np.random.default_rng(random_state)
    beyond = np.zeros(labels.size, dtype=bool)
    done = 0
    for train, test in splits:
        held_out = _safe_indexing(X, test)
        for name, model in models.items():
            ignored = ExtrapolationWarning if name == first else UserWarning
            with warnings.catch_warnings(action="ignore", category=ignored):
                noise = {what: variances[test] for what, variances in known[name].items()}
                of_training = {what: variances[train] for what, variances in known[name].items()}
                fitted = clone(model).fit(_safe_indexing(X, train), labels[train], **of_training)
                prediction[name][test] = fitted.predict(held_out)
                which = noise | ({"tails": tails} if hasattr(fitted, "predict_distribution") else {})
                intervals[name][test] = fitted.predict_interval(held_out, [float(level) for level in levels], **which)
                if name in found_crps:
                    distribution = fitted.predict_distribution(held_out, CRPS_STEPS, **noise)
                    found_crps[name][test] = distribution.crps(labels[test])
                if name in found_quantiles:
                    asked = [float(quantile) for quantile in quantiles]
                    found_quantiles[name][test] = fitted.predict_quantiles(held_out, asked, **noise)
                if name in found_p:
                    found_p[name][test] = fitted.predict_p(held_out, labels[test], **noise)
                if name == first:
                    if hasattr(fitted, "beyond_training"):
                        beyond[test] = fitted.beyond_training(held_out).any(axis=1)
                    for group, columns in (groups or {}).items():
                        mixed = shuffled(held_out, columns, rng.permutation(test.size))
                        found_shuffled[group][test] = fitted.predict(mixed)
                if plain is not None and name == first:
                    prediction[plain][test], std = fitted.predict(held_out, return_std=True, **noise)
                    intervals[plain][test] = error_bars(prediction[plain][test], std, levels)
                    if crps:
                        found_crps[plain][test] = normal_scores(labels[test], prediction[plain][test], std)
            done += 1
            if progress is not None:
                progress(done, len(splits) * len(models))
    rows = np.sort(np.concatenate([test for _, test in splits]))
    for part in (prediction, intervals, found_quantiles, found_shuffled):
        for values in part.values():
            values.clip(*label_range, out=values)
    found = {
        "prediction": prediction,
        "intervals": intervals,
        "p_values": found_p,
        "crps": found_crps,
        "quantiles": found_quantiles,
        "shuffled": found_shuffled,
    }
    kept: Any = {part: {name: values[rows] for name, values in each.items()} for part, each in found.items()}
    return HeldOut(labels[rows], levels, **kept, beyond=beyond[rows], rows=rows)


def _known(noise_variance: ArrayLike | None, models: Mapping[str, Any], n_rows: int) -> dict[str, dict[str, Array]]:
    """Known noise variances as an argument of each model, for those that take them."""
    if noise_variance is None:
        return {name: {} for name in models}
    takes = {name: has_fit_parameter(model, "noise_variance") for name, model in models.items()}
    first, *_ = models
    if not takes[first]:
        raise ValueError(f"noise_variance is given, and fit of {type(models[first]).__name__} does not take it.")
    variances = with_known_noise(np.empty((n_rows, 0)), noise_variance)[:, 0]
    return {name: {"noise_variance": variances} if taken else {} for name, taken in takes.items()}


def shuffled(rows: Any, columns: Sequence[int], order: Rows) -> Any:
    """Rows whose columns of a group come from the rows in another order.

    >>> shuffled(np.array([[1, 2], [3, 4]]), [1], np.array([1, 0]))
    array([[1, 4],
           [3, 2]])
    """
    if hasattr(rows, "iloc"):
        changed = rows.copy()
        changed.iloc[:, list(columns)] = rows.iloc[order, list(columns)].to_numpy()
        return changed
    changed = np.array(rows)
    changed[:, list(columns)] = changed[order][:, list(columns)]
    return changed


def _splits(cv: Any, X: Any, y: Array, random_state: int | None, partial: bool) -> list[tuple[Rows, Rows]]:
    """Training and test rows of each fold; raises unless every row is held out once, or with ``partial`` at most."""
    splits = list(folds(cv, y.size, random_state).split(X, y))
    times = np.bincount(np.concatenate([test for _, test in splits]), minlength=y.size)
    for count, words in ((int((times == 0).sum()), "never held out"), (int((times > 1).sum()), "held out repeatedly")):
        if count and not (partial and words == "never held out"):
            raise ValueError(f"cv must hold out every row once; {count} rows were {words}.")
    return splits


def folds(cv: Any, n_rows: int, random_state: int | None = 0) -> Any:
    """``cv`` shuffled folds, or the splitter that was given.

    Parameters
    ----------
    cv : int or splitter
        Number of folds, or a scikit-learn splitter.
    n_rows : int
        Number of rows.
    random_state : int or None, default=0
        Seed of the folds.

    Returns
    -------
    splitter : scikit-learn splitter
        It has ``split`` and ``get_n_splits``.

    Examples
    --------
    >>> from conformal_gp.evaluation import folds
    >>> folds(5, n_rows=100)
    KFold(n_splits=5, random_state=0, shuffle=True)
    """
    if isinstance(cv, int | np.integer) and not isinstance(cv, bool):
        if not 2 <= cv <= n_rows:
            raise ValueError(f"cv must lie between 2 and the number of rows, {n_rows}; got {cv}.")
        return KFold(int(cv), shuffle=True, random_state=random_state)
    if hasattr(cv, "get_n_splits"):
        return cv
    raise ValueError(f"cv must be a number of folds or a scikit-learn splitter, got {cv!r}.")
