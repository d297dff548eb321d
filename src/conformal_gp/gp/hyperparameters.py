r"""Hyperparameters that are averaged over: the covariances that vectors of them stand for, and their prior.

A chain and an average over draws need the covariances of the same rows at many vectors at once. For stationary kernels
with a length scale for each input, :math:`r^2 = \sum_d (x_d - z_d)^2 / \ell_d^2` over all pairs of rows and all vectors
is one matrix product of inverse squared length scales with squared differences. Other kernels are evaluated one at a
time. Amplitudes are left out: the overall scale is integrated in closed form (:mod:`conformal_gp.gp.mixture`).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from scipy.special import expit
from sklearn.gaussian_process.kernels import RBF, ConstantKernel, DotProduct, Kernel

from conformal_gp.arrays import Array, Indices
from conformal_gp.gp.covariance import covariance
from conformal_gp.gp.kernels import PROFILES, is_amplitude, is_length

Pullback = Callable[[Array, Array], tuple[Array, Array]]


class Normal(NamedTuple):
    """A normal prior between bounds."""

    centre: float
    spread: float
    low: float
    high: float


# Log length scales, of inputs scaled to about unit variance, are normal, all with the same centre, relative to half the
# logarithm of the number of inputs, and the same spread; several of these are summed out.
CENTRES = np.array([0.0, 0.75, 1.5, 2.25, 3.0])
SPREADS = np.array([0.3, 0.8, 1.5, 2.5])
LENGTH_BOUNDS = (-4.0, 9.0)
OTHERS = {
    # log odds of the squared exponential in a blended kernel
    "smoothness": Normal(2.0, 5.0, -5.0, 23.0),
    # log odds of the power of length scales in the linear term: the power is nearly uniform
    "power": Normal(0.0, 1.5, -8.0, 8.0),
    # log variance of the linear term; its centre is less by the logarithm of the number of inputs
    "linear": Normal(-1.0, 2.0, -14.0, 8.0),
    # log noise variance over the kernel's: flat, but see NOISE_POWER
    "noise": Normal(0.0, np.inf, np.log(1e-12), np.log(10.0)),
    # log amplitude where noise is known, about the variance of the targets
    "amplitude": Normal(0.0, 3.0, -15.0, 15.0),
    # exponent of Box and Cox: with less than 0.2 upper ends would explode
    "exponent": Normal(0.5, 0.4, 0.2, 2.5),
}
# Below this ratio the density of the noise falls with this power of it.
LITTLE_NOISE = np.log(1e-2)
NOISE_POWER = 0.3


class StationaryFamily:
    r"""A stationary kernel with a length scale for each group of inputs, and a linear term.

    The linear term is :math:`b \sum_d x_d z_d / \ell_d^{2 \kappa}`. With :math:`\kappa = 1` an input that hardly
    matters has hardly a slope; with 0 slopes do not depend on length scales. *Sloped*, the log odds of :math:`\kappa`
    are the last hyperparameter; else it is 1.

    *Blended* with the squared exponential of the same length scales, the kernel is :math:`(1 - s)\, k + s\, e^{-r^2/2}`
    with :math:`s = 1 / (1 + e^{-\omega})`, and :math:`\omega` the hyperparameter after the length scales. Smooth
    functions need hardly any of the rougher kernel, and then are interpolated far more closely.

    ``shape`` is RBF or Matérn 3/2 or 5/2 of any length scale, and ``groups``, (d,), numbers the length scales of the
    inputs. ``origin`` is that of the linear term: beside a constant mean with a flat prior it matters to rounding only.
    """

    bounds: Array | None = None
    """(k, 2): those of a uniform prior; None for length scales."""

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
        self.others = blended * ("smoothness",) + sloped * ("power",)
        self.origin = origin
        self._blended = blended
        self._sloped = sloped
        self._n_lengths = int(groups.max()) + 1
        self.start = np.zeros(self._n_lengths + len(self.others))
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
            # d (b l^-2k) / d log l = -2 k b l^-2k, and d / dk = -2 log(l) b l^-2k
            by_slope = (by_pair @ self._products.T + by_variance @ self._lengths.T) * slopes
            by_kernel[:, : self._n_lengths] = by_length - 2.0 * power * by_slope
            if self._sloped:
                by_power = -2.0 * (by_slope * theta[:, : self._n_lengths]).sum(axis=1)
                by_kernel[:, -1] = by_power * (power * (1.0 - power))[:, 0]
            return by_kernel, by_slope.sum(axis=1)

        return K, variances, pullback

    def cross(self, theta: Array, linear: Array, new: Array) -> tuple[Array, Array]:
        """Covariances of the rows with new rows, (C, l, m), and variances of new rows, (C, m)."""
        slopes = self._slopes(theta, linear)
        squares = self._summed(((self.X[:, None] - new) ** 2).reshape(-1, new.shape[1]))
        K = self._stationary(theta, squares)[0]
        centred = new - self.origin
        if linear.any():
            products = (self.X - self.origin)[:, None] * centred
            K += slopes @ self._summed(products.reshape(-1, new.shape[1]))
        return K.reshape(len(theta), len(self.X), len(new)), 1.0 + slopes @ self._summed(centred**2)

    def slope_deviations(self, theta: Array, linear: Array) -> Array:
        """Prior standard deviations of the slopes of all inputs in the linear term, (C, d)."""
        return np.sqrt(self._slopes(theta, linear))[:, self._groups]

    def kernel(self, theta: Array, linear: float) -> Kernel:
        """The scikit-learn kernel of one vector; the linear term has the slopes of the mean log length scale."""
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
    r"""Any kernel, by its own formulas, and a linear term :math:`b \sum_d x_d z_d`; see StationaryFamily.

    Factors of the whole kernel are left as they are.
    """

    others: tuple[str, ...] = ()

    def __init__(self, kernel: Kernel, X: Array, origin: Array | float = 0.0):
        self.X = X
        self.origin = origin
        self._kernel = kernel
        self._free = ~is_amplitude(kernel)
        self.start = kernel.theta[self._free]
        self.is_length = is_length(kernel)[self._free]
        self.bounds: Array | None = np.reshape(kernel.bounds, (-1, 2))[self._free]
        self._pairs = np.tril_indices(len(X), -1)
        centred = X - origin
        self._products = centred @ centred.T

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
        centred = new - self.origin
        K += linear[:, None, None] * ((self.X - self.origin) @ centred.T)
        return K, variances + linear[:, None] * (centred**2).sum(axis=1)

    def slope_deviations(self, theta: Array, linear: Array) -> Array:
        """See StationaryFamily."""
        return np.tile(np.sqrt(linear)[:, None], self.X.shape[1])

    def kernel(self, theta: Array, linear: float) -> Kernel:
        """See StationaryFamily."""
        kernel = self._one(theta)
        if linear == 0.0:
            return kernel
        return kernel + ConstantKernel(linear) * DotProduct(0.0, sigma_0_bounds="fixed")


Family = StationaryFamily | AnyFamily
"""A kernel without its amplitude and a linear term, over some rows, as a function of hyperparameters."""


class Parts(NamedTuple):
    """Hyperparameter vectors, (C, p), by their parts."""

    kernel: Array
    """(C, k): those of the kernel."""
    linear: Array
    """(C,): variance of the linear term, 0 where there is none."""
    noise: Array
    """(C,): noise variance."""
    exponent: Array | None
    """(C,): exponent of the transformation; None where there is none."""
    amplitude: Array | None
    """(C,): amplitude of kernel, linear term and noise; None where it is integrated out."""


class HyperPrior:
    """Prior of vectors: length scales or hyperparameters of a kernel object, then those of OTHERS that are free."""

    def __init__(
        self,
        family: Family,
        *,
        linear: bool = True,
        fixed_noise: float | None = None,
        amplitude: bool = False,
        exponent: bool = False,
    ):
        self.family = family
        self._fixed_noise = fixed_noise
        self._n_kernel = family.start.size
        self._n_lengths = self._n_kernel - len(family.others)
        bounds = np.tile(LENGTH_BOUNDS, (self._n_lengths, 1))
        if family.bounds is not None:
            bounds = family.bounds
        free = {"linear": linear, "noise": fixed_noise is None, "amplitude": amplitude, "exponent": exponent}
        names = [*family.others, *(name for name in free if free[name])]
        self._places = {name: self._n_lengths + k for k, name in enumerate(names)}
        self.bounds = np.array([*bounds, *(OTHERS[name][2:] for name in names)], dtype=np.float64).reshape(-1, 2)
        log_inputs = float(np.log(family.X.shape[1]))
        self._centre = 0.5 * log_inputs
        linear_term = OTHERS["linear"]
        self._normal = OTHERS | {"linear": linear_term._replace(centre=linear_term.centre - log_inputs)}

    def parts(self, theta: Array) -> Parts:
        """Hyperparameter vectors by their parts."""
        free = {name: theta[:, place] for name, place in self._places.items()}
        linear = np.zeros(len(theta))
        if "linear" in free:
            linear = np.exp(free["linear"])
        noise = np.full(len(theta), self._fixed_noise or 0.0)
        if "noise" in free:
            noise = np.exp(free["noise"])
        amplitude = None
        if "amplitude" in free:
            amplitude = np.exp(free["amplitude"])
        return Parts(theta[:, : self._n_kernel], linear, noise, free.get("exponent"), amplitude)

    def gradient(self, kernel: Array, **others: Array) -> Array:
        """Gradients in hyperparameter vectors, (C, p), from those in their parts; of parts that are not free, none."""
        found = np.zeros((len(kernel), len(self.bounds)))
        found[:, : self._n_kernel] = kernel
        for name, value in others.items():
            if name in self._places:
                found[:, self._places[name]] = value
        return found

    def start(self, kernel: Array, noise: float, exponent: float) -> Array:
        """A hyperparameter vector with these parts, the others at their centre."""
        values = {name: normal.centre for name, normal in self._normal.items()}
        values |= {"noise": float(np.log(noise)), "exponent": exponent}
        others = [values[name] for name in self._places]
        return np.clip(np.append(kernel[: self._n_lengths], others), *self.bounds.T)

    def log_density(self, theta: Array) -> tuple[Array, Array]:
        """Logarithm of the density, up to a constant, (C,), and its gradient, (C, p)."""
        value, gradient = np.zeros(len(theta)), np.zeros(theta.shape)
        if self.family.bounds is None:
            value, gradient[:, : self._n_lengths] = self._log_density_of_lengths(theta[:, : self._n_lengths])
        for name, place in self._places.items():
            centre, spread, _, _ = self._normal[name]
            z = (theta[:, place] - centre) / spread
            value = value - 0.5 * z**2
            gradient[:, place] = -z / spread
        if "noise" in self._places:
            below = theta[:, self._places["noise"]] - LITTLE_NOISE
            value = value + NOISE_POWER * np.minimum(below, 0.0)
            gradient[:, self._places["noise"]] = NOISE_POWER * (below < 0.0)
        return value, gradient

    def _log_density_of_lengths(self, lengths: Array) -> tuple[Array, Array]:
        """Log density of the mixture of log length scales, (C, k), and its gradient."""
        centre = self._centre + np.repeat(CENTRES, SPREADS.size)
        spread = np.tile(SPREADS, CENTRES.size)
        z = (lengths[:, :, None] - centre) / spread  # (C, k, components)
        # log of the sum over components of exp(-|z|^2 / 2) / s^k
        each = -0.5 * (z**2).sum(axis=1) - lengths.shape[1] * np.log(spread)
        largest = each.max(axis=1)
        share = np.exp(each - largest[:, None])
        total = share.sum(axis=1)
        return largest + np.log(total), -((z / spread) @ (share / total[:, None])[:, :, None])[:, :, 0]

    def sample(self, n: int, rng: np.random.RandomState) -> Array:
        """Independent draws, (n, p)."""
        found = np.empty((n, len(self.bounds)))
        low, high = self.bounds[: self._n_lengths].T
        centre = self._centre + rng.choice(CENTRES, n)[:, None]
        spread = rng.choice(SPREADS, n)[:, None]
        lengths = centre + spread * rng.standard_normal((n, self._n_lengths))
        uniform = rng.uniform(low, high, (n, self._n_lengths))
        found[:, : self._n_lengths] = np.clip(lengths, low, high) if self.family.bounds is None else uniform
        for name, place in self._places.items():
            if name == "noise":
                found[:, place] = _sample_noise(n, rng)
            else:
                found[:, place] = rng.normal(*self._normal[name][:2], n)
        outside = (found < self.bounds[:, 0]) | (found > self.bounds[:, 1])
        again = np.flatnonzero(outside.any(axis=1))
        if again.size:
            found[again] = self.sample(again.size, rng)
        return found


def _sample_noise(n: int, rng: np.random.RandomState) -> Array:
    """Draws of the log noise ratio, by the inverse of its distribution function."""
    _, _, low, high = OTHERS["noise"]
    least = np.exp(NOISE_POWER * (low - LITTLE_NOISE))
    below = (1.0 - least) / NOISE_POWER  # mass below LITTLE_NOISE, that above being the distance
    mass = rng.uniform(0.0, below + high - LITTLE_NOISE, n)
    falling = LITTLE_NOISE + np.log(least + NOISE_POWER * np.minimum(mass, below)) / NOISE_POWER
    return np.where(mass < below, falling, LITTLE_NOISE + mass - below)
