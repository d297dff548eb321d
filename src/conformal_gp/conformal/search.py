r"""Regions of scores that are curves in the candidate value: searched, where those of lines are in closed form.

A label y is in the region if calibration rows of more weight than needed score at least as high as the test row: if
:math:`f(y) \ge 0`, where f is the weighted quantile of the calibration rows' scores less the test row's own. f is
evaluated on a grid of positions (see Curves), fine near the prediction and coarse far out. Where its sign changes, the
end is enclosed, and the outer side of the enclosure is reported. A piece of a region, or a gap in it, between two
neighbouring positions of the grid is not found.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from conformal_gp.arrays import Array, Indices, Mask
from conformal_gp.conformal.curves import Curves
from conformal_gp.conformal.levels import Needed

# Scores that differ by less than this share of their size, and this much, tie.
TIE = 1e-6
# Ends are reported to within this many predictive standard deviations, outwards.
TOLERANCE = 1e-4
# The grid on either side of the prediction, in predictive standard deviations; doubled where regions reach beyond it.
GRID = np.array([0.2, 0.45, 0.7, 1.0, 1.3, 1.65, 2.0, 2.4, 3.0, 3.8, 5.0, 7.0, 11.0, 20.0, 50.0, 200.0])
DOUBLINGS = 60
# With at most so many calibration rows the grid is finer by this factor: sets of few rows have narrow pieces.
FEW_ROWS = 12
FINER = 5
MOST_STEPS = 60
# Rows tie at an end of a region if their scores differ from the test row's by at most so many tolerances.
TIED = 5.0
# Positions of predictions are found to within this.
CENTRE_TOLERANCE = 1e-9
CENTRE_DOUBLINGS = 10

Function = Callable[[Array], Array]
Points = tuple[Array, Array]
"""Points (m, k), and values of a function there."""


def compared(scores: Array, sign: int) -> Array:
    """Scores as they are compared: absolute values for sign 0, else times the sign."""
    if sign == 0:
        return np.abs(scores)
    return sign * scores


def tie(own: Array) -> Array:
    """Difference up to which scores tie with a test row's."""
    return TIE * (1.0 + np.where(np.isfinite(own), np.abs(own), 0.0))


def centres(curves: Curves) -> Array:
    """Positions at which the test rows' own scores are 0, (m, 1): their p-values are 1, so every region has them."""
    positions = np.tile([-1.0, 1.0], (curves.n_new, 1))
    own = curves.own(positions)
    for _ in range(CENTRE_DOUBLINGS):
        enclosed = np.stack([own[:, 0] < 0.0, own[:, 1] >= 0.0], axis=1)
        if enclosed.all():
            break
        positions = np.where(enclosed, positions, 2.0 * positions)
        own = curves.own(positions)

    def negative(rows: Indices) -> Function:
        part = curves.take(rows)
        return lambda positions: -part.own(positions)

    inner = positions[:, :1], -own[:, :1]
    outer = positions[:, 1:], -own[:, 1:]
    return enclose(negative, inner, outer, CENTRE_TOLERANCE)[0]


def excess(curves: Curves, needed: Needed, sign: int, positions: Array) -> Array:
    """f at positions (m, G), for each level: (m, G, levels)."""
    scores, own = curves.scores(positions)
    scores = compared(scores, sign)
    own = compared(own, sign)
    m, G, n = scores.shape
    if needed.weights is not None:
        needed = needed._replace(least=np.repeat(needed.least, G, axis=0))
    # f: the score that rows of more weight than needed reach, less the test row's own
    reached = needed.largest(scores.reshape(m * G, n)).reshape(m, G, -1)
    with np.errstate(invalid="ignore"):
        found = reached - (own - tie(own))[:, :, None]
    return np.where(np.isnan(found), 0.0, found)  # infinite scores tie


