"""Transformation, difficulty and bounds of the target, chosen by tuning rows.

Tuning rows are predicted by each other, and choices go by the likelihood of their targets and by the interval scores of
their leave-one-out intervals, in units of the targets.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from conformal_gp.arrays import Array
from conformal_gp.conformal.levels import rank, read_levels
from conformal_gp.gp.posterior import EXPLAINED
from conformal_gp.models.settings import Settings, given_transform
from conformal_gp.targets.difficulty import Difficulty, LeftOut, Spread
from conformal_gp.targets.target import Bounds, extreme_unit
from conformal_gp.targets.transformation import BoxCox, Transformation, YeoJohnson

# Exponents to choose from and between. Those below 0 are bounded above: ends beyond have no target. Another exponent
# than 1 must be likelier by so many nats: what one parameter more gains by chance in one case of twenty.
BOX_COX_EXPONENTS = (0.0, 0.5, 1.0)
YEO_JOHNSON_EXPONENTS = (0.0, 0.5, 1.0, 1.5, 2.0)
LEAST_NATS = 2.0
# Exponents are taken whose score is at most this multiple of the least.
MOST_LOSS = 1.05
# Powers are continued along their tangent beyond this multiple of the largest tuning target.
TOP = 3.0
# "auto" takes a difficulty if that lowers the scores by this share, and by so many standard errors.
LEAST_GAIN = 0.01
STANDARD_ERRORS = 1.5
# Fewest tuning rows that choose a transformation, and a difficulty.
ROWS_FOR_TRANSFORM = 40
ROWS_FOR_DIFFICULTY = 100
# Levels of intervals that are compared for a difficulty; its folds, with fewer and with at least so many rows.
MANY_ROWS = 600
LEVELS = read_levels([0.8, 0.9, 0.95])[0]
FOLDS = (3, 2)

# Exponents, ascending at equal steps, 1 among them, and a function from these to transformations of the target.
Powers = tuple[tuple[float, ...], Callable[[float], Transformation | None]]


def _likeliest(exponents: tuple[float, ...], likelihoods: Array) -> float:
    """Exponent at the top of the parabola through the largest likelihood and those beside it."""
    best = int(np.argmax(likelihoods))
    if len(exponents) < 3 or not np.isfinite(likelihoods).all():
        return exponents[best]
    if likelihoods[best] - likelihoods[exponents.index(1.0)] < LEAST_NATS:
        return 1.0
    middle = min(max(best, 1), len(exponents) - 2)
    low, centre, high = likelihoods[middle - 1 : middle + 2]
    bend = low - 2.0 * centre + high
    if bend >= 0.0:
        return exponents[best]
    step = exponents[middle + 1] - exponents[middle]
    top = float(np.clip(0.5 * (low - high) / bend, -1.0, 1.0))
    return exponents[middle] + step * top


def choose_exponent(
    exponents: tuple[float, ...],
    make: Callable[[float], Transformation | None],
    predicted: Callable[[float], LeftOut],
    y: Array,
    bounds: Bounds | None,
) -> float:
    """The likeliest exponent, if its interval score is nearly the best; else the nearest of those whose score is.

    Likelihoods are densities of each target given the others, and scores those of leave-one-out intervals, both in
    units of the targets. The likelihood distinguishes exponents far better, and is blind to intervals that an
    exponential transforms back to huge ones: the score is not.
    """
    bounds = bounds or Bounds(-np.inf, np.inf)
    counted = (y != bounds.low) & (y != bounds.high)  # a value that many have, as 0, has no density
    likelihoods = np.zeros(len(exponents))
    scores = np.zeros(len(exponents))
    for i, exponent in enumerate(exponents):
        transformation = make(exponent)
        left_out = predicted(exponent)
        likelihoods[i] = log_densities(left_out, transformation, y)[counted].sum()
        scores[i] = _scores(left_out, transformation, None, y, bounds).mean()
    likeliest = _likeliest(exponents, likelihoods)
    most = MOST_LOSS * scores.min()
    if likeliest not in exponents and _scores(predicted(likeliest), make(likeliest), None, y, bounds).mean() <= most:
        return likeliest
    fine = np.flatnonzero(scores <= most)
    return float(np.clip(likeliest, exponents[fine[0]], exponents[fine[-1]]))


def target_unit(settings: Settings, y: Array) -> float:
    """Unit of extreme targets, a power of two; 1 for others, or where known noise or functions are given for them."""
    if settings.known_noise or isinstance(settings.target_transform, tuple):
        return 1.0
    return extreme_unit(y)


def powers(settings: Settings, y: Array) -> Powers:
    """Transformations to choose from; extreme targets are measured in a unit of their size."""
    unit = target_unit(settings, y)
    identity = None if unit == 1.0 else YeoJohnson(1.0, unit)
    if not settings.learns_transform:
        given = given_transform(settings, y)
        if isinstance(given, BoxCox):
            given = replace(given, unit=unit)
        return (1.0,), lambda exponent: given or identity
    if settings.target_transform == "box-cox":
        return BOX_COX_EXPONENTS, partial(BoxCox, unit=unit)
    if settings.target_transform == "yeo-johnson":
        size = float(np.median(np.abs(y))) or unit * float(np.abs(y / unit).mean()) or 1.0
        return YEO_JOHNSON_EXPONENTS, lambda exponent: YeoJohnson(exponent, size)
    if y.size < ROWS_FOR_TRANSFORM or y.min() < 0.0 or y.max() == 0.0:
        return (1.0,), lambda exponent: identity
    # powers are continued along tangents: targets of other rows may be of any sign, and far beyond the tuning targets
    # an exponential would transform back to huge intervals
    cut = 0.5 * float(y[y > 0.0].min()) / unit
    top = TOP * float(y.max()) / unit
    return BOX_COX_EXPONENTS, lambda exponent: identity if exponent == 1.0 else BoxCox(exponent, cut, unit, top)


def log_densities(left_out: LeftOut, transformation: Transformation | None, y: Array) -> Array:
    """Log density of each target given the others, in units of the targets, up to a constant."""
    slope = np.zeros(y.size) if transformation is None else transformation.log_slope(y)
    density = slope - 0.5 * left_out.residual**2 - np.log(left_out.deviation)
    return np.where(np.isnan(density), -np.inf, density)


def choose_difficulty(
    settings: Settings, left_out: LeftOut, target_transform: Transformation | None, X: Array, y: Array
) -> Difficulty | None:
    """The difficulty that is asked for, learnt from tuning rows; "auto" is none unless it clearly pays."""
    regressor = settings.difficulty
    z = left_out.mean + left_out.residual * left_out.deviation
    few = y.size < ROWS_FOR_DIFFICULTY or left_out.error.max() <= EXPLAINED * np.abs(z).max()
    if regressor is None or (regressor == "auto" and few):
        return None
    if regressor == "auto":
        bounds = bounds_in_use(settings, y)["bounds"] or Bounds(-np.inf, np.inf)
        usual = _scores(left_out, target_transform, None, y, bounds)
        if _gain(_scores(left_out, target_transform, _from_other_folds(X, left_out), y, bounds), usual) == 0.0:
            return None
    return replace(Difficulty.learn(regressor, X, left_out), centred=settings.gamma == 2.0)


def bounds_in_use(settings: Settings, y: Array) -> dict[str, Any]:
    """Bounds of the target: given, or suggested by tuning rows, as arguments of Target."""
    if settings.learns_bounds and settings.tuning == "holdout":
        return {"bounds": Bounds.suggested(y), "learnt_bounds": True}
    return {"bounds": settings.bounds}


def _from_other_folds(X: Array, left_out: LeftOut) -> Spread:
    """Location and scale of each row, learnt from the rows of the other folds."""
    spread = Spread.usual(len(X))
    folds = FOLDS[len(X) >= MANY_ROWS]
    for fold in range(folds):
        out = np.arange(len(X)) % folds == fold
        learnt = Difficulty.learn("auto", X[~out], left_out.take(~out))
        spread.location[out], spread.scale[out] = learnt(X[out], left_out.mean[out])
    return spread


def _gain(scores: Array, usual: Array) -> float:
    """Mean gain over the usual scores, if it is more than chance explains; else 0."""
    if not np.isfinite([scores, usual]).all():  # a transformation back that reaches infinity
        return 0.0
    gain = usual - scores
    least = max(LEAST_GAIN * usual.mean(), STANDARD_ERRORS * gain.std() / np.sqrt(gain.size))
    if gain.mean() > least:
        return float(gain.mean())
    return 0.0


def _scores(
    left_out: LeftOut, target_transform: Transformation | None, spread: Spread | None, y: Array, bounds: Bounds
) -> Array:
    """Interval scores of the rows in units of the targets, averaged over levels."""
    c, g = spread or Spread.usual(y.size)
    sizes = np.sort(np.abs(left_out.residual - c) / g)
    total = np.zeros(y.size)
    for level in LEVELS:
        reach = sizes[-max(1, rank(level, y.size))]
        # mu + (c -+ q g) sigma, transformed back
        ends = [left_out.mean + left_out.deviation * (c + sign * reach * g) for sign in (-1.0, 1.0)]
        if target_transform is not None:
            ends = [target_transform.backward(end) for end in ends]
        low, high = (bounds.clip(end) for end in ends)
        outside = np.maximum(low - y, 0.0) + np.maximum(y - high, 0.0)
        with np.errstate(invalid="ignore"):  # both ends may be transformed back to infinity, which does not gain
            total += high - low + 2.0 / float(1 - level) * outside  # Winkler's score
    return total / (extreme_unit(y) * len(LEVELS))
