"""Full conformal prediction in a low-rank model, with any number of training rows."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from copy import copy
from functools import partial
from typing import NamedTuple, Self

import numpy as np

from conformal_gp.conformal.decisive_rows import Ranking, Windows
from conformal_gp.conformal.lines import Lines, Rounding, Spread, normalised_residual_lines, rounding
from conformal_gp.conformal.one_sided import mirrored, upper_bounds
from conformal_gp.conformal.pvalues import counts
from conformal_gp.conformal.regions import hulls, regions
from conformal_gp.conformal.weights import Needed
from conformal_gp.gp.inputs import Points
from conformal_gp.gp.lowrank import LowRankPosterior
from conformal_gp.predictors.base import Part, Process
from conformal_gp.rows import Rows, RowTaker
from conformal_gp.threads import map_threads, slices
from conformal_gp.types import Array
from conformal_gp.types import Rows as Numbers

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


class Comparison(NamedTuple):
    """Lines of the training rows that some test rows are compared with, for some of the levels."""

    levels: list[int]
    lines: Lines
    rows: Numbers
    """Their places among the ranked rows."""
    before: int
    """How many rows of low leverage are left out because they cover every candidate label in question."""


class Window(NamedTuple):
    """A range of the rows of low leverage that holds the windows of some of the levels.

    Rows before it are before each of them and rows after it after each, so with it each level decides as with its own.
    """

    levels: list[int]
    start: int
    stop: int


class Group(NamedTuple):
    """Test rows that look at the same training rows."""

    members: Numbers
    """Places in the batch."""
    windows: list[Window]
    """Windows that hold those of all members, disjoint and in order."""

    @property
    def n_rows(self) -> int:
        """Number of rows of low leverage that are looked at."""
        return sum(window.stop - window.start for window in self.windows)


class SeenRows(NamedTuple):
    """A batch of k test rows as the model sees them."""

    W: Array
    """(k, m + p): rows w."""
    mean: Array
    """(k,): mean of a new label."""
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


class LowRankPredictor(Process):
    """Predictions from a low-rank posterior, from the training rows that can decide them.

    Parameters
    ----------
    posterior : LowRankPosterior
        The Gaussian process given all training rows.
    rows : Rows
        The training rows.
    design : ndarray of int
        Those that are not ranked, ascending.
    gamma : float
        Root of the variance in the nonconformity measure.
    n_jobs : int or None
        Threads over blocks of rows.
    difficulty : callable or None, default=None
        From rows to what scores are measured from and by besides; None is 0 and 1.
    """

    def __init__(
        self,
        posterior: LowRankPosterior,
        rows: Rows,
        design: Numbers,
        gamma: float,
        n_jobs: int | None,
        difficulty: Callable[[Points], Spread] | None = None,
    ):
        self.difficulty = difficulty
        self._posterior = posterior
        self.inputs = posterior.inputs
        self._rows = rows
        self._gamma = gamma
        self.n_jobs = n_jobs
        self.n_rows = rows.n_rows
        self.ranked = np.delete(np.arange(rows.n_rows), design)
        summary = partial(_summary, posterior, difficulty)
        self._scores = np.delete(rows.each(summary, "scores"), design, axis=1)
        self._ranking = self._order(sign=0)
        self._by_sign: dict[int, LowRankPredictor] = {}

    def among(self, rows: Numbers) -> Self:
        """See Predictor."""
        other = copy(self)
        other.ranked, other._by_sign = rows, {}
        other._scores = self._scores[:, np.searchsorted(self.ranked, rows)]
        other._ranking = other._order(sign=0)
        return other

    def _order(self, sign: int) -> Ranking:
        alpha, diagonal, bound = self._scores[:3]
        return Ranking(alpha, diagonal, bound, self._gamma, self._ranked_spread, sign)

    @property
    def _ranked_spread(self) -> Spread:
        return Spread.usual(self.n_ranked) if self.difficulty is None else Spread(*self._scores[5:])

    def mean(self, new: Points) -> Array:
        """See Predictor."""
        return np.concatenate(self._map(lambda block: self._posterior.mean(new.take(block)), len(new.X)))

    def mean_and_variance(self, new: Points) -> tuple[Array, Array]:
        """See Predictor."""
        blocks = self._map(lambda block: self._posterior.new(new.take(block))[1:3], len(new.X))
        mean, variance = (np.concatenate(part) for part in zip(*blocks, strict=True))
        return mean, variance

    def mean_and_covariance(self, new: Points) -> tuple[Array, Array]:
        """See Predictor."""
        W, mean, variance = self._new(new)[:3]
        covariance = W @ W.T
        np.fill_diagonal(covariance, variance)
        return mean, covariance

    def _map(self, function: Callable[[slice], Part], n_rows: int) -> list[Part]:
        return list(map_threads(function, slices(n_rows, CHUNK_ROWS), self.n_jobs))

    def hulls(self, new: Points, needed: Needed) -> Array:
        """See Predictor."""
        ends = np.tile([[-np.inf], [np.inf]], (len(new.X), 1, needed.n_levels))

        def fill(members: Numbers, levels: Numbers, lines: Lines, own: Needed) -> None:
            ends[members[:, None], :, levels] = hulls(lines, own).transpose(0, 2, 1)

        self._decide(new, needed, fill)
        return ends

    def regions(self, new: Points, needed: Needed) -> list[Array]:
        """See Predictor."""
        found = [np.array([[-np.inf, np.inf]])] * len(new.X)

        def fill(members: Numbers, levels: Numbers, lines: Lines, own: Needed) -> None:
            for member, region in zip(members, regions(lines, own), strict=True):
                found[member] = region

        self._decide(new, needed, fill)
        return found

    def bounds(self, new: Points, below: Needed, above: Needed) -> Array:
        """See Predictor."""
        lower = -self._ranked_by(-1)._upper_bounds(new, below, mirrored)
        return np.concatenate([lower, self._ranked_by(1)._upper_bounds(new, above, lambda lines: lines)], axis=1)

    def _upper_bounds(self, new: Points, needed: Needed, seen_as: Callable[[Lines], Lines]) -> Array:
        """Upper bounds of labels with the sign by which rows are ranked."""
        found = np.full((len(new.X), needed.n_levels), np.inf)

        def fill(members: Numbers, levels: Numbers, lines: Lines, own: Needed) -> None:
            found[members[:, None], levels] = upper_bounds(seen_as(lines), own)

        self._decide(new, needed, fill)
        return found

    def _ranked_by(self, sign: int) -> LowRankPredictor:
        """The same predictor with rows in order of their scores with signs, or with changed signs."""
        if sign not in self._by_sign:
            other = copy(self)
            other._ranking = self._order(sign)
            self._by_sign[sign] = other  # complete before another thread can see it
        return self._by_sign[sign]

    def counts(self, new: Points, y: Array, signed: bool, weights: Array | None = None) -> tuple[Array, Array]:
        """See Predictor."""
        at_least, greater = np.empty((2, y.size))
        predictor = self._ranked_by(1) if signed else self
        before = predictor._ranking.weighed(weights).before
        floor, share = np.empty((2, y.size))

        def fill(members: Numbers, comparison: Comparison) -> None:
            lines = comparison.lines._replace(rounding=Rounding(floor[members], share[members], 0.0))
            own = None if weights is None else weights[comparison.rows]
            found = counts(lines, y[members], signed, own)
            at_least[members], greater[members] = (before[comparison.before] + part for part in found)

        def for_labels(seen: SeenRows, batch: slice) -> list[Windows]:
            floor[batch], share[batch], _ = self._rounding(seen)
            off = floor[batch] + share[batch] * np.abs(y[batch] - seen.mean)
            return [predictor._ranking.for_label(y[batch], *seen[1:3], seen.size, seen.spread, off)]

        predictor._answer(new, for_labels, fill)
        return at_least, greater

    def _rounding(self, new: SeenRows) -> Rounding:
        """How far rounding may put scores off, by the largest prior variance of a row."""
        alpha, diagonal, _, labels, priors = self._scores[:5]
        precision, prior = float(diagonal.max(initial=0.0)), float(priors.max(initial=0.0))
        residual = float(np.sqrt(prior) * np.linalg.norm(alpha))
        sizes = prior * precision, precision, residual, float(labels.max(initial=0.0))
        found = rounding(sizes, np.zeros(new.mean.size), new.variance, np.full(new.mean.size, prior))
        ratio = np.maximum(new.scale / self._ranked_spread.scale.min(initial=np.inf), 1.0)
        return Rounding(ratio * found.floor, ratio * found.share, found.most)

    def typical(self) -> tuple[float, float]:
        """See Process."""
        return 1.0 / float(np.median(self._scores[1])), float(np.median(self._ranked_spread.scale))

    def _decide(self, new: Points, needed: Needed, fill: Callable[[Numbers, Numbers, Lines, Needed], None]) -> None:
        """Find what decides regions; ``fill`` gets test rows, levels, lines and what labels need among these."""
        finite = np.flatnonzero((needed.least >= 0.0).any(axis=0))  # levels whose regions are not all the whole line
        weighed, least = self._ranking.weighed(needed.weights), needed.by_row(len(new.X))

        def for_levels(seen: SeenRows, batch: slice) -> list[Windows]:
            of_new = seen.variance, seen.size, seen.spread
            return [self._ranking.for_level(least[batch, level], weighed, *of_new) for level in finite]

        def fill_levels(members: Numbers, comparison: Comparison) -> None:
            levels = finite[comparison.levels]
            own = needed.take(members).among(comparison.rows, weighed.before[comparison.before], levels)
            fill(members, levels, comparison.lines, own)

        self._answer(new, for_levels, fill_levels)

    def _answer(
        self,
        new: Points,
        windows: Callable[[SeenRows, slice], list[Windows]],
        fill: Callable[[Numbers, Comparison], None],
    ) -> None:
        """Compare each test row with the rows in its windows; ``fill`` gets test rows and each comparison."""
        for batch in slices(len(new.X), BATCH_ROWS):
            seen = self._new(new.take(batch))
            found = windows(seen, batch)
            if not found:
                continue
            for run in self._runs(self._groups(found)):
                rows = self._gathered(run)
                for group in run:
                    self._compare(seen, batch.start, group, rows, fill)

    def _new(self, new: Points) -> SeenRows:
        def see(block: slice) -> SeenRows:
            rows = new.take(block)
            spread = Spread.usual(len(rows.X)) if self.difficulty is None else self.difficulty(rows)
            return SeenRows(*self._posterior.new(rows), *spread)

        blocks = self._map(see, len(new.X))
        return SeenRows(*(np.concatenate(part) for part in zip(*blocks, strict=True)))

    def _groups(self, windows: list[Windows]) -> Iterator[Group]:
        """Test rows of similar windows, so many that their weights can be held."""
        start = np.stack([window.start for window in windows], axis=1)
        stop = np.stack([window.stop for window in windows], axis=1)
        left = np.lexsort((start[:, 0], stop[:, 0]))
        while left.size:
            n_members = self._fitting(start[left], stop[left])
            members, left = left[:n_members], left[n_members:]
            yield Group(members, _merged(start[members].min(axis=0), stop[members].max(axis=0)))

    def _fitting(self, start: Numbers, stop: Numbers) -> int:
        """How many test rows, from the first on, may share windows that hold all of theirs."""
        shared = np.maximum.accumulate(stop) - np.minimum.accumulate(start)
        low, high = self._ranking.low_leverage.size, self._ranking.high_leverage.size
        looked_at = np.minimum(shared.sum(axis=1), low) + high  # windows of many levels overlap
        fits = (looked_at <= 2 * looked_at[0] + CHUNK_ROWS) & (
            looked_at * np.arange(1, looked_at.size + 1) <= GROUP_ENTRIES
        )
        return max(1, int(fits.sum()))

    def _places(self, group: Group) -> Numbers:
        """Rows of low leverage, by their place in order, that any level of a group looks at."""
        return np.concatenate([np.arange(window.start, window.stop) for window in group.windows])

    def _runs(self, groups: Iterable[Group]) -> Iterator[list[Group]]:
        """Groups that follow each other, so many that the rows they look at can be brought together."""
        run: list[Group] = []
        total = 0
        for group in groups:
            size = group.n_rows + self._ranking.high_leverage.size
            if run and total + size > GATHERED_ROWS:
                yield run
                run, total = [], 0
            run.append(group)
            total += size
        yield run

    def _gathered(self, run: list[Group]) -> RowTaker | None:
        """The training rows that a run of groups looks at; None if a single group looks at too many."""
        numbers = self.ranked[self._looked_at(np.unique(np.concatenate([self._places(group) for group in run])))]
        return self._rows.gather(np.sort(numbers)) if numbers.size <= GATHERED_ROWS else None

    def _looked_at(self, places: Numbers) -> Numbers:
        """Rows of high leverage, and those of low leverage by their place in order; by place among ranked rows."""
        return np.concatenate([self._ranking.high_leverage, self._ranking.low_leverage[places]])

    def _compare(
        self,
        new: SeenRows,
        offset: int,
        group: Group,
        rows: RowTaker | None,
        fill: Callable[[Numbers, Comparison], None],
    ) -> None:
        """Compare the test rows of a group with the rows in its windows."""
        places = self._places(group)
        looked_at = self._looked_at(places)
        numbers = self.ranked[looked_at]
        alpha, diagonal, weights = self._weights(numbers, new.W[group.members], rows)
        high = self._ranking.high_leverage.size
        columns = [
            np.r_[0:high, high + np.searchsorted(places, window.start) : high + np.searchsorted(places, window.stop)]
            for window in group.windows
        ]

        def compare(piece: slice) -> None:
            members = group.members[piece]
            for seen, window in zip(columns, group.windows, strict=True):
                lines = normalised_residual_lines(
                    alpha[seen],
                    diagonal[seen],
                    weights[piece][:, seen],
                    new.mean[members],
                    new.variance[members],
                    self._gamma,
                )
                if self.difficulty is not None:
                    own, variance = new.spread.take(members), new.variance[members]
                    lines = lines.normalised(self._ranked_spread.take(looked_at[seen]), own, variance)
                fill(offset + members, Comparison(window.levels, lines, looked_at[seen], window.start))

        step = max(1, PIECE_ENTRIES // max(1, numbers.size))
        list(map_threads(compare, slices(group.members.size, step), self.n_jobs))

    def _weights(self, numbers: Numbers, W: Array, rows: RowTaker | None) -> tuple[Array, Array, Array]:
        """Alpha, diagonal and weights of training rows; where ``rows`` is None they are gathered in portions."""
        alpha, diagonal = np.empty((2, numbers.size))
        weights = np.empty((W.shape[0], numbers.size))

        def fill_chunk(source: RowTaker, chunk: slice) -> None:
            state = self._posterior.rows(*source.take(numbers[chunk]))
            alpha[chunk], diagonal[chunk] = state.alpha, state.diagonal
            weights[:, chunk] = state.weights(W)

        for portion in slices(numbers.size, GATHERED_ROWS):
            source = rows or self._rows.gather(np.sort(numbers[portion]))
            chunks = [
                slice(portion.start + chunk.start, portion.start + chunk.stop)
                for chunk in slices(portion.stop - portion.start, CHUNK_ROWS)
            ]
            list(map_threads(partial(fill_chunk, source), chunks, self.n_jobs))
        return alpha, diagonal, weights


def _summary(
    posterior: LowRankPosterior, difficulty: Callable[[Points], Spread] | None, rows: Points, y: Array
) -> Array:
    """What ranks training rows, see :meth:`LowRankPosterior.summary`, and their spread if it is not the usual one."""
    summary = posterior.summary(rows, y)
    return summary if difficulty is None else np.vstack([summary, *difficulty(rows)])


def _merged(start: Numbers, stop: Numbers) -> list[Window]:
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