class Search:
    """Regions of m test rows; ``sign`` 0 compares absolute scores, 1 signed ones, -1 those with signs changed."""

    def __init__(self, curves: Curves, needed: Needed, sign: int = 0):
        self._curves = curves
        self._needed = needed
        self._sign = sign
        self._centre = centres(curves)
        self._add_infinity(*self._grid())

    def _grid(self) -> tuple[Array, Array]:
        """Positions (m, G), ascending, that reach beyond all bounded regions, and f there, (m, G, levels)."""
        grid = np.append(0.0, GRID)
        if self._curves.n_calibration <= FEW_ROWS:
            grid = np.interp(np.arange(0.0, GRID.size, 1.0 / FINER), np.arange(grid.size), grid)
        positions = self._centre + np.concatenate([-grid[:0:-1], grid])
        positions = np.sort(np.concatenate([positions, self._curves.landmarks], axis=1), axis=1)
        f = excess(self._curves, self._needed, self._sign, positions)
        for _ in range(DOUBLINGS):
            # a level that needs no weight has an infinite f and no end
            inside: Mask = np.any(np.isfinite(f) & (f >= 0.0), axis=2)
            left = inside[:, 0] & (positions[:, 0] > self._curves.lowest) & (self._sign <= 0)
            right = inside[:, -1] & (self._sign >= 0)
            if not (left.any() or right.any()):
                break
            span = positions[:, -1:] - positions[:, :1]
            outer = np.concatenate([positions[:, :1] - span, positions[:, -1:] + span], axis=1)
            found = excess(self._curves, self._needed, self._sign, outer)
            positions = np.concatenate([outer[:, :1], positions, outer[:, 1:]], axis=1)
            f = np.concatenate([found[:, :1], f, found[:, 1:]], axis=1)
        return positions, f

    def _add_infinity(self, positions: Array, f: Array) -> None:
        """Add a place beyond the grid on either side, where regions end: at infinity if they go on for ever."""
        labels = self._curves.labels(positions[:, [0, -1]])
        # where all positions are the same label, as with targets that the mean function explains, they do not
        distinct = (labels[:, :1] < labels[:, 1:]) | np.isinf(f[:, 0])
        inside = f >= 0.0
        below = inside[:, 0] & distinct & (positions[:, :1] > self._curves.lowest[:, None])
        above = inside[:, -1] & distinct
        first = np.where(below, -np.inf, positions[:, :1])
        last = np.where(above, np.inf, positions[:, -1:])
        of_levels = np.repeat(positions[:, :, None], f.shape[2], axis=2)
        # (m, G, levels) each
        self._positions = np.concatenate([first[:, None], of_levels, last[:, None]], axis=1)
        self._inside: Mask = np.pad(inside, ((0, 0), (1, 1), (0, 0)))
        self._excess = np.pad(f, ((0, 0), (1, 1), (0, 0)), constant_values=np.inf)

    def ends(self) -> Array:
        """Labels at the ends of each level's region, (m, 2, levels); for signed scores one of them is infinite.

        Of absolute scores they are the ends of the hull of the region and of the centre, which is outside only where it
        is not a label that can be, and is moved to the nearest.
        """
        inside = self._inside
        outermost = inside.shape[1] - 1
        levels = inside.shape[2]
        first_in = np.argmax(inside, axis=1)
        last_in = outermost - np.argmax(inside[:, ::-1], axis=1)
        within = np.concatenate([first_in, last_in], axis=1)
        beyond = np.concatenate([np.maximum(first_in - 1, 0), np.minimum(last_in + 1, outermost)], axis=1)
        low, high = np.split(self._end(within, beyond, np.tile(np.arange(levels), 2)), 2, axis=1)
        if self._sign == 0:
            empty = ~inside.any(axis=1)
            low = np.minimum(np.where(empty, self._centre, low), self._centre)
            high = np.maximum(np.where(empty, self._centre, high), self._centre)
        found = np.stack([self._curves.labels(low), self._curves.labels(high)], axis=1)
        if self._sign > 0:
            found[:, 0] = -np.inf
        if self._sign < 0:
            found[:, 1] = np.inf
        return found

    def pieces(self) -> list[Array]:
        """Labels at the ends of all pieces of the regions of the only level, each (pieces, 2)."""
        inside = self._inside[:, :, 0]
        changes = inside[:, 1:] != inside[:, :-1]
        count = changes.sum(axis=1)
        most = int(count.max(initial=0))
        before = np.argsort(~changes, axis=1, kind="stable")[:, :most]  # changes first, in their order
        enters = np.take_along_axis(inside, before + 1, axis=1)
        labels = self._curves.labels(self._end(before + enters, before + ~enters, np.zeros(most, dtype=np.int64)))
        return [own[:number].reshape(-1, 2) for own, number in zip(labels, count, strict=True)]

    def _end(self, within: Indices, beyond: Indices, level: Indices) -> Array:
        """Ends between places of the grid within and beyond the regions, (m, k), of a level each, rounded outwards."""
        rows = np.arange(len(within))[:, None]
        inner = self._positions[rows, within, level], self._excess[rows, within, level]
        outer = self._positions[rows, beyond, level], self._excess[rows, beyond, level]

        def of_level(rows: Indices) -> Function:
            curves = self._curves.take(rows)
            needed = self._needed.take(rows)
            columns = np.arange(level.size)
            return lambda positions: excess(curves, needed, self._sign, positions)[:, columns, level]

        return enclose(of_level, inner, outer, TOLERANCE)[1]


