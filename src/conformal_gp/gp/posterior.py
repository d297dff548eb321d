r"""A Gaussian process given its training rows: everything that a prediction needs, for many test inputs at once.

Notation: :math:`C = (K + \sigma^2 I)^{-1}` over the l training rows; for a test input x, :math:`k = k(X, x)`,
weights :math:`v = C k`, mean :math:`\mu`, and variance of a new label :math:`s = k(x, x) + \sigma^2 - k'v`.

A mean function h(x)'β enters in one of two ways. With *given* coefficients it is subtracted from the labels. With a
*flat prior* on its coefficients (universal kriging) C becomes
:math:`P = C - C H (H'CH)^{-1} H'C`, and v and s become the universal kriging weights and variance: nothing is then
estimated from the training rows alone. Either way the inverse over l + 1 rows is, in blocks,

.. math::
    \begin{pmatrix} P + v v' / s & -v / s \\ -v' / s & 1 / s \end{pmatrix}.

Weights come from two products with the inverse Cholesky root, :math:`v = L^{-\top} (L^{-1} k)`. They cost as much as
one product with C, but their rounding errors grow with the condition number where those of C grow with its square.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.linalg import LinAlgError
from numpy.typing import NDArray
from scipy.linalg import cho_factor, cho_solve
from sklearn.gaussian_process.kernels import Kernel

from conformal_gp.gp.covariance import covariance
from conformal_gp.gp.factor import Factor, norm_of_lower
from conformal_gp.gp.inputs import Inputs, NewInputs
from conformal_gp.gp.lapack import multiply_triangle
from conformal_gp.gp.likelihood import generalised_least_squares

Array = NDArray[np.float64]


class Halfway(NamedTuple):
    """Prediction for a block of m test inputs, but for the second half of its cost, the weights."""

    half: Array
    """(m, l): h, from which the weights are L^-T h."""
    mean: Array
    """(m,): mean of a new label."""
    variance: Array
    """(m,): variance s of a new label, noise included."""
    square: Array
    """(m,): squared length of h."""


class Prediction(NamedTuple):
    """Prediction for a block of m test inputs."""

    weights: Array
    """(m, l): weight v of each training label in the mean."""
    mean: Array
    """(m,): mean of a new label."""
    variance: Array
    """(m,): variance s of a new label, noise included."""


class Posterior:
    """Gaussian process conditioned on training rows.

    Parameters
    ----------
    kernel : sklearn.gaussian_process.kernels.Kernel
        Covariance function.
    noise_variance : float
        Variance of the noise that each label carries.
    inputs : Inputs
        Training inputs and their mean basis.
    y : ndarray of shape (l,)
        Training labels.
    flat_prior : bool
        Whether the coefficients of the mean have a flat prior, or are taken as given at their estimate.

    Attributes
    ----------
    alpha : ndarray of shape (l,)
        Weighted residuals, ``P y`` or ``C (y - H β)``.
    diagonal : ndarray of shape (l,)
        Diagonal of ``P`` or ``C``: inverse leave-one-out variances.
    coefficients : ndarray of shape (p,)
        Generalised least squares coefficients β of the mean basis.
    quadratic : float
        ``y' P y`` or ``(y - H β)' C (y - H β)``.
    log_determinant : float
        log |K + σ² I|, and with a flat prior log |H'CH| added.
    degrees_of_freedom : int
        l, less the number of coefficients with a flat prior.
    root : ndarray of shape (l, l)
        L^-1, lower triangular, in Fortran's order.
    """

    def __init__(self, kernel: Kernel, noise_variance: float, inputs: Inputs, y: Array, *, flat_prior: bool = False):
        self.kernel = kernel
        self.noise_variance = noise_variance
        self._inputs = inputs
        H = inputs.H
        A = inputs.pairs.lower(covariance(kernel, inputs.pairs)[0])
        A.flat[:: A.shape[0] + 1] += noise_variance
        factor = _trustworthy(A)
        self._CH = factor.solve(H) if H.shape[1] else H
        self.coefficients = generalised_least_squares(H, self._CH, y)
        residual = y - H @ self.coefficients
        if np.abs(residual).max() <= 1e-13 * np.abs(y).max():
            residual[:] = 0.0  # the mean function explains the labels: what is left is rounding
        self.alpha = factor.solve(residual)
        self.quadratic = float(residual @ self.alpha)
        self.log_determinant = factor.log_determinant()
        self.degrees_of_freedom = y.size
        self.root = np.asfortranarray(factor.inverse_root())
        self.diagonal = np.einsum("ij,ij->j", self.root, self.root)
        self._information_inverse: Array | None = None
        if flat_prior and H.shape[1]:
            information = cho_factor(H.T @ self._CH)
            self.log_determinant += 2.0 * float(np.log(np.diagonal(information[0])).sum())
            self.degrees_of_freedom -= H.shape[1]
            self._information_inverse = cho_solve(information, np.eye(H.shape[1]))
            self._whitened_basis = self.root @ H
            lost = np.einsum("ij,jk,ik->i", self._CH, self._information_inverse, self._CH)
            settle(self.alpha, self.diagonal, lost)

    @property
    def log_marginal_likelihood(self) -> float:
        """Log density of the labels; with a flat prior, the restricted one, in the basis given."""
        return -0.5 * (self.quadratic + self.log_determinant + self.degrees_of_freedom * np.log(2.0 * np.pi))

    def precision(self, rows: NDArray[np.int64]) -> Array:
        """Block of P or C among some of the training rows: the inverse of their covariance given the others."""
        columns = self.root[:, rows]
        block = columns.T @ columns
        if self._information_inverse is not None:
            CH = self._CH[rows]
            block -= CH @ self._information_inverse @ CH.T
            block.flat[:: rows.size + 1] = self.diagonal[rows]  # settled, where rounding is all that is left
        return block

    def predict(self, new: NewInputs) -> Prediction:
        """Weights, means and variances of the labels of new inputs."""
        weights, mean, variance, _ = self.halfway(new)
        multiply_triangle(self.root, weights, transposed=True)
        return Prediction(weights, mean, variance)

    def halfway(self, new: NewInputs) -> Halfway:
        """Means and variances of the labels of new inputs, and what weights are made from."""
        K, _ = covariance(self.kernel, new.pairs)
        mean = self._mean(K, new)
        total = self.kernel.diag(new.pairs.X) + self.noise_variance
        spread = self._coefficient_spread(K, new)
        multiply_triangle(self.root, K, transposed=False)
        half = K
        square = np.einsum("ij,ij->i", half, half)
        variance = total - square
        if spread is not None:
            unexplained, scaled = spread
            variance += np.einsum("ij,ij->i", unexplained, scaled)
            half += scaled @ self._whitened_basis.T  # the weights gain C H (H'CH)^-1 (h - H'C k)
            square = np.einsum("ij,ij->i", half, half)
            # A flat prior says nothing where the training rows determine no coefficient.
            variance[new.undetermined] = np.inf
        check_resolved(variance, total)
        return Halfway(half, mean, variance, square)

    def _coefficient_spread(self, K: Array, new: NewInputs) -> tuple[Array, Array] | None:
        """With a flat prior, h - H'C k, and that times (H'CH)^-1."""
        if self._information_inverse is None:
            return None
        unexplained = new.H - K @ self._CH
        return unexplained, unexplained @ self._information_inverse

    def mean(self, new: NewInputs) -> Array:
        """Means; cheaper than :meth:`predict` by a factor of the training rows."""
        return self._mean(covariance(self.kernel, new.pairs)[0], new)

    def _mean(self, K: Array, new: NewInputs) -> Array:
        return K @ self.alpha + new.H @ self.coefficients


# Smallest reciprocal condition number, and smallest share of its prior variance that a test row may keep, at which
# intervals were within 1e-6 of a high-precision calculation (tests/gp/test_precision.py).
_SMALLEST_CONDITION = 1e-10
_SMALLEST_SHARE = 1e-10


def settle(alpha: Array, diagonal: Array, lost: Array) -> None:
    """Subtract from diag(C) what a flat prior takes away, in place, and settle rows of which it takes all.

    The only row of its category, say, determines a coefficient by itself: left out, its label could be anything. Its
    inverse leave-one-out variance and its weighted residual are zero, not what rounding leaves of them.
    """
    alone = diagonal - lost <= 1e-10 * diagonal
    diagonal -= lost
    diagonal[alone] = 0.0
    alpha[alone] = 0.0


def noise_floor(norm: float) -> float:
    """Noise variance at which a covariance matrix of this 1-norm is safely well conditioned."""
    return 4.0 * _SMALLEST_CONDITION * norm


def _trustworthy(A: Array) -> Factor:
    """Factorise, or say why not: noise that is lost in rounding gives wrong intervals, so it gives an error."""
    norm = norm_of_lower(A)
    try:
        factor = Factor(A)
        condition = factor.reciprocal_condition(norm)
    except LinAlgError:
        condition = 0.0
    if condition < _SMALLEST_CONDITION:
        raise LinAlgError(
            f"the covariance matrix is numerically singular (reciprocal condition {condition:.1e}): the inputs are "
            f"too close for this kernel and noise. Give a noise_variance of at least {noise_floor(norm):.1e}, a "
            "shorter length scale, or drop duplicate rows."
        )
    return factor


def check_resolved(variance: Array, total: Array) -> None:
    """Raise an error if a variance is lost in the rounding of the total that it was taken from."""
    unresolved = np.flatnonzero(variance < _SMALLEST_SHARE * total)
    if unresolved.size:
        raise LinAlgError(
            f"the variance of {unresolved.size} test rows cannot be told from rounding: they are too close to "
            "training rows for this noise; give a larger noise_variance."
        )
