r"""Hyperparameters found by a search inside the bag: which inputs matter.

The search of :mod:`conformal_gp.gp.patterns` goes where the restricted likelihood of the bag leads it. Which way that
is depends on the label y of the test row; but each comparison is between parabolas in y, so the line falls into
stretches on which it goes the same way, and these are followed all at once: a step divides each stretch where the lower
envelope of a pattern and its neighbours changes hands. Where walks end is a function of the bag, the same whatever the
order of its rows, so coverage is exact; and exactly that function is found, with no grid over labels.

A label far from all others can make a model likely in which it is not far at all. So before the search the row that
stands out most is found, by its score under the best candidate that makes no differences between inputs. That row
ranks first, whatever the search says: scores are compared as pairs, whether a row is that one, then its score. That too
is the same for all rows of the bag. Labels with which the test row stands out most have the least p-value there is, and
are not searched.

A pattern's factorisation serves all test rows and labels that pass it. As many are kept as fit into memory.
"""

from __future__ import annotations

from collections import OrderedDict, defaultdict
from collections.abc import Callable, Iterable, Iterator
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from conformal_gp.conformal.outstanding import outstanding, outstanding_at
from conformal_gp.gp.candidates import NOISE_RATIOS
from conformal_gp.gp.inputs import Inputs, NewInputs
from conformal_gp.gp.patterns import Pattern, Patterns
from conformal_gp.gp.spectral import Moments, SpectralPosterior
from conformal_gp.predictors.bag import Bag, Parabolas, Selection, Stretch, Use, parabolas
from conformal_gp.predictors.pieces import Piece, divide, join, overlay
from conformal_gp.threads import map_threads

Array = NDArray[np.float64]
Rows = NDArray[np.int64]
At = dict[Pattern, list[Piece]]
"""Pieces by the pattern where a search stands."""

# Factorisations that are kept, in bytes; others are computed again when they are needed.
KEPT_BYTES = 2**28
# A step must lower the criterion by more than rounding can, relatively; else a search could go round in circles.
LEAST_STEP = 1e-12


class Criterion(NamedTuple):
    """What of a pattern's likelihood does not depend on new rows, for each noise variance."""

    quadratic: Array
    log_determinant: Array
    """Handicap included."""


