r"""Negative log marginal likelihood of a Gaussian process, and its gradient.

With :math:`A = K + \sigma^2 I`, :math:`C = A^{-1}`, mean basis H, generalised least squares coefficients
:math:`\beta = (H'CH)^{-1} H'C y` and :math:`\alpha = C (y - H \beta)`:

.. math::
    f = \tfrac12 (y - H\beta)' \alpha + \tfrac12 \log |A| + \tfrac{l}{2} \log 2 \pi, \qquad
    \frac{\partial f}{\partial \theta} = \tfrac12 \sum_{ij} (C - \alpha \alpha')_{ij}
    \frac{\partial A_{ij}}{\partial \theta}.

The coefficients minimise f for given hyperparameters, so their own change does not enter the gradient. The restricted
likelihood integrates them out under a flat prior: :math:`\tfrac12 \log |H'CH|` is added to f, and C becomes
:math:`P = C - C H (H'CH)^{-1} H'C` in the gradient. It does not underestimate the noise
where coefficients are many.
"""

from __future__ import annotations

import numpy as np
from scipy.linalg import cho_factor, cho_solve
from sklearn.gaussian_process.kernels import Kernel

from conformal_gp.gp.covariance import Pairs, covariance, keep_lower
from conformal_gp.gp.factor import Factor
from conformal_gp.gp.noise import weights
from conformal_gp.types import Array


def generalised_least_squares(H: Array, CH: Array, y: Array) -> Array:
    """Coefficients β = (H'CH)^-1 H'C y; none when H has no columns."""
    if H.shape[1] == 0:
        return np.empty(0)
    return cho_solve(cho_factor(H.T @ CH), CH.T @ y)


class NegativeLogLikelihood:
    """The likelihood of the rows (X, y) as a function of the hyperparameters.

    Parameters
    ----------
    kernel : sklearn.gaussian_process.kernels.Kernel
        Kernel whose free hyperparameters are the first entries of theta.
    X : ndarray of shape (l, d)
        Inputs.
    y : ndarray of shape (l,)
        Labels.
    H : ndarray of shape (l, p)
        Mean basis with independent columns.
    noise_variance : float or None
        A fixed noise variance; None when its logarithm is the entry of theta after the kernel's.
    restricted : bool, default=False
        Whether to integrate the coefficients of the mean out instead of maximising over them.
    known : ndarray of shape (l,) or None, default=None
        Noise variance that is known of each row; None is none.
    features : ndarray of shape (l, q) or None, default=None
        Of which the logarithm of the learnt noise is a linear function; its coefficients are the last entries of
        theta. None is constant noise.
    """

    def __init__(
        self,
        kernel: Kernel,
        X: Array,
        y: Array,
        H: Array,
        noise_variance: float | None = None,
        restricted: bool = False,
        known: Array | None = None,
        features: Array | None = None,
    ):
        self._kernel = kernel
        self._pairs = Pairs(X)
        self._y = y
        self._H = H
        self._noise_variance = noise_variance
        self._restricted = restricted and H.shape[1] > 0
        self._known = np.zeros(y.size) if known is None else known
        self._features = np.empty((y.size, 0)) if features is None else features

    def split(self, theta: Array) -> tuple[Kernel, float]:
        """Kernel and noise variance that ``theta`` stands for."""
        n = self._kernel.n_dims
        noise = float(np.exp(theta[n])) if self._noise_variance is None else self._noise_variance
        return self._kernel.clone_with_theta(theta[:n]), noise

    def __call__(self, theta: Array) -> tuple[float, Array]:
        """Value and gradient at ``theta``.

        Parameters
        ----------
        theta : ndarray of shape (p,)
            ``kernel.theta``, followed by the log noise variance when that is learnt, and by coefficients when it
            varies.

        Returns
        -------
        value : float
            The negative log marginal likelihood.
        gradient : ndarray of shape (p,)
            Its gradient.

        Raises
        ------
        numpy.linalg.LinAlgError
            When the covariance matrix is not numerically positive definite.
        """
        kernel, noise = self.split(theta)
        K, pullback = covariance(kernel, self._pairs)
        A = self._pairs.lower(K)
        weight, slope = weights(self._features, theta[theta.size - self._features.shape[1] :])
        A.flat[:: A.shape[0] + 1] += noise * weight + self._known
        factor = Factor(A)
        log_determinant = factor.log_determinant()

        solved = factor.solve(np.column_stack([self._H, self._y]))
        CH, Cy = solved[:, :-1], solved[:, -1]
        beta = generalised_least_squares(self._H, CH, self._y)
        alpha = Cy - CH @ beta
        residual = self._y - self._H @ beta

        l = self._y.shape[0]
        value = 0.5 * (residual @ alpha + log_determinant + l * np.log(2.0 * np.pi))

        Q = factor.lower_inverse()
        left, right = alpha[:, None], alpha[None, :]
        if self._restricted:
            R, lower = cho_factor(self._H.T @ CH)
            value += float(np.log(np.diagonal(R)).sum()) - 0.5 * R.shape[0] * np.log(2.0 * np.pi)
            left, right = np.hstack([left, CH]), np.vstack([right, cho_solve((R, lower), CH.T)])
        for rows, columns in self._pairs.blocks():
            Q[rows, columns] -= left[rows] @ right[:, columns]
            keep_lower(Q[rows, rows])
        # Entries off the diagonal stand for two, and each sum is halved.
        Q.flat[:: l + 1] *= 0.5
        by_row = noise * np.diagonal(Q)  # the pull-back may use up Q
        by_noise = [] if self._noise_variance is not None else [by_row @ weight]
        return value, np.concatenate([pullback(Q), by_noise, (by_row * slope) @ self._features])
