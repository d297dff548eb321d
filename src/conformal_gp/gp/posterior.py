r"""A Gaussian process given its training rows: everything that a prediction needs, for many test inputs at once.

Notation: :math:`C = (K + \sigma^2 I)^{-1}` over the l training rows; for a test input x, :math:`k = k(X, x)`,
weights :math:`v = C k`, mean :math:`\mu`, and variance of a new label :math:`s = k(x, x) + \sigma^2 - k'v`. Where rows
have noise of their own (:mod:`conformal_gp.gp.noise`), the diagonal of their variances stands for :math:`\sigma^2 I`,
and the test row's for :math:`\sigma^2` in s.

A mean function h(x)'β enters in one of two ways. With *given* coefficients it is subtracted from the labels. With a
*flat prior* on its coefficients (universal kriging) C becomes
:math:`P = C - C H (H'CH)^{-1} H'C`, and v and s become the universal kriging weights and variance: nothing is then
estimated from the training rows alone. Either way the inverse over l + 1 rows is, in blocks,

.. math::
    \begin{pmatrix} P + v v' / s & -v / s \\ -v' / s & 1 / s \end{pmatrix}.

All of it comes from :math:`L L' = K + \sigma^2 I` and the orthogonal factor of the whitened basis,
:math:`L^{-1} H = q r`. With :math:`u = L^{-1} k`, :math:`e = (I - q q') L^{-1} y` and :math:`g = r^{-\top} h(x) - q'u`,

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
from sklearn.gaussian_process.kernels import Kernel

from conformal_gp.gp.covariance import Pairs, covariance
from conformal_gp.gp.factor import (
    Factor,
    check_matrix,
    check_variances,
    log_determinant,
    multiply_triangle,
    trustworthy,
)
from conformal_gp.gp.inputs import Inputs, NewInputs
from conformal_gp.gp.whitened_basis import ALONE, explain, leave_out
from conformal_gp.types import Array, Rows

# Smallest reciprocal condition number, and smallest share of its prior variance that a test row may keep, that are not
# refused. Ends of intervals are then within 2e-3 of a high-precision calculation, relative to the labels; within 1e-4
# at reciprocal condition numbers from 1e-12 on, and within 1e-6 from 1e-10 on (tests/gp/test_precision.py).
SMALLEST_CONDITION = 1e-14
SMALLEST_SHARE = 1e-12
# At less noise, relative to the largest variance, products with L^-1 are less precise than solutions with L: of a test
# row that is equal to a training row they keep but 3 digits at a ratio of 1e-10.
NOISE_FOR_ROOT = 1e-5


class Moments(NamedTuple):
    """Prediction for a block of m test inputs, but for the second half of its cost, the weights."""

    half: Array
    """(m, l): u + q g, from which the weights are L^-T (u + q g)."""
    mean: Array
    """(m,): mean of a new label."""
    variance: Array
    """(m,): variance s of a new label, noise included; infinite where its mean is not determined."""
    square: Array
    """(m,): squared length of ``half``."""
    prior: Array
    """(m,): prior variance of a new label, noise included."""


class Prediction(NamedTuple):
    """Prediction for a block of m test inputs."""

    weights: Array
    """(m, l): weight v of each training label in the mean."""
    mean: Array
    """(m,): mean of a new label."""
    variance: Array
    """(m,): variance s of a new label, noise included."""
    prior: Array
    """(m,): its prior variance."""


class Sizes(NamedTuple):
    """Of what size the numbers are from which scores come: rounding errors are in proportion."""

    relative: float
    """Largest ratio of a label's prior variance to its leave-one-out variance."""
    precision: float
    """Largest inverse leave-one-out variance."""
    residual: float
    """Length of ``alpha``, each entry times its label's prior standard deviation; or, if that is more, of the labels
    seen through L^-1 but for a first fit, of which the mean basis is taken away: as with rows that are nearly equal,
    which an input with a coefficient of its own tells apart."""
    label: float
    """Largest label."""


