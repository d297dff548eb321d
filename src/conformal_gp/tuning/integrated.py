"""Hyperparameters averaged over draws, with weights of the augmented set: training rows and test row."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from sklearn.gaussian_process.kernels import ConstantKernel, Kernel, Product

from conformal_gp.gp.inputs import Inputs, Points, Scaling
from conformal_gp.gp.maximum_likelihood import variables
from conformal_gp.gp.mixture import Mixture
from conformal_gp.gp.sampling import LogPosterior, sample_posterior
from conformal_gp.kernels import is_stationary_name, multiplied
from conformal_gp.predictors.base import Predictor, Process
from conformal_gp.predictors.integrated import Averaging, IntegratedProcess, TargetUnits
from conformal_gp.predictors.transformed import WarpedPredictor
from conformal_gp.tuning.choices import mapped, only_warp
from conformal_gp.tuning.methods import PROMISE, Fitted, TuningResult
from conformal_gp.tuning.settings import Settings, check_kernel, explained
from conformal_gp.types import Array, Rows

# Up to so many rows draws come from the prior, and the guarantee holds for any number of them. Not where noise is
# known: the amplitude, which then is a hyperparameter, has a prior in units of the training targets.
ROWS_FOR_PRIOR = 12
PRIOR_DRAWS = 2048
PRIOR_SEED = 0
# Draws of the chain: so many over the number of rows, but at least and at most so many.
DRAWS_TIMES_ROWS = 10_000
DRAWS = (64, 256)
# The same for kernels of other shapes, of which matrices are computed one at a time.
DRAWS_OF_OTHER_KERNELS = 96
# Chains, and draws that a chain goes through for one that is kept, with at most so many rows. Chains that run together
# share the work that does not depend on their number, which is most of it with few rows.
SCHEDULE = ((60, 12, 3), (100, 6, 2), (np.inf, 6, 1))
# Rows are added without new draws as long as this share of them is effective.
LEAST_EFFECTIVE = 0.3
# Noise ratio of noise_variance=0: with less, scores of rows with equal inputs are known to too few digits to tie.
NUGGET = 1e-9
# With more inputs than this, those of one categorical variable share a length scale, and then all inputs do.
MOST_LENGTHS = 30
# Deviation of mean coverage at 90 and 95% from its nominal value, in percentage points, with 15 to 200 rows, at most
# (python -m reproduction.studies.few_rows).
MONTE_CARLO_ERROR = 1

CHAIN_GUARANTEE = (
    "Valid up to Monte Carlo error: hyperparameters are averaged over {n_draws} draws of a Markov chain, with weights "
    "of the training rows and the new row together, and all rows are calibration rows. In simulations mean coverage "
    f"at 90 and 95% was within {MONTE_CARLO_ERROR} percentage point of these. If new rows are exchangeable with the "
    "training rows, intervals cover as often as they say."
)
PRIOR_GUARANTEE = (
    "Valid: hyperparameters are averaged over {n_draws} draws from their prior, with weights of the training rows and "
    f"the new row together, and all rows are calibration rows, so {PROMISE}."
)


@dataclass(frozen=True, kw_only=True)
class Integrated(TuningResult):
    """Draws of the hyperparameters."""

    averaging: Averaging
    seed: int
    n_rows: int
    """Rows that the draws were made for."""

    def fitted(self, rows: Points, y: Array, n_jobs: int | None, earlier: Process | None = None) -> Fitted:
        """See TuningResult."""
        process = IntegratedProcess(self.averaging, rows, mapped(self.warp, y), n_jobs)
        predictor: Predictor = process
        if self.warp is not None:
            predictor = WarpedPredictor(process, self.warp)
        kernel, noise_variance, mean_coef = self._average(process)
        weight = np.exp(process.averaging.log_ratio - process.averaging.log_ratio.max())
        likelihood = process.mixture.log_likelihood
        largest = float(likelihood.max())
        evidence = largest + float(np.log(weight @ np.exp(likelihood - largest) / weight.sum()))
        return Fitted(predictor, kernel, noise_variance, mean_coef, evidence)

    def _average(self, process: IntegratedProcess) -> tuple[Kernel, float, Array]:
        """Kernel, noise variance and mean coefficients at the posterior mean of the hyperparameters."""
        plan = self.averaging
        theta = (process.draw_weights @ plan.theta)[None]
        rows = process.mixture.rows
        prior = plan.prior(rows.family)
        mixture = Mixture(prior, rows, theta)
        parts = prior.parts(theta)
        amplitude = plan.units.variance_unit
        if parts.amplitude is not None:
            amplitude *= float(parts.amplitude[0])
        else:
            amplitude *= float(mixture.quadratic[0]) / max(mixture.degrees, 1)
        kernel = multiplied(rows.family.kernel(parts.kernel[0], float(parts.linear[0])), amplitude)
        coefficients = process.inputs.coefficients(mixture.coefficients[0])
        return kernel, float(parts.noise[0]) * amplitude, plan.units.coefficients(coefficients)

    def with_rows(self, rows: Points, y: Array, n_jobs: int | None) -> Integrated:
        """Draws for more training rows: the same, with other weights, or new ones where too few would count."""
        labels = mapped(self.warp, y)
        plan = self.averaging
        if labels.size > ROWS_FOR_PRIOR >= self.n_rows:
            return self._again(rows, labels, n_jobs)
        if not plan.units.positive or (labels > 0.0).all():
            process = IntegratedProcess(plan, rows, labels, n_jobs)
            if plan.scaling is None or process.effective_draws >= LEAST_EFFECTIVE * len(plan.theta):
                return self
        return self._again(rows, labels, n_jobs)

    def _again(self, rows: Points, labels: Array, n_jobs: int | None) -> Integrated:
        """New draws for all rows."""
        plan = with_draws(self.averaging, rows, labels, self.seed, n_jobs)
        return replace(self, averaging=plan, guarantee=_guarantee(plan), n_rows=labels.size)


def integrated(settings: Settings, rows: Points, y: Array, rng: np.random.RandomState) -> Integrated:
    """All rows calibrate, and the hyperparameters are averaged over."""
    warp = only_warp(settings, y) if settings.has_given_warp else None
    labels = mapped(warp, y)
    transforms = settings.warp in ("auto", "box-cox")
    mean = "constant" if settings.mean == "auto" else settings.mean
    kernel, groups = _kernel(settings, rows.X)
    inputs = Inputs(rows, settings.scaling(rows.X), mean)
    check_kernel(kernel, inputs.X)
    plan = Averaging(
        kernel=kernel,
        groups=groups,
        mean=mean,
        linear=settings.mean == "auto",
        fixed_noise=NUGGET if settings.noise_variance == 0.0 else None,
        bounded=settings.learns_bounds and warp is None,
        known_noise=settings.known_noise,
        scale_inputs=settings.scale_inputs,
        scaling=None,
        units=TargetUnits(labels, transforms and mean != "zero" and bool((labels > 0.0).all()), mean != "zero"),
        theta=np.empty((0, 0)),
        log_ratio=np.empty(0),
    )
    seed = int(rng.randint(2**31))
    plan = with_draws(plan, rows, labels, seed, settings.n_jobs)
    return Integrated(
        averaging=plan,
        seed=seed,
        n_rows=labels.size,
        mean=mean,
        gamma=2.0,
        guarantee=_guarantee(plan),
        warp=warp,
        warnings=explained(inputs, labels if mean == "zero" else labels - np.median(labels), mean),
    )


def _guarantee(plan: Averaging) -> str:
    """What holds with draws from the prior, or from a chain."""
    sentence = PRIOR_GUARANTEE if plan.scaling is None else CHAIN_GUARANTEE
    return sentence.replace("{n_draws}", str(len(plan.theta)))


def _kernel(settings: Settings, X: Array) -> tuple[Kernel, Rows | None]:
    """The kernel without an amplitude, and the groups of inputs that share a length scale; None for other kernels."""
    given = settings.only(settings.kernels, "kernel", "integrated")
    kernel = settings.kernel(given, X.shape[1])
    if not is_stationary_name(given):
        return kernel, None
    if isinstance(kernel, Product) and type(kernel.k1) is ConstantKernel:
        kernel = kernel.k2
    if not settings.each_length_scale:
        return kernel, np.zeros(X.shape[1], dtype=np.int64)
    groups = np.arange(X.shape[1])
    if groups.size > MOST_LENGTHS:
        groups = variables(X)
    if groups.max() >= MOST_LENGTHS:
        groups = np.zeros(X.shape[1], dtype=np.int64)
    return kernel, groups


def with_draws(plan: Averaging, rows: Points, y: Array, seed: int, n_jobs: int | None) -> Averaging:
    """The plan with draws for these training rows: from the prior where they are few, else from the posterior."""
    positive = plan.units.positive and bool((y > 0.0).all())
    plan = replace(plan, units=TargetUnits(y, positive, plan.mean != "zero"))
    if y.size <= ROWS_FOR_PRIOR and not plan.known_noise:
        prior = plan.prior(plan.family(rows.X))
        theta = prior.sample(PRIOR_DRAWS, np.random.RandomState(PRIOR_SEED))
        return replace(plan, scaling=None, theta=theta, log_ratio=np.zeros(len(theta)))
    scaling = Scaling.standard(rows.X) if plan.scale_inputs else Scaling.none(rows.X)
    plan = replace(plan, scaling=scaling)
    training = plan.training_rows(Inputs(rows, scaling, plan.mean), y)
    target = LogPosterior(plan.prior(training.family), training, n_jobs)
    n_draws = int(np.clip(DRAWS_TIMES_ROWS // y.size, *DRAWS))
    n_chains, thinning = next((chains, each) for most, chains, each in SCHEDULE if y.size <= most)
    if plan.groups is None:
        n_draws = min(n_draws, DRAWS_OF_OTHER_KERNELS)
        thinning = 1
    theta = sample_posterior(target, n_draws, n_chains, thinning, seed, n_jobs)
    # the proposal is the posterior of these rows: prior over proposal is one over their likelihood
    likelihood = Mixture(target.prior, training, theta).log_likelihood
    usable = np.isfinite(likelihood)
    if not usable.any():
        raise ValueError(
            f"kernel {plan.kernel} is no covariance function: its matrix over the training rows is not positive "
            "definite at any hyperparameters that were tried."
        )
    return replace(plan, theta=theta[usable], log_ratio=-likelihood[usable])
