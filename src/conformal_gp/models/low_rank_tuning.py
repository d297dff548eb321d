"""Tuning of a low-rank process of very many rows: everything is learnt from tuning rows."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import NamedTuple

import numpy as np
from sklearn.gaussian_process.kernels import Kernel

from conformal_gp.arrays import Array, Indices
from conformal_gp.gp.inputs import Inputs, Rows, Scaling
from conformal_gp.gp.lowrank import LowRankPosterior, LowRankPrior, centres, independent, unexplained_variance
from conformal_gp.gp.posterior import Posterior
from conformal_gp.large.rows import ArrayRows, RowSource
from conformal_gp.models.choices import choose_difficulty, learn_with_transform, mapped
from conformal_gp.models.learning import Purpose
from conformal_gp.models.settings import Settings
from conformal_gp.models.tuned import Tuned
from conformal_gp.models.tuning import bounds_in_use, fixed, holdout, tuned_guarantee
from conformal_gp.models.tuning_rows import MOST_TUNING_ROWS as MOST_TUNING_ROWS_EXACT
from conformal_gp.models.tuning_rows import calibration_size, content_order, draw_tuning_rows, drawn, fewest_tuning_rows
from conformal_gp.targets.difficulty import LeftOut
from conformal_gp.targets.target import Target
from conformal_gp.targets.transformation import Transformation
from conformal_gp.threads import one_blas_thread

# Most tuning rows, by default; and of how many of them the likelihood is, and inducing inputs are the centres.
MOST_TUNING_ROWS = 20_000
LEARNING_ROWS = 600
CENTRED_ROWS = 4000
# Default number of inducing inputs, and where these limit what is known of a function without much noise: where so many
# tuning rows of the exact process predict each other better than that by all tuning rows of the low-rank one.
INDUCING = 512
MORE_INDUCING = 1536
TRIAL_ROWS = 2000
CLEARLY_LESS = 0.95
# There the exact process is taken up to so many rows, if they are in memory.
ROWS_FOR_EXACT_WITHOUT_NOISE = 10_000

# Least noise variance that is learnt, relative to the kernel's variance: in all, and for each training row. The matrix
# of the sums over rows then has a condition number that double precision can handle, on test functions without noise.
LEAST_RATIO = 1e-7
LEAST_RATIO_A_ROW = 2e-10


def tuning_size(n_rows: int) -> int:
    """Default number of tuning rows.

    >>> tuning_size(300), tuning_size(6000), tuning_size(10**6)
    (221, 4201, 20001)
    """
    return n_rows - calibration_size(n_rows, MOST_TUNING_ROWS)


def low_rank(
    settings: Settings,
    source: RowSource,
    n_inputs: int,
    rng: np.random.RandomState,
    tuning: str,
    inducing: int | Array | None,
) -> Tuned:
    """Hyperparameters and inducing inputs from tuning rows.

    ``inducing`` is a number of inducing inputs, or the inputs themselves, unscaled; None lets tuning rows choose the
    number, and for up to :data:`ROWS_FOR_EXACT_WITHOUT_NOISE` rows in memory whether the process is exact.
    """
    tuning_rows = _tuning_rows(settings, source, n_inputs, rng)
    found, limited = _low_rank(settings, source, tuning_rows, rng, tuning, inducing)
    if limited and isinstance(source, ArrayRows) and source.n_rows <= ROWS_FOR_EXACT_WITHOUT_NOISE:
        settings = replace(settings, tuning_rows=tuning_rows)
        return holdout(settings, source.rows, source.y, rng, most_learning=MOST_TUNING_ROWS_EXACT)
    return found


def _tuning_rows(settings: Settings, source: RowSource, n_inputs: int, rng: np.random.RandomState) -> Indices:
    """Tuning rows: given, or at random."""
    if isinstance(settings.tuning_rows, np.ndarray):
        return settings.tuning_rows
    size = settings.tuning_rows
    if size is None:
        size = max(tuning_size(source.n_rows), fewest_tuning_rows(settings.mean, n_inputs))
    if isinstance(source, ArrayRows) and source.in_memory:
        return draw_tuning_rows(replace(settings, tuning_rows=size), source.rows.X, source.y, rng)
    return drawn(settings.mean, size, source.n_rows, n_inputs, rng)


def _low_rank(
    settings: Settings,
    source: RowSource,
    tuning_rows: Indices,
    rng: np.random.RandomState,
    tuning: str,
    inducing: int | Array | None,
) -> tuple[Tuned, bool]:
    """What tuning rows decide, and whether an exact process would be better, where that can be."""
    own, y = source.take(tuning_rows)
    order = content_order(own.X, y)
    own = own.take(order)
    y = y[order]
    learnt = _learn(settings, own, y, source.n_rows, rng, tuning)
    inputs = Inputs(own, learnt.scaling, settings.mean)
    z = mapped(learnt.transformation, y)
    prior = partial(LowRankPrior, learnt.kernel, learnt.noise_variance, inputs, z)
    few = isinstance(source, ArrayRows) and source.n_rows <= ROWS_FOR_EXACT_WITHOUT_NOISE
    condition = ""
    limited = False
    if isinstance(inducing, np.ndarray):
        Z = independent(learnt.kernel, learnt.scaling.transform(inducing))
        left_out = _left_out(prior(Z), own, z)
        condition = " The inducing inputs that were given must not come from calibration rows."
    else:
        scaled = learnt.scaling.transform(own.X[rng.permutation(y.size)[:CENTRED_ROWS]])
        Z = centres(learnt.kernel, scaled, inducing or INDUCING, rng)
        left_out = _left_out(prior(Z), own, z)
        if inducing is None:
            next_to_no_noise = few and learnt.noise_variance <= 2.0 * learnt.least_noise
            limited = next_to_no_noise or _limits(learnt, settings.mean, own, z, Z, left_out, rng)
        if limited and not few:
            Z = centres(learnt.kernel, scaled, MORE_INDUCING, rng)
            left_out = _left_out(prior(Z), own, z)
    bounds = bounds_in_use(settings, y) if tuning == "holdout" else {"bounds": settings.bounds}
    tuned = Tuned(
        guarantee=tuned_guarantee(tuning_rows.size, f"a process with {len(Z)} inducing inputs was") + condition,
        mean=settings.mean,
        target=Target(learnt.transformation, **bounds),
        gamma=settings.gamma,
        tuning_rows=tuning_rows,
        warnings=learnt.warnings,
        kernel=learnt.kernel,
        noise_variance=learnt.noise_variance,
        scaling=learnt.scaling,
        difficulty=choose_difficulty(settings, left_out, learnt.transformation, own.X, y),
        inducing=Z,
    )
    return tuned, limited


class _Learnt(NamedTuple):
    """What some of the tuning rows have decided."""

    kernel: Kernel
    noise_variance: float
    scaling: Scaling
    transformation: Transformation | None
    warnings: list[str]
    least_noise: float = 0.0
    """Least noise that was searched."""


def _learn(settings: Settings, own: Rows, y: Array, n_rows: int, rng: np.random.RandomState, tuning: str) -> _Learnt:
    """Hyperparameters from some of the tuning rows, or as given."""
    if tuning == "fixed":
        given = fixed(replace(settings, tuning_rows=None), own, y, rng)
        scaling = settings.scaling(own.X)
        return _Learnt(given.kernel, given.noise_variance, scaling, given.target.transformation, [])
    some = rng.permutation(y.size)[:LEARNING_ROWS]
    learning = own.take(some)
    scaling = settings.scaling(learning.X)
    least = max(LEAST_RATIO, LEAST_RATIO_A_ROW * n_rows)
    purpose = Purpose(n_rows, low_rank=True, least_ratio=least)
    with one_blas_thread():
        transformation, learnt = learn_with_transform(settings, learning, scaling, y[some], purpose, rng)
    least_noise = least * float(learnt.kernel.diag(scaling.transform(learning.X)).max())
    return _Learnt(learnt.kernel, learnt.noise_variance, scaling, transformation, learnt.warnings, least_noise)


def _left_out(prior: LowRankPrior, rows: Rows, y: Array) -> LeftOut:
    """Leave-one-out predictions of the tuning rows."""
    state = LowRankPosterior(prior, prior.sums(rows, y)).rows(rows, y)
    return LeftOut.of(state.alpha, state.diagonal, y)


def _limits(
    learnt: _Learnt, mean: str, own: Rows, y: Array, Z: Array, left_out: LeftOut, rng: np.random.RandomState
) -> bool:
    """Whether the number of inducing inputs limits what is known: the exact process of fewer rows knows more."""
    some = rng.permutation(y.size)[:TRIAL_ROWS]
    inputs = Inputs(own.take(some), learnt.scaling, mean)
    if unexplained_variance(learnt.kernel, inputs.X, Z) <= learnt.noise_variance:
        return False
    trial = Posterior(learnt.kernel, learnt.noise_variance, inputs, y[some])
    exact = LeftOut.of(trial.residuals, trial.diagonal, y[some])
    return bool(exact.error.mean() < CLEARLY_LESS * left_out.take(some).error.mean())
