r"""The mean basis seen through the covariance: what of labels and of new inputs it explains.

With :math:`L L' = K + \sigma^2 I` the whitened basis is :math:`L^{-1} H = q r`, q with orthonormal columns and r upper
triangular. These matrices are small and there are many of them, one for each setting of hyperparameters that is looked
at, so all steps are compiled together.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from conformal_gp._compiled import compiled
from conformal_gp.types import Array, Rows

# Sums may be taken in any order, several terms at a time.
_SUMS = {"reassoc", "contract"}
# Residuals below this share of the labels are rounding: the mean function explains them.
EXPLAINED = 1e-13
# A row whose inverse leave-one-out standard deviation the flat prior reduces to less than this share determines a
# coefficient by itself, up to rounding: left out, its label could be anything.
ALONE = 1e-11


class WhitenedBasis(NamedTuple):
    """Orthogonal factor of a whitened basis of p columns."""

    q: Array
    """(p, l): its orthonormal columns, one a row."""
    r: Array
    """(p, p): upper triangular."""

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
        return add_unexplained(self.q, self.r, half, np.ascontiguousarray(H), square)


def explain(L: Array, H: Array, y: Array) -> tuple[WhitenedBasis, Array, Array, float]:
    """Generalised least squares.

    Parameters
    ----------
    L : C-contiguous ndarray of shape (l, l)
        Lower triangular factor of the covariance matrix.
    H : ndarray of shape (l, p)
        Mean basis, orthonormal columns.
    y : ndarray of shape (l,)
        Labels.

    Returns
    -------
    basis : WhitenedBasis
        The basis.
    coefficients : ndarray of shape (p,)
        β.
    alpha : ndarray of shape (l,)
        (K + σ² I)^-1 (y - H β).
    quadratic : float
        (y - H β)' (K + σ² I)^-1 (y - H β); 0 where the mean explains the labels, up to rounding.
    """
    q, r, coefficients, alpha, quadratic = explain_labels(L, np.ascontiguousarray(H.T), np.ascontiguousarray(y))
    return WhitenedBasis(q, r), coefficients, alpha, quadratic


def leave_out(
    L: Array, basis: WhitenedBasis, H: Array, y: Array, alpha: Array, rows: Rows, flat: bool
) -> tuple[Array, Array, Array, Array, Array, Array]:
    """Leave out each of some rows, by replacing its label by what the others predict.

    Parameters
    ----------
    L : C-contiguous ndarray of shape (l, l)
        Lower triangular factor of the covariance matrix.
    basis : WhitenedBasis
        The basis.
    H : ndarray of shape (l, p)
        Mean basis, orthonormal columns.
    y : ndarray of shape (l,)
        Labels.
    alpha : ndarray of shape (l,)
        Weighted residuals.
    rows : ndarray of shape (k,)
        Rows to leave out, one at a time.
    flat : bool
        Whether the coefficients have a flat prior.

    Returns
    -------
    precision, quadratic, columns, target, left, first_fit : ndarray
        For each row: its P_ii, or 0 if it determines a coefficient by itself; y'Py of the others, (k,) each; its column
        of L^-1; L^-1 times the labels with the replacement, less a first fit; these labels themselves, (k, l) each;
        coefficients of the first fit, (k, p).
    """
    y, alpha = np.ascontiguousarray(y), np.ascontiguousarray(alpha)
    return leave_out_rows(L, basis.q, np.ascontiguousarray(H.T), y, alpha, rows, flat)


@compiled(error_model="numpy", fastmath=_SUMS)
def leave_out_rows(
    L: Array, q: Array, H: Array, y: Array, alpha: Array, rows: Rows, flat: bool
) -> tuple[Array, Array, Array, Array, Array, Array]:  # pragma: no cover
    """See :func:`leave_out`; H comes transposed."""
    (p, n), k = H.shape, rows.size
    precision, quadratic = np.zeros(k), np.zeros(k)
    columns, target, left, first_fit = np.zeros((k, n)), np.empty((k, n)), np.empty((k, n)), np.zeros((k, p))
    labels = y.copy()
    for m in range(k):
        i = rows[m]
        column = columns[m]
        column[i] = 1.0 / L[i, i]
        for j in range(i + 1, n):
            column[j] = -dot(L[j, i:], column[i:], j - i) / L[j, j]
        projected = column.copy()
        if flat:
            _project(q, projected)
        precision[m] = dot(projected, projected, n)
        if flat and precision[m] <= ALONE**2 * dot(column, column, n):
            precision[m] = 0.0
        divisor = precision[m] if precision[m] > 0.0 else 1.0
        labels[i] = y[i] - alpha[i] / divisor
        for j in range(n):
            left[m, j] = labels[j]
        for c in range(p):
            first_fit[m, c] = dot(H[c], labels, n)
        for c in range(p):
            add_to(left[m], -first_fit[m, c], H[c])
        for j in range(n):
            target[m, j] = left[m, j]
        whiten(L, target[m])
        off = dot(projected, target[m], n) / divisor  # what rounding left of its label
        add_to(target[m], -off, column)
        left[m, i] -= off
        error = target[m].copy()
        if flat:
            _project(q, error)
        quadratic[m] = dot(error, error, n)
        if flat and _is_rounding(L, error, labels, i, y[i]):
            quadratic[m] = 0.0
        labels[i] = y[i]
    return precision, quadratic, columns, target, left, first_fit


@compiled(error_model="numpy", fastmath=_SUMS)
def _project(q: Array, x: Array) -> None:  # pragma: no cover
    """Overwrite x with (I - q q') x."""
    for _ in range(2):
        for c in range(q.shape[0]):
            add_to(x, -dot(q[c], x, x.size), q[c])


@compiled(error_model="numpy")
def _is_rounding(L: Array, error: Array, labels: Array, i: int, label: float) -> bool:  # pragma: no cover
    """Whether the mean function explains all labels but that of row i, so that what is left is rounding."""
    size, left = EXPLAINED * abs(label), 0.0
    for j in range(labels.size):
        if j != i:
            size, left = max(size, abs(labels[j])), max(left, abs(dot(L[j], error, j + 1)))
    return left <= EXPLAINED * size


@compiled(error_model="numpy", fastmath=_SUMS)
def dot(a: Array, b: Array, n: int) -> float:  # pragma: no cover
    """Inner product of the first n entries."""
    total = 0.0
    for i in range(n):
        total += a[i] * b[i]
    return total


@compiled(error_model="numpy", fastmath=_SUMS)
def add_to(a: Array, factor: float, b: Array) -> None:  # pragma: no cover
    """Add a multiple of b to a."""
    for i in range(a.size):
        a[i] += factor * b[i]


@compiled(error_model="numpy", fastmath=_SUMS)
def whiten(L: Array, b: Array) -> None:  # pragma: no cover
    """Overwrite b with L^-1 b."""
    for i in range(b.size):
        b[i] = (b[i] - dot(L[i], b, i)) / L[i, i]


@compiled(error_model="numpy", fastmath=_SUMS)
def explain_labels(L: Array, H: Array, y: Array) -> tuple[Array, Array, Array, Array, float]:  # pragma: no cover
    """See :func:`explain`; H comes transposed, and the basis in its parts."""
    p, n = H.shape
    q, r, target, first_fit = H.copy(), np.zeros((p, p)), np.zeros(p), np.zeros(p)
    labels = y.copy()
    for k in range(p):  # a flat prior does not notice a first fit, but rounding does
        first_fit[k] = dot(H[k], y, n)
        add_to(labels, -first_fit[k], H[k])
    error = labels.copy()
    whiten(L, error)
    for k in range(p):  # Gram and Schmidt; twice is as good as reflections
        whiten(L, q[k])
        for _ in range(2):
            for j in range(k):
                part = dot(q[j], q[k], n)
                r[j, k] += part
                add_to(q[k], -part, q[j])
        r[k, k] = np.sqrt(dot(q[k], q[k], n))
        for i in range(n):
            q[k, i] /= r[k, k]
    for _ in range(2):
        for k in range(p):
            part = dot(q[k], error, n)
            target[k] += part
            add_to(error, -part, q[k])
    for k in range(p - 1, -1, -1):
        for j in range(k + 1, p):
            target[k] -= r[k, j] * target[j]
        target[k] /= r[k, k]
    left, largest = 0.0, 0.0
    for i in range(n):
        fitted = 0.0
        for k in range(p):
            fitted += target[k] * H[k, i]
        left, largest = max(left, abs(labels[i] - fitted)), max(largest, abs(y[i]))
    if left <= EXPLAINED * largest:
        error[:] = 0.0
    quadratic = dot(error, error, n)
    for i in range(n - 1, -1, -1):
        error[i] /= L[i, i]
        for j in range(i):
            error[j] -= error[i] * L[i, j]
    return q, r, first_fit + target, error, quadratic


@compiled(error_model="numpy", fastmath=_SUMS)
def add_unexplained(q: Array, r: Array, half: Array, H: Array, square: Array) -> Array:  # pragma: no cover
    """See :meth:`WhitenedBasis.add_unexplained`."""
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
            g[k] -= dot(q[k], half[i], n)
            spread[i] += g[k] * g[k]
        for k in range(p):
            add_to(half[i], g[k], q[k])
        square[i] = dot(half[i], half[i], n)
    return spread
