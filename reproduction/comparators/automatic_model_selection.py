r"""Length scale and ridge of kernel ridge regression by O. Chapelle's automatic model selection (AMS).

It minimises a smoothed leave-one-out error. With :math:`A = K + \lambda I`, let

.. math:: G = A^{-1} - \frac{A^{-1} 1 1' A^{-1}}{1' A^{-1} 1}

for a model with an unregularised bias, and :math:`G = A^{-1}` for one without. The coefficients are :math:`\alpha = G
y`, and the leave-one-out residual of row i is :math:`\alpha_i / G_{ii}`. The smoothed version adds to the ridge of rows
with small coefficients,

.. math::
    D_i = \eta / |\alpha_i|, \qquad M = G \text{ with } A + D \text{ for } A, \qquad
    c_i = \alpha_i (1 / M_{ii} - D_i),

so that :math:`\eta = 0` gives leave-one-out itself. The search minimises

.. math:: \frac1l \sum_i c_i^2 + \frac{\rho}{2} |\theta - \theta_0|^2, \qquad \theta = (\log \sigma, -\log \lambda) .

Both regularisers depend on the scale of the labels, which are not rescaled.

The published search is unbounded. Where :math:`|\theta - \theta_0|^2 > 200` its objective is the penalty alone. That
is meant to keep the search near its start. With large labels it does the opposite, because the error is larger than
the penalty everywhere else: on the CPU data the search often ends there, at meaningless values. The bounded search
cannot.
"""

from __future__ import annotations

import numpy as np
from scipy.optimize import minimize
from sklearn.gaussian_process.kernels import RBF

from conformal_gp.gp.covariance import Pairs, covariance
from conformal_gp.gp.factor import Factor
from conformal_gp.types import Array

# Coefficients below this count as zero: D would be infinite.
SMALLEST_COEFFICIENT = 1e-12

# Largest root mean square distance of the logarithms from the start. Beyond it the error is not computed.
LARGEST_MOVE = 10.0

MOST_STEPS = 100
# The published smoothing η, and weight of the penalty.
SMOOTHING, PENALTY = 0.1, 0.01


class _Bordered:
    """G for a matrix A that is given by its lower triangle, with zeros above. A is overwritten."""

    def __init__(self, A: Array, bias: bool):
        self._factor = Factor(A)
        self._bias = bias
        self._ones = self._factor.solve(np.ones(A.shape[0])) if bias else np.zeros(A.shape[0])
        self._total = self._ones.sum() if bias else 1.0

    def solve(self, b: Array) -> Array:
        """G b."""
        solution = self._factor.solve(b)
        return solution - self._ones * (solution.sum() / self._total)

    def inverse(self) -> Array:
        """G itself. The factor is overwritten."""
        G = self._factor.lower_inverse()
        G += np.tril(G, -1).T
        if self._bias:
            G -= np.outer(self._ones, self._ones / self._total)
        return G


