r"""A Gaussian process given its training rows: everything that a prediction needs, for many test inputs at once.

The mean function h(x)'β has *given* coefficients, or a *flat prior* on them (universal kriging; Rasmussen and Williams
(2006), section 2.7). All comes from :math:`L L' = K + \sigma^2 I` (Algorithm 2.1) and the orthogonal factor of the
whitened basis, :math:`L^{-1} H = q r`. With :math:`u = L^{-1} k`, :math:`e = (I - q q') L^{-1} y` and :math:`g =
r^{-\top} h(x) - q'u`,

.. math::
    P = L^{-\top} (I - q q') L^{-1}, \quad P y = L^{-\top} e, \quad y'Py = e'e, \quad
    v = L^{-\top} (u + q g), \quad s = k(x, x) + \sigma^2 - u'u + g'g .

Projections, unlike differences of quadratic forms, keep their relative accuracy where a row almost alone determines a
coefficient of the mean: a far-out input, or the only row of its category.
"""

from __future__ import annotations

from functools import cached_property, partial
from typing import NamedTuple

import numpy as np
from numpy.linalg import LinAlgError
from scipy.linalg import solve_triangular
from sklearn.gaussian_process.kernels import Kernel

from conformal_gp.arrays import Array, Indices
from conformal_gp.gp.covariance import (
    Cholesky,
    check_matrix,
    check_variances,
    covariance,
    shared_variance,
    well_conditioned,
)
from conformal_gp.gp.inputs import Inputs, NewInputs
from conformal_gp.gp.kernels import is_definite
from conformal_gp.threads import slices

# Smallest reciprocal condition number, and smallest share of its prior variance that a test row may keep, that are not
# refused. Ends of intervals are then within 2e-3 of a high-precision calculation, relative to the targets; within 1e-4
# at reciprocal condition numbers from 1e-12 on, and within 1e-6 from 1e-10 on (tests/gp/test_precision.py).
SMALLEST_CONDITION = 1e-14
SMALLEST_SHARE = 1e-12
# Residuals below this share of the targets are rounding: the mean function explains them.
EXPLAINED = 1e-13
# A row whose inverse leave-one-out standard deviation the flat prior reduces to less than this share determines a
# coefficient by itself, up to rounding: left out, its target could be anything.
ALONE = 1e-11


class Prediction(NamedTuple):
    """Prediction for a block of m test inputs."""

    weights: Array
    """(m, l): weight v of each training target in the mean."""
    mean: Array
    """(m,): mean of a new target."""
    variance: Array
    """(m,): variance s of a new target, noise included; infinite where its mean is not determined."""
    prior: Array
    """(m,): its prior variance, noise included."""


class Sizes(NamedTuple):
    """Magnitudes of the numbers from which scores come: rounding errors are in proportion."""

    relative: float
    """Largest ratio of a target's prior variance to its leave-one-out variance."""
    precision: float
    """Largest inverse leave-one-out variance."""
    residual: float
    """Length of ``alpha``, each entry times its target's prior standard deviation; or, if that is more, of the whitened
    residuals of a least squares fit before projection."""
    label: float
    """Largest target."""


