"""Kernel names, facts about scikit-learn's kernels, and the one covariance of the paper that scikit-learn lacks."""

from __future__ import annotations

from collections.abc import Callable
from copy import copy
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from sklearn.gaussian_process.kernels import (
    RBF,
    CompoundKernel,
    ConstantKernel,
    DotProduct,
    Exponentiation,
    Hyperparameter,
    Kernel,
    Matern,
    Product,
    RationalQuadratic,
    Sum,
    WhiteKernel,
)

from conformal_gp.arrays import Array, Indices, Mask

__all__ = ["KERNEL_NAMES", "NeuralNetwork", "kernel_from_name"]

Bounds = tuple[float, float] | str


class NeuralNetwork(Kernel):
    r"""Neural network (arcsine) covariance, as GPML's ``covNNone``.

    .. math::
        k(x, z) = \arcsin \frac{\tilde x^\top \tilde z}
        {\sqrt{(\ell^2 + \tilde x^\top \tilde x)(\ell^2 + \tilde z^\top \tilde z)}},
        \qquad \tilde x = (1, x)

    The limit of a network with one hidden layer of infinitely many sigmoid units. It is not stationary: functions
    flatten out away from the origin, so it suits centred inputs. Multiply by a ``ConstantKernel`` for an amplitude.

    Parameters
    ----------
    length_scale : float, default=1.0
        Small values let the function change fast near the origin.
    length_scale_bounds : pair of floats >= 0 or "fixed", default=(1e-5, 1e5)
        Bounds within which ``length_scale`` is learnt.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.gaussian_process import GaussianProcessRegressor
    >>> from conformal_gp.gp.kernels import NeuralNetwork
    >>> X = np.linspace(-3, 3, 25)[:, None]
    >>> y = np.sign(X[:, 0])
    >>> gp = GaussianProcessRegressor(4.0 * NeuralNetwork(0.1), alpha=1e-2, optimizer=None).fit(X, y)
    >>> gp.predict([[2.5]]).round(1)
    array([1.])
    """

    def __init__(self, length_scale: float = 1.0, length_scale_bounds: Bounds = (1e-5, 1e5)):
        self.length_scale = length_scale
        self.length_scale_bounds = length_scale_bounds

    @property
    def hyperparameter_length_scale(self) -> Hyperparameter:
        """Description of the only hyperparameter."""
        return Hyperparameter("length_scale", "numeric", self.length_scale_bounds)

    def __call__(
        self, X: ArrayLike, Y: ArrayLike | None = None, eval_gradient: bool = False
    ) -> Array | tuple[Array, Array]:
        """Covariances (n, m) of the rows of ``X`` and ``Y``, optionally with the derivative in log ``length_scale``."""
        if eval_gradient and Y is not None:
            raise ValueError("eval_gradient=True needs Y=None: the gradient is of the square matrix.")
        X = np.atleast_2d(X)
        Z = X if Y is None else np.atleast_2d(Y)
        # with L = l^2, S = x'z, s_x = |x|^2 and s_z = |z|^2 of x = (1, x), the sine of the covariance is S / sqrt((L +
        # s_x) (L + s_z)); the cosine's R^2 = L^2 + L (s_x + s_z) + (s_x s_z - S^2) has no cancellation near the
        # diagonal, where the sine may be near 1
        L = float(self.length_scale) ** 2
        S = 1.0 + X @ Z.T
        sx = 1.0 + np.einsum("ij,ij->i", X, X)[:, None]
        sz = 1.0 + np.einsum("ij,ij->i", Z, Z)[None, :]
        R = np.sqrt(np.maximum(sx * sz - S * S, 0.0) + L * (sx + L) + L * sz)
        K = np.arctan2(S, R)
        if not eval_gradient:
            return K
        if self.hyperparameter_length_scale.fixed:
            return K, np.empty((*K.shape, 0))
        # dk / dlog l = -L S (1 / (L + s_x) + 1 / (L + s_z)) / R
        return K, (-L * S * (1.0 / (L + sx) + 1.0 / (L + sz)) / R)[:, :, None]

    def diag(self, X: ArrayLike) -> Array:
        """Variances at the rows of ``X``: the diagonal of ``self(X)``.

        >>> NeuralNetwork().diag([[0.0], [1.0]]).round(3)
        array([0.524, 0.73 ])
        """
        X = np.atleast_2d(X)
        L = float(self.length_scale) ** 2
        sx = 1.0 + np.einsum("ij,ij->i", X, X)
        return np.arctan2(sx, np.sqrt(L * L + 2.0 * L * sx))

    def is_stationary(self) -> bool:
        """Whether the covariance depends on x - z only.

        >>> NeuralNetwork().is_stationary()
        False
        """
        return False

    def __repr__(self) -> str:
        return f"{type(self).__name__}(length_scale={self.length_scale:.3g})"


