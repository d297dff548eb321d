"""Low-rank Gaussian process regression (FITC): inducing inputs, and a fit as sums over rows.

Inducing inputs Z give each input features, and Woodbury's identity gives everything from sums over rows, so nothing of
size l x m need be kept (docs/theory_large.md, "A fit is a sum over rows"). The coefficients of the mean have a flat
prior: its basis is more features, of prior precision zero. Its columns are the directions that the *tuning* rows
determine. These rows stay in the model, so no other row ever determines a coefficient by itself.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.linalg import LinAlgError
from sklearn.gaussian_process.kernels import Kernel
from threadpoolctl import threadpool_limits

from conformal_gp.arrays import Array
from conformal_gp.gp.covariance import Cholesky, covariance, shared_variance, well_conditioned
from conformal_gp.gp.inputs import Inputs
from conformal_gp.rows import Rows


@dataclass(frozen=True)
class Sums:
    """Sums over rows; those of two blocks add up to those of both."""

    information: Array
    """Sum of f f' / λ."""
    moment: Array
    """Sum of f y / λ."""
    square: float
    """Sum of y² / λ."""
    log_noise: float
    """Sum of log λ."""
    gram: Array
    """H'H, the unweighted sum."""
    n_rows: int

    def __add__(self, other: Sums) -> Sums:
        return Sums(
            self.information + other.information,
            self.moment + other.moment,
            self.square + other.square,
            self.log_noise + other.log_noise,
            self.gram + other.gram,
            self.n_rows + other.n_rows,
        )


class LowRankPrior:
    """The model before it has seen its rows.

    Parameters
    ----------
    kernel : sklearn.gaussian_process.kernels.Kernel
        Covariance function.
    noise_variance : float
        Noise variance of each target in addition to what is known.
    inputs : Inputs
        Tuning rows: they bring the scaling and the mean basis.
    y : ndarray of shape (n_design,)
        Their targets, to which the mean is fitted first, only to reduce rounding.
    Z : ndarray of shape (m, d)
        Inducing inputs, scaled.
    """

    def __init__(self, kernel: Kernel, noise_variance: float, inputs: Inputs, y: Array, Z: Array):
        self._kernel = kernel
        self._noise_variance = noise_variance
        self.inputs = inputs
        self._first_fit = inputs.H.T @ y  # least squares: H has orthonormal columns
        self._Z = Z
        self._root = Cholesky(covariance(kernel, Z, Z)[0]).inverse_root

    @property
    def n_inducing(self) -> int:
        """Number m of inducing inputs."""
        return self._Z.shape[0]

    def features(self, rows: Rows) -> tuple[Array, Array]:
        """Features of n rows, of the kernel, then of the mean, (n, m + p); and the variance left over, (n,)."""
        new = self.inputs.new(rows)
        scaled = new.X
        phi = covariance(self._kernel, scaled, self._Z)[0] @ self._root.T  # phi = L^-1 k(Z, x)
        shared = shared_variance(self._kernel, scaled)
        noise = new.noise(self._noise_variance) + self._kernel.diag(scaled) - shared
        # FITC: lambda = sigma^2 + k(x, x) - |phi|^2
        noise += np.maximum(shared - np.einsum("ij,ij->i", phi, phi), 0.0)
        if not (noise > 0.0).all():
            raise LinAlgError(
                f"the low-rank model has rows without noise: give a noise_variance above {self._noise_variance:g}."
            )
        return np.hstack([phi, new.H]), noise

    def sums(self, rows: Rows, y: Array) -> Sums:
        """Sums over a block of rows."""
        F, noise = self.features(rows)
        H = F[:, self.n_inducing :]
        gram = H.T @ H
        residual = self.residual(F, y) / np.sqrt(noise)
        F /= np.sqrt(noise)[:, None]
        return Sums(F.T @ F, F.T @ residual, float(residual @ residual), float(np.log(noise).sum()), gram, y.size)

    def residual(self, F: Array, y: Array) -> Array:
        """Targets less the first fit of the mean. Under a flat prior that changes nothing but rounding."""
        return y - F[:, self.n_inducing :] @ self._first_fit

    def mean_coef(self, theta: Array) -> Array:
        """Coefficients on the columns of the mean function, from those of all features."""
        return self.inputs.coefficients(self._first_fit + theta[self.n_inducing :])

    def first_fit(self, F: Array) -> Array:
        """The first fit of the mean at rows of these features."""
        return F[:, self.n_inducing :] @ self._first_fit


