"""Everything learnt from the training rows, the paper's way."""

from __future__ import annotations

import numpy as np

from conformal_gp.gp.inputs import Inputs
from conformal_gp.tuning.learning import Hyperparameters, learn
from conformal_gp.tuning.plan import TRAIN_GUARANTEE, OneModel, mapped
from conformal_gp.tuning.settings import Settings
from conformal_gp.tuning.warping import warp_for
from conformal_gp.types import Array

# Numbers learnt from the training rows, as a share of these, and coverage measured at nominal 90% (studies/coverage).
MEASURED_COVERAGE = ((0.1, 0.88), (0.2, 0.84), (0.33, 0.74), (0.5, 0.66), (0.68, 0.54))


def plan(settings: Settings, X: Array, y: Array, rng: np.random.RandomState) -> OneModel:
    """Maximum likelihood, the coefficients of the mean included."""
    gamma = settings.only(settings.gammas, "gamma", "train")
    scaling = settings.scaling(X)
    inputs = Inputs(X, scaling, settings.mean)
    warp = warp_for(settings, X, y, rng) if settings.warp else None
    learnt = learn(settings, inputs, mapped(warp, y), y.size, rng, restricted=False)
    return OneModel(
        kernel=learnt.kernel,
        noise_variance=learnt.noise_variance,
        varying=learnt.varying,
        scaling=scaling,
        mean=settings.mean,
        gamma=gamma,
        guarantee=TRAIN_GUARANTEE,
        flat_prior=False,
        warp=warp,
        warnings=[*learnt.warnings, *_few_rows(learnt, inputs, y.size)],
    )


def _few_rows(found: Hyperparameters, inputs: Inputs, n_rows: int) -> list[str]:
    """A warning where tuning on the training rows is known to lower coverage."""
    of_noise = 1 if found.varying is None else 1 + found.varying.coefficients.size
    learnt = found.n_learnt + of_noise + inputs.H.shape[1]
    share = learnt / n_rows
    if share < MEASURED_COVERAGE[0][0]:
        return []
    shares, coverages = np.transpose(MEASURED_COVERAGE)
    expected = float(np.interp(share, shares, coverages))
    return [
        f"tuning='train' learns {learnt} numbers from {n_rows} rows; with such a share, intervals of nominal 90% "
        f"held about {expected:.0%} of the labels in simulations (docs/guarantee.md). tuning='auto' keeps the level."
    ]
