"""What selects hyperparameters inside the bag: a list of candidates, or a descent for each kernel.

**Many rows.** With more than :data:`COARSE_ROWS` rows in a bag, coarse steps look at so many of them, those whose
inputs have the least hashes. Which these are does not depend on the order of rows; and coarse steps cost little, most
test rows having no part in them. From :data:`VOTING_ROWS` rows on, groups of rows vote on all steps but the last
(:mod:`conformal_gp.predictors.votes`).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from typing import ClassVar, NamedTuple, Protocol

import numpy as np
from sklearn.gaussian_process.kernels import Kernel

from conformal_gp.gp.descent import (
    COARSE,
    FINE,
    GAIN_OF_MUCH,
    LAST,
    LAST_FINE,
    LEAST_DIFFERENCE,
    MIDDLE,
    SCREENED_ROWS,
    Stage,
)
from conformal_gp.gp.hyperparameters import Lattice, Point
from conformal_gp.gp.inputs import Inputs, NewInputs
from conformal_gp.gp.posterior import Posterior
from conformal_gp.predictors.bag import Bag
from conformal_gp.predictors.block import Block
from conformal_gp.predictors.segments import At, Segments, together
from conformal_gp.predictors.small_bags import SmallBag
from conformal_gp.predictors.trace import Blocks, choose
from conformal_gp.predictors.votes import N_GROUPS, Votes, groups, input_hash
from conformal_gp.types import Array, Rows

# Rows that coarse steps look at.
COARSE_ROWS = 128
# Rows in the bag from which on groups of them vote.
VOTING_ROWS = 257


@dataclass(frozen=True)
class Candidates:
    """A list of hyperparameters to choose from: pairs of kernel and noise variance."""

    pairs: Sequence[tuple[Kernel, float]]
    varying_noise: ClassVar[bool] = False

    def kernel(self, point: Point) -> Kernel:
        """Kernel of a candidate."""
        return self.pairs[point[0]][0]

    def noise_variance(self, point: Point) -> float:
        """Noise variance of a candidate."""
        return self.pairs[point[0]][1]

    def noise_coefficients(self, point: Point) -> Array:
        """Noise is constant."""
        return np.empty(0)

    def penalty(self, point: Point) -> float:
        """None has any."""
        return 0.0

    def is_stationary(self) -> bool:
        """Whether all kernels are."""
        return all(kernel.is_stationary() for kernel, _ in self.pairs)

    def selectors(
        self, inputs: Inputs, y: Array, ranked: Rows, coarse: CoarseRows, length: float, reach: float
    ) -> list[Selector]:
        """What selects among them."""
        return [ListSelector(Bag(self, inputs, y), len(self.pairs))]


@dataclass(frozen=True)
class Descents:
    """Kernels whose hyperparameters are found by a descent each; the likeliest is chosen."""

    kernels: Sequence[Kernel]
    learns_noise: bool
    deviation: float | None
    varying_noise: bool = False

    def is_stationary(self) -> bool:
        """Whether all kernels are."""
        return all(kernel.is_stationary() for kernel in self.kernels)

    def selectors(
        self, inputs: Inputs, y: Array, ranked: Rows, coarse: CoarseRows, length: float, reach: float
    ) -> list[Selector]:
        """What selects hyperparameters for each kernel."""
        n_inputs = inputs.pairs.X.shape[1]
        start = length * float(np.sqrt(n_inputs))
        n_features = inputs.noise.features.shape[1]
        lattices = [
            Lattice(kernel, start, n_inputs, y.size + 1, self.learns_noise, self.deviation, reach, n_features)
            for kernel in self.kernels
        ]
        return [DescentSelector(lattice, Bag(lattice, inputs, y), ranked, coarse) for lattice in lattices]


class CoarseRows(NamedTuple):
    """Which rows coarse steps look at."""

    without: Rows | None
    """Training rows, where the test row is not among them; None is all rows of the bag."""
    beside: Rows
    """Training rows, where the test row is."""
    last: bytes
    """The largest hash in ``without``."""

    @classmethod
    def of(cls, X: Array) -> CoarseRows:
        """Those of training inputs."""
        every = np.arange(X.shape[0])
        if X.shape[0] < COARSE_ROWS:
            return cls(None, every, b"")
        hashes = [input_hash(x) for x in X]
        ordered = sorted(hashes)
        last, next_to_last = ordered[COARSE_ROWS - 1], ordered[COARSE_ROWS - 2]
        without, beside = ([i for i, h in enumerate(hashes) if h <= limit] for limit in (last, next_to_last))
        return cls(np.array(without), np.array(beside), last)

    def groups(self, X: Array) -> Iterator[tuple[Rows, Rows, bool]]:
        """Test rows, the training rows that coarse steps look at with them, and whether they are among these."""
        if self.without is None:
            yield np.arange(X.shape[0]), self.beside, True
            return
        hashes = [input_hash(x) for x in X]
        place = np.array([(h >= self.last) + (h > self.last) for h in hashes])
        yield np.flatnonzero(place == 0), self.beside, True
        yield np.flatnonzero(place == 1), self.without, True  # inputs that are equal to the last's
        yield np.flatnonzero(place == 2), self.without, False


class Selector:
    """Selects hyperparameters of one kind, inside a bag."""

    bag: Bag

    def select(self, block: Block, X: Array, start: Segments) -> At:
        """Which points are selected on which parts of segments; ``X`` are the block's unscaled inputs."""
        raise NotImplementedError

    def training_point(self) -> Point:
        """What the training rows select by themselves."""
        raise NotImplementedError


