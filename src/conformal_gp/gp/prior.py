r"""A prior that keeps the length scales of different inputs alike unless the rows say otherwise.

The logarithm of each length scale, relative to its start, has Student's t distribution with three degrees of freedom
and scale :math:`\tau` about their median. Small differences must be supported by the rows; but a length scale a
thousand times as long as the others, for an input that does not matter, costs only a few nats. With few rows for each
input :math:`\tau` is made smaller: there is then little to learn about each.
"""

from __future__ import annotations

import numpy as np
from sklearn.gaussian_process.kernels import ConstantKernel, Kernel, Product

from conformal_gp.types import Array, Mask, Rows

DEVIATION = 0.5
"""Scale τ, found on other data than those of any table here (docs/guarantee.md)."""
DEGREES = 3.0
"""Degrees of freedom of the t distribution."""
ROWS_EACH = 2
"""With fewer rows than this for each input the prior is made stronger."""


class LengthScalePrior:
    """Minus the log density of the prior, but for a constant, as a function of a kernel's hyperparameters.

    Parameters
    ----------
    kernel : sklearn.gaussian_process.kernels.Kernel
        A kernel at its start.
    deviation : float or None
        τ; None is a flat prior.
    n_rows : int
        Rows to learn from.

    Examples
    --------
    >>> from sklearn.gaussian_process.kernels import RBF
    >>> prior = LengthScalePrior(RBF([1.0, 1.0]), deviation=0.5, n_rows=100)
    >>> prior(np.log([2.0, 2.0]))[0], prior(np.log([1.0, 4.0]))[0] > 1.0
    (0.0, True)
    """

    def __init__(self, kernel: Kernel, deviation: float | None, n_rows: int):
        names, number = hyperparameter_names(kernel)
        self._start = kernel.theta.copy()
        lengths = np.array([name.endswith("length_scale") for name in names], dtype=bool)
        groups = [np.flatnonzero(lengths & (number == n)) for n in np.unique(number[lengths])]
        self._terms: list[tuple[Rows, float]] = []
        """Length scales that belong together, and their precision."""
        if deviation is not None:
            self._terms = [(g, max(1.0, ROWS_EACH * g.size / n_rows) / deviation**2) for g in groups if g.size > 1]

    def __call__(self, theta: Array) -> tuple[float, Array]:
        """Value and gradient."""
        value, gradient = 0.0, np.zeros(theta.size)
        for group, precision in self._terms:
            x = theta[group] - self._start[group]
            order = np.argsort(x)
            middle = order[[(x.size - 1) // 2, x.size // 2]]
            away = x - x[middle].mean()
            spread = DEGREES / precision + away**2
            value += 0.5 * (DEGREES + 1.0) * float(np.log(spread * precision / DEGREES).sum())
            slope = (DEGREES + 1.0) * away / spread
            np.add.at(slope, middle, -0.5 * slope.sum())  # the median moves with the middle ones
            gradient[group] = slope
        return value, gradient


def hyperparameter_names(kernel: Kernel) -> tuple[list[str], Rows]:
    """Name of each entry of ``kernel.theta``, and the number of the hyperparameter that it is an element of."""
    free = [h for h in kernel.hyperparameters if not h.fixed]
    sizes = [h.n_elements for h in free]
    return [str(name) for name in np.repeat([h.name for h in free], sizes)], np.repeat(np.arange(len(free)), sizes)


def is_length(kernel: Kernel) -> Mask:
    """Which entries of ``kernel.theta`` are length scales."""
    return np.array([name.endswith("length_scale") for name in hyperparameter_names(kernel)[0]], dtype=bool)


def is_amplitude(kernel: Kernel) -> Mask:
    """Which entries of ``kernel.theta`` are factors of the whole kernel.

    >>> from sklearn.gaussian_process.kernels import RBF
    >>> is_amplitude(ConstantKernel() * RBF([1.0, 1.0]))
    array([ True, False, False])
    >>> is_amplitude(ConstantKernel() * RBF(1.0) + RBF(2.0))
    array([False, False, False])
    """
    if isinstance(kernel, Product):
        return np.concatenate([is_amplitude(kernel.k1), is_amplitude(kernel.k2)])
    return np.full(kernel.n_dims, type(kernel) is ConstantKernel)
