r"""What tuning rows choose: a monotone transformation of the labels, a difficulty that widths follow, and bounds.

Transformation and difficulty are chosen by the interval score of leave-one-out intervals
:math:`\mu_i + (c(x_i) \pm q\, g(x_i))\, \sigma_i`, mapped back, where q is the fitting order statistic of
:math:`|e_i - c(x_i)| / g(x_i)` (:mod:`conformal_gp.targets.difficulty`). The transformation is compared with c = 0 and
g = 1 or with both from the other folds, whichever is better; then the difficulty is. "auto" does something only where
scores are clearly better.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np

from conformal_gp.arrays import Array
from conformal_gp.conformal.levels import rank, read_levels
from conformal_gp.gp.inputs import Inputs, Rows, Scaling
from conformal_gp.gp.posterior import EXPLAINED, Posterior
from conformal_gp.models.learning import Hyperparameters, Purpose, learn, learn_nearby
from conformal_gp.models.settings import Settings, label_variance
from conformal_gp.targets.difficulty import Difficulty, LeftOut, Spread
from conformal_gp.targets.target import Bounds
from conformal_gp.targets.transformation import BoxCox, Functions, Transformation, YeoJohnson

BOX_COX_EXPONENTS = (1.0, 0.5, 1 / 3, 0.0, -0.5, -1.0)
YEO_JOHNSON_EXPONENTS = (1.0, 0.75, 0.5, 0.25, 0.0, 1.25, 1.5, 2.0)
# "auto" does something if that lowers the scores by this share, and by so many standard errors.
LEAST_GAIN = 0.01
STANDARD_ERRORS = 1.5
# Fewest tuning rows that choose a transformation, a difficulty, and a transformation with a view to a difficulty.
ROWS_FOR_TRANSFORM = 40
ROWS_FOR_DIFFICULTY = 100
ROWS_FOR_BOTH = 300
# Labels have a bound at their least or greatest value if so many tuning rows, and such a share, have it.
OFTEN_ROWS = 5
OFTEN_SHARE = 0.01
# Rows whose intervals are compared for a transformation, at most; the levels; folds of the difficulty, with fewer and
# with at least so many rows.
CHOOSING_ROWS = 600
LEVELS = read_levels([0.8, 0.9, 0.95])[0]
FOLDS = (3, 2)


def mapped(target_transform: Transformation | None, y: Array) -> Array:
    """Labels under a transformation; None is the identity."""
    return y if target_transform is None else target_transform.forward(y)


def check_domain(settings: Settings, y: Array) -> None:
    """Raise a ValueError that names the first label which a map does not take, whichever exponent is learnt."""
    if settings.target_transform in ("log", "sqrt", "box-cox"):
        BoxCox({"log": 0.0, "sqrt": 0.5, "box-cox": -1.0}[settings.target_transform]).forward(y)
    elif not (settings.target_transform is None or isinstance(settings.target_transform, str)):
        Functions(settings.target_transform, y)


def _maps(settings: Settings, y: Array) -> Sequence[Transformation | None]:
    """Transformations to choose from, the usual one first."""
    if settings.target_transform is None:
        return [None]
    if not isinstance(settings.target_transform, str):
        return [Functions(settings.target_transform, y)]
    if settings.target_transform in ("log", "sqrt"):
        return [BoxCox({"log": 0.0, "sqrt": 0.5}[settings.target_transform])]
    if settings.target_transform == "box-cox":
        return [BoxCox(exponent) for exponent in BOX_COX_EXPONENTS]
    if settings.target_transform == "yeo-johnson":
        unit = float(np.median(np.abs(y))) or float(np.abs(y).mean()) or 1.0
        return [YeoJohnson(exponent, unit) for exponent in YEO_JOHNSON_EXPONENTS]
    if y.size < ROWS_FOR_TRANSFORM or y.min() < 0.0 or y.max() == 0.0:
        return [None]
    # square root and logarithm go on along a tangent below: labels of other rows may be of any sign
    cut = 0.5 * float(y[y > 0.0].min())
    return [None, BoxCox(0.5, cut), BoxCox(0.0, cut)]


def only_transform(settings: Settings, y: Array) -> Transformation | None:
    """The transformation of settings that leave nothing open."""
    return _maps(settings, y)[0]


def learn_with_transform(
    settings: Settings, rows: Rows, scaling: Scaling, y: Array, purpose: Purpose, rng: np.random.RandomState
) -> tuple[Transformation | None, Hyperparameters]:
    """The transformation that is asked for, and hyperparameters; the rows choose what is left open.

    Hyperparameters of one transformation are a few steps from those of another.
    """
    maps, inputs = _maps(settings, y), Inputs(rows, scaling, settings.mean)
    learnt = learn(settings, inputs, mapped(maps[0], y), purpose, rng)
    if len(maps) == 1:
        return maps[0], learnt
    some = rng.permutation(y.size)[:CHOOSING_ROWS]
    few, labels = rows.take(some), y[some]
    scores: list[Array] = []
    found: list[Hyperparameters] = []
    bounds, seen = _bounds(settings, labels), Inputs(few, scaling, settings.mean)
    for target_transform in maps:
        z = mapped(target_transform, labels)
        found.append(learn_nearby(settings, learnt, seen, z, purpose, rng) if found else learnt)
        left_out = _left_out(found[-1], seen, z)
        own = [_scores(left_out, target_transform, None, labels, bounds)]
        if settings.difficulty == "auto" and some.size >= ROWS_FOR_BOTH:
            own.append(_scores(left_out, target_transform, _from_other_folds(few.X, left_out), labels, bounds))
        scores.append(min(own, key=lambda each: each.mean()))
    if settings.target_transform == "auto":
        chosen = int(np.argmax([_gain(own, scores[0]) for own in scores]))
    else:  # some exponent must be taken
        chosen = int(np.argmin([own.mean() for own in scores]))
    if chosen > 0:
        learnt = learn_nearby(settings, found[chosen], inputs, mapped(maps[chosen], y), purpose, rng)
    return maps[chosen], learnt


def choose_difficulty(
    settings: Settings, left_out: LeftOut, target_transform: Transformation | None, X: Array, y: Array
) -> Difficulty | None:
    """The difficulty that is asked for, learnt from tuning rows; "auto" is none unless it clearly pays."""
    regressor = settings.difficulty
    few = y.size < ROWS_FOR_DIFFICULTY or left_out.error.max() <= EXPLAINED * np.abs(y).max()
    if regressor is None or (regressor == "auto" and few):
        return None
    if regressor == "auto":
        bounds = _bounds(settings, y)
        usual = _scores(left_out, target_transform, None, y, bounds)
        if _gain(_scores(left_out, target_transform, _from_other_folds(X, left_out), y, bounds), usual) == 0.0:
            return None
    return replace(Difficulty.learn(regressor, X, left_out), centred=settings.gamma == 2.0)


def _bounds(settings: Settings, y: Array) -> Bounds:
    """Bounds at which intervals will be cut."""
    found = settings.bounds
    if settings.learns_bounds:
        found = learnt_bounds(y)
    return found or Bounds(-np.inf, np.inf)


def learnt_bounds(y: Array) -> Bounds | None:
    """Bounds that tuning rows' labels respect: 0 if none is negative, and ends that a share of them are equal to."""
    if y.size < ROWS_FOR_TRANSFORM:
        return None
    least, most = float(y.min()), float(y.max())
    often = max(OFTEN_ROWS, OFTEN_SHARE * y.size)
    low = least if (y == least).sum() >= often else 0.0 if least >= 0.0 else -np.inf
    high = most if (y == most).sum() >= often else 0.0 if most <= 0.0 else np.inf
    return Bounds(low, high) if low < high and np.isfinite([low, high]).any() else None


