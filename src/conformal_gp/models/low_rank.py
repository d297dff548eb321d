"""Full conformal prediction in a low-rank model, with any number of training rows."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from copy import copy
from functools import partial
from typing import NamedTuple, Self

import numpy as np

from conformal_gp.answers import Block, Question
from conformal_gp.arrays import Array, Indices
from conformal_gp.conformal.lines import Rounding, normalised_residual_lines, rounding
from conformal_gp.conformal.screening import Ranking, Weighed, Windows
from conformal_gp.gp.lowrank import LowRankPosterior
from conformal_gp.models.exact import Part, located, sample_normal
from conformal_gp.rows import Rows, RowSource, RowTaker
from conformal_gp.targets.difficulty import Spread
from conformal_gp.threads import map_threads, slices

BATCH_ROWS = 4096
"""Test rows whose windows are found together."""
GROUP_ENTRIES = 2**25
"""Most weights (training rows times test rows) that are held at a time: a quarter of a gigabyte."""
PIECE_ENTRIES = 2**18
"""Most weights whose lines are held by a thread."""
CHUNK_ROWS = 2048
"""Training rows whose features are held by a thread."""
GATHERED_ROWS = 2**20
"""Most training rows that are brought together at a time."""


class Window(NamedTuple):
    """A range of the rows of low leverage that holds the windows of some of the levels.

    Rows before it are before each of them and rows after it after each, so with it each level decides as with its own.
    """

    levels: list[int]
    start: int
    stop: int


class Group(NamedTuple):
    """Test rows that look at the same training rows."""

    members: Indices
    """Places in the batch."""
    windows: list[Window]
    """Windows that hold those of all members, disjoint and in order."""

    @property
    def places(self) -> Indices:
        """Rows of low leverage, by their place in order, that any level looks at."""
        return np.concatenate([np.arange(window.start, window.stop) for window in self.windows])


class SeenRows(NamedTuple):
    """A batch of k test rows as the model sees them."""

    W: Array
    """(k, m + p): rows w."""
    mean: Array
    """(k,): mean of a new target."""
    variance: Array
    """(k,): its variance, noise included."""
    location: Array
    """(k,): c, from which its standardised residual is measured."""
    scale: Array
    """(k,): g, by which it is measured."""

    @property
    def size(self) -> Array:
        """(k,): |w|, to which the weights of training rows are in proportion."""
        return np.sqrt(np.einsum("ij,ij->i", self.W, self.W))

    @property
    def spread(self) -> Spread:
        """Both."""
        return Spread(self.location, self.scale)


class LowRankModel:
    """Predictions from a low-rank posterior, from the training rows that can decide them.

    Parameters
    ----------
    posterior : LowRankPosterior
        The Gaussian process given all training rows.
    rows : RowSource
        The training rows.
    tuning_rows : ndarray of int
        Those that are not calibration rows, ascending.
    gamma, n_jobs, difficulty
        As in :class:`~conformal_gp.models.exact.ExactModel`.
    """

    screens: bool = True

    def __init__(
        self,
        posterior: LowRankPosterior,
        rows: RowSource,
        tuning_rows: Indices,
        gamma: float,
        n_jobs: int | None,
        difficulty: Callable[[Rows], Spread] | None = None,
    ):
        self.difficulty = difficulty
        self.one_interval = gamma == 2.0 and difficulty is None
        self.posterior = posterior
        self.inputs = posterior.inputs
        self._rows = rows
        self.gamma = gamma
        self.n_jobs = n_jobs
        self.n_rows = rows.n_rows
        self.calibration = np.delete(np.arange(rows.n_rows), tuning_rows)
        summary = partial(_summary, posterior, difficulty)
        self._summaries = np.delete(rows.each(summary, "scores"), tuning_rows, axis=1)
        self._orders: dict[int, Ranking] = {}

    def among(self, calibration: Indices) -> Self:
        """See Model."""
        other = copy(self)
        other.calibration = calibration
        other._orders = {}
        other._summaries = self._summaries[:, np.searchsorted(self.calibration, calibration)]
        return other

    def _order(self, sign: int) -> Ranking:
        """Calibration rows in the order of their scores: absolute ones, or with signs, or with changed signs."""
        if sign not in self._orders:
            alpha, diagonal, bound = self._summaries[:3]
            order = Ranking(alpha, diagonal, bound, self.gamma, self._spread, sign)
            self._orders[sign] = order  # complete before another thread can use it
        return self._orders[sign]

    @property
    def _spread(self) -> Spread:
        if self.difficulty is None:
            return Spread.usual(self.calibration.size)
        return Spread(*self._summaries[5:])

    # ------------------------------------------------------------------------------------------------ predictions
    def centre(self, new: Rows) -> Array:
        """See Model: the mean, moved by the location of the scores where they have one."""
        if self.difficulty is not None:
            mean, variance = self.moments(new)
            return mean + located(variance, self.difficulty(new))
        return np.concatenate(self._map(lambda block: self.posterior.mean(new.take(block)), len(new.X)))

    def moments(self, new: Rows) -> tuple[Array, Array]:
        """See Model."""
        blocks = self._map(lambda block: self.posterior.new(new.take(block))[1:3], len(new.X))
        mean, variance = (np.concatenate(part) for part in zip(*blocks, strict=True))
        return mean, variance

    def covariance(self, new: Rows) -> Array:
        """See Model."""
        W, _, variance = self._new(new)[:3]
        # w'w2 off the diagonal, where the noise is independent
        covariance = W @ W.T
        np.fill_diagonal(covariance, variance)
        return covariance

    def sample(self, new: Rows, n_samples: int, rng: np.random.RandomState) -> Array:
        """See Model."""
        return sample_normal(self.moments(new)[0], self.covariance(new), n_samples, rng)

    def typical(self) -> tuple[float, float]:
        """See Model."""
        return 1.0 / float(np.median(self._summaries[1])), float(np.median(self._spread.scale))

    def _map(self, function: Callable[[slice], Part], n_rows: int) -> list[Part]:
        return map_threads(function, slices(n_rows, CHUNK_ROWS), self.n_jobs)

    # ------------------------------------------------------------------------------------------------- test rows
    def visit(self, new: Rows, question: Question, fill: Callable[[Block], None]) -> None:
        """See Model: rows that cannot decide what is asked are left out of the scores."""
        order = self._order(question.sign)
        needed = question.needed
        labels = question.labels
        if needed is not None:
            weighed = order.weighed(needed.weights)
            # levels whose sets are not all the whole line
            levels = np.flatnonzero((needed.least >= 0.0).any(axis=0))
            least = needed.by_row(len(new.X))
        else:
            weighed = order.weighed(question.weights)
            levels = np.zeros(1, dtype=np.int64)
        for batch in slices(len(new.X), BATCH_ROWS):
            seen = self._new(new.take(batch))
            off = self._rounding(seen)
            windows = []
            if needed is not None:
                for level in levels:
                    own = least[batch, level]
                    windows.append(order.for_level(own, weighed, seen.variance, seen.size, seen.spread))
            elif labels is not None:
                distance = off.floor + off.share * np.abs(labels[batch] - seen.mean)
                own = labels[batch]
                windows.append(order.for_label(own, seen.mean, seen.variance, seen.size, seen.spread, distance))
            if windows:
                self._compare_batch(order, weighed, seen, batch.start, windows, levels, off, fill)

    def _rounding(self, new: SeenRows) -> Rounding:
        """Rounding of scores, by the largest prior variance of a row."""
        alpha, diagonal, _, labels, priors = self._summaries[:5]
        precision = float(diagonal.max(initial=0.0))
        prior = float(priors.max(initial=0.0))
        residual = float(np.sqrt(prior) * np.linalg.norm(alpha))
        sizes = prior * precision, precision, residual, float(labels.max(initial=0.0))
        found = rounding(sizes, np.zeros(new.mean.size), new.variance, np.full(new.mean.size, prior))
        ratio = np.maximum(new.scale / self._spread.scale.min(initial=np.inf), 1.0)
        return Rounding(*(ratio * each for each in found))

    def _new(self, new: Rows) -> SeenRows:
        def see(block: slice) -> SeenRows:
            rows = new.take(block)
            spread = Spread.usual(len(rows.X))
            if self.difficulty is not None:
                spread = self.difficulty(rows)
            return SeenRows(*self.posterior.new(rows), *spread)

        blocks = self._map(see, len(new.X))
        return SeenRows(*(np.concatenate(part) for part in zip(*blocks, strict=True)))

    def _compare_batch(
        self,
        order: Ranking,
        weighed: Weighed,
        seen: SeenRows,
        offset: int,
        windows: list[Windows],
        levels: Indices,
        off: Rounding,
        fill: Callable[[Block], None],
    ) -> None:
        """Compare each test row of a batch with the rows in its windows, and with those of high leverage."""
        for run in self._runs(order, self._groups(order, windows)):
            rows = self._gathered(order, run)
            for group in run:
                self._compare(order, weighed, seen, offset, group, rows, levels, off, fill)

    def _groups(self, order: Ranking, windows: list[Windows]) -> Iterator[Group]:
        """Test rows of similar windows, so many that their weights can be held."""
        start = np.stack([window.start for window in windows], axis=1)
        stop = np.stack([window.stop for window in windows], axis=1)
        left = np.lexsort((start[:, 0], stop[:, 0]))
        while left.size:
            n_members = self._fitting(order, start[left], stop[left])
            members, left = left[:n_members], left[n_members:]
            yield Group(members, _merged(start[members].min(axis=0), stop[members].max(axis=0)))

    def _fitting(self, order: Ranking, start: Indices, stop: Indices) -> int:
        """Number of test rows, from the first on, that may share windows which contain all of theirs."""
        shared = np.maximum.accumulate(stop) - np.minimum.accumulate(start)
        low, high = order.low_leverage.size, order.high_leverage.size
        looked_at = np.minimum(shared.sum(axis=1), low) + high  # windows of many levels overlap
        fits = (looked_at <= 2 * looked_at[0] + CHUNK_ROWS) & (
            looked_at * np.arange(1, looked_at.size + 1) <= GROUP_ENTRIES
        )
        return max(1, int(fits.sum()))

    def _runs(self, order: Ranking, groups: Iterable[Group]) -> Iterator[list[Group]]:
        """Groups that follow each other, so many that the rows they look at can be brought together."""
        run: list[Group] = []
        total = 0
        for group in groups:
            size = sum(window.stop - window.start for window in group.windows) + order.high_leverage.size
            if run and total + size > GATHERED_ROWS:
                yield run
                run, total = [], 0
            run.append(group)
            total += size
        yield run

    def _gathered(self, order: Ranking, run: list[Group]) -> RowTaker | None:
        """The training rows that a run of groups looks at; None if a single group looks at too many."""
        numbers = self.calibration[self._looked_at(order, np.unique(np.concatenate([group.places for group in run])))]
        return self._rows.gather(np.sort(numbers)) if numbers.size <= GATHERED_ROWS else None

    def _looked_at(self, order: Ranking, places: Indices) -> Indices:
        """Rows of high leverage, and those of low leverage by their place in order; by place among calibration rows."""
        return np.concatenate([order.high_leverage, order.low_leverage[places]])

    def _compare(
        self,
        order: Ranking,
        weighed: Weighed,
        new: SeenRows,
        offset: int,
        group: Group,
        rows: RowTaker | None,
        levels: Indices,
        off: Rounding,
        fill: Callable[[Block], None],
    ) -> None:
        """Compare the test rows of a group with the rows in its windows."""
        places = group.places
        looked_at = self._looked_at(order, places)
        alpha, diagonal, weights = self._weights(self.calibration[looked_at], new.W[group.members], rows)
        high = order.high_leverage.size
        columns = [
            np.r_[0:high, high + np.searchsorted(places, window.start) : high + np.searchsorted(places, window.stop)]
            for window in group.windows
        ]

        def compare(piece: slice) -> None:
            members = group.members[piece]
            mean = new.mean[members]
            variance = new.variance[members]
            for seen, window in zip(columns, group.windows, strict=True):
                lines = normalised_residual_lines(
                    alpha[seen], diagonal[seen], weights[piece][:, seen], mean, variance, self.gamma
                )
                if self.difficulty is not None:
                    lines = lines.normalised(self._spread.take(looked_at[seen]), new.spread.take(members), variance)
                lines = lines._replace(rounding=off.take(members))
                covering = float(weighed.before[window.start])
                fill(Block(offset + members, lines, levels[window.levels], looked_at[seen], covering))

        step = max(1, PIECE_ENTRIES // max(1, looked_at.size))
        map_threads(compare, slices(group.members.size, step), self.n_jobs)

    def _weights(self, numbers: Indices, W: Array, rows: RowTaker | None) -> tuple[Array, Array, Array]:
        """Alpha, diagonal and weights of training rows; where ``rows`` is None they are gathered in portions."""
        alpha, diagonal = np.empty((2, numbers.size))
        weights = np.empty((W.shape[0], numbers.size))

        def fill_chunk(take: RowTaker, chunk: slice) -> None:
            state = self.posterior.rows(*take(numbers[chunk]))
            alpha[chunk], diagonal[chunk] = state.alpha, state.diagonal
            weights[:, chunk] = state.weights(W)

        for portion in slices(numbers.size, GATHERED_ROWS):
            take = rows or self._rows.gather(np.sort(numbers[portion]))
            chunks = [
                slice(portion.start + chunk.start, portion.start + chunk.stop)
                for chunk in slices(portion.stop - portion.start, CHUNK_ROWS)
            ]
            map_threads(partial(fill_chunk, take), chunks, self.n_jobs)
        return alpha, diagonal, weights


def _summary(posterior: LowRankPosterior, difficulty: Callable[[Rows], Spread] | None, rows: Rows, y: Array) -> Array:
    """What ranks training rows, see :meth:`LowRankPosterior.summary`, and their spread if it is not the usual one."""
    summary = posterior.summary(rows, y)
    return summary if difficulty is None else np.vstack([summary, *difficulty(rows)])


def _merged(start: Indices, stop: Indices) -> list[Window]:
    """Windows of all levels, those that overlap made one.

    >>> _merged(np.array([7, 0, 2]), np.array([9, 3, 4]))
    [Window(levels=[1, 2], start=0, stop=4), Window(levels=[0], start=7, stop=9)]
    """
    found: list[Window] = []
    for level in np.argsort(start, kind="stable").tolist():
        low, high = int(start[level]), int(stop[level])
        if found and low < found[-1].stop:
            levels, first, last = found[-1]
            found[-1] = Window([*levels, level], first, max(last, high))
        else:
            found.append(Window([level], low, high))
    return found
