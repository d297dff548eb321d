"""Hyperparameters, transformation, difficulty and bounds of the target, learnt from some of the rows.

Hyperparameters maximise the likelihood, and the transformation the density of each target given the others, in units of
the targets. A difficulty is taken if the interval scores of leave-one-out intervals are clearly better with it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from numpy.linalg import LinAlgError
from sklearn.gaussian_process.kernels import Kernel

from conformal_gp.arrays import Array, Indices
from conformal_gp.conformal.levels import rank, read_levels
from conformal_gp.gp.covariance import Cholesky, covariance, one_norm
from conformal_gp.gp.inputs import IndependentColumns, Inputs, Scaling, basis, label_variance
from conformal_gp.gp.kernels import check_kernel, is_amplitude, is_length, multiplied
from conformal_gp.gp.likelihood import for_each_input, variables
from conformal_gp.gp.maximum_likelihood import (
    BLOCK_ROWS,
    MANY_INPUTS,
    NOISE_RATIOS,
    ROWS_IN_BLOCKS,
    LearningRows,
    Optimum,
    has_noise,
    maximise_likelihood,
)
from conformal_gp.gp.posterior import EXPLAINED, SMALLEST_CONDITION, Posterior, noise_floor
from conformal_gp.models.settings import Settings, explained, given_transform
from conformal_gp.rows import Rows
from conformal_gp.targets.difficulty import Difficulty, LeftOut, Spread
from conformal_gp.targets.target import Bounds, extreme_unit
from conformal_gp.targets.transformation import BoxCox, Transformation, YeoJohnson, transformed
from conformal_gp.threads import slices

# Relative change of the likelihood at which a search stops: closer to the optimum, intervals of tuning rows' models are
# the same; the paper's are compared to five digits.
TUNING_TOLERANCE = 1e-6
PAPER_TOLERANCE = 1e-8
# Inputs and targets are learnt from in steps of one over this, in units of their standard deviation: less than noise,
# and more than rounding.
DIGITS = 2.0**26
# Steps from hyperparameters of other targets of the same rows.
NEARBY_STEPS = 5
# How much better the condition of the matrix has to be than the worst that is trusted: it is of fewer rows.
CONDITION_MARGIN = 3.0
# Exponents to choose from and between. Those below 0 are bounded above: ends beyond have no target. Another exponent
# than 1 must be likelier by so many nats: what one parameter more gains by chance in one case of twenty.
BOX_COX_EXPONENTS = (0.0, 0.5, 1.0)
YEO_JOHNSON_EXPONENTS = (0.0, 0.5, 1.0, 1.5, 2.0)
LEAST_NATS = 2.0
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


class Hyperparameters(NamedTuple):
    """Hyperparameters, learnt or given, in units of the targets."""

    kernel: Kernel
    noise_variance: float
    optimum: Optimum
    """The same in units of the targets' variance, with a length scale for each variable if inputs share them."""
    variables: Indices | None = None
    """Which of the optimum's length scales each input has; see LearningRows."""


@dataclass(frozen=True)
class Purpose:
    """The model that hyperparameters are learnt for."""

    n_rows: int
    """Its rows: noise must be as much as their covariance matrix needs."""
    restricted: bool = True
    """Whether the coefficients of the mean are integrated out and length scales shrunk towards each other; the paper's
    method does neither."""
    low_rank: bool = False
    """Whether the covariance matrix of all rows is never factorised."""
    least_ratio: float = 0.0
    """Least noise, relative to the amplitude."""


def learn(
    settings: Settings, inputs: Inputs, y: Array, purpose: Purpose, rng: np.random.RandomState
) -> Hyperparameters:
    """Maximum likelihood; of several kernels the one of best BIC.

    Targets are learnt from in units of their own standard deviation, and starts are at the scale of the inputs, so the
    units of neither matter, whatever starts and bounds a kernel object has for its amplitude. With many inputs,
    categories of one variable share a length scale of kernels that are given by name.
    """
    rows, variance = _learning_rows(settings, inputs, y)
    noise = 0.1 if settings.noise_variance is None else settings.noise_variance / (variance or 1.0)
    if variance == 0.0:
        start = _start(settings, settings.kernels[0], rows)
        least = 0.0 if has_noise(for_each_input(start, rows.variables), rows) else _least_ratio(purpose)
        found = Optimum(start, max(noise, least), 0.0, explained(inputs, y, settings.mean))
        return _in_units(found, 1.0, rows, inputs, purpose)
    search = _search(settings, purpose, rng)
    optima = []
    for given in settings.kernels:
        start = _start(settings, given, rows)
        if purpose.restricted and isinstance(given, str) and is_length(start).sum() > 1:
            # from the optimum with one length scale for all inputs; without noise that may be next to nothing
            alike = search(_start(replace(settings, ard=False), given, rows), noise or 0.1, rows, n_restarts=1)
            theta = np.append(alike.kernel.theta, np.full(is_length(start).sum() - 1, alike.kernel.theta[-1]))
            start = start.clone_with_theta(theta)
        optima.append(search(start, noise, rows))
    best = max(optima, key=lambda found: found.log_marginal_likelihood - 0.5 * found.kernel.n_dims * np.log(y.size))
    return _in_units(best, variance, rows, inputs, purpose)


