r"""From scores to answers in units of the target: intervals, sets, bounds, p-values. Written once, for all models.

A model gives, for blocks of test rows, the scores of its calibration rows as functions of the candidate value
(:class:`~conformal_gp.conformal.lines.Lines` or :class:`~conformal_gp.conformal.curves.Curves`). What values need to be
in a prediction set is a :class:`~conformal_gp.conformal.levels.Needed`. Ends and p-values follow from these two, and a
:class:`~conformal_gp.targets.target.Target` brings them back to units of the target and cuts them at its bounds.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import NamedTuple, Protocol, Self

import numpy as np

from conformal_gp.arrays import Array, Indices, Mask
from conformal_gp.conformal import lines, search
from conformal_gp.conformal.curves import Curves
from conformal_gp.conformal.levels import Needed
from conformal_gp.conformal.lines import Lines
from conformal_gp.gp.inputs import Inputs
from conformal_gp.rows import Rows
from conformal_gp.targets.difficulty import Spread
from conformal_gp.targets.target import Bounds, Target

Scores = Lines | Curves


class Question(NamedTuple):
    """A question about test rows: a model may leave out calibration rows that cannot matter to it."""

    sign: int = 0
    """0 compares absolute scores, 1 signed ones, -1 signed ones with their signs changed."""
    needed: Needed | None = None
    """Prediction sets of these levels are wanted."""
    labels: Array | None = None
    """(m,): or comparisons at these values."""
    weights: Array | None = None
    """(n,): weights of the calibration rows; None if all weigh the same."""


class Block(NamedTuple):
    """Scores of calibration rows for some of the test rows."""

    rows: Indices
    """(k,): places of the test rows."""
    scores: Scores
    levels: Indices | None = None
    """Places of the levels that the scores are for; None is all."""
    calibration: Indices | None = None
    """Places of the calibration rows that the scores are of; None is all."""
    covering: float = 0.0
    """Weight of the calibration rows that are left out because they score higher at every value in question."""

    def needed(self, needed: Needed) -> Needed:
        """Requirement of values among the calibration rows of this block."""
        own = needed.take(self.rows)
        if self.levels is None or self.calibration is None:
            return own
        return own.among(self.calibration, self.covering, self.levels)


class Model(Protocol):
    """The waist: everything that a tuned model gives for test rows, in its own units of the target."""

    n_rows: int
    """Training rows."""
    calibration: Indices
    """Numbers of the calibration rows, ascending."""
    inputs: Inputs
    """Training inputs, or those of the tuning rows, as the kernel has them."""
    difficulty: Callable[[Rows], Spread] | None
    """Location and scale of the scores of rows; None is 0 and 1."""
    one_interval: bool
    """Whether prediction sets always are one interval."""
    screens: bool
    """Whether scores depend on the question, as rows that cannot matter to it are left out."""

    def among(self, calibration: Indices) -> Self:
        """The same model with only some of its calibration rows, by their numbers."""

    def visit(self, new: Rows, question: Question, fill: Callable[[Block], None]) -> None:
        """Call ``fill`` with blocks of scores for all test rows; in threads, each block once."""

    def centre(self, new: Rows) -> Array:
        """Values whose p-value is 1, (m,): they are in every prediction set."""

    def moments(self, new: Rows) -> tuple[Array, Array]:
        """Means and variances of new observations under the Gaussian process, (m,) each."""

    def covariance(self, new: Rows) -> Array:
        """Covariances of new observations under the Gaussian process, noise included, (m, m)."""

    def sample(self, new: Rows, n_samples: int, rng: np.random.RandomState) -> Array:
        """Joint draws of new observations under the Gaussian process, (m, n_samples)."""

    def typical(self) -> tuple[float, float]:
        """Medians over calibration rows: of leave-one-out variances, by way of their inverses, and of scales."""


class Answers:
    """Answers of a model, in units of the target.

    Parameters
    ----------
    model : Model
        The model.
    target : Target
        Units and bounds of the target.
    side : ndarray of shape (n_rows,) or None, default=None
        -1, 0 or 1 for training targets below, within and above bounds that were learnt.
    """

    def __init__(self, model: Model, target: Target, side: Array | None = None):
        self.model = model
        self.target = target
        self.calibration = model.calibration
        self.n_calibration = model.calibration.size
        self._all_sides = side
        self._side = np.zeros(model.calibration.size)
        if side is not None:
            self._side = side[model.calibration]
        n_outside = int(np.count_nonzero(self._side))
        self._bounds: Bounds | None = target.bounds
        if n_outside > 1:
            self._bounds = None
        self._one_outside = n_outside == 1
        self.inner = model
        if self._one_outside:
            self.inner = model.among(model.calibration[self._side == 0.0])

    def among(self, calibration: Indices) -> Answers:
        """The same with only some of the calibration rows."""
        return self.by(self.model.among(calibration))

    def by(self, model: Model) -> Answers:
        """The same by a model of fewer of these rows."""
        return Answers(model, self.target, self._all_sides)

    @property
    def of_recorded(self) -> Answers:
        """The same about values as they are recorded, which a limit of detection may hide."""
        return Answers(self.model, replace(self.target, limits=None), self._all_sides)

    def predict(self, new: Rows) -> Array:
        """Predictions, which are in every interval."""
        found = self.target.backward(self.model.centre(new))
        if self._bounds is None or self._one_outside:
            return found
        return self._bounds.clip(found)

    def standard_deviation(self, new: Rows) -> Array:
        """Standard deviations of new observations under the Gaussian process."""
        mean, variance = self.model.moments(new)
        return self.target.half_width(mean, np.sqrt(variance))

    def covariance(self, new: Rows) -> Array:
        """Covariances of new observations under the Gaussian process."""
        return self.model.covariance(new) * self.target.unit**2  # cov(a + b z) = b^2 cov(z)

    def sample(self, new: Rows, n_samples: int, rng: np.random.RandomState) -> Array:
        """Joint draws of new observations under the Gaussian process, one a column."""
        found = self.target.backward(self.model.sample(new, n_samples, rng))
        if self._bounds is None or self.target.learnt_bounds:
            return found
        return self._bounds.clip(found)

    def intervals(self, new: Rows, needed: Needed) -> Array:
        """Hulls of the prediction sets of several levels, (m, 2, levels)."""
        if self._bounds is None:
            found = self._hulls(self.model, new, needed)
        elif self._one_outside or not self.inner.one_interval:
            found = self._hulls_of_sets(new, needed)
        else:
            found = self._bounds.clip(self._hulls(self.model, new, needed))
        found = nested(found, needed.by_row(len(new.X)))
        # of levels that the calibration rows do not support: p-values of all targets are then large enough
        every = np.array(self.target.range)[:, None]
        found = np.where(needed.by_row(len(new.X))[:, None] < 0.0, every, found)
        if self.target.limits is None:
            return found
        return self.target.limits.extend(found)

    def _hulls(self, model: Model, new: Rows, needed: Needed) -> Array:
        """Hulls without bounds."""
        ends = np.tile([[-np.inf], [np.inf]], (len(new.X), 1, needed.n_levels))

        def fill(block: Block) -> None:
            found = hulls(block.scores, block.needed(needed))
            levels = np.arange(needed.n_levels) if block.levels is None else block.levels
            ends[block.rows[:, None], :, levels] = found.transpose(0, 2, 1)

        model.visit(new, Question(needed=needed), fill)
        return np.stack(self.target.ends(ends[:, 0], ends[:, 1]), axis=1)

    def _hulls_of_sets(self, new: Rows, needed: Needed) -> Array:
        """Hulls of the sets of each level and the prediction, which may be outside a set that bounds cut."""
        ends = np.repeat(self.predict(new)[:, None, None], 2, axis=1)
        ends = np.repeat(ends, needed.n_levels, axis=2)
        for level in range(needed.n_levels):
            one = needed._replace(least=needed.least[:, [level]])
            for row, pieces in enumerate(self.sets(new, one)):
                if len(pieces):
                    ends[row, 0, level] = min(pieces[0, 0], ends[row, 0, level])
                    ends[row, 1, level] = max(pieces[-1, 1], ends[row, 1, level])
        return ends

    def sets(self, new: Rows, needed: Needed) -> list[Array]:
        """Prediction sets of one level, each (pieces, 2)."""
        unsupported = needed.by_row(len(new.X))[:, 0] < 0.0
        found = self._sets_of_supported(new, needed)
        for row in np.flatnonzero(unsupported):
            found[row] = np.array([self.target.range])
        if self.target.limits is None:
            return found
        return [lines.union(self.target.limits.extend(pieces)) for pieces in found]

    def _sets_of_supported(self, new: Rows, needed: Needed) -> list[Array]:
        """Sets of a level that the calibration rows support."""
        if self._bounds is None:
            return self._sets(self.model, new, needed)
        inside = self._sets(self.inner, new, self._left(needed, self._side != 0.0))
        found = [self._bounds.cut(pieces) for pieces in inside]
        if not self._one_outside:
            return found
        plain = [self._bounds.rest(pieces) for pieces in self._sets(self.model, new, needed)]
        return [lines.union(np.concatenate(both)) for both in zip(found, plain, strict=True)]

    def _sets(self, model: Model, new: Rows, needed: Needed) -> list[Array]:
        """Sets without bounds; pieces outside the range of a transformation are left out."""
        found = [np.array([[-np.inf, np.inf]])] * len(new.X)

        def fill(block: Block) -> None:
            for row, pieces in zip(block.rows, sets(block.scores, block.needed(needed)), strict=True):
                found[row] = self.target.pieces(pieces)

        model.visit(new, Question(needed=needed), fill)
        return found

    def bounds(self, new: Rows, below: Needed, above: Needed) -> Array:
        """Lower bounds of some levels, then upper bounds of others, (m, levels)."""
        unsupported = np.concatenate([below.by_row(len(new.X)), above.by_row(len(new.X))], axis=1) < 0.0
        every = np.repeat(self.target.range, [below.n_levels, above.n_levels])
        found = np.where(unsupported, every, self._bounds_of_supported(new, below, above))
        limits = self.target.limits
        if limits is None:
            return found
        lower = limits.lower(found[:, : below.n_levels])
        upper = limits.upper(found[:, below.n_levels :])
        return np.concatenate([lower, upper], axis=1)

    def _bounds_of_supported(self, new: Rows, below: Needed, above: Needed) -> Array:
        """Bounds of levels that the calibration rows support."""
        plain = self._one_sided(self.model, new, below, above)
        if self._bounds is None:
            return plain
        if not self._one_outside:
            return self._bounds.clip(plain)
        left = self._left(below, self._side < 0.0), self._left(above, self._side > 0.0)
        ends = self._bounds.clip(self._one_sided(self.inner, new, *left))
        return np.where(self._bounds.side(plain) != 0.0, plain, ends)

    def _one_sided(self, model: Model, new: Rows, below: Needed, above: Needed) -> Array:
        """One-sided bounds without bounds of the target."""
        lower = np.full((len(new.X), below.n_levels), -np.inf)
        upper = np.full((len(new.X), above.n_levels), np.inf)

        def fill_lower(block: Block) -> None:
            levels = np.arange(below.n_levels) if block.levels is None else block.levels
            lower[block.rows[:, None], levels] = -upper_bounds(block.scores, block.needed(below), -1)

        def fill_upper(block: Block) -> None:
            levels = np.arange(above.n_levels) if block.levels is None else block.levels
            upper[block.rows[:, None], levels] = upper_bounds(block.scores, block.needed(above), 1)

        def fill_both(block: Block) -> None:
            fill_lower(block)
            fill_upper(block)

        if below.n_levels and above.n_levels and not model.screens:
            model.visit(new, Question(needed=below), fill_both)
        else:
            if below.n_levels:
                model.visit(new, Question(-1, needed=below), fill_lower)
            if above.n_levels:
                model.visit(new, Question(1, needed=above), fill_upper)
        first = self.target.ends(lower, np.full_like(lower, np.inf))[0]
        last = self.target.ends(np.full_like(upper, -np.inf), upper)[1]
        return np.concatenate([first, last], axis=1)

    def _left(self, needed: Needed, covering: Mask) -> Needed:
        """Requirement of values inside bounds among rows inside, where a row outside covers them all."""
        if not self._one_outside:
            return needed
        weight = float(needed.each(self.n_calibration)[covering].sum())
        return needed.among(np.flatnonzero(self._side == 0.0), weight, np.arange(needed.n_levels))

    def counts(self, new: Rows, y: Array, signed: bool, weights: Array | None = None) -> tuple[Array, Array]:
        """Weight of the calibration rows that score at least as high as each test row, and higher."""
        limits = self.target.limits
        if limits is None:
            return self._counts_of_recorded(new, y, signed, weights)
        if signed:
            return self._counts_of_recorded(new, np.clip(y, limits.low, limits.high), signed, weights)
        # a value beyond a limit may be recorded as any value up to it: the one that agrees best
        values = [y]
        if ((y <= limits.low) | (y >= limits.high)).any():
            values += [np.maximum(y, limits.low), np.minimum(y, limits.high)]
            values.append(limits.nearest_recorded(y, self.predict(new)))
        every = [self._counts_of_recorded(new, one, signed, weights) for one in values]
        at_least, greater = np.max(every, axis=0)
        return at_least, greater

    def _counts_of_recorded(self, new: Rows, y: Array, signed: bool, weights: Array | None) -> tuple[Array, Array]:
        """Counts of values as they are recorded."""
        plain = self._counts(self.model, new, y, signed, weights)
        if self._bounds is None:
            return plain
        each = np.ones(self.n_calibration) if weights is None else weights
        side = self._bounds.side(y)
        if not self._one_outside:  # a value outside scores higher than all rows, or, with signs, lower
            lower = np.where(signed & (side < 0.0), each.sum(), 0.0)
            return np.where(side == 0.0, plain[0], lower), np.where(side == 0.0, plain[1], lower)
        within = self._side == 0.0
        covering = each[self._side > 0.0 if signed else ~within].sum()
        inside = self._counts(self.inner, new, y, signed, None if weights is None else weights[within])
        at_least = np.where(side == 0.0, inside[0] + covering, plain[0])
        greater = np.where(side == 0.0, inside[1] + covering, plain[1])
        return at_least, greater

    def _counts(self, model: Model, new: Rows, y: Array, signed: bool, weights: Array | None) -> tuple[Array, Array]:
        """Counts without bounds; values outside a transformation's domain score higher than all rows, or lower."""
        labels = self.target.extended(y)
        outside = np.isinf(labels)
        labels = np.where(outside, 0.0, labels)
        at_least = np.empty(y.size)
        greater = np.empty(y.size)

        def fill(block: Block) -> None:
            own = weights
            if weights is not None and block.calibration is not None:
                own = weights[block.calibration]
            found = counts(block.scores, labels[block.rows], signed, own)
            at_least[block.rows] = block.covering + found[0]
            greater[block.rows] = block.covering + found[1]

        model.visit(new, Question(int(signed), labels=labels, weights=weights), fill)
        total = model.calibration.size if weights is None else weights.sum()
        every = np.where(signed & (self.target.extended(y) < 0.0), total, 0.0)
        return np.where(outside, every, at_least), np.where(outside, every, greater)


