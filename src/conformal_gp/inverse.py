r"""Inverse prediction: the values of one input that agree with an observed value of the target (calibration curves).

If the pair of a new input and its observation is exchangeable with the training rows (the standards), the p-value of
that pair is valid. So :math:`\{x : p(x, y) > \delta\}` contains the unknown input with probability at least
:math:`1 - \delta`, whatever the shape of the curve.
"""

from __future__ import annotations

from dataclasses import dataclass
from importlib import import_module
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils import _safe_indexing, check_array
from sklearn.utils.validation import _check_n_features, check_is_fitted

from conformal_gp.answers import TestRows
from conformal_gp.arrays import Array, Indices, Mask
from conformal_gp.calibration import GroupsLike, RatioLike, check_ratios, split_ratio
from conformal_gp.conformal.levels import read_one_level
from conformal_gp.extrapolation import beyond, warn_beyond
from conformal_gp.groups import check_length, group_labels
from conformal_gp.predictions import Predictions
from conformal_gp.rows import Rows
from conformal_gp.targets.target import union
from conformal_gp.validation import check_known_noise, check_labels, check_types, is_frame, real_numbers

# Values of the input at which p-values are computed first, at equal distances.
GRID = 201
# Halvings of a step of the grid: ends are within 1e-6 of the width of the bounds.
HALVINGS = 13


class InversePredictions(Predictions):
    """Inverse prediction of a fitted model: see ``docs/bench.md``."""

    feature_names_in_: NDArray[Any]

    def predict_input(
        self,
        y: ArrayLike,
        X: Any,
        feature: str | int,
        bounds: tuple[float, float],
        confidence_level: float = 0.95,
        return_estimate: bool = False,
        y_variance: ArrayLike | None = None,
        *,
        groups: GroupsLike = None,
        likelihood_ratio: RatioLike = None,
    ) -> list[Array] | tuple[list[Array], Array]:
        """Values of one input that agree with observed values of the target, as sets of given confidence.

        A set contains the unknown input with at least this probability if the new pair of input and observation is
        exchangeable with the training rows (the standards).

        Parameters
        ----------
        y : array-like of shape (n_samples,)
            Observed values of the target.
        X : array-like of shape (n_samples, n_features)
            Inputs of their rows. The column of ``feature`` is ignored and may be NaN.
        feature : str or int
            Name or number of the input that is not known; it holds numbers.
        bounds : pair of floats
            Least and greatest value that the input can have.
        confidence_level : float, default=0.95
            One level strictly between 0 and 1.
        return_estimate : bool, default=False
            Also return the least value at which the prediction is ``y``; where there is none, that of the nearest
            prediction.
        y_variance, groups, likelihood_ratio
            As in :meth:`predict_interval`, of the rows of ``y``.

        Returns
        -------
        sets : list of ndarrays of shape (n_pieces, 2)
            For each row, sorted and disjoint intervals of values of the input within ``bounds`` whose p-value with
            ``y`` exceeds one minus the level; none, of shape (0, 2), where no value agrees. p-values are computed at
            201 values and where the prediction is ``y``; pieces that lie between these are not found. Ends are
            rounded outwards by at most 1e-6 of the width of ``bounds``.
        estimates : ndarray of shape (n_samples,)
            Only with ``return_estimate``.

        Examples
        --------
        >>> import numpy as np
        >>> from conformal_gp import ConformalGPRegressor
        >>> dose = np.repeat(np.arange(8.0), 5)
        >>> signal = dose**2 / 10 + np.random.default_rng(0).normal(0, 0.2, 40)
        >>> model = ConformalGPRegressor(random_state=0).fit(dose[:, None], signal)
        >>> sets, estimate = model.predict_input([1.6, 9.0], [[np.nan]] * 2, 0, (0, 7), 0.9, return_estimate=True)
        >>> [one.round(1).tolist() for one in sets], estimate.round(1)
        ([[[3.6, 4.4]], []], array([4., 7.]))
        """
        check_is_fitted(self)
        level = read_one_level(confidence_level, "predict_input")
        low, high = _check_bounds(bounds)
        if not is_frame(X):
            check_types(X)
            X = check_array(X, dtype=np.float64, ensure_all_finite=False)
            _check_n_features(self, X, reset=False)
        column = _column_number(self, X, feature)
        observed = check_labels(y, X)
        if y_variance is not None:
            y_variance = check_known_noise(y_variance, observed)
        if groups is not None and not callable(groups) and not isinstance(groups, str):
            groups = group_labels(X, groups)
            check_length(groups, observed.size)
        question = _Unknowns(self, X, column, observed, y_variance, groups, likelihood_ratio)
        question.warn(low, high)
        rows = question.rows(np.arange(observed.size), np.full(observed.size, low))
        self._warn_infinite(rows, "confidence_level", [(level, level)], "sets of inputs are all of bounds")
        delta = float(1 - level) * (1.0 + 1e-12)  # p-values that equal delta do not exceed it
        points, p, estimates = _points(question, low, high)
        sets = _sets(question, points, [own > delta for own in p], delta)
        if not return_estimate:
            return sets
        return sets, estimates


