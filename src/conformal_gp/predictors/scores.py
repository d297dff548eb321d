"""Scores of ranked rows beside test rows, with the rounding errors that they carry."""

from __future__ import annotations

import numpy as np

from conformal_gp.conformal.lines import Lines, normalised_residual_lines
from conformal_gp.conformal.ties import rounding
from conformal_gp.gp.posterior import Posterior, Prediction
from conformal_gp.types import Array, Rows


def score_lines(posterior: Posterior, ranked: Rows | slice, prediction: Prediction, gamma: float) -> Lines:
    """Lines of the ranked rows for a block of test rows.

    Parameters
    ----------
    posterior : Posterior
        The process given all training rows.
    ranked : ndarray of int, or slice
        Those that are ranked.
    prediction : Prediction
        Of m test rows.
    gamma : float
        Root of the variance in the nonconformity measure.

    Returns
    -------
    lines : Lines
        Scores as functions of the test row's label, and how far rounding puts them off.
    """
    weights, mean, variance = prediction
    diagonal, ranked_weights = posterior.diagonal[ranked], weights[:, ranked]
    lines = normalised_residual_lines(posterior.residuals[ranked], diagonal, ranked_weights, mean, variance, gamma)
    length = np.sqrt(np.einsum("ij,ij->i", weights, weights))
    unequal = 1.0 if gamma == 2.0 else _unequal(diagonal, ranked_weights, variance, gamma)
    return lines._replace(rounding=rounding(posterior.sizes, length, variance, unequal))


def _unequal(diagonal: Array, weights: Array, variance: Array, gamma: float) -> Array:
    """How much larger an error may be in units of scores than in units of standard deviations.

    Rows that determine a coefficient by themselves score 0, without any error.
    """
    with np.errstate(invalid="ignore"):
        ratio = variance[:, None] * diagonal + weights**2
    ratio = np.where((diagonal > 0.0) & (ratio > 0.0) & np.isfinite(ratio), ratio, 1.0)
    return np.maximum(ratio ** (1.0 / gamma - 0.5), 1.0).max(axis=1, initial=1.0)
