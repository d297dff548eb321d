"""What a fitted model is and promises, in everyday words."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from sklearn.gaussian_process.kernels import RBF, ConstantKernel, Kernel, Matern, Product, RationalQuadratic

from conformal_gp.kernels import NeuralNetwork

MOST_LENGTHS = 12
MATERN = {0.5: "exponential", 1.5: "Matérn 3/2", 2.5: "Matérn 5/2"}


def kernel_in_words(kernel: Kernel, noise_variance: float, names: Sequence[str] = ()) -> str:
    """A fitted kernel of one of the usual shapes in words; others as scikit-learn writes them.

    Amplitude and noise are standard deviations: how far the function strays from its mean function, and labels from
    the function. Length scales are in units of the scaled inputs: over about so much the function changes.

    >>> kernel_in_words(4.0 * Matern(7.8, nu=2.5), 0.25)
    'Matérn 5/2, length scale 7.8; amplitude 2, noise 0.5 (standard deviations)'
    >>> kernel_in_words(4.0 * RBF([1.0, 20.0]), 0.25, ["weight", "year"])
    'squared exponential, length scales weight 1, year 20; amplitude 2, noise 0.5 (standard deviations)'
    """
    amplitude, shape = 1.0, kernel
    if isinstance(kernel, Product) and isinstance(kernel.k1, ConstantKernel):
        amplitude, shape = float(np.sqrt(kernel.k1.constant_value)), kernel.k2
    name = _name(shape)
    if name is None:
        return f"{kernel}; noise {np.sqrt(noise_variance):.3g} (standard deviation)"
    spread = f"amplitude {amplitude:.3g}, noise {np.sqrt(noise_variance):.3g} (standard deviations)"
    return f"{name}{_lengths(shape, names)}; {spread}"


def guarantee_in_words(guarantee: str) -> str:
    """What ``guarantee_`` says, without words of the trade.

    >>> guarantee_in_words("Exact: hyperparameters are chosen inside the bag by a descent")
    'Exact: hyperparameters are chosen from training rows and new row together by a descent'
    """
    return guarantee.replace("inside the bag", "from training rows and new row together")


def _name(shape: Kernel) -> str | None:
    if type(shape) is Matern:
        return MATERN.get(shape.nu)
    names = {RBF: "squared exponential", RationalQuadratic: "rational quadratic", NeuralNetwork: "neural network"}
    return names.get(type(shape))


def _lengths(shape: Kernel, names: Sequence[str]) -> str:
    if not hasattr(shape, "length_scale"):
        return ""
    lengths = np.ravel(shape.length_scale)
    if lengths.size == 1:
        return f", length scale {lengths[0]:.3g}"
    known = names if len(names) == lengths.size else [f"x{i}" for i in range(lengths.size)]
    each = [f"{name} {length:.3g}" for name, length in zip(known, lengths, strict=True)]
    more = f" and {len(each) - MOST_LENGTHS} more" if len(each) > MOST_LENGTHS else ""
    return f", length scales {', '.join(each[:MOST_LENGTHS])}{more}"
