r"""Descent inside a bag of many rows by the votes of three groups, of which one row can change one.

The rows of a bag fall into three groups by the hashes of their inputs. Each group has a criterion of its own: the
likelihood of its rows by themselves, but for the one that stands out most at the present point, with a third of the
prior. A step is taken if it helps two of the three. That is a function of the bag, as a descent on all rows is, and
which group a row is in depends on the row alone.

The test row has a say in one group. Where the other two agree, all labels go the same way without a look at any of
them. Where they do not, the label decides by a quadratic inequality (:mod:`conformal_gp.predictors.bag`). And the
factorisation of a third of the rows takes a 27th of the time. So with many rows the descent comes near its end by
votes, and all rows together decide the last steps only.

Inputs of few distinct values may leave a group with few rows. If one has less than half of its share, or less than two
rows for each input, there are no votes, and the descent is that of bags with fewer rows.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cached_property, partial
from hashlib import blake2b
from threading import RLock
from typing import NamedTuple

import numpy as np

from conformal_gp.gp.descent import GAIN_OF_MUCH, Descent, Stage, descend, least_gain
from conformal_gp.gp.hyperparameters import Lattice, Point
from conformal_gp.predictors.bag import Bag
from conformal_gp.predictors.block import Block
from conformal_gp.predictors.segments import UNKNOWN, At, Segments, gathered
from conformal_gp.predictors.trace import Outcome, compare, follow
from conformal_gp.types import Array, Mask, Rows

N_GROUPS = 3

Divide = Callable[[Point, Point, Segments, float], Outcome]
"""Divides segments by whether a point is better than another, by some gain."""


class Voter(NamedTuple):
    """A group of rows, test rows among them."""

    block: Block
    """Training rows of the group, and test rows beside them."""
    ranked: Rows
    """Training rows that may be set aside."""

    def divide(self, new: Point, old: Point, segments: Segments, gain: float) -> Outcome:
        """Parts of segments on which a point is better than another for this group, and parts on which it is not."""
        here = self.block.set_aside(old, segments.forget(UNKNOWN), self.ranked)
        helped, failed = compare(self.block, old, new, here, gain)
        return [part.forget() for part in helped], [part.forget() for part in failed]


class Votes:
    """The groups of a bag, and the descent that they vote on.

    Parameters
    ----------
    lattice : Lattice
        The hyperparameters.
    bag : Bag
        Training rows.
    ranked : ndarray of int
        Those that may be set aside.
    """

    def __init__(self, lattice: Lattice, bag: Bag, ranked: Rows):
        self._lattice = lattice
        self._bag = bag
        self._ranked = ranked
        self._member = groups(bag.inputs.unscaled)
        n_rows = bag.y.size + 1
        self._gain = least_gain(n_rows) / N_GROUPS
        self._much = GAIN_OF_MUCH * n_rows / N_GROUPS
        self._known: dict[tuple[int, Point, Point, float], bool] = {}
        self._lock = RLock()

    def balanced(self, member: Rows) -> Mask:
        """Whether each group has enough rows, with a test row in each of some groups."""
        n_rows, n_inputs = self._bag.inputs.unscaled.shape
        least = max((n_rows + 1) / (2 * N_GROUPS), 2 * (n_inputs + 2))  # a constant and one in the test row's place
        sizes = np.bincount(self._member, minlength=N_GROUPS) + np.eye(N_GROUPS, dtype=np.int64)
        return (sizes.min(axis=1) >= least)[member]

    def trace(self, X: Array, member: Rows, stages: Sequence[Stage], segments: Segments) -> tuple[At, At]:
        """Where descents end that start at the start of the lattice.

        Parameters
        ----------
        X : ndarray of shape (m, d)
            Test rows, unscaled.
        member : ndarray of shape (m,)
            Their groups.
        stages : sequence of Stage
            Sizes of steps, from coarse to fine.
        segments : Segments
            Labels of theirs.

        Returns
        -------
        strong, weak : dict of Point to Segments
            The same labels, by the points at which they end. Those are strong whose descent has come down by much, so
            that finer steps pay (:mod:`conformal_gp.gp.descent`).
        """
        strong: dict[Point, list[Segments]] = {}
        weak: dict[Point, list[Segments]] = {}
        for group in np.unique(member[segments.row]).tolist():
            bag, ranked = self._groups[group]
            divide = partial(self._divide, group, Voter(Block(bag, bag.inputs.new(X)), ranked))
            at = self._follow(divide, stages, segments.take(member[segments.row] == group))
            for point, parts in at.items():
                start_is_near, start_is_far = divide(self._lattice.start, point, parts, -self._much)
                strong.setdefault(point, []).extend(start_is_far)
                weak.setdefault(point, []).extend(start_is_near)
        return gathered(strong), gathered(weak)

    def _follow(self, divide: Divide, stages: Sequence[Stage], segments: Segments) -> At:
        """Where segments of test rows of one group end."""
        at = {self._lattice.start: segments}
        for stage in stages:
            at = follow(
                Descent(self._lattice, stage),
                at,
                lambda state, trial, parts: divide(trial, state.point, parts, self._gain),
            )
        return at

    def training_end(self, stages: Sequence[Stage]) -> tuple[Point, bool]:
        """Where the training rows by themselves end, and whether the descent has come down by much."""

        def helps(new: Point, old: Point, gain: float = self._gain) -> bool:
            return sum(self._vote(group, new, old, gain) for group in range(N_GROUPS)) > 1

        point = descend(self._lattice, stages, self._lattice.start, helps)
        return point, not helps(self._lattice.start, point, -self._much)

    def _some(self, rows: Rows) -> tuple[Bag, Rows]:
        """Some of the training rows by themselves, and those of them that may be set aside."""
        bag = Bag(self._lattice, self._bag.inputs.take(rows), self._bag.y[rows], prior_share=1.0 / N_GROUPS)
        return bag, np.flatnonzero(np.isin(rows, self._ranked))

    @cached_property
    def _groups(self) -> list[tuple[Bag, Rows]]:
        """Training rows of each group; what is known of them serves all test rows."""
        return [self._some(np.flatnonzero(self._member == group)) for group in range(N_GROUPS)]

    @cached_property
    def _without_test_row(self) -> list[tuple[Voter, Segments]]:
        """Each group by itself, one of its rows in the test row's place: all rows of a bag are treated alike."""
        found = []
        for group in range(N_GROUPS):
            *others, last = np.flatnonzero(self._member == group)
            bag, ranked = self._some(np.array(others))
            block = Block(bag, bag.inputs.new(self._bag.inputs.unscaled[[last]]))
            found.append((Voter(block, ranked), Segments.labels(self._bag.y[[last]])))
        return found

    def _vote(self, group: int, new: Point, old: Point, gain: float) -> bool:
        """Whether a point is better than another for a group without a test row."""
        key = group, new, old, gain
        with self._lock:
            if key not in self._known:
                voter, label = self._without_test_row[group]
                self._known[key] = bool(voter.divide(new, old, label, gain)[0])
            return self._known[key]

    def _divide(self, group: int, voter: Voter, new: Point, old: Point, segments: Segments, gain: float) -> Outcome:
        """Parts of segments of test rows of a group on which a point is better for two groups, and others."""
        votes = [self._vote(other, new, old, gain) for other in range(N_GROUPS) if other != group]
        if all(votes):
            return [segments], []
        return voter.divide(new, old, segments, gain) if any(votes) else ([], [segments])


def groups(X: Array) -> Rows:
    """Group of each row, by its inputs alone."""
    return np.array([int.from_bytes(input_hash(x)) % N_GROUPS for x in X], dtype=np.int64)


def input_hash(x: Array) -> bytes:
    """A number that depends on the inputs of a row alone."""
    return blake2b((x + 0.0).tobytes(), digest_size=8).digest()  # + 0.0: zero has no sign
