"""The joint distribution of the labels of several test rows under the plain Gaussian process."""

from __future__ import annotations

import numpy as np

from conformal_gp.predictors.augmented import AugmentedPredictor
from conformal_gp.predictors.base import Predictor
from conformal_gp.predictors.lowrank import LowRankPredictor
from conformal_gp.predictors.shifted import ShiftedPredictor
from conformal_gp.predictors.single import SinglePredictor
from conformal_gp.types import Array


def mean_and_covariance(predictor: Predictor, X: Array) -> tuple[Array, Array]:
    """Means of new labels, (m,), and their covariances, noise included, (m, m): one block, whatever m."""
    if isinstance(predictor, ShiftedPredictor):
        mean, covariance = mean_and_covariance(predictor.unshifted, X)
        return mean + predictor.shift(X), covariance
    if isinstance(predictor, LowRankPredictor):
        W, mean, variance = predictor._new(X)
        covariance = W @ W.T
        np.fill_diagonal(covariance, variance)
        return mean, covariance
    if isinstance(predictor, AugmentedPredictor):
        scaled = predictor._under(predictor._main)
        inputs, posterior, amplitude = scaled.inputs, scaled.posterior(predictor._best), predictor.plain.amplitude
    else:
        assert isinstance(predictor, SinglePredictor)
        inputs, posterior, amplitude = predictor.inputs, predictor.posterior, 1.0
    return predictor.mean(X), amplitude * posterior.covariance(inputs.new(X))
