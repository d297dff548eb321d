"""The data and the models that are timed."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF, ConstantKernel, Kernel, Matern, WhiteKernel

from conformal_gp import ConformalGPRegressor

Array = NDArray[np.float64]

N_INPUTS = 8
LEVELS = (0.9, 0.95, 0.99)

# Where every search starts, ours and the peers'; also the values at which one likelihood is timed.
START_NOISE = 0.1
KERNELS: dict[str, Kernel] = {
    "SE, one length scale": ConstantKernel(1.0) * RBF(2.0),
    "Matérn 5/2": ConstantKernel(1.0) * Matern(2.0, nu=2.5),
    "SE, eight length scales": ConstantKernel(1.0) * RBF(np.full(N_INPUTS, 2.0)),
}

# Near the optimum of `draw`'s rows: for predictions, where nothing is learnt.
TUNED_KERNEL = ConstantKernel(1.0) * RBF(3.5)
TUNED_NOISE = 0.04


class Rows(NamedTuple):
    """Inputs and labels."""

    X: Array
    y: Array


def draw(n_rows: int, seed: int = 0) -> Rows:
    """Rows of a smooth random function of eight normal inputs, with noise of standard deviation 0.2.

    The function is a sum of 500 random cosines: a draw, nearly, from a Gaussian process with squared exponential
    covariance, variance 1 and length scales from 2.5 to 5. All rows come from one function, whatever the seed.
    """
    function = np.random.default_rng(2024)
    frequencies = function.standard_normal((N_INPUTS, 500)) / np.geomspace(2.5, 5.0, N_INPUTS)[:, None]
    phases = function.uniform(0.0, 2.0 * np.pi, 500)
    weights = function.standard_normal(500) * np.sqrt(2.0 / 500)
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n_rows, N_INPUTS))
    return Rows(X, np.cos(X @ frequencies + phases) @ weights + 0.2 * rng.standard_normal(n_rows))


def ours(kernel: Kernel = TUNED_KERNEL, noise: float = TUNED_NOISE, **params: object) -> ConformalGPRegressor:
    """Our regressor on the model that scikit-learn has too: zero mean, inputs as they are."""
    settings = {"tuning": "train", "mean": "zero", "scale_inputs": False, "n_restarts": 0, "random_state": 0}
    return ConformalGPRegressor(kernel, noise_variance=noise, **(settings | params))


def scikit_learn(
    kernel: Kernel = TUNED_KERNEL, noise: float = TUNED_NOISE, **params: object
) -> GaussianProcessRegressor:
    """The same model in scikit-learn, where the noise is a kernel."""
    return GaussianProcessRegressor(kernel + WhiteKernel(noise), random_state=0, **params)
