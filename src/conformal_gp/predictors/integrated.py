"""The predictor that averages over hyperparameters inside the augmented set: training rows and test row."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from copy import copy
from dataclasses import dataclass
from functools import lru_cache
from typing import Self, TypeVar

import numpy as np
from sklearn.gaussian_process.kernels import Kernel

from conformal_gp.conformal.curves import LARGEST_LOG, SMALLEST_LOG, Curves, Draws, Signs
from conformal_gp.conformal.search import TOLERANCE, Search, centres, compared, counts
from conformal_gp.conformal.weights import Needed
from conformal_gp.gp.families import AnyFamily, Family, StationaryFamily
from conformal_gp.gp.hyperprior import HyperPrior
from conformal_gp.gp.inputs import Inputs, Points, Scaling, SymmetricScaling
from conformal_gp.gp.mixture import Mixture
from conformal_gp.gp.sampling import TrainingRows
from conformal_gp.powers import inverse_power
from conformal_gp.predictors.base import Process
from conformal_gp.threads import map_threads, slices
from conformal_gp.types import Array, Mask, Rows

Part = TypeVar("Part")

# Entries of arrays over draws, training rows and test rows that are worked on at a time: of predictions, and of scores.
BLOCK_ENTRIES = 2**20
CURVE_ENTRIES = 2**18
KEPT_SCALINGS = 8
# The mean, and one standard deviation below and above.
STEPS = np.array([[0.0, -1.0, 1.0]])


class TargetUnits:
    """Targets as the process has them: about 0 and 1 in size, or logarithms about 0 where they are transformed."""

    def __init__(self, y: Array, positive: bool, centred: bool):
        self.positive = positive
        values = np.log(y) if positive else y
        self._origin = 0.0
        if positive:
            self._origin = float(np.mean(values))
        elif centred:
            self._origin = float(np.median(values))
        self._unit = 1.0
        size = float(np.abs(values - self._origin).max(initial=0.0))
        if not positive and size > 0.0:
            spread = (values - self._origin) / size  # squares of targets may overflow
            self._unit = size * float(np.sqrt(np.mean(spread**2)))
        elif not positive and self._origin != 0.0:
            self._unit = abs(self._origin)

    def inside(self, y: Array) -> Array:
        """Targets in these units; minus infinity where there is no logarithm."""
        if not self.positive:
            return (y - self._origin) / self._unit
        with np.errstate(divide="ignore", invalid="ignore"):
            logarithms = np.log(y) - self._origin
        return np.where(y > 0.0, logarithms, -np.inf)

    def back(self, values: Array) -> Array:
        """Targets in their own units; the least logarithm that there is becomes 0."""
        if not self.positive:
            return self._origin + self._unit * values
        with np.errstate(over="ignore"):
            found = np.exp(values + self._origin)
        return np.where(values <= SMALLEST_LOG, 0.0, np.where(values >= LARGEST_LOG, np.inf, found))

    def coefficients(self, inside: Array) -> Array:
        """Coefficients of the mean function, constant first, in the targets' own units; of logarithms as they are."""
        found = self._unit * inside
        if found.size:
            found[0] += self._origin
        return found

    @property
    def variance_unit(self) -> float:
        """What variances are divided by."""
        return self._unit**2


@dataclass(frozen=True)
class Averaging:
    """What is averaged over: everything that is fixed before test rows are seen, and the draws."""

    kernel: Kernel
    """A kernel without amplitude."""
    groups: Rows | None
    """(d,): which length scale each input has, for kernels that are given by name; None leaves the kernel as it is."""
    mean: str
    linear: bool
    """Whether there is a linear term with a proper prior."""
    fixed_noise: float | None
    bounded: bool
    """Whether the rule on targets that are not positive holds."""
    known_noise: bool
    scale_inputs: bool
    scaling: Scaling | None
    """Scaling of the inputs by the training rows; None scales by the augmented set, or not at all."""
    units: TargetUnits
    theta: Array
    """(M, p): the draws."""
    log_ratio: Array
    """(M,): logarithms of prior over proposal density, up to a constant."""

    def family(self, X: Array, training: Array | None = None) -> Family:
        """The kernel over scaled inputs, which are those of the training rows unless these are given."""
        origin: Array | float = 0.0
        if not self.scale_inputs:
            origin = np.median(X if training is None else training, axis=0)
        if self.groups is None:
            return AnyFamily(self.kernel, X, origin)
        return StationaryFamily(self.kernel, X, self.groups, origin)

    def prior(self, family: Family) -> HyperPrior:
        """Prior of the hyperparameters."""
        return HyperPrior(
            family.X.shape[1],
            family.start.size,
            family.bounds,
            linear=self.linear,
            fixed_noise=self.fixed_noise,
            amplitude=self.known_noise,
            exponent=self.units.positive,
        )

    def training_rows(self, inputs: Inputs, y: Array) -> TrainingRows:
        """Training rows in units of the process."""
        known = inputs.known / self.units.variance_unit if self.known_noise else None
        return TrainingRows(self.family(inputs.X), inputs.H, self.units.inside(y), known)