class RowState(NamedTuple):
    """State of a block of n training rows for a comparison with test rows."""

    alpha: Array
    """(n,): weighted residuals."""
    diagonal: Array
    """(n,): inverse leave-one-out variances, the diagonal of P."""
    noise: Array
    """(n,): λ."""
    G: Array
    """(n, m + p): rows g."""
    prior: Array
    """(n,): prior variances of the targets, noise included."""

    @property
    def bound(self) -> Array:
        """(n,): |g| / λ; the weight of a row in a prediction is at most this times |w|."""
        return np.sqrt(np.einsum("ij,ij->i", self.G, self.G)) / self.noise

    def weights(self, W: Array) -> Array:
        """(k, n): weights v in the predictions at k inputs with rows ``W``."""
        weights = W @ self.G.T  # v_i = g_i'w / lambda_i
        weights /= self.noise
        return weights


class LowRankPosterior:
    """The model given the sums over its training rows.

    Parameters
    ----------
    prior : LowRankPrior
        The model.
    sums : Sums
        Over all training rows.

    Attributes
    ----------
    mean_coef : ndarray of shape (p,)
        Coefficients of the mean function.
    log_marginal_likelihood : float
        Restricted log likelihood of the targets, in a mean basis that is orthonormal over the training rows.
    """

    def __init__(self, prior: LowRankPrior, sums: Sums):
        self._prior = prior
        self.inputs = prior.inputs
        B = sums.information.copy()
        m = prior.n_inducing
        p = sums.gram.shape[0]
        # B = E + sum f f' / lambda
        B.flat[: m * B.shape[0] : B.shape[0] + 1] += 1.0
        # Scaled to a diagonal of ones, B is as well conditioned as scaling can make it. Intervals are trusted down to a
        # reciprocal condition number of 1e-12.
        scale = 1.0 / np.sqrt(np.diagonal(B))
        factor = well_conditioned(np.tril(B * scale * scale[:, None]), 1e-12, _singular)
        log_determinant = factor.log_determinant() - 2.0 * float(np.log(scale).sum())
        self._root = factor.inverse_root * scale  # R^-1
        # theta = B^-1 sum f y / lambda
        whitened = self._root @ sums.moment
        self._theta = whitened @ self._root
        self.mean_coef = prior.mean_coef(self._theta)
        # Woodbury: y'P y = sum y^2 / lambda - |R^-1 sum f y / lambda|^2, and |K + sigma^2 I| |H'CH| = |B| prod lambda
        quadratic = sums.square - float(whitened @ whitened)
        log_determinant += sums.log_noise - float(np.linalg.slogdet(sums.gram)[1])
        self.log_marginal_likelihood = -0.5 * (
            quadratic + log_determinant + (sums.n_rows - p) * float(np.log(2.0 * np.pi))
        )

    def mean(self, rows: Rows) -> Array:
        """Means of new targets."""
        return self._mean(self._prior.features(rows)[0])

    def _mean(self, F: Array) -> Array:
        return self._prior.first_fit(F) + F @ self._theta

    def new(self, rows: Rows) -> tuple[Array, Array, Array]:
        """Rows w of k new inputs, (k, m + p), and means and variances of their targets, noise included, (k,) each."""
        F, noise = self._prior.features(rows)
        mean = self._mean(F)
        F = F @ self._root.T
        return F, mean, noise + np.einsum("ij,ij->i", F, F)  # s = lambda(x) + |w|^2

    def rows(self, rows: Rows, y: Array) -> RowState:
        """State of training rows that are among the sums."""
        F, noise = self._prior.features(rows)
        # alpha_i = (y_i - f_i'theta) / lambda_i
        alpha = (self._prior.residual(F, y) - F @ self._theta) / noise
        phi = F[:, : self._prior.n_inducing]
        prior = noise + np.einsum("ij,ij->i", phi, phi)
        F = F @ self._root.T
        # P_ii = (1 - |g_i|^2 / lambda_i) / lambda_i; nothing but rounding is left of a tuning row that determines a
        # coefficient of the mean by itself
        left = np.maximum(1.0 - np.einsum("ij,ij->i", F, F) / noise, 1e-10)
        return RowState(alpha, left / noise, noise, F, prior)

    def summary(self, rows: Rows, y: Array) -> Array:
        """(5, n): alpha, diagonal, bound, size of the target and its prior variance, of training rows."""
        state = self.rows(rows, y)
        return np.stack([state.alpha, state.diagonal, state.bound, np.abs(y), state.prior])