# Profiles of stationary kernels: r^2, which is used up, to k and a function that gives its slope -2 dk/dr^2.
def _squared_exponential(r2: Array) -> tuple[Array, Callable[[], Array]]:
    # k = exp(-r^2 / 2), equation 4.9 of Rasmussen and Williams (2006)
    r2 *= -0.5
    K = np.exp(r2, out=r2)
    return K, lambda: K


def _matern32(r2: Array) -> tuple[Array, Callable[[], Array]]:
    # k = (1 + t) exp(-t) with t^2 = 3 r^2, equation 4.17; its slope is 3 exp(-t)
    r2 *= 3.0
    t = np.sqrt(r2, out=r2)
    decay = np.exp(-t)
    t += 1.0
    t *= decay
    return t, lambda: 3.0 * decay


def _matern52(r2: Array) -> tuple[Array, Callable[[], Array]]:
    # k = (1 + t + t^2 / 3) exp(-t) with t^2 = 5 r^2, equation 4.17; its slope is (5/3) (1 + t) exp(-t)
    r2 *= 5.0
    t = np.sqrt(r2)
    decay = np.exp(-t)
    K = r2
    K /= 3.0
    K += t
    K += 1.0
    K *= decay
    return K, lambda: (5.0 / 3.0) * (1.0 + t) * decay


PROFILES = {1.5: _matern32, 2.5: _matern52, np.inf: _squared_exponential}

_SHAPES: dict[str, Callable[[Any, Bounds], Kernel]] = {
    "se": RBF,
    "rbf": RBF,
    "rq": lambda length, bounds: RationalQuadratic(length, 1.0, bounds, (1e-3, 1e5)),
    "nn": NeuralNetwork,
    "matern32": partial(Matern, nu=1.5),
    "matern52": partial(Matern, nu=2.5),
}
KERNEL_NAMES = tuple(_SHAPES)
# Those that can have a length scale for each input.
ANISOTROPIC_NAMES = ("se", "rbf", "matern32", "matern52")


def kernel_from_name(
    name: str, *, amplitude: float = 1.0, length_scale: float = 1.0, n_inputs: int | None = None
) -> Kernel:
    """Write out a kernel's name as a scikit-learn kernel: an amplitude times a shape.

    ``amplitude`` and ``length_scale`` are starting values. With ``n_inputs`` each input has a length scale, where the
    shape can have that.

    >>> kernel_from_name("matern52")
    1**2 * Matern(length_scale=1, nu=2.5)
    """
    if name not in _SHAPES:
        raise ValueError(f"kernel: unknown name {name!r}; known are {', '.join(KERNEL_NAMES)}.")
    lengths: Array | float = length_scale
    if name in ANISOTROPIC_NAMES and n_inputs is not None and n_inputs > 1:
        lengths = np.full(n_inputs, length_scale)
    amplitudes = ConstantKernel(amplitude, (1e-6 * amplitude, 1e6 * amplitude))
    return amplitudes * _SHAPES[name](lengths, (1e-3 * length_scale, 1e4 * length_scale))


def multiplied(kernel: Kernel, factor: float) -> Kernel:
    """A kernel times a number, which goes into its amplitude if it has one.

    >>> multiplied(ConstantKernel(2.0) * RBF(3.0), 8.0)
    4**2 * RBF(length_scale=3)
    >>> multiplied(RBF(3.0), 4.0)
    2**2 * RBF(length_scale=3)
    """
    if isinstance(kernel, Product) and type(kernel.k1) is ConstantKernel:
        bounds = kernel.k1.constant_value_bounds
        if not isinstance(bounds, str):
            bounds = tuple(factor * np.ravel(bounds)) if factor > 0.0 else "fixed"
        return ConstantKernel(factor * kernel.k1.constant_value, bounds) * kernel.k2
    return ConstantKernel(factor, "fixed") * kernel


def hyperparameter_names(kernel: Kernel) -> tuple[list[str], Indices]:
    """Name of each entry of ``kernel.theta``, and the number of the hyperparameter that it is an element of."""
    free = [h for h in kernel.hyperparameters if not h.fixed]
    sizes = [h.n_elements for h in free]
    return [str(name) for name in np.repeat([h.name for h in free], sizes)], np.repeat(np.arange(len(free)), sizes)


def is_length(kernel: Kernel) -> Mask:
    """Which entries of ``kernel.theta`` are length scales."""
    return np.array([name.endswith("length_scale") for name in hyperparameter_names(kernel)[0]], dtype=bool)


