r"""The labels of some test rows, followed through a descent inside a small bag; compiled.

See :mod:`conformal_gp.predictors.small_bags`.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from conformal_gp._compiled import compiled
from conformal_gp.conformal.lines import fill_lines, fill_rounding
from conformal_gp.conformal.upper_envelope import divide
from conformal_gp.gp.descent import PROMISED
from conformal_gp.gp.hyperparameters import UNIT
from conformal_gp.gp.processes import meet, parts, penalty, row_noise, slopes_of, slot_of, visit, weights
from conformal_gp.gp.work import (
    ALPHA,
    DIAGONAL,
    LOG_DETERMINANT,
    MEAN,
    NOISE,
    QUADRATIC,
    ROW_NOISE,
    VARIANCE,
    Work,
    forget_rows,
    make_room,
    put,
)
from conformal_gp.predictors.queue import (
    ASIDE,
    DIRECTION,
    FIRST,
    GONE,
    MOVED,
    N_FIELDS,
    ROUNDS,
    ROW,
    SIGN,
    STAGE,
    TAG,
    Parts,
    Queue,
    add,
    arrive,
    following,
    no_parts,
    start,
    take,
    upcoming,
)
from conformal_gp.predictors.segments import NOTHING, TEST_ROW, UNKNOWN, cut, difference
from conformal_gp.types import Array, Mask, Rows


@compiled(error_model="numpy")
def follow(
    fields: tuple[Any, ...], rows: Rows, low: Array, high: Array, points: Rows
) -> tuple[Rows, Array, Array, Rows]:  # pragma: no cover
    """Where segments of labels that start at some points end.

    Parameters
    ----------
    fields : tuple
        What :class:`~conformal_gp.gp.processes.Work` is made of.
    rows : ndarray of shape (n,)
        Test rows of the segments.
    low, high : ndarray of shape (n,)
        Ends of the segments.
    points : ndarray of shape (n, c)
        Where they start.

    Returns
    -------
    rows, low, high, points : ndarray of shape (m,), (m,), (m,), (m, c)
        The same of their parts where they end.
    """
    w = Work(*fields)
    forget_rows(w)
    c, none, unknown, every = points.shape[1], np.int64(0), np.int64(UNKNOWN), np.int64(-2)  # compiled for one type
    q = Queue(no_parts(64), np.empty((64, c + N_FIELDS + 2), dtype=np.int64), np.full(256, -1), np.zeros(2, np.int64))
    for k in range(low.size):
        q = arrive(w, q, start(w, points[k], none), rows[k], low[k], high[k], unknown)
    while q.number[1] < q.number[0]:
        state, first = q.states[q.number[1], :-2].copy(), q.states[q.number[1], FIRST]
        q.number[1] += 1
        if state[ROUNDS] == 0:
            continue
        tried = upcoming(w, state)
        n, stage = tried.shape[0], state[STAGE]
        make_room(w, n + 2)
        slot = slot_of(w, state[:c])
        here = _set_aside(w, slot, take(q.waiting, first, q.number[1] - 1))
        steps = np.empty((n, c), dtype=np.int64)
        for i in range(n):
            for j in range(c):
                steps[i, j] = tried[i, SIGN] * w.steps[stage, tried[i, DIRECTION], j]
        pending = _promising(w, slot, here, no_parts(16), steps, none)
        for i in range(n):
            here = take(pending, every, i)
            if here.number[0] == 0:
                continue
            here = _where_it_helps(w, w.gain, slot_of(w, state[:c] + steps[i]), slot, here)
            after, rest = following(w, tried[i], True), no_parts(8)
            for e in range(here.number[0]):
                row, one, two, aside = here.marks[e, ROW], here.ends[e, 0], here.ends[e, 1], here.marks[e, ASIDE]
                if here.marks[e, TAG]:
                    q = arrive(w, q, after, row, one, two, aside)
                else:
                    rest = add(rest, row, one, two, aside, none)
            pending = _promising(w, slot, rest, pending, steps, i + 1)
        after = following(w, tried[n - 1], False)
        for e in range(pending.number[0]):
            if pending.marks[e, TAG] == n:
                # what was set aside at another point than this one is no longer
                aside = unknown if state[MOVED] else pending.marks[e, ASIDE]
                q = arrive(w, q, after, pending.marks[e, ROW], pending.ends[e, 0], pending.ends[e, 1], aside)
    segments, n = q.waiting, 0
    for e in range(segments.number[0]):
        n += segments.marks[e, TAG] != GONE
    low, high, rows, points, n = np.empty(n), np.empty(n), np.empty(n, np.int64), np.empty((n, c), np.int64), 0
    for e in range(segments.number[0]):
        if segments.marks[e, TAG] != GONE:
            low[n], high[n], rows[n] = segments.ends[e, 0], segments.ends[e, 1], segments.marks[e, ROW]
            put(points[n], q.states[segments.marks[e, TAG], :c])
            n += 1
    return rows, low, high, points


@compiled(error_model="numpy")
def compare(
    fields: tuple[Any, ...], rows: Rows, low: Array, high: Array, point: Rows
) -> tuple[Rows, Array, Array, Mask]:  # pragma: no cover
    """Whether F at a point is lower than at the start by much, on parts of segments: see :func:`follow`."""
    w = Work(*fields)
    forget_rows(w)
    segments = no_parts(64)
    for k in range(low.size):
        segments = add(segments, rows[k], low[k], high[k], np.int64(UNKNOWN), np.int64(0))
    make_room(w, 2)
    slot = slot_of(w, point)
    found = _where_it_helps(w, w.much, slot, slot_of(w, w.start), _set_aside(w, slot, segments))
    n = found.number[0]
    return found.marks[:n, ROW].copy(), found.ends[:n, 0].copy(), found.ends[:n, 1].copy(), found.marks[:n, TAG] == 1


@compiled(error_model="numpy")
def _set_aside(w: Work, slot: int, segments: Parts) -> Parts:  # pragma: no cover
    """Parts of segments by the row that stands out most at a point; those of which it is known stay as they are."""
    found, n, e = no_parts(8), segments.number[0], 0
    while e < n:  # the segments of each test row
        row, first, unknown = segments.marks[e, ROW], e, 0
        while e < n and segments.marks[e, ROW] == row:
            aside = segments.marks[e, ASIDE]
            if aside != UNKNOWN or w.absent:
                aside = TEST_ROW if w.absent else aside
                found = add(found, row, segments.ends[e, 0], segments.ends[e, 1], aside, 0)
            else:
                unknown += 1
            e += 1
        if unknown > 0:
            low, high, k = np.empty(unknown), np.empty(unknown), 0
            for i in range(first, e):
                if segments.marks[i, ASIDE] == UNKNOWN:
                    low[k], high[k] = segments.ends[i, 0], segments.ends[i, 1]
                    k += 1
            found = _who_stands_out(w, slot, row, low, high, found)
    return found


@compiled(error_model="numpy", inline="always")
def _who_stands_out(w: Work, slot: int, row: int, low: Array, high: Array, found: Parts) -> Parts:  # pragma: no cover
    """Add parts of segments of one test row by the row of the bag that stands out most."""
    visit(w, slot)
    met, diagonal, n, largest = meet(w, slot, row), w.vectors[slot, DIAGONAL], w.y.size, 0.0
    variance, v = np.full(1, w.met_numbers[met, VARIANCE]), np.zeros((1, n))
    alpha, prior, silent = np.zeros(n), np.empty(n), w.undetermined[row]
    for i in range(n):
        prior[i] = w.scale + w.vectors[slot, ROW_NOISE, i]
        if diagonal[i] > 0.0:
            alpha[i], largest = w.vectors[slot, ALPHA, i], max(largest, abs(w.y[i]))
    mean, of = np.full(1, w.met_numbers[met, MEAN]), np.zeros(low.size, dtype=np.int64)
    new_prior = np.full(1, w.scale + row_noise(w, slot, w.new_features, row)[0])
    begin, stop = low, high
    if silent:  # scores 0, also when it is a training row, and then another is set aside; so here too
        mean[0], variance[0], new_prior[0] = 0.0, 1.0 / (diagonal.max() or 1.0), 0.0
        begin = stop = np.zeros(low.size)
    else:
        v = weights(w, slot, met)
    shape = 1, w.ranked.size
    offset, slope, own = np.empty(shape), np.empty(shape), np.empty(shape)
    own_alpha, own_diagonal = np.empty(w.ranked.size), np.empty(w.ranked.size)
    for k in range(w.ranked.size):
        i = w.ranked[k]
        own[0, k], own_alpha[k], own_diagonal[k] = v[0, i], alpha[i], diagonal[i]
    fill_lines(own_alpha, own_diagonal, own, variance, 0.5, offset, slope)
    square, share = np.zeros((1, 3)), np.zeros(1)
    fill_rounding(alpha, diagonal, prior, v, variance, new_prior, square, share)
    which, starts, stops, outstanding = divide(mean, offset, slope, square, share, largest, of, begin, stop)
    for e in range(outstanding.size):
        aside = w.ranked[outstanding[e]] if outstanding[e] >= 0 else outstanding[e]
        if silent:
            found = add(found, row, low[which[e]], high[which[e]], aside if aside >= 0 else NOTHING, 0)
        else:  # where the variance is infinite nothing is known of its label
            found = add(found, row, starts[e], stops[e], TEST_ROW if variance[0] == np.inf else aside, 0)
    return found


@compiled(error_model="numpy")
def _where_it_helps(w: Work, gain: float, slot: int, old: int, segments: Parts) -> Parts:  # pragma: no cover
    """Parts of segments, tagged by whether F is lower than at an old point by more than some gain."""
    which, helps = np.empty(3, dtype=np.int64), np.empty(3, dtype=np.bool_)
    starts, stops = np.empty(3), np.empty(3)
    q_new, q_old = w.numbers[slot, QUADRATIC], w.numbers[old, QUADRATIC]
    d_new, d_old = w.numbers[slot, LOG_DETERMINANT], w.numbers[old, LOG_DETERMINANT]
    alone = d_new < np.inf and q_new > 0.0 and q_old > 0.0
    alone = alone and w.degrees * np.log(q_new / q_old) + d_new < d_old - gain
    largest, found = w.scale + w.numbers[old, NOISE], no_parts(8)
    for k in range(segments.number[0]):
        low, high, row, aside = (
            segments.ends[k, 0],
            segments.ends[k, 1],
            segments.marks[k, ROW],
            segments.marks[k, ASIDE],
        )
        if aside == TEST_ROW or d_new == np.inf or d_old == np.inf:
            found = add(found, row, low, high, aside, int(alone if aside == TEST_ROW else d_new < np.inf))
            continue
        here, before = parts(w, slot, row, aside), parts(w, old, row, aside)
        a, b, c = difference(here, before, w.degrees + (aside == NOTHING), gain, w.rounding, largest)
        for i in range(cut(k, low, high, a, b, c, before[2], which, starts, stops, helps, 0)):
            found = add(found, row, starts[i], stops[i], aside, int(helps[i]))
    return found


@compiled(error_model="numpy")
def _promising(
    w: Work, slot: int, segments: Parts, pending: Parts, steps: Rows, first: int
) -> Parts:  # pragma: no cover
    """Add parts of segments, tagged by the first promising step from some step on, or by their number if none is."""
    n, k, marks, ends = segments.number[0], steps.shape[0], segments.marks, segments.ends
    if n == 0:
        return pending
    if first == k or w.numbers[slot, LOG_DETERMINANT] == np.inf:
        for e in range(n):
            pending = add(pending, marks[e, ROW], ends[e, 0], ends[e, 1], marks[e, ASIDE], first)
        return pending
    prior = penalty(w, w.points[slot, :-1])[1]
    largest = w.scale + w.numbers[slot, NOISE]
    left, found = np.empty((2, 2 * k + 1, 2)), np.empty((2, 6 * k + 3))
    number, yes = np.empty(6 * k + 3, dtype=np.int64), np.empty(6 * k + 3, dtype=np.bool_)
    quadratics, row, aside, mu = np.empty((k, 3)), -1, UNKNOWN, 0.0
    for e in range(n):
        if marks[e, ROW] != row or marks[e, ASIDE] != aside:
            row, aside = marks[e, ROW], marks[e, ASIDE]
            q, mu, s, degrees = w.numbers[slot, QUADRATIC], 0.0, np.inf, w.degrees
            if aside != TEST_ROW:
                q, _, mu, s = parts(w, slot, row, aside)
                degrees += int(aside < 0) - int(s == np.inf)
            slopes = slopes_of(w, slot, row, aside)
            _promises(steps, slopes, prior, PROMISED * w.gain, q, s, degrees, w.rounding, largest, quadratics)
        left[0, 0, 0], left[0, 0, 1], n_left, now = ends[e, 0], ends[e, 1], 1, 0
        for step in range(first, k):
            a, b, c = quadratics[step]
            count = 0
            for i in range(n_left):
                one, two = left[now, i, 0], left[now, i, 1]
                count = cut(0, one, two, a, b, c, mu, number, found[0], found[1], yes, count)
            n_left, now = 0, 1 - now
            for i in range(count):
                if yes[i]:
                    pending = add(pending, row, found[0, i], found[1, i], aside, step)
                else:
                    left[now, n_left, 0], left[now, n_left, 1] = found[0, i], found[1, i]
                    n_left += 1
            if n_left == 0:
                break
        for i in range(n_left):
            pending = add(pending, row, left[now, i, 0], left[now, i, 1], aside, k)
    return pending


@compiled(error_model="numpy")
def _promises(
    steps: Rows,
    slopes: Array,
    prior: Array,
    gain: float,
    q: float,
    s: float,
    degrees: int,
    rounding: float,
    largest: float,
    quadratics: Array,
) -> None:  # pragma: no cover
    """Coefficients of quadratics in the label less μ that are negative where steps would help to first order."""
    for step in range(steps.shape[0]):
        slope, aa, ab, bb = gain, 0.0, 0.0, 0.0
        for j in range(steps.shape[1]):
            length = UNIT * steps[step, j] * (2.0 if j + 1 == steps.shape[1] else 1.0)  # the noise is a variance
            slope += length * (slopes[3, j] + prior[j])
            aa += length * slopes[0, j]
            ab += length * slopes[1, j]
            bb += length * slopes[2, j]
        a = slope / s - degrees * bb
        b, c = -2.0 * degrees * ab, slope * q - degrees * aa
        if q == 0.0:  # the mean function explains all rows that are kept, and a label that is off by rounding
            b, c = 0.0, -1.0 if s == np.inf else -abs(a) * rounding * max(s / largest, 1.0)
        quadratics[step, 0], quadratics[step, 1], quadratics[step, 2] = a, b, c
