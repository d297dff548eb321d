"""Hyperparameters by maximum likelihood, and the transformation of the target, learnt from some of the rows."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import NamedTuple

import numpy as np
from numpy.linalg import LinAlgError
from scipy.optimize import OptimizeResult
from sklearn.gaussian_process.kernels import Kernel

from conformal_gp.arrays import Array
from conformal_gp.gp.covariance import Cholesky, covariance, one_norm
from conformal_gp.gp.inputs import IndependentColumns, Inputs, Scaling, basis, label_variance
from conformal_gp.gp.kernels import check_kernel, is_amplitude, is_length, multiplied
from conformal_gp.gp.likelihood import for_each_input, variables
from conformal_gp.gp.maximum_likelihood import (
    MANY_INPUTS,
    NOISE_RATIOS,
    ROWS_FOR_COARSE,
    SCREEN_ROWS,
    LearningRows,
    Search,
    Space,
    has_noise,
)
from conformal_gp.gp.posterior import SMALLEST_CONDITION, noise_floor
from conformal_gp.models.choices import bounds_in_use, choose_exponent, log_densities, powers, target_unit
from conformal_gp.models.settings import Settings, explained
from conformal_gp.rows import Rows
from conformal_gp.targets.difficulty import LeftOut
from conformal_gp.targets.transformation import Transformation, transformed
from conformal_gp.threads import slices

# Relative change of the likelihood at which a search stops: closer to the optimum, intervals of tuning rows' models are
# the same; the paper's are compared to five digits.
TUNING_TOLERANCE = 1e-6
PAPER_TOLERANCE = 1e-8
# Inputs and targets are learnt from in steps of one over this, in units of their standard deviation: less than noise,
# and more than rounding.
DIGITS = 2.0**26
# Steps from hyperparameters of other targets of the same rows, and from those of some rows with all.
NEARBY_STEPS = 6
FINAL_STEPS = 8
# The likelihood of more rows than the first number is the sum over blocks of at most the second.
ROWS_IN_BLOCKS = 1000
BLOCK_ROWS = 600
# How much better the condition of the matrix has to be than the worst that is trusted: it is of fewer rows.
CONDITION_MARGIN = 3.0


class Learnt(NamedTuple):
    """What rows teach, in units of the transformed target."""

    transformation: Transformation | None
    kernel: Kernel
    noise_variance: float
    remarks: list[str]
    """Warnings."""
    n_hyperparameters: int
    """Of the kernel; a length scale that inputs share counts once."""


def learn(
    settings: Settings,
    rows: Rows,
    scaling: Scaling,
    y: Array,
    n_rows: int,
    rng: np.random.RandomState,
    *,
    least_ratio: float = 0.0,
    low_rank: bool = False,
) -> Learnt:
    """The transformation that is asked for, the likeliest if it is left open, and hyperparameters, for ``n_rows`` rows.

    Starts are followed on some of the rows. All of them, in blocks, choose the transformation, and end the search.
    ``least_ratio`` is the least noise relative to the amplitude; the covariance matrix of all rows is never factorised
    with ``low_rank``.
    """
    exponents, make = powers(settings, y)
    if settings.noise_variance and target_unit(settings, y) != 1.0:
        settings = replace(settings, noise_variance=None)  # squares of such units are no numbers
    if settings.tuning != "train" or y.size > ROWS_FOR_COARSE:  # the first rows then are a sample
        order = rng.permutation(y.size)
        rows = rows.take(order)
        y = y[order]
    inputs = Inputs(rows, scaling, settings.mean)
    tuning = _Tuning(settings, inputs, max(least_ratio, noise_floor(n_rows), NOISE_RATIOS[0]))

    def result(exponent: float, kernel: Kernel, noise: float, remarks: list[str]) -> Learnt:
        variance = label_variance(inputs, transformed(make(exponent), y)) or 1.0
        full = for_each_input(kernel, tuning.rows.variables)
        noise = _raised(full, noise, inputs, n_rows, low_rank) * variance
        if variance != 1.0:
            full = multiplied(full, variance)
        return Learnt(make(exponent), full, noise, remarks, kernel.n_dims)

    for exponent in exponents:
        z = transformed(make(exponent), y)
        if label_variance(inputs, z) == 0.0:
            return result(exponent, *tuning.without_variance(), explained(inputs, z, settings.mean))
    first = tuning.first_exponent(exponents, make, y)
    search, end = tuning.best(transformed(make(first), y), rng)
    exponent = first
    if len(exponents) > 1:
        points = {first: end.x}
        space = search.space

        def predicted(other: float) -> LeftOut:
            z = transformed(make(other), y)
            near = tuning.search(space.kernel, space.noise_variance, z)
            if other not in points:
                points[other] = near.some().climb(points[first], NEARBY_STEPS).x
            return tuning.left_out(near, points[other], z)

        exponent = choose_exponent(exponents, make, predicted, y, bounds_in_use(settings, y)["bounds"])
        if exponent != first:
            z = transformed(make(exponent), y)
            search = tuning.search(search.space.kernel, search.space.noise_variance, z)
            end = OptimizeResult(x=points[min(points, key=lambda each: abs(each - exponent))])
    if exponent != first or search.is_coarse:
        end = search.climb(end.x, FINAL_STEPS if search.space.restricted else None)
    kernel = search.kernel(end.x)
    return result(exponent, kernel, search.split(end.x)[1], search.remarks(end))


class _Tuning:
    """Rows that are learnt from, in units of any targets, and searches of their likelihood.

    Targets are learnt from in units of their own standard deviation, and starts are at the scale of the inputs, so the
    units of neither matter, whatever starts and bounds a kernel object has for its amplitude. With many inputs,
    categories of one variable share a length scale of kernels that are given by name.
    """

    def __init__(self, settings: Settings, inputs: Inputs, least_ratio: float):
        self._settings = settings
        self._inputs = inputs
        self._least_ratio = least_ratio
        self._restricted = settings.tuning != "train"
        # rounding errors of other units of inputs or targets would send searches along other ways
        spread = inputs.X.std(axis=0)
        size = 2.0 ** np.round(np.log2(np.where(spread > 0.0, spread, 1.0)))
        X = _rounded(inputs.X / size) * size
        shared = None
        if X.shape[1] > MANY_INPUTS and settings.named and settings.ard:
            shared = variables(X)
        H = basis(inputs.mean, X)
        H = IndependentColumns(H).reduce(H)
        self.rows = LearningRows(X, np.empty(0), H, None, shared)

    def search(self, kernel: Kernel, noise: float, z: Array) -> Search:
        """The likelihood of transformed targets; ``noise`` is in units of their variance."""
        unit = label_variance(self._inputs, z)
        if self._inputs.mean != "zero":  # the mean takes up any constant
            z = z - z.mean()
        y_variance = self._inputs.y_variance
        if y_variance is not None:
            y_variance = y_variance / unit
        rows = self.rows._replace(y=_rounded(z / np.sqrt(unit)), y_variance=y_variance)
        blocks = [rows]
        if self._restricted and z.size > ROWS_IN_BLOCKS:
            blocks = [rows.take(np.arange(z.size)[block]) for block in slices(z.size, BLOCK_ROWS)]
        tolerance = TUNING_TOLERANCE if self._restricted else PAPER_TOLERANCE
        space = Space(kernel, noise, self._least_ratio, self._restricted, tolerance)
        return Search(space, blocks, self._settings.n_jobs)

    def left_out(self, search: Search, x: Array, z: Array) -> LeftOut:
        """Leave-one-out predictions at a point, in units of the transformed targets."""
        unit = np.sqrt(label_variance(self._inputs, z))
        _, error, deviation = search.left_out(x)
        with np.errstate(invalid="ignore"):  # infinite where the matrix is singular
            return LeftOut(z[: error.size] - unit * error, unit * deviation, error / deviation)

    def first_exponent(
        self, exponents: tuple[float, ...], make: Callable[[float], Transformation | None], y: Array
    ) -> float:
        """The likeliest exponent of a model of few rows with one length scale, from which others are not far."""
        if len(exponents) == 1 or not self._restricted:
            return 1.0
        densities = []
        for exponent in exponents:
            z = transformed(make(exponent), y)
            search = self.search(self._alike(self._settings.kernels[0]), 0.1, z).first(SCREEN_ROWS)
            left_out = self.left_out(search, search.climb(search.start).x, z)
            densities.append(log_densities(left_out, make(exponent), y[: left_out.mean.size]).sum())
        return exponents[int(np.argmax(densities))]

    def _alike(self, given: str | Kernel) -> Kernel:
        """A kernel with one length scale for all inputs to start from, if it is given by name."""
        return _start(replace(self._settings, ard=False), given, self.rows)

    def best(self, z: Array, rng: np.random.RandomState) -> tuple[Search, OptimizeResult]:
        """The best end of several starts; of several kernels the one of best BIC."""
        noise = 0.1
        if self._settings.noise_variance is not None:
            noise = self._settings.noise_variance / label_variance(self._inputs, z)
        found = []
        for given in self._settings.kernels:
            start = _start(self._settings, given, self.rows)
            n_lengths = int(is_length(start).sum())
            if self._restricted and isinstance(given, str) and n_lengths > 1:
                # from the optimum with one length scale for all inputs; without noise that may be next to nothing
                search = self.search(self._alike(given), noise or 0.1, z).some()
                alike = search.kernel(search.from_starts(1, rng).x).theta
                start = start.clone_with_theta(np.append(alike, np.full(n_lengths - 1, alike[-1])))
            found.append(self._follow(start, noise, z, rng))
        if len(found) == 1:
            return found[0]
        penalty = 0.5 * np.log(z.size)
        return min(found, key=lambda pair: pair[0].value(pair[1].x) + penalty * pair[0].space.kernel.n_dims)

    def _follow(
        self, start: Kernel, noise: float, z: Array, rng: np.random.RandomState
    ) -> tuple[Search, OptimizeResult]:
        """The best end of several starts with a kernel."""
        n_restarts = self._settings.n_restarts
        if noise > 0.0 or has_noise(start, self.rows):
            search = self.search(start, noise, z)
            return search, search.from_starts(n_restarts, rng)
        # without noise a search from usual starts ends at length scales of next to nothing: noise comes first
        search, end = self._follow(start, 0.1, z, rng)
        search = self.search(search.kernel(end.x), 0.0, z)
        return search, search.from_starts(0, rng, may_stay=True)  # it stays should it end in white noise

    def without_variance(self) -> tuple[Kernel, float]:
        """Kernel and noise of targets that the mean explains."""
        start = _start(self._settings, self._settings.kernels[0], self.rows)
        noise = 0.1 if self._settings.noise_variance is None else self._settings.noise_variance
        return start, max(noise, 0.0 if has_noise(start, self.rows) else self._least_ratio)


def _rounded(values: Array) -> Array:
    return np.round(values * DIGITS) / DIGITS


def _start(settings: Settings, given: str | Kernel, rows: LearningRows) -> Kernel:
    """A kernel to start from, at the scale of the inputs and, in units of the targets, at amplitude 1.

    It has one length scale, or one for each input, or for each variable that inputs belong to.
    """
    # the root mean square distance between rows, over the square root of two
    spread = float(np.sqrt(rows.X.var(axis=0).sum())) or 1.0
    kernel = settings.kernel(given, rows.X.shape[1] if rows.variables is None else int(rows.variables[-1]) + 1, spread)
    check_kernel(for_each_input(kernel, rows.variables), rows.X)
    theta = kernel.theta
    lengths = is_length(kernel)
    if lengths.any():
        theta[lengths] += np.log(spread) - theta[lengths].mean()
    theta[is_amplitude(kernel)] = 0.0
    return kernel.clone_with_theta(np.clip(theta, *np.reshape(kernel.bounds, (-1, 2)).T))


def _raised(kernel: Kernel, noise: float, inputs: Inputs, n_rows: int, low_rank: bool) -> float:
    """Learnt noise, raised where the covariance matrix of all rows would be numerically singular.

    The size of that matrix, and of its inverse, are estimated from the rows that hyperparameters were learnt from, so
    no other row matters. In the 1-norm the inverse may exceed one over the noise by up to the root of the number of
    rows: where rows are many for the rank of the matrix without noise, as of targets that are a sum of inputs.
    """
    largest = n_rows * float(kernel.diag(inputs.X).max())
    if noise == 0.0 or noise >= max(np.sqrt(n_rows) * SMALLEST_CONDITION * largest, noise_floor(largest)):
        return noise  # 0: the kernel has noise of its own
    X = inputs.X[:: -(-len(inputs.X) // BLOCK_ROWS)]
    K = np.asfortranarray(np.tril(covariance(kernel, X)[0]))
    noise = max(noise, noise_floor(one_norm(K) * n_rows / K.shape[0]))
    if low_rank:
        return noise
    K.flat[:: K.shape[0] + 1] += noise
    norm = one_norm(K)
    try:
        condition = Cholesky(K).reciprocal_condition(norm) * K.shape[0] / n_rows
    except LinAlgError:  # a kernel that is no covariance function: the posterior says more
        return noise
    return noise * max(1.0, CONDITION_MARGIN * SMALLEST_CONDITION / condition)
