"""Measures of prediction intervals: coverage, width, and a score of both with its scorer."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils.metadata_routing import MetadataRequest

from conformal_gp.arrays import Array
from conformal_gp.conformal.levels import read_level
from conformal_gp.pipeline import predict_interval

__all__ = ["coverage", "interval_score", "interval_scorer", "mean_width"]


def coverage(y_true: ArrayLike, intervals: ArrayLike) -> Any:
    """Share of targets that their intervals, which are closed, contain.

    Parameters
    ----------
    y_true : array-like of shape (n_samples,)
        Targets.
    intervals : array-like of shape (n_samples, 2) or (n_samples, 2, n_levels)
        Lower and upper bounds.

    Returns
    -------
    coverage : float or ndarray of shape (n_levels,)
        Between 0 and 1.

    Examples
    --------
    >>> from conformal_gp.metrics import coverage
    >>> float(coverage([0.0, 1.0, 2.0, 3.0], [[-1, 0], [0, 2], [0, 1], [3, 5]]))
    0.75
    """
    y, ends = _checked(y_true, intervals)
    return np.mean((y >= ends[:, 0]) & (y <= ends[:, 1]), axis=0)


def mean_width(intervals: ArrayLike) -> Any:
    """Mean width of intervals, for each level; infinite when one of them is.

    Examples
    --------
    >>> from conformal_gp.metrics import mean_width
    >>> float(mean_width([[0, 1], [0, 3]]))
    2.0
    """
    ends = np.asarray(intervals, dtype=np.float64)
    return np.mean(ends[:, 1] - ends[:, 0], axis=0)


def interval_score(y_true: ArrayLike, intervals: ArrayLike, confidence_level: float | ArrayLike) -> Any:
    r"""Mean interval score (Gneiting and Raftery, 2007): width plus a penalty for each miss; lower is better.

    .. math:: (u - l) + \frac{2}{\delta} \max(l - y, 0) + \frac{2}{\delta} \max(y - u, 0), \qquad \delta = 1 - level .

    Parameters
    ----------
    y_true, intervals
        As in :func:`coverage`.
    confidence_level : float or sequence of floats
        Level or levels of the intervals.

    Returns
    -------
    score : float or ndarray of shape (n_levels,)
        Mean over the rows.

    Examples
    --------
    >>> from conformal_gp.metrics import interval_score
    >>> float(interval_score([0.5, 2.0], [[0, 1], [0, 1]], confidence_level=0.9))
    11.0
    """
    y, ends = _checked(y_true, intervals)
    delta = np.array([float(1 - read_level(level)) for level in np.ravel(confidence_level)])
    if delta.size != np.prod(ends.shape[2:]):
        raise ValueError(f"confidence_level must have one level for each of intervals', got {confidence_level!r}.")
    missed = np.maximum(ends[:, 0] - y, 0.0) + np.maximum(y - ends[:, 1], 0.0)
    if ends.ndim == 2:
        delta = delta[0]
    return np.mean(ends[:, 1] - ends[:, 0] + 2.0 / delta * missed, axis=0)


def _checked(y_true: ArrayLike, intervals: ArrayLike) -> tuple[Array, Array]:
    """Targets and interval ends as arrays; targets (n,), or (n, 1) where there are several levels."""
    y = np.asarray(y_true, dtype=np.float64)
    ends = np.asarray(intervals, dtype=np.float64)
    if ends.ndim not in (2, 3) or ends.shape[1] != 2:
        raise ValueError(f"intervals must have shape (n, 2) or (n, 2, levels), got {ends.shape}.")
    if y.shape != (ends.shape[0],):
        raise ValueError(f"y_true must have one target for each of the {ends.shape[0]} intervals, got shape {y.shape}.")
    if ends.ndim == 3:
        y = y[:, None]
    return y, ends


@dataclass(frozen=True)
class _IntervalScorer:
    """The score as scikit-learn calls it: ``scorer(model, X, y)``."""

    confidence_level: float

    def __call__(self, model: Any, X: Any, y: ArrayLike, y_variance: ArrayLike | None = None) -> float:
        ends = predict_interval(model, X, self.confidence_level, y_variance=y_variance)
        return -float(interval_score(y, ends, self.confidence_level))

    def get_metadata_routing(self) -> MetadataRequest:
        """Requests of scikit-learn's metadata routing: noise variances of the scored rows, where they are given."""
        request = MetadataRequest(owner=type(self).__name__)
        request.score.add_request(param="y_variance", alias=True)
        return request


def interval_scorer(confidence_level: float = 0.9) -> Callable[..., float]:
    """A scorer for searches and cross-validation: minus the :func:`interval_score`, so greater is better.

    A search on calibration rows favours them, and voids the guarantee; one on tuning rows does not: see
    "Pipelines and searches" in the guide for users of scikit-learn.

    Parameters
    ----------
    confidence_level : float, default=0.9
        Level of the intervals, strictly between 0 and 1.

    Returns
    -------
    scorer : callable
        ``scorer(model, X, y)``, for any model that :func:`conformal_gp.pipeline.predict_interval` takes. Of a model
        that was fitted with known noise variances, ``scorer(model, X, y, y_variance=...)``; searches and
        ``cross_validate`` pass them on with scikit-learn's metadata routing (:doc:`/adaptive`).

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.model_selection import GridSearchCV
    >>> from conformal_gp import ConformalGPRegressor
    >>> from conformal_gp.metrics import interval_scorer
    >>> X = np.linspace(0, 3, 40)[:, None]
    >>> y = np.sin(2 * X[:, 0]) + 0.1 * np.cos(50 * X[:, 0])
    >>> model = ConformalGPRegressor("se", tuning="fixed", scale_inputs=False)
    >>> search = GridSearchCV(model, {"noise_variance": [0.01, 1.0]}, scoring=interval_scorer(0.8), cv=4)
    >>> search.fit(X, y).best_params_
    {'noise_variance': 0.01}
    """
    return _IntervalScorer(float(read_level(confidence_level)))
