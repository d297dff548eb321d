r"""States of a descent inside a small bag, in which segments of labels wait for their turn; compiled.

A *state* is a row of whole numbers: the coordinates of a point, the five fields of
:class:`conformal_gp.gp.descent.State` that follow the point there, and the number of the stage. Where a stage has
ended, the next one starts.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from conformal_gp._compiled import compiled
from conformal_gp.gp.descent import after
from conformal_gp.gp.work import Work, hashed, put
from conformal_gp.predictors.segments import UNKNOWN
from conformal_gp.types import Array, Rows

# Columns of a state after the coordinates of its point.
DIRECTION, SIGN, MOVED, STILL, ROUNDS, STAGE = range(-6, 0)
N_FIELDS = 6
# Columns of what is said about a segment.
ROW, ASIDE, TAG, NEXT = range(4)
GONE = -1
# Columns of a state behind it: first and last of its segments.
FIRST, LAST = -2, -1


class Parts(NamedTuple):
    """Segments of labels, with room for more."""

    number: Rows
    """(1,): how many there are."""
    ends: Array
    """(n, 2)"""
    marks: Rows
    """(n, 4): test row; row that is set aside, see :class:`~conformal_gp.predictors.segments.Segments`; a tag; and
    number of the next one with the same tag, -1 for none."""


class Queue(NamedTuple):
    """Segments of labels, and the states in which they wait."""

    waiting: Parts
    """Tagged by their states."""
    states: Rows
    """(m, c + 8)"""
    table: Rows
    """(2^k,): numbers of states by their hashes; -1 where there is none."""
    number: Rows
    """(2,): number of states, and of those that were passed."""


@compiled()
def no_parts(room: int) -> Parts:  # pragma: no cover
    """No segments."""
    return Parts(np.zeros(1, dtype=np.int64), np.empty((room, 2)), np.empty((room, 4), dtype=np.int64))


@compiled()
def add(segments: Parts, row: int, low: float, high: float, aside: int, tag: int) -> Parts:  # pragma: no cover
    """One segment more."""
    n = segments.number[0]
    if n == segments.ends.shape[0]:
        more = no_parts(2 * n)
        more.number[0] = n
        for k in range(n):
            put(more.ends[k], segments.ends[k])
            put(more.marks[k], segments.marks[k])
        segments = more
    segments.ends[n, 0], segments.ends[n, 1] = low, high
    marks = segments.marks[n]
    marks[ROW], marks[ASIDE], marks[TAG], marks[NEXT] = row, aside, tag, -1
    segments.number[0] = n + 1
    return segments


@compiled()
def take(segments: Parts, first: int, tag: int) -> Parts:  # pragma: no cover
    """Segments with a tag, sorted, neighbours with the same row set aside made one; they are gone then.

    All of them from one on, if they are linked (-1 ends the list), or all there are if the first is given as -2.
    """
    found, n, linked = no_parts(8), 0, first >= -1
    k = first if linked else 0
    while (k >= 0) if linked else (k < segments.number[0]):
        marks = segments.marks[k]
        if marks[TAG] == tag:
            marks[TAG] = GONE
            found = add(found, marks[ROW], segments.ends[k, 0], segments.ends[k, 1], marks[ASIDE], tag)
        k = marks[NEXT] if linked else k + 1
    ends, marks = found.ends, found.marks
    for k in range(1, found.number[0]):  # by insertion: most are in order
        low, high, row, aside, i = ends[k, 0], ends[k, 1], marks[k, ROW], marks[k, ASIDE], k
        while i > 0 and (marks[i - 1, ROW], ends[i - 1, 0], ends[i - 1, 1]) > (row, low, high):
            ends[i, 0], ends[i, 1] = ends[i - 1, 0], ends[i - 1, 1]
            marks[i, ROW], marks[i, ASIDE] = marks[i - 1, ROW], marks[i - 1, ASIDE]
            i -= 1
        ends[i, 0], ends[i, 1], marks[i, ROW], marks[i, ASIDE] = low, high, row, aside
    for k in range(found.number[0]):
        row, aside = marks[k, ROW], marks[k, ASIDE]
        if n > 0 and row == marks[n - 1, ROW] and ends[k, 0] == ends[n - 1, 1] and aside == marks[n - 1, ASIDE]:
            ends[n - 1, 1] = ends[k, 1]
        else:
            ends[n, 0], ends[n, 1], marks[n, ROW], marks[n, ASIDE] = ends[k, 0], ends[k, 1], row, aside
            n += 1
    found.number[0] = n
    return found


@compiled()
def start(w: Work, point: Rows, stage: int) -> Rows:  # pragma: no cover
    """State in which a stage starts from a point; after the last stage, that in which all end."""
    c = point.size
    state = np.zeros(c + N_FIELDS, dtype=np.int64)
    put(state, point)
    state[STAGE] = stage
    if stage < w.rounds.size:
        state[SIGN], state[ROUNDS] = 1, w.rounds[stage]
    return state


@compiled()
def following(w: Work, state: Rows, helped: bool) -> Rows:  # pragma: no cover
    """Where the outcome of a trial leads: :meth:`conformal_gp.gp.descent.Descent.next`."""
    found, stage, direction, sign = state.copy(), state[STAGE], state[DIRECTION], state[SIGN]
    if helped:
        for j in range(w.steps.shape[2]):
            found[j] += sign * w.steps[stage, direction, j]
    fields = after(direction, sign, state[MOVED] != 0, state[STILL], state[ROUNDS], w.directions[stage], helped)
    found[DIRECTION], found[SIGN], found[MOVED], found[STILL], found[ROUNDS] = fields
    return found


@compiled()
def skip(w: Work, state: Rows) -> Rows:  # pragma: no cover
    """The same state or a later one, after trials outside the lattice, which fail."""
    while state[ROUNDS] > 0:
        inside = True
        for j in range(w.low.size):
            x = state[j] + state[SIGN] * w.steps[state[STAGE], state[DIRECTION], j]
            inside = inside and w.low[j] <= x <= w.high[j]
        if inside:
            break
        state = following(w, state, False)
    return state


@compiled()
def upcoming(w: Work, state: Rows) -> Rows:  # pragma: no cover
    """What is tried from a point, one after the other, as long as nothing helps: one state a row."""
    found = np.empty((2 * w.steps.shape[1] + 1, state.size), dtype=np.int64)
    put(found[0], state)
    count = 1
    while not state[MOVED] and state[ROUNDS] > 0:
        state = skip(w, following(w, state, False))
        if state[ROUNDS] > 0:
            put(found[count], state)
            count += 1
    return found[:count]


@compiled()
def arrive(w: Work, q: Queue, state: Rows, row: int, low: float, high: float, aside: int) -> Queue:  # pragma: no cover
    """Let a segment wait in a state."""
    state = skip(w, state)
    while state[ROUNDS] == 0 and state[STAGE] < w.rounds.size:  # a stage is over
        aside = UNKNOWN
        state = skip(w, start(w, state[:-N_FIELDS], state[STAGE] + 1))
    if 2 * q.number[0] + 2 > q.states.shape[0]:
        q = _more_room(q)
    place = _find(q, state)
    number, n = q.table[place], q.waiting.number[0]
    if number < 0:
        number = q.number[0]
        q.number[0] += 1
        q.table[place] = number
        put(q.states[number], state)
        q.states[number, FIRST] = n
    else:
        q.waiting.marks[q.states[number, LAST], NEXT] = n
    q.states[number, LAST] = n
    return Queue(add(q.waiting, row, low, high, aside, number), q.states, q.table, q.number)


@compiled()
def _find(q: Queue, state: Rows) -> int:  # pragma: no cover
    """Where in the table a state stands that waits or is an end, or else where there is room for it."""
    place, number = hashed(state) & (q.table.size - 1), q.table[0]
    while q.table[place] >= 0:
        number = q.table[place]
        same = number >= q.number[1] or q.states[number, ROUNDS] == 0  # others were passed
        j = 0
        while same and j < state.size:
            same = q.states[number, j] == state[j]
            j += 1
        if same:
            break
        place = (place + 1) & (q.table.size - 1)
    return place


@compiled()
def _more_room(q: Queue) -> Queue:  # pragma: no cover
    """The same with room for twice as many states."""
    n = q.states.shape[0]
    more = Queue(q.waiting, np.empty((2 * n, q.states.shape[1]), dtype=np.int64), np.full(8 * n, -1), q.number)
    for number in range(q.number[0]):
        put(more.states[number], q.states[number])
    for number in range(q.number[0]):
        more.table[_find(more, more.states[number, :-2])] = number
    return more
