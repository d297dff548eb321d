r"""The prior of the hyperparameters that are integrated out.

==============================  =====================================================================================
hyperparameter                  prior
==============================  =====================================================================================
log length scales, of inputs    normal, all with the same centre and spread, of which there are several: a mixture
scaled to about unit variance   over centres and spreads, summed out
kernel objects of the user      uniform in their logarithm, between the kernel's own bounds
log odds of the squared         normal
exponential in a blended kernel
log noise ratio                 flat between its bounds, falling with a power of the ratio below :data:`LITTLE_NOISE`
log variance of a linear term   normal
log odds of the power of        normal
length scales in a linear term
exponent of Box and Cox         normal, at least 0.2: upper ends would explode with less
log amplitude, if noise is      normal about the variance of the targets; integrated in closed form otherwise
known
==============================  =====================================================================================

Constants were chosen on the data sets that ``docs/theory.md`` names.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from conformal_gp.arrays import Array

# Length scales: centres, relative to half the logarithm of the number of inputs, and spreads.
CENTRES = np.array([0.0, 0.75, 1.5, 2.25, 3.0])
SPREADS = np.array([0.3, 0.8, 1.5, 2.5])
LENGTH_BOUNDS = (-4.0, 9.0)
# Noise variance over the kernel's: bounds, and where and how fast the density falls.
NOISE_BOUNDS = (np.log(1e-12), np.log(10.0))
LITTLE_NOISE = np.log(1e-2)
NOISE_POWER = 0.3
# Linear term: centre less the logarithm of the number of inputs, and spread.
LINEAR = (-1.0, 2.0)
LINEAR_BOUNDS = (-14.0, 8.0)
# Log odds of the squared exponential in a blended kernel.
SMOOTHNESS = (2.0, 5.0)
SMOOTHNESS_BOUNDS = (-5.0, 23.0)
# Log odds of the power of length scales in the linear term: the power is nearly uniform.
POWER = (0.0, 1.5)
POWER_BOUNDS = (-8.0, 8.0)
EXPONENT = (0.5, 0.4)
EXPONENT_BOUNDS = (0.2, 2.5)
AMPLITUDE_SPREAD = 3.0
AMPLITUDE_BOUNDS = (-15.0, 15.0)


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
    """Prior of hyperparameter vectors: kernel, then linear term, noise, amplitude and exponent where they are free.

    Parameters
    ----------
    n_inputs : int
        Number of inputs.
    n_kernel : int
        Number of hyperparameters of the kernel.
    kernel_bounds : ndarray of shape (n_kernel, 2) or None, default=None
        Bounds of a uniform prior; None is for length scales.
    linear : bool, default=True
        Whether there is a linear term.
    fixed_noise : float or None, default=None
        The noise ratio, if it is not free.
    amplitude : bool, default=False
        Whether the amplitude is one of them, about 1 in units of the targets' standard deviation.
    exponent : bool, default=False
        Whether targets are transformed.
    """

    def __init__(
        self,
        n_inputs: int,
        n_kernel: int,
        kernel_bounds: Array | None = None,
        *,
        linear: bool = True,
        fixed_noise: float | None = None,
        amplitude: bool = False,
        exponent: bool = False,
        blended: bool = False,
        sloped: bool = False,
    ):
        self._n_kernel = n_kernel
        self._n_lengths = n_kernel - blended - sloped
        self._uniform = kernel_bounds is not None
        self._fixed_noise = fixed_noise
        self._centre = 0.5 * np.log(n_inputs)
        self._linear_centre = LINEAR[0] - np.log(n_inputs)
        self._normal = {
            "linear": (self._linear_centre, LINEAR[1]),
            "exponent": EXPONENT,
            "amplitude": (0.0, AMPLITUDE_SPREAD),
            "smoothness": SMOOTHNESS,
            "power": POWER,
        }
        bounds = [LENGTH_BOUNDS] * self._n_lengths if kernel_bounds is None else [*map(tuple, kernel_bounds)]
        self._places: dict[str, int] = {}
        free = {
            "smoothness": blended,
            "power": sloped,
            "linear": linear,
            "noise": fixed_noise is None,
            "amplitude": amplitude,
            "exponent": exponent,
        }
        limits = {
            "smoothness": SMOOTHNESS_BOUNDS,
            "power": POWER_BOUNDS,
            "linear": LINEAR_BOUNDS,
            "noise": NOISE_BOUNDS,
            "amplitude": AMPLITUDE_BOUNDS,
            "exponent": EXPONENT_BOUNDS,
        }
        for name in (name for name, is_free in free.items() if is_free):
            self._places[name] = len(bounds)
            bounds.append(limits[name])
        self.bounds = np.array(bounds, dtype=np.float64).reshape(-1, 2)

    def parts(self, theta: Array) -> Parts:
        """Hyperparameter vectors by their parts."""
        zeros = np.zeros(len(theta))
        linear, noise = zeros, zeros + (self._fixed_noise or 0.0)
        if "linear" in self._places:
            linear = np.exp(theta[:, self._places["linear"]])
        if "noise" in self._places:
            noise = np.exp(theta[:, self._places["noise"]])
        amplitude, exponent = None, None
        if "amplitude" in self._places:
            amplitude = np.exp(theta[:, self._places["amplitude"]])
        if "exponent" in self._places:
            exponent = theta[:, self._places["exponent"]]
        return Parts(theta[:, : self._n_kernel], linear, noise, exponent, amplitude)

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
        values = {
            "smoothness": SMOOTHNESS[0],
            "power": POWER[0],
            "linear": self._linear_centre,
            "noise": np.log(noise),
            "amplitude": 0.0,
            "exponent": exponent,
        }
        others = [values[name] for name in self._places]
        return np.clip(np.append(kernel[: self._n_lengths], others), *self.bounds.T)

    def log_density(self, theta: Array) -> tuple[Array, Array]:
        """Logarithm of the density, up to a constant, (C,), and its gradient, (C, p)."""
        value, gradient = np.zeros(len(theta)), np.zeros(theta.shape)
        if not self._uniform and self._n_lengths:
            value, gradient[:, : self._n_lengths] = self._log_density_of_lengths(theta[:, : self._n_lengths])
        for name, (centre, spread) in self._normal.items():
            if name in self._places:
                z = (theta[:, self._places[name]] - centre) / spread
                value = value - 0.5 * z**2
                gradient[:, self._places[name]] = -z / spread
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
        found[:, : self._n_lengths] = uniform if self._uniform else np.clip(lengths, low, high)
        for name, place in self._places.items():
            if name == "noise":
                found[:, place] = _sample_noise(n, rng)
            else:
                found[:, place] = rng.normal(*self._normal[name], n)
        outside = (found < self.bounds[:, 0]) | (found > self.bounds[:, 1])
        again = np.flatnonzero(outside.any(axis=1))
        if again.size:
            found[again] = self.sample(again.size, rng)
        return found


def _sample_noise(n: int, rng: np.random.RandomState) -> Array:
    """Draws of the log noise ratio, by the inverse of its distribution function."""
    low, high = NOISE_BOUNDS
    least = np.exp(NOISE_POWER * (low - LITTLE_NOISE))
    below = (1.0 - least) / NOISE_POWER  # mass below LITTLE_NOISE, that above being the distance
    mass = rng.uniform(0.0, below + high - LITTLE_NOISE, n)
    falling = LITTLE_NOISE + np.log(least + NOISE_POWER * np.minimum(mass, below)) / NOISE_POWER
    return np.where(mass < below, falling, LITTLE_NOISE + mass - below)