class IntegratedProcess(Process):
    """Answers that are averages over draws, with weights of the augmented set.

    Parameters
    ----------
    averaging : Averaging
        What is averaged over.
    rows, y : Points and ndarray of shape (l,)
        Training rows.
    n_jobs : int or None
        Threads over blocks of test rows.
    """

    def __init__(self, averaging: Averaging, rows: Points, y: Array, n_jobs: int | None):
        self.averaging = averaging
        self.n_jobs = n_jobs
        self.n_rows = y.size
        self.ranked = np.arange(y.size)
        self.y = y
        self._units = averaging.units
        self._rows = rows
        self._symmetric = None
        if averaging.scaling is None and averaging.scale_inputs:
            self._symmetric = SymmetricScaling(rows.X, stationary=averaging.groups is not None)
        self._scaled = lru_cache(KEPT_SCALINGS)(self._make_scaled)
        self.inputs, self.mixture = self._scaled(self._training_key())

    def _training_key(self) -> tuple[int, ...] | None:
        return None if self._symmetric is None else tuple(self._symmetric.training_key())

    def _make_scaled(self, key: tuple[int, ...] | None) -> tuple[Inputs, Mixture]:
        """Training rows under a scaling, and the processes of all draws."""
        plan = self.averaging
        scaling = plan.scaling or Scaling.none(self._rows.X)
        if key is not None and self._symmetric is not None:
            scaling = self._symmetric.scaling(np.array(key))
        inputs = Inputs(self._rows, scaling, plan.mean)
        rows = plan.training_rows(inputs, self.y)
        return inputs, Mixture(plan.prior(rows.family), rows, plan.theta)

    @property
    def draw_weights(self) -> Array:
        """Weights of the draws given the training rows, (M,)."""
        log_weight = self.averaging.log_ratio + self.mixture.log_likelihood
        weight = np.exp(log_weight - log_weight.max())
        return weight / weight.sum()

    @property
    def effective_draws(self) -> float:
        """How many draws of equal weights are as good."""
        return 1.0 / float((self.draw_weights**2).sum())

    def among(self, rows: Rows) -> Self:
        """See Predictor: draws are weighted by all rows."""
        other = copy(self)
        other.ranked = rows
        return other

    # -------------------------------------------------------------------------------------------------- test rows
    def _blocks(self, new: Points) -> list[tuple[Rows, tuple[int, ...] | None]]:
        """Blocks of test rows that share a scaling, and its key."""
        members: list[tuple[Rows, tuple[int, ...] | None]] = [(np.arange(len(new.X)), None)]
        if self._symmetric is not None:
            keys, which = np.unique(self._symmetric.keys(new.X), axis=0, return_inverse=True)
            members = [(np.flatnonzero(which.ravel() == number), tuple(key)) for number, key in enumerate(keys)]
        step = max(1, BLOCK_ENTRIES // (self.n_rows * len(self.averaging.theta)))
        return [(rows[part], key) for rows, key in members for part in slices(rows.size, step) if rows.size]

    def _map_curves(self, function: Callable[[Curves, Rows], Part], new: Points) -> tuple[list[Part], Rows]:
        """Apply ``function`` to the curves of blocks of test rows; the results, and the order of the test rows."""
        blocks = self._blocks(new)
        found = map_threads(
            lambda block: [function(curves, rows) for curves, rows in self._curves(new, *block)], blocks, self.n_jobs
        )
        every = [one for block in found for one in block]
        return every, np.argsort(np.concatenate([block[0] for block in blocks]))

    def _curves(self, new: Points, rows: Rows, key: tuple[int, ...] | None) -> Iterator[tuple[Curves, Rows]]:
        """Scores for some test rows under a scaling, in blocks of fewer rows."""
        inputs, mixture = self._scaled(key)
        seen = inputs.new(new.take(rows))
        known = seen.known / self._units.variance_unit if self.averaging.known_noise else None
        prediction = mixture.predict(seen.X, seen.H, known)
        # what the likelihood has besides Q, times prior over proposal
        slopes = mixture.slopes(self.n_rows + 1)
        base = self.averaging.log_ratio - 0.5 * mixture.log_determinant
        if mixture.parts.exponent is not None:
            base = base + slopes * mixture.rows.y.sum()
        ours = slice(None) if self.ranked.size == self.n_rows else self.ranked
        for part in slices(rows.size, max(1, CURVE_ENTRIES // (self.n_rows * base.size))):
            draws = Draws(
                mixture.alpha[:, ours],
                mixture.diagonal[:, ours],
                mixture.quadratic,
                None if self.averaging.known_noise else mixture.degrees,
                np.repeat(base[:, None], part.stop - part.start, axis=1),
                mixture.parts.exponent,
                slopes,
                prediction.weights[:, ours, part],
                prediction.mean[:, part],
                prediction.variance[:, part],
            )
            yield Curves(draws, self._signs()), rows[part]

    def _signs(self) -> Signs | None:
        if not (self.averaging.bounded or self._units.positive):
            return None
        others = np.delete(self.y, self.ranked)
        zero = float(self._units.inside(np.zeros(1))[0])
        rest = int((others <= 0.0).sum()), int((others < 0.0).sum())
        return Signs(zero, self._units.inside(self.y[self.ranked]), rest)

    def _undetermined(self, new: Points) -> Mask:
        """Whether the mean of each test row depends on a coefficient that the training rows do not determine."""
        return self.inputs.new(new).undetermined

    # -------------------------------------------------------------------------------------------------- predictions
    def mean(self, new: Points) -> Array:
        """See Predictor: the label at which the test row's own score is 0; its p-value is 1."""
        found, order = self._map_curves(lambda curves, rows: curves.labels(centres(curves))[:, 0], new)
        return self._units.back(np.concatenate(found)[order])

    def mean_and_variance(self, new: Points) -> tuple[Array, Array]:
        """See Predictor; the standard deviation is half the length from one below the mean to one above."""
        found, order = self._map_curves(lambda curves, rows: curves.labels(centres(curves) + STEPS), new)
        mean, low, high = self._units.back(np.concatenate(found)[order]).T
        return mean, np.where(self._undetermined(new), np.inf, (0.5 * (high - low)) ** 2)

    def mean_and_covariance(self, new: Points) -> tuple[Array, Array]:
        """See Predictor: the covariance of the average over draws; of transformed targets there is none."""
        if self._units.positive:
            raise ValueError(
                "return_cov=True needs warp=None: the covariance on the scale of the target has no closed "
                "form. sample_y draws such targets."
            )
        weight = self.draw_weights
        covariance = np.zeros((len(new.X), len(new.X)))
        means = np.empty((weight.size, len(new.X)))
        for draw, share in enumerate(weight):
            means[draw], own = self._joint(new, draw)
            covariance += share * own
        middle = weight @ means
        covariance += (means - middle).T @ (weight[:, None] * (means - middle))
        return self.mean(new), covariance * self._units.variance_unit

    def _joint(self, new: Points, draw: int) -> tuple[Array, Array]:
        """Means and covariances of new targets under one draw, in units of the process."""
        seen = self.inputs.new(new)
        known = seen.known / self._units.variance_unit if self.averaging.known_noise else None
        return self.mixture.joint(self.averaging.family(seen.X, self.inputs.X), seen.H, known, draw)

    def draw(self, new: Points, n_samples: int, rng: np.random.RandomState) -> Array:
        """See Predictor: each sample is of one draw of the hyperparameters."""
        chosen = rng.choice(self.draw_weights.size, n_samples, p=self.draw_weights)
        samples = np.empty((len(new.X), n_samples))
        for draw in np.unique(chosen):
            columns = np.flatnonzero(chosen == draw)
            values = rng.multivariate_normal(*self._joint(new, int(draw)), columns.size).T
            if self.mixture.parts.exponent is not None:
                values = inverse_power(values, self.mixture.parts.exponent[draw])
            samples[:, columns] = self._units.back(values)
        return samples

    def typical(self) -> tuple[float, float]:
        """See Process."""
        mixture = self.mixture
        scale = mixture.quadratic / mixture.degrees
        if self.averaging.known_noise:
            scale = np.ones(scale.size)
        variance = scale[:, None] / mixture.diagonal
        if mixture.parts.exponent is not None:
            # targets change by y^(1 - exponent) where transformed ones change by 1
            logarithms = self._units.inside(self.y)
            variance = variance * self._units.back(logarithms * (1.0 - mixture.parts.exponent[:, None])) ** 2
        variances = self.draw_weights @ variance
        return float(np.median(variances[self.ranked])) * self._units.variance_unit, 1.0

    # -------------------------------------------------------------------------------------------------- regions
    def hulls(self, new: Points, needed: Needed) -> Array:
        """See Predictor."""

        def ends(curves: Curves, rows: Rows) -> Array:
            low, high = Search(curves, needed.take(rows)).ends()
            return np.stack([curves.labels(low), curves.labels(high)], axis=1)

        found, order = self._map_curves(ends, new)
        hulls = self._units.back(np.concatenate(found)[order])
        hulls[self._undetermined(new)] = [[-np.inf], [np.inf]]
        return hulls

    def regions(self, new: Points, needed: Needed) -> list[Array]:
        """See Predictor."""

        def pieces(curves: Curves, rows: Rows) -> list[Array]:
            found = Search(curves, needed.take(rows)).pieces()
            return [curves.take(np.array([row])).labels(own.reshape(1, -1)) for row, own in enumerate(found)]

        blocks, order = self._map_curves(pieces, new)
        found = [self._units.back(ends).reshape(-1, 2) for block in blocks for ends in block]
        everything = np.array([[-np.inf, np.inf]])
        unknown = self._undetermined(new)
        return [everything if unknown[row] else found[place] for row, place in enumerate(order)]

    def bounds(self, new: Points, below: Needed, above: Needed) -> Array:
        """See Predictor."""

        def ends(curves: Curves, rows: Rows) -> Array:
            found = []
            if below.n_levels:
                found.append(Search(curves, below.take(rows), sign=-1).ends()[0])
            if above.n_levels:
                found.append(Search(curves, above.take(rows), sign=1).ends()[1])
            return curves.labels(np.concatenate(found, axis=1))

        blocks, order = self._map_curves(ends, new)
        found = self._units.back(np.concatenate(blocks)[order])
        unknown = np.repeat([-np.inf, np.inf], [below.n_levels, above.n_levels])
        return np.where(self._undetermined(new)[:, None], unknown, found)

    def counts(self, new: Points, y: Array, signed: bool, weights: Array | None = None) -> tuple[Array, Array]:
        """See Predictor; signed counts fall with the label, as a distribution function rises."""
        if signed and weights is None:
            steps = self._steps(new)
            at_least, greater = (steps >= y[:, None]).sum(axis=1), (steps > y[:, None]).sum(axis=1)
        else:
            inside = self._units.inside(y)
            found, order = self._map_curves(
                lambda curves, rows: np.stack(counts(curves, inside[rows], signed, weights), axis=1), new
            )
            at_least, greater = np.concatenate(found)[order].T
        unknown = self._undetermined(new)
        each = np.ones(self.n_ranked) if weights is None else weights
        # such a test row scores 0, as training rows do that alone determine a coefficient
        alone = (self.mixture.diagonal[:, self.ranked] == 0.0).any(axis=0)
        above = 0.0 if signed else float(each[~alone].sum())
        return np.where(unknown, each.sum(), at_least), np.where(unknown, above, greater)

    def _steps(self, new: Points) -> Array:
        """Steps of the predictive distribution functions, (m, n): lower bounds below the median, upper bounds above."""
        n = self.n_ranked
        half = n // 2
        below = Needed.of_ranks(list(range(1, half + 1)))
        above = Needed.of_ranks(list(range(n - half, 0, -1)))
        return self.bounds(new, below, above)

    def deciding(self, new: Points, ends: Array) -> tuple[Rows, Rows]:
        """See Process: rows whose scores are as near to the test row's as ends are to the region's."""
        inside = self._units.inside(ends)

        def nearest(curves: Curves, rows: Rows) -> Array:
            scores, own = curves.scores_of_labels(inside[rows])
            gap = np.abs(compared(scores, 0) - compared(own, 0)[:, :, None])
            tied = np.maximum((gap <= 5.0 * TOLERANCE).sum(axis=2), 1)
            return np.stack([tied, self.ranked[gap.argmin(axis=2)]], axis=2)

        found, order = self._map_curves(nearest, new)
        tied, row = np.moveaxis(np.concatenate(found)[order], 2, 0)
        return tied, row
