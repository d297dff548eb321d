"""A Gaussian process given its training rows, at many hyperparameter vectors at once.

Formulas are those of :mod:`conformal_gp.gp.posterior`, for each draw. Amplitudes are integrated out: variances are in
units of the quadratic form Q over its degrees of freedom.

The linear term is not in the covariance matrix, where the variance of a far-out row would round away what tells rows
apart. Its slopes are coefficients beside those of the mean function, with a proper prior: in units of their standard
deviations, each has one more observation, 0, with variance 1 (Rasmussen and Williams, section 2.7).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy.linalg import lapack

from conformal_gp.arrays import Array
from conformal_gp.gp.kernel_families import Family
from conformal_gp.gp.prior import HyperPrior, Parts
from conformal_gp.gp.sampling import TrainingRows
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


class MixturePrediction(NamedTuple):
    """Predictions for m test rows by each of M draws."""

    weights: Array
    """(M, l, m): v, weight of each training target in the mean."""
    mean: Array
    """(M, m): of a new target, transformed."""
    variance: Array
    """(M, m): s, noise included."""


class Mixture:
    """The processes of several draws.

    Parameters
    ----------
    prior : HyperPrior
        What the entries of a draw mean.
    rows : TrainingRows
        Training rows.
    theta : ndarray of shape (M, p)
        Draws.

    Attributes
    ----------
    alpha, diagonal : ndarray of shape (M, l)
        α and the diagonal of P.
    coefficients : ndarray of shape (M, p)
        Generalised least squares estimates of the mean function's coefficients.
    quadratic, log_determinant : ndarray of shape (M,)
        Q, and the logarithm of the determinants of A and H'CH; the latter is infinite where A is numerically singular.
    least_quadratic : ndarray of shape (M,)
        Least Q that is more than rounding.
    log_slope : ndarray of shape (M,)
        Sum of log T' over the training targets, which are in units of their geometric mean: see :meth:`slopes`.
    degrees : int
        Degrees of freedom of Q.
    """

    def __init__(self, prior: HyperPrior, rows: TrainingRows, theta: Array):
        self.prior = prior
        self.rows = rows
        self._theta = theta
        n, p = rows.H.shape
        self.degrees = n - p
        self.parts = prior.parts(theta)
        self._n_slopes = 0
        if self.parts.linear.any() and rows.family.X.shape[1] <= MOST_SLOPES:
            self._n_slopes = rows.family.X.shape[1]
        z = np.tile(rows.y, (len(theta), 1))
        self.log_slope = np.zeros(len(theta))
        if self.parts.exponent is not None:
            z = power(rows.y, self.parts.exponent[:, None])
            self.log_slope = self.slopes(n) * rows.y.sum()
        self._origin = z.mean(axis=1) if p else np.zeros(len(theta))
        self._z = z - self._origin[:, None]
        self.least_quadratic = EXPLAINED * np.einsum("mi,mi->m", self._z, self._z) + SMALLEST_QUADRATIC
        self._root = np.empty((len(theta), n, n))
        self._q = np.empty((len(theta), n + self._n_slopes, p + self._n_slopes))
        self._r = np.empty((len(theta), p + self._n_slopes, p + self._n_slopes))
        self.alpha = np.empty((len(theta), n))
        self.diagonal = np.empty((len(theta), n))
        self._whole = np.empty((len(theta), n))
        self.coefficients = np.empty((len(theta), p))
        self.quadratic = np.empty(len(theta))
        self.log_determinant = np.empty(len(theta))
        step = max(1, CHUNK // n**2)
        for start in range(0, len(theta), step):
            self._factorise(slice(start, start + step))

    def _in_matrix(self, parts: Parts) -> Parts:
        """Hyperparameters of the covariance matrix: without the linear term if its slopes are coefficients."""
        if self._n_slopes == 0:
            return parts
        return parts._replace(linear=np.zeros(len(parts.linear)))

    def _basis(self, parts: Parts, family: Family, X: Array, H: Array) -> Array:
        """Basis of the mean function and of the slopes of the linear term, (M, m, p + slopes)."""
        basis = np.broadcast_to(H, (len(parts.linear), *H.shape))
        if self._n_slopes == 0:
            return basis
        slopes = family.slope_basis(parts.kernel, parts.linear, X)
        if parts.amplitude is not None:
            slopes = np.sqrt(parts.amplitude)[:, None, None] * slopes
        return np.concatenate([basis, slopes], axis=2)

    def _factorise(self, part: slice) -> None:
        rows = self.rows
        parts = self.prior.parts(self._theta[part])
        n, p = rows.H.shape
        A = rows.covariances(self._in_matrix(parts))
        log_determinant = np.empty(len(A))
        for each, own in enumerate(A):
            L, failed = lapack.dpotrf(own, lower=1, clean=1)
            if failed:
                L = np.eye(len(own))
            log_determinant[each] = np.inf if failed else 2.0 * np.log(np.diagonal(L)).sum()
            A[each] = lapack.dtrtri(L, lower=1)[0]
        root = A
        # L^-1 H over 0 = q r; of slopes, L^-1 Z over 1
        basis = np.zeros((len(A), n + self._n_slopes, p + self._n_slopes))
        basis[:, :n] = root @ self._basis(parts, rows.family, rows.family.X, rows.H)
        basis[:, n:, p:] = np.eye(self._n_slopes)
        q, r = np.linalg.qr(basis)
        error = np.zeros((len(A), n + self._n_slopes))
        error[:, :n] = (root @ self._z[part][:, :, None])[:, :, 0]
        if p:
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
    def transformed(self) -> Array:
        """Training targets under the transformation of each draw, (M, l)."""
        return self._z + self._origin[:, None]

    def precision(self) -> Array:
        """P of each draw, (M, l, l)."""
        projected = self._projected(slice(None))
        return projected.transpose(0, 2, 1) @ projected

    def joint(self, family: Family, H: Array, known: Array | None, draw: int) -> tuple[Array, Array]:
        """Means, (m,), and covariances, (m, m), of the targets of new rows together, under one draw.

        ``family`` is the kernel over the new rows; amplitudes that are integrated out are at their estimate.
        """
        one = Mixture(self.prior, self.rows, self._theta[[draw]])
        prediction = one.predict(family.X, H, known)
        parts = one._in_matrix(one.parts)
        covariance = TrainingRows(family, H, np.zeros(len(H)), known).covariances(parts)[0]
        k = self.rows.family.cross(parts.kernel, parts.linear, family.X)[0][0]
        if parts.amplitude is not None:
            k = k * parts.amplitude[0]
        half = one._root[0] @ k
        # k(x, x2) - u'u2 + g'g2
        covariance -= half.T @ half
        gap = one._gap(family.X, H, half[None])[0]
        covariance += gap.T @ gap
        if self.rows.known is None:
            covariance *= one.quadratic[0] / max(one.degrees, 1)
        return prediction.mean[0], covariance

    def _gap(self, new: Array, H: Array, half: Array) -> Array:
        """g = r^-T h(x) - q'u at new inputs, (M, p + slopes, m): what the training rows do not explain of h."""
        target = self._basis(self.parts, self.rows.family, new, H).transpose(0, 2, 1)
        return np.linalg.solve(self._r.transpose(0, 2, 1), target) - self._own_q.transpose(0, 2, 1) @ half

    @property
    def _own_q(self) -> Array:
        """Rows of q that are training rows, (M, l, p + slopes)."""
        return self._q[:, : self.rows.H.shape[0]]

    def predict(self, new: Array, H: Array, known: Array | None) -> MixturePrediction:
        """Predictions at m new inputs, with their mean basis, (m, p), and known noise variances, (m,)."""
        parts = self._in_matrix(self.parts)
        k, variance = self.rows.family.cross(parts.kernel, parts.linear, new)
        noise = parts.noise[:, None]
        if parts.amplitude is not None:
            amplitude = parts.amplitude[:, None]
            k *= amplitude[:, :, None]
            variance, noise = amplitude * variance, amplitude * noise
        if known is not None:
            noise = noise + known
        # u = L^-1 k, and k(x, x) - u'u with the noise
        half = self._root @ k
        variance = np.maximum(variance - np.einsum("mit,mit->mt", half, half), 0.0) + noise
        if self._q.shape[2]:
            # s gains g'g, and the weights are v = L^-T (u + q g)
            gap = self._gap(new, H, half)
            half += self._own_q @ gap
            variance += np.einsum("mpt,mpt->mt", gap, gap)
        weights = self._root.transpose(0, 2, 1) @ half
        mean = np.einsum("mit,mi->mt", weights, self._z) + self._origin[:, None]
        if (self.diagonal == 0.0).any():  # rows that are alone say nothing of other rows
            rounding = ALONE**2 * self._whole[:, :, None] * variance[:, None, :]
            weights[(self.diagonal == 0.0)[:, :, None] & (weights**2 <= rounding)] = 0.0
        return MixturePrediction(weights, mean, variance)
