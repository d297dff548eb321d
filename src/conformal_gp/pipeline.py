"""Intervals through pipelines, searches and transformed targets of scikit-learn.

A ``Pipeline`` or a ``GridSearchCV`` delegates ``predict``, but not ``predict_interval``.

What the model learns in addition to the regressor counts too: a transformer that was fitted to the training rows
treats the test row differently, whatever the regressor's ``guarantee_`` states.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.compose import TransformedTargetRegressor
from sklearn.frozen import FrozenEstimator
from sklearn.multioutput import MultiOutputRegressor
from sklearn.pipeline import Pipeline
from sklearn.utils.validation import check_is_fitted

from conformal_gp.arrays import Array
from conformal_gp.encoding import interval_frame

__all__ = ["predict_interval"]


def predict_interval(
    model: Any, X: Any, confidence_level: Any = 0.95, *, as_frame: bool = False, **options: Any
) -> Any:
    """Prediction intervals of the regressor in a model.

    Parameters
    ----------
    model : estimator
        A fitted regressor with ``predict_interval``, or one inside any nest of ``Pipeline``, ``GridSearchCV`` and other
        searches, ``TransformedTargetRegressor``, ``FrozenEstimator`` and ``MultiOutputRegressor``.
    X : array-like or frame of shape (n_samples, n_features)
        Test inputs, as the model's ``predict`` takes them.
    confidence_level, as_frame, **options
        As in :meth:`conformal_gp.ConformalGPRegressor.predict_interval`. ``y_variance`` is in units of the values that
        the regressor inside was fitted to.

    Returns
    -------
    intervals : ndarray of shape (n_samples, 2) or (n_samples, 2, n_levels), or pandas.DataFrame
        Lower and upper bounds in units of the targets that the model was fitted to; infinite ones stay infinite. A
        decreasing transformation of the target swaps them; one that is not monotone is a ValueError. Of several
        outputs, which are the second axis, each is covered at the level separately.

    Examples
    --------
    >>> from sklearn.pipeline import make_pipeline
    >>> from sklearn.preprocessing import FunctionTransformer
    >>> from conformal_gp import ConformalGPRegressor
    >>> from conformal_gp.pipeline import predict_interval
    >>> regressor = ConformalGPRegressor("se", tuning="fixed", noise_variance=0.1, mean="zero", scale_inputs=False)
    >>> model = make_pipeline(FunctionTransformer(), regressor).fit([[0.0], [1.0], [2.0]], [0.0, 1.0, 0.0])
    >>> predict_interval(model, [[1.0]], 0.5).round(2)
    array([[0.51, 1.22]])
    """
    if as_frame:
        return interval_frame(predict_interval(model, X, confidence_level, **options), confidence_level, X)
    transformers = []  # of the target, the outermost first
    while isinstance(model, FrozenEstimator) or not hasattr(model, "predict_interval"):
        if isinstance(model, FrozenEstimator):  # first, as it shows the attributes of what it holds
            model = model.estimator
            continue
        if isinstance(model, Pipeline):
            check_is_fitted(model)
            if len(model) > 1:
                X = model[:-1].transform(X)
            model = model.steps[-1][1]
        elif isinstance(model, TransformedTargetRegressor):
            check_is_fitted(model)
            transformers.append(model.transformer_)
            model = model.regressor_
        elif isinstance(model, MultiOutputRegressor):
            check_is_fitted(model)
            if transformers:
                raise ValueError(
                    "TransformedTargetRegressor must be inside MultiOutputRegressor, which has one for each output."
                )
            outputs = [predict_interval(each, X, confidence_level, **options) for each in model.estimators_]
            return np.stack(outputs, axis=1)
        elif hasattr(model, "refit"):  # a search
            if model.refit is False:
                raise ValueError(f"{type(model).__name__} has refit=False and keeps no model; use refit=True.")
            check_is_fitted(model)
            model = model.best_estimator_
        else:
            raise ValueError(
                "model must be a regressor with predict_interval, or one inside Pipeline, a search, "
                "MultiOutputRegressor, TransformedTargetRegressor or FrozenEstimator; "
                f"{type(model).__name__} is none of these."
            )
    intervals = model.predict_interval(X, confidence_level, **options)
    if transformers:
        return _back(transformers, intervals, model.predict(X))
    return intervals


def _back(transformers: list[Any], intervals: Array, prediction: Array) -> Array:
    """Intervals in the units of the outermost target; ``prediction`` is the regressor's."""
    finite = np.isfinite(intervals)
    values = np.append(intervals[finite], prediction)
    if np.ptp(values) == 0.0:  # direction of a transformation at a single value
        values = np.append(values, values[0] + 1e-3 * max(abs(values[0]), 1.0) * np.array([-1.0, 1.0]))
    values = np.union1d(values, np.linspace(values.min(), values.max(), 1001))
    images = values
    for transformer in reversed(transformers):
        with np.errstate(all="ignore"):
            images = np.ravel(np.asarray(transformer.inverse_transform(images.reshape(-1, 1)), dtype=np.float64))
    rises = bool((images[1:] >= images[:-1]).all())
    falls = bool((images[1:] <= images[:-1]).all())
    if rises == falls:
        names = ", ".join(type(transformer).__name__ for transformer in transformers)
        raise ValueError(
            f"the target's transformation ({names}) must be monotone, and its inverse is not between {values[0]:.6g} "
            f"and {values[-1]:.6g}, where the regressor's targets are. Of the square root, say, "
            "lambda z: np.maximum(z, 0) ** 2 is an inverse that is."
        )
    found = intervals.copy()
    found[finite] = images[np.searchsorted(values, intervals[finite])]
    if falls:
        found[~finite] *= -1.0
        return found[:, ::-1]
    return found
