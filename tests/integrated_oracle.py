"""Scores averaged over draws, from their definition: a double loop over rows and draws, each row left out in turn.

Nothing of the package is used but the meaning of a draw: (log length scales, log odds of smoothness, log odds of the
power of length scales in the linear term, log b, log noise ratio, [log amplitude], [exponent]).
"""

from __future__ import annotations

import numpy as np

Array = np.ndarray


def covariance(X: Array, lengths: Array, log_odds: float, log_odds_of_power: float, slope: float) -> Array:
    """Matérn 5/2 and a squared exponential of inputs over their length scales, and a linear term."""
    Z = X / lengths
    squares = ((Z[:, None] - Z) ** 2).sum(axis=2)
    r = np.sqrt(5.0 * squares)
    rough = (1.0 + r + r**2 / 3.0) * np.exp(-r)
    smooth = np.exp(-0.5 * squares)
    share = 1.0 / (1.0 + np.exp(-log_odds))
    power = 1.0 / (1.0 + np.exp(-log_odds_of_power))
    sloped = X / lengths**power
    return (1.0 - share) * rough + share * smooth + slope * sloped @ sloped.T


def box_cox(y: Array, exponent: float) -> Array:
    """T of targets."""
    return (y**exponent - 1.0) / exponent


def restricted_log_likelihood(A: Array, H: Array, z: Array, known: bool) -> tuple[float, float]:
    """Of all rows, up to a constant, and the estimate of the amplitude (1 where noise is known)."""
    C = np.linalg.inv(A)
    value = -0.5 * np.linalg.slogdet(A)[1]
    P = C
    if H.shape[1]:
        G = H.T @ C @ H
        value -= 0.5 * np.linalg.slogdet(G)[1]
        P = C - C @ H @ np.linalg.solve(G, H.T @ C)
    Q = float(z @ P @ z)
    if known:
        return value - 0.5 * Q, 1.0
    degrees = len(z) - H.shape[1]
    return value - 0.5 * degrees * np.log(Q), Q / degrees


def left_out(A: Array, H: Array, z: Array, i: int) -> tuple[float, float]:
    """Residual and variance of row i, predicted by all others with the coefficients of the mean estimated by them."""
    others = np.delete(np.arange(len(z)), i)
    C = np.linalg.inv(A[np.ix_(others, others)])
    k = A[others, i]
    H_others = H[others]
    beta = np.zeros(H.shape[1])
    variance = A[i, i] - k @ C @ k
    if H.shape[1]:
        G = H_others.T @ C @ H_others
        beta = np.linalg.solve(G, H_others.T @ C @ z[others])
        gap = H[i] - H_others.T @ C @ k
        variance += gap @ np.linalg.solve(G, gap)
    mean = H[i] @ beta + k @ C @ (z[others] - H_others @ beta)
    return z[i] - mean, variance


def scores(
    theta: Array,
    log_ratio: Array,
    X: Array,
    y: Array,
    H: Array,
    exponents: bool,
    variances: Array | None = None,
) -> Array:
    """Signed scores of all rows of the augmented set, the test row last."""
    d = X.shape[1]
    log_weights, residuals = [], []
    for draw, ratio in zip(theta, log_ratio, strict=True):
        log_odds, log_odds_of_power, log_slope, log_noise = draw[d : d + 4]
        A = covariance(X, np.exp(draw[:d]), log_odds, log_odds_of_power, np.exp(log_slope))
        A += np.exp(log_noise) * np.eye(len(y))
        if variances is not None:
            A = np.exp(draw[d + 4]) * A + np.diag(variances)
        z, slope_of_transformation = y, 0.0
        if exponents:
            z = box_cox(y, draw[-1])
            slope_of_transformation = (draw[-1] - 1.0) * np.log(y).sum()
            slope_of_transformation -= H.shape[1] * draw[-1] * np.log(y).mean()  # targets in any unit
        value, amplitude = restricted_log_likelihood(A, H, z, variances is not None)
        log_weights.append(ratio + value + slope_of_transformation)
        own = [left_out(A, H, z, i) for i in range(len(y))]
        residuals.append([residual / np.sqrt(amplitude * variance) for residual, variance in own])
    weights = np.exp(np.array(log_weights) - max(log_weights))
    return weights / weights.sum() @ np.array(residuals)