def _singular(condition: float, norm: float) -> str:
    return (
        f"the low-rank model is numerically singular (reciprocal condition {condition:.1e}); give a larger "
        "noise_variance, a shorter length scale or fewer inducing inputs."
    )


def independent(kernel: Kernel, Z: Array) -> Array:
    """Inputs whose covariances are linearly independent up to rounding, in the order of Cholesky pivots.

    Each is the one of largest variance given those before; those without any variance left are dropped.

    >>> from sklearn.gaussian_process.kernels import RBF
    >>> independent(RBF(1.0), np.array([[0.0], [0.1], [5.0], [0.0]])).ravel()
    array([0. , 5. , 0.1])
    """
    K = covariance(kernel, Z, Z)[0]
    left = shared_variance(kernel, Z)
    # an input of less variance, given those chosen before, adds nothing but rounding: K_ZZ then needs no jitter
    least = 1e-8 * left.max()
    factor = np.empty(K.shape)
    chosen: list[int] = []
    for row in factor:
        pivot = int(np.argmax(left))
        if left[pivot] <= least:
            break
        earlier = factor[: len(chosen)]
        row[:] = (K[pivot] - earlier[:, pivot] @ earlier) / np.sqrt(left[pivot])
        left -= row**2
        left[pivot] = 0.0
        chosen.append(pivot)
    return Z[chosen]


def centres(kernel: Kernel, X: Array, n_inducing: int, rng: np.random.RandomState) -> Array:
    """Centres of k-means: they cover the bulk of the rows, where rows of largest variance would be outlying ones.

    Parameters
    ----------
    kernel : sklearn.gaussian_process.kernels.Kernel
        Covariance function.
    X : ndarray of shape (n, d)
        Scaled inputs of some rows.
    n_inducing : int
        Number of centres; fewer if fewer inputs differ.
    rng : numpy.random.RandomState
        Draws the start of k-means.

    Returns
    -------
    Z : ndarray of shape (at most n_inducing, d)
        Inducing inputs whose covariance matrix is not singular up to rounding.
    """
    from sklearn.cluster import KMeans  # takes half a second to import, so only where it is needed

    n_clusters = min(n_inducing, np.unique(X, axis=0).shape[0])
    with threadpool_limits(1, user_api="openmp"):  # sums and centres then do not depend on the order of threads
        found = KMeans(n_clusters, n_init=1, random_state=rng).fit(X)
    return independent(kernel, found.cluster_centers_)


def unexplained_variance(kernel: Kernel, X: Array, Z: Array) -> float:
    """Mean variance at rows ``X`` given the GP at inducing inputs ``Z``."""
    half = Cholesky(covariance(kernel, Z, Z)[0]).half_solve(covariance(kernel, Z, X)[0])
    return float(np.mean(shared_variance(kernel, X) - np.einsum("ij,ij->j", half, half)))
