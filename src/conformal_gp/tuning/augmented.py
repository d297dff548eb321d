"""Hyperparameters chosen inside the bag of training rows and test row, anew for every label."""

from __future__ import annotations

import numpy as np
from sklearn.base import clone

from conformal_gp.gp.inputs import Inputs, Scaling
from conformal_gp.tuning.design import CHOOSING_SHARE, design_rows
from conformal_gp.tuning.learning import choose_gamma, learn
from conformal_gp.tuning.plan import Candidate, InsideBag, augmented_guarantee, mapped
from conformal_gp.tuning.settings import Settings, check_kernel, explained
from conformal_gp.tuning.warping import warp_for
from conformal_gp.types import Array, Rows


def plan(settings: Settings, X: Array, y: Array, rng: np.random.RandomState) -> InsideBag:
    """By a descent, or from candidates given; design rows choose among several gammas or maps of labels."""
    design: Rows = np.empty(0, dtype=np.int64)
    gamma = settings.gammas[0]
    if settings.design is not None or len(settings.gammas) > 1 or settings.learns_warp:
        design = design_rows(settings.design, settings.mean, CHOOSING_SHARE, (X.shape[0], X.shape[1]), rng)
    choosing = design if settings.learns_warp else slice(None)
    warp = warp_for(settings, X[choosing], y[choosing], rng) if settings.warp else None
    labels = mapped(warp, y)
    if len(settings.gammas) > 1:
        gamma = _gamma(settings, X[design], labels[design], rng)
    inputs = Inputs(X, settings.scaling(X), settings.mean)
    candidates = [Candidate(clone(kernel), noise) for kernel, noise in settings.candidates or []]
    kernels = [] if candidates else [settings.kernel(kernel, X.shape[1]) for kernel in settings.kernels]
    for kernel in [*kernels, *(candidate.kernel for candidate in candidates)]:
        check_kernel(kernel, inputs.pairs.X)
    return InsideBag(
        kernels=kernels,
        candidates=candidates,
        scale_inputs=settings.scale_inputs,
        learns_noise=settings.noise_variance != 0.0,
        deviation=settings.deviation,
        varying_noise=settings.varying_noise,
        mean=settings.mean,
        gamma=gamma,
        guarantee=augmented_guarantee(len(candidates) or None, design.size),
        design=design,
        warp=warp,
        warnings=explained(inputs, labels, settings.mean),
    )


def _gamma(settings: Settings, X: Array, y: Array, rng: np.random.RandomState) -> float:
    """The gamma that design rows choose."""
    inputs = Inputs(X, Scaling.standard(X) if settings.scale_inputs else Scaling.none(X), settings.mean)
    learnt = learn(settings, inputs, y, y.size, rng, restricted=True)
    return choose_gamma(settings, learnt, inputs, y)
