"""The regressor inside scikit-learn's pipelines, searches and wrappers, and how inputs and labels reach it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import TransformerMixin
from sklearn.compose import TransformedTargetRegressor
from sklearn.frozen import FrozenEstimator
from sklearn.pipeline import Pipeline
from sklearn.utils.validation import check_is_fitted

from conformal_gp.types import Array

# Where wrappers keep the one fitted estimator that they hold.
HELD = ("estimator_", "regressor_", "estimator")
# Labels at which a map of the target is looked at, besides those that it maps.
GRID = 1001
# Distance of labels that tell whether a map increases, relative to a single one.
NEARBY = 1e-3


class Held(NamedTuple):
    """The regressor inside a model, the inputs as it takes them, and maps of the target from the outside in."""

    regressor: Any
    X: Any
    maps: list[Any]

    def forth(self, y: ArrayLike) -> ArrayLike:
        """Labels as the regressor knows them."""
        for label_map in self.maps:
            labels = np.ravel(np.asarray(y, dtype=np.float64))
            with np.errstate(all="ignore"):
                y = _applied(label_map.transform, labels)
                again = _applied(label_map.inverse_transform, np.where(np.isfinite(y), y, 0.0))
            same = np.isfinite(y) & np.isclose(again, labels, rtol=1e-6)
            if not same.all():
                wrong = float(labels[np.argmin(same)])
                raise ValueError(
                    f"y holds {wrong}, which the target's map ({type(label_map).__name__}) does not map forth and back "
                    "to itself."
                )
        return y

    def back(self, values: ArrayLike) -> Array:
        """Labels of the regressor as labels of the model; infinite ones stay infinite."""
        return self._back(np.asarray(values, dtype=np.float64), self._nearby() if self.maps else np.empty(0))

    def increasing(self) -> bool:
        """Whether higher labels of the regressor are higher labels of the model."""
        if not self.maps:
            return True
        nearby = self._nearby()
        mapped = self._back(nearby, nearby)
        return bool(mapped[-1] > mapped[0])

    def _nearby(self) -> Array:
        """Labels of the regressor near its predictions, sorted, at least two."""
        means = np.unique(self.regressor.predict(self.X))
        return means if means.size > 1 else means + NEARBY * (np.abs(means) or 1.0) * np.array([-1.0, 1.0])

    def _back(self, values: Array, nearby: Array) -> Array:
        for label_map in reversed(self.maps):
            finite = np.isfinite(values)
            labels = np.union1d(values[finite], nearby)
            labels = np.union1d(labels, np.linspace(labels[0], labels[-1], GRID))
            with np.errstate(all="ignore"):
                images = _applied(label_map.inverse_transform, labels)
            rises, falls = (images[1:] >= images[:-1]).all(), (images[1:] <= images[:-1]).all()
            if rises == falls:
                raise ValueError(
                    f"the target's map ({type(label_map).__name__}) must be monotone, and its inverse is not between "
                    f"{labels[0]:.6g} and {labels[-1]:.6g}, where the regressor's labels are. Of the square root, say, "
                    "lambda z: np.maximum(z, 0) ** 2 is an inverse that is."
                )
            mapped = np.where(np.isfinite(values), 0.0, values if rises else -values)
            mapped[finite] = images[np.searchsorted(labels, values[finite])]
            values, nearby = mapped, np.unique(images[np.searchsorted(labels, nearby)])
        return values


def _applied(function: Callable[[Array], Any], labels: Array) -> Array:
    """A function of columns, applied to labels."""
    return np.ravel(np.asarray(function(labels.reshape(-1, 1)), dtype=np.float64))


def walk(model: Any, X: Any, method: str) -> Held:
    """The regressor with a method inside a model."""
    outermost, maps = model, []
    while isinstance(model, FrozenEstimator) or not hasattr(model, "predict_interval"):
        if isinstance(model, FrozenEstimator):  # first, as it shows the attributes of what it holds
            model = model.estimator
        elif isinstance(model, Pipeline):
            check_is_fitted(model)
            for _, step in model.steps[:-1]:
                X = X if step in (None, "passthrough") else step.transform(X)
            model = model.steps[-1][1]
        elif isinstance(model, TransformedTargetRegressor):
            check_is_fitted(model)
            maps.append(model.transformer_)
            model = model.regressor_
        elif hasattr(model, "best_estimator_"):
            model = model.best_estimator_
        else:
            model, X = _held_by(model, X, outermost)
    if not hasattr(model, method):
        raise ValueError(f"model must be, or hold, a regressor with {method}, got {type(model).__name__}.")
    return Held(model, X, maps)


def _held_by(model: Any, X: Any, outermost: Any) -> tuple[Any, Any]:
    """The one estimator that a wrapper passes ``predict`` on to, and the inputs that it passes on."""
    name = next((name for name in HELD if hasattr(model, name)), None)
    if name is None or hasattr(model, "estimators_"):
        inside = "" if model is outermost else f" inside {type(outermost).__name__}"
        raise ValueError(
            f"model must be, or hold, one regressor with predict_interval: {type(model).__name__}{inside} has none, or "
            "several estimators."
        )
    if getattr(model, "refit", True) is False:
        raise ValueError(f"{type(model).__name__} has refit=False and keeps no fitted model; use refit=True.")
    check_is_fitted(model)
    held = getattr(model, name)
    inputs = model.transform(X) if isinstance(model, TransformerMixin) else X
    if not np.allclose(model.predict(X), held.predict(inputs), rtol=1e-9, equal_nan=True):
        raise ValueError(
            f"{type(model).__name__} does more than pass rows on to its {name}: their predictions differ, so intervals "
            "would be wrong."
        )
    return held, inputs
