"""Full conformal prediction on Gaussian process regression by brute force.

Everything here follows the definitions of the method as literally as possible and none of the algebra
that makes it fast: scores come from refitting the process, p-values from counting scores, and regions from
Algorithm 1 with an explicit dense inverse. Numbers in parentheses such as (19) are those of the equations
of the GPR-CP paper. Nothing is imported from the package under test.

Two independent routes lead to the same region:

* `scores` and `p_value` refit the process for every row of the bag, for one candidate label at a time;
* `lines`, `region_from_lines` and `region` use the closed forms (21) and Algorithm 1.

`region_mpmath` repeats the second route in high-precision arithmetic.
"""

from collections.abc import Sequence
from fractions import Fraction
from typing import Any

import mpmath  # type: ignore[import-untyped]
import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.gaussian_process.kernels import Kernel

from line_oracle import Level, hull, ranked_rows, region_from_lines

__all__ = [
    "hull",
    "lines",
    "p_value",
    "region",
    "region_from_lines",
    "region_mpmath",
    "scores",
]

Array = NDArray[np.float64]

INF = float("inf")


def _root(gamma: float) -> float:
    """Exponent 1/gamma of the variance in (19); zero for infinite gamma."""
    if not gamma >= 1:
        raise ValueError(f"gamma must be at least 1, got {gamma!r}")
    return 0.0 if np.isinf(gamma) else 1.0 / gamma


def _generalised_least_squares(A: Array, H: Array, y: Array) -> tuple[Array, Array]:
    """Coefficients (H'A^-1 H)^-1 H'A^-1 y of the mean function, and the matrix H'A^-1 H."""
    if np.linalg.matrix_rank(H) < H.shape[1]:
        raise ValueError("the rows do not identify the coefficients of the mean function")
    information = H.T @ np.linalg.solve(A, H)
    return np.linalg.solve(information, H.T @ np.linalg.solve(A, y)), information


def _predict(
    kernel: Kernel,
    noise_variance: float,
    X: Array,
    y: Array,
    x: Array,
    basis: Array | None,
    basis_row: Array | None,
) -> tuple[float, float]:
    """Predictive mean and variance, noise included, of the label at one input.

    Equations (gppred) and (gpvar), with the noise variance added to the latter. With a basis, the universal
    kriging mean and variance: the coefficients have a flat prior, and estimating them adds to the variance.

    Parameters
    ----------
    X, y : arrays of shape (n, d) and (n,)
        Training rows; n = 0 gives the prior.
    x : array of shape (1, d)
        Input to predict at.
    basis, basis_row : arrays of shape (n, p) and (p,), or None
        Regressors of the mean function at the training rows and at `x`.
    """
    prior_variance = float(kernel.diag(x)[0]) + noise_variance
    if len(y) == 0:
        if basis is not None:
            raise ValueError("the rows do not identify the coefficients of the mean function")
        return 0.0, prior_variance
    A = kernel(X) + noise_variance * np.eye(len(y))
    k = kernel(X, x)[:, 0]
    weights = np.linalg.solve(A, k)
    variance = prior_variance - float(k @ weights)
    if basis is None or basis_row is None:
        return float(weights @ y), variance
    coefficients, information = _generalised_least_squares(A, basis, y)
    mean = float(basis_row @ coefficients + weights @ (y - basis @ coefficients))
    gap = basis_row - basis.T @ weights
    return mean, variance + float(gap @ np.linalg.solve(information, gap))


def _scores_and_scales(
    kernel: Kernel, noise_variance: float, X: Array, y: Array, gamma: float, basis: Array | None
) -> tuple[Array, Array]:
    """Scores, and for each the score that an error of max|y| in the prediction would have."""
    root, n = _root(gamma), len(y)
    largest = np.abs(y).max()
    if gamma == 1:
        A = kernel(X) + noise_variance * np.eye(n)
        K = kernel(X, X)  # free of noise: a WhiteKernel is zero between two arguments
        if not np.trace(A) > np.trace(K):
            raise ValueError("gamma = 1 needs noise: without it every residual is zero")
        mean = np.zeros(n)
        if basis is not None:
            coefficients, _ = _generalised_least_squares(A, basis, y)
            mean = basis @ coefficients
        fitted = mean + K @ np.linalg.solve(A, y - mean)
        return np.abs(y - fitted), np.full(n, largest)
    result, scales = np.empty(n), np.empty(n)
    for i in range(n):
        rest = np.delete(np.arange(n), i)
        mean_i, variance_i = _predict(
            kernel,
            noise_variance,
            X[rest],
            y[rest],
            X[[i]],
            None if basis is None else basis[rest],
            None if basis is None else basis[i],
        )
        result[i] = abs(y[i] - mean_i) / variance_i**root
        scales[i] = largest / variance_i**root
    return result, scales


