r"""Negative log marginal likelihood of a Gaussian process, and its gradient; length scales that inputs share.

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

from collections.abc import Callable

import numpy as np
from scipy.linalg import blas, cho_factor, cho_solve
from sklearn.base import clone
from sklearn.gaussian_process.kernels import Kernel

from conformal_gp.arrays import Array, Indices
from conformal_gp.gp.covariance import Cholesky, covariance
from conformal_gp.gp.kernels import at_theta, is_length


class NegativeLogLikelihood:
    """The likelihood of the rows (X, y) as a function of the hyperparameters.

    Parameters
    ----------
    kernel : sklearn.gaussian_process.kernels.Kernel
        Kernel whose free hyperparameters are the first entries of theta.
    X : ndarray of shape (l, d)
        Inputs.
    y : ndarray of shape (l,)
        Targets.
    H : ndarray of shape (l, p)
        Mean basis with independent columns.
    noise_variance : float or None, default=None
        A fixed noise variance; None when its logarithm is the last entry of theta.
    restricted : bool, default=False
        Whether to integrate the coefficients of the mean out instead of maximising over them.
    known : ndarray of shape (l,) or float, default=0.0
        Known noise variance of each row.
    """

    def __init__(
        self,
        kernel: Kernel,
        X: Array,
        y: Array,
        H: Array,
        noise_variance: float | None = None,
        restricted: bool = False,
        known: Array | float = 0.0,
    ):
        self._n_dims = kernel.n_dims
        self._kernel_at = at_theta(kernel)
        self._X = X
        self._y = y
        self._H = H
        self._noise_variance = noise_variance
        self._restricted = restricted and H.shape[1] > 0
        self._known = known

    def split(self, theta: Array) -> tuple[Kernel, float]:
        """Kernel and noise variance that ``theta`` stands for."""
        noise = self._noise_variance
        if noise is None:
            noise = float(np.exp(theta[self._n_dims]))
        return self._kernel_at(theta[: self._n_dims]), noise

    def __call__(self, theta: Array) -> tuple[float, Array]:
        """Value and gradient at ``theta``: ``kernel.theta``, and the log noise variance when that is learnt.

        A LinAlgError is raised where the covariance matrix is not numerically positive definite.
        """
        value, alpha, W, noise, product = self._terms(theta, self._restricted)
        # C - alpha alpha', or P - alpha alpha': equation 5.9 of Rasmussen and Williams (2006)
        W = np.triu(blas.dger(-1.0, alpha, alpha, a=W, overwrite_a=True).T)  # in C order, as K is
        W.flat[:: alpha.size + 1] *= 0.5  # entries off the diagonal stand for two, and each sum is halved
        gradient = product(W)
        if self._noise_variance is None:
            gradient = np.append(gradient, noise * np.trace(W))
        return value, gradient

    def left_out(self, theta: Array) -> tuple[float, Array, Array]:
        """Value, and weighted residuals and inverse leave-one-out variances under a flat prior of the mean."""
        value, alpha, P, _, _ = self._terms(theta, self._H.shape[1] > 0)
        return value, alpha, np.diagonal(P)

    def _terms(self, theta: Array, restricted: bool) -> tuple[float, Array, Array, float, Callable[[Array], Array]]:
        """Value, alpha, lower triangle of C or P, noise variance, and the kernel's vector-Jacobian product."""
        kernel, noise = self.split(theta)
        K, product = covariance(kernel, self._X)
        A = np.array(K.T, order="F")  # K is symmetric: in this order LAPACK works in place
        l, p = self._H.shape
        A.flat[:: l + 1] += noise + self._known
        factor = Cholesky(A)
        # log |A| / 2 + l log(2 pi) / 2: Rasmussen and Williams (2006), equation 2.30, is completed below
        value = 0.5 * (factor.log_determinant() + l * np.log(2.0 * np.pi))
        solved = factor.solve(np.column_stack([self._H, self._y]))
        CH = solved[:, :-1]
        alpha = solved[:, -1]
        residual = self._y
        C = factor.lower_inverse()
        if p:
            # beta = (H'C H)^-1 H'C y, and alpha = C (y - H beta)
            information = cho_factor(self._H.T @ CH)
            beta = cho_solve(information, CH.T @ self._y)
            alpha = alpha - CH @ beta
            residual = residual - self._H @ beta
        if restricted:
            # log |H'C H| / 2, and P = C - C H (H'C H)^-1 H'C in the gradient
            value += float(np.log(np.diagonal(information[0])).sum()) - 0.5 * p * np.log(2.0 * np.pi)
            # by SciPy's BLAS, which LAPACK uses: threads of a second one would spin beside its own
            share = cho_solve(information, CH.T)
            C = blas.dgemm(-1.0, CH, share, beta=1.0, c=C, overwrite_c=True)
        value += 0.5 * float(residual @ alpha)
        return value, alpha, C, noise, product


def variables(X: Array) -> Indices:
    """Number of the variable that each input belongs to.

    Inputs side by side are the categories of one variable if they have two values each and exactly one of them is at
    its larger value in every row. An input that is constant goes with those before or after it. Numbers are from 0 on,
    in the order of the inputs.

    >>> variables(np.array([[0.5, 1, 0, 0], [0.1, 0, 1, 0], [0.7, 0, 0, 1], [0.2, 0, 0, 1]]))
    array([0, 1, 1, 1])
    """
    low = X.min(axis=0)
    on = low < X
    two_values = ((low == X) | (X.max(axis=0) == X)).all(axis=0)
    sizes: list[int] = []
    start = 0
    while start < X.shape[1]:
        taken, end = np.zeros(X.shape[0], dtype=bool), start
        while end < X.shape[1] and two_values[end] and not (taken & on[:, end]).any():
            taken |= on[:, end]
            end += 1
        sizes.append(end - start if taken.all() else 1)
        start += sizes[-1]
    return np.repeat(np.arange(len(sizes)), sizes)


def for_each_input(kernel: Kernel, number: Indices | None) -> Kernel:
    """The kernel of inputs, from one with a length scale for each variable; None has one for each input already.

    >>> from sklearn.gaussian_process.kernels import RBF
    >>> for_each_input(RBF([1.0, 2.0]), np.array([0, 1, 1]))
    RBF(length_scale=[1, 2, 2])
    """
    if number is None:
        return kernel
    vectors = {
        name: np.asarray(value)[number]
        for name, value in kernel.get_params().items()
        if name.endswith("length_scale") and np.ndim(value)
    }
    return clone(kernel).set_params(**vectors)


def entries(kernel: Kernel, number: Indices | None) -> Indices:
    """For each entry of theta of the kernel of inputs, the entry of the kernel of variables.

    >>> from sklearn.gaussian_process.kernels import RBF, ConstantKernel
    >>> entries(ConstantKernel() * RBF([1.0, 2.0]), np.array([0, 1, 1]))
    array([0, 1, 2, 2])
    """
    every, lengths = np.arange(kernel.n_dims), np.flatnonzero(is_length(kernel))
    if number is None or lengths.size <= 1:
        return every
    return np.concatenate([every[: lengths[0]], lengths[number], every[lengths[-1] + 1 :]])
