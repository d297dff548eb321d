r"""Descent on a lattice of hyperparameters: which point to try next, and where a success or a failure leads.

In each stage the directions are tried one after the other, in a fixed order, again and again: a step forward, again as
long as it helps, or else backward, again as long as it helps. The stage ends when no direction has helped since one
last did. A step *helps* if it lowers the criterion, minus twice the log likelihood, by more than
:data:`LEAST_GAIN_A_ROW` a row. In bags of up to :data:`SCREENED_ROWS` rows a step is
tried only if it is *promising*: if the slope of the criterion promises :data:`PROMISED` times as much. Near the end of
a descent most steps are not, and slopes cost less than trials. Along a parabola a step to the minimum gains half of
what its slope promises, so only steps that would gain next to nothing are missed.

Steps go from coarse to fine. First factors of 4 and 2 for each length scale; then :math:`\sqrt 2` for the directions
that concern all of them. If coarse steps have brought the criterion down by more than :data:`GAIN_OF_MUCH` a row, as
they do for functions with little noise, the rows have much to say. Then length scales go on without the prior that
keeps them alike (:meth:`~conformal_gp.gp.hyperparameters.Lattice.without_prior`; not in bags whose groups vote), and
finer steps for each of them follow, too; otherwise the rows could hardly tell such points apart.

The rule is an automaton whose only input is whether each trial helped. So it is a function of the rows that make up the
criterion, the same whatever their order, and its course can be followed for many labels at once
(:mod:`conformal_gp.predictors.trace`). Because the order is fixed its state is little more than the point, and courses
that part meet again.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from operator import add
from typing import NamedTuple

from conformal_gp._compiled import compiled
from conformal_gp.gp.hyperparameters import Lattice, Point
from conformal_gp.types import Rows

# By how much for each row, in minus twice the log likelihood, a step must help: much more than rounding, less than
# matters for the width of intervals.
LEAST_GAIN_A_ROW = 0.005
# Without noise the first stage gains 1 to 7 a row (0.5 if the function is too rough for the rows), with noise of a
# fifth of the signal up to 0.6.
GAIN_OF_MUCH = 0.8
# With more rows in a bag slopes cost as much as the trials that they save.
SCREENED_ROWS = 256
PROMISED = 2.0
# Of settings in a list the likeliest is chosen; of those that are as likely but for rounding, the first.
LEAST_DIFFERENCE = 1e-6


class Stage(NamedTuple):
    """A size of step, in units of the lattice, and how long it is tried."""

    step: int
    rounds: int
    """Most rounds, so that the descent ends in any case; usually nothing moves long before."""
    joint: bool = False
    """Whether only directions that concern several hyperparameters, or the noise, are tried."""


# With many rows the coarse stage looks at some of them (conformal_gp.predictors.selectors), the others at all.
COARSE = (Stage(8, 8),)
MIDDLE = (Stage(4, 8), Stage(2, 8, joint=True))
FINE = (Stage(2, 8),)
# With very many, coarse and middle stages are decided by votes (conformal_gp.predictors.votes), and all rows go on from
# there for a round: with steps of a factor 2, and where rows have much to say of sqrt 2 after that.
LAST = (Stage(4, 1),)
LAST_FINE = (Stage(4, 1), Stage(2, 1))


class State(NamedTuple):
    """Where a descent stands, and what it tries next."""

    point: Point
    direction: int
    """Number of the direction to try next."""
    sign: int
    """Whether forward (1) or backward (-1)."""
    moved: bool
    """Whether this direction has helped already."""
    still: int
    """Directions, the last one and those before it, since one has helped; that one counts."""
    rounds: int
    """Rounds left, this one included; none once the stage is over."""


@compiled()
def after(
    direction: int, sign: int, moved: bool, still: int, rounds: int, n_directions: int, helped: bool
) -> tuple[int, int, bool, int, int]:  # pragma: no cover
    """The automaton: from the fields of a state after its point to those of the next, by the outcome of its trial."""
    if helped:
        return direction, sign, True, 0, rounds
    if not moved and sign == 1:
        return direction, -1, False, still, rounds
    left = rounds - 1 if direction + 1 == n_directions else rounds
    if still + 1 == n_directions or left == 0:
        return 0, 1, False, 0, 0
    return (direction + 1) % n_directions, 1, False, still + 1, left


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
        self._steps = {
            sign: [tuple(sign * stage.step * int(x) for x in direction) for direction in directions] for sign in (1, -1)
        }
        self._n_directions = len(directions)

    def start(self, point: Point) -> State:
        """State in which the stage starts from a point."""
        return State(point, 0, 1, False, 0, self._rounds)

    def trial(self, state: State) -> Point:
        """The point to try next; it may be outside the lattice."""
        return tuple(map(add, state.point, self.step(state)))

    def step(self, state: State) -> Point:
        """The step from the present point to the trial."""
        return self._steps[state.sign][state.direction]

    def next(self, state: State, helped: bool) -> State:
        """Where the outcome of a trial leads."""
        return State(self.trial(state) if helped else state.point, *after(*state[1:], self._n_directions, helped))

    def skip(self, state: State) -> State:
        """The same state or a later one, after trials outside the lattice, which fail."""
        while state.rounds and not self._lattice.inside(self.trial(state)):
            state = self.next(state, False)
        return state


class Rule(NamedTuple):
    """The stages of the descent for one bag, as compiled functions read them (:mod:`conformal_gp.gp.processes`)."""

    steps: Rows
    """(stages, directions, c): steps forward, in units of the lattice."""
    directions: Rows
    """(stages,): number of directions, of which the last may be missing."""
    rounds: Rows
    """(stages,): most rounds."""
    start: Rows
    """(c,): where it comes down from."""
    gain: float
    """By how much a step must help."""
    much: float
    """By how much the descent must have come down."""
    degrees: int
    """Degrees of freedom of the training rows."""
    rounding: float
    """Square of what is rounding in a label, where the mean function explains all of them."""


def least_gain(n_rows: int) -> float:
    """By how much a step must help with so many rows."""
    return LEAST_GAIN_A_ROW * n_rows


def descend(lattice: Lattice, stages: Sequence[Stage], start: Point, helps: Callable[[Point, Point], bool]) -> Point:
    """Where the descent of one criterion ends; ``helps(new, old)`` says whether it is lower at a point."""
    point = start
    for stage in stages:
        descent = Descent(lattice, stage)
        state = descent.skip(descent.start(point))
        while state.rounds:
            state = descent.skip(descent.next(state, helps(descent.trial(state), state.point)))
        point = state.point
    return point
