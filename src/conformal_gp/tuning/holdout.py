"""Everything is learnt from design rows. All rows are in the posterior, and the others are ranked."""

from __future__ import annotations

import numpy as np

from conformal_gp.gp.inputs import Inputs
from conformal_gp.tuning.design import LEARNING_SHARE, design_rows
from conformal_gp.tuning.learning import choose_gamma, learn
from conformal_gp.tuning.plan import OneModel, holdout_guarantee, mapped
from conformal_gp.tuning.settings import Settings
from conformal_gp.tuning.warping import warp_for
from conformal_gp.types import Array


def plan(settings: Settings, X: Array, y: Array, rng: np.random.RandomState) -> OneModel:
    """Maximum restricted likelihood on the design rows."""
    design = design_rows(settings.design, settings.mean, LEARNING_SHARE, (y.size, settings.n_inputs(X)), rng)
    scaling = settings.scaling(X[design])
    inputs = Inputs(X[design], scaling, settings.mean)
    warp = warp_for(settings, X[design], y[design], rng) if settings.warp else None
    labels = mapped(warp, y[design])
    learnt = learn(settings, inputs, labels, y.size, rng, restricted=True)
    return OneModel(
        kernel=learnt.kernel,
        noise_variance=learnt.noise_variance,
        scaling=scaling,
        mean=settings.mean,
        varying=learnt.varying,
        gamma=choose_gamma(settings, learnt, inputs, labels),
        guarantee=holdout_guarantee(design.size, y.size - design.size),
        design=design,
        warp=warp,
        warnings=learnt.warnings,
    )
