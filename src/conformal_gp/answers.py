"""From scores to answers in units of the target: intervals, sets, bounds, p-values. Written once, for all models.

A model gives scores of its calibration rows as functions of the candidate value, in a :class:`Block` for some of the
test rows. A :class:`~conformal_gp.conformal.levels.Needed` is the weight of calibration rows that must cover a value.
:class:`Part` brings answers to units of the target, and :class:`TestRows` joins them, at the only place that deals with
levels that the calibration rows do not support and with limits of detection.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from fractions import Fraction
from functools import partial
from typing import NamedTuple, Protocol, Self

import numpy as np

from conformal_gp.arrays import Array, Indices, Mask
from conformal_gp.conformal import lines, search
from conformal_gp.conformal.curves import Curves
from conformal_gp.conformal.levels import Needed, rank, shares
from conformal_gp.conformal.lines import Lines
from conformal_gp.gp.inputs import Inputs
from conformal_gp.rows import Rows
from conformal_gp.targets.difficulty import Spread
from conformal_gp.targets.target import Bounds, Limits, Target, union


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
    scores: Lines | Curves
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


class Case(NamedTuple):
    """Values of the target at which the same calibration rows have infinite scores.

    Mostly these are all values within the bounds, and no row. Beyond bounds the test row's own score is infinite. Of
    bounds that tuning rows suggest, one calibration row may be outside: there are two cases then
    (docs/theory.md, "What else may be learnt").
    """

    model: Model
    """By the calibration rows of finite scores."""
    infinite: Array
    """(n,): 1 for calibration rows whose score is infinite, -1 if with signs it is minus infinity, else 0."""
    bounds: Bounds
    inside: bool = True
    """Whether the values are those within the bounds, or those outside."""

    @classmethod
    def of(cls, model: Model, bounds: Bounds, side: Array) -> list[Case]:
        """All cases, where calibration rows are below (-1), within (0) or above (1) the bounds."""
        outside = np.count_nonzero(side)
        if outside == 1:
            others = model.among(model.calibration[side == 0.0])
            return [cls(others, side, bounds), cls(model, np.zeros(side.size), bounds, inside=False)]
        if outside > 1:
            bounds = Bounds()
        return [cls(model, np.zeros(side.size), bounds)]

    def has(self, y: Array) -> Mask:
        """Whether values are of this case."""
        return (self.bounds.side(y) == 0.0) == self.inside

    def cut(self, pieces: Array) -> Array:
        """Pieces of a set, (k, 2), that are of this case."""
        return self.bounds.cut(pieces) if self.inside else self.bounds.rest(pieces)

    def cut_ends(self, ends: Array) -> Array:
        """Ends of sets, (m, 2, levels), that are of this case; infinite and in reverse order where none is."""
        if self.inside:
            return self.bounds.clip(ends)
        lower = np.where(ends[:, 0] < self.bounds.low, ends[:, 0], np.inf)
        upper = np.where(ends[:, 1] > self.bounds.high, ends[:, 1], -np.inf)
        return np.stack([lower, upper], axis=1)

    def covering(self, weights: Array, sign: int) -> float:
        """Weight of the rows that cover all values because their scores, which may have signs, are infinite."""
        covers = self.infinite * sign > 0.0 if sign else self.infinite != 0.0
        return float(weights[covers].sum())

    # Answers in units of the model: in closed form for lines, searched for curves.
    def ends(self, new: Rows, asked: Sequence[tuple[int, Needed]]) -> list[Array]:
        """Ends, (m, 2, levels), for signs of scores and needed weights: of hulls for sign 0, else of one side."""
        found = [np.tile([[-np.inf], [np.inf]], (len(new.X), 1, needed.n_levels)) for _, needed in asked]

        def fill(block: Block, places: Sequence[int]) -> None:
            for place in places:
                sign, needed = asked[place]
                if isinstance(block.scores, Curves):
                    ends = search.Search(block.scores, block.needed(needed), sign).ends()
                else:
                    ends = lines.ends(block.scores, block.needed(needed), sign)
                levels = np.arange(needed.n_levels) if block.levels is None else block.levels
                found[place][block.rows[:, None], :, levels] = ends.transpose(0, 2, 1)

        every = [place for place, (_, needed) in enumerate(asked) if needed.n_levels]
        for places in [[place] for place in every] if self.model.screens else [every]:
            self.model.visit(new, Question(*asked[places[0]]), partial(fill, places=places))
        return found

    def sets(self, new: Rows, needed: Needed) -> list[Array]:
        """Prediction sets of one level, each (pieces, 2)."""
        found = [np.array([[-np.inf, np.inf]])] * len(new.X)

        def fill(block: Block) -> None:
            if isinstance(block.scores, Curves):
                sets = search.Search(block.scores, block.needed(needed)).pieces()
            else:
                sets = lines.regions(block.scores, block.needed(needed))
            for row, pieces in zip(block.rows, sets, strict=True):
                found[row] = pieces

        self.model.visit(new, Question(needed=needed), fill)
        return found

    def counts(self, new: Rows, labels: Array, signed: bool, weights: Array | None) -> Array:
        """Weight of calibration rows that score at least as high as test rows, and higher, (2, m)."""
        found = np.empty((2, labels.size))
        covering = self.covering(np.ones(self.infinite.size) if weights is None else weights, int(signed))
        if weights is not None:
            weights = weights[self.infinite == 0.0]

        def fill(block: Block) -> None:
            own = weights
            if weights is not None and block.calibration is not None:
                own = weights[block.calibration]
            if isinstance(block.scores, Curves):
                counted = search.counts(block.scores, labels[block.rows], signed, own)
            else:
                counted = lines.counts(block.scores, labels[block.rows], signed, own)
            found[:, block.rows] = covering + block.covering + np.stack(counted)

        self.model.visit(new, Question(int(signed), labels=labels, weights=weights), fill)
        return found


class Answers:
    """Answers of a model in units of the target; ``side`` is -1, 0 or 1 for training rows about learnt bounds."""

    def __init__(self, model: Model, target: Target, side: Array | None = None):
        self.model = model
        self.target = target
        self.n_calibration = model.calibration.size
        self._side = np.zeros(model.n_rows) if side is None else side
        self.cases = Case.of(model, target.bounds or Bounds(), self._side[model.calibration])

    def among(self, calibration: Indices) -> Answers:
        """The same with only some of the calibration rows."""
        return self.by(self.model.among(calibration))

    def by(self, model: Model) -> Answers:
        """The same by a model of fewer of these rows."""
        return Answers(model, self.target, self._side)

    @property
    def of_recorded(self) -> Answers:
        """The same about values as they are recorded, which a limit of detection may hide."""
        return Answers(self.model, replace(self.target, limits=Limits()), self._side)

    def about(self, new: Rows) -> TestRows:
        """Test rows that are all compared with the same calibration rows."""
        return TestRows(new, [Part(new, self, np.arange(len(new.X)))])

    @property
    def cuts_ends(self) -> bool:
        """Whether an interval is the hull of all values, cut at the bounds: these cut off no piece of a set."""
        return len(self.cases) == 1 and (self.model.one_interval or self.cases[0].bounds == Bounds())

    def predict(self, new: Rows) -> Array:
        """Predictions, which are in every interval."""
        found = self.target.backward(self.model.centre(new))
        if len(self.cases) == 1:
            found = self.cases[0].bounds.clip(found)
        return found

    def standard_deviation(self, new: Rows) -> Array:
        """Standard deviations of new observations under the Gaussian process."""
        mean, variance = self.model.moments(new)
        return self.target.half_width(mean, np.sqrt(variance))

    def covariance(self, new: Rows) -> Array:
        """Covariances of new observations under the Gaussian process."""
        return self.model.covariance(new) * self.target.unit**2  # cov(a + b z) = b^2 cov(z)

    def sample(self, new: Rows, n_samples: int, rng: np.random.RandomState) -> Array:
        """Joint draws of new observations under the Gaussian process, one a column."""
        return np.clip(self.target.backward(self.model.sample(new, n_samples, rng)), *self.target.range)


class Part(NamedTuple):
    """Test rows that are compared with the same calibration rows."""

    new: Rows
    answers: Answers
    places: Indices
    """(m,): places among all test rows."""
    name: str = "the model"
    """Name of the calibration rows in warnings."""
    weights: Array | None = None
    """(n,): weights of the calibration rows; None if all rows weigh the same."""
    own: Array | float = 1.0
    """(m,): weights of the test rows."""

    @property
    def total(self) -> float:
        """Weight of the calibration rows."""
        return float(self.answers.n_calibration if self.weights is None else self.weights.sum())

    def needed(self, levels: Sequence[Fraction]) -> Needed:
        """Weight of the calibration rows that must cover values of the target, by level."""
        if self.weights is None:
            return Needed.of_ranks([rank(level, self.answers.n_calibration) for level in levels])
        return Needed.of_weights(levels, self.weights, np.asarray(self.own))

    def needed_in(self, case: Case, levels: Sequence[Fraction], sign: int) -> Needed:
        """Weight of those with finite scores."""
        needed = self.needed(levels)
        covering = case.covering(needed.each(self.answers.n_calibration), sign)
        return needed.among(np.flatnonzero(case.infinite == 0.0), covering, slice(None))

    def counts(self, y: Array, signed: bool) -> Array:
        """Weight of the calibration rows that score at least as high as the test rows, and higher, (2, m)."""
        labels = self.answers.target.extended(y)
        if len(self.answers.cases) == 1:  # beyond bounds the test row's score is infinite, or with signs minus infinity
            side = self.answers.cases[0].bounds.side(y)
            labels[side < 0.0] = -np.inf
            labels[side > 0.0] = np.inf
        finite = np.isfinite(labels)
        found = np.tile(np.where(signed & (labels == -np.inf), self.total, 0.0), (2, 1))
        for case in self.answers.cases:
            counted = case.counts(self.new, np.where(finite, labels, 0.0), signed, self.weights)
            found = np.where(finite & case.has(y), counted, found)
        return found


class TestRows:
    """Test rows, in parts that are each compared with their own calibration rows."""

    __test__ = False  # pytest takes it for tests

    def __init__(self, new: Rows, parts: list[Part]):
        self.new = new
        self.parts = parts
        self.target = parts[0].answers.target
        self._order = np.argsort(np.concatenate([part.places for part in parts]))

    def joined(self, found: list[Array]) -> Array:
        """Answers of all parts, in the order of the test rows."""
        return np.concatenate(found)[self._order]

    def supported(self, levels: Sequence[Fraction]) -> Mask:
        """Whether the calibration rows support the levels, (m, levels): else p-values of all targets exceed delta."""
        return self.joined([part.needed(levels).by_row(part.places.size) for part in self.parts]) >= 0.0

    def predict(self) -> Array:
        """Predictions of all parts."""
        return self.joined([part.answers.predict(part.new) for part in self.parts])

    def intervals(self, levels: Sequence[Fraction]) -> Array:
        """Hulls of the prediction sets of several levels, (m, 2, levels), and predictions, which bounds may cut off."""
        if all(part.answers.cuts_ends for part in self.parts):
            (found,) = self._ends([(0, levels)])
        else:
            found = np.tile(self.predict()[:, None, None], (2, len(levels)))
            for place, level in enumerate(levels):
                for row, pieces in enumerate(self._sets(level)):
                    found[row, 0, place] = pieces.min(initial=found[row, 0, place])
                    found[row, 1, place] = pieces.max(initial=found[row, 1, place])
        # a search on a grid may miss a piece of one level's set that it finds for a lower level, whose set is a part
        order = sorted(range(len(levels)), key=levels.__getitem__)
        found[:, 0, order] = np.minimum.accumulate(found[:, 0, order], axis=1)
        found[:, 1, order] = np.maximum.accumulate(found[:, 1, order], axis=1)
        return self._of_true_values(levels, found)

    def bounds(self, below: Sequence[Fraction], above: Sequence[Fraction]) -> tuple[Array, Array]:
        """Lower bounds of some levels, (m, levels), and upper bounds of others."""
        lower, upper = self._ends([(-1, below), (1, above)])
        return self._of_true_values(below, lower)[:, 0], self._of_true_values(above, upper)[:, 1]

    def _ends(self, asked: Sequence[tuple[int, Sequence[Fraction]]]) -> list[Array]:
        """Ends of recorded values, (m, 2, levels), for signs of scores and levels: hulls for 0, else of one side."""
        found = [np.tile([[np.inf], [-np.inf]], (len(self.new.X), 1, len(levels))) for _, levels in asked]
        for part in self.parts:
            for case in part.answers.cases:
                needed = [(sign, part.needed_in(case, levels, sign)) for sign, levels in asked]
                for ends, values in zip(found, case.ends(part.new, needed), strict=True):
                    own = case.cut_ends(np.stack(self.target.ends(values[:, 0], values[:, 1]), axis=1))
                    ends[part.places, 0] = np.minimum(ends[part.places, 0], own[:, 0])
                    ends[part.places, 1] = np.maximum(ends[part.places, 1], own[:, 1])
        return found

    def _of_true_values(self, levels: Sequence[Fraction], ends: Array) -> Array:
        """Ends that limits of detection extend, and those of levels that are not supported."""
        every = np.array(self.target.range)[:, None]
        return self.target.limits.extend(np.where(self.supported(levels)[:, None], ends, every))

    def sets(self, level: Fraction) -> list[Array]:
        """Prediction sets of one level, each (pieces, 2)."""
        every = np.array([self.target.range])
        each = zip(self._sets(level), self.supported([level])[:, 0], strict=True)
        return [union(self.target.limits.extend(pieces if supported else every)) for pieces, supported in each]

    def _sets(self, level: Fraction) -> list[Array]:
        """Prediction sets of recorded values."""
        found: list[list[Array]] = [[] for _ in self.new.X]
        for part in self.parts:
            for case in part.answers.cases:
                sets = case.sets(part.new, part.needed_in(case, [level], 0))
                for row, pieces in zip(part.places, sets, strict=True):
                    found[row].append(case.cut(self.target.pieces(pieces)))
        return [row[0] if len(row) == 1 else union(np.concatenate(row)) for row in found]

    def shares(self, y: Array, ties: Array, signed: bool = False) -> Array:
        """p-values of one value for each test row; with ``signed``, values of the predictive distribution function.

        A value beyond a limit of detection may be recorded as any value up to it: the one that agrees best.
        """
        limits = self.target.limits
        values = [np.clip(y, limits.low, limits.high)] if signed else [y]
        if not signed and ((y <= limits.low) | (y >= limits.high)).any():
            nearest = limits.nearest_recorded(y, self.predict())
            values += [np.maximum(y, limits.low), np.minimum(y, limits.high), nearest]
        found = []
        for part in self.parts:
            counted = [part.counts(recorded[part.places], signed) for recorded in values]
            at_least, greater = np.max(counted, axis=0)
            if signed:
                at_least, greater = part.total - greater, part.total - at_least
            found.append(shares(at_least, greater, part.total, ties[part.places], part.own))
        return self.joined(found)