class SmoothedLeaveOneOut:
    """The criterion as a function of theta = (log length scale, -log ridge).

    Parameters
    ----------
    pairs : Pairs
        Training inputs against themselves.
    y : ndarray of shape (l,)
        Labels.
    centre : ndarray of shape (2,)
        Where the penalty is zero.
    bias : bool
        Whether the model has an unregularised bias.
    eta : float
        Smoothing.
    penalty : float
        Weight of the mean square of ``theta - centre``.
    """

    def __init__(self, pairs: Pairs, y: Array, centre: Array, *, bias: bool, eta: float, penalty: float):
        self._pairs = pairs
        self._y = y
        self._centre = centre
        self._bias = bias
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

        With :math:`Q = M\, \mathrm{diag}(c \alpha / M_{ii}^2)\, M` the span
        :math:`1 / M_{ii} - D_i` contributes :math:`\sum Q_{ij}\, dA_{ij}`, and :math:`Q_{jj} - c_j \alpha_j` for each
        :math:`dD_j`; through :math:`d\alpha = -G\, dA\, \alpha` the coefficients contribute the rest.
        """
        ridge = np.exp(-theta[1])
        K, pullback = covariance(RBF(np.exp(theta[0])), self._pairs)
        plain = _Bordered(self._with_diagonal(K, ridge), self._bias)
        alpha = plain.solve(self._y)
        stiffness = self._eta / np.maximum(np.abs(alpha), SMALLEST_COEFFICIENT)
        M = _Bordered(self._with_diagonal(K, ridge + stiffness), self._bias).inverse()
        diagonal = np.diagonal(M)
        span = 1.0 / diagonal - stiffness
        change = alpha * span

        l = change.size
        by_change = 2.0 * change / l
        by_span = by_change * alpha
        Q = (M * (by_span / diagonal**2)) @ M
        by_stiffness = np.diagonal(Q) - by_span
        moves = np.abs(alpha) > SMALLEST_COEFFICIENT
        by_alpha = by_change * span
        by_alpha[moves] -= (by_stiffness * stiffness)[moves] / alpha[moves]
        solved = plain.solve(by_alpha)
        by_ridge = float(np.trace(Q) - solved @ alpha)
        # The pull-back wants a lower triangle in which each entry off the diagonal stands for two; the kernel's
        # diagonal does not depend on the length scale.
        Q *= 2.0
        Q -= np.outer(solved, alpha)
        Q -= np.outer(alpha, solved)
        return float(np.mean(change**2)), np.array([pullback(np.tril(Q))[0], -ridge * by_ridge])

    def _with_diagonal(self, K: Array, added: float | Array) -> Array:
        A = self._pairs.lower(K)
        A.flat[:: A.shape[0] + 1] += added
        return A


def search(
    pairs: Pairs,
    y: Array,
    *,
    length_scale: float | None,
    ridge: float | None,
    bias: bool,
    bounded: bool,
) -> tuple[float, float]:
    r"""Length scale and ridge that minimise the criterion, by BFGS or, with bounds, L-BFGS-B.

    The search starts, and its penalty is centred, at :math:`\sigma^2 = 0.3 \sum_d \mathrm{var}(x_d)` and
    :math:`\lambda = 1`. A value that is given stays.

    Parameters
    ----------
    pairs, y, bias
        See :class:`SmoothedLeaveOneOut`.
    length_scale, ridge : float or None
        Given values; None is searched for.
    bounded : bool
        Whether to stay within a factor of exp(10) of the start.

    Returns
    -------
    length_scale, ridge : float
        The values found.
    """
    if length_scale is not None and ridge is not None:
        return length_scale, ridge
    spread = 0.3 * float(pairs.X.var(axis=0).sum())
    start = np.array(
        [
            0.5 * np.log(spread if spread > 0.0 else 1.0) if length_scale is None else np.log(length_scale),
            0.0 if ridge is None else -np.log(ridge),
        ]
    )
    free = np.array([length_scale is None, ridge is None])
    criterion = SmoothedLeaveOneOut(pairs, y, start, bias=bias, eta=SMOOTHING, penalty=PENALTY)

    def at(moved: Array) -> Array:
        theta = start.copy()
        theta[free] = moved
        return theta

    def value_and_gradient(moved: Array) -> tuple[float, Array]:
        value, gradient = criterion(at(moved))
        return value, gradient[free]

    found = minimize(
        value_and_gradient,
        start[free],
        jac=True,
        method="L-BFGS-B" if bounded else "BFGS",
        bounds=start[free, None] + np.array([-LARGEST_MOVE, LARGEST_MOVE]) if bounded else None,
        options={"maxiter": MOST_STEPS},
    )
    theta = at(found.x)
    return (
        float(np.exp(theta[0])) if length_scale is None else length_scale,
        float(np.exp(-theta[1])) if ridge is None else ridge,
    )