class Posterior:
    """Gaussian process conditioned on training rows.

    Parameters
    ----------
    kernel, noise_variance : Kernel and float
        Covariance function, and variance of the noise in addition to what is known of rows.
    inputs, y : Inputs and ndarray of shape (l,)
        Training rows.
    flat_prior : bool, default=True
        Whether the coefficients of the mean have a flat prior, or are taken as given at their estimate.
    checked : bool, default=True
        Whether to refuse a matrix that is numerically singular, and test rows whose variance is lost in rounding.
    earlier : Posterior or None, default=None
        The same GP given the first of these rows alone: its Cholesky factor is extended, at the cost of l^2 a row.

    Attributes
    ----------
    alpha, coefficients : ndarray of shape (l,), (p,)
        Weighted residuals ``P y``, or ``C (y - H β)``, and generalised least squares coefficients β.
    quadratic, log_determinant, degrees_of_freedom : float, float and int
        ``y' P y``; log |K + σ² I|, with a flat prior log |H'CH| added; and l less the number of flat coefficients.
    noise, prior : ndarray of shape (l,)
        Noise variances of the training targets, and their prior variances, noise included.
    """

    def __init__(
        self,
        kernel: Kernel,
        noise_variance: float,
        inputs: Inputs,
        y: Array,
        *,
        flat_prior: bool = True,
        checked: bool = True,
        earlier: Posterior | None = None,
    ):
        self.kernel = kernel
        self.noise_variance = noise_variance
        self._checked = checked
        self._X, self._H, self.y = inputs.X, inputs.H, y
        self._flat = flat_prior and self._H.shape[1] > 0
        self.noise = inputs.noise(noise_variance)
        self.prior = kernel.diag(self._X) + self.noise
        self._factor = self._factorised() if earlier is None or not self._extends() else self._extended(earlier)
        self.log_determinant = self._factor.log_determinant()
        self.degrees_of_freedom = y.size
        self._fit_targets()
        if self._flat:
            self.log_determinant += 2.0 * float(np.log(np.abs(np.diagonal(self._r))).sum())
            self.degrees_of_freedom -= self._H.shape[1]

    def _factorised(self) -> Cholesky:
        """L from all rows."""
        A = np.asfortranarray(np.tril(covariance(self.kernel, self._X)[0]))
        check_matrix(self.kernel, A)
        A.flat[:: self.y.size + 1] += self.noise
        refusal = partial(_singular, largest=float(self.prior.max()))
        return well_conditioned(A, SMALLEST_CONDITION, refusal) if self._checked else Cholesky(A)

    def _extends(self) -> bool:
        """Whether the matrix A of all rows is known to be well conditioned without a look at it."""
        # |A|_1 <= max_i sum_j sqrt(A_ii A_jj), and |A^-1|_1 <= sqrt(l) |A^-1|_2 <= sqrt(l) / min_i sigma_i^2
        deviation, noise = np.sqrt(self.prior), self.prior - shared_variance(self.kernel, self._X)
        norms = deviation.max() * deviation.sum() * np.sqrt(self.y.size)
        return is_definite(self.kernel) and bool(noise.min() >= SMALLEST_CONDITION * norms)

    def _extended(self, earlier: Posterior) -> Cholesky:
        """L by way of the factor of the first rows."""
        n = earlier.y.size
        corner = covariance(self.kernel, self._X[n:])[0] + np.diag(self.noise[n:])
        return earlier._factor.extended(covariance(self.kernel, self._X[n:], self._X[:n])[0], corner)

    def _fit_targets(self) -> None:
        """Generalised least squares, of what a first fit leaves, to reduce rounding."""
        first_fit = self._H.T @ self.y  # H has orthonormal columns
        rest = self.y - self._H @ first_fit
        # L^-1 H = q r, and e = (I - q q') L^-1 y
        self._q, self._r = np.linalg.qr(self._factor.half_solve(np.array(self._H, order="F")))
        error = self._factor.half_solve(rest)
        target = np.zeros(first_fit.size)
        for _ in range(2):  # twice, so that what is left is orthogonal to the basis up to rounding
            part = self._q.T @ error
            error = error - self._q @ part
            target += part
        target = solve_triangular(self._r, target) if target.size else target
        left = np.abs(rest - self._H @ target).max()
        if left <= EXPLAINED * np.abs(self.y).max():
            error[:] = 0.0
        self.coefficients = first_fit + target
        self.quadratic = float(error @ error)
        self.alpha = self._factor.half_solve(error, transposed=True)  # alpha = L^-T e

    @cached_property
    def _root(self) -> Array:
        """(I - q q') L^-1, of which P is the product with itself; without a flat prior L^-1."""
        root = self._factor.inverse_root
        return root - self._q @ (self._q.T @ root) if self._flat else root

    @cached_property
    def diagonal(self) -> Array:
        """Diagonal of P or C, (l,): inverse leave-one-out variances; 0 for a row that determines a coefficient."""
        # P_ii = 1 / sigma_i^2, equation 5.12
        projected = np.einsum("ij,ij->j", self._root, self._root)
        if not self._flat:
            return projected
        explained = self._factor.half_solve(np.array(self._q, order="F"), transposed=True)  # L^-T q
        whole = projected + np.sum(explained**2, axis=1)
        return np.where(projected <= ALONE**2 * whole, 0.0, projected)

    @cached_property
    def sizes(self) -> Sizes:
        """Magnitudes of the numbers that scores come from."""
        residual = float(np.linalg.norm(np.sqrt(self.prior) * self.alpha))
        explained = self._r @ (self.coefficients - self._H.T @ self.y)
        whitened = float(np.sqrt(self.quadratic + explained @ explained))
        return Sizes(
            float((self.prior * self.diagonal).max()),
            float(self.diagonal.max()),
            max(residual, whitened),
            float(np.abs(self.y).max()),
        )

    @cached_property
    def residuals(self) -> Array:
        """``alpha``, but 0 for a row that by itself determines a coefficient, (l,)."""
        return np.where(self.diagonal > 0.0, self.alpha, 0.0)

    @property
    def log_marginal_likelihood(self) -> float:
        """Log density of the targets; with a flat prior, the restricted one, in the basis given."""
        # equation 2.30, and with a flat prior 2.45
        return -0.5 * (self.quadratic + self.log_determinant + self.degrees_of_freedom * np.log(2.0 * np.pi))

    def columns(self, rows: Indices) -> Array:
        """Columns of P or C for some of the training rows, (l, k)."""
        return self._root.T @ self._root[:, rows]

    def prepare(self) -> None:
        """Compute what blocks of test rows share, before threads ask for it."""
        for name in ("diagonal", "residuals", "sizes", "_inverse_root"):
            getattr(self, name)

    def correlations(self) -> Array:
        """Correlations of leave-one-out residuals of the training rows, up to sign: P over roots of its diagonal."""
        root = self._root / np.sqrt(np.where(self.diagonal > 0.0, self.diagonal, np.inf))
        return root.T @ root

    def mean(self, new: NewInputs) -> Array:
        """Means; cheaper than :meth:`moments` by a factor of the training rows."""
        return covariance(self.kernel, new.X, self._X)[0] @ self.alpha + new.H @ self.coefficients

    def moments(self, new: NewInputs) -> tuple[Array, Array]:
        """Means and variances of new targets, (m,) each."""
        mean, variance, *_ = self._half(new)
        return mean, variance

    def predict(self, new: NewInputs) -> Prediction:
        """Weights, means and variances of new targets."""
        mean, variance, half, prior = self._half(new)
        return Prediction(self._half_solve(half, transposed=True).T, mean, variance, prior)

    @cached_property
    def _inverse_root(self) -> Array | None:
        """L^-1, or None where products with it are not precise enough."""
        # of a test row that is equal to a training row, products keep only 3 digits at a ratio of 1e-10
        precise = self.noise.min() > 1e-5 * self.prior.max()
        return self._factor.inverse_root if precise else None

    def _half_solve(self, B: Array, *, transposed: bool = False) -> Array:
        """L^-1 B, or L^-T B; B is used up."""
        if self._inverse_root is None:
            return self._factor.half_solve(B, transposed=transposed)
        product = np.empty_like(B)
        # SciPy's product with a triangle holds the interpreter's lock; eight blocks of rows skip most of its zeros too
        for block in slices(len(B), -(-len(B) // 8)):
            if transposed:
                product[block] = self._inverse_root[block.start :, block].T @ B[block.start :]
            else:
                product[block] = self._inverse_root[block, : block.stop] @ B[: block.stop]
        return product

    def _half(self, new: NewInputs) -> tuple[Array, Array, Array, Array]:
        """Means, variances, u + q g, (l, m), and prior variances."""
        K = covariance(self.kernel, new.X, self._X)[0]
        mean = K @ self.alpha + new.H @ self.coefficients  # k'alpha + h(x)'beta, equation 2.41
        half = self._half_solve(K.T)  # u = L^-1 k
        square = np.einsum("ij,ij->j", half, half)
        gap = np.empty((0, mean.size))
        if self._flat:
            # g = r^-T h(x) - q'u, R of equation 2.42 as B -> infinity; weights are L^-T (u + q g)
            gap = solve_triangular(self._r, new.H.T, trans="T") - self._q.T @ half
            half = half + self._q @ gap
        variance, prior = self._variances(new, square, gap)
        return mean, variance, half, prior

    def _variances(self, new: NewInputs, square: Array, gap: Array) -> tuple[Array, Array]:
        """Variances of new targets from u'u and g, (p, m), and their prior variances."""
        noise = new.noise(self.noise_variance)
        prior = noise + self.kernel.diag(new.X)
        check_variances(self.kernel, prior - noise - square, prior)
        variance = np.maximum(prior - square, noise)  # Algorithm 2.1, line 6; no target varies less than its noise
        if self._checked:
            check_resolved(variance, prior)
        if self._flat:
            spread = np.einsum("ij,ij->j", gap, gap)
            # A flat prior says nothing where the training rows determine no coefficient, or only by rounding.
            undetermined = new.undetermined | (variance <= ALONE**2 * spread)
            variance = np.where(undetermined, np.inf, variance + spread)  # s = k(x, x) + noise - u'u + g'g, eq. 2.42
        return variance, prior

    def covariance(self, new: NewInputs) -> Array:
        """Covariances of the targets of new inputs with each other, noise included, (m, m)."""
        _, variance, half, _ = self._half(new)
        u = self._factor.half_solve(covariance(self.kernel, new.X, self._X)[0].T)
        both = half.T @ u
        # k(x, x2) - v'k2 - v2'k + v'C^-1 v2
        found = covariance(self.kernel, new.X, new.X)[0] - both - both.T + half.T @ half
        np.fill_diagonal(found, variance)
        return found


def noise_floor(norm: float) -> float:
    """Noise variance at which a covariance matrix of this 1-norm is safely well conditioned."""
    return 4.0 * SMALLEST_CONDITION * norm


def _singular(condition: float, norm: float, largest: float) -> str:
    enough = max(noise_floor(norm), 2.0 * SMALLEST_SHARE * largest)
    return (
        f"the covariance matrix is numerically singular (reciprocal condition {condition:.1e}): the inputs are "
        f"too close for this kernel and noise. Give a noise_variance of at least {enough:.1e}, a "
        "shorter length scale, or drop duplicate rows."
    )


def check_resolved(variance: Array, total: Array) -> None:
    """Raise an error if a variance is lost in the rounding of the total that it was taken from."""
    unresolved = np.flatnonzero(variance < SMALLEST_SHARE * total)
    if unresolved.size:
        raise LinAlgError(
            f"the variance of {unresolved.size} test rows cannot be told from rounding: they are too close to "
            "training rows for this noise; give a larger noise_variance."
        )