def enclose(
    functions: Callable[[Indices], Function], inner: Points, outer: Points, tolerance: float
) -> tuple[Array, Array]:
    """Enclose sign changes of f between points where it is not negative (inner) and points where it is (outer).

    Secants whose root is moved by half the tolerance towards the farther end, so that both ends close in on it, and a
    bisection in every fourth step. Where f does not change its sign, nothing moves. ``functions`` gives f of some test
    rows: most need four steps, and those that need more go on alone.
    """
    within, f_within = inner
    beyond, f_beyond = outer
    settled = (f_within < 0.0) | (f_beyond >= 0.0)
    rows = np.arange(len(within))
    function = functions(rows)
    for step in range(MOST_STEPS):
        is_open = ~settled & (np.abs(beyond - within) > tolerance)
        still = np.flatnonzero(is_open.any(axis=1))
        if still.size == 0:
            break
        if 2 * still.size <= rows.size:
            rows = still
            function = functions(rows)
        a, b, f_a, f_b = within[rows], beyond[rows], f_within[rows], f_beyond[rows]
        width = b - a
        with np.errstate(invalid="ignore", divide="ignore", over="ignore"):
            # the root of the secant
            share = f_a / (f_a - f_b)
            share += np.where(share < 0.5, 0.5, -0.5) * tolerance / np.abs(width)
        usable = np.isfinite(share) & (share > 0.0) & (share < 1.0) & (step % 4 != 3)
        point = np.where(is_open[rows], a + np.where(usable, share, 0.5) * width, a)
        f = function(point)
        is_within = is_open[rows] & (f >= 0.0)
        is_beyond = is_open[rows] & (f < 0.0)
        settled[rows] |= is_open[rows] & ((point == a) | (point == b))  # no number is between
        within[rows] = np.where(is_within, point, a)
        f_within[rows] = np.where(is_within, f, f_a)
        beyond[rows] = np.where(is_beyond, point, b)
        f_beyond[rows] = np.where(is_beyond, f, f_b)
    return within, beyond


def counts(curves: Curves, labels: Array, signed: bool, weights: Array | None) -> tuple[Array, Array]:
    """How many rows, or of what weight, score at least as high as each test row at its label (m,), and higher.

    Counts of signed scores fall with the label. They come from the steps of the predictive distribution function:
    one-sided bounds of every rank, which are lower bounds below the median and upper bounds above it.
    """
    if signed and weights is None:
        n = curves.n_calibration
        half = n // 2
        steps = [Search(curves, Needed.of_ranks(list(range(n - half, 0, -1))), 1).ends()[:, 1]]
        if half:
            steps.append(Search(curves, Needed.of_ranks(list(range(1, half + 1))), -1).ends()[:, 0])
        every = np.concatenate(steps, axis=1)
        return (every >= labels[:, None]).sum(axis=1), (every > labels[:, None]).sum(axis=1)
    scores, own = curves.scores_of_labels(labels[:, None])
    scores = compared(scores[:, 0], int(signed))
    own = compared(own, int(signed))
    each = np.ones(scores.shape[1]) if weights is None else weights
    return (scores >= own - tie(own)) @ each, (scores > own + tie(own)) @ each


def tied_rows(curves: Curves, labels: Array) -> tuple[Indices, Indices]:
    """How many rows tie with the test row up to the tolerance of ends, and which is nearest, (m,) each."""
    scores, own = curves.scores_of_labels(labels[:, None])
    gap = np.abs(np.abs(scores[:, 0]) - np.abs(own))
    tied = np.maximum((gap <= TIED * TOLERANCE).sum(axis=1), 1)
    return tied, gap.argmin(axis=1)
