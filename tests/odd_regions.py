"""Small problems whose regions have shapes that are easy to get wrong: holes and rays."""

from fractions import Fraction

import numpy as np
from numpy.typing import NDArray
from sklearn.gaussian_process.kernels import RBF, DotProduct, Kernel

Array = NDArray[np.float64]
Problem = tuple[Kernel, float, Array, Array, Array, float, Fraction]


def _one_feature(
    kernel: Kernel,
    noise_variance: float,
    inputs: list[float],
    labels: list[float],
    x_new: float,
    gamma: float,
    count: int,
) -> Problem:
    """Problem with one feature, whose region is where more than `count` rows conform.

    The level is halfway between two multiples of 1/(l+1), so that no rounding of it changes the region.
    """
    X, y = np.array(inputs)[:, np.newaxis], np.array(labels)
    delta = Fraction(2 * count + 1, 2 * (len(y) + 1))
    return kernel, noise_variance, X, y, np.array([x_new]), gamma, delta


def with_hole(gamma: float = 1.0) -> Problem:
    """Problem whose region is bounded and consists of two intervals of positive length.

    Holes need a row whose score moves faster with the candidate label than that of the new row. There is none
    if gamma = 2, by the Cauchy-Schwarz inequality for the positive definite matrix C; for smaller gamma it
    happens if the new input is far from a cluster of training inputs, for larger gamma if it is near one.

    Parameters
    ----------
    gamma : 1, 3 or inf
        Root parameter.

    Returns
    -------
    kernel, noise_variance, X, y, x_new, gamma, delta
        The region is about [-2.902, -0.026] and [1.498, 2.923] for gamma = 1, [-0.457, -0.129]
        and [0.426, 1.057] for gamma = 3, and [-1.877, -0.632] and [0.378, 1.681] for infinite gamma.
    """
    if gamma == 1:
        return _one_feature(RBF(2.0), 0.01, [0.4, 0.7, -0.2], [-0.3, 1.0, -0.1], -1.0, gamma, 3)
    if gamma == 3:
        return _one_feature(RBF(2.0), 0.01, [-1.6, 0.2, 1.8, 0.0], [0.9, -0.2, 0.0, -0.2], 1.0, gamma, 2)
    if np.isinf(gamma):
        inputs, labels = [-0.8, -1.5, -1.0, 0.7, -0.4], [-1.4, -0.3, 0.8, 0.1, -0.4]
        return _one_feature(RBF(0.5), 0.01, inputs, labels, -1.3, gamma, 4)
    raise ValueError("gamma must be 1, 3 or inf")


def with_ray(gamma: float = 1.0) -> Problem:
    """Problem whose region is unbounded on both sides and has holes.

    No two slopes are close to equal, so the shape does not depend on rounding.

    Parameters
    ----------
    gamma : 1, 3 or inf
        Root parameter.

    Returns
    -------
    kernel, noise_variance, X, y, x_new, gamma, delta
        The region is about (-inf, -51.3], [-18.2, 20.0] and [40.4, inf) for gamma = 1, (-inf, 0.419]
        and [1.715, inf) for gamma = 3, and (-inf, -6.14], [-1.06, 1.47] and [8.13, inf) for infinite gamma.
    """
    if gamma == 1:
        inputs, labels = [1.3, -1.4, 1.1, 1.3, -0.8, -1.1], [0.9, 0.8, 0.3, -0.4, -1.3, 1.8]
        return _one_feature(RBF(1.0), 0.01, inputs, labels, 1.9, gamma, 3)
    if gamma == 3:
        return _one_feature(RBF(1.0), 0.01, [-0.7, 0.7, 0.7, 1.6], [-2.0, -0.5, -0.5, 1.3], 1.0, gamma, 1)
    if np.isinf(gamma):
        inputs, labels = [0.8, 0.1, -0.9, 1.5, 0.8], [-0.9, 1.5, 0.0, 1.1, 0.4]
        return _one_feature(RBF(1.0), 0.01, inputs, labels, 0.5, gamma, 3)
    raise ValueError("gamma must be 1, 3 or inf")


def with_single_ray(gamma: float = 1.0) -> Problem:
    """Problem whose region is one ray, by hand: two slopes are exactly equal, the case (point).

    One training row and the kernel x x' with unit noise. For gamma = 1 the row (1, 1) and the new input 2
    give scores proportional to |5 - 2t| and |2t - 2|, thus the region (-inf, 7/4]. For infinite gamma the row
    (2, 1) and the new input 1 give |1 - t| and |t - 2/5|, thus (-inf, 7/10].

    Rounding may break the tie between the slopes; an implementation without a tolerance then finds a second
    piece that starts at some 1e15 or ends the ray there.

    Parameters
    ----------
    gamma : 1 or inf
        Root parameter.

    Returns
    -------
    kernel, noise_variance, X, y, x_new, gamma, delta
    """
    if gamma == 1:
        return _one_feature(DotProduct(0.0), 1.0, [1.0], [1.0], 2.0, gamma, 1)
    if np.isinf(gamma):
        return _one_feature(DotProduct(0.0), 1.0, [2.0], [1.0], 1.0, gamma, 1)
    raise ValueError("gamma must be 1 or inf")
