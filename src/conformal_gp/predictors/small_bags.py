r"""Descent inside a bag of few rows, compiled: followed for all labels of many test rows.

This is what :mod:`conformal_gp.predictors.trace` says, with two differences. All of it runs in compiled code. And a
step is tried only where it is *promising*: where the slope of the criterion says that it would gain enough
(:mod:`conformal_gp.gp.descent`). Whether it is, is a quadratic inequality in the label like the comparison that
follows (:mod:`conformal_gp.gp.slopes`), so the line of labels is divided by both.

While labels are followed, each of their segments belongs to a state of the descent, and states wait in the
order in which they were reached. Segments that come to a state that waits already join it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from threading import Lock

import numpy as np

from conformal_gp.gp.descent import GAIN_OF_MUCH, Rule, Stage, least_gain
from conformal_gp.gp.hyperparameters import Lattice, Point
from conformal_gp.gp.inputs import NewInputs
from conformal_gp.gp.work import NewRows, Processes, TrainingRows, fields, no_processes
from conformal_gp.predictors.bag import Bag
from conformal_gp.predictors.followed import compare, follow
from conformal_gp.predictors.segments import NOTHING, At, Segments, gathered
from conformal_gp.types import Rows

# Training rows times test rows that are followed together: those that go the same way share what is known of a point.
ENTRIES_AT_A_TIME = 8192


class SmallBag:
    """Training rows under one scaling, and what descents with a test row each have found.

    Parameters
    ----------
    lattice : Lattice
        The hyperparameters, of a kernel whose slopes are known.
    bag : Bag
        The training rows.
    ranked : ndarray of int
        Training rows that may be set aside.
    """

    def __init__(self, lattice: Lattice, bag: Bag, ranked: Rows):
        X, H = np.ascontiguousarray(bag.inputs.pairs.X), np.ascontiguousarray(bag.inputs.H.T)
        features = np.ascontiguousarray(bag.inputs.noise.features)
        self._rows = TrainingRows(X, np.ascontiguousarray(bag.y), H, features, np.ascontiguousarray(ranked))
        self._bag = bag
        self._lattice = lattice
        self._family = lattice.family()
        self._kept: list[Processes] = []
        self._lock = Lock()

    def trace(self, new: NewInputs, stages: Sequence[Stage], at: At) -> At:
        """Where descents end that start at some points: see :meth:`conformal_gp.predictors.trace.Blocks.trace`."""
        rule, found = self._rule(stages), dict[Point, list[Segments]]()
        for first, some, parts in self._some_rows(new, at):
            for point, ends in self._follow(some, rule, parts).items():
                found.setdefault(point, []).append(ends.shifted(first))
        return {point: Segments.concatenate(parts) for point, parts in found.items()}

    def much_to_say(self, new: NewInputs, at: At) -> tuple[At, At]:
        """Who has much to say: see :meth:`conformal_gp.predictors.trace.Blocks.much_to_say`."""
        rule = self._rule(())
        found: tuple[dict[Point, list[Segments]], dict[Point, list[Segments]]] = {}, {}
        for first, some, parts in self._some_rows(new, at):
            for point, segments in parts.items():
                processes = self._borrow()
                work = fields(self._rows, self._family, processes, rule, some)
                rows, low, high, much = compare(work, segments.row, segments.low, segments.high, np.array(point))
                self._kept.append(processes)
                every = Segments(rows, low, high, np.full(rows.size, NOTHING)).shifted(first)
                for outcome, chosen in zip(found, (much, ~much), strict=True):
                    outcome.setdefault(point, []).append(every.take(chosen))
        strong, weak = map(gathered, found)
        return strong, weak

    def training_end(self, stages: Sequence[Stage], start: Point) -> Point:
        """Where the training rows by themselves end after some stages."""
        return self._alone(self._rule(stages), start)

    def _rule(self, stages: Sequence[Stage]) -> Rule:
        n_rows = self._rows.y.size + 1
        steps = [stage.step * np.array(self._lattice.directions(stage.joint)) for stage in stages]
        count = np.array([len(one) for one in steps], dtype=np.int64)
        filled = np.zeros((len(stages), count.max(initial=0), len(self._lattice.start)), dtype=np.int64)
        for one, where in zip(steps, filled, strict=True):
            where[: len(one)] = one
        return Rule(
            steps=filled,
            directions=count,
            rounds=np.array([stage.rounds for stage in stages], dtype=np.int64),
            start=np.array(self._lattice.start),
            gain=least_gain(n_rows),
            much=GAIN_OF_MUCH * n_rows,
            degrees=self._bag.degrees,
            rounding=self._bag.rounding,
        )

    def _alone(self, rule: Rule, start: Point) -> Point:
        rows = self._rows
        x, h, f = (np.zeros((1, n)) for n in (rows.X.shape[1], rows.H.shape[0], rows.features.shape[1]))
        none = NewRows(x, h, f, np.zeros(1, dtype=bool), True)
        return next(iter(self._follow(none, rule, {start: Segments.labels(np.zeros(1))})))

    def _some_rows(self, new: NewInputs, at: At) -> Iterator[tuple[int, NewRows, At]]:
        """Some test rows at a time, with the number of the first: an interrupt comes through in between."""
        n = max(1, ENTRIES_AT_A_TIME // self._rows.y.size)
        for first in range(0, new.H.shape[0], n):
            these = slice(first, first + n)
            X, H, features = map(np.ascontiguousarray, (new.pairs.X[these], new.H[these], new.noise.features[these]))
            some = {point: parts.shifted(-first, H.shape[0]) for point, parts in at.items()}
            some = {point: parts for point, parts in some.items() if parts.size}
            if some:
                yield first, NewRows(X, H, features, new.undetermined[these].copy(), False), some

    def _follow(self, new: NewRows, rule: Rule, at: At) -> At:
        """Follow all segments of test rows."""
        points = np.repeat(np.array(list(at)), [segments.size for segments in at.values()], axis=0)
        every = Segments.concatenate(list(at.values()))
        processes = self._borrow()
        work = fields(self._rows, self._family, processes, rule, new)
        rows, low, high, ends = follow(work, every.row, every.low, every.high, points)
        self._kept.append(processes)
        _, first, member = np.unique(ends, axis=0, return_index=True, return_inverse=True)
        parts = Segments(rows, low, high, np.full(rows.size, NOTHING))
        return {
            tuple(ends[k].tolist()): parts.take(member.ravel() == number).joined() for number, k in enumerate(first)
        }

    def _borrow(self) -> Processes:
        """Slots that no other thread uses, with what is known from earlier calls."""
        with self._lock:
            return self._kept.pop() if self._kept else no_processes(self._rows, len(self._lattice.start))
