"""What selects hyperparameters inside the bag: a list of candidates, or a descent for each kernel.

**Many rows.** Coarse steps look at :data:`COARSE_ROWS` rows of the bag, those whose inputs have the least hashes. Which
these are does not depend on the order of rows; and coarse steps cost little, most test rows having no part in them.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from hashlib import blake2b
from typing import NamedTuple

import numpy as np
from sklearn.gaussian_process.kernels import Kernel

from conformal_gp.gp.descent import COARSE, LEAST_DIFFERENCE, descend
from conformal_gp.gp.hyperparameters import Lattice, Point
from conformal_gp.gp.inputs import Inputs
from conformal_gp.predictors.bag import Bag
from conformal_gp.predictors.block import Block
from conformal_gp.predictors.segments import Segments
from conformal_gp.predictors.trace import At, choose, refine, trace, training_end
from conformal_gp.types import Array, Rows

# Rows that coarse steps look at.
COARSE_ROWS = 128


@dataclass(frozen=True)
class Candidates:
    """A list of hyperparameters to choose from: pairs of kernel and noise variance."""

    pairs: Sequence[tuple[Kernel, float]]

    def kernel(self, point: Point) -> Kernel:
        """Kernel of a candidate."""
        return self.pairs[point[0]][0]

    def noise_variance(self, point: Point) -> float:
        """Noise variance of a candidate."""
        return self.pairs[point[0]][1]

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

    def is_stationary(self) -> bool:
        """Whether all kernels are."""
        return all(kernel.is_stationary() for kernel in self.kernels)

    def selectors(
        self, inputs: Inputs, y: Array, ranked: Rows, coarse: CoarseRows, length: float, reach: float
    ) -> list[Selector]:
        """What selects hyperparameters for each kernel."""
        n_inputs = inputs.pairs.X.shape[1]
        start = length * float(np.sqrt(n_inputs))
        lattices = [
            Lattice(kernel, start, n_inputs, y.size + 1, self.learns_noise, self.deviation, reach)
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
        hashes = [_hash(x) for x in X]
        ordered = sorted(hashes)
        last, next_to_last = ordered[COARSE_ROWS - 1], ordered[COARSE_ROWS - 2]
        without, beside = ([i for i, h in enumerate(hashes) if h <= limit] for limit in (last, next_to_last))
        return cls(np.array(without), np.array(beside), last)

    def groups(self, X: Array) -> Iterator[tuple[Rows, Rows, bool]]:
        """Test rows, the training rows that coarse steps look at with them, and whether they are among these."""
        if self.without is None:
            yield np.arange(X.shape[0]), self.beside, True
            return
        hashes = [_hash(x) for x in X]
        place = np.array([(h >= self.last) + (h > self.last) for h in hashes])
        yield np.flatnonzero(place == 0), self.beside, True
        yield np.flatnonzero(place == 1), self.without, True  # inputs that are equal to the last's
        yield np.flatnonzero(place == 2), self.without, False


def _hash(x: Array) -> bytes:
    """A number that depends on the inputs of a row alone."""
    return blake2b((x + 0.0).tobytes(), digest_size=8).digest()  # + 0.0: zero has no sign


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


class DescentSelector(Selector):
    """Selects by a descent: coarse steps with some rows, if there are many, then finer ones with all."""

    def __init__(self, lattice: Lattice, bag: Bag, ranked: Rows, coarse: CoarseRows):
        self.bag = bag
        self._lattice = lattice
        self._ranked = ranked
        self._coarse = coarse
        self._coarse_bags: dict[int, Bag] = {}
        self._coarse_ends: dict[int, Point] = {}

    def _coarse_bag(self, rows: Rows) -> Bag:
        if rows.size == self.bag.y.size:
            return self.bag
        if rows.size not in self._coarse_bags:
            self._coarse_bags[rows.size] = Bag(self._lattice, self.bag.inputs.take(rows), self.bag.y[rows])
        return self._coarse_bags[rows.size]

    def _coarse_end(self, rows: Rows) -> Point:
        """Where coarse steps with these training rows lead, no test row being among them.

        One of them takes the test row's place: all rows of a bag are treated alike.
        """
        if rows.size not in self._coarse_ends:
            others, last = rows[:-1], rows[-1:]
            bag = Bag(self._lattice, self.bag.inputs.take(others), self.bag.y[others])
            block = Block(bag, bag.inputs.new(self.bag.inputs.unscaled[last]))
            ranked = np.flatnonzero(np.isin(others, self._ranked))
            at = {self._lattice.start: Segments.labels(self.bag.y[last])}
            (self._coarse_ends[rows.size],) = trace(block, self._lattice, COARSE, at, ranked)
        return self._coarse_ends[rows.size]

    def select(self, block: Block, X: Array, start: Segments) -> At:
        """See Selector."""
        found: dict[Point, list[Segments]] = {}
        for members, rows, among in self._coarse.groups(X):
            segments = start.take(np.isin(start.row, members))
            if segments.size == 0:
                continue
            if not among:
                found.setdefault(self._coarse_end(rows), []).append(segments)
                continue
            for point, parts in self._coarse_trace(block, X, rows, segments).items():
                found.setdefault(point, []).append(parts)
        at = {point: Segments.concatenate(parts).forget() for point, parts in found.items()}
        return refine(block, self._lattice, at, self._ranked)

    def _coarse_trace(self, block: Block, X: Array, rows: Rows, segments: Segments) -> At:
        """Where coarse steps lead with test rows among those that they look at."""
        at = {self._lattice.start: segments}
        bag = self._coarse_bag(rows)
        if bag is self.bag:
            return trace(block, self._lattice, COARSE, at, self._ranked)
        ranked = np.flatnonzero(np.isin(rows, self._ranked))
        return trace(Block(bag, bag.inputs.new(X)), self._lattice, COARSE, at, ranked)

    def training_point(self) -> Point:
        """See Selector."""
        if self._coarse.without is None:
            point = descend(self._lattice, COARSE, self._lattice.start, partial(self.bag.step_helps, self._lattice))
        else:
            point = self._coarse_end(self._coarse.without)
        return training_end(self.bag, self._lattice, point)