@dataclass(frozen=True, eq=False)
class _Unknowns:
    """Rows of which one input is not known."""

    model: InversePredictions
    X: Any
    column: int
    y: Array
    y_variance: Array | None
    groups: Any
    likelihood_ratio: Any

    def inputs(self, numbers: Indices, values: Array) -> Any:
        """Inputs of some rows with values of the unknown one, as they were given."""
        if not is_frame(self.X):
            taken = self.X[numbers]
            taken[:, self.column] = values
            return taken
        taken = _safe_indexing(self.X, numbers)
        name = self.X.columns[self.column]
        if hasattr(taken, "iloc"):
            taken = taken.copy()
            taken[name] = values
            return taken
        return taken.with_columns(import_module("polars").Series(name, values))

    def new(self, X: Any, numbers: Indices) -> Rows:
        """Rows of inputs."""
        if self.y_variance is None:
            return self.model._checked_rows(X, None)
        return self.model._checked_rows(X, self.y_variance[numbers])

    def rows(self, numbers: Indices, values: Array) -> TestRows:
        """Test rows, with the calibration rows that each is compared with."""
        X = self.inputs(numbers, values)
        groups = self.groups
        if isinstance(groups, list):
            groups = [groups[number] for number in numbers]
        ratio = self.likelihood_ratio
        if ratio is not None and not callable(ratio):
            training, test = split_ratio(ratio)
            if not callable(test):
                test = check_ratios(test, self.y.size, "test")[numbers]
            ratio = (training, test)
        return self.model._compared(X, self.new(X, numbers), groups, ratio)

    def p(self, numbers: Indices, values: Array) -> Array:
        """p-values of the observations with values of the input."""
        if not numbers.size:
            return np.empty(0)
        return self.rows(numbers, values).shares(self.y[numbers], np.ones(numbers.size))

    def excess(self, numbers: Indices, values: Array) -> Array:
        """Predictions less observations."""
        if not numbers.size:
            return np.empty(0)
        return self.model._answers.predict(self.new(self.inputs(numbers, values), numbers)) - self.y[numbers]

    def warn(self, low: float, high: float) -> None:
        """Warn once of inputs outside the training range, of which bounds may be some."""
        every = np.arange(self.y.size)
        first, last = (self.model._checked_inputs(self.inputs(every, np.full(every.size, end))) for end in (low, high))
        farthest = np.where(beyond(last, self.model._input_box), last, first)
        warn_beyond(self.model, farthest, self.model._input_box)


def _check_bounds(bounds: Any) -> tuple[float, float]:
    """Bounds as a pair of finite numbers."""
    try:
        low, high = real_numbers("bounds", bounds).tolist()
    except (TypeError, ValueError):
        low, high = np.nan, np.nan
    if not -np.inf < low < high < np.inf:
        raise ValueError(f"bounds must be a pair (low, high) of finite numbers, low below high, got {bounds!r}.")
    return low, high


