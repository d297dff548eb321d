r"""What design rows choose: a monotone transformation of the labels, then a difficulty that widths follow.

With hyperparameters learnt from n design rows, row i's transformed label has leave-one-out mean
:math:`\mu_i = z_i - \alpha_i / P_{ii}` and standard deviation :math:`\sigma_i = P_{ii}^{-1/2}`. Its standardised
residual :math:`e_i = |\alpha_i| \sigma_i` is small where the process is better than it thinks and large where it is
worse. The *difficulty* g(x) is a regression of the :math:`e_i` on inputs and prediction; scores are then divided by it.
Any function that comes from design rows alone may divide them: ranked rows and test row stay exchangeable.

Both are chosen by the interval score of :math:`\mu_i \pm q\, \sigma_i g(x_i)`, mapped back, where q is the fitting
order statistic of :math:`e_i / g(x_i)`: the transformation with g = 1 or with g from the other folds, whichever is
better, and then the difficulty. "auto" does something only where scores are clearly better.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
from sklearn.base import clone

from conformal_gp.conformal.levels import rank, read_levels
from conformal_gp.gp.inputs import Inputs, Points
from conformal_gp.gp.posterior import Posterior
from conformal_gp.gp.warps import Bounds, BoxCox, Functions, Warp, YeoJohnson
from conformal_gp.threads import one_blas_thread
from conformal_gp.tuning.learning import learn
from conformal_gp.tuning.settings import Settings, label_variance
from conformal_gp.types import Array

BOX_COX_EXPONENTS = (1.0, 0.5, 1 / 3, 0.0, -0.5, -1.0)
YEO_JOHNSON_EXPONENTS = (1.0, 0.75, 0.5, 0.25, 0.0, 1.25, 1.5, 2.0)
# "auto" does something if that lowers the scores by this share, and by so many standard errors.
LEAST_GAIN = 0.02
STANDARD_ERRORS = 2.0
# Fewest design rows that choose a transformation, a difficulty, and a transformation with a view to a difficulty.
ROWS_FOR_WARP = 40
ROWS_FOR_DIFFICULTY = 100
ROWS_FOR_BOTH = 300
# Rows whose intervals are compared for a transformation, at most; the levels; folds of the difficulty.
CHOOSING_ROWS = 500
LEVELS = read_levels([0.8, 0.9, 0.95])[0]
FOLDS = 5
# Powers of a learnt difficulty that "auto" chooses from.
POWERS = (1.0, 0.5)
# Difficulties are at most this factor below and above the mean of what they are learnt from.
MOST_DIFFICULT = 10.0


class LeftOut(NamedTuple):
    """Leave-one-out predictions of n design rows, in units of the transformed labels."""

    mean: Array
    deviation: Array
    size: Array
    """Standardised residuals, their signs left out."""

    @classmethod
    def of(cls, alpha: Array, diagonal: Array, z: Array) -> LeftOut:
        """From weighted residuals and inverse variances; nothing is known of a row that determines a coefficient."""
        deviation = np.where(diagonal == 0.0, 1.0, diagonal) ** -0.5
        return cls(z - alpha * deviation**2, deviation, np.abs(alpha) * deviation)


@dataclass(frozen=True)
class Difficulty:
    """A fitted regression of the size of standardised residuals, kept within bounds."""

    regressor: Any
    typical: float
    power: float = 1.0
    """A power below 1 shrinks the differences between rows."""

    @classmethod
    def learn(cls, regressor: Any, X: Array, left_out: LeftOut) -> Difficulty:
        """Fit a clone of a regressor to inputs and predictions of design rows."""
        typical = float(left_out.size.mean()) or 1.0
        sizes = np.maximum(left_out.size, 1e-3 * typical)  # a gamma distribution has no zeros
        with one_blas_thread():
            return cls(clone(regressor).fit(_features(X, left_out.mean), sizes), typical)

    def __call__(self, X: Array, prediction: Array) -> Array:
        """Difficulty of rows, from their inputs and what design rows predict there."""
        with one_blas_thread():
            found = np.asarray(self.regressor.predict(_features(X, prediction)), dtype=np.float64).ravel()
        return np.clip(found, self.typical / MOST_DIFFICULT, self.typical * MOST_DIFFICULT) ** self.power


def _features(X: Array, prediction: Array) -> Array:
    return np.column_stack([X, prediction])


def default_regressor() -> Any:
    """Small boosted trees for the logarithm of the mean of a gamma distribution."""
    from sklearn.ensemble import HistGradientBoostingRegressor  # takes a third of a second to import

    return HistGradientBoostingRegressor(
        loss="gamma", max_iter=50, learning_rate=0.05, max_leaf_nodes=4, min_samples_leaf=40, l2_regularization=5.0,
        early_stopping=False, random_state=0,
    )  # fmt: skip


def mapped(warp: Warp | None, y: Array) -> Array:
    """Labels under a transformation; None is the identity."""
    return y if warp is None else warp.forward(y)


def check_bounds(y_bounds: Any, y: Array) -> None:
    """Raise a ValueError that names the first label outside of bounds, or says what is wrong with them."""
    if y_bounds is not None:
        bounds = Bounds.of(y_bounds)
        outside = (y < bounds.low) | (y > bounds.high)
        if outside.any():
            row = int(np.argmax(outside))
            raise ValueError(f"y has {y[row]:g} in row {row}, outside y_bounds={y_bounds!r}.")


def check_domain(settings: Settings, y: Array) -> None:
    """Raise a ValueError that names the first label which a map does not take, whichever exponent is learnt."""
    if settings.warp in ("log", "sqrt", "box-cox"):
        BoxCox({"log": 0.0, "sqrt": 0.5, "box-cox": -1.0}[settings.warp]).forward(y)
    elif not (settings.warp is None or isinstance(settings.warp, str)):
        Functions(settings.warp, y)


def _maps(settings: Settings, y: Array) -> Sequence[Warp | None]:
    """Transformations to choose from, the usual one first."""
    if settings.warp is None:
        return [None]
    if not isinstance(settings.warp, str):
        return [Functions(settings.warp, y)]
    if settings.warp in ("log", "sqrt"):
        return [BoxCox({"log": 0.0, "sqrt": 0.5}[settings.warp])]
    if settings.warp == "box-cox":
        return [BoxCox(exponent) for exponent in BOX_COX_EXPONENTS]
    if settings.warp == "yeo-johnson":
        unit = float(np.median(np.abs(y))) or float(np.abs(y).mean()) or 1.0
        return [YeoJohnson(exponent, unit) for exponent in YEO_JOHNSON_EXPONENTS]
    if y.size < ROWS_FOR_WARP or y.min() < 0.0 or y.max() == 0.0:
        return [None]
    # square root and logarithm go on along a tangent below: labels of other rows may be of any sign
    cut = 0.5 * float(y[y > 0.0].min())
    return [None, BoxCox(0.5, cut), BoxCox(0.0, cut)]


def choose_warp(settings: Settings, rows: Points, y: Array, rng: np.random.RandomState) -> Warp | None:
    """The transformation that is asked for; the rows choose what is left open."""
    maps = _maps(settings, y)
    if len(maps) == 1:
        return maps[0]
    some = rng.permutation(y.size)[:CHOOSING_ROWS]
    X, labels, scores = rows.X[some], y[some], []
    for warp in maps:
        left_out = _left_out(settings, rows.take(some), mapped(warp, labels), rng)
        found = [_scores(left_out, warp, 1.0, labels)]
        if settings.difficulty == "auto" and some.size >= ROWS_FOR_BOTH:
            found.append(_scores(left_out, warp, _from_other_folds(default_regressor(), X, left_out), labels))
        scores.append(min(found, key=lambda own: own.mean()))
    if settings.warp != "auto":  # some exponent must be taken
        return maps[int(np.argmin([own.mean() for own in scores]))]
    gains = [_gain(own, scores[0]) for own in scores]
    return maps[int(np.argmax(gains))]


def choose_difficulty(
    settings: Settings, left_out: LeftOut, warp: Warp | None, X: Array, y: Array
) -> Difficulty | None:
    """The difficulty that is asked for, learnt from design rows; "auto" is none unless it clearly pays."""
    regressor = settings.difficulty
    if regressor is None or (regressor == "auto" and y.size < ROWS_FOR_DIFFICULTY):
        return None
    if regressor == "auto":
        regressor = default_regressor()
        g, usual = _from_other_folds(regressor, X, left_out), _scores(left_out, warp, 1.0, y)
        gains = {power: _gain(_scores(left_out, warp, g**power, y), usual) for power in POWERS}
        power = max(gains, key=lambda own: gains[own])
        return replace(Difficulty.learn(regressor, X, left_out), power=power) if gains[power] > 0.0 else None
    return Difficulty.learn(regressor, X, left_out)


def _from_other_folds(regressor: Any, X: Array, left_out: LeftOut) -> Array:
    """Difficulty of each row, learnt from the rows of the other folds."""
    g = np.empty(len(X))
    for fold in range(FOLDS):
        out = np.arange(len(X)) % FOLDS == fold
        learnt = Difficulty.learn(regressor, X[~out], LeftOut(*(part[~out] for part in left_out)))
        g[out] = learnt(X[out], left_out.mean[out])
    return g


def _gain(scores: Array, usual: Array) -> float:
    """By how much scores of rows are lower than the usual ones, if that is more than chance explains; else 0."""
    if not np.isfinite([scores, usual]).all():  # a transformation back that reaches infinity
        return 0.0
    gain = usual - scores
    least = max(LEAST_GAIN * usual.mean(), STANDARD_ERRORS * gain.std() / np.sqrt(gain.size))
    return float(gain.mean()) if gain.mean() > least else 0.0


def _left_out(settings: Settings, rows: Points, z: Array, rng: np.random.RandomState) -> LeftOut:
    """Leave-one-out predictions with hyperparameters of all rows."""
    inputs = Inputs(rows, settings.scaling(rows.X), settings.mean)
    if label_variance(inputs, z) == 0.0:
        return LeftOut(z, np.ones(z.size), np.zeros(z.size))
    learnt = learn(replace(settings, n_restarts=0), inputs, z, z.size, rng)
    posterior = Posterior(learnt.kernel, learnt.noise_variance, inputs, z)
    return LeftOut.of(posterior.residuals, posterior.diagonal, z)


def _scores(left_out: LeftOut, warp: Warp | None, g: Array | float, y: Array) -> Array:
    """Interval scores of the rows in units of the labels, averaged over levels, with difficulties g."""
    sizes, total = np.sort(left_out.size / g), np.zeros(y.size)
    back: Callable[[Array], Array] = (lambda z: z) if warp is None else warp.backward
    for level in LEVELS:
        reach = sizes[-max(1, rank(level, y.size))] * left_out.deviation * g
        low, high = back(left_out.mean - reach), back(left_out.mean + reach)
        outside = np.maximum(low - y, 0.0) + np.maximum(y - high, 0.0)
        total += high - low + 2.0 / float(1 - level) * outside
    return total / len(LEVELS)
