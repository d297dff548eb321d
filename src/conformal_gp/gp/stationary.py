"""Stationary covariances: functions of distances between rows, compiled.

Squared distances come from differences, not from inner products: duplicate rows are at distance zero exactly, which
matters when the noise is small. Many pairs are summed at a time, which is about twice as fast as SciPy's cdist. A
covariance follows while its row of distances is still in the cache.
"""

from __future__ import annotations

import math

import numpy as np

from conformal_gp._compiled import compiled
from conformal_gp.types import Array

SQUARED_EXPONENTIAL, MATERN32, MATERN52 = range(3)


def squared_distances(X: Array, Z: Array) -> Array:
    """Squared distances of all rows of X from all rows of Z.

    Parameters
    ----------
    X : ndarray of shape (n, d)
        Rows.
    Z : ndarray of shape (m, d)
        Rows.

    Returns
    -------
    distances : ndarray of shape (n, m)
        Their squared distances.

    Examples
    --------
    >>> squared_distances(np.array([[0.0, 0.0], [3.0, 4.0]]), np.array([[0.0, 0.0]]))
    array([[ 0.],
           [25.]])
    """
    distances = np.zeros((X.shape[0], Z.shape[0]))
    _add(X, np.ascontiguousarray(Z.T), distances)
    return distances


def covariances(X: Array, Z: Array, shape: int, scale: float, lower: bool) -> Array:
    """Covariances of rows of X and rows of Z, which are in units of their length scales.

    Parameters
    ----------
    X : ndarray of shape (n, d)
        Rows.
    Z : ndarray of shape (m, d)
        Rows.
    shape : {SQUARED_EXPONENTIAL, MATERN32, MATERN52}
        The function.
    scale : float
        Its value at distance zero.
    lower : bool
        Whether only the lower triangle is wanted, zeros above.

    Returns
    -------
    K : ndarray of shape (n, m)
        The covariances.

    Examples
    --------
    >>> covariances(np.zeros((1, 1)), np.array([[0.0], [2.0]]), SQUARED_EXPONENTIAL, 1.0, lower=False).round(3)
    array([[1.   , 0.135]])
    """
    K = np.zeros((X.shape[0], Z.shape[0]))
    fill(X, np.ascontiguousarray(Z.T), shape, scale, lower, K)
    return K


def covariances_at(squares: Array, shape: int, scale: float, lower: bool) -> Array:
    """The same from squared distances in units of the length scale, which are overwritten."""
    _fill_at(squares, shape, scale, lower)
    return squares


@compiled(error_model="numpy")
def fill(X: Array, columns: Array, shape: int, scale: float, lower: bool, K: Array) -> None:  # pragma: no cover
    """See :func:`covariances`; ``columns`` are the rows of Z transposed, K is zero at first and is filled."""
    for i in range(X.shape[0]):
        row = K[i, : i + 1] if lower else K[i]
        _add_row(X[i], columns, row)
        _apply(row, shape, scale)


@compiled(error_model="numpy")
def _fill_at(squares: Array, shape: int, scale: float, lower: bool) -> None:  # pragma: no cover
    for i in range(squares.shape[0]):
        if lower:
            _apply(squares[i, : i + 1], shape, scale)
            squares[i, i + 1 :] = 0.0
        else:
            _apply(squares[i], shape, scale)


@compiled(error_model="numpy")
def _apply(row: Array, shape: int, scale: float) -> None:  # pragma: no cover
    """Replace r² by exp(-r²/2), by (1 + t) exp(-t), t² = 3 r², or by (1 + t + t²/3) exp(-t), t² = 5 r²."""
    if shape == SQUARED_EXPONENTIAL:
        for j in range(row.size):
            row[j] = scale * math.exp(-0.5 * row[j])
    elif shape == MATERN32:
        for j in range(row.size):
            t = math.sqrt(3.0 * row[j])
            row[j] = scale * (1.0 + t) * math.exp(-t)
    else:
        for j in range(row.size):
            t = math.sqrt(5.0 * row[j])
            row[j] = scale * (1.0 + t + row[j] * (5.0 / 3.0)) * math.exp(-t)


@compiled(error_model="numpy")
def _add(X: Array, columns: Array, distances: Array) -> None:  # pragma: no cover
    for i in range(X.shape[0]):
        _add_row(X[i], columns, distances[i])


@compiled(error_model="numpy")
def _add_row(x: Array, columns: Array, row: Array) -> None:  # pragma: no cover
    """Add the squared distances of one row from others, whose inputs are the rows of ``columns``."""
    in_fours = x.size - x.size % 4  # four inputs at a time: sums are read and written less often
    for k in range(0, in_fours, 4):
        x0, x1, x2, x3 = x[k], x[k + 1], x[k + 2], x[k + 3]
        c0, c1, c2, c3 = columns[k], columns[k + 1], columns[k + 2], columns[k + 3]
        for j in range(row.size):
            row[j] += (x0 - c0[j]) ** 2 + (x1 - c1[j]) ** 2 + (x2 - c2[j]) ** 2 + (x3 - c3[j]) ** 2
    for k in range(in_fours, x.size):
        xk, column = x[k], columns[k]
        for j in range(row.size):
            row[j] += (xk - column[j]) ** 2
