r"""Length scales of different inputs: the prior that shrinks them towards each other, and categories that share one.

Let :math:`x_d` be the logarithms of the length scales, relative to their start, and :math:`\bar x` their mean. The
deviations :math:`x_d - \bar x` have a normal prior whose variance is itself unknown, with an inverse gamma prior.
Integrated out, that leaves a multivariate t distribution, minus whose log density is, but for a constant,

.. math:: \tfrac12 (\nu + D - 1) \log \left( 1 + \frac{1}{\nu \tau^2} \sum_d (x_d - \bar x)^2 \right) .

So the rows say how alike length scales are: small differences must be supported by the likelihood, but where one
input matters far less than another, the others are free to differ too.
"""

from __future__ import annotations

import os

import numpy as np
from sklearn.base import clone
from sklearn.gaussian_process.kernels import Kernel

from conformal_gp.kernels import hyperparameter_names, is_length
from conformal_gp.types import Array, Rows

SCALE = float(os.environ.get("CGP_TAU", "0.5"))
DEGREES = float(os.environ.get("CGP_DOF", "3.0"))
KIND = os.environ.get("CGP_PRIOR", "mt")
ROWS_EACH = float(os.environ.get("CGP_EACH", "2"))
"""With more inputs than this, categories of one variable share a length scale."""
MANY_INPUTS = 50


class LengthScalePrior:
    """Minus the log density of the prior, but for a constant, as a function of a kernel's hyperparameters.

    Parameters
    ----------
    kernel : sklearn.gaussian_process.kernels.Kernel
        A kernel at its start; each of its vectors of length scales has the prior.
    """

    def __init__(self, kernel: Kernel, n_rows: int = 100):
        number, lengths = hyperparameter_names(kernel)[1], is_length(kernel)
        groups = [np.flatnonzero(lengths & (number == n)) for n in np.unique(number[lengths])]
        self._groups = [group for group in groups if group.size > 1]
        self._start = kernel.theta.copy()
        self._n = n_rows

    def __call__(self, theta: Array) -> tuple[float, Array]:
        """Value and gradient."""
        value, gradient = 0.0, np.zeros(theta.size)
        for group in self._groups:
            deviation = theta[group] - self._start[group]
            prec = max(1.0, ROWS_EACH * group.size / self._n) / SCALE**2
            if KIND == "mt":
                deviation = deviation - deviation.mean()
                spread = DEGREES / prec + deviation @ deviation
                weight = DEGREES + group.size - 1.0
                value += 0.5 * weight * np.log(spread * prec / DEGREES)
                gradient[group] = weight * deviation / spread
            elif KIND == "n":
                deviation = deviation - deviation.mean()
                value += 0.5 * prec * deviation @ deviation
                gradient[group] = prec * deviation
            elif KIND == "it":
                order = np.argsort(deviation)
                lo, hi = order[(deviation.size - 1) // 2], order[deviation.size // 2]
                away = deviation - 0.5 * (deviation[lo] + deviation[hi])
                spread = DEGREES / prec + away**2
                value += 0.5 * (DEGREES + 1) * np.log(spread * prec / DEGREES).sum()
                slope = (DEGREES + 1) * away / spread
                tot = slope.sum()
                slope[lo] -= 0.5 * tot
                slope[hi] -= 0.5 * tot
                gradient[group] = slope
        return value, gradient


def variables(X: Array) -> Rows:
    """Number of the variable that each input belongs to.

    Inputs side by side are the categories of one variable if they have two values each and exactly one of them is at
    its larger value in every row. An input that is constant goes with those before or after it.

    Parameters
    ----------
    X : ndarray of shape (l, d)
        Inputs, scaled or not.

    Returns
    -------
    number : ndarray of int of shape (d,)
        From 0 on, in the order of the inputs.

    Examples
    --------
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


def for_each_input(kernel: Kernel, number: Rows | None) -> Kernel:
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


def entries(kernel: Kernel, number: Rows | None) -> Rows:
    """For each entry of theta of the kernel of inputs, the entry of the kernel of variables.

    >>> from sklearn.gaussian_process.kernels import RBF, ConstantKernel
    >>> entries(ConstantKernel() * RBF([1.0, 2.0]), np.array([0, 1, 1]))
    array([0, 1, 2, 2])
    """
    every, lengths = np.arange(kernel.n_dims), np.flatnonzero(is_length(kernel))
    if number is None or lengths.size <= 1:
        return every
    return np.concatenate([every[: lengths[0]], lengths[number], every[lengths[-1] + 1 :]])