def scores(
    kernel: Kernel,
    noise_variance: float,
    X: ArrayLike,
    y: ArrayLike,
    gamma: float,
    basis: ArrayLike | None = None,
) -> Array:
    """Nonconformity scores of all rows of a bag, by refitting.

    For gamma = 1 the score is |y_i - yhat_i| with the process trained on all rows (11). For larger gamma
    the process is refitted without row i, and the score is |y_i - yhat_i| / variance_i^(1/gamma), where the
    variance is that of the left-out label, noise included (19); an infinite gamma leaves the plain
    leave-one-out residual (12). In terms of the whole bag the mean and variance of the refit are
    (gploopred) and (gploovar), which are not used here.

    Parameters
    ----------
    kernel : scikit-learn kernel
        Covariance function with its hyperparameters; it is called, never fitted.
    noise_variance : float
        Variance of the label noise. Must be positive if gamma = 1, unless the kernel contains a WhiteKernel.
    X, y : array-likes of shape (n, d) and (n,)
        The bag.
    gamma : float
        Root parameter, from 1 to infinity inclusive.
    basis : array-like of shape (n, p), optional
        Regressors H of the mean function, whose coefficients have a flat prior (universal kriging). None is
        a zero mean.

    Returns
    -------
    array of shape (n,)

    Notes
    -----
    A WhiteKernel in the kernel counts as noise: it is on the diagonal of ``kernel(X)``, in ``kernel.diag``
    and absent from ``kernel(X, X)``. For gamma = 1 the scores are then W (A^-1 y), where W is the diagonal
    matrix of the total noise variances; they are proportional to |A^-1 y|, the form (21) that `region`
    uses, only if W is a multiple of the identity. It is for a sum with one or more WhiteKernels, and not if
    a WhiteKernel is multiplied by a kernel that is not stationary.
    """
    X, y = np.asarray(X, dtype=float), np.asarray(y, dtype=float)
    H = None if basis is None else np.asarray(basis, dtype=float)
    return _scores_and_scales(kernel, noise_variance, X, y, gamma, H)[0]


def _extend(
    X: ArrayLike, x_new: ArrayLike, basis: ArrayLike | None, basis_new: ArrayLike | None
) -> tuple[Array, Array | None]:
    """Stack the inputs, and the regressors, of the bag of l+1 rows, the new row last."""
    if (basis is None) != (basis_new is None):
        raise ValueError("basis and basis_new must be given together")
    rows = np.vstack([np.asarray(X, dtype=float), np.reshape(np.asarray(x_new, dtype=float), (1, -1))])
    if basis is None or basis_new is None:
        return rows, None
    return rows, np.vstack([np.asarray(basis, dtype=float), np.reshape(np.asarray(basis_new, float), (1, -1))])


def p_value(
    kernel: Kernel,
    noise_variance: float,
    X: ArrayLike,
    y: ArrayLike,
    x_new: ArrayLike,
    y_new: float,
    gamma: float,
    basis: ArrayLike | None = None,
    basis_new: ArrayLike | None = None,
    calibration: Sequence[int] | NDArray[np.intp] | None = None,
    tolerance: float = 1e-9,
) -> Fraction:
    """p-value (pvalue) of one candidate label: append the row, score all rows by refits, and count.

    Parameters
    ----------
    kernel, noise_variance, X, y, gamma, basis
        As in `scores`; the rows are the l training rows.
    x_new, y_new : array-like of shape (d,) and float
        The new input and its candidate label.
    basis_new : array-like of shape (p,), optional
        Regressors of the mean function at the new input.
    ranked : sequence of int, optional
        Indices of the training rows that take part in the ranking; the others are fixed background,
        present in every refit but never counted. All rows by default.
    tolerance : float
        A score counts as at least the new row's score if it falls short by no more than this share of
        the new row's score, or by no more than rounding: 1e-13 of the largest label in the units of the
        score. Mathematical ties thus count as ties.

    Returns
    -------
    Fraction
        Number of calibration rows, the new one included, with a score of at least the new row's, over their
        number ``len(ranked) + 1``. Comparing it with a float or a Fraction is exact.
    """
    rows, H = _extend(X, x_new, basis, basis_new)
    labels = np.append(np.asarray(y, dtype=float), y_new)
    chosen = ranked_rows(calibration, len(labels) - 1)
    alpha, scale = _scores_and_scales(kernel, noise_variance, rows, labels, gamma, H)
    count = 1  # the new row
    for i in chosen:
        slack = tolerance * alpha[-1] + 1e-13 * max(scale[i], scale[-1])
        count += bool(alpha[i] >= alpha[-1] - slack)
    return Fraction(count, len(chosen) + 1)


