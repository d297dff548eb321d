"""Difficulty: location and scale of the residuals of the GP, learnt from tuning rows.

It is a regression of standardised leave-one-out residuals e on inputs and prediction, and scores are then
:math:`|e - c(x)| / g(x)` (docs/theory.md, "What else may be learnt").
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from sklearn.base import clone

from conformal_gp.arrays import Array, Indices
from conformal_gp.threads import one_blas_thread

# Quantiles of standardised residuals that the default regresses.
QUANTILES = (0.05, 0.95)
# Scales are at most this factor below and above that of all rows together.
MOST_DIFFICULT = 10.0
# Share of tuning rows that may have an unbounded set.
UNBOUNDED = 0.01


class Spread(NamedTuple):
    """Location and scale of the standardised residuals of n rows: scores are measured from and by these."""

    location: Array
    """(n,): c."""
    scale: Array
    """(n,): g, positive."""

    @classmethod
    def usual(cls, n_rows: int) -> Spread:
        """Location 0 and scale 1, as the GP expects."""
        return cls(np.zeros(n_rows), np.ones(n_rows))

    def take(self, rows: Indices) -> Spread:
        """Of some of the rows."""
        return Spread(self.location[rows], self.scale[rows])


class LeftOut(NamedTuple):
    """Leave-one-out predictions of n tuning rows, in units of the transformed targets."""

    mean: Array
    deviation: Array
    residual: Array
    """Standardised residuals."""

    @classmethod
    def of(cls, alpha: Array, diagonal: Array, z: Array) -> LeftOut:
        """From weighted residuals and inverse variances; nothing is known of a row that determines a coefficient."""
        # mu_i = z_i - alpha_i / P_ii, sigma_i = P_ii^(-1/2) and e_i = alpha_i sigma_i
        deviation = np.where(diagonal == 0.0, 1.0, diagonal) ** -0.5
        return cls(z - alpha * deviation**2, deviation, alpha * deviation)

    @property
    def error(self) -> Array:
        """Absolute residuals."""
        return np.abs(self.residual) * self.deviation

    def take(self, rows: Any) -> LeftOut:
        """Some of the rows."""
        return LeftOut(*(part[rows] for part in self))


@dataclass(frozen=True)
class Difficulty:
    """A fitted regression of standardised residuals: their size, or their lower and upper quantiles."""

    regressors: tuple[Any, ...]
    """One of the size, or two of the quantiles."""
    typical: float
    """Scale of all rows together."""
    centred: bool = True
    """Whether scores are measured from the location."""

    @property
    def fitted(self) -> Any:
        """The fitted regressor, or the pair of them."""
        return self.regressors[0] if len(self.regressors) == 1 else self.regressors

    @classmethod
    def learn(cls, regressor: Any, X: Array, left_out: LeftOut) -> Difficulty:
        """Fit a clone of a regressor of the size, or quantiles by default ("auto"), to tuning rows."""
        features, residual = _features(X, left_out.mean), left_out.residual
        with one_blas_thread():
            if regressor == "auto":
                low, high = np.quantile(residual, QUANTILES)
                pair = tuple(quantile_regressor(q).fit(features, residual) for q in QUANTILES)
                return cls(pair, float(high - low) / 2.0 or 1.0)
            typical = float(np.abs(residual).mean()) or 1.0
            sizes = np.maximum(np.abs(residual), 1e-3 * typical)  # a gamma distribution has no zeros
            return cls((clone(regressor).fit(features, sizes),), typical)

    def __call__(self, X: Array, prediction: Array) -> Spread:
        """Location and scale of rows, from their inputs and what tuning rows predict there."""
        features = _features(X, prediction)
        with one_blas_thread():
            found = [np.ravel(np.asarray(one.predict(features), dtype=np.float64)) for one in self.regressors]
        for values in found:
            if values.size != len(X) or not np.isfinite(values).all():
                raise ValueError(
                    f"difficulty must predict one finite number for each of {len(X)} rows, and {self.fitted!r} "
                    f"predicted {values!r}."
                )
        low, high = found if len(found) == 2 else (-found[0], found[0])
        location = (low + high) / 2.0 if self.centred else np.zeros(low.size)
        scale = np.clip((high - low) / 2.0, self.typical / MOST_DIFFICULT, self.typical * MOST_DIFFICULT)
        return Spread(location, scale)

    def is_bounded(self, correlation: Array, X: Array, prediction: Array) -> bool:
        r"""Return whether prediction sets of nearly all tuning rows by each other are bounded.

        Far out, residuals of other rows grow with the test row's by their correlation
        :math:`\rho_{it} = P_{it} / \sqrt{P_{ii} P_{tt}}`, and scores by :math:`|\rho_{it}|\, g_t / g_i`. That has to be
        below 1. With next to no noise it is not for a fifth of the rows; with noise it is, except for isolated pairs.
        ``X`` are inputs of the tuning rows, and ``prediction`` is what they predict there.
        """
        scale = self(X, prediction).scale
        growth = np.abs(correlation) * np.divide.outer(scale, scale)
        np.fill_diagonal(growth, 0.0)
        return bool((growth.max(axis=1) >= 1.0).mean() <= UNBOUNDED)


def _features(X: Array, prediction: Array) -> Array:
    return np.column_stack([X, prediction])


def quantile_regressor(quantile: float) -> Any:
    """Small boosted trees for a quantile."""
    from sklearn.ensemble import HistGradientBoostingRegressor  # takes a third of a second to import

    return HistGradientBoostingRegressor(
        loss="quantile", quantile=quantile, max_iter=30, learning_rate=0.1, max_leaf_nodes=8, min_samples_leaf=40,
        l2_regularization=5.0, early_stopping=False, random_state=0,
    )  # fmt: skip
