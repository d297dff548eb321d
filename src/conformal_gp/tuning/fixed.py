"""Kernel and noise as given."""

from __future__ import annotations

import numpy as np

from conformal_gp.gp.inputs import Inputs
from conformal_gp.tuning.plan import FIXED_GUARANTEE, SCALED_GUARANTEE, OneModel, mapped
from conformal_gp.tuning.settings import Settings, check_kernel, explained
from conformal_gp.tuning.warping import warp_for
from conformal_gp.types import Array


def plan(settings: Settings, X: Array, y: Array, rng: np.random.RandomState) -> OneModel:
    """Only the scaling comes from the rows."""
    given, gamma = settings.only(settings.kernels, "kernel", "fixed"), settings.only(settings.gammas, "gamma", "fixed")
    if settings.noise_variance is None:
        raise ValueError(
            "noise_variance must be a number with tuning='fixed', got None (0 if the kernel has its own noise)."
        )
    if settings.learns_warp:
        raise ValueError(
            f"warp={settings.warp!r} is learnt, and tuning='fixed' learns nothing; give 'log', 'sqrt' or a "
            "pair of functions."
        )
    warp = warp_for(settings, X, y, rng) if settings.warp else None
    scaling = settings.scaling(X)
    inputs = Inputs(X, scaling, settings.mean)
    kernel = settings.kernel(given, settings.n_inputs(X))
    check_kernel(kernel, inputs.pairs.X)
    return OneModel(
        kernel=kernel,
        noise_variance=settings.noise_variance,
        scaling=scaling,
        mean=settings.mean,
        gamma=gamma,
        guarantee=SCALED_GUARANTEE if settings.scale_inputs else FIXED_GUARANTEE,
        warp=warp,
        warnings=explained(inputs, mapped(warp, y), settings.mean),
    )