def lines(
    kernel: Kernel,
    noise_variance: float,
    X: ArrayLike,
    y: ArrayLike,
    x_new: ArrayLike,
    gamma: float,
    basis: ArrayLike | None = None,
    basis_new: ArrayLike | None = None,
) -> tuple[Array, Array]:
    """Vectors a and b of (21): the scores of the bag are |a + b t| for a candidate label t.

    The matrix C = (K + noise I)^-1 is inverted explicitly over all l+1 rows. With a basis H its place is
    taken by P = C - C H (H'C H)^-1 H'C. For gamma = 1 the scores lack the factor ``noise_variance`` of
    (11), which changes no p-value. Parameters are those of `p_value`.

    Returns
    -------
    a, b : arrays of shape (l + 1,)
    """
    root = _root(gamma)
    rows, H = _extend(X, x_new, basis, basis_new)
    C = np.linalg.inv(kernel(rows) + noise_variance * np.eye(len(rows)))
    if H is not None:
        CH = C @ H
        C = C - CH @ np.linalg.inv(H.T @ CH) @ CH.T
    y_a = np.append(np.asarray(y, dtype=float), 0.0)
    y_b = np.append(np.zeros(len(rows) - 1), 1.0)
    divisor = np.diag(C) ** (1.0 - root)
    return C @ y_a / divisor, C @ y_b / divisor


def region(
    kernel: Kernel,
    noise_variance: float,
    X: ArrayLike,
    y: ArrayLike,
    x_new: ArrayLike,
    delta: Level,
    gamma: float,
    basis: ArrayLike | None = None,
    basis_new: ArrayLike | None = None,
    calibration: Sequence[int] | NDArray[np.intp] | None = None,
    tolerance: float = 1e-11,
) -> Array:
    """Prediction region {t : p(t) > delta} by Algorithm 1, with the vectors a and b of `lines`.

    Parameters
    ----------
    kernel, noise_variance, X, y, x_new, gamma, basis, basis_new, ranked
        As in `p_value`.
    delta, tolerance
        As in `region_from_lines`. The comparison of N(j)/(l+1) and M(j)/(l+1) with delta is exact rational
        arithmetic: ``Fraction(1, 10)`` is a tenth, ``0.1`` is the binary number next to it.

    Returns
    -------
    array of shape (pieces, 2)
        Disjoint closed intervals in ascending order, with infinite ends where the region is unbounded.
    """
    a, b = lines(kernel, noise_variance, X, y, x_new, gamma, basis, basis_new)
    label_scale = float(np.max(np.abs(y), initial=0.0))
    chosen = ranked_rows(calibration, len(a) - 1)
    pieces = region_from_lines(a.tolist(), b.tolist(), delta, chosen, tolerance, label_scale)
    return np.array(pieces, dtype=float).reshape(-1, 2)


def region_mpmath(
    X: ArrayLike,
    y: ArrayLike,
    x_new: ArrayLike,
    amplitude: Any,
    length_scale: Any,
    noise_variance: Any,
    delta: Level,
    gamma: float,
    digits: int = 60,
) -> Array:
    """Region with zero mean and kernel amplitude * exp(-r^2 / (2 length_scale^2)), in high precision.

    The same algorithm as `region`: (21) and Algorithm 1. Take `hull` of the result for the interval.

    Parameters
    ----------
    X, y, x_new, delta, gamma
        As in `region`; the floats stand for their exact binary values.
    amplitude, length_scale, noise_variance : float or str
        Hyperparameters; a string is read with all its decimals.
    digits : int
        Decimal digits of the arithmetic. Ties are decided with half of them.

    Returns
    -------
    array of shape (pieces, 2)
        As of `region`, rounded to floats at the very end.
    """
    _root(gamma)
    rows, _ = _extend(X, x_new, None, None)
    n = len(rows)
    with mpmath.workdps(digits):
        points = [[mpmath.mpf(float(value)) for value in row] for row in rows]
        labels = [mpmath.mpf(float(value)) for value in np.asarray(y, dtype=float)]
        size, scale, noise = (mpmath.mpf(value) for value in (amplitude, length_scale, noise_variance))
        A = mpmath.matrix(n, n)
        for i in range(n):
            for j in range(n):
                squared = mpmath.fsum((u - v) ** 2 for u, v in zip(points[i], points[j], strict=True))
                A[i, j] = size * mpmath.exp(-squared / (2 * scale**2)) + (noise if i == j else 0)
        C = A**-1
        power = mpmath.mpf(1) if np.isinf(gamma) else 1 - 1 / mpmath.mpf(gamma)
        a, b = [], []
        for i in range(n):
            divisor = C[i, i] ** power
            a.append(mpmath.fsum(C[i, j] * labels[j] for j in range(n - 1)) / divisor)
            b.append(C[i, n - 1] / divisor)
        label_scale = max((abs(value) for value in labels), default=mpmath.mpf(0))
        tolerance = mpmath.mpf(10) ** (-(digits // 2))
        pieces = region_from_lines(a, b, delta, None, tolerance, label_scale)
        return np.array([[float(low), float(high)] for low, high in pieces], dtype=float).reshape(-1, 2)