class Without(NamedTuple):
    """The training rows but for one of them, for each of k rows to leave out.

    Its label is replaced by what the others predict: then it has no say, and takes no digits from them if it is far
    out, as differences of quadratic forms would.
    """

    precision: Array
    """(k,): its P_ii; 0 if it determines a coefficient by itself, and then it cannot be left out."""
    quadratic: Array
    """(k,): y'Py of the others."""
    columns: Array
    """(k, l): its column of L^-1, whose product with ``Moments.half`` is its weight."""
    target: Array
    """(k, l): whose product with ``Moments.half`` is the mean that the others give, less the first fit."""
    labels: Array
    """(k, l): whose product with the weights is the same."""
    first_fit: Array
    """(k, p): coefficients of the mean basis."""


class Posterior:
    """Gaussian process conditioned on training rows.

    Parameters
    ----------
    kernel : sklearn.gaussian_process.kernels.Kernel
        Covariance function.
    noise_variance : float
        Variance of the noise that each label carries, times its row's weight and besides what is known.
    inputs : Inputs
        Training inputs, their mean basis and their noise.
    y : ndarray of shape (l,)
        Training labels.
    flat_prior : bool
        Whether the coefficients of the mean have a flat prior, or are taken as given at their estimate.
    checked : bool, default=True
        Whether to refuse a matrix that is numerically singular, and test rows whose variance is lost in rounding.
        Tuning keeps away from these by itself.

    Attributes
    ----------
    y : ndarray of shape (l,)
        Training labels.
    alpha : ndarray of shape (l,)
        Weighted residuals, ``P y`` or ``C (y - H β)``.
    coefficients : ndarray of shape (p,)
        Generalised least squares coefficients β of the mean basis.
    quadratic : float
        ``y' P y``, which is also ``(y - H β)' C (y - H β)``.
    log_determinant : float
        log |K + σ² I|, and with a flat prior log |H'CH| added.
    noise : ndarray of shape (l,)
        Noise variances of the training rows' labels.
    prior : ndarray of shape (l,)
        Their prior variances, noise included.
    largest_variance : float
        The largest of them.
    degrees_of_freedom : int
        l, less the number of coefficients with a flat prior.
    """

    def __init__(
        self,
        kernel: Kernel,
        noise_variance: float,
        inputs: Inputs,
        y: Array,
        *,
        flat_prior: bool = False,
        checked: bool = True,
    ):
        self.kernel = kernel
        self.noise_variance = noise_variance
        self._checked = checked
        H = inputs.H
        self._H, self.y = H, y
        A = inputs.pairs.lower_in_place(covariance(kernel, inputs.pairs)[0])
        check_matrix(kernel, A)
        self._stationary = float(A[0, 0]) if kernel.is_stationary() else None
        self.noise = inputs.noise.variance(noise_variance)
        A.flat[:: A.shape[0] + 1] += self.noise
        self.prior = A.diagonal().copy()
        self.largest_variance = float(self.prior.max())
        refusal = partial(_singular, largest=self.largest_variance)
        self._factor = trustworthy(A, SMALLEST_CONDITION, refusal) if checked else Factor(A)
        self._flat = flat_prior and H.shape[1] > 0
        self._basis, self.coefficients, self.alpha, self.quadratic = explain(self._factor.lower, H, y)
        self.log_determinant = log_determinant(self._factor.lower)
        self.degrees_of_freedom = y.size
        if self._flat:
            self.log_determinant += log_determinant(self._basis.r)
            self.degrees_of_freedom -= H.shape[1]

    @cached_property
    def root(self) -> Array:
        """L^-1, lower triangular, in Fortran's order, (l, l)."""
        return np.asfortranarray(self._factor.inverse_root())

    @cached_property
    def diagonal(self) -> Array:
        """Diagonal of P or C, (l,): inverse leave-one-out variances; 0 for a row that determines a coefficient."""
        diagonal = np.einsum("ij,ij->j", self.root, self.root)
        if self._flat:
            left = self._projected(self.root)
            projected = np.einsum("ij,ij->j", left, left)
            diagonal = np.where(projected <= ALONE**2 * diagonal, 0.0, projected)
        return diagonal

    @cached_property
    def sizes(self) -> Sizes:
        """Of what size the numbers are that scores come from."""
        residual = float(np.linalg.norm(np.sqrt(self.prior) * self.alpha))
        explained = self._basis.r @ (self.coefficients - self._H.T @ self.y)
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

    def _projected(self, columns: Array) -> Array:
        """(I - q q') of whitened columns."""
        return columns - self._basis.q.T @ (self._basis.q @ columns) if self._flat else columns

    @property
    def log_marginal_likelihood(self) -> float:
        """Log density of the labels; with a flat prior, the restricted one, in the basis given."""
        return -0.5 * (self.quadratic + self.log_determinant + self.degrees_of_freedom * np.log(2.0 * np.pi))

    def precision(self, rows: Rows) -> Array:
        """Block of P or C among some of the training rows: the inverse of their covariance given the others."""
        columns = self._projected(self.root[:, rows])
        block = columns.T @ columns
        block.flat[:: rows.size + 1] = self.diagonal[rows]
        return block

    def without(self, rows: Rows) -> Without:
        """The training rows but for one of them, for each of some rows."""
        return Without(*leave_out(self._factor.lower, self._basis, self._H, self.y, self.alpha, rows, self._flat))

    def moments(self, new: NewInputs, by_root: bool = True) -> Moments:
        """Means and variances of the labels of new inputs, and what weights are made from.

        By products with L^-1, or, where that is not needed otherwise or the noise is small, by solving with L.
        """
        K, _ = covariance(self.kernel, new.pairs)
        by_root = by_root and self.noise.min() > NOISE_FOR_ROOT * self.largest_variance
        mean = K @ self.alpha + new.H @ self.coefficients
        noise = new.noise.variance(self.noise_variance)
        total = self._prior_variances(new) + noise
        if by_root:
            multiply_triangle(self.root, K, transposed=False)
        else:
            self._factor.solve_root_in_place(K)
        half = K
        square = np.einsum("ij,ij->i", half, half)
        check_variances(self.kernel, total - noise - square, total)
        variance = np.maximum(total - square, noise)  # no label varies less than its noise
        if self._checked:
            check_resolved(variance, total)
        if self._flat:
            spread = self._basis.add_unexplained(half, new.H, square)
            # A flat prior says nothing where the training rows determine no coefficient, or only by rounding.
            undetermined = new.undetermined | (variance <= ALONE**2 * spread)
            variance += spread
            variance[undetermined] = np.inf
        return Moments(half, mean, variance, square, total)

    def covariance(self, new: NewInputs) -> Array:
        """Covariances of the labels of new inputs with each other, noise included, (m, m).

        With errors :math:`f(x) - v'y` of predictions, :math:`k(x, x_2) - v'k_2 - v_2'k + v' C^{-1} v_2`; the first
        three terms, and the last, are products of ``Moments.half`` and u.
        """
        u, _ = covariance(self.kernel, new.pairs)
        self._factor.solve_root_in_place(u)
        moments = self.moments(new, by_root=False)
        half = moments.half
        both = half @ u.T
        found = covariance(self.kernel, Pairs(new.pairs.X, new.pairs.X))[0] - both - both.T + half @ half.T
        np.fill_diagonal(found, moments.variance)
        return found

    def _prior_variances(self, new: NewInputs) -> Array:
        """Prior variances at new inputs, without noise."""
        if self._stationary is None:
            return self.kernel.diag(new.pairs.X)
        return np.full(new.pairs.shape[0], self._stationary)

    def weights(self, moments: Moments) -> Array:
        """Weights v of the training labels in the means, (m, l); ``moments.half`` is used up."""
        multiply_triangle(self.root, moments.half, transposed=True)
        return moments.half

    def predict(self, new: NewInputs) -> Prediction:
        """Weights, means and variances of the labels of new inputs."""
        moments = self.moments(new)
        return Prediction(self.weights(moments), moments.mean, moments.variance, moments.prior)

    def mean(self, new: NewInputs) -> Array:
        """Means; cheaper than :meth:`moments` by a factor of the training rows."""
        return covariance(self.kernel, new.pairs)[0] @ self.alpha + new.H @ self.coefficients


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
