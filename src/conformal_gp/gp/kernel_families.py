r"""Covariance matrices of the same rows at many hyperparameters at once.

A chain and an average over draws need the matrices of *many* hyperparameter vectors. For stationary kernels with a
length scale for each input, :math:`r^2 = \sum_d (x_d - z_d)^2 / \ell_d^2` over all pairs of rows and all vectors is one
matrix product of inverse squared length scales with squared differences. Other kernels are evaluated one at a time.

Amplitudes are left out: the overall scale is integrated in closed form (:mod:`conformal_gp.gp.sampling`).
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from scipy.special import expit
from sklearn.gaussian_process.kernels import RBF, ConstantKernel, DotProduct, Kernel

from conformal_gp.arrays import Array, Indices
from conformal_gp.gp.covariance import covariance
from conformal_gp.gp.kernels import PROFILES, is_amplitude, is_length

Pullback = Callable[[Array, Array], tuple[Array, Array]]


class StationaryFamily:
    r"""A stationary kernel with a length scale for each group of inputs.

    The linear term is :math:`b \sum_d x_d z_d / \ell_d^{2 \kappa}`. With :math:`\kappa = 1` an input that hardly
    matters has hardly a slope; with 0 slopes do not depend on length scales. *Sloped*, the log odds of :math:`\kappa`
    are the last hyperparameter; else it is 1. With a constant mean that has a flat prior, the origin of the linear term
    does not matter, but for rounding.

    *Blended* with the squared exponential of the same length scales, the kernel is :math:`(1 - s)\, k + s\, e^{-r^2/2}`
    with :math:`s = 1 / (1 + e^{-\omega})`, and :math:`\omega` the hyperparameter after the length scales. Smooth
    functions need hardly any of the rougher kernel, and then are interpolated far more closely.

    Parameters
    ----------
    shape : sklearn.gaussian_process.kernels.Kernel
        ``RBF`` or ``Matern`` with a smoothness of 3/2 or 5/2, of any length scale.
    X : ndarray of shape (l, d)
        Training inputs.
    groups : ndarray of int of shape (d,)
        The length scale, by number, that each input has.
    origin : ndarray of shape (d,) or float, default=0.0
        Origin of the linear term.
    blended : bool, default=False
        Whether the kernel is blended with the squared exponential.
    sloped : bool, default=False
        Whether the power of the length scales in the linear term is a hyperparameter.

    Attributes
    ----------
    start : ndarray of shape (k,)
        Hyperparameters of the kernel to start from, logarithms.
    is_length : ndarray of bool of shape (k,)
        Which of them are length scales.
    bounds : ndarray of shape (k, 2) or None
        Bounds of a uniform prior; None for length scales.
    """

    bounds: Array | None = None

    def __init__(
        self,
        shape: Kernel,
        X: Array,
        groups: Indices,
        origin: Array | float = 0.0,
        *,
        blended: bool = False,
        sloped: bool = False,
    ):
        self.X = X
        self._origin = origin
        self._blended = blended
        self._sloped = sloped
        self._n_lengths = int(groups.max()) + 1
        self.start = np.zeros(self._n_lengths + blended + sloped)
        self.is_length = np.arange(self.start.size) < self._n_lengths
        self._shape = shape
        self._profile = PROFILES[getattr(shape, "nu", np.inf)]
        self._groups = groups
        i, j = np.tril_indices(len(X), -1)
        self._squares = self._summed((X[i] - X[j]) ** 2)
        centred = X - origin
        self._products = self._summed(centred[i] * centred[j])
        self._lengths = self._summed(centred**2)

    def _summed(self, values: Array) -> Array:
        """Values of inputs, (n, d), summed over those of each group, (groups, n)."""
        if self._n_lengths == values.shape[1]:
            return np.ascontiguousarray(values.T)
        sums = np.zeros((self._n_lengths, len(values)))
        for column, group in enumerate(self._groups):
            sums[group] += values[:, column]
        return sums

    def _stationary(self, theta: Array, squares: Array) -> tuple[Array, Callable[[], Array], Array]:
        """Kernel of summed squared differences, (groups, n), its slope -2 dk / dr^2, and its derivative in omega."""
        # r^2 = sum_d (x_d - z_d)^2 / l_d^2
        r2 = np.exp(-2.0 * theta[:, : self._n_lengths]) @ squares
        if not self._blended:
            K, slope = self._profile(r2)
            return K, slope, np.empty(0)
        smooth = np.multiply(r2, -0.5)
        np.exp(smooth, out=smooth)
        K, slope = self._profile(r2)
        share = expit(theta[:, [self._n_lengths]])
        difference = smooth - K
        # (1 - s) k + s exp(-r^2 / 2) = k + s (exp(-r^2 / 2) - k), whose derivative in omega has s (1 - s) for s
        K += share * difference

        def blended_slope() -> Array:
            rough = slope()
            return rough + share * (smooth - rough)

        difference *= share * (1.0 - share)
        return K, blended_slope, difference

    def _power(self, theta: Array) -> Array:
        """Power of the length scales in the linear term, (C, 1)."""
        if self._sloped:
            return expit(theta[:, -1:])
        return np.ones((len(theta), 1))

    def _slopes(self, theta: Array, linear: Array) -> Array:
        """Variances of the slopes of the linear term, (C, groups)."""
        # b / l_d^(2 kappa)
        return linear[:, None] * np.exp(-2.0 * self._power(theta) * theta[:, : self._n_lengths])

    def matrices(self, theta: Array, linear: Array) -> tuple[Array, Array, Pullback]:
        """Covariances of pairs i > j, (C, pairs), and variances, (C, l), of kernels (C, k) and linear terms (C,).

        The third value maps weights of both, of the same shapes, to gradients of their weighted sums in the kernel's
        hyperparameters, (C, k), and in the logarithm of the linear term's variance, (C,).
        """
        inverse_squares = np.exp(-2.0 * theta[:, : self._n_lengths])
        power = self._power(theta)
        slopes = self._slopes(theta, linear)
        K, profile_slope, by_omega = self._stationary(theta, self._squares)
        variances = 1.0 + slopes @ self._lengths
        if linear.any():
            K = K + slopes @ self._products

        def pullback(by_pair: Array, by_variance: Array) -> tuple[Array, Array]:
            by_kernel = np.empty(theta.shape)
            # dk / d log l_d = slope * (x_d - z_d)^2 / l_d^2
            by_length = ((by_pair * profile_slope()) @ self._squares.T) * inverse_squares
            if self._blended:
                by_kernel[:, self._n_lengths] = np.einsum("ij,ij->i", by_pair, by_omega)
            if not linear.any():
                by_kernel[:, : self._n_lengths] = by_length
                return by_kernel, np.zeros(len(theta))
            # d (b l^-2k) / d log l = -2 k b l^-2k, and d / dk = -2 log(l) b l^-2k
            by_slope = (by_pair @ self._products.T + by_variance @ self._lengths.T) * slopes
            by_kernel[:, : self._n_lengths] = by_length - 2.0 * power * by_slope
            if self._sloped:
                by_power = -2.0 * (by_slope * theta[:, : self._n_lengths]).sum(axis=1)
                by_kernel[:, -1] = by_power * (power * (1.0 - power))[:, 0]
            return by_kernel, by_slope.sum(axis=1)

        return K, variances, pullback

    def cross(self, theta: Array, linear: Array, new: Array) -> tuple[Array, Array]:
        """Covariances of training rows with new rows, (C, l, m), and variances of new rows, (C, m)."""
        slopes = self._slopes(theta, linear)
        squares = self._summed(((self.X[:, None] - new) ** 2).reshape(-1, new.shape[1]))
        K = self._stationary(theta, squares)[0]
        centred = new - self._origin
        if linear.any():
            products = (self.X - self._origin)[:, None] * centred
            K += slopes @ self._summed(products.reshape(-1, new.shape[1]))
        return K.reshape(len(theta), len(self.X), len(new)), 1.0 + slopes @ self._summed(centred**2)

    def slope_basis(self, theta: Array, linear: Array, X: Array) -> Array:
        """Inputs, (m, d), times the prior standard deviations of their slopes in the linear term, (C, m, d)."""
        deviations = np.sqrt(self._slopes(theta, linear))[:, self._groups]
        return deviations[:, None] * (X - self._origin)

    def kernel(self, theta: Array, linear: float) -> Kernel:
        """The scikit-learn kernel of one hyperparameter vector.

        The linear term's slopes are those of the input of the mean length scale.
        """
        lengths = theta[: self._n_lengths]
        scales = np.exp(lengths)[self._groups]
        found = type(self._shape)(**self._shape.get_params() | {"length_scale": scales})
        if self._blended:
            share = float(expit(theta[self._n_lengths]))
            found = ConstantKernel(1.0 - share) * found + ConstantKernel(share) * RBF(scales)
        if linear == 0.0:
            return found
        slope = linear * float(np.exp(-2.0 * self._power(theta[None])[0, 0] * lengths.mean()))
        return found + ConstantKernel(slope) * DotProduct(0.0, sigma_0_bounds="fixed")


class AnyFamily:
    r"""Any kernel, by its own formulas; the linear term is :math:`b \sum_d x_d z_d`.

    Parameters
    ----------
    kernel : sklearn.gaussian_process.kernels.Kernel
        The kernel. Factors of the whole of it are left as they are.
    X : ndarray of shape (l, d)
        Training inputs.
    origin : ndarray of shape (d,) or float, default=0.0
        Origin of the linear term.

    Its attributes are those of StationaryFamily.
    """

    def __init__(self, kernel: Kernel, X: Array, origin: Array | float = 0.0):
        self.X = X
        self._centred = X - origin
        self._origin = origin
        self._kernel = kernel
        self._free = ~is_amplitude(kernel)
        self.start = kernel.theta[self._free]
        self.is_length = is_length(kernel)[self._free]
        self.bounds: Array | None = np.reshape(kernel.bounds, (-1, 2))[self._free]
        self._pairs = np.tril_indices(len(X), -1)
        self._products = self._centred @ self._centred.T

    def _one(self, theta: Array) -> Kernel:
        every = self._kernel.theta
        every[self._free] = theta
        return self._kernel.clone_with_theta(every)

    def matrices(self, theta: Array, linear: Array) -> tuple[Array, Array, Pullback]:
        """See StationaryFamily."""
        i, j = self._pairs
        found = [covariance(self._one(each), self.X) for each in theta]
        products, lengths = self._products[i, j], np.diagonal(self._products)

        def pullback(by_pair: Array, by_variance: Array) -> tuple[Array, Array]:
            by_kernel = np.empty(theta.shape)
            for each, (_, product) in enumerate(found):
                W = np.diag(by_variance[each])
                W[i, j] = W[j, i] = 0.5 * by_pair[each]
                by_kernel[each] = product(W)[self._free]
            return by_kernel, linear * (by_pair @ products + by_variance @ lengths)

        pairs = np.stack([K[i, j] for K, _ in found]) + linear[:, None] * products
        return pairs, np.stack([np.diagonal(K) for K, _ in found]) + linear[:, None] * lengths, pullback

    def cross(self, theta: Array, linear: Array, new: Array) -> tuple[Array, Array]:
        """See StationaryFamily."""
        kernels = [self._one(each) for each in theta]
        K = np.stack([covariance(kernel, self.X, new)[0] for kernel in kernels])
        variances = np.stack([kernel.diag(new) for kernel in kernels])
        centred = new - self._origin
        K = K + linear[:, None, None] * (self._centred @ centred.T)
        return K, variances + linear[:, None] * (centred**2).sum(axis=1)

    def slope_basis(self, theta: Array, linear: Array, X: Array) -> Array:
        """See StationaryFamily."""
        return np.sqrt(linear)[:, None, None] * (X - self._origin)

    def kernel(self, theta: Array, linear: float) -> Kernel:
        """See StationaryFamily."""
        kernel = self._one(theta)
        return kernel if linear == 0.0 else kernel + ConstantKernel(linear) * DotProduct(0.0, sigma_0_bounds="fixed")


Family = StationaryFamily | AnyFamily
"""A kernel without its amplitude and a linear term, over training rows, as a function of hyperparameters."""
