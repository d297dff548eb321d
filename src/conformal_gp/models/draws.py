"""Draws of the hyperparameters that are averaged over: from the prior with very few rows, else from a chain."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from sklearn.gaussian_process.kernels import ConstantKernel, Kernel, Product

from conformal_gp.arrays import Array, Indices
from conformal_gp.gp.inputs import Inputs, Scaling, SymmetricFill, filled
from conformal_gp.gp.kernels import ANISOTROPIC_NAMES, check_kernel
from conformal_gp.gp.likelihood import variables
from conformal_gp.gp.mixture import Mixture, TrainingRows
from conformal_gp.gp.sampling import LogPosterior, sample_posterior
from conformal_gp.models.integrated import Averaging, IntegratedModel
from conformal_gp.models.settings import Settings, explained, given_transform
from conformal_gp.models.tuned import Tuned
from conformal_gp.models.tuning import PROMISE
from conformal_gp.rows import Rows, content_order
from conformal_gp.targets.target import Target
from conformal_gp.targets.transformation import Logarithms, Transformation

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
SCHEDULE = ((60, 12, 2), (100, 6, 2), (np.inf, 6, 1))
# Rows are added without new draws as long as this share of them is effective.
LEAST_EFFECTIVE = 0.3
# Noise ratio of noise_variance=0: with less, scores of rows with equal inputs are known to too few digits to tie.
NUGGET = 1e-9
# Digits of scaled inputs and targets that a chain sees: the same in all units.
DIGITS = 10
# With more inputs than this, those of one categorical variable share a length scale, and then all inputs do.
MOST_LENGTHS = 30
# Deviation of mean coverage at 90 and 95% from its nominal value, in percentage points, with 15 to 200 rows, at most
# (python -m reproduction.studies.few_rows).
MONTE_CARLO_ERROR = 1

CHAIN_GUARANTEE = (
    "Valid up to Monte Carlo error: hyperparameters are averaged over {n_draws} draws of a Markov chain, with weights "
    "of the training rows and the new row together, and all rows are calibration rows. In simulations mean coverage "
    f"at 90 and 95% was within {MONTE_CARLO_ERROR} percentage point of these, with 15 to 200 rows. {PROMISE}"
)
PRIOR_GUARANTEE = (
    "Valid: hyperparameters are averaged over {n_draws} draws from their prior, with weights of the training rows and "
    f"the new row together, and all rows are calibration rows. {PROMISE}"
)


def integrated(settings: Settings, rows: Rows, y: Array, rng: np.random.RandomState) -> Tuned:
    """Average over the hyperparameters; all rows are calibration rows."""
    transformation = given_transform(settings, y)
    averages_powers = settings.target_transform in ("auto", "box-cox")
    mean = "constant" if settings.mean == "auto" else settings.mean
    rows = _filled(rows)
    kernel, groups = _kernel(settings, rows.X)
    inputs = Inputs(rows, settings.scaling(rows.X), mean)
    check_kernel(kernel, inputs.X)
    plan = Averaging(
        kernel=kernel,
        groups=groups,
        blended=settings.kernels[0] == "matern52",
        mean=mean,
        linear=settings.mean == "auto",
        fixed_noise=NUGGET if settings.noise_variance == 0.0 else None,
        bounded=settings.learns_bounds and transformation is None,
        noise_unit=1.0 if rows.y_variance is not None else None,
        scale_inputs=settings.scale_inputs,
        scaling=None,
        positive=averages_powers and mean != "zero",
        theta=np.empty((0, 0)),
        log_ratio=np.empty(0),
    )
    centred = y if mean == "zero" else y - np.median(y)
    tuned = Tuned(
        guarantee="",
        mean=mean,
        target=Target(transformation, bounds=settings.bounds),
        warnings=[*explained(inputs, centred, mean), *_one_outside(settings, y)],
        averaging=plan,
        seed=int(rng.randint(2**31)),
    )
    return _with_draws(tuned, plan, rows, y, settings.n_jobs)


def _one_outside(settings: Settings, y: Array) -> list[str]:
    """A warning if a single target is not positive: by the rule on such targets its score is infinite."""
    outside = np.flatnonzero(y <= 0.0)
    if outside.size > 1:
        outside = np.flatnonzero(y < 0.0)
    if outside.size != 1 or not settings.learns_bounds:
        return []
    row = int(outside[0])
    return [
        f"y has {y[row]:g} in row {row} and no other value like it: with y_bounds='auto' this row covers every value, "
        "and intervals of high levels are wider, or infinite. If the target can be negative, give y_bounds=None and "
        "target_transform=None."
    ]


def redrawn(tuned: Tuned, plan: Averaging, rows: Rows, y: Array, n_jobs: int | None) -> Tuned:
    """Draws for more training rows: the same, with other weights, or new ones where too few would count."""
    chain_takes_over = y.size > ROWS_FOR_PRIOR >= tuned.drawn_for
    if not chain_takes_over and (not plan.positive or (y > 0.0).all()):
        if plan.scaling is None:  # draws from the prior serve any rows
            return tuned
        weights = IntegratedModel(plan, rows, tuned.target.forward(y), 0.0, n_jobs).draw_weights
        # effective draws: one over the sum of squared weights
        if LEAST_EFFECTIVE * len(plan.theta) * float((weights**2).sum()) <= 1.0:
            return tuned
    return _with_draws(tuned, plan, rows, y, n_jobs)


def _with_draws(tuned: Tuned, plan: Averaging, rows: Rows, y: Array, n_jobs: int | None) -> Tuned:
    """The same with units and draws for these training rows."""
    positive = plan.positive and bool((y > 0.0).all())
    target = _units(tuned.target, y, positive, plan.mean != "zero")
    noise_unit = None if plan.noise_unit is None else target.unit**2
    plan = replace(plan, positive=positive, noise_unit=noise_unit)
    plan = _drawn(plan, rows, target.forward(y), tuned.seed, n_jobs)
    sentence = PRIOR_GUARANTEE if plan.scaling is None else CHAIN_GUARANTEE
    guarantee = sentence.replace("{n_draws}", str(len(plan.theta)))
    return replace(tuned, guarantee=guarantee, target=target, averaging=plan, drawn_for=y.size)


def _units(given: Target, y: Array, positive: bool, centred: bool) -> Target:
    """Targets about 0 and 1 in size, or logarithms about 0 where their exponent is averaged over."""
    transformation: Transformation | None = given.transformation
    if positive:
        return replace(given, transformation=Logarithms(float(np.mean(np.log(y)))), origin=0.0, unit=1.0)
    z = y
    if isinstance(transformation, Logarithms):
        transformation = None
    elif transformation is not None:
        z = transformation.forward(y)
    origin = float(np.median(z)) if centred else 0.0
    size = float(np.abs(z - origin).max(initial=0.0))
    unit = abs(origin) or 1.0
    if size > 0.0:
        unit = size * float(np.sqrt(np.mean(((z - origin) / size) ** 2)))  # squares of targets may overflow
    return replace(given, transformation=transformation, origin=origin, unit=unit)


def _kernel(settings: Settings, X: Array) -> tuple[Kernel, Indices | None]:
    """The kernel without an amplitude, and the groups of inputs that share a length scale; None for other kernels."""
    given = settings.kernels[0]
    kernel = settings.kernel(given, X.shape[1])
    if given not in ANISOTROPIC_NAMES:
        return kernel, None
    if isinstance(kernel, Product) and type(kernel.k1) is ConstantKernel:
        kernel = kernel.k2
    if not settings.ard:
        return kernel, np.zeros(X.shape[1], dtype=np.int64)
    groups = np.arange(X.shape[1])
    if groups.size > MOST_LENGTHS:
        groups = variables(X)
    if groups.max() >= MOST_LENGTHS:
        groups = np.zeros(X.shape[1], dtype=np.int64)
    return kernel, groups


def _drawn(plan: Averaging, rows: Rows, y: Array, seed: int, n_jobs: int | None) -> Averaging:
    """Draws for training rows: from the prior where they are few, else from the posterior."""
    rows = _filled(rows)
    if y.size <= ROWS_FOR_PRIOR and plan.noise_unit is None:
        theta = plan.prior(rows.X).sample(PRIOR_DRAWS, np.random.RandomState(PRIOR_SEED))
        return replace(plan, scaling=None, theta=theta, log_ratio=np.zeros(len(theta)))
    # in the order of their content, so that draws do not depend on the order of the rows
    order = content_order(rows.content, y)
    rows = rows.take(order)
    scaling = Scaling.standard(rows.X) if plan.scale_inputs else Scaling()
    plan = replace(plan, scaling=scaling)
    training = _rounded(plan, Inputs(rows, scaling, plan.mean), y[order])
    n_draws = int(np.clip(DRAWS_TIMES_ROWS // y.size, *DRAWS))
    n_chains, thinning = next((chains, each) for most, chains, each in SCHEDULE if y.size <= most)
    if plan.groups is None:
        n_draws = min(n_draws, DRAWS_OF_OTHER_KERNELS)
        thinning = 1
    theta = sample_posterior(LogPosterior(training, n_jobs), n_draws, n_chains, thinning, seed, n_jobs)
    # the proposal is the posterior of these rows: prior over proposal is one over their likelihood
    likelihood = Mixture(training, theta).log_likelihood
    usable = np.isfinite(likelihood)
    if not usable.any():
        raise ValueError(
            f"kernel {plan.kernel} is no covariance function: its matrix over the training rows is not positive "
            "definite at any hyperparameters that were tried."
        )
    return replace(plan, theta=theta[usable], log_ratio=-likelihood[usable])


def _rounded(plan: Averaging, inputs: Inputs, y: Array) -> TrainingRows:
    """Training rows for a chain: a long chain would amplify the rounding that differs between units."""
    if plan.scale_inputs:
        inputs.X = inputs.X.round(DIGITS)
    training = plan.training_rows(inputs, y.round(DIGITS))
    if training.known is None:
        return training
    mantissa, exponent = np.frexp(training.known)
    return training._replace(known=np.ldexp(mantissa.round(DIGITS), exponent))


def _filled(rows: Rows) -> Rows:
    """Training rows without missing values; draws may depend on them alone."""
    return rows._replace(X=filled(rows.X, SymmetricFill(rows.X).training()))
