"""Intervals of every row of a table from the other rows, by several methods."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.model_selection import KFold

Array = NDArray[np.float64]


class HeldOut(NamedTuple):
    """Predictions of rows that were held out."""

    levels: list[Fraction]
    prediction: dict[str, Array]
    """(n,) for each method"""
    intervals: dict[str, Array]
    """(n, 2, levels) for each method"""


def cross_validate(
    methods: Mapping[str, Any],
    X: Array,
    y: Array,
    levels: Sequence[Fraction],
    *,
    folds: int,
    seed: int,
    progress: Callable[[int, int], None],
) -> HeldOut:
    """Cross-validate regressors with ``predict_interval``; every row is held out once.

    Only warnings of the first method are let through: the others are there for comparison.
    """
    splits = list(KFold(min(folds, y.size), shuffle=True, random_state=seed).split(X))
    prediction = {name: np.empty(y.size) for name in methods}
    intervals = {name: np.empty((y.size, 2, len(levels))) for name in methods}
    first = next(iter(methods))
    done = 0
    for train, test in splits:
        for name, method in methods.items():
            with warnings.catch_warnings():
                if name != first:
                    warnings.simplefilter("ignore", UserWarning)
                fitted = clone(method).fit(X[train], y[train])
                prediction[name][test] = fitted.predict(X[test])
                intervals[name][test] = fitted.predict_interval(X[test], [float(level) for level in levels])
            done += 1
            progress(done, len(splits) * len(methods))
    return HeldOut(list(levels), prediction, intervals)
