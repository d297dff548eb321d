"""Tuning of the exact process with one set of hyperparameters: checked settings and rows in, numbers out."""

from __future__ import annotations

import numpy as np

from conformal_gp.arrays import Array
from conformal_gp.gp.inputs import Inputs, Rows
from conformal_gp.gp.posterior import Posterior
from conformal_gp.models.choices import choose_difficulty, learn_with_transform, learnt_bounds, mapped, only_transform
from conformal_gp.models.learning import Hyperparameters, Purpose
from conformal_gp.models.settings import Settings, check_kernel, explained
from conformal_gp.models.tuned import NO_ROWS, Tuned
from conformal_gp.models.tuning_rows import content_order, draw_tuning_rows
from conformal_gp.targets.difficulty import LeftOut
from conformal_gp.targets.target import Target

# Sentences of ``guarantee_``: whether coverage is valid, then its condition.
PROMISE = (
    "If new rows are exchangeable with the training rows, and nothing else was fitted to these targets, intervals "
    "cover "
    "at least as often as their level."
)
FIXED_GUARANTEE = (
    "Valid: kernel and noise were fixed beforehand, and all {n_calibration} training rows are calibration rows. "
    f"{PROMISE}"
)
SCALED_GUARANTEE = (
    "Not valid in general: inputs were scaled by the training rows alone, so coverage can differ slightly from the "
    "level. With scale_inputs=False it is valid."
)
TRAIN_GUARANTEE = (
    "Not valid in general: hyperparameters and mean function were tuned on the calibration rows, so coverage can fall "
    "below the level, most with few rows or many hyperparameters."
)

# Numbers learnt from the training rows, as a share of these, and coverage measured at nominal 90% with tuning="train"
# (python -m reproduction.studies.coverage).
MEASURED_COVERAGE = ((0.1, 0.88), (0.2, 0.84), (0.33, 0.74), (0.5, 0.66), (0.68, 0.54))


def tuned_guarantee(n_tuning: int, model: str = "scaling and hyperparameters were") -> str:
    """The sentence of a split into tuning rows and calibration rows."""
    split = f"tuned on {n_tuning} tuning rows, and the other {{n_calibration}} are calibration rows"
    return f"Valid: {model} {split}. {PROMISE}"


def fixed(settings: Settings, rows: Rows, y: Array, rng: np.random.RandomState) -> Tuned:
    """Kernel and noise as given; only the scaling comes from the rows, or from tuning rows where these are given."""
    given = settings.only_kernel("fixed")
    if settings.noise_variance is None:
        raise ValueError(
            "noise_variance must be a number with tuning='fixed', got None (0 if the kernel has its own noise)."
        )
    if settings.learns_transform:
        raise ValueError(
            f"target_transform={settings.target_transform!r} is learnt, and tuning='fixed' learns nothing; give 'log', "
            "'sqrt' or a pair of functions."
        )
    transformation = only_transform(settings, y)
    tuning_rows = NO_ROWS
    guarantee = SCALED_GUARANTEE if settings.scale_inputs else FIXED_GUARANTEE
    if settings.tuning_rows is not None:
        tuning_rows = draw_tuning_rows(settings, rows.X, y, rng)
        guarantee = tuned_guarantee(tuning_rows.size)
    scaling = settings.scaling(rows.X[tuning_rows] if tuning_rows.size else rows.X)
    inputs = Inputs(rows, scaling, settings.mean)
    kernel = settings.kernel(given, rows.X.shape[1])
    check_kernel(kernel, inputs.X)
    return Tuned(
        guarantee=guarantee,
        mean=settings.mean,
        target=Target.of(transformation, y, settings.mean, bounds=settings.bounds),
        gamma=settings.gamma,
        tuning_rows=tuning_rows,
        warnings=explained(inputs, mapped(transformation, y), settings.mean),
        kernel=kernel,
        noise_variance=settings.noise_variance,
        scaling=scaling,
    )


def train(settings: Settings, rows: Rows, y: Array, rng: np.random.RandomState) -> Tuned:
    """Everything by maximum likelihood on the training rows, the coefficients of the mean included: the paper's way."""
    scaling = settings.scaling(rows.X)
    inputs = Inputs(rows, scaling, settings.mean)
    purpose = Purpose(y.size, restricted=False)
    transformation, learnt = learn_with_transform(settings, rows, scaling, y, purpose, rng)
    return Tuned(
        guarantee=TRAIN_GUARANTEE,
        mean=settings.mean,
        target=Target.of(transformation, y, settings.mean, bounds=settings.bounds),
        gamma=settings.gamma,
        warnings=[*learnt.warnings, *_few_rows(learnt, inputs, y.size)],
        kernel=learnt.kernel,
        noise_variance=learnt.noise_variance,
        scaling=scaling,
        flat_prior=False,
    )


def _few_rows(found: Hyperparameters, inputs: Inputs, n_rows: int) -> list[str]:
    """A warning where tuning on the training rows is known to lower coverage."""
    learnt = found.n_learnt + 1 + inputs.H.shape[1]
    share = learnt / n_rows
    if share < MEASURED_COVERAGE[0][0]:
        return []
    shares, coverages = np.transpose(MEASURED_COVERAGE)
    expected = float(np.interp(share, shares, coverages))
    return [
        f"tuning='train' learns {learnt} numbers from {n_rows} rows; with such a share, intervals of nominal 90% "
        f"covered about {expected:.0%} in simulations (docs/theory.md). tuning='auto' keeps the level."
    ]


def holdout(
    settings: Settings, rows: Rows, y: Array, rng: np.random.RandomState, most_learning: int | None = None
) -> Tuned:
    """Everything by maximum restricted likelihood on tuning rows; all rows predict, the others are calibration rows."""
    tuning_rows = draw_tuning_rows(settings, rows.X, y, rng)
    # in the order of their content, so that what is learnt does not depend on the order of the rows
    learning = tuning_rows[content_order(rows.X[tuning_rows], y[tuning_rows])]
    if most_learning is not None:
        learning = learning[np.sort(rng.permutation(learning.size)[:most_learning])]
    own = rows.take(learning)
    own_y = y[learning]
    scaling = settings.scaling(own.X)
    transformation, learnt = learn_with_transform(settings, own, scaling, own_y, Purpose(y.size), rng)
    z = mapped(transformation, own_y)
    posterior = Posterior(learnt.kernel, learnt.noise_variance, Inputs(own, scaling, settings.mean), z)
    left_out = LeftOut.of(posterior.residuals, posterior.diagonal, z)
    return Tuned(
        guarantee=tuned_guarantee(tuning_rows.size),
        mean=settings.mean,
        target=Target.of(transformation, y, settings.mean, **bounds_in_use(settings, own_y)),
        gamma=settings.gamma,
        tuning_rows=tuning_rows,
        warnings=learnt.warnings,
        kernel=learnt.kernel,
        noise_variance=learnt.noise_variance,
        scaling=scaling,
        difficulty=choose_difficulty(settings, left_out, transformation, own.X, own_y),
        learning=learning,
    )


def bounds_in_use(settings: Settings, y: Array) -> dict:
    """Bounds of the target: given, or learnt from tuning rows, as arguments of Target."""
    if settings.learns_bounds:
        return {"bounds": learnt_bounds(y), "learnt_bounds": True}
    return {"bounds": settings.bounds}
