"""The map of labels: given, or chosen by rows that are not ranked, by the score of their leave-one-out intervals."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from conformal_gp.conformal.levels import rank, read_levels
from conformal_gp.gp.inputs import Inputs, Points
from conformal_gp.gp.posterior import Posterior
from conformal_gp.gp.warps import BoxCox, Functions, Warp, YeoJohnson
from conformal_gp.tuning.learning import learn
from conformal_gp.tuning.settings import Settings, label_variance
from conformal_gp.types import Array

BOX_COX_EXPONENTS = (1.0, 0.5, 1 / 3, 0.0, -0.5, -1.0)
YEO_JOHNSON_EXPONENTS = (1.0, 0.75, 0.5, 0.25, 0.0, 1.25, 1.5, 2.0)
# "auto" takes another map than the identity if its scores are lower by this share, and by so many standard errors,
# among at least so many rows.
LEAST_GAIN = 0.05
STANDARD_ERRORS = 2.0
FEWEST_ROWS = 20
# Rows whose intervals are compared, at most, and the levels.
CHOOSING_ROWS = 500
LEVELS = read_levels([0.8, 0.9, 0.95])[0]


def mapped(warp: Warp | None, y: Array) -> Array:
    """Labels under a map; None is the identity."""
    return y if warp is None else warp.forward(y)


def check_domain(settings: Settings, y: Array) -> None:
    """Raise a ValueError that names the first label which a map does not take, whichever exponent is learnt."""
    if settings.warp in ("log", "sqrt", "box-cox"):
        BoxCox({"log": 0.0, "sqrt": 0.5, "box-cox": -1.0}[settings.warp]).forward(y)
    elif not (settings.warp is None or isinstance(settings.warp, str)):
        Functions(settings.warp, y)


def warp_for(settings: Settings, rows: Points, y: Array, rng: np.random.RandomState) -> Warp | None:
    """The map of labels that is asked for; the rows choose it where it is to be learnt."""
    if not (settings.warp is None or isinstance(settings.warp, str)):
        return Functions(settings.warp, y)
    if settings.warp in ("log", "sqrt"):
        return BoxCox({"log": 0.0, "sqrt": 0.5}[settings.warp])
    maps: Sequence[Warp | None]
    if settings.warp == "auto":
        maps = [None, *_powers(y)]
    elif settings.warp == "box-cox":
        maps = [BoxCox(exponent) for exponent in BOX_COX_EXPONENTS]
    else:
        unit = float(np.median(np.abs(y))) or float(np.abs(y).mean()) or 1.0
        maps = [YeoJohnson(exponent, unit) for exponent in YEO_JOHNSON_EXPONENTS]
    if len(maps) == 1:
        return maps[0]
    some = rng.permutation(y.size)[:CHOOSING_ROWS]
    scores = np.array([interval_scores(settings, warp, rows.take(some), y[some], rng) for warp in maps])
    best = int(np.argmin(scores.mean(axis=1)))
    return maps[best] if settings.warp != "auto" or _clearly_lower(scores[best], scores[0]) else None


def _powers(y: Array) -> list[Warp]:
    """Square root and logarithm, continued below half of the smallest positive label; none if there are negative ones.

    Labels of other rows may be of any sign.
    """
    if y.size < FEWEST_ROWS or y.min() < 0.0 or y.max() == 0.0:
        return []
    cut = 0.5 * float(y[y > 0.0].min())
    return [BoxCox(0.5, cut), BoxCox(0.0, cut)]


def _clearly_lower(scores: Array, others: Array) -> bool:
    """Whether scores of rows are lower than others of the same rows by more than chance explains."""
    gain = others - scores
    error = gain.std() / np.sqrt(gain.size)
    return bool(gain.mean() > max(LEAST_GAIN * others.mean(), STANDARD_ERRORS * error))


def interval_scores(settings: Settings, warp: Warp | None, rows: Points, y: Array, rng: np.random.RandomState) -> Array:
    r"""Scores of leave-one-out intervals of labels under a map, in the labels' units, (n,), averaged over levels.

    With hyperparameters learnt from all n rows, row i's mapped label has leave-one-out mean
    :math:`\mu_i = z_i - \alpha_i / P_{ii}` and variance :math:`1 / P_{ii}`. Its interval
    :math:`\mu_i \pm q P_{ii}^{-1/2}`, q the fitting order statistic of :math:`|\alpha_i| P_{ii}^{-1/2}`, is mapped
    back. The score of an interval is its width, and :math:`2 / \delta` times how far the label is outside.
    """
    z = mapped(warp, y)
    inputs = Inputs(rows, settings.scaling(rows.X), settings.mean)
    if label_variance(inputs, z) == 0.0:
        return np.zeros(y.size)
    learnt = learn(replace(settings, n_restarts=0), inputs, z, y.size, rng)
    posterior = Posterior(learnt.kernel, learnt.noise_variance, inputs, z)
    alone = posterior.diagonal == 0.0  # rows that determine a coefficient: nothing is left to predict their labels
    deviation = np.where(alone, 1.0, posterior.diagonal) ** -0.5
    mean = z - posterior.residuals * deviation**2
    sizes = np.sort(np.abs(posterior.residuals * deviation))
    total = np.zeros(y.size)
    for level in LEVELS:
        q = sizes[-max(1, rank(level, y.size))]
        low, high = mean - q * deviation, mean + q * deviation
        if warp is not None:
            low, high = warp.backward(low), warp.backward(high)
        outside = np.maximum(low - y, 0.0) + np.maximum(y - high, 0.0)
        total += high - low + 2.0 / float(1 - level) * outside
    return total / len(LEVELS)
