r"""Descent inside the bag, followed for all labels of many test rows at once.

The hyperparameters that a candidate label y of a test row selects are where the descent of
:mod:`conformal_gp.gp.descent` ends on the bag of training rows and test row. Each of its trials compares two parabolas
in y (:mod:`conformal_gp.predictors.bag`). So the line of labels falls into segments on which the descent goes the same
way. A trial divides a segment at the roots of a quadratic; parts that come to the same state go on together. The result
is exactly what a descent anew for each label would give, with no grid over labels.

**The row that stands out is set aside.** A label far from all others can make a model likely in which it is not far at
all. So before a direction is tried, the row of the bag with the largest studentised residual at the present point is
left out of the likelihood. It is a function of the bag like all the rest, so coverage stays exact. Where that row is
the test row, what follows does not depend on its label: a far-off label selects what the training rows select by
themselves. Only a bounded part of the line is left to follow, and it shrinks as the model gets better. (Rows that tie
are not set aside: none of them could be singled out.)
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Sequence

from conformal_gp.gp.descent import (
    GAIN_OF_MUCH,
    LEAST_DIFFERENCE,
    Descent,
    Stage,
    State,
    descend,
    least_gain,
)
from conformal_gp.gp.hyperparameters import Lattice, Point
from conformal_gp.gp.inputs import NewInputs
from conformal_gp.predictors.bag import Bag
from conformal_gp.predictors.block import Block
from conformal_gp.predictors.segments import TEST_ROW, UNKNOWN, At, Segments, gathered
from conformal_gp.types import Rows

Outcome = tuple[list[Segments], list[Segments]]
"""Parts of segments on which a trial helps, and parts on which it does not."""


class Blocks:
    """Follows the descents of all test rows of a block at once.

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

    def trace(self, new: NewInputs, stages: Sequence[Stage], at: At) -> At:
        """Where descents end that start at some points.

        Parameters
        ----------
        new : NewInputs
            Test rows.
        stages : sequence of Stage
            Sizes of steps, from coarse to fine.
        at : dict of Point to Segments
            Where which labels start.

        Returns
        -------
        ends : dict of Point to Segments
            The same labels, by the points at which they end.
        """
        block, gain = Block(self._bag, new), least_gain(self._bag.y.size + 1)

        def decide(state: State, trial: Point, segments: Segments) -> Outcome:
            here = block.set_aside(state.point, segments, self._ranked)
            helped, failed = compare(block, state.point, trial, here, gain)
            # what was set aside at another point than this one is no longer
            return helped, [part.forget(UNKNOWN) for part in failed] if state.moved else failed

        for stage in stages:
            start = {point: segments.forget(UNKNOWN) for point, segments in at.items()}
            at = follow(Descent(self._lattice, stage), start, decide)
        return at

    def much_to_say(self, new: NewInputs, at: At) -> tuple[At, At]:
        """Labels for which F at some points is lower than at the start by much, and others."""
        block, gain = Block(self._bag, new), GAIN_OF_MUCH * (self._bag.y.size + 1)
        strong: dict[Point, list[Segments]] = {}
        weak: dict[Point, list[Segments]] = {}
        for point, segments in at.items():
            here = block.set_aside(point, segments.forget(UNKNOWN), self._ranked)
            better, others = compare(block, self._lattice.start, point, here, gain)
            strong.setdefault(point, []).extend(better)
            weak.setdefault(point, []).extend(others)
        return gathered(strong), gathered(weak)

    def training_end(self, stages: Sequence[Stage], start: Point) -> Point:
        """Where the training rows by themselves end after some stages."""
        gain = least_gain(self._bag.y.size + 1)
        return descend(self._lattice, stages, start, lambda new, old: self._bag.helps(new, old, gain))


def choose(block: Block, points: Sequence[Point], segments: Segments) -> At:
    """Which of some points is likeliest on which parts of segments; of equals the first."""
    at: At = {points[0]: segments}
    for new in points[1:]:
        found: dict[Point, list[Segments]] = {}
        for old, parts in at.items():
            better, others = block.where_it_helps(new, old, parts, LEAST_DIFFERENCE)
            found.setdefault(new, []).append(better)
            found.setdefault(old, []).append(others)
        at = gathered(found)
    return at


def follow(descent: Descent, at: At, decide: Callable[[State, Point, Segments], Outcome]) -> At:
    """Where segments end after one stage; ``decide`` says on which parts of some a state's trial helps."""
    ends: dict[Point, list[Segments]] = {}
    waiting: OrderedDict[State, list[Segments]] = OrderedDict()

    def arrive(state: State, parts: list[Segments]) -> None:
        if not parts:
            return
        state = descent.skip(state)
        if state.rounds:
            waiting.setdefault(state, []).extend(parts)
        else:
            ends.setdefault(state.point, []).extend(parts)

    for point, segments in at.items():
        arrive(descent.start(point), [segments])
    while waiting:
        state, parts = waiting.popitem(last=False)  # those who came first: others may still join the rest
        helped, failed = decide(state, descent.trial(state), Segments.concatenate(parts).joined())
        arrive(descent.next(state, True), helped)
        arrive(descent.next(state, False), failed)
    return gathered(ends)


def compare(block: Block, old: Point, new: Point, segments: Segments, gain: float) -> Outcome:
    """Parts on which a point is better than another, and parts on which it is not."""
    alone = segments.aside == TEST_ROW
    outcomes: Outcome = [], []
    if alone.any():  # the test row has no say
        outcomes[not block.bag.helps(new, old, gain)].append(segments.take(alone))
    if not alone.all():
        for outcome, parts in zip(outcomes, block.where_it_helps(new, old, segments.take(~alone), gain), strict=True):
            if parts.size:
                outcome.append(parts)
    return outcomes
