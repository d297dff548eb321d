r"""RR-CP: the ridge regression confidence machine (Nouretdinov, Melluish and Vovk, ICML 2001), with an RBF kernel.

Length scale and ridge are found by O. Chapelle's automatic model selection, which minimises a smoothed leave-one-out
error (Chapelle et al., Machine Learning 46, 2002, for the span of support vectors on which it rests). With
:math:`A = K + \lambda I`, let

.. math:: G = A^{-1} - \frac{A^{-1} 1 1' A^{-1}}{1' A^{-1} 1}

for the model's unregularised bias. The coefficients are :math:`\alpha = G y`, and the leave-one-out residual of row i
is :math:`\alpha_i / G_{ii}`. The smoothed version adds to the ridge of rows with small coefficients,

.. math::
    D_i = \eta / |\alpha_i|, \qquad M = G \text{ with } A + D \text{ for } A, \qquad
    c_i = \alpha_i (1 / M_{ii} - D_i),

so that :math:`\eta = 0` gives leave-one-out itself. The search minimises

.. math:: \frac1l \sum_i c_i^2 + \frac{\rho}{2} |\theta - \theta_0|^2, \qquad \theta = (\log \sigma, -\log \lambda) .

Both regularisers depend on the scale of the labels, which are not rescaled. The published search is unbounded. Where
:math:`|\theta - \theta_0|^2 > 200` its objective is the penalty alone. That is meant to keep the search near its start.
With large labels it does the opposite, because the error is larger than the penalty everywhere else: on the CPU data
the search often ends there, at meaningless values. The bounded search cannot.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

import numpy as np
from scipy.linalg import cho_factor, cho_solve
from scipy.optimize import minimize
from scipy.spatial.distance import pdist, squareform
from sklearn.gaussian_process.kernels import RBF
from sklearn.preprocessing import StandardScaler

from conformal_gp import ConformalGPRegressor
from conformal_gp.arrays import Array
from conformal_gp.threads import one_blas_thread
from reproduction.comparators.base import IntervalRegressor

# Coefficients below this count as zero: D would be infinite.
SMALLEST_COEFFICIENT = 1e-12
# Largest root mean square distance of the logarithms from the start. Beyond it the error is not computed.
LARGEST_MOVE = 10.0
MOST_STEPS = 100
# The published smoothing η, and weight of the penalty.
SMOOTHING, PENALTY = 0.1, 0.01


class ConformalRidge(IntervalRegressor):
    r"""Full conformal prediction on kernel ridge regression, with absolute residuals.

    A row's score is the absolute residual of a fit to training rows and test row together,
    :math:`|y - K \alpha - \beta|` with :math:`(K + \lambda I) \alpha + \beta = y` and
    :math:`K_{ij} = \exp(-|x_i - x_j|^2 / 2 \sigma^2)`. Residuals are :math:`\lambda \alpha`, so this is Gaussian
    process regression with noise variance :math:`\lambda` and a constant mean with a flat prior: the scores are those
    of ``ConformalGPRegressor`` with ``gamma=1``. Inputs are standardised, and the search uses the training rows only,
    as in the paper, so coverage is not exact.

    Parameters
    ----------
    bounded : bool, default=False
        Whether to keep the search within a factor of exp(10) of its start.

    Attributes
    ----------
    length_scale_, ridge_ : float
        What the search found, on standardised inputs.

    Examples
    --------
    >>> from conformal_gp.datasets import load_servo
    >>> X, y = load_servo(return_X_y=True)
    >>> model = ConformalRidge().fit(X[:150], y[:150])
    >>> model.predict_interval(X[150:], confidence_level=[0.9, 0.95]).shape
    (17, 2, 2)
    """

    def __init__(self, *, bounded: bool = False):
        self.bounded = bounded

    def _fit(self, X: Array, y: Array) -> None:
        self._scaler = StandardScaler().fit(X)
        scaled = self._scaler.transform(X)
        with one_blas_thread(rows=y.size):
            self.length_scale_, self.ridge_ = search(scaled, y, bounded=self.bounded)
        self._process = ConformalGPRegressor(
            RBF(self.length_scale_),
            mean="constant",
            noise_variance=self.ridge_,
            gamma=1.0,
            tuning="fixed",
            target_transform=None,
            scale_inputs=False,
            n_jobs=1,
        ).fit(scaled, y)

    def _predict(self, X: Array) -> Array:
        return self._process.predict(self._scaler.transform(X))

    def _intervals(self, X: Array, levels: Sequence[Fraction]) -> Array:
        return self._process.predict_interval(self._scaler.transform(X), levels)


class SmoothedLeaveOneOut:
    """The criterion as a function of theta = (log length scale, -log ridge).

    Parameters
    ----------
    X : ndarray of shape (l, d)
        Inputs.
    y : ndarray of shape (l,)
        Labels.
    centre : ndarray of shape (2,)
        Where the penalty is zero.
    eta : float
        Smoothing.
    penalty : float
        Weight of the mean square of ``theta - centre``.
    """

    def __init__(self, X: Array, y: Array, centre: Array, *, eta: float = SMOOTHING, penalty: float = PENALTY):
        self._squares = squareform(pdist(X, "sqeuclidean"))
        self._y = y
        self._centre = centre
        self._eta = eta
        self._penalty = penalty

    def __call__(self, theta: Array) -> tuple[float, Array]:
        """Value and gradient at ``theta``."""
        away = theta - self._centre
        square = float(np.mean(away**2))
        value, gradient = self._penalty * square, self._penalty * away
        if square <= LARGEST_MOVE**2:
            error, error_gradient = self.error(theta)
            value, gradient = value + error, gradient + error_gradient
        return value, gradient

    def error(self, theta: Array) -> tuple[float, Array]:
        r"""Mean square of c at ``theta``, and its gradient by reverse differentiation.

        With :math:`Q = M\, \mathrm{diag}(c \alpha / M_{ii}^2)\, M` the span :math:`1 / M_{ii} - D_i` contributes
        :math:`\sum Q_{ij}\, dA_{ij}`, and :math:`Q_{jj} - c_j \alpha_j` for each :math:`dD_j`; through
        :math:`d\alpha = -G\, dA\, \alpha` the coefficients contribute the rest.
        """
        ridge = np.exp(-theta[1])
        distances = self._squares * np.exp(-2.0 * theta[0])
        K = np.exp(-0.5 * distances)
        G = bordered_inverse(K, ridge)
        alpha = G @ self._y
        stiffness = self._eta / np.maximum(np.abs(alpha), SMALLEST_COEFFICIENT)
        M = bordered_inverse(K, ridge + stiffness)
        diagonal = np.diagonal(M)
        span = 1.0 / diagonal - stiffness
        change = alpha * span

        by_change = 2.0 * change / change.size
        by_span = by_change * alpha
        Q = (M * (by_span / diagonal**2)) @ M
        by_stiffness = np.diagonal(Q) - by_span
        moves = np.abs(alpha) > SMALLEST_COEFFICIENT
        by_alpha = by_change * span
        by_alpha[moves] -= (by_stiffness * stiffness)[moves] / alpha[moves]
        solved = G @ by_alpha
        by_ridge = float(np.trace(Q) - solved @ alpha)
        slope = distances * K  # dK / d log length scale
        by_length = float(np.sum(Q * slope) - solved @ slope @ alpha)
        return float(np.mean(change**2)), np.array([by_length, -ridge * by_ridge])


def bordered_inverse(K: Array, added: float | Array) -> Array:
    """G for A = K + diag(added)."""
    A = K.copy()
    A.flat[:: A.shape[0] + 1] += added
    inverse = cho_solve(cho_factor(A, lower=True, overwrite_a=True), np.eye(A.shape[0]))
    ones = inverse.sum(axis=1)
    return inverse - np.outer(ones, ones / ones.sum())


def search(X: Array, y: Array, *, bounded: bool) -> tuple[float, float]:
    r"""Length scale and ridge that minimise the criterion, by BFGS or, with bounds, L-BFGS-B.

    The search starts, and its penalty is centred, at :math:`\sigma^2 = 0.3 \sum_d \mathrm{var}(x_d)` and
    :math:`\lambda = 1`. Bounds keep it within a factor of exp(10) of the start.
    """
    start = np.array([0.5 * np.log(0.3 * X.var(axis=0).sum() or 1.0), 0.0])
    found = minimize(
        SmoothedLeaveOneOut(X, y, start),
        start,
        jac=True,
        method="L-BFGS-B" if bounded else "BFGS",
        bounds=start[:, None] + np.array([-LARGEST_MOVE, LARGEST_MOVE]) if bounded else None,
        options={"maxiter": MOST_STEPS},
    )
    return float(np.exp(found.x[0])), float(np.exp(-found.x[1]))
