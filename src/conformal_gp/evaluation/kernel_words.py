"""Fitted kernels and guarantees in everyday words."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from sklearn.gaussian_process.kernels import (
    RBF,
    ConstantKernel,
    DotProduct,
    Kernel,
    Matern,
    Product,
    RationalQuadratic,
    Sum,
)

from conformal_gp.gp.kernels import NeuralNetwork

MOST_LENGTHS = 12
NAMES = {RBF: "squared exponential", RationalQuadratic: "rational quadratic", NeuralNetwork: "neural network"}
MATERN = {0.5: "exponential", 1.5: "Matérn 3/2", 2.5: "Matérn 5/2"}
# How hyperparameters were set, by ``tuning_``.
TUNING = {
    "fixed": "given beforehand",
    "train": "tuned on all rows",
    "holdout": "tuned on 70% of the rows, calibrated on the rest",
    "integrated": "averaged over, weighted by the likelihood of the training rows and the new row",
}


def kernel_in_words(kernel: Kernel, noise_variance: float, names: Sequence[str] = (), scaled: bool = True) -> str:
    """A fitted kernel of one of the usual shapes in words; others as scikit-learn writes them.

    The function changes over about a length scale; the amplitude is its standard deviation about its mean function and
    trend, the noise that of the target about it. ``scaled`` is whether inputs were divided by their standard
    deviations.

    >>> kernel_in_words(4.0 * Matern(7.8, nu=2.5), 0.25)
    'Matérn 5/2, length scale 7.8 standard deviations of the inputs; amplitude 2, noise 0.5 (standard deviations)'
    >>> kernel_in_words(4.0 * Matern(7.8, nu=2.5) + 0.01 * DotProduct(0.0), 0.25).split(";")[1]
    ' amplitude 2, linear trend 0.1, noise 0.5 (standard deviations)'
    >>> kernel_in_words(4.0 * RBF([1.0, 20.0]), 0.25, ["weight", "year"]).split(";")[0]
    'squared exponential, length scales weight 1, year 20 standard deviations of the inputs'
    """
    shape = kernel
    trend = ""
    if isinstance(shape, Sum) and isinstance(_scaled(shape.k2)[1], DotProduct):
        trend = f", linear trend {_scaled(shape.k2)[0]:.3g}"
        shape = shape.k1
    amplitude, shape = _scaled(shape)
    name = NAMES.get(type(shape))
    if type(shape) is Matern:
        name = MATERN.get(shape.nu)
    noise = f"noise {np.sqrt(noise_variance):.3g}"
    if name is None:
        return f"{kernel}; {noise} (standard deviation)"
    return f"{name}{_lengths(shape, names, scaled)}; amplitude {amplitude:.3g}{trend}, {noise} (standard deviations)"


def _scaled(kernel: Kernel) -> tuple[float, Kernel]:
    """Split a kernel into the standard deviation that scales it and its shape."""
    if isinstance(kernel, Product) and isinstance(kernel.k1, ConstantKernel):
        return float(np.sqrt(kernel.k1.constant_value)), kernel.k2
    return 1.0, kernel


def _lengths(shape: Kernel, names: Sequence[str], scaled: bool) -> str:
    lengths = np.ravel(getattr(shape, "length_scale", []))
    if lengths.size == 0:
        return ""
    unit = ""
    if scaled:
        unit = " standard deviations of the inputs"
    if np.ptp(lengths) == 0.0:
        return f", length scale {lengths[0]:.3g}{unit}"
    if len(names) != lengths.size:
        names = [f"x{i}" for i in range(lengths.size)]
    each = [f"{name} {length:.3g}" for name, length in zip(names, lengths, strict=True)]
    shown = ", ".join(each[:MOST_LENGTHS])
    if len(each) > MOST_LENGTHS:
        shown += f" and {len(each) - MOST_LENGTHS} more"
    return f", length scales {shown}{unit}"


def conditional(guarantee: str, condition: str) -> str:
    """A model's statement about its guarantee, where the rows that it was given void the guarantee.

    >>> conditional("Valid: kernel and noise were fixed beforehand.", "missing values were imputed.")
    'Not valid in general: missing values were imputed. Apart from that, valid: kernel and noise were fixed beforehand.'
    """
    if not condition:
        return guarantee
    return f"Not valid in general: {condition} Apart from that, {guarantee[0].lower()}{guarantee[1:]}"
