"""A Gaussian process given its training rows, at many hyperparameter vectors ("draws") at once.

Formulas are those of :mod:`conformal_gp.gp.posterior`, for each draw. Amplitudes are integrated out: variances are in
units of the quadratic form Q over its degrees of freedom.

The linear term is not in the covariance matrix, where the variance of a far-out row would round away what tells rows
apart. Its slopes are coefficients beside those of the mean function, with a proper prior: in units of their standard
deviations, each has one more observation, 0, with variance 1 (Rasmussen and Williams, section 2.7).
"""

from __future__ import annotations

from collections.abc import Callable
from copy import copy
from functools import lru_cache
from typing import NamedTuple

import numpy as np
from scipy.linalg import lapack

from conformal_gp.arrays import Array, Indices
from conformal_gp.gp.hyperparameters import HyperPrior, Parts
from conformal_gp.targets.transformation import power

# Entries of matrices that are worked on at a time.
CHUNK = 2**19
# Quadratic forms below this share of the targets' squares are rounding: the mean function explains the targets.
EXPLAINED = 1e-26
SMALLEST_QUADRATIC = 1e-200
# With more inputs than this the linear term is in the covariance matrix after all: it would cost more than all else.
MOST_SLOPES = 30
# A row whose inverse leave-one-out standard deviation the flat prior reduces to less than this share determines a
# coefficient by itself, up to rounding: its residual is 0, whatever its target is.
ALONE = 1e-11


@lru_cache(2)
def _lower(n: int) -> Indices:
    """Places of pairs of n rows in a matrix that is kept row by row."""
    i, j = np.tril_indices(n, -1)
    return n * i + j


class TrainingRows(NamedTuple):
    """Rows that hyperparameters are drawn for, and that predict."""

    prior: HyperPrior
    """Prior of the hyperparameters, with the kernel over the scaled inputs."""
    H: Array
    """(l, p): mean basis, orthonormal columns."""
    y: Array
    """(l,): targets, about 0 and 1 in size; or logarithms of targets where these are transformed."""
    known: Array | None
    """(l,): known noise variances in units of y."""

    def covariances(self, parts: Parts) -> tuple[Array, Callable[[Array], dict[str, Array]]]:
        """Lower triangles of A at each of some hyperparameter vectors, (C, l, l).

        The second value maps symmetric weights W, lower triangles, to gradients of the sum of W A in the parts.
        """
        n = len(self.y)
        pairs, variances, of_kernel = self.prior.family.matrices(parts.kernel, parts.linear)
        variances = variances + parts.noise[:, None]
        amplitude = np.ones(len(pairs))
        if parts.amplitude is not None:
            amplitude = parts.amplitude
        lower = _lower(n)
        A = np.empty((len(pairs), n, n))
        flat = A.reshape(len(pairs), -1)
        flat[:, lower] = amplitude[:, None] * pairs
        flat[:, :: n + 1] = amplitude[:, None] * variances
        if self.known is not None:
            flat[:, :: n + 1] += self.known

        def pullback(W: Array) -> dict[str, Array]:
            flat = W.reshape(len(W), -1)
            by_pair = 2.0 * amplitude[:, None] * flat[:, lower]  # a pair is two entries of the matrix
            by_variance = amplitude[:, None] * flat[:, :: n + 1]
            by_kernel, by_linear = of_kernel(by_pair, by_variance)
            of_amplitude = np.einsum("ij,ij->i", by_pair, pairs) + np.einsum("ij,ij->i", by_variance, variances)
            by_noise = parts.noise * by_variance.sum(axis=1)
            return {"kernel": by_kernel, "linear": by_linear, "noise": by_noise, "amplitude": of_amplitude}

        return A, pullback


class MixturePrediction(NamedTuple):
    """Predictions for m test rows by each of M draws."""

    weights: Array
    """(M, l, m): v, weight of each training target in the mean."""
    mean: Array
    """(M, m): of a new target, transformed."""
    variance: Array
    """(M, m): s, noise included."""


