r"""Covariance matrices with their pull-backs.

The gradient of a likelihood needs :math:`\sum_{ij} Q_{ij}\, \partial K_{ij} / \partial \theta` for each hyperparameter,
never the l x l x p array of derivatives itself. So each kernel here gives its matrix K and a *pull-back*: a function
from Q to those sums. Pull-backs are linear in Q.

A square matrix is given by its lower triangle, and Q likewise, off-diagonal entries counted twice: half the work.
Elementwise formulas run over blocks of rows that stay in the cache, so a kernel costs little more than its exponential.

Kernels are looked up by their exact type: a subclass may override the formula, so it takes scikit-learn's own
``eval_gradient=True`` like any kernel that is not known here.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cache, cached_property
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.gaussian_process.kernels import (
    RBF,
    ConstantKernel,
    Exponentiation,
    Kernel,
    Matern,
    Product,
    RationalQuadratic,
    Sum,
    WhiteKernel,
)

from conformal_gp.gp.slopes import Shape
from conformal_gp.gp.stationary import (
    MATERN32,
    MATERN52,
    SQUARED_EXPONENTIAL,
    covariances,
    covariances_at,
    squared_distances,
)
from conformal_gp.kernels import NeuralNetwork

Array = NDArray[np.float64]
Pullback = Callable[[Array], Array]
Covariance = tuple[Array, Pullback]
Block = tuple[slice, slice]


@cache
def _lower_ones(n: int) -> Array:
    return np.tri(n)


def keep_lower(square: Array) -> None:
    """Set what is above the diagonal of a small square block to zero, in place."""
    square *= _lower_ones(square.shape[0])


class Pairs:
    """Rows of X against rows of Z, with the distances that several kernels, or several calls, share."""

    def __init__(self, X: Array, Z: Array | None = None):
        self.X = X
        self.Z = X if Z is None else Z
        self.square = Z is None

    @property
    def shape(self) -> tuple[int, int]:
        """Shape of a covariance matrix over these pairs."""
        return self.X.shape[0], self.Z.shape[0]

    @cached_property
    def centred(self) -> tuple[Array, Array]:
        """X and Z less the median of Z: only differences count, and sums of squares are rounded less."""
        centre = np.median(self.Z, axis=0)
        X = self.X - centre
        return X, X if self.square else self.Z - centre

    @cached_property
    def squared_distances(self) -> Array:
        """Squared Euclidean distances."""
        return squared_distances(self.X, self.Z)

    def squares(self, block: Block) -> Array:
        """Squared distances of a block; those between different sets of rows are not kept, unless they are already."""
        if self.square or "squared_distances" in self.__dict__:
            return self.squared_distances[block]
        return squared_distances(self.X[block[0]], self.Z[block[1]])

    def take(self, rows: NDArray[np.int64]) -> Pairs:
        """Some rows of X against all of Z, with the distances that are known already."""
        taken = Pairs(self.X[rows], self.Z)
        X, Z = self.centred
        taken.__dict__["centred"] = X[rows], Z
        if "squared_distances" in self.__dict__:
            taken.__dict__["squared_distances"] = self.squared_distances[rows]
        return taken

    def blocks(self) -> Iterator[tuple[slice, slice]]:
        """Rows and columns of blocks of a quarter of a megabyte that hold the lower triangle; all, if not square."""
        n, m = self.shape
        step = max(1, 2**15 // max(1, m))
        if self.square:
            step = min(step, max(64, n // 4))  # what is above the diagonal in a block is wasted
        for start in range(0, n, step):
            stop = min(start + step, n)
            yield slice(start, stop), slice(0, stop if self.square else m)

    def lower(self, K: Array) -> Array:
        """Copy of the lower triangle of a square matrix, zeros above."""
        copy = np.zeros(self.shape)
        for rows, columns in self.blocks():
            copy[rows, columns] = K[rows, columns]
            keep_lower(copy[rows, rows])
        return copy

    def lower_in_place(self, K: Array) -> Array:
        """The same of a matrix whose pull-back is not needed: without a copy, if it has memory of its own."""
        if not (K.flags.owndata and K.flags.writeable):
            return self.lower(K)
        for rows, columns in self.blocks():
            K[rows, columns.stop :] = 0.0
            keep_lower(K[rows, rows])
        return K

    def inner(self, Q: Array, K: Array) -> float:
        """Sum of the elementwise product, over the lower triangle if square."""
        return sum(float(np.einsum("ij,ij->", Q[block], K[block])) for block in self.blocks())


_known: dict[type, Callable[..., Covariance]] = {}


def _register(kernel_type: type) -> Callable[[Callable], Callable]:
    def add(function: Callable[..., Covariance]) -> Callable:
        _known[kernel_type] = function
        return function

    return add


def covariance(kernel: Kernel, pairs: Pairs, scale: float = 1.0) -> Covariance:
    """Matrix of ``scale * kernel`` over ``pairs``, and its pull-back.

    Parameters
    ----------
    kernel : sklearn.gaussian_process.kernels.Kernel
        Any kernel on vectors.
    pairs : Pairs
        The inputs. The pull-back makes sense for a square matrix only.
    scale : float, default=1.0
        A factor that is not a hyperparameter (an amplitude's value is handed down to its shape this way).

    Returns
    -------
    K : ndarray of shape (n, m)
        The covariances; of a square matrix the lower triangle, what is above being of no meaning. The pull-back needs
        them, so they are not to be written to.
    pullback : callable
        From a lower triangle Q, zeros above, to the gradient of sum(Q * K) in ``kernel.theta`` (logarithms, fixed ones
        left out).
    """
    return _known.get(type(kernel), _by_scikit_learn)(kernel, pairs, scale)


def _by_scikit_learn(kernel: Kernel, pairs: Pairs, scale: float) -> Covariance:
    if not pairs.square:
        return scale * kernel(pairs.X, pairs.Z), _no_gradient
    if kernel.n_dims == 0:
        return scale * kernel(pairs.X), _no_gradient
    K, K_gradient = kernel(pairs.X, eval_gradient=True)
    return scale * K, lambda Q: scale * np.einsum("ij,ijp->p", Q, K_gradient)


def _no_gradient(Q: Array) -> Array:
    return np.empty(0)


def _inner(Q: Array, K: Array) -> float:
    return float(np.einsum("ij,ij->", Q, K))


@_register(ConstantKernel)
def _constant(kernel: ConstantKernel, pairs: Pairs, scale: float) -> Covariance:
    value = scale * float(kernel.constant_value)
    return np.full(pairs.shape, value), lambda Q: np.full(kernel.n_dims, value * Q.sum())


@_register(WhiteKernel)
def _white(kernel: WhiteKernel, pairs: Pairs, scale: float) -> Covariance:
    if not pairs.square:
        return np.zeros(pairs.shape), _no_gradient
    level = scale * float(kernel.noise_level)
    return level * np.eye(pairs.shape[0]), lambda Q: np.full(kernel.n_dims, level * np.trace(Q))


@_register(Sum)
def _sum(kernel: Sum, pairs: Pairs, scale: float) -> Covariance:
    K1, pull1 = covariance(kernel.k1, pairs, scale)
    K2, pull2 = covariance(kernel.k2, pairs, scale)
    return K1 + K2, lambda Q: np.concatenate([pull1(Q), pull2(Q)])


@_register(Product)
def _product(kernel: Product, pairs: Pairs, scale: float) -> Covariance:
    if type(kernel.k1) is ConstantKernel:  # an amplitude: no matrix of its own
        K, pull = covariance(kernel.k2, pairs, scale * float(kernel.k1.constant_value))
        return K, lambda Q: np.concatenate([np.full(kernel.k1.n_dims, pairs.inner(Q, K)), pull(Q)])
    K1, pull1 = covariance(kernel.k1, pairs, scale)
    K2, pull2 = covariance(kernel.k2, pairs)
    return K1 * K2, lambda Q: np.concatenate([pull1(Q * K2), pull2(Q * K1)])


@_register(Exponentiation)
def _power(kernel: Exponentiation, pairs: Pairs, scale: float) -> Covariance:
    exponent = kernel.exponent
    K, pull = covariance(kernel.kernel, pairs)
    return scale * K**exponent, lambda Q: pull(Q * (scale * exponent * K ** (exponent - 1)))


def _by_rows(
    kernel: Kernel,
    pairs: Pairs,
    scale: float,
    value: Callable[[Block], Array],
    pull: Callable[[Block, Array, Array], Array],
) -> Covariance:
    """Covariance from formulas for a block: its part of the matrix, and its part of the sums, from Q and the matrix."""
    K = np.zeros(pairs.shape) if pairs.square else np.empty(pairs.shape)
    for block in pairs.blocks():
        np.multiply(value(block), scale, out=K[block])
    return K, _pullback(kernel, pairs, scale, K, pull)


def _pullback(
    kernel: Kernel, pairs: Pairs, scale: float, K: Array, pull: Callable[[Block, Array, Array], Array]
) -> Pullback:
    """Pull-back from a formula for a block: its part of the sums, from Q and the matrix."""

    def pullback(Q: Array) -> Array:
        if kernel.n_dims == 0:
            return np.empty(0)
        return scale * np.sum([pull(block, Q[block], K[block]) for block in pairs.blocks()], axis=0)

    return pullback


class Profile(NamedTuple):
    r"""A stationary covariance as a function of :math:`r^2 = |x - z|^2 / \ell^2`, with unit amplitude."""

    shape: int
    """Its number in :mod:`conformal_gp.gp.stationary`."""
    slope: Callable[[Array], Array] | None
    """-2 dk / dr²; its argument may not be overwritten; None is the value itself."""


def _exp(exponent: Array) -> Array:
    """Exponential of an array that is not needed again."""
    return np.exp(exponent, out=exponent)


def _minus_root(c: float, r2: Array) -> Array:
    """-t = -(c r²)^(1/2)."""
    t = r2 * c
    np.sqrt(t, out=t)
    return np.negative(t, out=t)


def _matern52_slope(r2: Array) -> Array:
    """(5/3) (1 + t) exp(-t)."""
    exponent = _minus_root(5.0, r2)
    factor = exponent * (-5.0 / 3.0)
    factor += 5.0 / 3.0
    factor *= _exp(exponent)
    return factor


_SQUARED_EXPONENTIAL = Profile(SQUARED_EXPONENTIAL, None)
_MATERN = {
    1.5: Profile(MATERN32, lambda r2: 3.0 * _exp(_minus_root(3.0, r2))),
    2.5: Profile(MATERN52, _matern52_slope),
    np.inf: _SQUARED_EXPONENTIAL,
}


@_register(RBF)
def _squared_exponential(kernel: RBF, pairs: Pairs, scale: float) -> Covariance:
    return _stationary(kernel, pairs, scale, _SQUARED_EXPONENTIAL)


@_register(Matern)
def _matern(kernel: Matern, pairs: Pairs, scale: float) -> Covariance:
    if kernel.nu not in _MATERN:
        return _by_scikit_learn(kernel, pairs, scale)
    return _stationary(kernel, pairs, scale, _MATERN[kernel.nu])


def stationary_shape(kernel: Kernel, scale: float) -> Shape | None:
    """A squared exponential or Matérn kernel times an amplitude, or None if it is another."""
    profile = (
        _SQUARED_EXPONENTIAL if type(kernel) is RBF else _MATERN.get(kernel.nu) if type(kernel) is Matern else None
    )
    return None if profile is None else Shape(profile.shape, scale, kernel.length_scale)


def _stationary(kernel: Kernel, pairs: Pairs, scale: float, profile: Profile) -> Covariance:
    r"""One length scale, or one for each input.

    With S the profile's slope, :math:`\partial K_{ij} / \partial \log \ell_d = S_{ij} (x_{id} - x_{jd})^2 / \ell_d^2`.
    """
    if not kernel.anisotropic:
        inverse_square = float(np.ravel(kernel.length_scale)[0]) ** -2.0

        def r2(block: Block) -> Array:
            return pairs.squares(block) * inverse_square

        def pull_one(block: Block, Q: Array, K: Array) -> Array:
            squares = r2(block)
            if profile.slope is None:
                squares *= K
                return np.array([_inner(Q, squares) / scale])
            slope = profile.slope(squares)
            slope *= squares
            return np.array([_inner(Q, slope)])

        if pairs.square or "squared_distances" in pairs.__dict__:
            K = covariances_at(pairs.squared_distances * inverse_square, profile.shape, scale, pairs.square)
        else:
            X, Z = (rows * np.sqrt(inverse_square) for rows in pairs.centred)
            K = covariances(X, Z, profile.shape, scale, lower=False)
        return K, _pullback(kernel, pairs, scale, K, pull_one)

    length_scale = np.asarray(kernel.length_scale, dtype=float)
    X = pairs.centred[0] / length_scale
    Z = X if pairs.square else pairs.centred[1] / length_scale

    def r2_scaled(block: Block) -> Array:
        rows, columns = block
        return squared_distances(X[rows], Z[columns])

    def pull_each(block: Block, Q: Array, K: Array) -> Array:
        W = K / scale if profile.slope is None else profile.slope(r2_scaled(block))
        W *= Q
        x, z = X[block[0]], Z[block[1]]
        squares = W.sum(axis=1) @ x**2 + W.sum(axis=0) @ z**2
        return squares - 2.0 * np.einsum("ij,ij->j", x, W @ z)

    K = covariances(X, Z, profile.shape, scale, pairs.square)
    return K, _pullback(kernel, pairs, scale, K, pull_each)


@_register(RationalQuadratic)
def _rational_quadratic(kernel: RationalQuadratic, pairs: Pairs, scale: float) -> Covariance:
    alpha, ell = float(kernel.alpha), float(kernel.length_scale)
    learnt = [not kernel.hyperparameter_alpha.fixed, not kernel.hyperparameter_length_scale.fixed]

    def u(block: Block) -> Array:
        return 1.0 + pairs.squares(block) * (0.5 / (alpha * ell**2))  # 1 + r²/(2 alpha)

    def pull(block: Block, Q: Array, K: Array) -> Array:
        u_block = u(block)
        log_u = np.log(u_block)
        W = Q * np.exp(-alpha * log_u)
        decline = alpha * _inner(W, 1.0 - 1.0 / u_block)  # r²/(2 u) = alpha (1 - 1/u)
        return np.array([decline - alpha * _inner(W, log_u), 2.0 * decline])[learnt]

    return _by_rows(kernel, pairs, scale, lambda block: u(block) ** -alpha, pull)


@_register(NeuralNetwork)
def _neural_network(kernel: NeuralNetwork, pairs: Pairs, scale: float) -> Covariance:
    def value(block: Block) -> Array:
        return kernel.value(pairs.X[block[0]], pairs.Z[block[1]])

    def pull(block: Block, Q: Array, K: Array) -> Array:
        return np.array([_inner(Q, kernel.derivative(pairs.X[block[0]], pairs.Z[block[1]]))])

    return _by_rows(kernel, pairs, scale, value, pull)
