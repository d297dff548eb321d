r"""Descent on a lattice of hyperparameters: which point to try next, and where a success or a failure leads.

In each stage the directions are tried one after the other: a step forward, again as long as it helps, or else
backward, again as long as it helps. The next round tries those that have helped in this one, and those that concern
several hyperparameters, or the noise, again. A stage ends after some rounds, or after one in which nothing has helped.
A step *helps* if it lowers the criterion, minus twice the log likelihood, by more than the gain of its direction.

Steps go from coarse to fine. First factors of 4 and 2 for each length scale; then :math:`\sqrt 2` for the directions
that concern all of them. If the criterion has come down from its start by more than :data:`GAIN_FOR_FINE_STEPS` a row,
as it does for functions with little noise, there is something to be gained from finer steps for each length scale
too; otherwise the rows could hardly tell such points apart.

The rule is an automaton whose only input is whether each trial helped. So it is a function of the rows that make up the
criterion, the same whatever their order, and its course can be followed for many labels at once
(:mod:`conformal_gp.predictors.trace`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from operator import add
from typing import NamedTuple

from conformal_gp.gp.hyperparameters import Lattice, Point

# By how much, in minus twice the log likelihood, a step must help: much more than rounding, less than matters. Less for
# a step of several hyperparameters, or of the noise: there are few such directions, and they matter most.
LEAST_GAIN = 1.0
LEAST_JOINT_GAIN = 0.3
GAIN_FOR_FINE_STEPS = 1.0
# Of settings in a list the likeliest is chosen; of those that are as likely but for rounding, the first.
LEAST_DIFFERENCE = 1e-6


class Stage(NamedTuple):
    """A size of step, in units of the lattice, and how long it is tried."""

    step: int
    rounds: int
    joint: bool = False
    """Whether only directions that concern several hyperparameters, or the noise, are tried."""


COARSE = (Stage(8, 3), Stage(4, 2))
JOINT = (Stage(2, 2, joint=True),)
FINE = (Stage(2, 2), Stage(1, 3, joint=True))


class State(NamedTuple):
    """Where a descent stands, and what it tries next."""

    point: Point
    direction: int
    """Number of the direction to try next."""
    sign: int
    """Whether forward (1) or backward (-1)."""
    moved: bool
    """Whether this direction has helped already."""
    left: tuple[int, ...]
    """Directions to try after this one, in this round."""
    helped: frozenset[int]
    """Directions that have helped in this round."""
    rounds: int
    """Rounds left, this one included; none once the stage is over."""

    @property
    def fresh(self) -> bool:
        """Whether a direction is about to be tried for the first time from this point."""
        return self.sign == 1 and not self.moved


class Descent:
    """The rule for one lattice and one stage.

    Parameters
    ----------
    lattice : Lattice
        The hyperparameters.
    stage : Stage
        The size of step.
    """

    def __init__(self, lattice: Lattice, stage: Stage):
        self._lattice = lattice
        self._rounds = stage.rounds
        directions = lattice.directions(stage.joint)
        self._joint = frozenset(n for n, direction in enumerate(directions) if lattice.is_joint(direction))
        self._steps = {
            sign: [tuple(sign * stage.step * int(x) for x in direction) for direction in directions] for sign in (1, -1)
        }

    def start(self, point: Point) -> State:
        """State in which the stage starts from a point."""
        return State(point, 0, 1, False, tuple(range(1, len(self._steps[1]))), frozenset(), self._rounds)

    def trial(self, state: State) -> Point:
        """The point to try next; it may be outside the lattice."""
        return tuple(map(add, state.point, self._steps[state.sign][state.direction]))

    def gain(self, state: State) -> float:
        """By how much the next step must help."""
        return LEAST_JOINT_GAIN if state.direction in self._joint else LEAST_GAIN

    def next(self, state: State, helped: bool) -> State:
        """Where the outcome of a trial leads."""
        if helped:
            return state._replace(point=self.trial(state), moved=True, helped=state.helped | {state.direction})
        if not state.moved and state.sign == 1:
            return state._replace(sign=-1)
        if state.left:
            return state._replace(direction=state.left[0], sign=1, moved=False, left=state.left[1:])
        if state.rounds == 1 or not state.helped:
            return State(state.point, 0, 1, False, (), frozenset(), 0)
        first, *others = sorted(state.helped | self._joint)
        return State(state.point, first, 1, False, tuple(others), frozenset(), state.rounds - 1)

    def skip(self, state: State) -> State:
        """The same state or a later one, after trials outside the lattice, which fail."""
        while state.rounds and not self._lattice.inside(self.trial(state)):
            state = self.next(state, False)
        return state


def descend(
    lattice: Lattice, stages: Sequence[Stage], start: Point, helps: Callable[[Point, Point, float], bool]
) -> Point:
    """Where the descent of one criterion ends; ``helps(new, old, gain)`` says whether it is lower at a point."""
    point = start
    for stage in stages:
        descent = Descent(lattice, stage)
        state = descent.skip(descent.start(point))
        while state.rounds:
            state = descent.skip(descent.next(state, helps(descent.trial(state), state.point, descent.gain(state))))
        point = state.point
    return point