class Mixture:
    """The processes of several draws ``theta``, (M, p), given training rows."""

    def __init__(self, rows: TrainingRows, theta: Array):
        self.rows = rows
        self._theta = theta
        n, p = rows.H.shape
        M = len(theta)
        self.degrees = n - p  # of freedom, of Q
        self.parts = rows.prior.parts(theta)
        d = rows.prior.family.X.shape[1]
        self._n_slopes = 0
        unit = np.ones((M, p))  # of each coefficient: the prior standard deviation of slopes
        if self.parts.linear.any() and d <= MOST_SLOPES:
            self._n_slopes = d
            deviation = rows.prior.family.slope_deviations(self.parts.kernel, self.parts.linear)
            if self.parts.amplitude is not None:
                deviation = np.sqrt(self.parts.amplitude)[:, None] * deviation
            unit = np.concatenate([unit, deviation], axis=1)
        z = np.tile(rows.y, (M, 1))
        self.log_slope = np.zeros(M)
        if self.parts.exponent is not None:
            z = power(rows.y, self.parts.exponent[:, None])
            # the sum of log T' over the targets
            self.log_slope = self.slopes(n) * rows.y.sum()
        self._origin = z.mean(axis=1) if p else np.zeros(M)
        self._z = z - self._origin[:, None]
        self.least_quadratic = EXPLAINED * np.einsum("mi,mi->m", self._z, self._z) + SMALLEST_QUADRATIC
        self._root = np.empty((M, n, n))  # L^-1
        self._q = np.empty((M, n + self._n_slopes, p + self._n_slopes))
        self._r = np.empty((M, p + self._n_slopes, p + self._n_slopes))
        self.alpha = np.empty((M, n))
        self.diagonal = np.empty((M, n))  # P_ii
        self._whole = np.empty((M, n))  # C_ii
        self.coefficients = np.empty((M, p))  # generalised least squares estimates
        self.quadratic = np.empty(M)  # Q
        self.log_determinant = np.empty(M)  # infinite where A is numerically singular
        step = max(1, CHUNK // n**2)
        for start in range(0, M, step):
            self._factorise(slice(start, start + step), unit[start : start + step])
        # r^-T of basis functions in their units
        self._by_basis = np.linalg.solve(self._r.transpose(0, 2, 1), unit[:, :, None] * np.eye(unit.shape[1]))

    def _in_matrix(self, parts: Parts) -> Parts:
        """Hyperparameters of the covariance matrix: without the linear term if its slopes are coefficients."""
        if self._n_slopes == 0:
            return parts
        return parts._replace(linear=np.zeros(len(parts.linear)))

    def _basis(self, X: Array, H: Array) -> Array:
        """Basis of the mean function, and of the linear term if its slopes are coefficients, (m, p + slopes)."""
        return np.concatenate([H, (X - self.rows.prior.family.origin)[:, : self._n_slopes]], axis=1)

    def _factorise(self, part: slice, unit: Array) -> None:
        rows = self.rows
        parts = rows.prior.parts(self._theta[part])
        n, p = rows.H.shape
        root, _ = rows.covariances(self._in_matrix(parts))
        log_determinant = np.empty(len(root))
        for each, own in enumerate(root):
            L, failed = lapack.dpotrf(own, lower=1, clean=1)
            if failed:
                L = np.eye(n)
            log_determinant[each] = np.inf if failed else 2.0 * np.log(np.diagonal(L)).sum()
            root[each] = lapack.dtrtri(L, lower=1)[0]
        # q r = L^-1 H over 0, and for slopes L^-1 Z over 1
        basis = np.zeros((len(root), n + self._n_slopes, p + self._n_slopes))
        basis[:, :n] = (root @ self._basis(rows.prior.family.X, rows.H)) * unit[:, None]
        basis[:, n:, p:] = np.eye(self._n_slopes)
        q, r = np.linalg.qr(basis)
        error = np.zeros((len(root), n + self._n_slopes))
        error[:, :n] = (root @ self._z[part][:, :, None])[:, :, 0]
        explained = q.transpose(0, 2, 1) @ error[:, :, None]
        # H has orthonormal columns, so a shift of z by a constant is one by its coordinates
        shift = self._origin[part, None] * rows.H.sum(axis=0)
        self.coefficients[part] = np.linalg.solve(r, explained)[:, :p, 0] + shift
        for _ in range(2):  # twice, so that what is left is orthogonal to the basis up to rounding
            error = error - np.einsum("mip,mp->mi", q, np.einsum("mip,mi->mp", q, error))
        self._root[part] = root
        self._q[part] = q
        self._r[part] = r
        projected = self._projected(part)
        # P_ii
        diagonal = np.einsum("mij,mij->mj", projected, projected)
        self._whole[part] = np.einsum("mij,mij->mj", root, root)
        alone = diagonal <= ALONE**2 * self._whole[part]
        self.diagonal[part] = np.where(alone, 0.0, diagonal)
        # alpha = L^-T e
        self.alpha[part] = np.where(alone, 0.0, np.einsum("mij,mi->mj", root, error[:, :n]))
        # Q = e'e
        self.quadratic[part] = np.maximum(np.einsum("mi,mi->m", error, error), self.least_quadratic[part])
        logs = np.log(np.abs(np.diagonal(r, axis1=1, axis2=2))).sum(axis=1)
        # log |A| + log |H'CH|
        self.log_determinant[part] = log_determinant + 2.0 * logs

    def _projected(self, part: slice) -> Array:
        """(I - q q') L^-1 of some draws, (M, l + slopes, l): P is the product of it with itself."""
        q = self._q[part]
        root = self._root[part]
        n = root.shape[1]
        projected = -(q @ (q[:, :n].transpose(0, 2, 1) @ root))
        projected[:, :n] += root
        return projected

    def slopes(self, n_rows: int) -> Array:
        r"""How the log likelihood of n targets changes with the sum of their logarithms, besides Q, (M,).

        :math:`\lambda - 1` is of T'. With a flat prior of p coefficients, a unit g of the targets changes likelihoods
        by :math:`g^{-p \lambda}`; it is the geometric mean of all n rows, so that all have the same part in it.
        """
        if self.parts.exponent is None:
            return np.zeros(len(self._theta))
        return self.parts.exponent * (1.0 - self.rows.H.shape[1] / n_rows) - 1.0

    @property
    def log_likelihood(self) -> Array:
        """Log likelihood of the training rows, up to a constant, (M,)."""
        # equation (2) of docs/theory_averaging.md
        fit = -0.5 * self.quadratic if self.rows.known is not None else -0.5 * self.degrees * np.log(self.quadratic)
        return fit - 0.5 * self.log_determinant + self.log_slope

    @property
    def scale(self) -> Array:
        """Amplitudes of the draws, (M,): estimates where they are integrated out, and 1 where they are known."""
        if self.rows.known is not None:
            return np.ones(len(self._theta))
        return self.quadratic / max(self.degrees, 1)

    @property
    def transformed(self) -> Array:
        """Training targets under the transformation of each draw, (M, l)."""
        return self._z + self._origin[:, None]

    def precision(self) -> Array:
        """P of each draw, (M, l, l)."""
        projected = self._projected(slice(None))
        return projected.transpose(0, 2, 1) @ projected

    def _explained(self, new: Array, H: Array) -> tuple[Array, Array, Array]:
        """u = L^-1 k, (M, l, m), and g = r^-T h(x) - q'u, (M, p + slopes, m), of new inputs, and k(x, x), (M, m)."""
        parts = self._in_matrix(self.parts)
        k, prior = self.rows.prior.family.cross(parts.kernel, parts.linear, new)
        if parts.amplitude is not None:
            k *= parts.amplitude[:, None, None]
            prior = parts.amplitude[:, None] * prior
        u = self._root @ k
        g = self._by_basis @ self._basis(new, H).T - self._q[:, : u.shape[1]].transpose(0, 2, 1) @ u
        return u, g, prior

    def predict(self, new: Array, H: Array, known: Array | None) -> MixturePrediction:
        """Predictions at m new inputs, with their mean basis, (m, p), and known noise variances, (m,)."""
        half, gap, prior = self._explained(new, H)
        noise = self.parts.noise[:, None]
        if self.parts.amplitude is not None:
            noise = self.parts.amplitude[:, None] * noise
        if known is not None:
            noise = noise + known
        # s = k(x, x) - u'u + g'g with the noise
        variance = np.maximum(prior - np.einsum("mit,mit->mt", half, half), 0.0) + noise
        variance += np.einsum("mpt,mpt->mt", gap, gap)
        # v = L^-T (u + q g)
        half += self._q[:, : half.shape[1]] @ gap
        weights = self._root.transpose(0, 2, 1) @ half
        mean = np.einsum("mit,mi->mt", weights, self._z) + self._origin[:, None]
        if (self.diagonal == 0.0).any():  # rows that are alone say nothing of other rows
            rounding = ALONE**2 * self._whole[:, :, None] * variance[:, None, :]
            weights[(self.diagonal == 0.0)[:, :, None] & (weights**2 <= rounding)] = 0.0
        return MixturePrediction(weights, mean, variance)

    def joint(self, new: Array, H: Array, known: Array | None, draw: int) -> tuple[Array, Array]:
        """Means, (m,), and covariances, (m, m), of the targets of new rows together, under one draw."""
        one = Mixture(self.rows, self._theta[[draw]])
        prediction = one.predict(new, H, known)
        half, gap, _ = one._explained(new, H)
        family = copy(self.rows.prior.family)
        family.X = new
        parts = one._in_matrix(one.parts)
        # k(x, x2) - u'u2 + g'g2
        covariance = family.cross(parts.kernel, parts.linear, new)[0][0]
        if parts.amplitude is not None:
            covariance *= parts.amplitude[0]
        covariance += gap[0].T @ gap[0] - half[0].T @ half[0]
        np.fill_diagonal(covariance, prediction.variance[0])
        return prediction.mean[0], one.scale[0] * covariance