def nested(intervals: Array, least: Array) -> Array:
    """Intervals of several levels, (m, 2, levels), each with those of levels that need more weight, ``least``.

    A search on a grid may miss a piece of one level's set that it finds for another level, whose set is a part of it.

    >>> nested(np.array([[[1.0, 0.0], [4.0, 3.0]]]), np.array([[3.0, 2.0]])).tolist()
    [[[1.0, 0.0], [4.0, 4.0]]]
    """
    found = intervals.copy()
    for level in range(least.shape[1]):
        parts = least >= least[:, [level]]
        found[:, 0, level] = np.where(parts, intervals[:, 0], np.inf).min(axis=1)
        found[:, 1, level] = np.where(parts, intervals[:, 1], -np.inf).max(axis=1)
    return found


# Each of these is in closed form for lines, and a search for curves.
def hulls(scores: Scores, needed: Needed) -> Array:
    """Hulls of prediction sets, (k, 2, levels)."""
    if isinstance(scores, Lines):
        return lines.hulls(scores, needed)
    return search.Search(scores, needed).hulls()


def sets(scores: Scores, needed: Needed) -> list[Array]:
    """Prediction sets of one level, each (pieces, 2)."""
    if isinstance(scores, Lines):
        return lines.regions(scores, needed)
    return search.Search(scores, needed).pieces()


def upper_bounds(scores: Scores, needed: Needed, sign: int) -> Array:
    """Upper bounds of values times the sign, (k, levels)."""
    if isinstance(scores, Curves):
        return search.Search(scores, needed, sign).upper_bounds()
    if sign < 0:
        scores = lines.mirrored(scores)
    return lines.upper_bounds(scores, needed)


def counts(scores: Scores, labels: Array, signed: bool, weights: Array | None) -> tuple[Array, Array]:
    """Weight of the calibration rows that score at least as high as the test row, and higher, (k,) each."""
    if isinstance(scores, Lines):
        return lines.counts(scores, labels, signed, weights)
    if signed and weights is None:
        return search.monotone_counts(scores, labels)
    return search.counts(scores, labels, signed, weights)
