"""Full conformal prediction in a low-rank model by brute force: a dense inverse over all rows for every test input.

Nothing is imported from the package under test; regions come from ``oracle.region_from_lines``.
"""

import numpy as np

import oracle


def covariance(kernel, noise_variance, Z, X):
    """Covariance matrix of labels at the rows of X in the low-rank model with inducing inputs Z."""
    cross = kernel(X, Z)  # two arguments: free of white noise
    low_rank = cross @ np.linalg.solve(kernel(Z, Z), cross.T)
    return low_rank + np.diag(noise_variance + kernel.diag(X) - np.diag(low_rank))


def inverse(A, H):
    """A^-1, or with a mean basis H the inverse under a flat prior on its coefficients."""
    C = np.linalg.inv(A)
    if H is None:
        return C
    return C - C @ H @ np.linalg.solve(H.T @ C @ H, H.T @ C)


def lines(kernel, noise_variance, Z, X, y, x, basis, gamma):
    """a and b of the scores |a + b y'| of all rows, the row x with candidate label y' last."""
    bag = np.vstack([X, x])
    P = inverse(covariance(kernel, noise_variance, Z, bag), basis(bag))
    scale = np.diag(P) ** (1.0 - (0.0 if np.isinf(gamma) else 1.0 / gamma))
    return P[:, :-1] @ y / scale, P[:, -1] / scale


def region(a, b, delta, calibration, y):
    """The exact region as an array of pieces."""
    return np.array(oracle.region_from_lines(a, b, delta, calibration, label_scale=np.abs(y).max()))


def p_value(a, b, label, calibration):
    """Share of calibration rows and the new row that score at least as high as the new row."""
    scores = np.abs(a + b * label)
    return (1 + np.sum(scores[calibration] >= scores[-1] - 1e-11 * np.abs(a).max())) / (len(calibration) + 1)


def mean_and_variance(kernel, noise_variance, Z, X, y, x, basis):
    """Prediction for the label at x, from the inverse over all rows."""
    bag = np.vstack([X, x])
    P = inverse(covariance(kernel, noise_variance, Z, bag), basis(bag))
    return -P[-1, :-1] @ y / P[-1, -1], 1.0 / P[-1, -1]