def _column_number(model: InversePredictions, X: Any, feature: Any) -> int:
    """Number of a column of X by its name or number."""
    names = [str(name) for name in getattr(model, "feature_names_in_", [])]
    if is_frame(X):
        names = [str(name) for name in X.columns]
    n_columns = len(names) or model.n_features_in_
    if isinstance(feature, str) and feature in names:
        number = names.index(feature)
    elif isinstance(feature, int | np.integer) and not isinstance(feature, bool) and 0 <= feature < n_columns:
        number = int(feature)
    else:
        known = f"0 to {n_columns - 1}"
        if names:
            known = f"{', '.join(map(repr, names))}, or {known}"
        raise ValueError(f"feature must be the name or number of an input, {known}; got {feature!r}.")
    if model._encoding is not None:
        of_categories = [
            str(name)
            for name, listed in zip(model.feature_names_in_, model._encoding.categories, strict=True)
            if listed is not None
        ]
        if names[number] in of_categories:
            raise ValueError(f"feature must hold numbers, and {names[number]!r} holds categories.")
    return number


def _halved(question: Any, numbers: Indices, ends: Array, n: int) -> Array:
    """Halve brackets n times: ``question(numbers, values)`` is true at the first of both ends, (b, 2), and stays so."""
    ends = ends.copy()
    for _ in range(n):
        middle = ends.mean(axis=1)
        ends[np.arange(len(ends)), np.where(question(numbers, middle), 0, 1)] = middle
    return ends


def _points(question: _Unknowns, low: float, high: float) -> tuple[list[Array], list[Array], Array]:
    """Of each row: values of the input on a grid and where the prediction is the observation, p-values, an estimate."""
    m = question.y.size
    grid = np.linspace(low, high, GRID)
    numbers = np.repeat(np.arange(m), GRID)
    values = np.tile(grid, m)
    excess = question.excess(numbers, values).reshape(m, GRID)
    above = excess > 0.0
    row, step = np.nonzero(above[:, 1:] != above[:, :-1])
    rising = above[row, step + 1]
    ends = np.stack([grid[step + rising], grid[step + ~rising]], axis=1)
    roots = _halved(lambda *place: question.excess(*place) > 0.0, row, ends, 40).mean(axis=1)
    p = question.p(numbers, values).reshape(m, GRID)
    p_at_roots = question.p(row, roots)
    points = []
    p_values = []
    estimates = grid[np.argmin(np.abs(excess), axis=1)]
    for i in range(m):
        own = roots[row == i]
        if own.size:
            estimates[i] = own[0]
        every = np.append(grid, own)
        order = np.argsort(every, kind="stable")
        points.append(every[order])
        p_values.append(np.append(p[i], p_at_roots[row == i])[order])
    return points, p_values, estimates


def _sets(question: _Unknowns, points: list[Array], inside: list[Mask], delta: float) -> list[Array]:
    """Pieces of each row's set: ends are refined between a point inside and one outside, and rounded to the latter."""
    steps = [np.flatnonzero(own[1:] != own[:-1]) for own in inside]
    numbers = np.repeat(np.arange(len(points)), [own.size for own in steps])
    brackets = [
        np.stack([own[step + ~first[step]], own[step + first[step]]], axis=1)
        for own, first, step in zip(points, inside, steps, strict=True)
    ]
    ends = np.concatenate([*brackets, np.empty((0, 2))])
    refined = _halved(lambda rows, values: question.p(rows, values) > delta, numbers, ends, HALVINGS)[:, 1]
    found = []
    for i, (own, is_inside) in enumerate(zip(points, inside, strict=True)):
        borders = np.concatenate([own[:1][is_inside[:1]], refined[numbers == i], own[-1:][is_inside[-1:]]])
        found.append(union(borders.reshape(-1, 2)))
    return found
