"""Intervals through pipelines, searches and transformed targets of scikit-learn.

A ``Pipeline`` or a ``GridSearchCV`` delegates ``predict``, but not ``predict_interval``. The functions here delegate
the regressors' other predict methods in the same way: inputs are transformed as ``predict`` would, and targets are
transformed back where a ``TransformedTargetRegressor`` mapped them.

What the model learns in addition to the regressor counts too: a transformer that was fitted to the training rows
treats the test row differently, whatever the regressor's ``guarantee_`` states.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from inspect import signature
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from sklearn.compose import TransformedTargetRegressor
from sklearn.frozen import FrozenEstimator
from sklearn.multioutput import MultiOutputRegressor
from sklearn.pipeline import Pipeline
from sklearn.utils.validation import check_is_fitted

from conformal_gp.arrays import Array
from conformal_gp.conformal.levels import read_levels
from conformal_gp.encoding import interval_frame

__all__ = [
    "predict_bound",
    "predict_cdf",
    "predict_distribution",
    "predict_interval",
    "predict_p",
    "predict_quantiles",
    "predict_set",
]

DOCSTRING = """{summary} of the regressor inside a model.

    Parameters
    ----------
    model : estimator
        A fitted regressor with this method, or one inside any nest of ``Pipeline``, ``GridSearchCV`` and other
        searches, ``TransformedTargetRegressor``, ``FrozenEstimator`` and ``MultiOutputRegressor``.
    X : array-like or frame of shape (n_samples, n_features)
        Test inputs, as the model's ``predict`` takes them.
    *arguments, **options
        As in :meth:`conformal_gp.ConformalGPRegressor.{name}`, targets in units of those that the model was fitted to.
        ``y_variance`` is in units of the values that the regressor inside was fitted to.

    Returns
    -------
    result
        As there, targets transformed back. Infinite bounds stay infinite. A decreasing transformation of the target
        swaps lower and upper bounds, and the quantiles q and 1 - q; one that is not monotone is a ValueError.
        Of several outputs, arrays have the output as their second axis, as targets have, and others are in a list.
        Levels are those of each output separately.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.pipeline import make_pipeline
    >>> from sklearn.preprocessing import FunctionTransformer
    >>> from conformal_gp import ConformalGPRegressor, pipeline
    >>> regressor = ConformalGPRegressor("se", tuning="fixed", noise_variance=0.1, mean="zero", scale_inputs=False)
    >>> model = make_pipeline(FunctionTransformer(), regressor).fit([[0.0], [1.0], [2.0]], [0.0, 1.0, 0.0])
    >>> with np.printoptions(precision=2):
    ...     pipeline.{name}(model, [[1.0]]{arguments})
    {result}
    """


class _Inside:
    """The regressor inside a model, the inputs as it takes them, and transformations of the target, outermost first.

    A ``MultiOutputRegressor`` is the regressor, and its method None.
    """

    def __init__(self, model: Any, X: Any, method: str):
        self.maps: list[Any] = []
        while isinstance(model, FrozenEstimator) or not hasattr(model, method):
            if isinstance(model, MultiOutputRegressor):
                check_is_fitted(model)
                if self.maps:
                    raise ValueError(
                        "TransformedTargetRegressor must be inside MultiOutputRegressor, which has one for each output."
                    )
                break
            if isinstance(model, FrozenEstimator):  # first, as it shows the attributes of what it holds
                model = model.estimator
            elif isinstance(model, Pipeline):
                check_is_fitted(model)
                X = model[:-1].transform(X) if len(model) > 1 else X
                model = model.steps[-1][1]
            elif isinstance(model, TransformedTargetRegressor):
                check_is_fitted(model)
                self.maps.append(model.transformer_)
                model = model.regressor_
            elif hasattr(model, "refit"):  # a search
                if model.refit is False:
                    raise ValueError(f"{type(model).__name__} has refit=False and keeps no model; use refit=True.")
                check_is_fitted(model)
                model = model.best_estimator_
            else:
                raise ValueError(
                    f"model must be a regressor with {method}, or one inside Pipeline, a search, MultiOutputRegressor, "
                    f"TransformedTargetRegressor or FrozenEstimator; {type(model).__name__} is none of these."
                )
        self.model, self.X = model, X
        self.method: Any = getattr(model, method, None)
        self._names = ", ".join(type(label_map).__name__ for label_map in self.maps)

    def _inverse(self, labels: Array) -> Array:
        for label_map in reversed(self.maps):
            labels = _applied(label_map.inverse_transform, labels)
        return labels

    def forth(self, y: ArrayLike) -> Array:
        """Targets of the model as targets of the regressor."""
        labels = mapped = np.ravel(np.asarray(y, dtype=np.float64))
        for label_map in self.maps:
            mapped = _applied(label_map.transform, mapped)
        finite = np.isfinite(mapped)
        same = finite & np.isclose(self._inverse(np.where(finite, mapped, 0.0)), labels, rtol=1e-6)
        if not same.all():
            odd = float(labels[np.argmin(same)])
            raise ValueError(f"y holds {odd}, which the target's map ({self._names}) does not map forth and back.")
        return mapped

    @cached_property
    def _nearby(self) -> Array:
        """The regressor's predictions, or two targets near a single one."""
        near = np.unique(self.model.predict(self.X))
        return near if near.size > 1 else near + 1e-3 * max(abs(near[0]), 1.0) * np.array([-1.0, 1.0])

    def back(self, values: Array) -> Array:
        """Targets of the regressor as targets of the model; infinite ones stay infinite."""
        finite = np.isfinite(values)
        labels = np.union1d(values[finite], self._nearby)
        labels = np.union1d(labels, np.linspace(labels[0], labels[-1], 1001))
        images = self._inverse(labels)
        rises, falls = (images[1:] >= images[:-1]).all(), (images[1:] <= images[:-1]).all()
        if rises == falls:
            raise ValueError(
                f"the target's map ({self._names}) must be monotone, and its inverse is not between {labels[0]:.6g} "
                f"and {labels[-1]:.6g}, where the regressor's targets are. Of the square root, say, "
                "lambda z: np.maximum(z, 0) ** 2 is an inverse that is."
            )
        mapped = np.where(finite, 0.0, values if rises else -values)
        mapped[finite] = images[np.searchsorted(labels, values[finite])]
        return mapped


