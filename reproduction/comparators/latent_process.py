r"""The sparse Gaussian process of GP-Beta: three functions of the base prediction.

Its inputs are base predictions, that is Gaussian distributions of mean :math:`\mu` and variance s, with the covariance

.. math::
    k((\mu, s), (\mu', s')) = \frac{\ell}{\sqrt S} \exp\Bigl(-\frac{(\mu - \mu')^2}{2 S}\Bigr), \quad
    S = s + s' + \ell^2.

Three independent functions f with this covariance are represented by their values at a few inducing rows. Let K = R Rᵀ
be the covariance matrix of the inducing rows, with jitter on its diagonal. The values are R X, where X is standard
normal a priori. Its posterior is normal with mean A and covariance M Mᵀ, M lower triangular. With :math:`W = K_{xu}
R^{-T}` a row has

.. math::
    \mathrm{E} f = W A, \quad
    \operatorname{cov} f = (k + \text{jitter} - W W^T)\, I + G G^T, \quad G = (W \otimes I) M.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy.linalg import cholesky, solve_triangular

from conformal_gp.arrays import Array

# Added to the diagonal of covariances, as in the authors' code.
JITTER = 1e-2


class Posterior(NamedTuple):
    """Parameters of the process and of its posterior, or a gradient with respect to them."""

    log_length: Array
    """Logarithm of the length scale, (1,)."""
    means: Array
    """Means of the inducing rows, (u,)."""
    stds: Array
    """Standard deviations of the inducing rows, (u,)."""
    centre: Array
    """A, (u, 3)."""
    spread: Array
    """M, (3 u, 3 u); index 3 i + j belongs to function j at inducing row i."""


class Moments(NamedTuple):
    """Means and Cholesky factors of the covariance of f at some rows."""

    mean: Array
    """Shape (n, 3)."""
    factor: Array
    """Lower triangular, (n, 3, 3)."""


def covariance(first: tuple[Array, Array], second: tuple[Array, Array], length: float) -> Array:
    """k between two sets of rows, each given by means and standard deviations."""
    distance = first[0][:, None] - second[0]
    total = first[1][:, None] ** 2 + second[1] ** 2 + length**2
    return length / np.sqrt(total) * np.exp(-(distance**2) / (2 * total))


def covariance_backward(
    first: tuple[Array, Array], second: tuple[Array, Array], length: float, slope: Array
) -> tuple[float, Array, Array]:
    """Gradient with respect to the length, and to the means and standard deviations of the second set of rows.

    ``slope`` is the gradient with respect to each entry of k.
    """
    distance = first[0][:, None] - second[0]
    total = first[1][:, None] ** 2 + second[1] ** 2 + length**2
    weighted = slope * covariance(first, second, length)
    by_total = weighted * (distance**2 / total - 1) / (2 * total)
    by_length = float(weighted.sum() / length + 2 * length * by_total.sum())
    return by_length, (weighted * distance / total).sum(axis=0), 2 * second[1] * by_total.sum(axis=0)


class Projection:
    """The process at some rows: moments, and gradients through them.

    Parameters
    ----------
    posterior : Posterior
        The process.
    mean, std : ndarray of shape (n,)
        The rows.
    """

    def __init__(self, posterior: Posterior, mean: Array, std: Array):
        self._posterior = posterior
        self._rows = mean, std
        self._inducing = posterior.means, posterior.stds
        self._length = float(np.exp(posterior.log_length[0]))
        u = posterior.means.size
        between = covariance(self._inducing, self._inducing, self._length) + JITTER * np.eye(u)
        cross = covariance(self._rows, self._inducing, self._length)
        self._root = cholesky(between, lower=True)
        self._weights = solve_triangular(self._root, cross.T, lower=True).T
        self._spread = (self._weights @ posterior.spread.reshape(u, -1)).reshape(-1, 3, 3 * u)
        alone = self._length / np.sqrt(2 * std**2 + self._length**2) + JITTER - (self._weights**2).sum(axis=1)
        cov = alone[:, None, None] * np.eye(3) + self._spread @ self._spread.transpose(0, 2, 1)
        self.moments = Moments(self._weights @ posterior.centre, np.linalg.cholesky(cov))

    def backward(self, slope: Moments) -> Posterior:
        """Gradient of a function with respect to the parameters, given that with respect to the moments."""
        posterior, weights = self._posterior, self._weights
        u = posterior.means.size
        cov = cholesky_backward(self.moments.factor, slope.factor)
        spread = (2 * cov @ self._spread).reshape(-1, 9 * u)
        alone = np.trace(cov, axis1=1, axis2=2)
        to_weights = slope.mean @ posterior.centre.T + spread @ posterior.spread.reshape(u, -1).T
        to_weights -= 2 * alone[:, None] * weights
        cross = solve_triangular(self._root, to_weights.T, lower=True, trans="T").T
        between = cholesky_backward(self._root, -cross.T @ weights)
        by_cross = covariance_backward(self._rows, self._inducing, self._length, cross)
        by_between = covariance_backward(self._inducing, self._inducing, self._length, between)
        # The variance of a row itself depends on the length scale alone, as l / sqrt(2 s + l²).
        own = 2 * self._rows[1] ** 2
        length = by_cross[0] + by_between[0] + alone @ (own / (own + self._length**2) ** 1.5)
        return Posterior(
            np.array([length * self._length]),
            by_cross[1] + 2 * by_between[1],  # inducing rows are on both sides
            by_cross[2] + 2 * by_between[2],
            weights.T @ slope.mean,
            np.tril((weights.T @ spread).reshape(3 * u, 3 * u)),
        )


def cholesky_backward(factor: Array, slope: Array) -> Array:
    r"""Gradient with respect to symmetric matrices, given that with respect to their Cholesky factors L.

    It is the symmetric part of :math:`L^{-T} \Phi(L^T \bar L) L^{-1}`, where :math:`\Phi` takes the lower triangle and
    halves the diagonal.
    """
    inner = np.tril(factor.swapaxes(-1, -2) @ np.tril(slope))
    inner[..., range(inner.shape[-1]), range(inner.shape[-1])] /= 2
    inverse = np.linalg.inv(factor)
    full = inverse.swapaxes(-1, -2) @ inner @ inverse
    return (full + full.swapaxes(-1, -2)) / 2