class ListSelector(Selector):
    """Selects from a list."""

    def __init__(self, bag: Bag, n: int):
        self.bag = bag
        self._points = [(i,) for i in range(n)]

    def select(self, block: Block, X: Array, start: Segments) -> At:
        """See Selector."""
        return choose(block, self._points, start)

    def training_point(self) -> Point:
        """See Selector."""
        best = self._points[0]
        for point in self._points[1:]:
            if self.bag.helps(point, best, LEAST_DIFFERENCE):
                best = point
        return best


class Follower(Protocol):
    """Follows descents in training rows with a test row each."""

    def trace(self, new: NewInputs, stages: Sequence[Stage], at: At) -> At:
        """Where descents end that start at some points."""

    def much_to_say(self, new: NewInputs, at: At) -> tuple[At, At]:
        """Labels for which F at some points is lower than at the start by much, and others."""

    def training_end(self, stages: Sequence[Stage], start: Point) -> Point:
        """Where the training rows by themselves end after some stages."""


def _follower(lattice: Lattice, bag: Bag, ranked: Rows) -> Follower:
    """Compiled, for bags of few rows and kernels of which slopes are known; else block by block."""
    if bag.y.size < SCREENED_ROWS and lattice.shape is not None:
        return SmallBag(lattice, bag, ranked)
    return Blocks(lattice, bag, ranked)


class DescentSelector(Selector):
    """Selects by a descent: first steps with some rows or by votes, if there are many, then finer ones with all."""

    def __init__(self, lattice: Lattice, bag: Bag, ranked: Rows, coarse: CoarseRows):
        self.bag = bag
        self._lattice = lattice
        self._ranked = ranked
        self._coarse = coarse
        self._votes = Votes(lattice, bag, ranked) if bag.y.size + 1 >= VOTING_ROWS else None
        self._followers = {bag.y.size: _follower(lattice, bag, ranked)}
        flat = lattice.without_prior()
        same = flat is lattice  # then nothing is computed twice
        self._without_prior = self._followers[bag.y.size] if same else _follower(flat, bag.choosing_from(flat), ranked)
        self._coarse_ends: dict[int, Point] = {}

    def _follower_of(self, rows: Rows) -> Follower:
        """What follows descents in some of the training rows, of which there is one set of each size."""
        if rows.size not in self._followers:
            bag = Bag(self._lattice, self.bag.inputs.take(rows), self.bag.y[rows])
            ranked = np.flatnonzero(np.isin(rows, self._ranked))
            self._followers[rows.size] = _follower(self._lattice, bag, ranked)
        return self._followers[rows.size]

    def _coarse_end(self, rows: Rows) -> Point:
        """Where coarse steps with these training rows lead, no test row being among them.

        One of them takes the test row's place: all rows of a bag are treated alike.
        """
        if rows.size not in self._coarse_ends:
            others, last = self.bag.inputs.take(rows[:-1]), rows[-1:]
            bag = Bag(self._lattice, others, self.bag.y[rows[:-1]])
            follower = _follower(self._lattice, bag, np.flatnonzero(np.isin(rows[:-1], self._ranked)))
            at = {self._lattice.start: Segments.labels(self.bag.y[last])}
            (self._coarse_ends[rows.size],) = follower.trace(others.new(self.bag.inputs.unscaled[last]), COARSE, at)
        return self._coarse_ends[rows.size]

    def select(self, block: Block, X: Array, start: Segments) -> At:
        """See Selector."""
        if self._votes is None:
            return self._select(block, X, start)
        member = groups(X)
        voting = self._votes.balanced(member)[start.row]
        strong, weak = self._votes.trace(X, member, COARSE + MIDDLE, start.take(voting))
        follower = self._followers[self.bag.y.size]
        ends = [follower.trace(block.new, LAST_FINE, strong), follower.trace(block.new, LAST, weak)]
        return together(*ends, self._select(block, X, start.take(~voting)))

    def _select(self, block: Block, X: Array, start: Segments) -> At:
        """Without votes."""
        found: list[At] = []
        for members, rows, among in self._coarse.groups(X):
            segments = start.take(np.isin(start.row, members))
            if segments.size == 0:
                continue
            if among:
                new = block.new if rows.size == self.bag.y.size else self.bag.inputs.take(rows).new(X)
                found.append(self._follower_of(rows).trace(new, COARSE, {self._lattice.start: segments}))
            else:
                found.append({self._coarse_end(rows): segments})
        follower = self._followers[self.bag.y.size]
        strong, weak = follower.much_to_say(block.new, together(*found))
        return together(
            self._without_prior.trace(block.new, MIDDLE + FINE, strong), follower.trace(block.new, MIDDLE, weak)
        )

    def training_point(self) -> Point:
        """See Selector."""
        follower = self._followers[self.bag.y.size]
        if self._votes is not None and self._votes.balanced(np.arange(N_GROUPS)).all():
            point, strong = self._votes.training_end(COARSE + MIDDLE)
            return follower.training_end(LAST_FINE if strong else LAST, point)
        if self._coarse.without is None:
            point = follower.training_end(COARSE, self._lattice.start)
        else:
            point = self._coarse_end(self._coarse.without)
        if self.bag.helps(point, self._lattice.start, GAIN_OF_MUCH * (self.bag.y.size + 1)):
            return self._without_prior.training_end(MIDDLE + FINE, point)
        return follower.training_end(MIDDLE, point)


