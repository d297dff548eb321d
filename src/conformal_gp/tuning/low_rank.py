"""Everything learnt from design rows, for a low-rank model of very many rows."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

import numpy as np
from sklearn.gaussian_process.kernels import Kernel

from conformal_gp.gp.inducing import independent, select
from conformal_gp.gp.inputs import Inputs, Points, Scaling
from conformal_gp.gp.lowrank import LowRankPosterior, LowRankPrior
from conformal_gp.predictors.base import Predictor
from conformal_gp.predictors.lowrank import LowRankPredictor
from conformal_gp.predictors.transformed import WarpedPredictor
from conformal_gp.rows import ArrayRows, MappedRows
from conformal_gp.rows import Rows as Source
from conformal_gp.threads import one_blas_thread
from conformal_gp.tuning.choices import Difficulty, LeftOut, choose, mapped
from conformal_gp.tuning.learning import choose_gamma, learn
from conformal_gp.tuning.methods import PROMISE, Fitted, TuningResult, fixed
from conformal_gp.tuning.settings import Settings
from conformal_gp.types import Array, Rows

# Rows that are read at a time, where all are in memory.
BLOCK_ROWS = 8192
# Default number of design rows, and how many of them the likelihood is of (measured: docs/scale.md).
DESIGN_ROWS = 8000
DESIGN_SHARE = 1 / 2
LEARNING_ROWS = 1000
# Default number of inducing inputs: between these, so that rows times its square is at most the last. Where noise is
# below a share of the kernel's variance, the inducing inputs and not the noise limit the intervals, and half as many
# again are taken (docs/sizes.md).
INDUCING = (512, 2048)
AFFORDED = 1e11
LITTLE_NOISE = 1e-4

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

    def _fitted(self, rows: Points, y: Array, n_jobs: int | None) -> Fitted:
        """See TuningResult."""
        return self.fitted_to(ArrayRows(rows.X, y, rows.known, BLOCK_ROWS, n_jobs), n_jobs)

    def fitted_to(self, rows: Source, n_jobs: int | None) -> Fitted:
        """Make the predictor of rows that are read in blocks; nothing is learnt."""
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
        return Fitted(
            predictor, self.kernel, self.noise_variance, posterior.mean_coef, posterior.log_marginal_likelihood
        )


def _difficulty(difficulty: Difficulty, design: LowRankPosterior, rows: Points) -> Array:
    """Difficulty of rows, by way of what the design rows predict."""
    return difficulty(rows.X, design.mean(rows))


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
    regressor = None
    if tuning == "fixed":
        given = fixed(settings, own, y, rng)
        kernel, noise, scaling, gamma, warp = given.kernel, given.noise_variance, given.scaling, given.gamma, given.warp
    else:
        some = rng.permutation(y.size)[:LEARNING_ROWS]
        learning, labels = own.take(some), y[some]
        scaling = settings.scaling(learning.X)
        inputs = Inputs(learning, scaling, settings.mean)
        with one_blas_thread():
            warp, regressor = choose(settings, learning, labels, rng, difficulty=True)
            labels = mapped(warp, labels)
            least = max(LEAST_RATIO, LEAST_RATIO_A_ROW * rows.n_rows)
            learnt = learn(settings, inputs, labels, rows.n_rows, rng, least_ratio=least, low_rank=True)
            kernel, noise, warnings, _ = learnt
            gamma = choose_gamma(settings, learnt, inputs, labels)
    if isinstance(inducing, str):
        if n_inducing is None:
            little = noise < LITTLE_NOISE * float(kernel.diag(scaling.transform(own.X[:1]))[0])
            n_inducing = int((1.5 if little else 1.0) * np.clip(np.sqrt(AFFORDED / rows.n_rows), *INDUCING))
        Z = select(inducing, kernel, scaling.transform(own.X), n_inducing, rng)
        condition = ""
    else:
        Z = independent(kernel, scaling.transform(inducing))
        condition = ", if the inducing inputs given do not come from the latter"
    difficulty = None
    if regressor is not None:
        labels = mapped(warp, y)
        prior = LowRankPrior(kernel, noise, Inputs(own, scaling, settings.mean), labels, Z, approximation)
        state = LowRankPosterior(prior, prior.sums(own, labels)).rows(own, labels)
        difficulty = Difficulty.learn(regressor, own.X, LeftOut.of(state.alpha, state.diagonal, labels))
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
            f"Exact: everything that was learnt comes from {design.size} design rows and the other "
            f"{rows.n_rows - design.size} are ranked, so {PROMISE}{condition}."
        ),
        warp=warp,
        difficulty=difficulty,
        warnings=warnings,
    )
