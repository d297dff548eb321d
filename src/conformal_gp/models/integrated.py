"""The Gaussian process averaged over its hyperparameters: scores are curves in the candidate value."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from copy import copy
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import NamedTuple, Self

import numpy as np
from sklearn.gaussian_process.kernels import Kernel

from conformal_gp.answers import Block, Question
from conformal_gp.arrays import Array, Indices
from conformal_gp.conformal.curves import Curves, Draws, Signs
from conformal_gp.conformal.lines import whole_lines
from conformal_gp.conformal.search import FEW_ROWS, centres
from conformal_gp.gp.hyperparameters import AnyFamily, Family, HyperPrior, StationaryFamily
from conformal_gp.gp.inputs import Inputs, Scaling, SymmetricFill, SymmetricScaling, filled
from conformal_gp.gp.mixture import Mixture, TrainingRows
from conformal_gp.rows import Rows
from conformal_gp.targets.difficulty import Spread
from conformal_gp.targets.transformation import inverse_power
from conformal_gp.threads import map_threads, slices

# Entries of arrays over draws, training rows and test rows that are worked on at a time: of predictions, and of scores.
BLOCK_ENTRIES = 2**20
CURVE_ENTRIES = 2**18
KEPT_SCALINGS = 8
KEPT_FILLS = 2
# Targets of at most so many distinct values are looked at in any search for a prediction set.
MOST_LANDMARKS = 12
# And of so few rows, values about the range of the targets.
AMONG_TARGETS = 49
# The mean, and one standard deviation below and above.
STEPS = np.array([[0.0, -1.0, 1.0]])


@dataclass(frozen=True)
class Averaging:
    """What is averaged over: everything that is fixed before test rows are seen, and the draws."""

    kernel: Kernel
    """A kernel without amplitude."""
    groups: Indices | None
    """(d,): which length scale each input has, for kernels that are given by name; None leaves the kernel as it is."""
    blended: bool
    """Whether the kernel is blended with the squared exponential."""
    mean: str
    linear: bool
    """Whether there is a linear term with a proper prior."""
    fixed_noise: float | None
    bounded: bool
    """Whether the rule on targets that are not positive holds."""
    noise_unit: float | None
    """What known noise variances are divided by; None where noise is not known."""
    scale_inputs: bool
    scaling: Scaling | None
    """Scaling of the inputs by the training rows; None scales by the augmented set, or not at all."""
    positive: bool
    """Whether targets are given as logarithms, and the exponent of their transformation is one of the draws."""
    theta: Array
    """(M, p): the draws."""
    log_ratio: Array
    """(M,): logarithms of prior over proposal density, up to a constant."""

    def prior(self, X: Array) -> HyperPrior:
        """Prior of the hyperparameters, with the kernel over scaled inputs."""
        origin: Array | float = 0.0
        if not self.scale_inputs:
            origin = np.median(X, axis=0)
        family: Family = AnyFamily(self.kernel, X, origin)
        if self.groups is not None:
            family = StationaryFamily(self.kernel, X, self.groups, origin, blended=self.blended, sloped=self.linear)
        return HyperPrior(
            family,
            linear=self.linear,
            fixed_noise=self.fixed_noise,
            amplitude=self.noise_unit is not None,
            exponent=self.positive,
        )

    def training_rows(self, inputs: Inputs, y: Array) -> TrainingRows:
        """Training rows, with the noise that is known."""
        return TrainingRows(self.prior(inputs.X), inputs.H, y, self.known_noise(inputs.y_variance))

    def known_noise(self, y_variance: Array | None) -> Array | None:
        """Known noise variances of rows in units of the model."""
        if y_variance is None or self.noise_unit is None:
            return None
        return y_variance / self.noise_unit


class Key(NamedTuple):
    """What test rows share that have the same inputs of training rows."""

    fill: tuple[float, ...]
    """(d,): what missing values are filled by."""
    scaling: tuple[float, ...]
    """Key of a symmetric scaling; (0,) if the training rows scale, or nothing does."""


class IntegratedModel:
    """Averages over draws of the hyperparameters, with weights of the augmented set.

    Targets ``y`` are about 0 and 1 in size, or logarithms about 0 where they are transformed; ``zero`` is the target 0
    in the same units, minus infinity where they are logarithms.
    """

    difficulty: Callable[[Rows], Spread] | None = None
    one_interval: bool = False
    screens: bool = False

    def __init__(self, averaging: Averaging, rows: Rows, y: Array, zero: float, n_jobs: int | None):
        self.averaging = averaging
        self.n_jobs = n_jobs
        self.n_rows = y.size
        self.calibration = np.arange(y.size)
        self.y = y
        self._zero = zero
        self._rows = rows
        self._fill = SymmetricFill(rows.X)
        self._is_symmetric = averaging.scaling is None and averaging.scale_inputs
        self._scalings = lru_cache(KEPT_SCALINGS)(self._make_scalings)
        # where scalings come from training rows alone, only fills of missing values differ
        self._scaled = lru_cache(KEPT_SCALINGS if self._is_symmetric else KEPT_FILLS)(self._make_scaled)
        self.inputs, self.mixture = self._scaled(self._training_key())

    def _training_key(self) -> Key:
        fill = tuple(self._fill.training())
        return Key(fill, tuple(self._scaling_keys(fill, None)[0]))

    def _scaling_keys(self, fill: tuple[float, ...], X: Array | None) -> Array:
        """Keys of the scalings of training rows with each of some test rows, filled, or by themselves."""
        if self._is_symmetric:
            return self._scalings(fill).keys(X)
        return np.zeros((1 if X is None else len(X), 1))

    def _make_scalings(self, fill: tuple[float, ...]) -> SymmetricScaling:
        return SymmetricScaling(filled(self._rows.X, np.array(fill)), stationary=self.averaging.groups is not None)

    def _make_scaled(self, key: Key) -> tuple[Inputs, Mixture]:
        """Training rows under a scaling, and the processes of all draws."""
        plan = self.averaging
        scaling = plan.scaling or Scaling()
        if self._is_symmetric:
            scaling = self._scalings(key.fill).scaling(np.array(key.scaling))
        inputs = Inputs(self._rows, replace(scaling, fill=np.array(key.fill)), plan.mean)
        return inputs, Mixture(plan.training_rows(inputs, self.y), plan.theta)

    @property
    def draw_weights(self) -> Array:
        """Weights of the draws given the training rows, (M,)."""
        # c_m L_m: equation (3) of docs/theory_averaging.md, of the training rows alone
        log_weight = self.averaging.log_ratio + self.mixture.log_likelihood
        weight = np.exp(log_weight - log_weight.max())
        return weight / weight.sum()

    def among(self, calibration: Indices) -> Self:
        """See Model: draws are weighted by all rows."""
        other = copy(self)
        other.calibration = calibration
        return other

    # ------------------------------------------------------------------------------------------------- test rows
    def visit(self, new: Rows, question: Question, fill: Callable[[Block], None]) -> None:
        """See Model."""
        undetermined = self.inputs.new(new).undetermined
        if undetermined.any():
            places = np.flatnonzero(undetermined)
            # such a test row scores 0, as calibration rows do that alone determine a coefficient
            alone = (self.mixture.diagonal[:, self.calibration] == 0.0).any(axis=0)
            fill(Block(places, whole_lines(places.size, alone)))
        determined = np.flatnonzero(~undetermined)
        if determined.size == 0:
            return
        blocks = self._blocks(new.take(determined))

        def visit_block(block: tuple[Indices, Key]) -> None:
            members, key = block
            rows = determined[members]
            for curves, part in self._curves(new.take(rows), key):
                fill(Block(rows[part], curves))

        map_threads(visit_block, blocks, self.n_jobs)

    def _blocks(self, new: Rows) -> list[tuple[Indices, Key]]:
        """Blocks of test rows that share fill and scaling, and their key."""
        members: list[tuple[Indices, Key]] = []
        for rows, fill in _alike(self._fill.rows(new.X)):
            scalings = self._scaling_keys(fill, filled(new.X[rows], np.array(fill)))
            members += [(rows[part], Key(fill, scaling)) for part, scaling in _alike(scalings)]
        step = max(1, BLOCK_ENTRIES // (self.n_rows * len(self.averaging.theta)))
        return [(rows[part], key) for rows, key in members for part in slices(rows.size, step) if rows.size]

    def _curves(self, new: Rows, key: Key) -> Iterator[tuple[Curves, slice]]:
        """Scores for test rows under a scaling, in blocks of fewer rows."""
        inputs, mixture = self._scaled(key)
        seen = inputs.new(new)
        prediction = mixture.predict(seen.X, seen.H, self.averaging.known_noise(seen.y_variance))
        # what the likelihood has besides Q, times prior over proposal
        slopes = mixture.slopes(self.n_rows + 1)
        base = self.averaging.log_ratio - 0.5 * mixture.log_determinant
        if mixture.parts.exponent is not None:
            base = base + slopes * self.y.sum()
        ours: Indices | slice = self.calibration
        if self.calibration.size == self.n_rows:
            ours = slice(None)
        landmarks = np.unique(self.y)
        if landmarks.size > MOST_LANDMARKS:
            landmarks = np.empty(0)
        if self.n_rows <= FEW_ROWS:  # draws may differ by orders of magnitude in what they say of a target
            width = np.ptp(self.y)
            landmarks = np.append(landmarks, np.linspace(self.y.min() - width, self.y.max() + width, AMONG_TARGETS))
        for part in slices(len(new.X), max(1, CURVE_ENTRIES // (self.n_rows * base.size))):
            draws = Draws(
                mixture.alpha[:, ours],
                mixture.diagonal[:, ours],
                mixture.quadratic,
                mixture.degrees if self.averaging.noise_unit is None else None,
                np.repeat(base[:, None], part.stop - part.start, axis=1),
                mixture.parts.exponent,
                slopes,
                prediction.weights[:, ours, part],
                prediction.mean[:, part],
                prediction.variance[:, part],
            )
            yield Curves(draws, self._signs(), landmarks), part

    def _signs(self) -> Signs | None:
        if not (self.averaging.bounded or self.averaging.positive):
            return None
        others = np.delete(self.y, self.calibration)
        rest = int((others <= self._zero).sum()), int((others < self._zero).sum())
        return Signs(self._zero, self.y[self.calibration], rest)

    # ----------------------------------------------------------------------------------------------- predictions
    def centre(self, new: Rows) -> Array:
        """See Model: the labels at which the test rows' own scores are 0."""
        return self._at_steps(new, STEPS[:, :1])[:, 0]

    def moments(self, new: Rows) -> tuple[Array, Array]:
        """See Model; the standard deviation is half the length from one below the mean to one above."""
        mean, low, high = self._at_steps(new, STEPS).T
        undetermined = self.inputs.new(new).undetermined
        return mean, np.where(undetermined, np.inf, (0.5 * (high - low)) ** 2)

    def _at_steps(self, new: Rows, steps: Array) -> Array:
        """Labels some standard deviations from the centres, (m, steps)."""
        found = np.empty((len(new.X), steps.shape[1]))

        def visit_block(block: tuple[Indices, Key]) -> None:
            members, key = block
            for curves, part in self._curves(new.take(members), key):
                found[members[part]] = curves.labels(centres(curves) + steps)

        map_threads(visit_block, self._blocks(new), self.n_jobs)
        return found

    def covariance(self, new: Rows) -> Array:
        """See Model: of the average over draws."""
        weight = self.draw_weights
        covariance = np.zeros((len(new.X), len(new.X)))
        means = np.empty((weight.size, len(new.X)))
        for draw, share in enumerate(weight):
            means[draw], own = self._joint(new, draw)
            covariance += share * own
        middle = weight @ means
        # the covariance of a mixture: the mean of its covariances, and the covariance of its means
        return covariance + (means - middle).T @ (weight[:, None] * (means - middle))

    def _joint(self, new: Rows, draw: int) -> tuple[Array, Array]:
        """Means and covariances of new targets under one draw."""
        seen = self.inputs.new(new)
        known = self.averaging.known_noise(seen.y_variance)
        return self.mixture.joint(seen.X, seen.H, known, draw)

    def sample(self, new: Rows, n_samples: int, rng: np.random.RandomState) -> Array:
        """See Model: each sample is of one draw of the hyperparameters."""
        chosen = rng.choice(self.draw_weights.size, n_samples, p=self.draw_weights)
        samples = np.empty((len(new.X), n_samples))
        for draw in np.unique(chosen):
            columns = np.flatnonzero(chosen == draw)
            values = rng.multivariate_normal(*self._joint(new, int(draw)), columns.size).T
            if self.mixture.parts.exponent is not None:
                values = inverse_power(values, self.mixture.parts.exponent[draw])
            samples[:, columns] = values
        return samples

    def typical(self) -> tuple[float, float]:
        """See Model."""
        mixture = self.mixture
        variance = mixture.scale[:, None] / mixture.diagonal
        if mixture.parts.exponent is not None:
            # logarithms of targets change by y^-exponent where transformed ones change by 1
            variance = variance * np.exp(-2.0 * mixture.parts.exponent[:, None] * self.y)
        variances = self.draw_weights @ variance
        return float(np.median(variances[self.calibration])), 1.0


def _alike(keys: Array) -> list[tuple[Indices, tuple[float, ...]]]:
    """Numbers of the rows that have the same key, and the key, for each of them."""
    distinct, which = np.unique(keys, axis=0, return_inverse=True)
    return [(np.flatnonzero(which.ravel() == number), tuple(key)) for number, key in enumerate(distinct)]