class Scaled:
    """The training rows under one scaling, and what selects hyperparameters for them."""

    def __init__(self, inputs: Inputs, selectors: list[Selector]):
        self.inputs = inputs
        self.selectors = selectors
        self._reaches: dict[tuple[int, Point], Array] = {}
        self._last: tuple[bytes, dict[tuple[int, Point], Segments]] = b"", {}

    def training_choice(self) -> tuple[int, Point]:
        """Number of the selector, and point, that the training rows select by themselves."""
        best = 0, self.selectors[0].training_point()
        for n, selector in enumerate(self.selectors[1:], 1):
            point = selector.training_point()
            if selector.bag.helps(point, best[1], LEAST_DIFFERENCE, other=self.selectors[best[0]].bag):
                best = n, point
        return best

    def blocks(self, X: Array) -> list[Block]:
        """A block of test rows beside the training rows, for each selector."""
        return [Block(selector.bag, self.inputs.new(X)) for selector in self.selectors]

    def select(self, X: Array, start: Segments) -> tuple[list[Block], dict[tuple[int, Point], Segments]]:
        """Which selector and point are selected on which parts of segments, for a block of test rows."""
        blocks = self.blocks(X)
        ends = [selector.select(block, X, start) for selector, block in zip(self.selectors, blocks, strict=True)]
        chosen = {(0, point): parts for point, parts in ends[0].items()}
        for n, block in enumerate(blocks[1:], 1):
            found: dict[tuple[int, Point], list[Segments]] = {}
            for (m, old), parts in chosen.items():
                for new, others in ends[n].items():
                    both = parts.common(others)
                    if both.size == 0:
                        continue
                    better, rest = block.where_it_helps(new, old, both, LEAST_DIFFERENCE, other=blocks[m])
                    found.setdefault((n, new), []).append(better)
                    found.setdefault((m, old), []).append(rest)
            gathered = {key: Segments.concatenate(parts).joined() for key, parts in found.items()}
            chosen = {key: parts for key, parts in gathered.items() if parts.size}
        return blocks, chosen

    def select_lines(self, X: Array) -> tuple[list[Block], dict[tuple[int, Point], Segments]]:
        """What :meth:`select` finds for all labels, kept for the last rows: there may be more questions about them."""
        name = blake2b(X.tobytes()).digest()
        known, chosen = self._last
        if known != name:
            blocks, chosen = self.select(X, Segments.whole_lines(X.shape[0]))
            self._last = name, chosen
            return blocks, chosen
        return self.blocks(X), chosen

    def posterior(self, key: tuple[int, Point]) -> Posterior:
        """The process with what was selected."""
        return self.selectors[key[0]].bag.posterior(key[1])

    def noise_coefficients(self, key: tuple[int, Point]) -> Array:
        """Coefficients of varying noise with what was selected; none where they are 0."""
        coefficients = self.selectors[key[0]].bag.choices.noise_coefficients(key[1])
        return coefficients if coefficients.any() else np.empty(0)

    def seen(self, key: tuple[int, Point], X: Array) -> NewInputs:
        """Test rows as the process with what was selected sees them."""
        return self.selectors[key[0]].bag.seen(key[1], self.inputs.new(X))

    def reach(self, key: tuple[int, Point], ranked: Rows) -> Array:
        """β of :mod:`conformal_gp.predictors.augmented`, for every rank, k = 1 first."""
        if key not in self._reaches:
            posterior = self.posterior(key)
            P = posterior.diagonal[ranked]
            leverage = np.sqrt(np.maximum(1.0 / posterior.noise[ranked] - P, 0.0))
            with np.errstate(divide="ignore", invalid="ignore"):
                reach = np.abs(posterior.residuals[ranked]) / P * (np.sqrt(P) + 2.0 * leverage)
            reach[P == 0.0] = np.inf  # a row that alone determines a coefficient may cover the whole line
            self._reaches[key] = (1.0 + 1e-6) * np.sort(reach)[::-1]  # a margin for rounding
        return self._reaches[key]