def _from_other_folds(X: Array, left_out: LeftOut) -> Spread:
    """Location and scale of each row, learnt from the rows of the other folds."""
    spread, folds = Spread.usual(len(X)), FOLDS[len(X) >= CHOOSING_ROWS]
    for fold in range(folds):
        out = np.arange(len(X)) % folds == fold
        learnt = Difficulty.learn("auto", X[~out], left_out.take(~out))
        spread.location[out], spread.scale[out] = learnt(X[out], left_out.mean[out])
    return spread


def _gain(scores: Array, usual: Array) -> float:
    """By how much scores of rows are lower than the usual ones, if that is more than chance explains; else 0."""
    if not np.isfinite([scores, usual]).all():  # a transformation back that reaches infinity
        return 0.0
    gain = usual - scores
    least = max(LEAST_GAIN * usual.mean(), STANDARD_ERRORS * gain.std() / np.sqrt(gain.size))
    return float(gain.mean()) if gain.mean() > least else 0.0


def _left_out(learnt: Hyperparameters, inputs: Inputs, z: Array) -> LeftOut:
    """Leave-one-out predictions of rows."""
    if label_variance(inputs, z) == 0.0:
        return LeftOut(z, np.ones(z.size), np.zeros(z.size))
    posterior = Posterior(learnt.kernel, learnt.noise_variance, inputs, z)
    return LeftOut.of(posterior.residuals, posterior.diagonal, z)


def _scores(
    left_out: LeftOut, target_transform: Transformation | None, spread: Spread | None, y: Array, bounds: Bounds
) -> Array:
    """Interval scores of the rows in units of the labels, averaged over levels."""
    c, g = Spread.usual(y.size) if spread is None else spread
    sizes, total = np.sort(np.abs(left_out.residual - c) / g), np.zeros(y.size)
    back: Callable[[Array], Array] = (lambda z: z) if target_transform is None else target_transform.backward
    for level in LEVELS:
        reach = sizes[-max(1, rank(level, y.size))]
        ends = (left_out.mean + left_out.deviation * (c + sign * reach * g) for sign in (-1.0, 1.0))
        low, high = (bounds.clip(back(end)) for end in ends)
        outside = np.maximum(low - y, 0.0) + np.maximum(y - high, 0.0)
        with np.errstate(invalid="ignore"):  # both ends may be mapped back to infinity, which does not gain
            total += high - low + 2.0 / float(1 - level) * outside
    return total / len(LEVELS)
