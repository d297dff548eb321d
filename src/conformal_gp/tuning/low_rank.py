"""Everything learnt from design rows, for a low-rank model of very many rows."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from typing import NamedTuple

import numpy as np
from sklearn.gaussian_process.kernels import Kernel

from conformal_gp.conformal.lines import Spread
from conformal_gp.gp.inducing import independent, select, unexplained_variance
from conformal_gp.gp.inputs import Inputs, Points, Scaling
from conformal_gp.gp.lowrank import LowRankPosterior, LowRankPrior
from conformal_gp.gp.posterior import Posterior
from conformal_gp.gp.warps import Bounds, Warp
from conformal_gp.predictors.base import Predictor, Process
from conformal_gp.predictors.bounded import BoundedPredictor
from conformal_gp.predictors.lowrank import LowRankPredictor
from conformal_gp.predictors.transformed import WarpedPredictor
from conformal_gp.rows import ArrayRows, MappedRows
from conformal_gp.rows import Rows as Source
from conformal_gp.threads import one_blas_thread
from conformal_gp.tuning.choices import choose_difficulty, learn_with_warp, learnt_bounds, mapped
from conformal_gp.tuning.design import MOST_DESIGN_ROWS as MOST_DESIGN_ROWS_EXACT
from conformal_gp.tuning.design import design_rows, ranked_size
from conformal_gp.tuning.difficulty import Difficulty, LeftOut
from conformal_gp.tuning.learning import Purpose, choose_gamma
from conformal_gp.tuning.methods import PROMISE, Fitted, TuningResult, fixed, holdout
from conformal_gp.tuning.settings import Settings
from conformal_gp.types import Array, Rows

# Rows that are read at a time, where all are in memory.
BLOCK_ROWS = 8192
# Most design rows, by default; and of how many of them the likelihood is, and inducing inputs are the centres.
MOST_DESIGN_ROWS = 20_000
LEARNING_ROWS = 600
CENTRED_ROWS = 4000
# Default number of inducing inputs, and where these limit what is known of a function without much noise: where so many
# design rows of the exact process predict each other better than that by all design rows of the low-rank one.
INDUCING = 512
MORE_INDUCING = 1536
TRIAL_ROWS = 2000
CLEARLY_LESS = 0.95
# There the exact process is taken up to so many rows, if they are in memory.
ROWS_FOR_EXACT_WITHOUT_NOISE = 10_000

# Least noise variance that is learnt, relative to the kernel's variance: in all, and for each training row. The matrix
# of the sums over rows then has a condition number that double precision bears, on test functions without noise.
LEAST_RATIO = 1e-7
LEAST_RATIO_A_ROW = 2e-10


@dataclass(frozen=True, kw_only=True)
class LowRankModel(TuningResult):
    """What design rows have decided about a low-rank model."""

    kernel: Kernel
    noise_variance: float
    scaling: Scaling
    inducing: Array
    """Inducing inputs, scaled."""
    approximation: str
    limited: bool
    """Whether inducing inputs, and not noise, limit what is known."""

    def fitted(self, rows: Points, y: Array, n_jobs: int | None, earlier: Process | None = None) -> Fitted:
        """See TuningResult."""
        return self.fitted_to(ArrayRows(rows.X, y, rows.known, BLOCK_ROWS, n_jobs), n_jobs)

    def fitted_to(self, rows: Source, n_jobs: int | None) -> Fitted:
        """Make the predictor of rows that are read in blocks; nothing is learnt."""
        side = None if self.bounds is None else rows.each(partial(_side, self.bounds), "labels")
        if self.warp is not None:
            rows = MappedRows(rows, self.warp.forward)
        own, y = rows.take(self.design)
        inputs = Inputs(own, self.scaling, self.mean)
        prior = LowRankPrior(self.kernel, self.noise_variance, inputs, y, self.inducing, self.approximation)
        posterior = LowRankPosterior(prior, rows.total(prior.sums, "fit"))
        difficulty = None
        if self.difficulty is not None:
            difficulty = partial(_difficulty, self.difficulty, LowRankPosterior(prior, prior.sums(own, y)))
        predictor: Predictor = LowRankPredictor(posterior, rows, self.design, self.gamma, n_jobs, difficulty)
        if self.warp is not None:
            predictor = WarpedPredictor(predictor, self.warp)
        if self.bounds is not None and side is not None:
            predictor = BoundedPredictor(predictor, self.bounds, side)
        return Fitted(
            predictor, self.kernel, self.noise_variance, posterior.mean_coef, posterior.log_marginal_likelihood
        )


def _side(bounds: Bounds, rows: Points, y: Array) -> Array:
    return bounds.side(y)


def _difficulty(difficulty: Difficulty, design: LowRankPosterior, rows: Points) -> Spread:
    """Difficulty of rows, by way of what the design rows predict."""
    return difficulty(rows.X, design.mean(rows))


def design_size(n_rows: int) -> int:
    """How many design rows there are, if nothing else is said.

    >>> design_size(300), design_size(6000), design_size(10**6)
    (221, 4201, 20001)
    """
    return n_rows - ranked_size(n_rows, MOST_DESIGN_ROWS)


def low_rank(
    settings: Settings,
    rows: Source,
    design: Rows,
    rng: np.random.RandomState,
    *,
    tuning: str = "holdout",
    inducing: str | Array = "kmeans",
    n_inducing: int | None = None,
    approximation: str = "fitc",
    exact_up_to: int = 0,
) -> LowRankModel:
    """Hyperparameters and inducing inputs from the design rows; inducing inputs may be given, unscaled.

    Where their number limits what is known there are more of them, unless there are at most ``exact_up_to`` rows.
    """
    own, y = rows.take(design)
    learnt = _learn(settings, own, y, rows.n_rows, rng, tuning)
    inputs, labels = Inputs(own, learnt.scaling, settings.mean), mapped(learnt.warp, y)
    prior = partial(LowRankPrior, learnt.kernel, learnt.noise_variance, inputs, labels, approximation=approximation)
    condition, limited, few = "", False, rows.n_rows <= exact_up_to
    if isinstance(inducing, str):
        scaled = learnt.scaling.transform(own.X[rng.permutation(y.size)[:CENTRED_ROWS]])
        Z = select(inducing, learnt.kernel, scaled, n_inducing or INDUCING, rng)
        left_out = _left_out(prior(Z), own, labels)
        limited = n_inducing is None and (
            (few and learnt.noise_variance <= 2.0 * learnt.least_noise)
            or _limits(learnt, settings.mean, own, labels, Z, left_out, rng)
        )
        if limited and not few:
            Z = select(inducing, learnt.kernel, scaled, MORE_INDUCING, rng)
            left_out = _left_out(prior(Z), own, labels)
    else:
        Z = independent(learnt.kernel, learnt.scaling.transform(inducing))
        left_out = _left_out(prior(Z), own, labels)
        condition = ", if the inducing inputs given do not come from calibration rows"
    learns = tuning == "holdout"
    return LowRankModel(
        kernel=learnt.kernel,
        noise_variance=learnt.noise_variance,
        scaling=learnt.scaling,
        mean=settings.mean,
        gamma=learnt.gamma,
        inducing=Z,
        approximation=approximation,
        limited=limited,
        design=design,
        guarantee=(
            f"Valid: everything that was learnt, a process with {len(Z)} inducing inputs, comes from {design.size} "
            f"design rows and the other {{n_ranked}} are calibration rows, so {PROMISE}{condition}."
        ),
        warp=learnt.warp,
        difficulty=choose_difficulty(settings, left_out, learnt.warp, own.X, y),
        bounds=learnt_bounds(y) if settings.learns_bounds and learns else None,
        warnings=learnt.warnings,
    )


class _Learnt(NamedTuple):
    """What some of the design rows have decided."""

    kernel: Kernel
    noise_variance: float
    scaling: Scaling
    gamma: float
    warp: Warp | None
    warnings: list[str]
    least_noise: float = 0.0
    """Least noise that was searched."""


def _learn(settings: Settings, own: Points, y: Array, n_rows: int, rng: np.random.RandomState, tuning: str) -> _Learnt:
    """Hyperparameters from some of the design rows, or as given."""
    if tuning == "fixed":
        given = fixed(settings, own, y, rng)
        return _Learnt(given.kernel, given.noise_variance, given.scaling, given.gamma, given.warp, [])
    some = rng.permutation(y.size)[:LEARNING_ROWS]
    learning, labels = own.take(some), y[some]
    scaling = settings.scaling(learning.X)
    inputs = Inputs(learning, scaling, settings.mean)
    least = max(LEAST_RATIO, LEAST_RATIO_A_ROW * n_rows)
    with one_blas_thread():
        purpose = Purpose(n_rows, low_rank=True, least_ratio=least)
        warp, learnt = learn_with_warp(settings, learning, scaling, labels, purpose, rng)
        gamma = choose_gamma(settings, learnt, inputs, mapped(warp, labels))
    least_noise = least * float(learnt.kernel.diag(inputs.X).max())
    return _Learnt(learnt.kernel, learnt.noise_variance, scaling, gamma, warp, learnt.warnings, least_noise)


def _left_out(prior: LowRankPrior, rows: Points, y: Array) -> LeftOut:
    """Leave-one-out predictions of the design rows."""
    state = LowRankPosterior(prior, prior.sums(rows, y)).rows(rows, y)
    return LeftOut.of(state.alpha, state.diagonal, y)


def _limits(
    learnt: _Learnt, mean: str, own: Points, y: Array, Z: Array, left_out: LeftOut, rng: np.random.RandomState
) -> bool:
    """Whether the number of inducing inputs limits what is known: the exact process of fewer rows knows more."""
    some = rng.permutation(y.size)[:TRIAL_ROWS]
    inputs = Inputs(own.take(some), learnt.scaling, mean)
    if unexplained_variance(learnt.kernel, inputs.X, Z) <= learnt.noise_variance:
        return False
    trial = Posterior(learnt.kernel, learnt.noise_variance, inputs, y[some])
    exact = LeftOut.of(trial.residuals, trial.diagonal, y[some])
    return bool(exact.error.mean() < CLEARLY_LESS * left_out.take(some).error.mean())


def low_rank_holdout(settings: Settings, rows: Points, y: Array, rng: np.random.RandomState) -> TuningResult:
    """The design split with a low-rank process, for rows in memory; exact for some more rows where noise is little."""
    if settings.design is None:
        settings = replace(settings, design=design_size(y.size))
    source = ArrayRows(rows.X, y, rows.known, BLOCK_ROWS, settings.n_jobs)
    design, most = design_rows(settings, rows.X, rng), ROWS_FOR_EXACT_WITHOUT_NOISE
    found = low_rank(settings, source, design, rng, exact_up_to=most)
    if found.limited and y.size <= most:
        return holdout(replace(settings, design=found.design), rows, y, rng, most_learning=MOST_DESIGN_ROWS_EXACT)
    return found
