"""Everything learnt from design rows, for a low-rank model of very many rows."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial

import numpy as np
from sklearn.gaussian_process.kernels import Kernel

from conformal_gp.gp.inducing import independent, select, unexplained_variance
from conformal_gp.gp.inputs import Inputs, Points, Scaling
from conformal_gp.gp.lowrank import LowRankPosterior, LowRankPrior
from conformal_gp.predictors.base import Predictor
from conformal_gp.predictors.lowrank import LowRankPredictor
from conformal_gp.predictors.transformed import WarpedPredictor
from conformal_gp.rows import ArrayRows, MappedRows
from conformal_gp.rows import Rows as Source
from conformal_gp.threads import one_blas_thread, slices
from conformal_gp.tuning.choices import Difficulty, LeftOut, choose_difficulty, choose_warp, mapped
from conformal_gp.tuning.design import design_rows
from conformal_gp.tuning.learning import choose_gamma, learn
from conformal_gp.tuning.methods import PROMISE, Fitted, TuningResult, fixed
from conformal_gp.tuning.settings import Settings
from conformal_gp.types import Array, Rows

# Rows that are read at a time, where all are in memory.
BLOCK_ROWS = 8192
# Default number of design rows: a share, between these; and how many of them the likelihood is of.
DESIGN_SHARE = 1 / 4
DESIGN_ROWS = (1000, 4000)
LEARNING_ROWS = 1000
# Default number of inducing inputs, and where these would leave more than a share of the noise unexplained: then they
# and not the noise would limit the intervals.
INDUCING = 512
MORE_INDUCING = 1536
UNEXPLAINED = 0.1

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

    def fitted(self, rows: Points, y: Array, n_jobs: int | None, earlier: Predictor | None = None) -> Fitted:
        """See TuningResult."""
        return self.fitted_to(ArrayRows(rows.X, y, rows.known, BLOCK_ROWS, n_jobs), n_jobs, earlier)

    def fitted_to(self, rows: Source, n_jobs: int | None, earlier: Predictor | None = None) -> Fitted:
        """Make the predictor of rows that are read in blocks; nothing is learnt."""
        if self.warp is not None:
            rows = MappedRows(rows, self.warp.forward)
        if isinstance(earlier, LowRankPredictor):
            prior, sums, difficulty = earlier.posterior.prior, earlier.posterior.sums, earlier.difficulty
            for block in slices(rows.n_rows - earlier.n_rows, BLOCK_ROWS):
                sums += prior.sums(*rows.take(earlier.n_rows + np.arange(block.start, block.stop)))
        else:
            own, y = rows.take(self.design)
            inputs = Inputs(own, self.scaling, self.mean)
            prior = LowRankPrior(self.kernel, self.noise_variance, inputs, y, self.inducing, self.approximation)
            sums, difficulty = rows.total(prior.sums, "fit"), None
            if self.difficulty is not None:
                difficulty = partial(_difficulty, self.difficulty, LowRankPosterior(prior, prior.sums(own, y)))
        posterior = LowRankPosterior(prior, sums)
        predictor: Predictor
        predictor = core = LowRankPredictor(posterior, rows, self.design, self.gamma, n_jobs, difficulty)
        if earlier is None:
            _ = core.scores  # now; of rows that come later, when they are needed
        if self.warp is not None:
            predictor = WarpedPredictor(predictor, self.warp)
        return Fitted(
            predictor, self.kernel, self.noise_variance, posterior.mean_coef, posterior.log_marginal_likelihood
        )


def _difficulty(difficulty: Difficulty, design: LowRankPosterior, rows: Points) -> Array:
    """Difficulty of rows, by way of what the design rows predict."""
    return difficulty(rows.X, design.mean(rows))


def design_size(n_rows: int) -> int:
    """How many design rows there are, if nothing else is said; with few rows, half of them.

    >>> design_size(300), design_size(6000), design_size(10**6)
    (150, 1500, 4000)
    """
    return min(int(np.clip(DESIGN_SHARE * n_rows, *DESIGN_ROWS)), -(-n_rows // 2))


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
) -> LowRankModel:
    """Hyperparameters and inducing inputs from the design rows; inducing inputs may be given, unscaled."""
    own, y = rows.take(design)
    warnings: list[str] = []
    if tuning == "fixed":
        given = fixed(settings, own, y, rng)
        kernel, noise, scaling, gamma, warp = given.kernel, given.noise_variance, given.scaling, given.gamma, given.warp
    else:
        some = rng.permutation(y.size)[:LEARNING_ROWS]
        learning, labels = own.take(some), y[some]
        scaling = settings.scaling(learning.X)
        inputs = Inputs(learning, scaling, settings.mean)
        with one_blas_thread():
            warp = choose_warp(settings, learning, labels, rng)
            labels = mapped(warp, labels)
            least = max(LEAST_RATIO, LEAST_RATIO_A_ROW * rows.n_rows)
            learnt = learn(settings, inputs, labels, rows.n_rows, rng, least_ratio=least, low_rank=True)
            kernel, noise, warnings, _ = learnt
            gamma = choose_gamma(settings, learnt, inputs, labels)
    if isinstance(inducing, str):
        scaled = scaling.transform(own.X)
        Z = select(inducing, kernel, scaled, n_inducing or INDUCING, rng)
        if n_inducing is None and unexplained_variance(kernel, scaled[:LEARNING_ROWS], Z) > UNEXPLAINED * noise:
            Z = select(inducing, kernel, scaled, MORE_INDUCING, rng)
        condition = ""
    else:
        Z = independent(kernel, scaling.transform(inducing))
        condition = ", if the inducing inputs given do not come from the latter"
    difficulty = None
    if settings.difficulty is not None:
        labels = mapped(warp, y)
        prior = LowRankPrior(kernel, noise, Inputs(own, scaling, settings.mean), labels, Z, approximation)
        state = LowRankPosterior(prior, prior.sums(own, labels)).rows(own, labels)
        left_out = LeftOut.of(state.alpha, state.diagonal, labels)
        difficulty = choose_difficulty(settings, left_out, warp, own.X, y)
    return LowRankModel(
        kernel=kernel,
        noise_variance=noise,
        scaling=scaling,
        mean=settings.mean,
        gamma=gamma,
        inducing=Z,
        approximation=approximation,
        design=design,
        guarantee=(
            f"Exact: everything that was learnt, a process with {len(Z)} inducing inputs, comes from {design.size} "
            f"design rows and the other {{n_ranked}} are ranked, so {PROMISE}{condition}."
        ),
        warp=warp,
        difficulty=difficulty,
        warnings=warnings,
    )


def low_rank_holdout(settings: Settings, rows: Points, y: Array, rng: np.random.RandomState) -> LowRankModel:
    """The design split with a low-rank process, for rows in memory."""
    if settings.design is None:
        settings = replace(settings, design=design_size(y.size))
    source = ArrayRows(rows.X, y, rows.known, BLOCK_ROWS, settings.n_jobs)
    return low_rank(settings, source, design_rows(settings, rows.X, rng), rng)
