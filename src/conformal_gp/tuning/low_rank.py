"""Everything learnt from design rows, for a low-rank model of very many rows."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from sklearn.gaussian_process.kernels import Kernel

from conformal_gp.gp.inducing import independent, select
from conformal_gp.gp.inputs import Inputs, Scaling
from conformal_gp.gp.lowrank import LowRankPosterior, LowRankPrior
from conformal_gp.gp.noise import VaryingNoise, coefficients
from conformal_gp.gp.warps import Warp
from conformal_gp.predictors.base import Predictor
from conformal_gp.predictors.lowrank import LowRankPredictor
from conformal_gp.predictors.warped import WarpedPredictor
from conformal_gp.rows import MappedRows
from conformal_gp.rows import Rows as Source
from conformal_gp.threads import one_blas_thread
from conformal_gp.tuning import fixed
from conformal_gp.tuning.learning import choose_gamma, learn
from conformal_gp.tuning.plan import low_rank_guarantee, mapped
from conformal_gp.tuning.settings import Settings
from conformal_gp.tuning.warping import warp_for
from conformal_gp.types import Array, Rows

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


class LowRankFitted(NamedTuple):
    """A plan carried out."""

    predictor: Predictor
    mean_coef: Array
    log_marginal_likelihood: float


@dataclass(frozen=True, kw_only=True)
class LowRankPlan:
    """What design rows have decided: with the training rows, all that the predictor is made of."""

    kernel: Kernel
    noise_variance: float
    scaling: Scaling
    mean: str
    gamma: float
    inducing: Array
    """Inducing inputs, scaled."""
    approximation: str
    design: Rows
    """Rows that are not ranked."""
    guarantee: str
    warp: Warp | None = None
    """Map of the labels."""
    varying: VaryingNoise | None = None
    """How noise depends on scaled inputs; None is constant noise."""
    warnings: tuple[str, ...] = ()

    @property
    def noise_coef(self) -> Array:
        """Coefficients of varying noise; empty where it is constant."""
        return coefficients(self.varying)

    def carry_out(self, rows: Source, n_jobs: int | None) -> LowRankFitted:
        """Make the predictor; nothing is learnt."""
        if self.warp is not None:
            rows = MappedRows(rows, self.warp.forward)
        X_design, y_design = rows.take(self.design)
        inputs = Inputs(X_design, self.scaling, self.mean, self.varying)
        prior = LowRankPrior(self.kernel, self.noise_variance, inputs, y_design, self.inducing, self.approximation)
        posterior = LowRankPosterior(prior, rows.total(prior.sums, "fit"))
        predictor: Predictor = LowRankPredictor(posterior, rows, self.design, self.gamma, n_jobs)
        if self.warp is not None:
            predictor = WarpedPredictor(predictor, self.warp)
        return LowRankFitted(predictor, posterior.mean_coef, posterior.log_marginal_likelihood)


def plan(
    settings: Settings,
    rows: Source,
    design: Rows,
    tuning: str,
    inducing: str | Array,
    n_inducing: int | None,
    approximation: str,
    rng: np.random.RandomState,
) -> LowRankPlan:
    """Hyperparameters and inducing inputs from the design rows; inducing inputs may be given, unscaled."""
    X, y = rows.take(design)
    if tuning == "fixed":
        given = fixed.plan(settings, X, y, rng)
        kernel, noise, scaling, gamma = given.kernel, given.noise_variance, given.scaling, given.gamma
        warp, varying = given.warp, given.varying
        warnings: list[str] = []
    else:
        some = rng.permutation(y.size)[:LEARNING_ROWS]
        scaling = settings.scaling(X[some])
        inputs = Inputs(X[some], scaling, settings.mean)
        with one_blas_thread():
            warp = warp_for(settings, X[some], y[some], rng) if settings.warp else None
            labels = mapped(warp, y[some])
            least = max(LEAST_RATIO, LEAST_RATIO_A_ROW * rows.n_rows)
            learnt = learn(
                settings, inputs, labels, rows.n_rows, rng, restricted=True, least_ratio=least, low_rank=True
            )
            kernel, noise, warnings, _, varying = learnt
            gamma = choose_gamma(settings, learnt, inputs, labels)
    if isinstance(inducing, str):
        if n_inducing is None:
            little = noise < LITTLE_NOISE * float(kernel.diag(scaling.transform(X[:1]))[0])
            n_inducing = int((1.5 if little else 1.0) * np.clip(np.sqrt(AFFORDED / rows.n_rows), *INDUCING))
        Z = select(inducing, kernel, scaling.transform(X), n_inducing, rng)
    else:
        Z = independent(kernel, scaling.transform(inducing))
    return LowRankPlan(
        kernel=kernel,
        noise_variance=noise,
        scaling=scaling,
        mean=settings.mean,
        gamma=gamma,
        inducing=Z,
        approximation=approximation,
        design=design,
        guarantee=low_rank_guarantee(design.size, rows.n_rows - design.size, not isinstance(inducing, str)),
        warp=warp,
        varying=varying,
        warnings=tuple(warnings),
    )
