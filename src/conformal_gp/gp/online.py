r"""A Gaussian process as its rows come: how each is predicted by those before it, from one factorisation of all.

The inverse Cholesky factor of the first t rows is the first block of :math:`L^{-1}`. So :math:`(K + \sigma^2 I)^{-1}`
grows with the next row by :math:`m m'`, m that row of :math:`L^{-1}`. With a flat prior on the mean and
:math:`L^{-1} H = q r` over the rows before, an orthogonal Q takes :math:`(r; w)`, w the next row of
:math:`L^{-1} H`, to :math:`(r_+; 0)`. The same Q takes :math:`(q' L^{-1}; m')` to :math:`(q_+' L^{-1}; m_+')`, and P
grows by :math:`m_+ m_+'`. By the block form of the inverse (:mod:`conformal_gp.gp.posterior`),
:math:`m_+ = (-v', 1) / \sqrt{s}`: weights and variance of the prediction.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from conformal_gp.gp.posterior import ALONE, Posterior, Prediction, Sizes
from conformal_gp.types import Array


class Before(NamedTuple):
    """The rows before one, t of them; see Posterior."""

    residuals: Array
    diagonal: Array
    prior: Array
    sizes: Sizes


def online(posterior: Posterior, first: int) -> Iterator[tuple[Before, Prediction]] | None:
    """The rows before each row from ``first`` on, and what they predict there, at O(l) a row.

    None where that is not precise enough, or the first rows do not determine the mean.
    """
    root, H = posterior.inverse_root, posterior.H
    if root is None or (H.shape[1] and np.linalg.matrix_rank(H[:first]) < H.shape[1]):
        return None
    return _online(posterior, root, first)


def _online(posterior: Posterior, root: Array, first: int) -> Iterator[tuple[Before, Prediction]]:
    y, H, p = posterior.y, posterior.H, posterior.H.shape[1]
    labels = y - H @ np.linalg.lstsq(H[:first], y[:first])[0]  # under a flat prior that changes nothing but rounding
    whitened = root @ np.column_stack([H, labels])
    rows = np.column_stack([root, whitened[:, -1]])  # L^-1, L^-1 y
    q, r = np.linalg.qr(whitened[:first, :p])
    explained = q.T @ rows[:first]
    left = rows[:first] - q @ explained
    alpha, diagonal, whole = left.T @ left[:, -1], np.sum(left**2, axis=0), np.sum(rows[:first] ** 2, axis=0)
    for t in range(first, y.size):
        prior, total = posterior.prior[:t], np.linalg.norm(whitened[:t, -1])
        # as in Posterior, a row that determines a coefficient by itself has no residual
        P = np.where(diagonal[:t] > ALONE**2 * whole[:t], diagonal[:t], 0.0)
        size = max(np.linalg.norm(np.sqrt(prior) * alpha[:t]), total)
        sizes = Sizes(float((prior * P).max()), float(P.max()), float(size), float(np.abs(y[:t]).max()))
        Q, R = np.linalg.qr(np.vstack([r, whitened[t, :p]]), mode="complete")
        explained = Q.T @ np.vstack([explained, rows[t]])
        r, explained, m = R[:p], explained[:p], explained[p]
        mean, variance, weights = y[t] - m[-1] / m[t], m[t] ** -2, -m[:t] / m[t]
        prediction = weights[None], np.array([mean]), np.array([variance]), posterior.prior[t : t + 1]
        yield Before(np.where(P > 0.0, alpha[:t], 0.0), P, prior, sizes), Prediction(*prediction)
        alpha, diagonal, whole = alpha + m[-1] * m, diagonal + m**2, whole + rows[t] ** 2
