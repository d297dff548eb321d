r"""Descent on a lattice of hyperparameters: which point to try next, and where a success or a failure leads.

In each stage the directions are tried one after the other: a step forward, again as long as it helps, or else
backward, again as long as it helps. A stage ends after some rounds, or when every direction has failed since the last
success. A step *helps* if it lowers the criterion, minus twice the log likelihood, by more than :data:`LEAST_GAIN`.

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
from typing import NamedTuple

from conformal_gp.gp.lattice import Lattice, Point

# By how much, in minus twice the log likelihood, a step must help: much more than rounding, less than matters.
LEAST_GAIN = 1.0
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
FINE = (Stage(2, 1), Stage(1, 2, joint=True))


class State(NamedTuple):
    """Where a descent stands, and what it tries next."""

    point: Point
    direction: int
    """Number of the direction to try next."""
    sign: int
    """Whether forward (1) or backward (-1)."""
    moved: bool
    """Whether this direction has helped already."""
    left: int
    """Directions left to fail before the stage is over; none once it is."""
    rounds: int
    """Rounds left."""

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
        self._steps = [tuple(stage.step * x for x in direction) for direction in lattice.directions(stage.joint)]

    def start(self, point: Point) -> State:
        """State in which the stage starts from a point."""
        return State(point, 0, 1, False, len(self._steps), self._rounds)

    def trial(self, state: State) -> Point:
        """The point to try next; it may be outside the lattice."""
        return tuple(x + state.sign * dx for x, dx in zip(state.point, self._steps[state.direction], strict=True))

    def next(self, state: State, helped: bool) -> State:
        """Where the outcome of a trial leads."""
        if helped:
            return State(self.trial(state), state.direction, state.sign, True, len(self._steps), state.rounds)
        if not state.moved and state.sign == 1:
            return state._replace(sign=-1)
        direction = (state.direction + 1) % len(self._steps)
        rounds = state.rounds - (direction == 0)
        return State(state.point, direction, 1, False, state.left - 1 if rounds else 0, rounds)

    def skip(self, state: State) -> State:
        """The same state or a later one, after trials outside the lattice, which fail."""
        while state.left and not self._lattice.inside(self.trial(state)):
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
        while state.left:
            state = descent.skip(descent.next(state, helps(descent.trial(state), state.point, LEAST_GAIN)))
        point = state.point
    return point