def is_amplitude(kernel: Kernel) -> Mask:
    """Which entries of ``kernel.theta`` are factors of the whole kernel.

    >>> is_amplitude(ConstantKernel() * RBF([1.0, 1.0]))
    array([ True, False, False])
    >>> is_amplitude(ConstantKernel() * RBF(1.0) + RBF(2.0))
    array([False, False, False])
    """
    if isinstance(kernel, Product):
        return np.concatenate([is_amplitude(kernel.k1), is_amplitude(kernel.k2)])
    return np.full(kernel.n_dims, type(kernel) is ConstantKernel)


_DEFINITE = (RBF, Matern, RationalQuadratic, ConstantKernel, WhiteKernel, DotProduct, NeuralNetwork)


def is_definite(kernel: Kernel) -> bool:
    """Whether a kernel is known to be positive semi-definite; a subclass may be anything.

    >>> is_definite(RBF(1.0) * Matern(2.0) + WhiteKernel()), is_definite(RBF(1.0) ** 0.5)
    (True, False)
    """
    if type(kernel) in (Sum, Product):
        return is_definite(kernel.k1) and is_definite(kernel.k2)
    if type(kernel) is Exponentiation:
        return float(kernel.exponent).is_integer() and kernel.exponent > 0 and is_definite(kernel.kernel)
    return type(kernel) in _DEFINITE


def at_theta(kernel: Kernel) -> Callable[[Array], Kernel]:
    """Function from theta to the kernel there: ``clone_with_theta``, which looks up names each time, looks up once.

    >>> at_theta(ConstantKernel(2.0) * RBF([1.0, 1.0]))(np.log([4.0, 2.0, 3.0]))
    2**2 * RBF(length_scale=[2, 3])
    """
    if type(kernel) in (Sum, Product):
        first = at_theta(kernel.k1)
        second = at_theta(kernel.k2)
        n = kernel.k1.n_dims
        return lambda theta: type(kernel)(first(theta[:n]), second(theta[n:]))
    if type(kernel) not in _DEFINITE:
        return kernel.clone_with_theta
    free = [(h.name, h.n_elements) for h in kernel.hyperparameters if not h.fixed]

    def found(theta: Array) -> Kernel:
        other = copy(kernel)
        start = 0
        for name, size in free:
            value = np.exp(theta[start : start + size])
            if size == 1:
                value = np.exp(theta[start])
            setattr(other, name, value)
            start += size
        return other

    return found


def check_kernel(kernel: Kernel, X: Array) -> None:
    """Raise a ValueError that says what is wrong with a kernel, or that it does not take these inputs.

    >>> check_kernel(RBF(-1.0), np.zeros((2, 1)))
    Traceback (most recent call last):
    ...
    ValueError: kernel RBF(length_scale=-1): length_scale must be positive and finite, got -1.0.
    """
    if any(isinstance(part, CompoundKernel) for part in [kernel, *kernel.get_params().values()]):
        raise ValueError(
            f"kernel {kernel} holds a CompoundKernel, several kernels side by side, which is no covariance function; "
            "give a list of kernels to choose from, or their sum."
        )
    for hyperparameter in kernel.hyperparameters:
        _check_hyperparameter(kernel, hyperparameter)
    try:
        with np.errstate(all="ignore"):
            kernel(X[:1])
            values = kernel(X[:3], X[:3])
    except ArithmeticError:
        values = np.array(np.nan)
    except ValueError as error:
        raise ValueError(f"kernel {kernel} does not take {X.shape[1]} inputs: {error}") from error
    if not np.isfinite(values).all():
        raise ValueError(f"kernel {kernel} has values that are not finite.")


def _check_hyperparameter(kernel: Kernel, hyperparameter: Hyperparameter) -> None:
    """Values and bounds of what can be learnt, on a logarithmic scale."""
    if hyperparameter.fixed:
        return
    name = hyperparameter.name
    value = kernel.get_params()[name]
    size = np.asarray(value, dtype=float)
    if not ((size > 0.0) & (size < np.inf)).all():
        raise ValueError(f"kernel {kernel}: {name} must be positive and finite, got {value!r}.")
    bounds = np.asarray(hyperparameter.bounds)
    pairs = bounds.dtype.kind in "iuf" and bounds.shape[1:] == (2,)
    if not pairs or not ((bounds[:, 0] >= 0.0) & (bounds[:, 0] <= bounds[:, 1])).all():
        raise ValueError(
            f"kernel {kernel}: bounds of {name} must be a pair of numbers, 0 <= low <= high, got {bounds.tolist()}."
        )
