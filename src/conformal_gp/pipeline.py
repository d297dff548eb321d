"""Intervals through scikit-learn's own machinery: pipelines, searches, maps of the target, and other wrappers.

A ``Pipeline`` or a ``GridSearchCV`` passes on ``predict``, but not ``predict_interval``. The functions here walk from
such a model to the regressor inside, transform the inputs as ``predict`` would, and map labels back where a
``TransformedTargetRegressor`` mapped them.

What the model learnt besides the regressor counts too: a transformer that was fitted to the training rows treats the
test row differently, whatever the regressor's ``guarantee_`` says. ``docs/guides/scikit-learn.md`` says what keeps the
guarantee.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from conformal_gp.conformal.levels import read_levels
from conformal_gp.types import Array
from conformal_gp.wrappers import walk

__all__ = [
    "predict_bound",
    "predict_cdf",
    "predict_distribution",
    "predict_interval",
    "predict_p",
    "predict_quantiles",
    "predict_set",
]


def predict_interval(
    model: Any,
    X: Any,
    confidence_level: float | ArrayLike = 0.95,
    tails: str = "joint",
    noise_variance: ArrayLike | None = None,
) -> Array:
    """Prediction intervals of the regressor inside a model.

    Parameters
    ----------
    model : estimator
        A fitted regressor with this method, or any nest of ``Pipeline``, ``GridSearchCV`` and other searches,
        ``TransformedTargetRegressor``, ``FrozenEstimator`` and wrappers that pass ``predict`` on to one estimator.
    X : array-like or frame of shape (n_samples, n_features)
        Test inputs, as the model's ``predict`` takes them.
    confidence_level, tails, noise_variance
        As in :meth:`conformal_gp.ConformalGPRegressor.predict_interval`. Noise variances go to the regressor as they
        are, in units of the labels that it was fitted to; in ``fit`` they get there by scikit-learn's metadata routing.

    Returns
    -------
    intervals : ndarray of shape (n_samples, 2) or (n_samples, 2, n_levels)
        As there, with ends mapped back to the labels that the model was fitted to. Infinite ends stay infinite.

    Raises
    ------
    ValueError
        If the model has no such regressor inside, or a map of the target is not monotone between the ends.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.compose import TransformedTargetRegressor
    >>> from sklearn.pipeline import make_pipeline
    >>> from sklearn.preprocessing import PolynomialFeatures
    >>> from conformal_gp import ConformalGPRegressor
    >>> from conformal_gp.pipeline import predict_interval
    >>> X = np.linspace(0, 3, 40)[:, None]
    >>> y = np.exp(np.sin(2 * X[:, 0]) + 0.1 * np.cos(50 * X[:, 0]))
    >>> regressor = ConformalGPRegressor("se", tuning="fixed", noise_variance=0.01, scale_inputs=False)
    >>> pipe = make_pipeline(PolynomialFeatures(2, include_bias=False), regressor)
    >>> model = TransformedTargetRegressor(pipe, func=np.log, inverse_func=np.exp).fit(X, y)
    >>> predict_interval(model, [[1.0], [2.0]], confidence_level=0.9).round(2)
    array([[2.15, 2.87],
           [0.4 , 0.55]])
    """
    held = walk(model, X, "predict_interval")
    options: dict[str, Any] = {} if tails == "joint" else {"tails": tails}  # which others with this method lack
    ends = held.regressor.predict_interval(held.X, confidence_level, **options, **_known(noise_variance))
    return np.sort(held.back(ends), axis=1)


def _known(noise_variance: ArrayLike | None) -> dict[str, Any]:
    """Known noise variances as an argument, where they are given: other regressors do not have it."""
    return {} if noise_variance is None else {"noise_variance": noise_variance}


def predict_set(
    model: Any, X: Any, confidence_level: float = 0.95, noise_variance: ArrayLike | None = None
) -> list[Array]:
    """Exact prediction regions of the regressor inside a model.

    Parameters
    ----------
    model, X, noise_variance
        As in :func:`predict_interval`.
    confidence_level
        As in :meth:`conformal_gp.ConformalGPRegressor.predict_set`.

    Returns
    -------
    regions : list of ndarrays of shape (n_pieces, 2)
        As there, with ends mapped back.

    Examples
    --------
    >>> from sklearn.compose import TransformedTargetRegressor
    >>> from conformal_gp import ConformalGPRegressor
    >>> from conformal_gp.pipeline import predict_set
    >>> regressor = ConformalGPRegressor("se", tuning="fixed", noise_variance=0.1, mean="zero", scale_inputs=False)
    >>> model = TransformedTargetRegressor(regressor, func=lambda y: -y, inverse_func=lambda z: -z)
    >>> model = model.fit([[0.0], [1.0], [2.0]], [0.0, 1.0, 0.0])
    >>> [region.round(2) for region in predict_set(model, [[1.0]], confidence_level=0.5)]
    [array([[0.51, 1.22]])]
    """
    held = walk(model, X, "predict_set")
    regions = held.regressor.predict_set(held.X, confidence_level, **_known(noise_variance))
    ends = held.back(np.concatenate([np.ravel(region) for region in regions]))
    pieces = np.split(ends, np.cumsum([np.size(region) for region in regions])[:-1])
    return [np.sort(piece).reshape(-1, 2) for piece in pieces]


def predict_p(
    model: Any,
    X: Any,
    y: ArrayLike,
    smoothing: bool = False,
    random_state: int | np.random.RandomState | None = None,
    noise_variance: ArrayLike | None = None,
) -> Array:
    """p-values of labels by the regressor inside a model.

    Parameters
    ----------
    model, X, noise_variance
        As in :func:`predict_interval`.
    y : array-like of shape (n_samples,)
        One candidate label for each row, in units of the labels that the model was fitted to.
    smoothing, random_state
        As in :meth:`conformal_gp.ConformalGPRegressor.predict_p`.

    Returns
    -------
    p : ndarray of shape (n_samples,)
        As there.

    Examples
    --------
    >>> from sklearn.pipeline import make_pipeline
    >>> from sklearn.preprocessing import FunctionTransformer
    >>> from conformal_gp import ConformalGPRegressor
    >>> from conformal_gp.pipeline import predict_p
    >>> regressor = ConformalGPRegressor("se", tuning="fixed", noise_variance=0.1, mean="zero", scale_inputs=False)
    >>> model = make_pipeline(FunctionTransformer(), regressor).fit([[0.0], [1.0], [2.0]], [0.0, 1.0, 0.0])
    >>> predict_p(model, [[1.0], [1.0]], [0.8, 5.0])
    array([1.  , 0.25])
    """
    held = walk(model, X, "predict_p")
    return held.regressor.predict_p(held.X, held.forth(y), smoothing, random_state, **_known(noise_variance))


def predict_quantiles(
    model: Any, X: Any, quantiles: float | ArrayLike, noise_variance: ArrayLike | None = None
) -> Array:
    """Quantiles of the predictive distribution of the regressor inside a model.

    Parameters
    ----------
    model, X, noise_variance
        As in :func:`predict_interval`.
    quantiles
        As in :meth:`conformal_gp.ConformalGPRegressor.predict_quantiles`.

    Returns
    -------
    values : ndarray of shape (n_samples,) or (n_samples, n_quantiles)
        As there, mapped back. A map that decreases turns the quantile q into 1 - q, and this is allowed for.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.compose import TransformedTargetRegressor
    >>> from conformal_gp import ConformalGPRegressor
    >>> from conformal_gp.pipeline import predict_quantiles
    >>> X = np.linspace(0, 3, 40)[:, None]
    >>> y = np.exp(np.sin(2 * X[:, 0]) + 0.1 * np.cos(50 * X[:, 0]))
    >>> regressor = ConformalGPRegressor("se", tuning="fixed", noise_variance=0.01, scale_inputs=False)
    >>> model = TransformedTargetRegressor(regressor, func=np.log, inverse_func=np.exp).fit(X, y)
    >>> predict_quantiles(model, [[1.0]], [0.1, 0.5, 0.9]).round(2)
    array([[2.23, 2.48, 2.74]])
    """
    held = walk(model, X, "predict_quantiles")
    if not held.increasing():
        wanted, single = read_levels(quantiles, "quantiles")  # as exact fractions
        others = [float(1 - quantile) for quantile in wanted]
        quantiles = others[0] if single else others
    return held.back(held.regressor.predict_quantiles(held.X, quantiles, **_known(noise_variance)))


def predict_bound(
    model: Any,
    X: Any,
    confidence_level: float | ArrayLike = 0.95,
    side: str = "upper",
    noise_variance: ArrayLike | None = None,
) -> Array:
    """One-sided prediction bounds of the regressor inside a model.

    Parameters
    ----------
    model, X, noise_variance
        As in :func:`predict_interval`.
    confidence_level, side
        As in :meth:`conformal_gp.ConformalGPRegressor.predict_bound`.

    Returns
    -------
    bounds : ndarray of shape (n_samples,) or (n_samples, n_levels)
        As there, mapped back; a map that decreases turns upper bounds into lower ones, and this is allowed for.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.pipeline import make_pipeline
    >>> from sklearn.preprocessing import FunctionTransformer
    >>> from conformal_gp import ConformalGPRegressor
    >>> from conformal_gp.pipeline import predict_bound
    >>> X = np.linspace(0, 3, 40)[:, None]
    >>> y = np.sin(2 * X[:, 0]) + 0.1 * np.cos(50 * X[:, 0])
    >>> regressor = ConformalGPRegressor("se", tuning="fixed", noise_variance=0.01, scale_inputs=False)
    >>> model = make_pipeline(FunctionTransformer(), regressor).fit(X, y)
    >>> predict_bound(model, [[1.0], [2.0]], confidence_level=0.9).round(2)
    array([ 1.01, -0.66])
    """
    held = walk(model, X, "predict_bound")
    if not held.increasing():
        side = {"upper": "lower", "lower": "upper"}.get(side, side)
    return held.back(held.regressor.predict_bound(held.X, confidence_level, side, **_known(noise_variance)))


def predict_cdf(
    model: Any,
    X: Any,
    y: ArrayLike,
    smoothing: bool = False,
    random_state: int | np.random.RandomState | None = None,
    noise_variance: ArrayLike | None = None,
) -> Array:
    """Values of the predictive distribution function of the regressor inside a model.

    Parameters
    ----------
    model, X, y, noise_variance
        As in :func:`predict_p`.
    smoothing, random_state
        As in :meth:`conformal_gp.ConformalGPRegressor.predict_cdf`.

    Returns
    -------
    values : ndarray of shape (n_samples,)
        As there.

    Examples
    --------
    >>> from sklearn.compose import TransformedTargetRegressor
    >>> from conformal_gp import ConformalGPRegressor
    >>> from conformal_gp.pipeline import predict_cdf
    >>> regressor = ConformalGPRegressor("se", tuning="fixed", noise_variance=0.1, mean="zero", scale_inputs=False)
    >>> model = TransformedTargetRegressor(regressor, func=lambda y: -y, inverse_func=lambda z: -z)
    >>> model = model.fit([[0.0], [1.0], [2.0]], [0.0, 1.0, 0.0])
    >>> predict_cdf(model, [[1.0], [1.0], [1.0]], [-5.0, 0.8, 5.0])
    array([0.125, 0.625, 0.875])
    """
    held = walk(model, X, "predict_cdf")
    values = held.regressor.predict_cdf(held.X, held.forth(y), smoothing, random_state, **_known(noise_variance))
    return values if held.increasing() else 1.0 - values


def predict_distribution(model: Any, X: Any, max_steps: int = 999, noise_variance: ArrayLike | None = None) -> Any:
    """Predictive distributions of the regressor inside a model, as step functions.

    Parameters
    ----------
    model, X, noise_variance
        As in :func:`predict_interval`.
    max_steps
        As in :meth:`conformal_gp.ConformalGPRegressor.predict_distribution`.

    Returns
    -------
    distribution : PredictiveDistribution
        As there, with steps mapped back.

    Examples
    --------
    >>> from sklearn.pipeline import make_pipeline
    >>> from sklearn.preprocessing import FunctionTransformer
    >>> from conformal_gp import ConformalGPRegressor
    >>> from conformal_gp.pipeline import predict_distribution
    >>> regressor = ConformalGPRegressor("se", tuning="fixed", noise_variance=0.1, mean="zero", scale_inputs=False)
    >>> model = make_pipeline(FunctionTransformer(), regressor).fit([[0.0], [1.0], [2.0]], [0.0, 1.0, 0.0])
    >>> predict_distribution(model, [[1.0]])
    <PredictiveDistribution of 1 rows, 3 steps each>
    """
    held = walk(model, X, "predict_distribution")
    distribution = held.regressor.predict_distribution(held.X, max_steps, **_known(noise_variance))
    return type(distribution)(np.sort(held.back(distribution.steps), axis=1))
