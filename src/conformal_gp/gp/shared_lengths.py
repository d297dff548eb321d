"""Many inputs: those that are the categories of one variable share a length scale.

A variable of 28 categories is 28 inputs once it is encoded, one of which is on in each row. With a length scale each,
tables of text have hundreds of them, most of categories that a handful of rows have. The likelihood then takes hundreds
of steps to climb and ends elsewhere from each start. One for each variable is what such rows can tell.
"""

from __future__ import annotations

import numpy as np
from sklearn.base import clone
from sklearn.gaussian_process.kernels import Kernel

from conformal_gp.kernels import is_length
from conformal_gp.types import Array, Rows

MANY_INPUTS = 50
"""With more inputs than this, categories of one variable share a length scale, and searches take fewer steps."""


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