def learn_nearby(
    settings: Settings, near: Hyperparameters, inputs: Inputs, y: Array, purpose: Purpose, rng: np.random.RandomState
) -> Hyperparameters:
    """Hyperparameters after a few steps from those of the same rows, or of more, with other targets."""
    rows, variance = _learning_rows(settings, inputs, y)
    rows = rows._replace(variables=near.variables)  # some of the rows may not have all categories
    if variance == 0.0:
        return near
    search = _search(settings, purpose, rng)
    found = search(near.optimum.kernel, near.optimum.noise_variance, rows, n_restarts=0, most_steps=NEARBY_STEPS)
    return _in_units(found, variance, rows, inputs, purpose)


def _learning_rows(settings: Settings, inputs: Inputs, y: Array) -> tuple[LearningRows, float]:
    """Rows with targets in units of their standard deviation, and its square."""
    variance = label_variance(inputs, y)
    # rounding errors of other units of inputs or targets would send searches along other ways
    spread = inputs.X.std(axis=0)
    size = 2.0 ** np.round(np.log2(np.where(spread > 0.0, spread, 1.0)))
    X = _rounded(inputs.X / size) * size
    unit = variance or 1.0
    y_variance = None
    if inputs.y_variance is not None:
        y_variance = inputs.y_variance / unit
    shared = None
    if X.shape[1] > MANY_INPUTS and settings.named and settings.ard:
        shared = variables(X)
    H = basis(inputs.mean, X)
    H = IndependentColumns(H).reduce(H)
    if inputs.mean != "zero":  # the mean takes up any constant
        y = y - y.mean()
    return LearningRows(X, _rounded(y / np.sqrt(unit)), H, y_variance, shared), variance


def _rounded(values: Array) -> Array:
    return np.round(values * DIGITS) / DIGITS


def _least_ratio(purpose: Purpose) -> float:
    return max(purpose.least_ratio, noise_floor(purpose.n_rows), NOISE_RATIOS[0])


def _search(settings: Settings, purpose: Purpose, rng: np.random.RandomState) -> Callable[..., Optimum]:
    """A search from some kernel and noise."""
    return partial(
        maximise_likelihood,
        random_state=rng,
        n_jobs=settings.n_jobs,
        least_ratio=_least_ratio(purpose),
        restricted=purpose.restricted,
        tolerance=TUNING_TOLERANCE if purpose.restricted else PAPER_TOLERANCE,
        n_restarts=settings.n_restarts,
    )


def _in_units(found: Optimum, variance: float, rows: LearningRows, inputs: Inputs, purpose: Purpose) -> Hyperparameters:
    """Hyperparameters in units of the targets, noise raised as the model needs it."""
    kernel = for_each_input(found.kernel, rows.variables)
    noise = _raised(kernel, found.noise_variance, inputs, purpose) * variance
    if variance != 1.0:
        kernel = multiplied(kernel, variance)
    return Hyperparameters(kernel, noise, found, rows.variables)


def _start(settings: Settings, given: str | Kernel, rows: LearningRows) -> Kernel:
    """A kernel to start from, at the scale of the inputs and, in units of the targets, at amplitude 1.

    It has one length scale, or one for each input, or for each variable that inputs belong to.
    """
    # the root mean square distance between rows, over the square root of two
    spread = float(np.sqrt(rows.X.var(axis=0).sum())) or 1.0
    kernel = settings.kernel(given, rows.X.shape[1] if rows.variables is None else int(rows.variables[-1]) + 1, spread)
    check_kernel(for_each_input(kernel, rows.variables), rows.X)
    theta = kernel.theta
    lengths = is_length(kernel)
    if lengths.any():
        theta[lengths] += np.log(spread) - theta[lengths].mean()
    theta[is_amplitude(kernel)] = 0.0
    return kernel.clone_with_theta(np.clip(theta, *np.reshape(kernel.bounds, (-1, 2)).T))