def _applied(function: Callable[[Array], Any], labels: Array) -> Array:
    """A function of columns, applied to targets."""
    with np.errstate(all="ignore"):
        return np.ravel(np.asarray(function(labels.reshape(-1, 1)), dtype=np.float64))


def _of_outputs(function: Callable[..., Any], model: Any, X: Any, arguments: Any, options: dict[str, Any]) -> Any:
    """Results for each output of a MultiOutputRegressor: arrays joined along their second axis, else a list."""
    found = []
    for j, each in enumerate(model.estimators_):
        own = dict(options)
        rest = arguments
        if function.__name__ in ("predict_p", "predict_cdf"):  # one column of targets for each output
            if arguments:
                rest = (np.asarray(arguments[0])[:, j], *arguments[1:])
            else:
                own["y"] = np.asarray(options["y"])[:, j]
        found.append(function(each, X, *rest, **own))
    if all(isinstance(one, np.ndarray) for one in found):
        return np.stack(found, axis=1)
    return found


def _turn(given: dict[str, Any]) -> None:
    """Arguments of a call for targets that fall where those of the model rise."""
    if "quantiles" in given:
        levels, single = read_levels(given["quantiles"], "quantiles")  # as exact fractions
        turned = [float(1 - level) for level in levels]
        given["quantiles"] = turned[0] if single else turned
    if "side" in given:
        given["side"] = {"upper": "lower", "lower": "upper"}.get(given["side"], given["side"])


def _mapped(name: str, found: Any, back: Callable[[Array], Array]) -> Any:
    """Answers of a method in units of the model's targets, ends in order."""
    if name == "predict_set":
        return [np.sort(back(region), axis=None).reshape(-1, 2) for region in found]
    if name == "predict_distribution":
        return type(found)(np.sort(back(found.steps), axis=1))
    if name == "predict_interval":
        return np.sort(back(found), axis=1)
    return back(found)


def _delegate(name: str, summary: str, example: str, result: str) -> Callable[..., Any]:
    """A function that calls the method of this name of the regressor inside a model."""

    def function(model: Any, X: Any, *arguments: Any, **options: Any) -> Any:
        if name == "predict_interval" and options.pop("as_frame", False):
            found = function(model, X, *arguments, **options)
            levels = [*arguments[:1], options.get("confidence_level")][0]
            return interval_frame(found, levels, X)
        inside = _Inside(model, X, name)
        if isinstance(inside.model, MultiOutputRegressor):
            return _of_outputs(function, inside.model, inside.X, arguments, options)
        if not inside.maps:
            return inside.method(inside.X, *arguments, **options)
        call = signature(inside.method).bind(inside.X, *arguments, **options)
        call.apply_defaults()
        given = call.arguments
        falls = bool(inside.back(np.array([np.inf]))[0] < 0.0)
        if "y" in given:
            given["y"] = inside.forth(given["y"])
        if falls:
            _turn(given)
        found = inside.method(*call.args, **call.kwargs)
        if name == "predict_cdf" and falls:
            return 1.0 - found
        if "y" in given:  # probabilities
            return found
        return _mapped(name, found, inside.back)

    function.__name__ = function.__qualname__ = name
    function.__doc__ = DOCSTRING.format(name=name, summary=summary, arguments=example, result=result)
    return function


predict_interval = _delegate("predict_interval", "Prediction intervals", ", 0.5", "array([[0.51, 1.22]])")
predict_set = _delegate("predict_set", "Exact prediction regions", ", 0.5", "[array([[0.51, 1.22]])]")
predict_p = _delegate("predict_p", "p-values of targets", ", [5.0]", "array([0.25])")
predict_quantiles = _delegate("predict_quantiles", "Predictive quantiles", ", [0.3, 0.7]", "array([[0.51, 1.  ]])")
predict_bound = _delegate("predict_bound", "One-sided prediction bounds", ", 0.7, side='upper'", "array([1.])")
predict_cdf = _delegate("predict_cdf", "Predictive distribution functions", ", [5.0]", "array([0.88])")
predict_distribution = _delegate(
    "predict_distribution", "Predictive distributions", "", "<PredictiveDistribution of 1 rows, 3 steps each>"
)
