r"""Hyperparameters as points of a lattice, and the prior that keeps length scales alike.

A point is whole numbers of steps away from a start, on a logarithmic scale. It has one coordinate for each free
hyperparameter of the kernel and one for the noise. A step multiplies a length scale (or any other hyperparameter) by
:math:`2^{1/4}`, and a variance by :math:`2^{1/2}`. The noise variance is relative to the kernel: the amplitude of the
whole process is profiled out of the likelihood and is no coordinate.

The prior is on the length scales of different inputs. The logarithm of each, relative to its start, has Student's t
distribution with three degrees of freedom and scale :math:`\tau` about their median. Small differences must be
supported by the rows; but a length scale a thousand times as long as the others, for an input that does not matter,
costs only a few nats. With few rows for each input :math:`\tau` is made smaller: there is then little to learn about
each. Everything else has a flat prior within its bounds.

Where noise may vary with the inputs, the coefficients of the logarithm of its variance are coordinates, too
(:mod:`conformal_gp.gp.noise`). They come after those of the kernel and before that of the noise itself, and a step
changes one of them by log 2 / 4.
"""

from __future__ import annotations

from copy import copy
from functools import cached_property
from operator import le
from typing import NamedTuple

import numpy as np
from sklearn.gaussian_process.kernels import RBF, ConstantKernel, Kernel, Matern, Product

from conformal_gp._compiled import compiled
from conformal_gp.gp.covariance import stationary_shape
from conformal_gp.gp.noise import LARGEST_LOG_WEIGHT, spiked_penalty
from conformal_gp.gp.slopes import Shape
from conformal_gp.kernels import hyperparameter_names, is_amplitude, is_length
from conformal_gp.types import Array, Rows

Point = tuple[int, ...]

# One step of a length scale, in the logarithm. Twice as much for a variance: a process with length scales longer by a
# factor looks like one with noise lower by its square.
UNIT = np.log(2.0) / 4.0
VARIANCES = ("constant_value", "noise_level", "sigma_0")
# Noise variances relative to the kernel's variance. The least is more with many rows: the covariance matrix must have
# a condition number that double precision bears. Scores are then known to about 0.1% (tests/gp/test_precision.py).
NOISE_RATIOS = (1.5e-12, 1e2)
LEAST_RATIO_A_ROW = 1e-14
# Noise variances relative to the prior variance of far-out rows, where that grows with inputs: if there are two such
# rows, less is lost in rounding.
LEAST_SHARE = 1e-13
START_RATIO = 2.0**-7
# The lattice ends this many steps from its start, if a kernel's own bounds do not end it before: a factor of 2^12.
MOST_STEPS = 48
# Coefficients of varying noise end where it differs by a factor of 16 over one unit of an input.
MOST_NOISE_STEPS = 16

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
    >>> prior = LengthScalePrior(RBF([1.0, 1.0]), deviation=0.5, n_rows=100)
    >>> prior(np.log([2.0, 2.0]))[0], prior(np.log([1.0, 4.0]))[0] > 1.0
    (0.0, True)
    """

    def __init__(self, kernel: Kernel, deviation: float | None, n_rows: int):
        number, lengths = hyperparameter_names(kernel)[1], is_length(kernel)
        self._start = kernel.theta.copy()
        groups = [np.flatnonzero(lengths & (number == n)) for n in np.unique(number[lengths])]
        self._terms: list[tuple[Rows, float]] = []
        """Length scales that belong together, and their precision."""
        if deviation is not None:
            self._terms = [(g, max(1.0, ROWS_EACH * g.size / n_rows) / deviation**2) for g in groups if g.size > 1]

    @property
    def precision(self) -> float:
        """Precision of the first group of length scales, 0 if there is none."""
        return self._terms[0][1] if self._terms else 0.0

    def __call__(self, theta: Array) -> tuple[float, Array]:
        """Value and gradient."""
        value, gradient = 0.0, np.zeros(theta.size)
        for group, precision in self._terms:
            part, slope = minus_log_density(theta[group] - self._start[group], precision)
            value += part
            gradient[group] = slope
        return value, gradient


@compiled(error_model="numpy")
def minus_log_density(x: Array, precision: float) -> tuple[float, Array]:  # pragma: no cover
    """Minus the log density of deviations from the median, but for a constant, and its gradient."""
    order = np.argsort(x)
    low, high = order[(x.size - 1) // 2], order[x.size // 2]
    median = 0.5 * (x[low] + x[high])
    value, total = 0.0, 0.0
    slope = np.empty(x.size)
    for i in range(x.size):
        away = x[i] - median
        spread = DEGREES / precision + away**2
        value += 0.5 * (DEGREES + 1.0) * np.log(spread * precision / DEGREES)
        slope[i] = (DEGREES + 1.0) * away / spread
        total += slope[i]
    slope[low] -= 0.5 * total  # the median moves with the middle ones
    slope[high] -= 0.5 * total
    return value, slope


class Family(NamedTuple):
    """A lattice of stationary processes, as compiled functions read it (:mod:`conformal_gp.gp.processes`)."""

    shape: int
    """Number of the kernel's shape in :mod:`conformal_gp.gp.stationary`."""
    scale: float
    """Its amplitude."""
    n_inputs: int
    """Number of inputs."""
    logarithms: Array
    """(1,) or (d,): logarithms of the length scale, or of each, at the start."""
    noise: float
    """Noise variance at the start."""
    precision: float
    """Precision of the prior on length scales, 0 for a flat one."""
    low: Rows
    """(c,): least coordinates."""
    high: Rows
    """(c,): largest coordinates."""