def _raised(kernel: Kernel, noise: float, inputs: Inputs, purpose: Purpose) -> float:
    """Learnt noise, raised where the covariance matrix of all rows would be numerically singular.

    The size of that matrix, and of its inverse, are estimated from the rows that hyperparameters were learnt from, so
    no other row matters. In the 1-norm the inverse may exceed one over the noise by up to the root of the number of
    rows: where rows are many for the rank of the matrix without noise, as of targets that are a sum of inputs.
    """
    n_rows = purpose.n_rows
    largest = n_rows * float(kernel.diag(inputs.X).max())
    if noise == 0.0 or noise >= max(np.sqrt(n_rows) * SMALLEST_CONDITION * largest, noise_floor(largest)):
        return noise  # 0: the kernel has noise of its own
    X = inputs.X[:: -(-len(inputs.X) // BLOCK_ROWS)]
    K = np.asfortranarray(np.tril(covariance(kernel, X)[0]))
    noise = max(noise, noise_floor(one_norm(K) * n_rows / K.shape[0]))
    if purpose.low_rank:
        return noise
    K.flat[:: K.shape[0] + 1] += noise
    norm = one_norm(K)
    try:
        condition = Cholesky(K).reciprocal_condition(norm) * K.shape[0] / n_rows
    except LinAlgError:  # a kernel that is no covariance function: the posterior says more
        return noise
    return noise * max(1.0, CONDITION_MARGIN * SMALLEST_CONDITION / condition)


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


def _unit(settings: Settings, y: Array) -> float:
    """Unit of extreme targets, a power of two; 1 for others, or where known noise or functions are given for them."""
    if settings.known_noise or isinstance(settings.target_transform, tuple):
        return 1.0
    return extreme_unit(y)


def _powers(settings: Settings, y: Array) -> Powers:
    """Transformations to choose from; extreme targets are measured in a unit of their size."""
    unit = _unit(settings, y)
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
    # powers are continued along a tangent below: targets of other rows may be of any sign
    cut = 0.5 * float(y[y > 0.0].min()) / unit
    return BOX_COX_EXPONENTS, lambda exponent: identity if exponent == 1.0 else BoxCox(exponent, cut, unit)


def learn_with_transform(
    settings: Settings, rows: Rows, scaling: Scaling, y: Array, purpose: Purpose, rng: np.random.RandomState
) -> tuple[Transformation | None, Hyperparameters]:
    """The transformation that is asked for, the likeliest if it is left open, and hyperparameters.

    Starts are followed on some of the rows; all of them, in blocks, choose the transformation, by the density of each
    target given the others, and end the search.
    Hyperparameters of one transformation are a few steps from those of another.
    """
    exponents, make = _powers(settings, y)
    if settings.noise_variance and _unit(settings, y) != 1.0:
        settings = replace(settings, noise_variance=None)  # squares of such units are no numbers
    order = rng.permutation(y.size) if purpose.restricted else np.arange(y.size)
    together = y.size <= ROWS_IN_BLOCKS or not purpose.restricted
    blocks = [order[block] for block in slices(y.size, y.size if together else BLOCK_ROWS)]
    some = blocks[0]
    few = Inputs(rows.take(some), scaling, settings.mean)
    first = learn(settings, few, transformed(make(1.0), y[some]), purpose, rng)
    exponent = 1.0
    learnt = first
    if len(exponents) > 1:
        found = {1.0: first}
        for other in exponents:
            if other not in found:
                z = transformed(make(other), y[some])
                found[other] = learn_nearby(settings, first, few, z, purpose, rng)
        likelihoods = np.zeros(len(exponents))
        bounds = Bounds.suggested(y) or Bounds(-np.inf, np.inf)
        counted = (y != bounds.low) & (y != bounds.high)  # a value that many have, as 0, has no density
        for block in blocks:
            inputs = Inputs(rows.take(block), scaling, settings.mean)
            for i, other in enumerate(exponents):
                densities = _log_densities(found[other], inputs, make(other), y[block])
                likelihoods[i] += densities[counted[block]].sum()
        exponent = _likeliest(exponents, likelihoods)
        learnt = found[min(found, key=lambda other: abs(other - exponent))]
    transformation = make(exponent)
    if some.size < y.size or exponent not in exponents:
        inputs = Inputs(rows, scaling, settings.mean)
        learnt = learn_nearby(settings, learnt, inputs, transformed(transformation, y), purpose, rng)
    return transformation, learnt


def _log_densities(learnt: Hyperparameters, inputs: Inputs, transformation: Transformation | None, y: Array) -> Array:
    """Log density of each target given the others, in units of the targets, up to a constant."""
    z = transformed(transformation, y)
    if label_variance(inputs, z) == 0.0:
        return np.full(y.size, np.inf)
    posterior = Posterior(learnt.kernel, learnt.noise_variance, inputs, z)
    left_out = LeftOut.of(posterior.residuals, posterior.diagonal, z)
    slope = 0.0 if transformation is None else transformation.log_slope(y)
    return slope - 0.5 * left_out.residual**2 - np.log(left_out.deviation)


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