class SearchedBag(Bag):
    """Patterns of length scales on the training rows."""

    def __init__(
        self, patterns: Patterns, inputs: Inputs, y: Array, ranked: Rows | slice, gamma: float, n_jobs: int | None
    ):
        super().__init__(inputs, y, ranked, gamma)
        self.patterns = patterns
        self.n_jobs = n_jobs
        self._noises = NOISE_RATIOS * float(patterns.given.diag(inputs.pairs.X[:1])[0])
        self._criteria: dict[Pattern, Criterion] = {}
        self._posteriors: OrderedDict[Pattern, SpectralPosterior] = OrderedDict()
        l, p = inputs.H.shape
        self._most_kept = max(1, KEPT_BYTES // (8 * l * (l + NOISE_RATIOS.size * (2 + p))))

    def __getstate__(self) -> dict[str, Any]:
        """All but the factorisations, which would be most of a pickle."""
        return {**self.__dict__, "_posteriors": OrderedDict()}

    def posterior(self, kernel: int) -> SpectralPosterior:
        """See Bag."""
        pattern = self.patterns.pattern(kernel)
        posterior = self._factorise(pattern)
        self._keep(pattern, posterior)
        return posterior

    def _factorise(self, pattern: Pattern) -> SpectralPosterior:
        kept = self._posteriors.get(pattern)
        return kept or SpectralPosterior(self.patterns.kernel(pattern), self._noises, self.inputs, self._y)

    def _keep(self, pattern: Pattern, posterior: SpectralPosterior) -> None:
        self._criteria[pattern] = Criterion(posterior.quadratic, posterior.log_determinant + 2.0 * pattern.handicap)
        self._posteriors[pattern] = posterior
        if len(self._posteriors) > self._most_kept:
            self._posteriors.popitem(last=False)  # the first to come goes first

    def moments(self, new: NewInputs, rows_of: dict[Pattern, Rows]) -> Iterator[tuple[Pattern, Moments]]:
        """Moments of some of the new rows for each pattern, in threads; patterns are factorised where need be."""

        def task(pattern: Pattern) -> tuple[Pattern, SpectralPosterior, Moments]:
            posterior = self._factorise(pattern)
            return pattern, posterior, posterior.moments(new.take(rows_of[pattern]))

        for pattern, posterior, moments in map_threads(task, rows_of, self.n_jobs):
            self._keep(pattern, posterior)
            yield pattern, moments

    def criterion(self, pattern: Pattern) -> Criterion:
        """What of the likelihood does not depend on new rows, for a pattern that was factorised before."""
        return self._criteria[pattern]

    @cached_property
    def best(self) -> Use:
        """See Bag."""
        few = self._walk(self.patterns.few, self.patterns.most_at_first)
        end = self._walk([few, *self.patterns.alike], self.patterns.n_inputs)
        return Use(end.number, int(self._values([end])[0].argmin()))

    def _walk(self, starts: list[Pattern], most: int) -> Pattern:
        """Where the training rows by themselves walk to, from the best of some patterns."""
        best = starts[int(self._values(starts).min(axis=1).argmin())]
        while True:
            near = [best, *best.neighbours(most)]
            values = self._values(near).min(axis=1)
            if not values.min() < values[0] - self._degrees * LEAST_STEP:
                return best
            best = near[int(values.argmin())]

    def _values(self, patterns: list[Pattern]) -> Array:
        """Minus twice the restricted log likelihood of the training rows, (patterns, noises)."""
        missing = [pattern for pattern in patterns if pattern not in self._criteria]
        for pattern, posterior in zip(missing, map_threads(self._factorise, missing, self.n_jobs), strict=True):
            self._keep(pattern, posterior)
        with np.errstate(divide="ignore"):
            return np.array(
                [self._degrees * np.log(c.quadratic) + c.log_determinant for c in map(self.criterion, patterns)]
            )

    def select(self, new: NewInputs) -> Selection:
        """See Bag."""
        return _Searched(self, new)

    @property
    def degrees(self) -> int:
        """ν of the bag: rows, the new one included, less coefficients of the mean."""
        return self._degrees + 1


class _Searched(Selection):
    """What a block of new rows selects: where the walks end."""

    def __init__(self, bag: SearchedBag, new: NewInputs):
        self._bag = bag
        self._new = new
        self._m = new.H.shape[0]
        self._mean: dict[Pattern, Array] = {}
        self._variance: dict[Pattern, Array] = {}

    def stretches(self) -> list[list[Stretch]]:
        """See Selection."""
        return self._search(self._ranked_first())

    def at(self, y: Array) -> list[Stretch | None]:
        """See Selection."""
        found = self._search(self._ranked_first_at(y))
        return [stretches[0] if stretches else None for stretches in found]

    def mean_and_variance(self, use: Use, j: int) -> tuple[float, float]:
        """See Selection."""
        pattern = self._bag.patterns.pattern(use.kernel)
        return float(self._mean[pattern][use.noise, j]), float(self._variance[pattern][use.noise, j])

    def moments(self, kernel: int, rows: Rows) -> Moments:
        """See Selection."""
        return self._bag.posterior(kernel).moments(self._new.take(rows))

    def _alike(self, pieces: list[Piece]) -> dict[Use, list[Piece]]:
        """Parts of pieces by the candidate that is best there of those that make no differences between inputs."""
        alike = self._bag.patterns.alike
        self._learn(dict.fromkeys(alike, pieces))
        by_use: dict[Use, list[Piece]] = defaultdict(list)
        for piece, i, r in self._divide(alike, pieces):
            by_use[Use(alike[i].number, r)].append(piece)
        return by_use

    def _ranked_first(self) -> list[tuple[Piece, tuple[int, ...]]]:
        """Labels at which a ranked row stands out most when inputs are alike, with that row."""
        found = []
        for use, pieces in self._alike([Piece(j, -np.inf, np.inf) for j in range(self._m)]).items():
            within = [
                piece
                for piece in pieces
                if self._bag.within_reach(self, piece.row, Stretch(piece.low, piece.high, use), rank=1)
            ]
            if not within:
                continue
            rows, members = np.unique([piece.row for piece in within], return_inverse=True)
            lines = self._bag.lines(use, self, rows)
            for piece, j in zip(within, members.tolist(), strict=True):
                centre = lines.centre[j]
                parts = outstanding(lines.offset[j], lines.slope[j], piece.low - centre, piece.high - centre)
                found += [(piece.clip(centre + low, centre + high), first) for low, high, first in parts]
        return found

    def _ranked_first_at(self, y: Array) -> list[tuple[Piece, tuple[int, ...]]]:
        """The same for one label of each row."""
        found = []
        for use, pieces in self._alike([Piece(j, label, label) for j, label in enumerate(y.tolist())]).items():
            rows = np.array([piece.row for piece in pieces])
            tops = outstanding_at(self._bag.lines(use, self, rows), y[rows])
            found += [(piece, first) for piece, first in zip(pieces, tops, strict=True) if first]
        return found

    def _search(self, ranked_first: list[tuple[Piece, tuple[int, ...]]]) -> list[list[Stretch]]:
        """Candidates in use on some pieces of the new rows' lines, by row and from left to right."""
        found: list[list[Stretch]] = [[] for _ in range(self._m)]
        pieces = [piece for piece, _ in join((piece, None) for piece, _ in sorted(ranked_first))]
        if not pieces:
            return found
        patterns = self._bag.patterns
        at = self._jump({patterns.few[0]: pieces}, patterns.few[1:])
        at = self._jump(self._walk(at, patterns.most_at_first), patterns.alike)
        ends = self._walk(at, patterns.n_inputs)
        used = [
            (piece, Use(pattern.number, r))
            for pattern, ended in ends.items()
            for piece, _, r in self._divide([pattern], ended)
        ]
        for (row, low, high), (use, first) in overlay(used, ranked_first):
            found[row].append(Stretch(low, high, use, first))
        return found

    def _walk(self, at: At, most: int) -> At:
        """Where walks end that start at some patterns, with at most so many inputs that matter."""
        ends: At = defaultdict(list)
        while at:
            following: At = defaultdict(list)
            for here, there, piece in self._go(at, lambda pattern: pattern.neighbours(most)):
                (ends if there == here else following)[there].append(piece)
            at = following
        return ends

    def _jump(self, at: At, starts: list[Pattern]) -> At:
        """To the best of some patterns, unless it is better to stay."""
        following: At = defaultdict(list)
        for _, there, piece in self._go(at, lambda _: starts):
            following[there].append(piece)
        return following

    def _go(self, at: At, choices: Callable[[Pattern], Iterable[Pattern]]) -> Iterator[tuple[Pattern, Pattern, Piece]]:
        """One step: for parts of the pieces, the pattern where they are, and the one where they go."""
        near = {pattern: [pattern, *choices(pattern)] for pattern in at}
        visitors: At = defaultdict(list)
        for pattern, pieces in at.items():
            for neighbour in near[pattern]:
                visitors[neighbour] += pieces
        self._learn(visitors)
        for pattern, pieces in at.items():
            parts = ((piece, i) for piece, i, _ in self._divide(near[pattern], pieces, reluctant=True))
            for piece, i in join(parts):
                yield pattern, near[pattern][i], piece

    def _learn(self, visitors: dict[Pattern, list[Piece]]) -> None:
        """Means and variances of rows that visit patterns for the first time."""
        rows_of = {}
        for pattern, pieces in visitors.items():
            if pattern not in self._mean:
                self._mean[pattern] = np.full((NOISE_RATIOS.size, self._m), np.nan)
                self._variance[pattern] = self._mean[pattern].copy()
            rows = np.unique([piece.row for piece in pieces])
            missing = rows[np.isnan(self._mean[pattern][0, rows])]
            if missing.size:
                rows_of[pattern] = missing
        for pattern, moments in self._bag.moments(self._new, rows_of):
            self._mean[pattern][:, rows_of[pattern]] = moments.mean
            self._variance[pattern][:, rows_of[pattern]] = moments.variance

    def _criteria(self, patterns: list[Pattern], rows: Rows) -> Parabolas:
        """Criteria of all noise variances of some patterns, at some of the rows."""
        known = [self._bag.criterion(pattern) for pattern in patterns]
        return parabolas(
            np.concatenate([criterion.quadratic for criterion in known]),
            np.concatenate([criterion.log_determinant for criterion in known]),
            self._bag.degrees,
            np.concatenate([self._mean[pattern][:, rows] for pattern in patterns]),
            np.concatenate([self._variance[pattern][:, rows] for pattern in patterns]),
        )

    def _divide(
        self, patterns: list[Pattern], pieces: list[Piece], *, reluctant: bool = False
    ) -> Iterator[tuple[Piece, int, int]]:
        """Parts of pieces with the numbers of the pattern and the noise variance that are best there.

        The reluctant leave the first pattern only for one that is better by more than rounding.
        """
        rows, columns = np.unique([piece.row for piece in pieces], return_inverse=True)
        criteria = self._criteria(patterns, rows)
        R = NOISE_RATIOS.size
        for piece, j in zip(pieces, columns.tolist(), strict=True):
            base, curvature, vertex = (part[:, j] for part in criteria)
            for part, g in divide(piece, base, curvature, vertex):
                if reluctant and g >= R:
                    values = base + curvature * (part.inside - vertex) ** 2
                    if not values[g] < (1.0 - LEAST_STEP) * values[:R].min():
                        g = int(values[:R].argmin())
                yield part, *divmod(g, R)
