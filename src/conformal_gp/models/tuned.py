"""Results of tuning, as numbers, and the models that are made of them and of training rows."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from sklearn.gaussian_process.kernels import Kernel

from conformal_gp.answers import Answers, Model
from conformal_gp.arrays import Array, Indices
from conformal_gp.gp.inputs import Inputs, Scaling
from conformal_gp.gp.kernels import multiplied
from conformal_gp.gp.lowrank import LowRankPosterior, LowRankPrior
from conformal_gp.gp.mixture import Mixture
from conformal_gp.gp.posterior import Posterior
from conformal_gp.models.exact import ExactModel
from conformal_gp.models.integrated import Averaging, IntegratedModel
from conformal_gp.models.low_rank import LowRankModel
from conformal_gp.rows import ArrayRows, Rows, RowSource
from conformal_gp.targets.difficulty import Difficulty, Spread
from conformal_gp.targets.target import Target, check_censoring

NO_ROWS: Indices = np.empty(0, dtype=np.int64)


@dataclass(frozen=True, kw_only=True)
class Tuned:
    """Results of tuning; models of any rows follow from them."""

    guarantee: str
    """A sentence, in which ``{n_calibration}`` stands for the number of calibration rows."""
    mean: str
    target: Target
    gamma: float = 2.0
    tuning_rows: Indices = field(default_factory=lambda: NO_ROWS)
    """Rows that are not calibration rows."""
    warnings: list[str] = field(default_factory=list, compare=False)
    """Warnings, given once, in ``fit``."""
    # one set of hyperparameters, in units of the transformed target
    kernel: Any = None
    noise_variance: float = 0.0
    scaling: Any = None
    flat_prior: bool = True
    """Whether the coefficients of the mean have a flat prior, or are given at their estimate."""
    difficulty: Difficulty | None = None
    """Location and scale of scores, learnt from tuning rows."""
    learning: Indices = field(default_factory=lambda: NO_ROWS)
    """Tuning rows that the difficulty was learnt from."""
    inducing: Array | None = None
    """Scaled inducing inputs of a low-rank GP."""
    # or draws of them
    averaging: Averaging | None = None
    seed: int = 0
    """Of the draws."""
    drawn_for: int = 0
    """Number of rows that the draws were made for."""

    def calibration(self, n_rows: int) -> Indices:
        """Numbers of the calibration rows among so many training rows."""
        return np.delete(np.arange(n_rows), self.tuning_rows)


class Fitted(NamedTuple):
    """Answers of a model, and its Gaussian process in units of the transformed target."""

    answers: Answers
    kernel: Kernel
    noise_variance: float
    mean_coef: Array
    log_marginal_likelihood: float


def fitted(tuned: Tuned, source: RowSource, n_jobs: int | None, earlier: Model | None = None) -> Fitted:
    """Make the model of training rows; nothing is learnt.

    ``earlier`` is the model of the first of these rows, if there is one: an exact GP is extended.
    """
    if tuned.inducing is not None:
        return _low_rank(tuned, source, n_jobs)
    if not isinstance(source, ArrayRows):
        raise ValueError("rows of a Dask collection need a low-rank GP: leave low_rank at 'auto' or give a number.")
    if tuned.averaging is not None:
        return _integrated(tuned, tuned.averaging, source, n_jobs)
    return _exact(tuned, source, n_jobs, earlier)


def censored(tuned: Tuned, source: RowSource, censoring: Any, target_transform: Any) -> Tuned:
    """The same with the limits of detection of these rows, if they have any."""
    codes = None
    if censoring is not None:
        codes = check_censoring(censoring, source.n_rows)
    if codes is None:
        return tuned
    if not isinstance(source, ArrayRows):
        raise ValueError("censoring is for rows in NumPy arrays, data frames or memory maps, not for Dask.")
    suggested = isinstance(target_transform, str) and target_transform == "auto"
    return replace(tuned, target=tuned.target.with_limits(source.y, codes, suggested))


def _answers(tuned: Tuned, source: RowSource, model: Model) -> Answers:
    """Answers of a model, with the side of learnt bounds that each target is on."""
    side = None
    bounds = tuned.target.bounds
    if bounds is not None and tuned.target.learnt_bounds:
        side = source.each(lambda rows, y: bounds.side(y), "targets")
    return Answers(model, tuned.target, side)


def _spread(difficulty: Difficulty, scaling: Scaling, predict: Callable[[Rows], Array], rows: Rows) -> Spread:
    """Location and scale of rows, by way of what the tuning rows predict."""
    return difficulty(scaling.filled(rows.X), predict(rows))


def _exact(tuned: Tuned, source: ArrayRows, n_jobs: int | None, earlier: Model | None) -> Fitted:
    """An exact GP with one set of hyperparameters."""
    rows = source.rows
    y = tuned.target.forward(source.y)
    origin = tuned.target.origin
    inputs = Inputs(rows, tuned.scaling, tuned.mean)
    before = None
    difficulty = None
    if isinstance(earlier, ExactModel):
        before = earlier.posterior
        difficulty = earlier.difficulty
    elif tuned.difficulty is not None:
        own = Inputs(rows.take(tuned.learning), tuned.scaling, tuned.mean)
        by_tuning_rows = Posterior(tuned.kernel, tuned.noise_variance, own, y[tuned.learning])
        difficulty = partial(
            _spread, tuned.difficulty, tuned.scaling, lambda new: origin + by_tuning_rows.mean(own.new(new))
        )
    posterior = Posterior(tuned.kernel, tuned.noise_variance, inputs, y, flat_prior=tuned.flat_prior, earlier=before)
    model = ExactModel(inputs, posterior, tuned.calibration(y.size), tuned.gamma, n_jobs, rows, difficulty)
    mean_coef = inputs.coefficients(posterior.coefficients)
    if mean_coef.size:
        mean_coef[0] += origin
    answers = _answers(tuned, source, model)
    return Fitted(answers, tuned.kernel, tuned.noise_variance, mean_coef, posterior.log_marginal_likelihood)


def _low_rank(tuned: Tuned, source: RowSource, n_jobs: int | None) -> Fitted:
    """A low-rank GP of rows that are read in blocks."""
    rows = source.with_targets(tuned.target.forward)
    own, y = rows.take(tuned.tuning_rows)
    inputs = Inputs(own, tuned.scaling, tuned.mean)
    prior = LowRankPrior(tuned.kernel, tuned.noise_variance, inputs, y, np.asarray(tuned.inducing))
    posterior = LowRankPosterior(prior, rows.total(prior.sums, "fit"))
    difficulty = None
    if tuned.difficulty is not None:
        by_tuning_rows = LowRankPosterior(prior, prior.sums(own, y))
        difficulty = partial(_spread, tuned.difficulty, tuned.scaling, by_tuning_rows.mean)
    model = LowRankModel(posterior, rows, tuned.tuning_rows, tuned.gamma, n_jobs, difficulty)
    answers = _answers(tuned, source, model)
    likelihood = posterior.log_marginal_likelihood
    return Fitted(answers, tuned.kernel, tuned.noise_variance, posterior.mean_coef, likelihood)


def _integrated(tuned: Tuned, plan: Averaging, source: ArrayRows, n_jobs: int | None) -> Fitted:
    """A GP averaged over draws; kernel, noise and coefficients are at the posterior mean of the draws."""
    target = tuned.target
    zero = float(target.extended(np.zeros(1))[0])
    model = IntegratedModel(plan, source.rows, target.forward(source.y), zero, n_jobs)
    rows = model.mixture.rows
    theta = (model.draw_weights @ plan.theta)[None]
    mixture = Mixture(rows, theta)
    parts = mixture.parts
    amplitude = target.unit**2 * float(mixture.scale[0])
    if parts.amplitude is not None:
        amplitude *= float(parts.amplitude[0])
    kernel = multiplied(rows.prior.family.kernel(parts.kernel[0], float(parts.linear[0])), amplitude)
    mean_coef = target.unit * model.inputs.coefficients(mixture.coefficients[0])
    if mean_coef.size:
        mean_coef[0] += target.origin
    weight = np.exp(plan.log_ratio - plan.log_ratio.max())
    likelihood = model.mixture.log_likelihood
    largest = float(likelihood.max())
    evidence = largest + float(np.log(weight @ np.exp(likelihood - largest) / weight.sum()))
    return Fitted(_answers(tuned, source, model), kernel, float(parts.noise[0]) * amplitude, mean_coef, evidence)