class Lattice:
    """The hyperparameters of one kernel.

    Parameters
    ----------
    kernel : sklearn.gaussian_process.kernels.Kernel
        Its free hyperparameters are the coordinates, but for the amplitude of the whole kernel. Length scales start at
        their given proportions.
    length_scale : float
        Geometric mean of the length scales at the start.
    n_inputs : int
        Number of inputs.
    n_rows : int
        Number of rows of the bag, which decides about the prior.
    learns_noise : bool, default=True
        Whether the noise is a coordinate; if not there is none but a little against rounding.
    deviation : float or None, default=DEVIATION
        Standard deviation of the prior; None is a flat prior.
    reach : float, default=0.0
        How far out rows of the bag are, but for the farthest; of interest where variances grow with inputs.
    n_features : int, default=0
        Number of features that the noise may vary with.
    """

    def __init__(
        self,
        kernel: Kernel,
        length_scale: float,
        n_inputs: int,
        n_rows: int,
        learns_noise: bool = True,
        deviation: float | None = DEVIATION,
        reach: float = 0.0,
        n_features: int = 0,
    ):
        self._kernel = kernel
        self._n_inputs = n_inputs
        self._theta = kernel.theta
        # an amplitude times a stationary shape, or such a shape: all else is left to scikit-learn
        self._amplified = isinstance(kernel, Product) and type(kernel.k1) is ConstantKernel and kernel.k1.n_dims == 1
        shape = kernel.k2 if self._amplified else kernel
        self._plain = type(shape) in (RBF, Matern) and shape.n_dims == np.size(shape.length_scale)
        self._free = np.flatnonzero(~is_amplitude(kernel))
        every_name = hyperparameter_names(kernel)[0]
        is_variance = [every_name[i].endswith(VARIANCES) for i in self._free]
        self._is_length = is_length(kernel)[self._free]
        lengths = self._free[self._is_length]
        if lengths.size:
            self._theta[lengths] += np.log(length_scale) - self._theta[lengths].mean()
        self._theta = np.clip(self._theta, *np.reshape(kernel.bounds, (-1, 2)).T)
        self._units = UNIT * np.where(is_variance, 2.0, 1.0)
        self._learns_noise = learns_noise
        self._least_ratio = max(NOISE_RATIOS[0], LEAST_RATIO_A_ROW * n_rows)
        self._deviation = deviation
        self._of_noise = slice(self._free.size, self._free.size + n_features)
        self._least_weight = float(np.exp(-LARGEST_LOG_WEIGHT)) if n_features else 1.0
        self._prior = LengthScalePrior(self._at(self._theta), deviation, n_rows)
        self._variance = float(self._at(self._theta).diag(np.zeros((1, n_inputs)))[0]) or 1.0
        self._far_out = None if kernel.is_stationary() else np.full((1, n_inputs), reach / np.sqrt(n_inputs))
        self._bearable: dict[Point, bool] = {}
        self.start: Point = (0,) * (self._free.size + n_features + learns_noise)
        self._low, self._high = self._limits(np.reshape(kernel.bounds, (-1, 2))[self._free])

    def without_prior(self) -> Lattice:
        """The same lattice with a flat prior on length scales, if it has the usual one; one of the user's own stays."""
        if self._deviation != DEVIATION:
            return self
        found = copy(self)
        found._prior = LengthScalePrior(self._at(self._theta), None, 1)
        return found

    def _limits(self, bounds: Array) -> tuple[Point, Point]:
        """Least and largest coordinates."""
        steps = (bounds - self._theta[self._free][:, None]) / self._units[:, None]
        steps = np.clip(steps, -MOST_STEPS, MOST_STEPS)
        n_features = self._of_noise.stop - self._of_noise.start
        steps = np.vstack([steps, np.tile([-MOST_NOISE_STEPS, MOST_NOISE_STEPS], (n_features, 1))])
        if self._learns_noise:
            least = self._least_ratio / self._least_weight
            noise = np.log(np.array([least, NOISE_RATIOS[1]]) / START_RATIO) / (2.0 * UNIT)
            steps = np.vstack([steps, noise])
        low, high = np.ceil(steps[:, 0] - 1e-9).astype(int), np.floor(steps[:, 1] + 1e-9).astype(int)
        return tuple(low.tolist()), tuple(high.tolist())

    def _at(self, theta: Array) -> Kernel:
        """The kernel with hyperparameters ``theta``; for the usual shapes without scikit-learn's checks of a clone."""
        shape = self._kernel.k2 if self._amplified else self._kernel
        if not self._plain:
            return self._kernel.clone_with_theta(theta)
        shape = copy(shape)
        lengths = np.exp(theta[self._amplified :])
        shape.length_scale = lengths if np.ndim(shape.length_scale) else float(lengths[0])
        return Product(self._kernel.k1, shape) if self._amplified else shape  # the amplitude is no coordinate

    def inside(self, point: Point) -> bool:
        """Whether a point is within the bounds, and its noise is not lost in rounding."""
        return all(map(le, self._low, point)) and all(map(le, point, self._high)) and self._is_bearable(point)

    def _is_bearable(self, point: Point) -> bool:
        if self._far_out is None or not self._learns_noise:
            return True
        if point not in self._bearable:
            largest = float(self.kernel(point).diag(self._far_out)[0])
            self._bearable[point] = self._least_weight * self.noise_variance(point) >= LEAST_SHARE * largest
        return self._bearable[point]

    def kernel(self, point: Point) -> Kernel:
        """The kernel at a point."""
        return self._at(self._theta_at(point))

    def _theta_at(self, point: Point) -> Array:
        theta = self._theta.copy()
        theta[self._free] += self._units * point[: self._free.size]
        return theta

    def noise_variance(self, point: Point) -> float:
        """The noise variance at a point, in units of the kernel."""
        if not self._learns_noise:
            return self._least_ratio * self._variance
        return START_RATIO * self._variance * float(np.exp(2.0 * UNIT * point[-1]))

    def noise_coefficients(self, point: Point) -> Array:
        """Coefficients of varying noise at a point; none where it is constant."""
        return UNIT * np.array(point[self._of_noise], dtype=float)

    def penalty(self, point: Point) -> float:
        """Minus twice the log density of the prior, but for a constant."""
        of_noise = self.noise_coefficients(point)
        return 2.0 * self._prior(self._theta_at(point))[0] + sum(spiked_penalty(c, of_noise.size)[0] for c in of_noise)

    def family(self) -> Family:
        """The lattice for compiled functions, of a kernel of which slopes are known."""
        shape = self.shape
        assert shape is not None
        return Family(
            shape.number,
            shape.scale,
            self._n_inputs,
            np.log(np.atleast_1d(shape.length_scale)),
            self.noise_variance(self.start),
            self._prior.precision,
            np.array(self._low),
            np.array(self._high),
        )

    @cached_property
    def shape(self) -> Shape | None:
        """The kernel at the start, if it is stationary with known slopes in all coordinates."""
        if not (self._plain and self._learns_noise):
            return None
        kernel = self.kernel(self.start)
        return stationary_shape(*((kernel.k2, float(kernel.k1.constant_value)) if self._amplified else (kernel, 1.0)))

    def directions(self, joint: bool = False) -> list[Point]:
        """Directions to step along, in the order in which they are tried.

        All length scales together; the noise; both against each other; and, unless only ``joint`` ones are wanted,
        each hyperparameter alone.
        """
        n = len(self.start)
        lengths = np.zeros(n, dtype=int)
        lengths[: self._free.size] = self._is_length
        noise = np.zeros(n, dtype=int)
        noise[-1:] = self._learns_noise
        alone = range(0 if joint and self._is_length.any() else self._of_noise.stop)
        each = [np.eye(n, dtype=int)[i] for i in alone]
        found = [lengths, noise, (lengths - noise) * (lengths.any() and noise.any()), *each]
        return [direction for direction in dict.fromkeys(tuple(d.tolist()) for d in found) if any(direction)]
