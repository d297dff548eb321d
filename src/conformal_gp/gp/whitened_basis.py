r"""The mean basis seen through the covariance: what of labels and of new inputs it explains.

With :math:`L L' = K + \sigma^2 I` the whitened basis is :math:`L^{-1} H = q r`, q with orthonormal columns and r upper
triangular. These matrices are small and there are many of them, one for each setting of hyperparameters that is looked
at, so all steps are compiled together.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from conformal_gp._compiled import compiled
from conformal_gp.types import Array

# Sums may be taken in any order, several terms at a time.
_SUMS = {"reassoc", "contract"}
# Residuals below this share of the labels are rounding: the mean function explains them.
EXPLAINED = 1e-13


class WhitenedBasis(NamedTuple):
    """Orthogonal factor of a whitened basis of p columns."""

    q: Array
    """(p, l): its orthonormal columns, one a row."""
    r: Array
    """(p, p): upper triangular."""

    def log_determinant(self) -> float:
        """log |H' (K + σ² I)^-1 H|."""
        return 2.0 * float(np.log(np.abs(np.diagonal(self.r))).sum())

    def add_unexplained(self, half: Array, H: Array, square: Array) -> Array:
        """Add what the training rows leave open about the mean at new inputs.

        Parameters
        ----------
        half : C-contiguous ndarray of shape (m, l)
            Rows u = L^-1 k; they become u + q g with g = r^-T h - q'u.
        H : ndarray of shape (m, p)
            Mean basis h of the new inputs.
        square : ndarray of shape (m,)
            Becomes the squared length of u + q g.

        Returns
        -------
        spread : ndarray of shape (m,)
            g'g.
        """
        return _add_unexplained(self.q, self.r, half, np.ascontiguousarray(H), square)


def explain(L: Array, H: Array, y: Array, size: float = 0.0) -> tuple[WhitenedBasis, Array, Array, float]:
    """Generalised least squares.

    Parameters
    ----------
    L : C-contiguous ndarray of shape (l, l)
        Lower triangular factor of the covariance matrix.
    H : ndarray of shape (l, p)
        Mean basis.
    y : ndarray of shape (l,)
        Labels, or what a first fit leaves of them.
    size : float, default=0.0
        Size of the labels, if these are what is left of them: residuals of its rounding are none.

    Returns
    -------
    basis : WhitenedBasis
        The basis.
    coefficients : ndarray of shape (p,)
        β.
    alpha : ndarray of shape (l,)
        (K + σ² I)^-1 (y - H β).
    quadratic : float
        (y - H β)' (K + σ² I)^-1 (y - H β).
    """
    q, r, coefficients, alpha, quadratic = _explain(L, np.ascontiguousarray(H.T), np.ascontiguousarray(y), size)
    return WhitenedBasis(q, r), coefficients, alpha, quadratic


@compiled(error_model="numpy", fastmath=_SUMS)
def _dot(a: Array, b: Array, n: int) -> float:  # pragma: no cover
    total = 0.0
    for i in range(n):
        total += a[i] * b[i]
    return total


@compiled(error_model="numpy", fastmath=_SUMS)
def _whiten(L: Array, b: Array) -> None:  # pragma: no cover
    """Overwrite b with L^-1 b."""
    for i in range(b.size):
        b[i] = (b[i] - _dot(L[i], b, i)) / L[i, i]


@compiled(error_model="numpy", fastmath=_SUMS)
def _explain(L: Array, H: Array, y: Array, size: float) -> tuple[Array, Array, Array, Array, float]:  # pragma: no cover
    p, n = H.shape
    q, r, target = H.copy(), np.zeros((p, p)), np.zeros(p)
    error = y.copy()
    _whiten(L, error)
    for k in range(p):  # Gram and Schmidt; twice is as good as reflections
        _whiten(L, q[k])
        for _ in range(2):
            for j in range(k):
                part = _dot(q[j], q[k], n)
                r[j, k] += part
                q[k] -= part * q[j]
        r[k, k] = np.sqrt(_dot(q[k], q[k], n))
        q[k] /= r[k, k]
    for _ in range(2):
        for k in range(p):
            part = _dot(q[k], error, n)
            target[k] += part
            error -= part * q[k]
    for k in range(p - 1, -1, -1):
        for j in range(k + 1, p):
            target[k] -= r[k, j] * target[j]
        target[k] /= r[k, k]
    left, largest = 0.0, size
    for i in range(n):
        fitted = 0.0
        for k in range(p):
            fitted += target[k] * H[k, i]
        left, largest = max(left, abs(y[i] - fitted)), max(largest, abs(y[i]))
    if left <= EXPLAINED * largest:
        error[:] = 0.0
    quadratic = _dot(error, error, n)
    for i in range(n - 1, -1, -1):
        error[i] /= L[i, i]
        for j in range(i):
            error[j] -= error[i] * L[i, j]
    return q, r, target, error, quadratic


@compiled(error_model="numpy", fastmath=_SUMS)
def _add_unexplained(q: Array, r: Array, half: Array, H: Array, square: Array) -> Array:  # pragma: no cover
    p, n = q.shape
    spread = np.zeros(half.shape[0])
    g = np.empty(p)
    for i in range(half.shape[0]):
        for k in range(p):  # r' g = h
            total = H[i, k]
            for j in range(k):
                total -= r[j, k] * g[j]
            g[k] = total / r[k, k]
        for k in range(p):
            g[k] -= _dot(q[k], half[i], n)
            spread[i] += g[k] * g[k]
        for k in range(p):
            half[i] += g[k] * q[k]
        square[i] = _dot(half[i], half[i], n)
    return spread
